# SPDX-License-Identifier: Apache-2.0
"""How far vectors are from each other, as modules."""

from __future__ import annotations

from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.nn.functional import cosine_similarity, pairwise_distance
from oneflow_lite.nn.module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors; see :func:`functional.cosine_similarity`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of the differences; see :func:`functional.pairwise_distance`."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
