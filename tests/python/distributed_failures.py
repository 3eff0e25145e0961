# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on one rank; started by test_distributed_failures.py with the name of the case.

A rank that gets the error it should prints it; the error ends the process, as in a user's script.
"""

import os
import signal
import sys
import time

import oneflow_lite as flow
from oneflow_lite import distributed as dist

rank = dist.get_rank()


def reduce_for_ever():
    x = flow.ones(3)
    while True:
        dist.all_reduce(x, "max")


def killed():
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    reduce_for_ever()


def killed_at_rank_0():
    dist.barrier()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    reduce_for_ever()


def killed_before_it_connects():
    dist.init()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    reduce_for_ever()


def raises():
    dist.barrier()
    if rank == 1:
        raise KeyError("of my own")
    reduce_for_ever()


def raises_while_others_compute():
    dist.barrier()
    if rank == 1:
        raise KeyError("of my own")
    time.sleep(100)


def hangs():
    dist.all_reduce(flow.ones(3))
    if rank == 1:
        time.sleep(100)
    reduce_for_ever()


def leaves():
    dist.barrier()
    if rank == 1:
        sys.exit(0)
    reduce_for_ever()


def different_counts():
    dist.all_reduce(flow.ones(3 + (rank == 1)))


def different_dtypes():
    dist.all_reduce(flow.ones(3, dtype=flow.float32 if rank else flow.int32))


def wrong_order():
    if rank == 1:
        dist.broadcast(flow.ones(3), 0)
        dist.all_reduce(flow.ones(3))
    else:
        dist.all_reduce(flow.ones(3))
        dist.broadcast(flow.ones(3), 0)


def different_splits():
    dist.all_to_all_single(flow.zeros(4), flow.ones(4), [1, 3], [1, 3])


def different_messages():
    with dist.batch():
        dist.send(flow.ones(3 + rank), 1 - rank)
        dist.recv(flow.ones(3), 1 - rank)


def missing_library():
    if rank == 1:
        os.environ["OFL_GLOO_LIBRARY"] = "/nowhere/libgloo.so"
    dist.all_reduce(flow.ones(3))


globals()[sys.argv[1]]()
