# SPDX-License-Identifier: Apache-2.0
"""What is checked: an op or a function of ops (Subject), and its sample calls (Call)."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._oneflow_lite import _C, DTypeError, Tensor, device, dtype
from oneflow_lite._op_names import unknown
from oneflow_lite.nn.module import Module
from oneflow_lite.op_check.values import tensor_text


@dataclass(frozen=True)
class _Slot:
    """Stands for tensor ``index`` of a call."""

    index: int


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors of an argument or a result: of lists, tuples and dicts, however they nest."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        yield from itertools.chain.from_iterable(map(tensors_in, value))
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(tensors_in, value.values()))


def _strangers(value: Any) -> Iterator[Any]:
    """What is no tensor in a result."""
    if isinstance(value, (list, tuple)):
        yield from itertools.chain.from_iterable(map(_strangers, value))
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(_strangers, value.values()))
    elif not isinstance(value, Tensor):
        yield value


def _take(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, Tensor):
        tensors.append(value.detach())
        return _Slot(len(tensors) - 1)
    if isinstance(value, (list, tuple)) and any(True for _ in tensors_in(value)):
        return [_take(v, tensors) for v in value]
    if isinstance(value, dict):
        return {key: _take(v, tensors) for key, v in value.items()}
    return value


def _put(value: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(value, _Slot):
        return tensors[value.index]
    if isinstance(value, list):
        return [_put(v, tensors) for v in value]
    if isinstance(value, dict):
        return {key: _put(v, tensors) for key, v in value.items()}
    return value


class Call:
    """The arguments of one call: its tensors in one list, all else as it is."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.tensors: list[Tensor] = []
        self._args = [_take(a, self.tensors) for a in args]
        self._kwargs = {k: _take(a, self.tensors) for k, a in kwargs.items()}

    def arguments(self, tensors: Sequence[Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        tensors = self.tensors if tensors is None else tensors
        args = [_put(a, tensors) for a in self._args]
        return args, {k: _put(a, tensors) for k, a in self._kwargs.items()}

    def replaced(self, tensors: Sequence[Tensor]) -> Call:
        """The same call of other tensors."""
        args, kwargs = self.arguments(tensors)
        return Call(args, kwargs)

    def with_argument(self, place: int, value: Any) -> Call:
        args, kwargs = self.arguments()
        args[place] = value
        return Call(args, kwargs)

    @property
    def kinds(self) -> list[dtype]:
        return [t.dtype for t in self.tensors]

    def with_kinds(self, kinds: Sequence[dtype]) -> Call:
        """The tensors in other dtypes, none negative where it is unsigned."""
        return self.replaced([_convert(t, k) for t, k in zip(self.tensors, kinds, strict=True)])

    @property
    def main(self) -> dtype | None:
        """The dtype that a sweep changes: the first floating one, else the first tensor's."""
        floating = [k for k in self.kinds if k.is_floating_point]
        return next(iter(floating or self.kinds), None)

    def kinds_for(self, target: dtype) -> list[list[dtype]]:
        """Ways to put the call into a dtype: all of the main one; some in the compute type."""
        ways = [[target if k is self.main else k for k in self.kinds]]
        places = [i for i, k in enumerate(self.kinds) if k.is_floating_point]
        if not (target.is_floating_point and 0 < len(places) <= 8):
            return ways
        compute = _ext.float64 if target is _ext.float64 else _ext.float32
        mixtures = sorted(itertools.product((target, compute), repeat=len(places)),
                          key=lambda m: -m.count(target))  # fmt: skip
        for mixture in mixtures:
            way = self.kinds
            for i, kind in zip(places, mixture, strict=True):
                way[i] = kind
            ways += [way] if target in mixture and way not in ways else []
        return ways

    def is_empty(self) -> bool:
        return any(t.numel() == 0 for t in self.tensors)

    def __str__(self) -> str:
        args, kwargs = self.arguments([_Shown(t) for t in self.tensors])
        shown = [str(a) for a in args] + [f"{k}={a}" for k, a in kwargs.items()]
        return f"({', '.join(shown)})"


class _Shown:
    def __init__(self, t: Tensor) -> None:
        self._text = tensor_text(t)

    def __repr__(self) -> str:
        return self._text


def _convert(t: Tensor, target: dtype) -> Tensor:
    if t.dtype is target:
        return t
    if target in (_ext.uint8, _ext.bool) and t.dtype is not _ext.bool:
        t = _ext.from_numpy(np.array(np.abs(t.cpu().double().numpy()))).to(t.device)
    return t.to(target)


class Subject:
    """An op, known by its definition (``info``), or a function, known by nothing."""

    def __init__(self, op: Any, samples: Sequence[Any], what: str = "check_op(): sample") -> None:
        """``what`` a sample is called in errors."""
        self.info: dict[str, Any] | None = None
        if isinstance(op, str):
            if op not in _ext.list_ops():
                raise NotImplementedError(f"check_op(): {unknown(op)}")
            op = _ext.op_function(op)
        if type(op) is _OpFunction:
            self.info = _ext.op_info(op.__name__)
        elif not callable(op):
            raise TypeError(f"check_op(): op must be a name or a function, not {op!r}")
        self.function: Callable[..., Any] = op
        self.name: str = getattr(op, "__name__", type(op).__name__)
        self._what = what
        self._copies: dict[str, Module] = {}  # of a module, by the device
        self._last: tuple[Call, Sequence[Tensor]] | None = None
        # Copies: an op that is wrong may write into what it is given.
        self.calls = [call.replaced([t.clone() for t in call.tensors])
                      for call in map(self._call, samples)]  # fmt: skip

    def _call(self, sample: Any) -> Call:
        """A tensor; a tuple of arguments, maybe ended by a dict of keywords; or that dict."""
        args: list[Any] = [*sample] if isinstance(sample, (list, tuple)) else [sample]
        kwargs = dict(args.pop()) if args and isinstance(args[-1], dict) else {}
        if self.info is None:
            return Call(args, kwargs)
        names = [name for name, _ in self.info["inputs"] + self.info["attrs"]]
        if len(args) > len(names) or set(kwargs) - set(names[len(args) :]):
            raise TypeError(f"{self._what} {Call(args, kwargs)} does not go with {self.schema}")
        parameters = inspect.signature(self.function).parameters
        for name in names[len(args) :]:
            value = kwargs.get(name, parameters[name].default)
            if value is inspect.Parameter.empty:
                raise TypeError(
                    f"{self._what} {Call(args, kwargs)} lacks {name!r} of {self.schema}"
                )
            args.append(value)
        return Call(args, {})

    @property
    def schema(self) -> str:
        return self.info["schema"] if self.info else self.name

    def kind(self, kind: str) -> bool:
        """Whether the first input is "mutated" or "viewed"."""
        inputs = self.info["inputs"] if self.info else []
        return bool(inputs) and inputs[0][1] == kind

    def input_name(self, i: int) -> str:
        inputs = self.info["inputs"] if self.info else []
        return inputs[min(i, len(inputs) - 1)][0] if inputs else f"tensor {i}"

    def run(self, call: Call, tensors: Sequence[Tensor] | None = None) -> list[Tensor]:
        """The outputs for copies of what the op may write into.

        Where autograd records that is only what the schema marks: a recorded copy would come
        between the op and its gradient.
        """
        tensors = list(call.tensors if tensors is None else tensors)
        copied = 1 if self.kind("mutated") else 0
        if not _ext.is_grad_enabled():
            copied = len(tensors)
        return self.run_as_is(call, [t.clone() for t in tensors[:copied]] + tensors[copied:])

    def run_as_is(self, call: Call, tensors: Sequence[Tensor]) -> list[Tensor]:
        self._last = call, tensors
        args, kwargs = call.arguments(tensors)
        result = self._function_for(tensors)(*args, **kwargs)
        for y in _strangers(result):
            raise TypeError(f"{self.name} gave {type(y).__name__}, but must give tensors")
        return [*tensors_in(result)]

    def _function_for(self, tensors: Sequence[Tensor]) -> Callable[..., Any]:
        """The op; of a module whose tensors are elsewhere, a copy beside the call's."""
        if not isinstance(self.function, Module) or not tensors:
            return self.function
        where = tensors[0].device
        own = itertools.chain(self.function.parameters(), self.function.buffers())
        if all(t.device == where for t in own):
            return self.function
        if str(where) not in self._copies:
            self._copies[str(where)] = copy.deepcopy(self.function).to(where)
        return self._copies[str(where)]

    @property
    def last(self) -> str:
        """The call that was run last, in words."""
        if self._last is None:
            return "none"
        call, tensors = self._last
        strided = [t for t in tensors if not t.is_contiguous()]
        strides = f", of strides {[list(t.stride()) for t in strided]}" if strided else ""
        return f"{self.name}{call.replaced(tensors)}{strides}"

    def infer(self, call: Call) -> list[tuple[tuple[int, ...], dtype]]:
        """Shapes and dtypes of the outputs without a run."""
        if self.info:
            return _ext.op_infer(self.name, call.arguments()[0])
        there = [t.to("meta") for t in call.tensors]
        return [(tuple(y.shape), y.dtype) for y in self.run_as_is(call, there)]

    def on(self, call: Call, where: str) -> Call:
        """The call with its tensors, and the attribute that names a device, on a device."""
        call = call.replaced([t.to(where) for t in call.tensors])
        for place in self._attributes("Device"):
            call = call.with_argument(place, device(where))
        return call

    def in_dtype(self, call: Call, target: dtype) -> Call | None:
        """The call in another dtype, by its tensors or, where there are none, its attribute.

        None where infer refuses it.
        """
        variants = (call.with_kinds(kinds) for kinds in call.kinds_for(target))
        if not call.tensors:
            for place in self._attributes("dtype"):
                call = call.with_argument(place, target)
            variants = iter([call])
        return next(filter(self._takes, variants), None)

    def _takes(self, call: Call) -> bool:
        """Whether infer, or a run of a function, has nothing against the dtypes."""
        try:
            self.infer(call) if self.info else self.run(call)
        except (DTypeError, NotImplementedError):
            return False
        return True

    def resized(self, call: Call, new: Callable[[int], int]) -> Iterator[Call]:
        """Calls with one size made another, on meta, where infer allows them."""
        shapes = {place: call.arguments()[0][place] for place in self._shape_attributes()}
        sizes = {n for shape in [*(t.shape for t in call.tensors), *shapes.values()] for n in shape}
        for size in sorted(sizes - {0}):

            def change(shape: Sequence[int], old: int = size) -> list[int]:
                return [new(n) if n == old else n for n in shape]

            variant = call.replaced([_C.empty(change(t.shape), dtype=t.dtype, device="meta")
                                     for t in call.tensors])  # fmt: skip
            for place, shape in shapes.items():
                variant = variant.with_argument(place, change(shape))
            try:
                self.infer(variant)
            except (IndexError, RuntimeError, TypeError, ValueError):
                continue
            yield variant

    def _attributes(self, kind: str) -> list[int]:
        """Their places among the arguments."""
        if not self.info:
            return []
        first = len(self.info["inputs"])
        return [first + i for i, (_, k) in enumerate(self.info["attrs"]) if k == kind]

    def _shape_attributes(self) -> list[int]:
        """Lists of ints that speak of sizes, as their names say."""
        first = len(self.info["inputs"]) if self.info else 0
        return [i for i in self._attributes("int[]")
                if self.info["attrs"][i - first][0].endswith("shape")]  # fmt: skip

    def kernel_dtypes(self, where: str) -> list[dtype]:
        """What is worth trying: all floats for a function, all dtypes for a view."""
        if self.info is None:
            return [_ext.float16, _ext.bfloat16, _ext.float32, _ext.float64]
        if self.kind("viewed"):
            return ALL_DTYPES
        return [t for k in self.info["kernels"] if k["device"] in (None, where)
                for t in k["dtypes"]]  # fmt: skip

    def dtypes(self, where: str) -> list[dtype]:
        """Those of the kernels that infer takes with the first sample."""
        kinds = self.kernel_dtypes(where)
        return [k for k in kinds if self.in_dtype(self.calls[0], k) is not None]

    def widened(self, call: Call, where: str) -> Call:
        """The call in float64, or as near to it as there is a kernel; integers stay."""
        if call.main is None or not call.main.is_floating_point:
            return call
        floating = [k for k in self.kernel_dtypes(where) if k.is_floating_point]
        variants = (self.in_dtype(call, k) for k in sorted(floating, key=lambda k: -k.itemsize))
        return next((v for v in variants if v is not None), call)

    @functools.cached_property
    def ops(self) -> list[tuple[Subject, Call]]:
        """The calls of ops that the samples come to: a function's are recorded."""
        if self.info:
            return [(self, call) for call in self.calls]
        found = []
        for call in self.calls:
            tensors = [t.clone() for t in call.tensors]
            run = functools.partial(self.run_as_is, call, tensors)
            for name, arguments in _ext.record_ops(run):
                op = Subject(name, [arguments])
                # On meta a Python op without infer has its shapes worked out.
                if not any(t.device.type == "meta" for t in op.calls[0].tensors):
                    found.append((op, op.calls[0]))
        return found


def widest(kinds: Sequence[dtype], floating: bool) -> dtype | None:
    same = [k for k in kinds if k.is_floating_point == floating and k is not _ext.bool]
    return max(same, key=lambda k: k.itemsize, default=None)


ALL_DTYPES = [_ext.bool, _ext.uint8, _ext.int8, _ext.int16, _ext.int32, _ext.int64, _ext.float16,
              _ext.bfloat16, _ext.float32, _ext.float64]  # fmt: skip
_OpFunction = type(_ext.op_function("softmax"))
