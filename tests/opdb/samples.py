# SPDX-License-Identifier: Apache-2.0
"""A sample of op_db, run through torch and through oneflow_lite, and how the results differ."""

from __future__ import annotations

import dataclasses
import functools
import random as python_random
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import oneflow_lite as flow

# |ours - torch's| <= bound * (1 + |torch's|), of values and of gradients.
BOUND = {
    "float16": (4e-3, 1.6e-2), "bfloat16": (3e-2, 8e-2), "float32": (2e-5, 1e-4),
    "float64": (1e-9, 1e-7),
}  # fmt: skip


class Complex(Exception):
    """The sample asks for complex numbers, which there are not."""


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def find(info: Any) -> Callable[..., Any] | None:
    """oneflow_lite's function of the name; what the sample calls where that is more than a name."""
    found: Any = flow
    for part in info.name.split("."):
        found = getattr(found, part, None)
    if found is None:
        found = getattr(flow.Tensor, info.name, None) or getattr(flow.Tensor, info.name + "_", None)
    if found is None:
        return None
    here = getattr(info.op, "__module__", None) or ""
    if isinstance(info.op, types.FunctionType) and here.startswith("torch.testing"):
        return with_flow(info.op)
    if isinstance(info.op, functools.partial):
        return functools.partial(found, *info.op.args, **info.op.keywords)
    return found


def with_flow(function: types.FunctionType) -> Callable[..., Any]:
    """A lambda of op_db, in which `torch` and the tensors of its arguments are oneflow_lite's."""
    names = {**function.__globals__, "torch": flow, "F": flow.nn.functional}
    code, defaults = function.__code__, function.__defaults__
    made = types.FunctionType(code, names, function.__name__, defaults, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def ours(value: Any, seen: dict[int, Any]) -> Any:
    """The argument as oneflow_lite takes it; tensors through NumPy, one of each."""
    if isinstance(value, torch.Tensor):
        if id(value) not in seen:
            seen[id(value)] = (value, tensor_of(value))
        return seen[id(value)][1]
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        parts = [ours(v, seen) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {k: ours(v, seen) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(ours(value.start, seen), ours(value.stop, seen), ours(value.step, seen))
    if isinstance(value, complex):
        raise Complex
    if isinstance(value, torch.dtype):
        if value.is_complex:
            raise Complex
        return getattr(flow, name_of(value))
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, (torch.memory_format, torch.layout)):
        return getattr(flow, str(value).removeprefix("torch."))
    if isinstance(value, torch.nn.Module):
        return getattr(flow.nn, type(value).__name__)()
    if isinstance(value, types.FunctionType):
        here = value.__module__ or ""
        if here.startswith("torch.nn.functional"):
            return getattr(flow.nn.functional, value.__name__)
        return with_flow(value)
    return value


def tensor_of(value: torch.Tensor) -> Any:
    if value.is_complex():
        raise Complex
    data, narrow = value.detach().resolve_neg(), value.dtype is torch.bfloat16
    array = np.array((data.float() if narrow else data).contiguous().numpy())
    x = flow.from_numpy(array)
    x = x.to(flow.bfloat16) if narrow else x
    return x.requires_grad_() if value.requires_grad else x


@dataclasses.dataclass
class Case:
    info: Any
    function: Callable[..., Any]
    sample: Any
    expected: Any  # what torch gives
    text: str
    wide: bool = False  # whether the floats of the sample were cast to float64


def theirs(info: Any, sample: Any) -> Any:
    """What torch gives; of a matrix that is to be symmetric or triangular, of it made so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if wrapped(info):
            return info.gradcheck_wrapper(info.op, sample.input, *sample.args, **sample.kwargs)
        return info.op(sample.input, *sample.args, **sample.kwargs)


def wrapped(info: Any) -> bool:
    name = getattr(info.gradcheck_wrapper, "__name__", "")
    return name.startswith(("gradcheck_wrapper_hermitian", "gradcheck_wrapper_triangular"))


def cases(info: Any, dtype: torch.dtype, limit: int | None = None) -> Iterator[Case]:
    """The samples that torch accepts."""
    if dtype not in info.supported_dtypes("cpu"):
        return
    function = find(info)
    if wrapped(info):
        function = functools.partial(with_flow(info.gradcheck_wrapper), function)
    grad = info.supports_autograd and dtype in info.supported_backward_dtypes("cpu")
    torch.manual_seed(0)
    np.random.seed(0)
    python_random.seed(0)
    for i, sample in enumerate(info.sample_inputs("cpu", dtype, requires_grad=grad)):
        if limit is not None and i >= limit:
            return
        try:
            given = copied(sample)
            expected = theirs(info, given)
        except Exception:  # torch does not take it
            continue
        yield Case(info, function, given, expected, shown(sample))


def copied(sample: Any, wide: bool = False) -> Any:
    """The sample with tensors of its own, leaves, for some functions write to them."""

    def copy(t: torch.Tensor) -> torch.Tensor:
        t = t.detach().clone()
        return t.double() if wide and t.is_floating_point() else t

    seen: dict[int, torch.Tensor] = {}

    def one(v: Any) -> Any:
        if not isinstance(v, torch.Tensor):
            return v
        if id(v) not in seen:
            seen[id(v)] = copy(v).requires_grad_(v.requires_grad)
        return seen[id(v)]

    return sample.transform(one)


def in_float64(case: Case) -> Case | None:
    """The case with all floats as float64: what rounding in between is measured against."""
    sample = copied(case.sample, wide=True)
    named = [*sample.args, *sample.kwargs.values()]
    if any(isinstance(v, torch.dtype) for v in named):
        return None
    try:
        expected = theirs(case.info, sample)
    except Exception:
        return None
    return Case(case.info, case.function, sample, expected, case.text, wide=True)


def shown(sample: Any) -> str:
    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{name_of(value.dtype)}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(one, value)) + "]"
        return repr(value)

    parts = [one(sample.input), *map(one, sample.args)]
    return ", ".join(parts + [f"{k}={one(v)}" for k, v in sample.kwargs.items()])


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, dict):
        value = list(value.values())
    return [t for t in leaves(value) if isinstance(t, torch.Tensor)]


def differences_of(case: Case, random: bool) -> list[tuple[str, str]]:
    """(kind, what) of each difference; of random functions dtypes and shapes alone are compared.

    A value or gradient that is not torch's may be nearer to that in float64: then it is right.
    """
    seen: dict[int, Any] = {}
    sample = case.sample
    try:
        arguments = [ours(sample.input, seen), *ours(tuple(sample.args), seen)]
        keywords = ours(sample.kwargs, seen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = case.function(*arguments, **keywords)
    except Complex:
        return []
    except Exception as e:
        return [("refused", f"({case.text}): {type(e).__name__}: {str(e).splitlines()[:1]}")]
    if any(t.is_complex() for t in tensors_of(case.expected)):
        return []
    found = compared(case, actual, seen, random)
    if found and all(kind in ("value", "gradient") for kind, _ in found):
        wide = in_float64(case)
        if wide is not None:
            given = tensors_of([case.sample.input, *case.sample.args, case.sample.kwargs])
            again = tensors_of([wide.sample.input, *wide.sample.args, wide.sample.kwargs])
            pairs = {id(b): (b, seen[id(a)][1]) for a, b in zip(given, again, strict=True)
                     if id(a) in seen}  # fmt: skip
            found = found if compared(wide, actual, pairs, random) else []
    return [(kind, f"({case.text}): {what}") for kind, what in found]


def compared(case: Case, actual: Any, seen: dict, random: bool) -> list[tuple[str, str]]:
    theirs, mine = leaves(case.expected), leaves(actual)
    if len(theirs) != len(mine):
        return [("structure", f"{len(mine)} results, torch has {len(theirs)}")]
    found = []
    for i, (a, b) in enumerate(zip(theirs, mine, strict=True)):
        one = one_compared(a, b, 0, random, case.wide)
        found += [(kind, f"result {i}: {what}") for kind, what in one]
    if found and all(kind == "value" for kind, _ in found):
        found = found if processed_differ(case, actual) else []
    return found if found or random else gradients_compared(case, actual, seen)


def processed_differ(case: Case, actual: Any) -> bool:
    """Whether what the sample makes of the results differs: of vectors with a free sign, sizes."""
    process = case.sample.output_process_fn_grad
    if not isinstance(process, types.FunctionType):
        return True
    theirs, mine = process(case.expected), with_flow(process)(actual)
    if theirs is case.expected:
        return True
    pairs = zip(leaves(theirs), leaves(mine), strict=True)
    return any(one_compared(a, b, 0, wide=case.wide) for a, b in pairs)


def one_compared(
    a: Any, b: Any, which: int, random: bool = False, wide: bool = False
) -> list[tuple[str, str]]:
    if not isinstance(a, torch.Tensor):
        if isinstance(b, flow.Tensor):
            return [("structure", "a tensor, torch has none")]
        same = (a == b or (a != a and b != b)) if isinstance(a, (bool, int, float)) else True
        return [] if same else [("value", f"{b}, torch has {a}")]
    if not isinstance(b, flow.Tensor):
        return [("structure", f"{type(b).__name__}, torch has a tensor")]
    if b.dtype.name != name_of(a.dtype) and not (wide and a.dtype is torch.float64):
        return [("dtype", f"{b.dtype.name}, torch has {name_of(a.dtype)}")]
    if tuple(b.shape) != tuple(a.shape):
        return [("shape", f"{list(b.shape)}, torch has {list(a.shape)}")]
    if random or a.numel() == 0:
        return []
    a = torch.zeros(a.shape, dtype=a.dtype) if a._is_zerotensor() else a
    x, y = a.detach().resolve_neg(), b.detach()
    if not a.is_floating_point():
        wrong = x.numpy() != y.numpy()
        return [("value", first_of(x.numpy(), y.numpy(), wrong))] if wrong.any() else []
    x, y = x.double().numpy(), y.to(flow.float64).numpy()
    bound = BOUND[b.dtype.name][which]
    with np.errstate(invalid="ignore"):
        near = np.abs(x - y) <= bound * (1 + np.abs(x))
    most = 65504.0 if b.dtype is flow.float16 else 3.4e38
    near |= wide & np.isinf(y) & (np.abs(x) >= most) & (np.sign(x) == np.sign(y))
    wrong = ~(near | (x == y) | (np.isnan(x) & np.isnan(y)))
    return [("value", first_of(x, y, wrong))] if wrong.any() else []


def first_of(x: np.ndarray, y: np.ndarray, wrong: np.ndarray) -> str:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{y[place]} at {list(place)}, torch has {x[place]}"


def gradients_compared(case: Case, actual: Any, seen: dict) -> list[tuple[str, str]]:
    process = case.sample.output_process_fn_grad
    theirs, mine = case.expected, actual
    try:
        theirs = process(theirs)
        mine = with_flow(process)(mine) if isinstance(process, types.FunctionType) else mine
    except Exception as e:
        return [("gradient", f"of what the sample makes of it: {e}")]
    pairs = [(a, b) for a, b in zip(leaves(theirs), leaves(mine), strict=False)
             if isinstance(a, torch.Tensor) and a.requires_grad]  # fmt: skip
    if not pairs:
        return []
    if not all(isinstance(b, flow.Tensor) and b.requires_grad for _, b in pairs):
        return [("gradient", "none, torch has one")]
    inputs = [(t, x) for t, x in seen.values() if t.requires_grad]
    rng = np.random.default_rng(1)
    weights = [np.asarray(rng.uniform(-1, 1, tuple(a.shape))) for a, _ in pairs]
    weights = [flow.from_numpy(w).to(b.dtype) for w, (_, b) in zip(weights, pairs, strict=True)]
    dy = [torch.from_numpy(w.to(flow.float64).numpy().copy()).to(a.dtype)
          for w, (a, _) in zip(weights, pairs, strict=True)]  # fmt: skip
    try:
        wanted = torch.autograd.grad([a for a, _ in pairs], [t for t, _ in inputs], dy,
                                     allow_unused=True, retain_graph=True)  # fmt: skip
    except Exception:  # torch has no gradient here
        return []
    try:
        given = flow.autograd.grad([b for _, b in pairs], [x for _, x in inputs], weights,
                                   allow_unused=True, retain_graph=True)  # fmt: skip
    except Exception as e:
        return [("gradient", f"{type(e).__name__}: {str(e).splitlines()[:1]}")]
    found = []
    for i, (a, b) in enumerate(zip(wanted, given, strict=True)):
        found += [("gradient", f"{i}: {what}") for _, what in gradient_compared(a, b, case.wide)]
    return found


def gradient_compared(a: torch.Tensor | None, b: Any, wide: bool) -> list[tuple[str, str]]:
    """None is as good as zeros."""
    if a is None and b is None:
        return []
    if a is None:
        return [("gradient", "one, torch has none")] if b.ne(0).any().item() else []
    if b is None:
        return [] if not a.abs().nan_to_num(1).any() else [("gradient", "none, torch has one")]
    return one_compared(a, b, 1, wide=wide)
