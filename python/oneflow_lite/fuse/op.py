# SPDX-License-Identifier: Apache-2.0
"""The object that flow.fuse.softmax(...) and its like give."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import Tensor
from oneflow_lite.fuse import kernel
from oneflow_lite.fuse.bases import BASES, Options, checked
from oneflow_lite.fuse.compose import Values, as_number, check_operands, compose
from oneflow_lite.fuse.fusion import Fusion
from oneflow_lite.fuse.tracer import TraceError, trace

Elementwise = Callable[..., Any]


class FusedOp(Fusion):
    """A base op with what happens to each element as it is loaded and stored.

    Called with the input, then tensors or numbers for the other parameters of load and of store by
    place or by name, and the base op's own arguments by name. Tensors broadcast to the input.
    """

    def __init__(self, base: str, load: Elementwise | None, store: Elementwise | None) -> None:
        self.base = BASES[base]
        self.__name__ = f"fuse.{base}"
        self.load = self.store = None
        self.input, self._defaults = "x", dict[str, float | None]()
        if load is not None:
            self.load, parameters = trace(f"{self.__name__}(load=...)", load)
            self.input = next(iter(parameters))
            self._refuse_default(self.input, parameters[self.input])
            self._defaults = {k: v for k, v in parameters.items() if k != self.input}
        if store is not None:
            self.store, parameters = trace(f"{self.__name__}(store=...)", store)
            result, *others = parameters
            if result in (self.input, *self._defaults) and load is not None:
                raise TraceError(
                    f"{self.__name__}: {result} is the result in store and a parameter of load; "
                    "give one of them another name"
                )
            if load is None and result == self.input:
                self.input = "input"
            for name in (result, self.input):
                self._refuse_default(name, parameters.get(name))
            for name in others:
                known, default = self._defaults.get(name), parameters[name]
                if None not in (known, default) and known != default:
                    raise ValueError(
                        f"{self.__name__}: {name} is one parameter of load and store, with the "
                        f"defaults {known} and {default}"
                    )
                if name != self.input and known is None:
                    self._defaults[name] = default
        self._check_names()
        self.__signature__ = signature = self._signature()
        # What _bind needs: inspect's own binding takes longer than a launch.
        every = signature.parameters.values()
        self.__doc__ = self._doc()
        self._names = [p.name for p in every if p.kind is p.POSITIONAL_OR_KEYWORD]
        self._needed = {p.name for p in every if p.default is p.empty}
        self._known = {p.name: p.default for p in every}
        self.registered = {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"base": self.base.name, "registered": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.base = BASES[state["base"]]

    def _refuse_default(self, name: str, default: float | None) -> None:
        if default is not None:
            raise ValueError(
                f"{self.__name__}: {name} is an element and can have no default, {default} here"
            )

    def _check_names(self) -> None:
        taken = {self.input, *self._defaults} & set(self.base.defaults)
        if taken:
            raise TraceError(
                f"{self.__name__}: {', '.join(sorted(taken))} is an argument of "
                f"{self.base.name}; give the parameter another name"
            )

    def _signature(self) -> inspect.Signature:
        p, empty = inspect.Parameter, inspect.Parameter.empty
        by_place = [p(self.input, p.POSITIONAL_OR_KEYWORD)]
        needed = [n for n, default in self._defaults.items() if default is None]
        given = {n: default for n, default in self._defaults.items() if default is not None}
        by_place += [p(n, p.POSITIONAL_OR_KEYWORD) for n in needed]
        by_place += [p(n, p.POSITIONAL_OR_KEYWORD, default=v) for n, v in given.items()]
        own = [
            p(n, p.KEYWORD_ONLY, default=empty if n in self.base.required else v)
            for n, v in self.base.defaults.items()
        ]
        return inspect.Signature(by_place + own)

    def _doc(self) -> str:
        """What help() shows of this op."""
        parts = {"load": self.load, "store": self.store}
        fused = "; ".join(f"{name} = {graph}" for name, graph in parts.items() if graph)
        others = ", ".join(self._defaults)
        about = f"{others}: numbers, or tensors that broadcast to {self.input}.\n" if others else ""
        return (f"{self.__name__}{self.__signature__}\n\n{self.base.name} of {self.input}, "
                f"with {fused or 'nothing fused'}.\n{about}"
                f"The result has the shape and dtype of {self.input}.")  # fmt: skip

    def __repr__(self) -> str:
        parts = [f"{self.__name__}{self.__signature__}"]
        parts += [f"load = {self.load}"] if self.load else []
        parts += [f"store = {self.store}"] if self.store else []
        return f"<{', '.join(parts)}>"

    def _complaint(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        try:
            self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            unknown = [name for name in kwargs if name not in self._known]
            if not unknown:
                return str(error)
            near = difflib.get_close_matches(unknown[0], self._known, 1, 0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            return f"got an unexpected keyword argument {unknown[0]!r}{hint}"
        return "wrong arguments"

    def _bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tensor, Values, Options]:
        given = dict(zip(self._names, args, strict=False))
        wanted = len(args) + len(kwargs)
        given.update(kwargs)
        if len(given) != wanted or not (self._needed <= given.keys() <= self._known.keys()):
            raise TypeError(f"{self.__name__}(): {self._complaint(args, kwargs)}; it is {self!r}")
        given = {**self._known, **given}
        own = {name: given.pop(name) for name in self.base.defaults}
        options = checked(self.__name__, self.base, own)
        values: Values = {}
        for name, value in given.items():
            if not isinstance(value, Tensor):
                try:
                    number = as_number(value)
                except OverflowError:
                    raise OverflowError(f"{self.__name__}(): {name} is beyond a float") from None
                if number is None or name == self.input:
                    raise TypeError(
                        f"{self.__name__}(): {name} must be a tensor"
                        f"{'' if name == self.input else ' or a number'}, "
                        f"not {type(value).__name__}"
                    )
                value = number
            values[name] = value
        x = values[self.input]
        assert isinstance(x, Tensor)
        if self.is_norm and options["eps"] is None:  # as functional::RmsNorm takes it, of x's dtype
            options["eps"] = 2.0**-52 if x.dtype is _ext.float64 else 2.0**-23
        return x, values, options

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        x, values, options = self._bind(args, kwargs)
        if not x.dtype.is_floating_point:
            raise _ext.DTypeError(
                f"{self.__name__}(): {self.input} must be float16, bfloat16, float32 or float64, "
                f"not {str(x.dtype).removeprefix('oneflow_lite.')}"
            )
        check_operands(f"{self.__name__}()", x, values)
        if x.device.type == "cuda" and kernel.can_serve(self, x, values, options):
            return kernel.run(self, x, values, options)
        return compose(self.base, self.load, self.store, x, values, options)
