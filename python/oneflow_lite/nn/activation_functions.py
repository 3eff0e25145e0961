# SPDX-License-Identifier: Apache-2.0
"""The activations that are composed of functions."""

from __future__ import annotations

from oneflow_lite._math import as_given, wide
from oneflow_lite._oneflow_lite import _C, Generator, ShapeError, Tensor


def into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    """The result, written into the input's memory where wanted."""
    return input.copy_(result) if inplace else result


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """The element where it is positive, else ``weight`` times it.

    ``weight`` has one number, or one per channel, dim 1; ShapeError otherwise.
    """
    if weight.numel() > 1:
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.ndim != 1 or weight.numel() != channels:
            raise ShapeError(f"prelu(): weight has shape {list(weight.shape)}, expected [1] or "
                             f"[{channels}]")  # fmt: skip
        weight = weight.view([-1, *[1] * (input.ndim - 2)])
    elif input.ndim == 0:
        weight = weight.view(())
    return _C.where(input > 0, input, input * weight)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dim times the sigmoid of the second."""
    size = input.shape[dim] if input.ndim > 0 else 1
    if size % 2:
        raise ShapeError(f"glu(): input has shape {list(input.shape)}, expected an even size of "
                         f"dim {dim}")  # fmt: skip
    value, gate = _C.chunk(input, 2, dim)
    return as_given(value * _C.sigmoid(gate.to(None, wide(gate))), gate)


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
