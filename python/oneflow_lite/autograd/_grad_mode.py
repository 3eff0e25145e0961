# SPDX-License-Identifier: Apache-2.0
"""Whether autograd records: ``no_grad``, ``enable_grad``, ``set_grad_enabled``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from oneflow_lite import _oneflow_lite as _ext

_Function = TypeVar("_Function", bound=Callable[..., object])


class _GradMode:
    """A context manager, re-entrant, and a decorator that enters a context of its own per call."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._previous: list[bool] = []

    def __enter__(self) -> None:
        self._previous.append(_ext.is_grad_enabled())
        _ext.set_grad_enabled(self._mode)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _ext.set_grad_enabled(self._previous.pop())

    def __call__(self, function: _Function) -> _Function:
        if not callable(function):
            raise TypeError(f"{type(self).__name__}(): a function can be decorated, not "
                            f"{type(function).__name__}; to enter a block, write with "
                            f"{type(self).__name__}():")  # fmt: skip
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with _GradMode(self._mode):
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _wrap_generator(self, function: Any) -> Any:
        """Its mode holds while the generator runs, not between: the caller keeps its own."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            resume = functools.partial(next, generator)
            while True:
                try:
                    with _GradMode(self._mode):
                        value = resume()
                except StopIteration as end:
                    return end.value
                try:
                    given = yield value
                    resume = functools.partial(generator.send, given)
                except GeneratorExit:
                    with _GradMode(self._mode):
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)

        return wrapped


class no_grad(_GradMode):
    """Nothing is recorded for backward; on this thread, until the context is left.

    Examples
    --------
    >>> with flow.no_grad():
    ...     y = model(x)
    >>> @flow.no_grad()
    ... def predict(x):
    ...     return model(x).argmax(1)
    """

    def __new__(cls, function: Callable | None = None):  # also plain @no_grad
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(False)


class inference_mode(_GradMode):
    """The same as :class:`no_grad`; with ``mode=False`` as :class:`enable_grad`."""

    def __new__(cls, mode: bool | Callable = True):
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__(not mode)


class enable_grad(_GradMode):
    """Autograd records, also inside of ``no_grad``; used like it."""

    def __new__(cls, function: Callable | None = None):
        return super().__new__(cls) if function is None else cls()(function)

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Switches recording at once: for good as a plain call, else until the context is left.

    Parameters
    ----------
    mode : bool
        Whether autograd records from now on, on this thread.
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before = _ext.is_grad_enabled()
        _ext.set_grad_enabled(self._mode)

    def __enter__(self) -> None:
        self._previous.append(self._before)
        _ext.set_grad_enabled(self._mode)

    def __call__(self, function: _Function) -> _Function:
        _ext.set_grad_enabled(self._before)  # a decorator is no switch
        return super().__call__(function)
