# SPDX-License-Identifier: Apache-2.0
"""A fused op on CUDA: one kernel of the row family, compiled for the expression at first use."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite import autograd
from oneflow_lite._oneflow_lite import Tensor, float32, float64, uint8
from oneflow_lite._warnings import warn
from oneflow_lite.custom_op import register_op
from oneflow_lite.fuse.bases import Options, row_shape
from oneflow_lite.fuse.compose import Values, compose, compute_dtype
from oneflow_lite.fuse.fusion import Fusion
from oneflow_lite.fuse.kinds import (
    SIZES,
    TYPES,
    Kind,
    Operand,
    common_bytes,
    compute_type,
    element_type,
    is_cheap,
    is_lean,
    is_single,
    late_bytes,
    load_operands,
    matrices,
    operands_of_all,
    store_operands,
)
from oneflow_lite.fuse.source import ALGORITHM, generate, launch_words, number_word

_C = _ext._C


def _dtype_name(t: Tensor) -> str:
    return str(t.dtype).rpartition(".")[2]


def can_serve(op: Fusion, x: Tensor, values: Values, options: Options) -> bool:
    """Whether a kernel computes this call; where none does, the composition serves."""
    if x.device.type != "cuda" or x.numel() == 0 or x.ndim == 0:
        return False
    row = row_shape(op.base, x, options)
    if row is None or (compute_dtype(values) is float64) != (x.dtype is float64):
        return False
    # What the op refuses, the composition tells.
    weights = [options[name] for name in ("weight", "bias") if options.get(name) is not None]
    if any(w.device != x.device or list(w.shape) != row for w in weights):
        return False
    if op.is_norm and math.isnan(options["eps"]):
        return False
    if problem := _ext.compiler_problem():
        _warn_once(problem)
        return False
    return True


_warned: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warn(f"flow.fuse runs as a composition of functors: {text}")


def run(op: Fusion, x: Tensor, values: Values, options: Options) -> Tensor:
    """The call as one op, which modes and autograd see. Precondition: can_serve."""
    tensors = [n for n, v in values.items() if isinstance(v, Tensor) and n != op.input]
    numbers = [n for n, v in values.items() if not isinstance(v, Tensor)]
    row = row_shape(op.base, x, options) or []
    function = _registered(op, tuple(tensors), tuple(numbers))
    weights = [options.get("weight"), options.get("bias")] if op.is_norm else []
    return function(
        x, *(values[n] for n in tensors), *weights, *(float(values[n]) for n in numbers),  # type: ignore[arg-type]
        options.get("eps", 0.0), math.prod(row), len(row),
    )  # fmt: skip


_functions: dict[str, Callable[..., Tensor]] = {}


def _registered(
    op: Fusion, tensors: tuple[str, ...], numbers: tuple[str, ...]
) -> Callable[..., Tensor]:
    """The op of this expression for these kinds of operands, registered when it is first called."""
    if found := op.registered.get((tensors, numbers)):
        return found
    graphs = [g and (g.parameters, g.steps, g.result) for g in (op.load, op.store)]
    content = repr((op.input, graphs, tensors, numbers))
    name = f"fuse::{op.base.name}_{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    if name not in _functions:
        _functions[name] = register_op(name)(_definition(op, tensors, numbers))
    op.registered[tensors, numbers] = _functions[name]
    return _functions[name]


def _definition(op: Fusion, tensors: tuple[str, ...], numbers: tuple[str, ...]) -> type:
    weights = ("weight", "bias") if op.is_norm else ()
    names = (op.input, *tensors, *numbers)
    members = [f"p_{name}" for name in names]  # ctx has names of its own
    inputs = (*members[: 1 + len(tensors)], *weights)
    attributes = (*members[1 + len(tensors) :], "eps", "width", "row_ndim")
    kernels = _Kernels(op)

    def split(args: tuple[Any, ...]) -> tuple[dict[str, Any], Options]:
        given = dict(zip((*inputs, *attributes), args, strict=True))
        options: Options = {"dim": -1, "eps": given["eps"], "width": given["width"]}
        options["normalized_shape"] = list(args[0].shape[-given["row_ndim"] :])
        options |= {name: given[name] for name in weights}
        return {name: given[p] for name, p in zip(names, members, strict=True)}, options

    def forward(*args: Any) -> Tensor:
        values, options = split(args)
        return kernels.launch(values, options)

    def infer(*args: Any) -> Tensor:
        return args[0]

    def backward(ctx: Any, dy: Tensor) -> list[Tensor | None]:
        wanted = [n for n in inputs if ctx.needs[n] and getattr(ctx, n) is not None]
        further = autograd.is_grad_enabled()
        with autograd.enable_grad():
            # Each input by an alias of its own: the same tensor may have been given twice.
            aliases = {
                n: t.expand(t.shape) if further else t.detach().requires_grad_()
                for n in wanted
                if (t := getattr(ctx, n)) is not None
            }
            args = [aliases.get(n, getattr(ctx, n)) for n in (*inputs, *attributes)]
            values, options = split(tuple(args))
            y = compose(op.base, op.load, op.store, values[op.input], values, options)
        if not y.requires_grad:  # comparisons alone, say
            return [_C.zeros_like(aliases[n]) if n in aliases else None for n in inputs]
        grads = autograd.grad(
            y, [aliases[n] for n in wanted], dy, create_graph=further, allow_unused=True
        )
        found = dict(zip(wanted, grads, strict=True))
        return [found.get(n) for n in inputs]

    p = inspect.Parameter
    place = p.POSITIONAL_OR_KEYWORD
    kinds = {"width": int, "row_ndim": int}
    forward.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p(n, place, annotation="Tensor | None" if n in weights else p.empty) for n in inputs]
        + [p(n, place, annotation=kinds.get(n, float)) for n in attributes]
    )
    return type("Fused", (), {
        "__doc__": repr(op), "outputs": ("y",), "save": inputs,
        "forward": staticmethod(forward), "infer": staticmethod(infer),
        "backward": staticmethod(backward),
    })  # fmt: skip


def _leading(lead: list[int], whole: list[int]) -> tuple[str, int] | None:
    """Which row of an operand serves a row of x, from the dims before a row's own; see Operand."""
    dims = [(size, of) for size, of in zip(lead, whole, strict=True) if of != 1]
    if all(size == of for size, of in dims):
        return "all", 0
    if all(size == 1 for size, _ in dims):
        return "none", 0
    if math.prod(whole) >= 2**32:
        return None
    ones = [size == 1 for size, _ in dims]
    split = ones.index(not ones[0])
    if any(one == ones[0] for one in ones[split:]):
        return None
    rest = math.prod(of for _, of in dims[split:])
    return ("period" if ones[0] else "repeat"), rest


def prepare(t: Tensor, shape: tuple[int, ...], row_ndim: int) -> tuple[Operand, Tensor, int]:
    """How an operand that broadcasts to `shape` is read: its form, its memory, its row number."""
    own = [1] * (len(shape) - t.ndim) + list(t.shape)
    lead, row = own[: len(own) - row_ndim], own[len(own) - row_ndim :]
    whole, whole_row = list(shape[: len(shape) - row_ndim]), list(shape[len(shape) - row_ndim :])
    is_column = all(size == 1 for size in row)
    if not is_column and row != whole_row:
        t, row = t.expand(lead + whole_row), whole_row
    found = _leading(lead, whole)
    if found is None:
        t, found = t.expand(whole + row), ("all", 0)
    rows, number = found
    return (
        Operand("column" if is_column else "matrix", _dtype_name(t), rows),
        t.contiguous(),
        number,
    )


_STATISTICS = {"softmax": 2, "log_softmax": 2, "layer_norm": 4, "rms_norm": 1}  # numbers in each


class _Kernels:
    """The kernels of one expression, by what was asked of them so far."""

    def __init__(self, op: Fusion) -> None:
        self._op = op
        self._planned: dict[Any, Any] = {}

    def _plan(self, kind: Kind, x: Tensor, rows: int, cols: int) -> tuple[Any, Kind]:
        """The loaded kernel, and the kind that it is of: not whole where such rows do not fit."""
        key = (kind, rows, cols, x.device.index)
        if key not in self._planned:
            planned = self._load(kind, x, rows, cols)
            if planned is None:
                kind = kind._replace(whole=False, odd=False)
                planned = self._load(kind, x, rows, cols)
            self._planned[key] = planned, kind
        return self._planned[key]

    def _load(self, kind: Kind, x: Tensor, rows: int, cols: int) -> Any:
        op = self._op
        element, pack = SIZES[element_type(kind, op.load)], 16 // SIZES[TYPES[kind.dtype]]
        wide = compute_type(kind) == "double"
        source = generate(kind, op.load, op.store)
        common = operands_of_all(kind, op.load, op.store)
        properties = _ext.cuda_device_properties(x.device.index)
        architecture = 10 * properties.major + properties.minor
        for most_clustered in (16, 8):
            planned = _ext.FusedRowsKernel(
                x, rows, cols, pack=pack,
                bytes_per_pack=len(matrices(kind, op.load)) * pack * element,
                statistics_bytes=_STATISTICS[op.base.name] * (8 if wide else 4), is_double=wide,
                shares_registers=op.base.name != "layer_norm", is_lean=is_lean(kind, op.load),
                is_single=is_single(kind, op.load),
                is_whole=kind.whole, is_odd=kind.odd, is_norm=op.is_norm,
                is_log=op.base.name == "log_softmax",
                stores_costly=not is_cheap(kind, op.store),
                common_bytes=common_bytes(kind, op.load, op.store, pack),
                late_bytes=late_bytes(kind, op.load, op.store, pack),
                operands=[SIZES[TYPES[dtype]] for dtype in common.values()],
                most_clustered=most_clustered,
            )  # fmt: skip
            if planned.whole != kind.whole:
                return None
            expression = "oneflow_lite::cuda::" + planned.name.replace("A>", ALGORITHM + ">")
            if planned.load(x, _ext.compile_kernel(source, expression, architecture)):
                return planned
        raise RuntimeError(f"{op.__name__}: the device cannot place clusters of 8 blocks")

    def launch(self, values: dict[str, Any], options: Options) -> Tensor:
        op, cols = self._op, options["width"]
        x = values[op.input].contiguous()
        y = _C.empty(x.shape, dtype=x.dtype, device=x.device)
        row_ndim = len(options["normalized_shape"])
        operands, words, held = {}, {op.input: [x.data_ptr()]}, [x]
        weights = {n: options.get(n) for n in ("weight", "bias")} if op.is_norm else {}
        starts = [x.data_ptr(), y.data_ptr()]
        others = [cols * x.nbytes // x.numel()]
        for name, value in (values | weights).items():
            if name == op.input or value is None:
                continue
            if isinstance(value, Tensor):
                operand, memory, number = prepare(value, x.shape, row_ndim)
                held.append(memory)
                words[name] = [memory.data_ptr()] + ([number] if number else [])
                if operand.form == "matrix":
                    (starts if operand.rows == "all" else others).append(memory.data_ptr())
            else:
                operand = Operand("number")
                words[name] = [number_word(value)]
            operands[name] = operand
        whole = not any(start % 16 for start in starts)
        odd = whole and any(start % 16 for start in others)
        kind = Kind(op.base.name, _dtype_name(x), op.input, tuple(operands.items()), whole, odd)
        planned, kind = self._plan(kind, x, x.numel() // cols, cols)
        norm = self._norm(kind, x, options, held) if op.is_norm else None
        workspace, copied = None, []
        if planned.workspace_bytes:
            workspace = _C.empty((planned.workspace_bytes,), dtype=uint8, device=x.device)
        if offsets := planned.copies:
            names = operands_of_all(kind, op.load, op.store)
            copied = [words[name][0] for name in names]
            for name, offset in zip(names, offsets, strict=True):
                words[name] = [workspace.data_ptr() + offset]
        load, store = (
            [word for name, _ in found for word in words[name]]
            for found in (load_operands(kind, op.load), store_operands(kind, op.store))
        )
        algorithm = launch_words(kind, cols, y.data_ptr(), load, store, norm)
        planned.launch(y, algorithm, copied, workspace)
        return y

    @staticmethod
    def _norm(kind: Kind, x: Tensor, options: Options, held: list[Tensor]) -> dict[str, Any]:
        """The words of NormExtras: both of x's dtype, or both in the type computed in.

        None where the Store applies them.
        """
        given = {n: None if kind.whole else options.get(n) for n in ("weight", "bias")}
        present = [t for t in given.values() if t is not None]
        as_x = all(t.dtype is x.dtype for t in present)
        wanted = x.dtype if as_x else (float64 if x.dtype is float64 else float32)
        words: dict[str, Any] = {"eps": options["eps"], "float_weight": not as_x}
        for name, t in given.items():
            if t is not None:
                t = t.to(dtype=wanted).contiguous()
                held.append(t)
            words[name] = 0 if t is None else t.data_ptr()
        return words
