# SPDX-License-Identifier: Apache-2.0
"""CUDA source of a fused op: the structs of structs.py around an algorithm of the row family."""

from __future__ import annotations

import struct
from typing import Any

from oneflow_lite.fuse.expression import Graph
from oneflow_lite.fuse.kinds import (
    TYPES,
    Kind,
    compute_type,
    computes_again,
    load_operands,
    store_operands,
)
from oneflow_lite.fuse.structs import elements, store_functor

_BASES = {
    "softmax": ("softmax", "SoftmaxRow<false, Loaded<C>, FusedStore>"),
    "log_softmax": ("softmax", "SoftmaxRow<true, Loaded<C>, FusedStore>"),
    "layer_norm": ("norm", "NormRow<true, Loaded<C>, FusedStore>"),
    "rms_norm": ("norm", "NormRow<false, Loaded<C>, FusedStore>"),
}
_ROOMS = {"softmax": "softmax", "norm": "norms"}  # folders of primitive/cuda
ALGORITHM = "oneflow_lite::cuda::FusedAlgorithm"


def words_of(kind: Kind, load: Graph | None, store: Graph | None) -> int:
    """Words of 8 bytes that the algorithm's struct has; see launch_words."""
    fields = [load_operands(kind, load), store_operands(kind, store)]
    count = sum(len(o.fields(n)) for operands in fields for n, o in operands)
    norm = (8 if kind.dtype == "float64" else 7) if kind.base.endswith("norm") else 0
    return 1 + 2 + norm + 1 + count


def launch_words(
    kind: Kind, cols: int, y: int, load: list[int], store: list[int],
    norm: dict[str, Any] | None = None,
) -> list[int]:  # fmt: skip
    """The struct's words: FusedRow{base{Loaded, FusedStore, [extras]}, elements}."""
    words = [0, y, cols, *store]
    if norm:
        words += [norm["weight"], norm["bias"], int(norm["float_weight"]), cols, 0, 0]
        packed = "<dd" if kind.dtype == "float64" else "<ff"
        raw = struct.pack(packed, norm["eps"], 1 / cols)
        words += struct.unpack(f"<{len(raw) // 8}Q", raw)
    return [*words, cols, *load]


def number_word(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def generate(kind: Kind, load: Graph | None, store: Graph | None) -> str:
    """The translation unit, in which kernels over ALGORITHM are instantiated by name."""
    family, base = _BASES[kind.base]
    again = str(computes_again(kind, load)).lower()
    row = "WholeRow" if kind.whole else "FusedRow"
    flags = "" if kind.whole else f", {again}"
    headers = [f"{_ROOMS[family]}/forward", "fused/row", "rows/streamed"]
    if kind.whole:
        headers = ["fused/lanes", "fused/pair", f"fused/{family}"]
    includes = "".join(f"#include <primitive/cuda/{name}.cuh>\n" for name in headers)
    comments = "".join(
        f"// {g.role[g.role.index('(') + 1 : -5]} = {g}\n" for g in (load, store) if g
    )
    return f"""// flow.fuse.{kind.base}
{comments}{includes}
namespace oneflow_lite {{
namespace cuda {{

using T = {TYPES[kind.dtype]};
using C = {compute_type(kind)};
{elements(kind, load)}{store_functor(kind, store)}
using FusedAlgorithm = {row}<{base}, FusedElements{flags}>;
static_assert(sizeof(FusedAlgorithm) == {8 * words_of(kind, load, store)}, "the launcher's words");

}}  // namespace cuda
}}  // namespace oneflow_lite
"""
