# SPDX-License-Identifier: Apache-2.0
"""The activations that are composed of functions."""

from __future__ import annotations

from oneflow_lite._math import wide
from oneflow_lite._oneflow_lite import _C, Generator, Tensor


def into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, written into the input's memory where wanted."""
    return input.copy_(result) if inplace else result


def gumbel_softmax(
    logits: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    eps: float = 1e-10,
    dim: int = -1,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """A sample of each row's distribution, as shares that have a gradient.

    ``softmax((logits + g) / tau)`` with g from the Gumbel distribution, by Jang, Gu and Poole,
    "Categorical Reparameterization with Gumbel-Softmax".

    Parameters
    ----------
    logits : Tensor
        Logarithms of probabilities, up to a number per row.
    tau : float
        Near 0 the shares come near to 0 and 1.
    hard : bool
        Exactly 1 at the largest and 0 elsewhere, with the gradient of the shares.
    eps : float
        Means nothing: the numbers drawn need no guard.
    generator : Generator, optional
        Where they come from.
    """
    drawn = _C.rand(list(logits.shape), dtype=wide(logits), device=logits.device,
                    generator=generator)  # fmt: skip
    noise = -_C.log(-_C.log1p(-drawn))  # of 1 - drawn, which is in (0, 1]; -log of it may be 0
    shares = _C.softmax((logits + noise.clamp(None, 60.0).to(None, logits.dtype)) / tau, dim)
    if not hard:
        return shares
    place = shares.detach().argmax(dim, keepdim=True)
    return _C.zeros_like(shares).scatter(dim, place, 1.0) - shares.detach() + shares
