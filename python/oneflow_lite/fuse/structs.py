# SPDX-License-Identifier: Apache-2.0
"""The structs of a fused op's source: FusedElements for what load does, FusedStore for store.

All their members are 8 bytes wide, so that the launcher can lay them out as a list of words, in the
order in which they are named here.
"""

from __future__ import annotations

import math
from typing import Any

from oneflow_lite.fuse.expression import OF_PACKS, OPERATIONS, Graph
from oneflow_lite.fuse.kinds import (
    TYPES,
    Kind,
    Operand,
    commons,
    element_type,
    load_operands,
    matrices,
    norm_weights,
    store_operands,
)


def _constant(value: float) -> str:
    if math.isnan(value):
        return "C(__int_as_float(0x7fc00000))"
    if math.isinf(value):
        return f"C({'-' if value < 0 else ''}__int_as_float(0x7f800000))"
    return f"C({value!r})"


def _loop(statements: list[str]) -> str:
    """The statements for every element i of a pack."""
    body = "".join(f"      {statement}\n" for statement in statements)
    return f"#pragma unroll\n    for (int i = 0; i < N; ++i) {{\n{body}    }}\n" if body else ""


def _computed(graph: Graph | None, leaves: dict[str, str], value: str) -> str:
    """Statements that compute a pack, ``result``; without an expression each element is `value`.

    Functions of whole packs part the loops in which all else is computed.
    """
    head, loops, statements, names = "    Pack<C, N> result;\n", "", [], 0
    if graph is None:
        return head + _loop([f"result.v[i] = {value};"])
    whole = any(graph.steps[n].kind in OF_PACKS for n in graph.live())

    def named(text: str) -> str:
        nonlocal names
        name = f"t{names}"
        names += 1
        statements.append(f"{name}.v[i] = {text};" if whole else f"const C {name} = {text};")
        return f"{name}.v[i]" if whole else name

    def leaf(step: Any) -> str:
        return leaves[step.value] if step.kind == "parameter" else _constant(step.value)

    def apply(operation: str, args: list[str]) -> str:
        nonlocal loops, names
        text = OPERATIONS[operation].cuda
        if operation not in OF_PACKS:
            return named(text.format(*args))
        packs = [named(a) for a in args]
        loops += _loop(statements)
        statements.clear()
        loops += f"    t{names} = {text.format(*(p.removesuffix('.v[i]') for p in packs))};\n"
        names += 1
        return f"t{names - 1}.v[i]"

    found = graph.evaluate(leaf, apply)[graph.result]
    loops += _loop([*statements, f"result.v[i] = {found};"])
    if whole:
        head += f"    Pack<C, N> {', '.join(f't{n}' for n in range(names))};\n"
    return head + loops


def _member(name: str) -> str:
    """The member that holds a parameter; Python's names may be C++'s keywords, or Greek."""
    return "p_" + "".join(c if c.isascii() else f"_u{ord(c):x}_" for c in name)


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


def _beside(struct: str, operands: list[tuple[str, Operand]]) -> str:
    """The struct over those copies of what serves all rows that lie as a row (fused/copies.cuh)."""
    moves = "".join(
        f"    here.{_member(n)} = CopyBeside<kPackSize<T>>({_member(n)}, head, stride);\n"
        for n, o in operands
        if (o.form, o.rows) == ("matrix", "none")
    )
    return f"""  __device__ __forceinline__ {struct} Beside(int head) const {{
    {struct} here = *this;
{moves}    return here;
  }}
"""


def _readings(kind: Kind, found: list[tuple[str, Operand]]) -> tuple[str, str, dict[str, str]]:
    """How matrices are read: members that do, statements that unpack them, and their elements.

    Inputs are what each row has of its own, Commons what serves all rows, which may be copied to
    shared memory (fused/wide.cuh).
    """
    text, packs, leaves = "", "", {}
    for what, of_all in ("Inputs", False), ("Commons", True):
        own = [(n, o) for n, o in found if (o.rows == "none") == of_all]
        fields, loads, copies = "", [], ""
        for i, (name, o) in enumerate(own):
            pointer = _pointer(name, o, "col")
            fields += f"    StowedPack<{TYPES[o.dtype]}, N> i{i};\n"
            # Of odd rows those that repeat lie otherwise than the one that is written.
            access = "kAskew" if kind.odd and o.rows in ("period", "repeat") else "kAccess"
            load = f"LoadOperand<{access}, N>({pointer})"
            loads.append(f"StowedPack<{TYPES[o.dtype]}, N>::Of({load})")
            copies += f"    slots.Copy<N>({pointer});\n"
            element = f"{what[0].lower()}{i}"
            packs += f"    const auto {element} = GetAs<C>({what.lower()}.i{i});\n"
            leaves[name] = f"{element}.v[i]"
        text += f"""  template <int N>
  struct {what} {{
{fields}  }};
  template <Access kAccess, int N, Access kAskew = Access::kInside>
  __device__ __forceinline__ {what}<N> Load{what}(int64_t row, int64_t col) const {{
    return {{{("," + chr(10) + " " * 12).join(loads)}}};
  }}
"""
        if of_all and kind.whole:
            types = [TYPES[o.dtype] for _, o in own]
            size = " + ".join(f"OperandSlots::kBytes<N, {t}>" for t in types) or "0"
            reads = ", ".join(f"slots.Read<N, {t}>()" for t in types)
            text += f"""  template <int N>
  static constexpr int kCommonBytes = {size};
  template <int N>
  __device__ __forceinline__ void CopyCommons(int64_t col, OperandSlots slots) const {{
{copies}  }}
  template <int N>
  __device__ __forceinline__ Commons<N> ReadCommons(OperandSlots slots) const {{
    return {{{reads}}};
  }}
"""
    return text, packs, leaves


def _constants(operands: list[tuple[str, Operand]]) -> tuple[str, dict[str, str]]:
    """The members that hold what is the same for a whole row, and their names."""
    columns = [(_member(n), o) for n, o in operands if o.form == "column"]
    fields = "".join(f"    C {member};\n" for member, _ in columns)
    values = ", ".join(f"ConvertTo<C>({member}[{o.row(member)}])" for member, o in columns)
    text = f"""  struct Constants {{
{fields}  }};
  __device__ __forceinline__ Constants Begin(int64_t row) const {{ return {{{values}}}; }}
"""
    leaves = {n: f"constants.{_member(n)}" for n, o in operands if o.form == "column"}
    leaves |= {n: f"static_cast<C>({_member(n)})" for n, o in operands if o.form == "number"}
    return text, leaves


def elements(kind: Kind, load: Graph | None) -> str:
    operands = load_operands(kind, load)
    constants, leaves = _constants(operands)
    members = _whole_members if kind.whole else _streamed_members
    return f"""
struct FusedElements {{
  int64_t stride;
{_fields(operands)}
{constants}  __device__ __forceinline__ FusedElements At(int64_t row) const {{
    FusedElements here = *this;
{_moves(matrices(kind, load))}    here.stride = 0;
    return here;
  }}
{_beside("FusedElements", operands) if kind.odd else ""}{members(kind, load, leaves)}}};
"""


def _result(kind: Kind, load: Graph | None, leaves: dict[str, str]) -> str:
    """Statements that compute a pack of what load gives."""
    value = leaves[kind.input] if load is None else ""
    return f"{_computed(load, leaves, value)}    return result;\n"


def _whole_members(kind: Kind, load: Graph | None, leaves: dict[str, str]) -> str:
    """How fused/whole.cuh and wide.cuh read: each matrix as it lies in memory, until Apply."""
    readings, packs, read = _readings(kind, matrices(kind, load))
    return f"""{readings}  template <int N>
  __device__ __forceinline__ Pack<C, N> Apply(const Inputs<N>& inputs, const Commons<N>& commons,
                                              const Constants& constants) const {{
{packs}{_result(kind, load, leaves | read)}  }}
"""


def _streamed_members(kind: Kind, load: Graph | None, leaves: dict[str, str]) -> str:
    """How fused/row.cuh reads: matrices in one type, by the way that a row's alignment allows."""
    inputs, late = matrices(kind, load), commons(kind, load)
    aligned = " && ".join(
        f"IsOperandAligned<kPackSize<T>>({_pointer(n, o, 'head')})" for n, o in inputs
    )
    loads = "".join(
        f"    input[{i}] = ConvertPack<Element>(\n"
        f"        LoadOperand<kAccess, N>({_pointer(n, o, 'col')}));\n"
        for i, (n, o) in enumerate(inputs)
    )
    reads = "".join(
        f"    const auto c{i} = LoadCommon<N>({_member(n)} + col);\n"
        for i, (n, _) in enumerate(late)
    )
    leaves |= {n: f"ConvertTo<C>(input[{i}].v[i])" for i, (n, _) in enumerate(inputs)}
    leaves |= {n: f"ConvertTo<C>(c{i}.v[i])" for i, (n, _) in enumerate(late)}
    return f"""  using Element = {element_type(kind, load)};
  static constexpr int kInputs = {len(inputs)};
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
{reads}{_result(kind, load, leaves)}  }}
"""


def store_functor(kind: Kind, store: Graph | None) -> str:
    operands = store_operands(kind, store)
    constants, leaves = _constants(operands)
    found = [(n, o) for n, o in operands if o.form == "matrix"]
    readings, packs, read = _readings(kind, found)
    leaves |= read
    value = "v.v[i]"
    for name, operation in ("weight", "*"), ("bias", "+"):  # a norm's own come first
        if (name, dict(operands).get(name)) in norm_weights(kind):
            value = f"({value} {operation} {leaves[name]})"
    if store is not None:
        leaves[store.parameters[0]] = value
    write = "    StoreAlignedPack<N>(y + row * stride + col, ConvertPack<T>(result));\n"
    return f"""
struct FusedStore {{
  using Element = T;
  T* y;
  int64_t stride;
{_fields(operands)}
{constants}  __device__ __forceinline__ FusedStore At(int64_t row) const {{
    FusedStore here = *this;
    here.y = y + row * stride;
{_moves(operands)}    here.stride = 0;
    return here;
  }}
  __device__ __forceinline__ int Head(int64_t row) const {{
    return ElementsToBoundary(y + row * stride);
  }}
{_beside("FusedStore", operands) if kind.odd else ""}{readings}  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Pack<C, N>& v,
                                        const Inputs<N>& inputs, const Commons<N>& commons,
                                        const Constants& constants) const {{
{packs}{_computed(store, leaves, value)}{write}  }}
  template <int N>
  __device__ __forceinline__ void Store(int64_t row, int64_t col, const Pack<C, N>& v) const {{
    Store<N>(row, col, v, LoadInputs<Access::kAny, N>(row, col),
             LoadCommons<Access::kAny, N>(row, col), Begin(row));
  }}
}};
"""
