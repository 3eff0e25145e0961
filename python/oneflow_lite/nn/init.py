# SPDX-License-Identifier: Apache-2.0
"""Initial values, in place; the bounds are PyTorch's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite._absent import public_face
from oneflow_lite._named_errors import speak_for_themselves
from oneflow_lite._numbers import check_number
from oneflow_lite._oneflow_lite import (
    _C,
    Generator,
    ShapeError,
    Tensor,
    _everywhere,
    float32,
    float64,
    from_numpy,
)
from oneflow_lite.autograd._grad_mode import no_grad

__all__ = [
    "calculate_gain", "constant_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_",
    "ones_", "orthogonal_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_",
    "zeros_",
]  # fmt: skip

_GAINS = {
    "linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75,
    **{f"conv{kind}{n}d": 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)},
}  # fmt: skip


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the variance through a nonlinearity.

    Parameters
    ----------
    nonlinearity : str
        linear, sigmoid, tanh, relu, leaky_relu or selu; conv1d to conv_transpose3d are linear.
    param : float, optional
        The slope of leaky_relu, by default 0.01.

    Raises
    ------
    ValueError
        For another name, and for a slope that is no number.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"calculate_gain(): the slope {slope!r} is no number")
        return math.sqrt(2 / (1 + slope**2))
    if not isinstance(nonlinearity, str) or nonlinearity not in _GAINS:
        raise ValueError(f"calculate_gain(): nonlinearity {nonlinearity!r} is none of "
                         f"{', '.join([*_GAINS, 'leaky_relu'])}")  # fmt: skip
    return _GAINS[nonlinearity]


def _fans(tensor: Tensor, name: str = "_calculate_fan_in_and_fan_out") -> tuple[int, int]:
    """How many inputs an output has, and outputs an input: of a weight [out, in, *window]."""
    if tensor.ndim < 2:
        raise ValueError(f"{name}(): tensor has shape {list(tensor.shape)}, expected at least 2 "
                         "dims for its fan in and fan out")  # fmt: skip
    window = math.prod(tensor.shape[2:])
    return tensor.shape[1] * window, tensor.shape[0] * window


_calculate_fan_in_and_fan_out = _fans  # under PyTorch's name, which programs call


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    """The fan that ``mode`` names; programs call it, too."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(
            f"_calculate_correct_fan(): mode is {mode!r}, but must be fan_in or fan_out"
        )
    return _fans(tensor, "_calculate_correct_fan")[mode.lower() == "fan_out"]


def _fill(tensor: Tensor, draw, scale: float, shift: float, generator: Generator | None) -> Tensor:
    # At least float32, so that 16-bit weights are rounded once.
    dtype = float64 if tensor.dtype == float64 else float32
    where: dict[str, Any] = {"device": tensor.device}
    if tensor.is_global:  # each rank draws its shard, of the numbers that one process would draw
        where = {"placement": tensor.placement, "sbp": tensor.sbp}
    with no_grad():
        values = draw(list(tensor.shape), dtype=dtype, generator=generator, **where)
        return tensor.copy_(values.mul_(scale).add_(shift))


def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with values from ``[a, b)``; ValueError where a is above b."""
    if not a <= b:
        raise ValueError(f"uniform_(): there are no numbers from a = {a} to b = {b}")
    return _fill(tensor, _C.rand, b - a, a, generator)


def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fills with normal values. ValueError where std is below 0, or NaN."""
    if not std >= 0:
        raise ValueError(f"normal_(): std is {std}, but it must not be negative")
    return _fill(tensor, _C.randn, std, mean, generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills with one value."""
    with no_grad():
        return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills with zeros."""
    return constant_(tensor, 0)


def ones_(tensor: Tensor) -> Tensor:
    """Fills with ones."""
    return constant_(tensor, 1)


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Uniform within ``gain * sqrt(6 / (fan_in + fan_out))`` (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6 / max(1, sum(_fans(tensor, "xavier_uniform_"))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal of the variance of :func:`xavier_uniform_`."""
    std = gain * math.sqrt(2 / max(1, sum(_fans(tensor, "xavier_normal_"))))
    return normal_(tensor, 0.0, std, generator)


def _kaiming(name: str, tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    """The standard deviation of :func:`kaiming_uniform_` and :func:`kaiming_normal_`."""
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"{name}(): mode {mode!r} is neither fan_in nor fan_out")
    fan = _fans(tensor, name)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(max(1, fan))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform within ``gain * sqrt(3 / fan)`` (He et al., 2015).

    Parameters
    ----------
    tensor : Tensor
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
    bound = math.sqrt(3) * _kaiming("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal of the variance of :func:`kaiming_uniform_`."""
    std = _kaiming("kaiming_normal_", tensor, a, mode, nonlinearity)
    return normal_(tensor, 0.0, std, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Normal values from ``[a, b]``: those outside are drawn again."""
    if not a < b:
        raise ValueError(f"trunc_normal_(): a is {a}, but it must be less than b, {b}")
    below_a, below_b = (math.erf((end - mean) / std / math.sqrt(2)) for end in (a, b))
    if below_b - below_a < 0.01:  # hardly any would be kept
        raise ValueError(f"trunc_normal_(): [{a}, {b}] is too far from the mean, {mean}")
    with no_grad():
        normal_(tensor, mean, std, generator)
        while (outside := (tensor < a) | (tensor > b)).any():
            again = normal_(_C.empty_like(tensor), mean, std, generator)
            tensor.copy_(_C.where(outside, again, tensor))
        return tensor


_no_grad_trunc_normal_ = trunc_normal_  # under PyTorch's name, which programs call


def _write(tensor: Tensor, values: Tensor) -> Tensor:
    """Fills with values that are the same on every rank."""
    if tensor.is_global and not values.is_global:
        values = _everywhere(values, tensor.placement)
    with no_grad():
        return tensor.copy_(values)


def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with ones on its diagonal and zeros elsewhere."""
    if tensor.ndim != 2:
        raise ShapeError(f"eye_(): tensor has shape {list(tensor.shape)}, expected 2 dims")
    return _write(tensor, _C.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills with orthogonal rows, or columns where these are fewer, of length ``gain``.

    What lies behind dim 0 counts as one dim. By a QR decomposition on the host, with a positive
    diagonal of R: each such matrix is as probable as any other.
    """
    if tensor.ndim < 2:
        raise ShapeError(f"orthogonal_(): tensor has shape {list(tensor.shape)}, expected at least "
                         "2 dims")  # fmt: skip
    if tensor.numel() == 0:
        return tensor
    rows, cols = tensor.shape[0], math.prod(tensor.shape[1:])
    tall = [max(rows, cols), min(rows, cols)]
    q, r = np.linalg.qr(_C.randn(tall, dtype=float64, generator=generator).numpy())
    q = q * np.where(np.diagonal(r) < 0, -gain, gain)
    return _write(tensor, from_numpy(q.T.copy() if rows < cols else q).view(tensor.shape))


def _checked(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function, which looks first at what must be a tensor or a number."""
    call, kinds = f"{function.__name__}()", function.__annotations__
    names = function.__code__.co_varnames[: function.__code__.co_argcount]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Tensor:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            kind = kinds.get(name)
            if kind == "Tensor" and not isinstance(value, Tensor):
                raise TypeError(f"{call}: argument '{name}' must be Tensor, not "
                                f"{type(value).__name__}")  # fmt: skip
            if kind == "float":
                check_number(call, f"argument '{name}'", value, tensors=True)
        return function(*args, **kwargs)

    return checked


globals().update({name: _checked(globals()[name]) for name in __all__ if name.endswith("_")})
speak_for_themselves(globals(), __all__)
if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
