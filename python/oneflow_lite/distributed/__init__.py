# SPDX-License-Identifier: Apache-2.0
"""Several processes that compute together, one per device.

>>> import oneflow_lite as flow
>>> x = flow.full([3], float(flow.distributed.get_rank()))
>>> flow.distributed.all_reduce(x)  # the sum over all ranks, on each

``python -m oneflow_lite.launch --nproc 2 script.py`` starts the processes; those of torchrun, Open
MPI and SLURM are understood as well. The first call that needs the others meets them; ``init()``
does so at a time of your choice. On the CPU messages go through Gloo, on CUDA through NCCL.

Names and arguments are those of ``torch.distributed`` where the functions do the same. A rank that
fails ends the others with its message.
"""

from oneflow_lite._absent import public_face
from oneflow_lite._named_errors import speak_for_themselves
from oneflow_lite.distributed import checkpoint
from oneflow_lite.distributed._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    gather,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from oneflow_lite.distributed._data_parallel import DataParallel, global_mean
from oneflow_lite.distributed._messages import batch, recv, send
from oneflow_lite.distributed._pipeline import Pipeline
from oneflow_lite.distributed._world import (
    Group,
    ReduceOp,
    get_device,
    get_local_rank,
    get_rank,
    get_world_size,
    init,
    is_available,
    is_initialized,
    new_group,
)
from oneflow_lite.distributed._zero import ZeroOptimizer

__all__ = [
    "DataParallel", "Group", "Pipeline", "ReduceOp", "ZeroOptimizer", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch", "broadcast", "broadcast_object_list", "checkpoint",
    "gather", "get_device", "get_local_rank", "get_rank", "get_world_size", "global_mean",
    "init", "is_available", "is_initialized", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send",
]  # fmt: skip

speak_for_themselves(globals(), __all__)
__getattr__, __dir__ = public_face(__name__)
