# SPDX-License-Identifier: Apache-2.0
"""CUDA source of a fused op: a struct Elements for what load does, a Store functor for store.

All members of the structs are 8 bytes wide, so that the launcher can lay them out as a list of
words, in the order in which they are named here.
"""

from __future__ import annotations

import math
import struct
from typing import Any, NamedTuple

from oneflow_lite.fuse.expression import OPERATIONS, Graph

TYPES = {
    "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double",
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t",
}  # fmt: skip


class Operand(NamedTuple):
    """How a parameter reaches the kernel.

    form: "number"; "matrix", read at [Row, col]; or "column", read at [Row]. Row is what `rows`
    says: "none" is 0, "all" the row, "period" the row modulo a number, "repeat" the row divided by
    one; the latter for fewer than 2^32 rows.
    """

    form: str
    dtype: str = ""
    rows: str = "none"

    def fields(self, name: str) -> list[str]:
        """Its members, in order."""
        if self.form == "number":
            return [f"double {name};"]
        extra = [f"int64_t {name}_rows;"] if self.rows in ("period", "repeat") else []
        return [f"const {TYPES[self.dtype]}* {name};", *extra]

    def row(self, name: str) -> str:
        """The row of the operand that serves `row`."""
        return {
            "none": "int64_t{0}",
            "all": "row",
            "period": f"int64_t{{uint32_t(row) % uint32_t({name}_rows)}}",
            "repeat": f"int64_t{{uint32_t(row) / uint32_t({name}_rows)}}",
        }[self.rows]


class Kind(NamedTuple):
    """Everything that the source depends on, besides the expressions."""

    base: str
    dtype: str
    input: str
    operands: tuple[tuple[str, Operand], ...]


def element_type(kind: Kind, load: Graph | None) -> str:
    """What the inputs are kept in on chip: the input's type if it holds the other matrices too."""
    exact = {
        "float16": ("bool", "uint8", "int8"), "bfloat16": ("bool", "uint8", "int8"),
        "float32": ("bool", "uint8", "int8", "int16", "float16", "bfloat16"),
        "float64": ("bool", "uint8", "int8", "int16", "int32", "float16", "bfloat16", "float32",
                    "int64"),
    }[kind.dtype]  # fmt: skip
    others = {o.dtype for _, o in matrices(kind, load)} - {kind.dtype}
    return TYPES[kind.dtype] if others <= set(exact) else compute_type(kind)


def compute_type(kind: Kind) -> str:
    return "double" if kind.dtype == "float64" else "float"


def _operands(kind: Kind, graph: Graph | None) -> dict[str, Operand]:
    whole = Operand("matrix", kind.dtype, "all")
    known = {kind.input: whole, **dict(kind.operands)}
    used = [kind.input] if graph is None else [p for p in graph.parameters if p in graph.used()]
    return {name: known[name] for name in used if name in known}


_COSTLY = {"div", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid"}


def computes_again(kind: Kind, load: Graph | None) -> bool:
    """Whether load is computed at each of a row's visits, from inputs that stay as they are.

    Else what is computed of them stays, in the wider type, which suits costly expressions.
    """
    steps = [] if load is None else [load.steps[n].kind for n in load.live()]
    operations = [s for s in steps if s in OPERATIONS]
    inputs = [o for o in _operands(kind, load).values() if o.form == "matrix"]
    cheap = len(operations) <= 8 and not _COSTLY & set(operations)
    return cheap and len(inputs) <= 2 and kind.dtype != "float64"


def _commons(kind: Kind, load: Graph | None) -> list[tuple[str, Operand]]:
    """Rows that serve all rows and are read where they are used, not kept on chip."""
    if computes_again(kind, load):
        return []
    operands = _operands(kind, load).items()
    return [(n, o) for n, o in operands if o.form == "matrix" and o.rows == "none"]


def matrices(kind: Kind, load: Graph | None) -> list[tuple[str, Operand]]:
    """The matrices that load reads and keeps; at least one, which the packs are counted by."""
    late = _commons(kind, load)
    operands = _operands(kind, load).items()
    found = [item for item in operands if item[1].form == "matrix" and item not in late]
    return found or [(kind.input, Operand("matrix", kind.dtype, "all"))]


def is_lean(kind: Kind, load: Graph | None) -> bool:
    """Whether a thread holds as many packs of the inputs as of a plain row (fused_row.cuh)."""
    only = len(matrices(kind, load)) == 1 and element_type(kind, load) == TYPES[kind.dtype]
    return only and computes_again(kind, load)


def load_operands(kind: Kind, load: Graph | None) -> list[tuple[str, Operand]]:
    kept = matrices(kind, load)
    return kept + [item for item in _operands(kind, load).items() if item not in kept]


def store_operands(kind: Kind, store: Graph | None) -> list[tuple[str, Operand]]:
    return [] if store is None else list(_operands(kind, store).items())


def _statements(graph: Graph, leaves: dict[str, str], indent: str) -> tuple[str, str]:
    """Statements that compute the expression, and the name of its value."""
    lines: list[str] = []

    def leaf(step: Any) -> str:
        if step.kind == "parameter":
            return leaves[step.value]
        if math.isnan(step.value):
            return "C(__int_as_float(0x7fc00000))"
        if math.isinf(step.value):
            return f"C({'-' if step.value < 0 else ''}__int_as_float(0x7f800000))"
        return f"C({step.value!r})"

    def apply(operation: str, args: list[str]) -> str:
        name = f"t{len(lines)}"
        lines.append(f"{indent}const C {name} = {OPERATIONS[operation].cuda.format(*args)};\n")
        return name

    values = graph.evaluate(leaf, apply)
    return "".join(lines), values[graph.result]


def _member(name: str) -> str:
    """The member that holds a parameter; Python's names may be C++'s keywords, or Greek."""
    return "p_" + "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)


def _fields(operands: list[tuple[str, Operand]]) -> str:
    return "".join(f"  {field}\n" for name, o in operands for field in o.fields(_member(name)))


def _pointer(name: str, operand: Operand, column: str) -> str:
    member = _member(name)
    return f"{member} + ({operand.row(member)}) * stride + {column}"


def _moves(operands: list[tuple[str, Operand]]) -> str:
    """Statements that move a copy, ``here``, to a row; its stride is 0 then."""
    return "".join(
        f"    here.{_member(n)} = {_pointer(n, o, '0')};\n"
        for n, o in operands
        if o.form == "matrix"
    )


def _elements(kind: Kind, load: Graph | None) -> str:
    inputs = matrices(kind, load)
    operands = load_operands(kind, load)
    columns = [(n, o) for n, o in operands if o.form == "column"]
    commons = _commons(kind, load)
    aligned = " && ".join(
        f"IsOperandAligned<kPackSize<T>>({_pointer(n, o, 'head')})" for n, o in inputs
    )
    loads = "".join(
        f"    input[{i}] = ConvertPack<Element>(\n"
        f"        LoadOperand<kAccess, N>({_pointer(n, o, 'col')}));\n"
        for i, (n, o) in enumerate(inputs)
    )
    constants = "".join(f"    C {_member(n)};\n" for n, _ in columns)
    begin = ", ".join(f"ConvertTo<C>({_member(n)}[{o.row(_member(n))}])" for n, o in columns)
    leaves = {n: f"ConvertTo<C>(input[{i}].v[i])" for i, (n, _) in enumerate(inputs)}
    reads = "".join(
        f"    const auto c{i} = LoadCommon<N>({_member(n)} + col);\n"
        for i, (n, _) in enumerate(commons)
    )
    leaves |= {n: f"ConvertTo<C>(c{i}.v[i])" for i, (n, _) in enumerate(commons)}
    leaves |= {n: f"constants.{_member(n)}" for n, _ in columns}
    leaves |= {n: f"static_cast<C>({_member(n)})" for n, o in operands if o.form == "number"}
    body, value = ("", leaves[inputs[0][0]]) if load is None else _statements(load, leaves, " " * 6)
    return f"""
struct FusedElements {{
  using Element = {element_type(kind, load)};
  static constexpr int kInputs = {len(inputs)};
  int64_t stride;
{_fields(operands)}
  struct Constants {{
{constants}  }};
  __device__ __forceinline__ FusedElements At(int64_t row) const {{
    FusedElements here = *this;
{_moves(inputs)}    here.stride = 0;
    return here;
  }}
  __device__ __forceinline__ Constants Begin(int64_t row) const {{ return {{{begin}}}; }}
  __device__ __forceinline__ bool IsAligned(int64_t row, int64_t head) const {{
    return {aligned};
  }}
  template <Access kAccess, int N>
  __device__ __forceinline__ void Load(int64_t row, int64_t col,
                                       Pack<Element, N> (&input)[kInputs]) const {{
{loads}  }}
  template <int N>
  __device__ __forceinline__ Pack<C, N> Apply(int64_t col, const Pack<Element, N> (&input)[kInputs],
                                              const Constants& constants) const {{
{reads}    Pack<C, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i) {{
{body}      result.v[i] = {value};
    }}
    return result;
  }}
}};
"""


def _store(kind: Kind, store: Graph | None) -> str:
    operands = store_operands(kind, store)
    loads, leaves = "", {}
    for i, (n, o) in enumerate(operands):
        member = _member(n)
        if o.form == "matrix":
            pointer = _pointer(n, o, "col")
            loads += f"    const auto m{i} = LoadOperand<Access::kAny, N>({pointer});\n"
            leaves[n] = f"ConvertTo<C>(m{i}.v[i])"
        elif o.form == "column":
            loads += f"    const C c{i} = ConvertTo<C>({member}[{o.row(member)}]);\n"
            leaves[n] = f"c{i}"
        else:
            leaves[n] = f"static_cast<C>({member})"
    body, value = "", "v.v[i]"
    if store is not None:
        leaves[store.parameters[0]] = value
        body, value = _statements(store, leaves, " " * 6)
    return f"""
struct FusedStore {{
  using Element = T;
  T* y;
  int64_t stride;
{_fields(operands)}
  __device__ __forceinline__ FusedStore At(int64_t row) const {{
    FusedStore here = *this;
    here.y = y + row * stride;
{_moves(operands)}    here.stride = 0;
    return here;
  }}
  __device__ __forceinline__ int Head(int64_t row) const {{
    return ElementsToBoundary(y + row * stride);
  }}
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Pack<C, N>& v) const {{
{loads}    Pack<C, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i) {{
{body}      result.v[i] = {value};
    }}
    StoreAlignedPack<N>(y + row * stride + col, ConvertPack<T>(result));
  }}
}};
"""


_BASES = {
    "softmax": ("softmax_forward.cuh", "SoftmaxRow<false, Loaded<C>, FusedStore>"),
    "log_softmax": ("softmax_forward.cuh", "SoftmaxRow<true, Loaded<C>, FusedStore>"),
    "layer_norm": ("norm_forward.cuh", "NormRow<true, Loaded<C>, NoResidual, FusedStore>"),
    "rms_norm": ("norm_forward.cuh", "NormRow<false, Loaded<C>, NoResidual, FusedStore>"),
}
ALGORITHM = "oneflow_lite::cuda::FusedAlgorithm"


def words_of(kind: Kind, load: Graph | None, store: Graph | None) -> int:
    """Words of 8 bytes that the algorithm's struct has; see launch_words."""
    fields = [load_operands(kind, load), store_operands(kind, store)]
    count = sum(len(o.fields(n)) for operands in fields for n, o in operands)
    norm = (9 if kind.dtype == "float64" else 8) + 1 if kind.base.endswith("norm") else 0
    return 1 + 2 + norm + 1 + count


def launch_words(
    kind: Kind, cols: int, y: int, load: list[int], store: list[int],
    norm: dict[str, Any] | None = None,
) -> list[int]:  # fmt: skip
    """The struct's words: FusedRow{base{Loaded, [residual], FusedStore, [extras]}, elements}."""
    words = [0, *([0] if norm else []), y, cols, *store]
    if norm:
        words += [norm["weight"], norm["bias"], int(norm["float_weight"]), 0, cols, 0, 0]
        packed = "<dd" if kind.dtype == "float64" else "<ff"
        raw = struct.pack(packed, norm["eps"], 1 / cols)
        words += struct.unpack(f"<{len(raw) // 8}Q", raw)
    return [*words, cols, *load]


def number_word(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def generate(kind: Kind, load: Graph | None, store: Graph | None) -> str:
    """The translation unit, in which kernels over ALGORITHM are instantiated by name."""
    header, base = _BASES[kind.base]
    comments = "".join(
        f"// {g.role[g.role.index('(') + 1 : -5]} = {g}\n" for g in (load, store) if g
    )
    return f"""// flow.fuse.{kind.base}
{comments}#include <primitive/cuda/fused_row.cuh>
#include <primitive/cuda/row_registers.cuh>
#include <primitive/cuda/row_streamed.cuh>
#include <primitive/cuda/{header}>

namespace oneflow_lite {{
namespace cuda {{

using T = {TYPES[kind.dtype]};
using C = {compute_type(kind)};
{_elements(kind, load)}{_store(kind, store)}
using FusedAlgorithm = FusedRow<{base}, FusedElements, {str(computes_again(kind, load)).lower()}>;
static_assert(sizeof(FusedAlgorithm) == {8 * words_of(kind, load, store)}, "the launcher's words");

}}  // namespace cuda
}}  // namespace oneflow_lite
"""
