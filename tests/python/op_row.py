# SPDX-License-Identifier: Apache-2.0
"""What a row of op_table.py consists of."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numerics import FLOATS, INTEGERS, flow, tensor


def _normal(rng, shape, dtype):
    if dtype == "bool":
        return rng.integers(0, 2, shape)
    if dtype in INTEGERS:
        return rng.integers(0 if dtype == "uint8" else -9, 10, shape)
    return 2 * rng.standard_normal(shape)


def _distinct(rng, shape, dtype):
    """No two alike and none near 0, exact in every dtype: no tie at which a gradient jumps."""
    n = int(np.prod(shape, dtype=np.int64))
    order = rng.permutation(n) - (0 if dtype == "uint8" else n // 2)
    values = order / 4 + 1 / 8 if dtype in FLOATS else order
    return values.reshape(shape)


def _regular(rng, shape, dtype):
    """Matrices whose singular values are apart, and none near 0."""
    m, n = shape[-2:]
    largest = np.arange(1, max(m, n) + 1) * 1.5
    return 0.3 * rng.standard_normal(shape) + np.diag(largest)[:m, :n]


def _definite(rng, shape, dtype):
    x = _regular(rng, shape, dtype)
    return x + np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1])


# Where the elements of a tensor argument come from.
DOMAINS = {
    "normal": _normal,
    "distinct": _distinct,
    "positive": lambda rng, shape, dtype: (
        rng.uniform(0.5, 4, shape) if dtype in FLOATS else rng.integers(1, 9, shape)
    ),
    "few": lambda rng, shape, dtype: rng.integers(0, 2 if dtype == "bool" else 4, shape),
    "ordered": lambda rng, shape, dtype: np.sort(_normal(rng, shape, dtype), axis=-1),
    "probability": lambda rng, shape, dtype: rng.uniform(0.1, 1, shape),
    "regular": _regular,
    "definite": _definite,
    "inside": lambda rng, shape, dtype: rng.uniform(0.1, 0.9, shape),  # of 0 and 1
}


@dataclass(frozen=True)
class T:
    """A tensor argument. Without a dtype it has that of the row's run."""

    shape: tuple[int, ...]
    domain: str = "normal"
    dtype: str | None = None
    grad: bool = True  # whether a gradient flows to it

    def make(self, rng, dtype, device):
        dtype = self.dtype or dtype
        return tensor(DOMAINS[self.domain](rng, self.shape, dtype), dtype, device)


def ones(device, *shape, dtype="float32"):
    return flow.ones(shape, dtype=getattr(flow, dtype), device=device)


def labels(shape, classes):
    """int64 targets, as a plain array that becomes a tensor."""
    rng = np.random.default_rng(3)
    return np.array(rng.integers(0, classes, shape), np.int64)


class S:
    """A sample: the arguments of one call; T and arrays become tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def make(self, dtype: str, device: str) -> list[Any]:
        rng = np.random.default_rng(zlib.crc32(repr(self).encode()))
        made = []
        for a in self.args:
            if isinstance(a, T):
                a = a.make(rng, dtype, device)
            elif isinstance(a, np.ndarray):
                a = flow.tensor(a, device=device)
            made.append(a)
        return made

    def tensors(self) -> list[int]:
        """The places of the arguments that may require a gradient."""
        return [i for i, a in enumerate(self.args) if isinstance(a, T) and a.grad]

    def is_empty(self) -> bool:
        return any(isinstance(a, T | np.ndarray) and 0 in a.shape for a in self.args) or any(
            isinstance(a, Sequence) and not isinstance(a, str) and 0 in a for a in self.args
        )

    def __repr__(self) -> str:
        shown = [f"{k}={v}" for k, v in self.kwargs.items()]
        return f"({', '.join([*map(str, self.args), *shown])})"


@dataclass(frozen=True)
class Bad:
    """A call that must raise exactly this type with exactly this text; {device} is filled in."""

    call: Callable[[str], Any]  # takes the device
    error: type[BaseException]
    text: str


def same(*dtypes: str) -> str:
    return dtypes[0]


def floating(*dtypes: str) -> str:
    return dtypes[0] if dtypes[0] in FLOATS else "float32"


def summed(*dtypes: str) -> str:
    return dtypes[0] if dtypes[0] in FLOATS else "int64"


def truth(*dtypes: str) -> str:
    return "uint8" if dtypes[0] == "uint8" else "bool"


def always(name: str) -> Callable[..., str]:
    return lambda *dtypes: name


@dataclass(frozen=True)
class Op:
    """One function; ``name`` up to a bracket is its registered name."""

    name: str
    samples: list[S]
    # NumPy's answer on float64, int64 or bool arrays of the same values; a list of outputs.
    reference: Callable[..., Any]
    dtypes: tuple[str, ...] = FLOATS
    bound: str = "exact"  # a family of numerics.BOUNDS, or "exact"
    magnitude: Callable[..., Any] | None = None  # the sum of the terms' sizes, for sums
    result: Callable[..., str] | list[Callable[..., str]] = same  # the dtype of the output(s)
    call: Callable[..., Any] | None = None  # default: the function, or the method, of that name
    differentiable: bool = True
    twice: bool = True  # its gradient has a gradient
    layouts: bool = True  # takes any layout; False where strides are its meaning
    in_place: str | None = None  # the method that does the same into its first argument
    factory: bool = False  # makes tensors from no tensor: takes dtype= and device=
    errors: list[Bad] = field(default_factory=list)

    @property
    def function(self) -> str:
        return self.name.split("[")[0]

    def run(self, *args: Any, **kwargs: Any) -> list[Any]:
        """The outputs as a list."""
        if self.call is not None:
            result = self.call(*args, **kwargs)
        elif hasattr(flow._C, self.function):
            result = getattr(flow._C, self.function)(*args, **kwargs)
        else:
            result = getattr(args[0], self.function)(*args[1:], **kwargs)
        return [result] if isinstance(result, flow.Tensor) else list(result)
