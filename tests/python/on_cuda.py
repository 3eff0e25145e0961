# SPDX-License-Identifier: Apache-2.0
"""Lets bodies that were written for the CPU run on a rank's GPU.

They make their data on the CPU and compare with NumPy. Here placements are of GPUs, a local tensor
goes to the GPU where it becomes a shard, and .numpy() takes what it is asked for from there. What
is between runs as it is.
"""

from typing import Any

import oneflow_lite as flow
from oneflow_lite import distributed as dist


def install() -> None:
    """For the rest of this process, whose rank's GPU becomes the current one."""
    dist.init()
    here = dist.get_device()
    placement, to_global, numpy = flow.placement, flow.Tensor.to_global, flow.Tensor.numpy

    def placement_of_gpus(kind: str, ranks: Any) -> Any:
        return placement("cuda" if kind == "cpu" else kind, ranks)

    def moved_to_global(self: Any, placement: Any = None, sbp: Any = None, **others: Any) -> Any:
        if placement is not None and placement.type == "cuda" and not self.is_global:
            self = self.to(here)
        return to_global(self, placement, sbp, **others)

    def copied_numpy(self: Any, **options: Any) -> Any:
        return numpy(self if self.is_global or self.is_meta or self.requires_grad else self.cpu(),
                     **options)  # fmt: skip

    changed: Any = flow
    changed.placement = placement_of_gpus
    changed.Tensor.to_global, changed.Tensor.numpy = moved_to_global, copied_numpy
