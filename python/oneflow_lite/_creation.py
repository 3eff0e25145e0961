# SPDX-License-Identifier: Apache-2.0
"""New tensors beside those that C++ makes, composed of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._devices import common_shape
from oneflow_lite._oneflow_lite import _C, Generator, Tensor, device, dtype

_Device = device | str | int


def as_tensor(data: Any, dtype: dtype | None = None, device: _Device | None = None) -> Tensor:
    """``data`` as a tensor: itself, a NumPy array's memory where it can be shared, else a copy."""
    if isinstance(data, np.ndarray):
        if not data.dtype.isnative:
            data = data.astype(data.dtype.newbyteorder("="))
        if data.flags.writeable and all(stride >= 0 for stride in data.strides):
            data = _ext.from_numpy(data)
    if not isinstance(data, Tensor):
        return _ext.tensor(data, dtype=dtype, device=device)
    return data.to(device, dtype)


def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: _Device | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``obj`` as a tensor, as :func:`as_tensor`; with ``copy`` always in memory of its own.

    A tensor loses its history, unless ``requires_grad``.

    Raises
    ------
    ValueError
        ``copy`` is False, and the memory of ``obj`` cannot be shared.
    """
    if isinstance(obj, Tensor) and not requires_grad:
        obj = obj.detach()
    if copy is False:
        y = _shared(obj)
        if y is None or (dtype or y.dtype) is not y.dtype or y.to(device) is not y:
            raise ValueError(f"asarray(): of {type(obj).__name__} it would be a copy, but copy is "
                             "False")  # fmt: skip
    elif copy and isinstance(obj, Tensor):
        y = obj.to(device, dtype, copy=True)
    else:
        y = (_ext.tensor if copy else as_tensor)(obj, dtype=dtype, device=device)
    return y if y.requires_grad == requires_grad else y.requires_grad_(requires_grad)


def _shared(obj: Any) -> Tensor | None:
    """A tensor over the same memory; None where there is none."""
    if isinstance(obj, Tensor):
        return obj
    try:
        if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__"):
            return _ext.from_dlpack(obj, copy=False)
        described = hasattr(obj, "__array_interface__")
        return _ext.from_numpy(np.asarray(obj if described else memoryview(obj)))
    except (BufferError, TypeError, ValueError, RuntimeError):
        return None


def _size(function: str, name: str, value: Any) -> int:
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"{function}(): {name} must be int, not {type(value).__name__}") from None
    if size < 0:
        raise ValueError(f"{function}(): {name} is {size}, but it must not be negative")
    return size


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: dtype | None = None,
    device: _Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` numbers from ``start`` to ``end``, both included, equally far apart.

    For an integer dtype the ends lose their fractions first, and each number its own.
    """
    steps = _size("linspace", "steps", steps)
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.ndim > 0:
            raise _ext.ShapeError(f"linspace(): {name} has shape {list(value.shape)}, expected []")
    start, end = (x.item() if isinstance(x, Tensor) else x for x in (start, end))
    if dtype is not None and not dtype.is_floating_point:
        start, end = math.trunc(start), math.trunc(end)
    place = _C.arange(steps, dtype=_ext.float64, device=device)
    step = (end - start) / max(1, steps - 1)
    # From the nearer end, so that both are exact.
    from_end = end - (steps - 1 - place) * step
    values = _C.where(place < max(1, steps // 2), start + place * step, from_end)
    return values.to(None, dtype or _ext.float32).requires_grad_(requires_grad)


def _range(name: str, low: int, high: int) -> int:
    if high <= low:
        raise ValueError(f"{name}(): there is no integer from {low} on and below {high}")
    if high - low > 1 << 32:
        raise ValueError(f"{name}(): {high - low} values are more than 2^32")
    return high - low


def randint(
    *arguments: Any,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: _Device | None = None,
    **kwargs: Any,
) -> Tensor:
    """Uniform integers: ``randint(high, size)`` from 0 on, ``randint(low, high, size)``.

    ``high`` is not among them; the dtype is int64 where absent. The same on every device.
    """
    names = ("high", "size") if len(arguments) + len(kwargs) == 2 else ("low", "high", "size")
    given = dict(zip(names, arguments, strict=False)) | kwargs
    if set(given) != set(names):
        raise TypeError("randint() takes (high, size) or (low, high, size)")
    low, high, size = given.get("low", 0), given["high"], given["size"]
    count = _range("randint", low, high)
    bits = _C.random_bits(size, generator=generator, device=device)
    return _scaled(bits, low, count).to(None, dtype or _ext.int64)


def _scaled(bits: Tensor, low: int, count: int) -> Tensor:
    """32 random bits as ``low .. low + count - 1``; exact, since they fit into float64."""
    return (bits.double() * (count * 2.0**-32)).long() + low


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: _Device | None = None,
) -> Tensor:
    """The integers below ``n`` in random order; int64 where no dtype is given."""
    keys = _C.rand([n], dtype=_ext.float64, generator=generator, device=device)
    return keys.argsort().to(None, dtype or _ext.int64)


def bernoulli(
    input: Tensor, p: float | None = None, *, generator: Generator | None = None
) -> Tensor:
    """1 with the probability that each element gives, or everywhere ``p``, else 0, in its dtype."""
    if p is not None:
        return bernoulli_(_C.empty_like(input), p, generator=generator)
    drawn = _C.rand(list(input.shape), generator=generator, device=input.device)
    return (drawn < input.detach()).to(None, input.dtype)


def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Places drawn with the probability that stands there, up to a factor.

    Parameters
    ----------
    input : Tensor
        ``[places]`` or ``[rows, places]``, not negative; a row need not add up to 1.
    num_samples : int
        How many of each row.
    replacement : bool
        Whether a place can be drawn again.
    generator : Generator, optional
        Where the numbers come from.

    Returns
    -------
    Tensor
        int64 ``[num_samples]`` or ``[rows, num_samples]``.

    Raises
    ------
    ValueError
        Something negative, infinite or NaN; a row with too few places that are not 0. Looking for
        it waits for the device.
    """
    if input.ndim not in (1, 2):
        raise _ext.ShapeError(f"multinomial(): input has shape {list(input.shape)}, expected 1 or "
                              "2 dims")  # fmt: skip
    if num_samples < 1:
        raise ValueError(f"multinomial(): num_samples is {num_samples}, but it must be positive")
    weights = input.detach().double()
    needed = 1 if replacement else num_samples
    enough = (weights > 0).sum(-1) >= needed
    if not bool(((weights >= 0) & weights.isfinite()).all() & enough.all()):
        raise ValueError(f"multinomial(): input must be finite and not negative, with {needed} or "
                         "more places in each row that are not 0")  # fmt: skip
    options: dict[str, Any] = {"dtype": _ext.float64, "device": input.device}
    if not replacement:
        # The first of exponential times with these rates, and so on.
        times = -_C.log(1 - _C.rand(list(input.shape), generator=generator, **options))
        return _C.topk(_C.where(weights > 0, weights / times, -1.0), num_samples)[1]
    sums = weights.cumsum(-1)
    total = sums.narrow(-1, input.shape[-1] - 1, 1)
    drawn = _C.rand([*input.shape[:-1], num_samples], generator=generator, **options) * total
    places = (sums.unsqueeze(-2) <= drawn.unsqueeze(-1)).sum(-1)
    return _C.minimum(places, (sums < total).sum(-1, True))  # where drawn was rounded up to total


def randint_like(
    input: Tensor, low: int | None = None, high: int | None = None, **kwargs: Any
) -> Tensor:
    """Uniform integers in the shape, dtype and device of a tensor; see :func:`randint`."""
    if low is None and high is None:
        raise TypeError("randint_like() takes high, or low and high")
    low, high = (0, low) if high is None else (low or 0, high)
    kwargs.pop("memory_format", None)  # there is one
    options = {"dtype": input.dtype, "device": input.device} | kwargs
    return randint(low, high, list(input.shape), **options)


# Methods of Tensor: of the same dtype and device.


def new_empty(self: Tensor, size: Sequence[int], **kwargs: Any) -> Tensor:
    """Uninitialised memory, of this tensor's dtype and device where not given otherwise."""
    return _C.empty(size, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new(self: Tensor, *args: Any) -> Tensor:
    """Of this tensor's dtype and device: a size, uninitialised, or data; older programs call it."""
    if len(args) == 1 and not isinstance(args[0], int):
        return new_tensor(self, args[0])
    return new_empty(self, list(args) if args else [0])


def new_zeros(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Zeros, of this tensor's dtype and device where not given otherwise."""
    return _C.zeros(*size, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new_ones(self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Ones, of this tensor's dtype and device where not given otherwise."""
    return _C.ones(*size, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new_full(self: Tensor, size: Sequence[int], fill_value: float, **kwargs: Any) -> Tensor:
    """A number, of this tensor's dtype and device where not given otherwise."""
    return _C.full(size, fill_value, **{"dtype": self.dtype, "device": self.device} | kwargs)


def new_tensor(self: Tensor, data: Any, **kwargs: Any) -> Tensor:
    """A copy of the data, of this tensor's dtype and device where not given otherwise."""
    return _ext.tensor(data, **{"dtype": self.dtype, "device": self.device} | kwargs)


# In place.


def _wide(x: Tensor) -> dtype:
    """At least float32, so that the 16-bit floats are rounded once."""
    return _ext.float64 if x.dtype is _ext.float64 else _ext.float32


def uniform_(
    self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrites with uniform random numbers from ``[a, b)``."""
    drawn = _C.rand(list(self.shape), dtype=_wide(self), device=self.device, generator=generator)
    return self.copy_(drawn * (b - a) + a)


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Overwrites with normal random numbers."""
    if std < 0:
        raise ValueError(f"normal_(): std is {std}, but it must not be negative")
    drawn = _C.randn(list(self.shape), dtype=_wide(self), device=self.device, generator=generator)
    return self.copy_(drawn * std + mean)


_LIMITS = {"bool": 2, "uint8": 1 << 8, "int8": 1 << 7, "int16": 1 << 15, "float16": 1 << 11,
           "bfloat16": 1 << 8, "float32": 1 << 24}  # fmt: skip


def random_(
    self: Tensor,
    low: int | None = None,
    high: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Overwrites with integers: from ``low`` on below ``high``, or below the one number given.

    With none, of all (at most 2^31) that the dtype holds exactly.
    """
    if high is None:
        low, high = 0, _LIMITS.get(self.dtype.name, 1 << 31) if low is None else low
    count = _range("random_", low or 0, high)
    bits = _C.random_bits(list(self.shape), device=self.device, generator=generator)
    return self.copy_(_scaled(bits, low or 0, count))


def bernoulli_(
    self: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Overwrites with 1 with probability ``p``, one for all or a tensor that broadcasts, else 0."""
    if not isinstance(p, Tensor) and not 0 <= p <= 1:
        raise ValueError(f"bernoulli(): p is {p}, but it must be in [0, 1]")
    drawn = _C.rand(list(self.shape), device=self.device, generator=generator)
    return self.copy_(drawn < (p.detach() if isinstance(p, Tensor) else p))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Overwrites with random numbers of the density ``lambd exp(-lambd x)``, none of them 0."""
    if lambd <= 0:
        raise ValueError(f"exponential_(): lambd is {lambd}, but it must be positive")
    drawn = _C.rand(list(self.shape), dtype=_wide(self), device=self.device, generator=generator)
    # From 1 - u, which is in (0, 1]: what would be 0 becomes half the smallest other value.
    return self.copy_(_C.where(drawn == 0, 2.0**-25, -_C.log(1 - drawn)) / lambd)


def normal(
    mean: Tensor | float,
    std: Tensor | float = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    dtype: dtype | None = None,
    device: _Device | None = None,
) -> Tensor:
    """Normal random numbers of these means and deviations: one per element, or of a size."""
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if size is None and not tensors:
        raise TypeError("normal() takes a size where mean and std are numbers")
    if size is None:
        size = common_shape("normal", (t.shape for t in tensors))
    if not isinstance(std, Tensor) and std < 0:
        raise ValueError(f"normal(): std is {std}, but it must not be negative")
    kind = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {}
    kind |= {k: v for k, v in (("dtype", dtype), ("device", device)) if v is not None}
    return _C.randn(list(size), generator=generator, **kind) * std + mean


FUNCTIONS = (as_tensor, asarray, bernoulli, linspace, multinomial, normal, randint,
             randint_like, randperm)  # fmt: skip
METHODS = (bernoulli, multinomial, new, new_empty, new_zeros, new_ones, new_full, new_tensor,
           uniform_, normal_, random_, bernoulli_, exponential_)  # fmt: skip
