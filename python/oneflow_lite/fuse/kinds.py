# SPDX-License-Identifier: Apache-2.0
"""What the CUDA source of a fused op depends on, and what follows from it before it is written."""

from __future__ import annotations

from typing import NamedTuple

from oneflow_lite.fuse.expression import Graph

TYPES = {
    "float16": "__half", "bfloat16": "__nv_bfloat16", "float32": "float", "float64": "double",
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t",
}  # fmt: skip


SIZES = {
    "__half": 2, "__nv_bfloat16": 2, "float": 4, "double": 8, "bool": 1, "uint8_t": 1, "int8_t": 1,
    "int16_t": 2, "int32_t": 4, "int64_t": 8,
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
        extra = [f"int64_t rows_of_{name};"] if self.rows in ("period", "repeat") else []
        return [f"const {TYPES[self.dtype]}* {name};", *extra]

    def row(self, name: str) -> str:
        """The row of the operand that serves `row`."""
        return {
            "none": "int64_t{0}",
            "all": "row",
            "period": f"int64_t{{uint32_t(row) % uint32_t(rows_of_{name})}}",
            "repeat": f"int64_t{{uint32_t(row) / uint32_t(rows_of_{name})}}",
        }[self.rows]


class Kind(NamedTuple):
    """Everything that the source depends on, besides the expressions.

    whole: every row of every matrix consists of whole packs and starts at one (fused/whole.cuh), or
    if odd as well: every matrix starts at one, but not every row (fused/wide.cuh).
    """

    base: str
    dtype: str
    input: str
    operands: tuple[tuple[str, Operand], ...]
    whole: bool = False
    odd: bool = False


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


def _operations(kind: Kind, graph: Graph | None) -> list[str]:
    """What is done to each element; what a row has one of is computed once.

    So is the reciprocal of a divisor that a row has one of (fused/functions.cuh).
    """
    known, once, found = dict(kind.operands), set(), []
    for number in graph.live() if graph else []:
        step = graph.steps[number]
        if step.kind == "parameter":
            operand = known.get(str(step.value))
            if operand is not None and operand.form != "matrix":
                once.add(number)
        elif once.issuperset(step.args):
            once.add(number)
        elif step.kind == "div" and step.args[1] in once:
            found.append("mul")
        else:
            found.append(step.kind)
    return found


def is_cheap(kind: Kind, graph: Graph | None) -> bool:
    """Whether an expression may well be computed at several of a row's visits."""
    operations = _operations(kind, graph)
    return len(operations) <= 8 and not _COSTLY & set(operations) and kind.dtype != "float64"


def computes_again(kind: Kind, load: Graph | None) -> bool:
    """Whether load is computed at each of a row's visits, from inputs that stay as they are.

    Else what is computed of them stays, in the wider type, which suits costly expressions.
    """
    inputs = [o for o in _operands(kind, load).values() if o.form == "matrix"]
    return is_cheap(kind, load) and len(inputs) <= 2


def commons(kind: Kind, load: Graph | None) -> list[tuple[str, Operand]]:
    """Rows that serve all rows and are read where they are used, not kept on chip."""
    if kind.whole or computes_again(kind, load):
        return []
    operands = _operands(kind, load).items()
    return [(n, o) for n, o in operands if o.form == "matrix" and o.rows == "none"]


def matrices(kind: Kind, load: Graph | None) -> list[tuple[str, Operand]]:
    """The matrices that load reads and keeps; at least one, which the packs are counted by."""
    late = commons(kind, load)
    operands = _operands(kind, load).items()
    found = [item for item in operands if item[1].form == "matrix" and item not in late]
    return found or [(kind.input, Operand("matrix", kind.dtype, "all"))]


def is_single(kind: Kind, load: Graph | None) -> bool:
    """Whether load reads one input of the output's type, besides what serves all rows."""
    own = [o.dtype for _, o in matrices(kind, load) if o.rows != "none"]
    return own == [kind.dtype]


def is_lean(kind: Kind, load: Graph | None) -> bool:
    """Whether a thread holds as many packs of the inputs as of a plain row (fused/row.cuh).

    Of whole rows what serves all of them does not count: it is beside them (fused/wide.cuh).
    """
    if kind.whole:
        return is_single(kind, load) and is_cheap(kind, load)
    only = len(matrices(kind, load)) == 1 and element_type(kind, load) == TYPES[kind.dtype]
    return only and computes_again(kind, load)


def _row_bytes(operands: list[tuple[str, Operand]], pack: int) -> int:
    """Bytes of shared memory that a pack of what serves all rows takes."""
    found = [o.dtype for _, o in operands if (o.form, o.rows) == ("matrix", "none")]
    return sum(-(-pack * SIZES[TYPES[dtype]] // 16) * 16 for dtype in found)


def common_bytes(kind: Kind, load: Graph | None, store: Graph | None, pack: int) -> int:
    """Of what load reads, or where it reads none, of one such row of store (HeldInputs)."""
    late = _row_bytes(store_operands(kind, store), pack)
    return _row_bytes(matrices(kind, load), pack) or (late if late <= 16 else 0)


def late_bytes(kind: Kind, load: Graph | None, store: Graph | None, pack: int) -> int:
    """Of what store reads, where that is not common_bytes (fused/pair.cuh)."""
    late = _row_bytes(store_operands(kind, store), pack)
    beside = late > 16 or _row_bytes(matrices(kind, load), pack)
    return late if beside else 0


def operands_of_all(kind: Kind, load: Graph | None, store: Graph | None) -> dict[str, str]:
    """The dtype of each matrix that is read and serves all rows; copied for odd ones."""
    found = load_operands(kind, load) + store_operands(kind, store)
    return {n: o.dtype for n, o in found if (o.form, o.rows) == ("matrix", "none")}


def load_operands(kind: Kind, load: Graph | None) -> list[tuple[str, Operand]]:
    kept = matrices(kind, load)
    return kept + [item for item in _operands(kind, load).items() if item not in kept]


def norm_weights(kind: Kind) -> list[tuple[str, Operand]]:
    """A norm's own weight and bias where they are applied by the Store: of whole rows."""
    is_norm = kind.whole and kind.base.endswith("norm")
    return [item for item in kind.operands if is_norm and item[0] in ("weight", "bias")]


def store_operands(kind: Kind, store: Graph | None) -> list[tuple[str, Operand]]:
    given = [] if store is None else list(_operands(kind, store).items())
    return norm_weights(kind) + given
