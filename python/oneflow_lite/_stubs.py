# SPDX-License-Identifier: Apache-2.0
"""Writes _C.pyi, the types of the functions, from the signatures they are registered with.

python -m oneflow_lite._stubs            # to the standard output
python -m oneflow_lite._stubs PATH       # to a file
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from oneflow_lite import _oneflow_lite as _ext

_HEADER = '''# SPDX-License-Identifier: Apache-2.0
# Written by `python -m oneflow_lite._stubs`; the signatures are in functional/*.cpp.
"""The registered functions, as C++ parses them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from oneflow_lite._oneflow_lite import Generator, Tensor
from oneflow_lite._oneflow_lite import device as _device
from oneflow_lite._oneflow_lite import dtype as _dtype

class _Sorted(NamedTuple):
    values: Tensor
    indices: Tensor
'''

_TYPES = {
    "Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "int": "int", "int[]": "Sequence[int]",
    "float": "float", "bool": "bool", "Scalar": "float", "Operand": "Tensor | float",
    "dtype": "_dtype", "Device": "_device | str | int", "str": "str", "Generator": "Generator",
}  # fmt: skip
_RESULTS = {"Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]",
            "(Tensor, Tensor)": "tuple[Tensor, Tensor]",
            "(Tensor values, Tensor indices)": "_Sorted"}  # fmt: skip
_RETURNS = {"max": "Any", "min": "Any"}  # a tensor, or with a dim the pair of values and indices


class _Argument:
    """One argument of a signature: "int? dim=None", or "*" before those by keyword only."""

    def __init__(self, text: str) -> None:
        kind, _, rest = text.rpartition(" ")
        self.name, _, default = rest.partition("=")
        kind = re.sub(r"\(a!?\)", "", kind)
        self.is_list = kind == "int[]"
        optional = kind.endswith("?")
        self.type = _TYPES[kind.removesuffix("?")] + (" | None" if optional else "")
        default = default.replace("'", '"')
        self.default = f" = {default}" if default else ""

    def __str__(self) -> str:
        return f"{self.name}: {self.type}{self.default}"


def _parse(signature: str) -> tuple[str, list[_Argument], list[_Argument], str]:
    """The name, the arguments by place, those by keyword only, the type of the result."""
    match = re.fullmatch(r"(\w+)\((.*?)\) -> (.*)", signature)
    assert match, signature
    texts = [text for text in match[2].split(", ") if text]
    star = texts.index("*") if "*" in texts else len(texts)
    result = _RETURNS.get(match[1], _RESULTS[match[3]])
    return (match[1], [*map(_Argument, texts[:star])], [*map(_Argument, texts[star + 1 :])], result)


def _line(name: str, arguments: list[str], result: str, indent: str, overload: bool) -> str:
    head = f"{indent}@overload\n" if overload else ""
    text = f"{head}{indent}def {name}({', '.join(arguments)}) -> {result}: ..."
    if max(map(len, text.splitlines())) <= 100:
        return text
    inner = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{head}{indent}def {name}(\n{inner}{indent}) -> {result}: ..."


def _definition(signature: str, *, method: bool) -> str:
    name, places, keywords, result = _parse(signature)
    first = ["self"] if method else []
    places = places[1:] if method else places
    keywords = [*map(str, keywords)]
    if not method:  # out= writes the result; a tensor for each of several
        several = "" if result == "Tensor" else " | Sequence[Tensor]"
        keywords.append(f"out: Tensor{several} | None = None")
    by_keyword = ["*", *keywords] if keywords else []
    indent = "    " if method else ""
    # An int[] at the end may be spread: zeros(2, 3), x.view(2, 3).
    spread = bool(places) and places[-1].is_list and not places[-1].default
    arguments = [*first, *map(str, places), *by_keyword]
    lines = [_line(name, arguments, result, indent, spread)]
    if spread:
        front = [*first, *map(str, places[:-1]), f"*{places[-1].name}: int"]
        lines.append(_line(name, [*front, *keywords], result, indent, True))
    return "\n".join(lines)


def stub(functions: list[dict[str, Any]]) -> str:
    """The text of _C.pyi for what ``list_functions()`` gives."""
    plain = [f["signature"] for f in functions if not f["method_only"]]
    methods = [f["signature"] for f in functions if f["method"] or f["method_only"]]
    return "\n".join(
        [
            _HEADER,
            *(_definition(signature, method=False) for signature in plain),
            "",
            "class TensorFunctions:",
            *(_definition(signature, method=True) for signature in methods),
            "",
        ]
    )


if __name__ == "__main__":
    text = stub(_ext.list_functions())
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
