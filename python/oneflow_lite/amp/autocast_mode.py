# SPDX-License-Identifier: Apache-2.0
"""autocast: the dtype that each op computes in, chosen by the op."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import bfloat16, device, dtype, float16
from oneflow_lite._warnings import warn

_Function = TypeVar("_Function", bound=Callable[..., object])
_DEFAULTS = {"cpu": bfloat16, "cuda": float16}


def _type_of(device_type: str | device, name: str = "autocast") -> str:
    if isinstance(device_type, device):
        return device_type.type
    if not isinstance(device_type, str):
        raise TypeError(f'{name}(): device_type must be "cpu" or "cuda", not '
                        f"{type(device_type).__name__}")  # fmt: skip
    if device_type not in _DEFAULTS:
        raise ValueError(f"{name}(): device_type is {device_type!r}, but it must be one of "
                         f"{', '.join(map(repr, _DEFAULTS))}")  # fmt: skip
    return device_type


class autocast:
    """A context, or a decorator, in which each op chooses the dtype it computes in.

    Products of matrices (``matmul``, ``linear``, ``bmm``, attention) take floating inputs in
    ``dtype``. What grows fast or adds up (``exp``, ``log``, ``pow``, sums, losses) gives float32.
    Softmax and the norms compute in float32 inside and keep the dtype of their input. float64 is
    left as it is. ``flow.ops.describe`` says what an op does.

    Gradients have the dtypes of their forward: ``backward()`` may be called inside or outside.
    Contexts nest, and each thread has its own.

    Parameters
    ----------
    device_type : str
        "cpu" or "cuda": whose tensors are meant.
    dtype : dtype, optional
        bfloat16 or float16; by default bfloat16 on the CPU and float16 on CUDA. With any other
        there is a warning, and nothing is cast.
    enabled : bool
        False: nothing is cast, within another autocast too.
    cache_enabled : bool, optional
        Whether a leaf that requires grad is cast once and not in each op; by default as outside,
        True at first. The casts are dropped at the end of the outermost context, when the leaf
        changes, and where a CUDA graph's capture begins and ends.
    compat : str, optional
        "torch" gives the dtypes that PyTorch gives: on CUDA softmax and the norms are float32.

    Raises
    ------
    TypeError, ValueError
        Where an argument is of no use.

    Examples
    --------
    >>> with flow.autocast("cpu", flow.bfloat16):
    ...     y = model(x)
    >>> @flow.autocast("cuda")
    ... def forward(x): ...
    """

    def __init__(
        self,
        device_type: str | device,
        dtype: dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
        *,
        compat: str | None = None,
    ) -> None:
        self.device = _type_of(device_type)
        self.fast_dtype = _DEFAULTS[self.device] if dtype is None else dtype
        if not isinstance(self.fast_dtype, _ext.dtype):
            raise TypeError("autocast(): dtype must be a dtype, not "
                            f"{type(dtype).__name__}")  # fmt: skip
        if compat not in (None, "torch"):
            raise ValueError(f'autocast(): compat is {compat!r}, but it must be "torch" or None')
        self._enabled = bool(enabled)
        if self._enabled and self.fast_dtype not in (bfloat16, float16):
            warn(f"autocast(): dtype is {self.fast_dtype}, but only bfloat16 and float16 can be "
                 "cast to: nothing is cast")  # fmt: skip
            self._enabled = False
        self._cache, self._torch = cache_enabled, compat == "torch"

    def __enter__(self) -> autocast:
        usable = self.fast_dtype if self.fast_dtype in (bfloat16, float16) else bfloat16
        cache = _ext.current_autocast(self.device)[2] if self._cache is None else self._cache
        _ext.push_autocast(self.device, self._enabled, usable, bool(cache), self._torch)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ext.pop_autocast()

    def __call__(self, function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether ops on tensors of that type of device are cast on this thread now."""
    return bool(_ext.current_autocast(_type_of(device_type, "is_autocast_enabled"))[0])


def get_autocast_dtype(device_type: str) -> dtype:
    """What products of matrices compute in under autocast; the default where it is off."""
    place = _type_of(device_type, "get_autocast_dtype")
    enabled, kind, _, _ = _ext.current_autocast(place)
    return kind if enabled else _DEFAULTS[place]


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a type of device: for "cpu" and "cuda"."""
    return device_type in _DEFAULTS


def in_force() -> list[tuple[str, Any]]:
    """What :func:`again` needs to put the autocast of now in force later."""
    return [(kind, _ext.current_autocast(kind)) for kind in _DEFAULTS]


class again:
    """A context with what was in force when :func:`in_force` was called, on any thread."""

    def __init__(self, modes: list[tuple[str, Any]]) -> None:
        self._modes = modes

    def __enter__(self) -> None:
        for kind, options in self._modes:
            _ext.push_autocast(kind, *options)

    def __exit__(self, *error: object) -> None:
        for _ in self._modes:
            _ext.pop_autocast()


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str = "cuda",
    cast_inputs: dtype | None = None,
) -> Callable[..., Any]:
    """Decorates ``forward`` of an ``autograd.Function`` that is to run under autocast.

    With ``cast_inputs``, floating tensors of the device are cast to it and autocast is off inside;
    without, ``forward`` runs as it was called. :func:`custom_bwd` decorates ``backward``.
    """
    kind = _type_of(device_type)

    def decorate(forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def wrapped(ctx: Any, *args: Any, **kwargs: Any) -> Any:
            ctx._autocast = in_force()
            if cast_inputs is None or not is_autocast_enabled(kind):
                return forward(ctx, *args, **kwargs)
            args, kwargs = _cast((args, kwargs), kind, cast_inputs)
            ctx._autocast = [(kind, (False, bfloat16, True, False))]
            with again(ctx._autocast):
                return forward(ctx, *args, **kwargs)

        return wrapped

    return decorate if fwd is None else decorate(fwd)


def custom_bwd(
    bwd: Callable[..., Any] | None = None, *, device_type: str = "cuda"
) -> Callable[..., Any]:
    """Decorates ``backward`` of an ``autograd.Function``: it runs as ``forward`` did."""
    _type_of(device_type)

    def decorate(backward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(backward)
        def wrapped(ctx: Any, *grads: Any) -> Any:
            with again(ctx._autocast):
                return backward(ctx, *grads)

        return wrapped

    return decorate if bwd is None else decorate(bwd)


def _cast(value: Any, kind: str, to: dtype) -> Any:
    """The floating tensors in it, but float64, in a dtype."""
    if isinstance(value, _ext.Tensor):
        fits = value.is_floating_point() and value.dtype is not _ext.float64
        return value.to(None, to) if fits and value.device.type == kind else value
    if isinstance(value, dict):
        return {key: _cast(item, kind, to) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_cast(item, kind, to) for item in value)
    return value
