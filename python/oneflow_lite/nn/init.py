# SPDX-License-Identifier: Apache-2.0
"""Initial values, in place; the bounds are PyTorch's."""

from __future__ import annotations

import math

from oneflow_lite._oneflow_lite import _C, Generator, Tensor, float32, float64
from oneflow_lite.autograd._grad_mode import no_grad

_GAINS = {
    "linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through a nonlinearity.

    Parameters
    ----------
    nonlinearity : str
        linear, sigmoid, tanh, relu, leaky_relu or selu.
    param : float, optional
        The slope of leaky_relu, by default 0.01.

    Raises
    ------
    ValueError
        For another name.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"calculate_gain(): nonlinearity {nonlinearity!r} is none of "
                         f"{', '.join([*_GAINS, 'leaky_relu'])}")  # fmt: skip
    return _GAINS[nonlinearity]


def _fans(x: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and outputs an input: of a weight [out, in, *window]."""
    if x.ndim < 2:
        raise ValueError(f"fan in and fan out need at least 2 dims, not shape {list(x.shape)}")
    window = math.prod(x.shape[2:])
    return x.shape[1] * window, x.shape[0] * window


def _fill(x: Tensor, draw, scale: float, shift: float, generator: Generator | None) -> Tensor:
    # At least float32, so that 16-bit weights are rounded once.
    dtype = float64 if x.dtype == float64 else float32
    with no_grad():
        values = draw(list(x.shape), dtype=dtype, device=x.device, generator=generator)
        return x.copy_(values.mul_(scale).add_(shift))


def uniform_(
    x: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with values from ``[a, b)``."""
    return _fill(x, _C.rand, b - a, a, generator)


def normal_(
    x: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with normal values."""
    return _fill(x, _C.randn, std, mean, generator)


def constant_(x: Tensor, value: float) -> Tensor:
    """Fills with one value."""
    with no_grad():
        return x.fill_(value)


def zeros_(x: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(x, 0)


def ones_(x: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(x, 1)


def xavier_uniform_(x: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform within ``gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / max(1, sum(_fans(x))))
    return uniform_(x, -bound, bound, generator)


def kaiming_uniform_(
    x: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform within ``gain * sqrt(3 / fan)`` (He et al., 2015).

    Parameters
    ----------
    x : Tensor
        A weight of shape ``[out, in, *window]``.
    a : float
        The slope for leaky_relu.
    mode : str
        fan_in keeps the variance forward, fan_out backward.
    nonlinearity : str
        As for :func:`calculate_gain`.
    generator : Generator, optional
        By default the device's.

    Raises
    ------
    ValueError
        For another mode or nonlinearity, or fewer than 2 dims.
    """
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"kaiming_uniform_(): mode {mode!r} is neither fan_in nor fan_out")
    fan = _fans(x)[mode == "fan_out"]
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3 / max(1, fan))
    return uniform_(x, -bound, bound, generator)
