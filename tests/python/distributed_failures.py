# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on one rank; started by test_distributed_failures.py with the name of the case.

A rank that gets the error it should prints it; the error ends the process, as in a user's script.
"""

import os
import signal
import sys
import time
from pathlib import Path

import oneflow_lite as flow
from oneflow_lite import distributed as dist

# "cpu" or "cuda": the GPU of each rank, which is the current one once the ranks have met.
DEVICE = os.environ.get("OFL_TEST_DEVICE", "cpu")


def ones(*shape, **options):
    if DEVICE == "cuda" and not dist.is_initialized():
        dist.init()
    return flow.ones(*shape, device=DEVICE, **options)


def meet():
    ones(1)
    dist.barrier(device_type=DEVICE)


def start_together():
    """Waits until all ranks have imported what they need: on a busy machine that takes longer than
    the time-out of these cases.
    """
    if DEVICE == "cuda":  # a context takes long to make, too
        flow.ones(1, device=dist.get_device()).tolist()
    folder, end = Path(os.environ["STARTED"]), time.monotonic() + 120
    (folder / os.environ["RANK"]).touch()
    while len(list(folder.iterdir())) < int(os.environ["WORLD_SIZE"]) and time.monotonic() < end:
        time.sleep(0.01)


start_together()
rank = dist.get_rank()


def say_when():
    """For what is asked of the others: to end within so many seconds."""
    print("fails at", time.time(), flush=True)


def kill():
    say_when()
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    say_when()
    raise KeyError("of my own")


def reduce_for_ever():
    x = ones(3)
    while True:
        dist.all_reduce(x, "max")


def killed():
    meet()
    if rank == 1:
        kill()
    reduce_for_ever()


def killed_at_rank_0():
    meet()
    if rank == 0:
        kill()
    reduce_for_ever()


def killed_before_it_connects():
    dist.init()
    if rank == 1:
        kill()
    reduce_for_ever()


def raises():
    meet()
    if rank == 1:
        fail()
    reduce_for_ever()


def raises_while_others_compute():
    meet()
    if rank == 1:
        fail()
    time.sleep(100)


def hangs():
    dist.all_reduce(ones(3))
    if rank == 1:
        time.sleep(100)
    reduce_for_ever()


def leaves():
    meet()
    if rank == 1:
        sys.exit(0)
    reduce_for_ever()


def leaves_before_it_connects():
    dist.init()
    if rank == 1:
        sys.exit(0)
    reduce_for_ever()


def leaves_before_a_message():
    meet()
    if rank == 1:
        sys.exit(0)
    dist.recv(ones(3), 1) if rank == 0 else dist.send(ones(3), 1)


def different_counts():
    dist.all_reduce(ones(3 + (rank == 1)))


def one_has_much_more():
    """On a GPU the call returns at once."""
    x = ones(3 if rank else 3_000_000)
    dist.all_reduce(x)
    print(x[0].item())


def different_dtypes():
    dist.all_reduce(ones(3, dtype=flow.float32 if rank else flow.int32))


def wrong_order():
    if rank == 1:
        dist.broadcast(ones(3), 0)
        dist.all_reduce(ones(3))
    else:
        dist.all_reduce(ones(3))
        dist.broadcast(ones(3), 0)


def different_splits():
    dist.all_to_all_single(0 * ones(4), ones(4), [1, 3], [1, 3])


def different_messages():
    with dist.batch():
        dist.send(ones(3 + rank), 1 - rank)
        dist.recv(ones(3), 1 - rank)


def missing_library():
    if rank == 1:
        os.environ["OFL_GLOO_LIBRARY"] = "/nowhere/libgloo.so"
        os.environ["OFL_NCCL_LIBRARY"] = "/nowhere/libnccl.so"
    dist.all_reduce(ones(3))


def raises_in_time():
    meet()
    if rank == 1:
        fail()
    time.sleep(100)


def partial_sum():
    p = flow.placement(DEVICE, list(range(dist.get_world_size())))
    return ones(3).to_global(p, flow.sbp.partial_sum)


def global_raises():
    x = partial_sum()
    if rank == 1:
        fail()
    while True:
        x.numpy()


def global_wrong_order():
    x = partial_sum()
    parts = ones(3).to_global(x.placement, flow.sbp.split(0))
    for t in (x, parts) if rank else (parts, x):
        t.numpy()


class Stage(flow.nn.Module):
    """Fails in the middle of a step, on rank 1."""

    def __init__(self, how):
        super().__init__()
        self.layer, self.how, self.calls = flow.nn.Linear(4, 4), how, 0
        ones(1)  # the ranks have met
        self.to(DEVICE)

    def forward(self, x):
        self.calls += 1
        if rank == 1 and self.calls == 3:
            self.how()
        return self.layer(x)


def pipeline(how):
    size = dist.get_world_size()
    stages = [Stage(how) for _ in range(size)]
    p = flow.placement(DEVICE, list(range(size)))
    pipeline = dist.Pipeline(stages, p, 4, flow.nn.functional.mse_loss)
    while True:
        pipeline.step(ones(8, 4), ones(8, 4))


def pipeline_raises():
    pipeline(fail)


def pipeline_killed():
    pipeline(kill)


def pipeline_hangs():
    pipeline(lambda: time.sleep(100))


globals()[sys.argv[1]]()
