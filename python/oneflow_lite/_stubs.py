# SPDX-License-Identifier: Apache-2.0
"""Writes _C.pyi, the types of the functions, from the signatures they are registered with, and
__init__.pyi, which says where each public name of the package comes from.

python -m oneflow_lite._stubs python/oneflow_lite    # the folder they go to
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
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

class _Extremes(NamedTuple):
    min: Tensor
    max: Tensor
'''

_TYPES = {
    "Tensor": "Tensor", "Tensor[]": "Sequence[Tensor]", "int": "int",
    "Tensor...": "Tensor | Sequence[Tensor]",
    "int[]": "int | Sequence[int]", "float": "float", "bool": "bool", "Scalar": "float",
    "Operand": "Tensor | float",
    "dtype": "_dtype", "Device": "_device | str | int", "str": "str", "Generator": "Generator",
}  # fmt: skip
_RESULTS = {"Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]", "Tensor...": "Any",
            "bool": "bool", "(Tensor, Tensor)": "tuple[Tensor, Tensor]",
            "(Tensor values, Tensor indices)": "_Sorted",
            "(Tensor min, Tensor max)": "_Extremes"}  # fmt: skip


# Results by name that are not in the table above: the type that each function's are of.
def _result(text: str) -> str:
    fields = re.findall(r"Tensor (\w+)", text)
    return _RESULTS[text] if text in _RESULTS else "_" + "".join(map(_capitalised, fields))


def _capitalised(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _result_types(functions: list[dict[str, Any]]) -> list[str]:
    """The definitions of the named tuples that _result speaks of."""
    texts = {f["signature"].partition(" -> ")[2] for f in functions}
    return [
        "\n".join([f"class {_result(text)}(NamedTuple):",
                   *(f"    {field}: Tensor" for field in re.findall(r"Tensor (\w+)", text)), ""])
        for text in sorted(texts - set(_RESULTS))
    ]  # fmt: skip


# Without a dim a tensor, with one the pair of values and indices.
_BY_DIM = ("max", "min", "median", "nanmedian")
# What is asked for: a tensor, or several.
_AS_ASKED = ("unique", "unique_consecutive")


# NumPy's names for arguments, which functions of any language understand.
_AXIS, _KEEP = ("dim", "dims"), "keepdim"


class _Argument:
    """One argument of a signature: "int? dim=None", or "*" before those by keyword only."""

    def __init__(self, text: str) -> None:
        kind, _, rest = text.partition(" ")
        self.name, _, default = rest.partition("=")
        kind = re.sub(r"\(a!?\)", "", kind)
        self.is_list = kind.removesuffix("?") == "int[]"
        optional = kind.endswith("?")
        self.type = _TYPES[kind.removesuffix("?")] + (" | None" if optional else "")
        default = default.replace("'", '"')
        if default.startswith("["):  # "[0 1]"
            default = f"({', '.join(default[1:-1].split())})"
        self.spread = kind == "Tensor..."
        self.default = f" = {default}" if default else ""

    def __str__(self) -> str:
        return f"{'*' * self.spread}{self.name}: {self.type}{self.default}"


def _parse(signature: str) -> tuple[str, list[_Argument], list[_Argument], str]:
    """The name, the arguments by place, those by keyword only, the type of the result."""
    match = re.fullmatch(r"(\w+)(?:\.\w+)?\((.*?)\) -> (.*)", signature)
    assert match, signature
    texts = [text for text in match[2].split(", ") if text]
    star = texts.index("*") if "*" in texts else len(texts)
    places, keywords = [*map(_Argument, texts[:star])], [*map(_Argument, texts[star + 1 :])]
    result = "Any" if match[1] in _AS_ASKED else _result(match[3])
    return match[1], places, keywords, result


def _line(name: str, arguments: list[str], result: str, indent: str, overload: bool) -> str:
    head = f"{indent}@overload\n" if overload else ""
    text = f"{head}{indent}def {name}({', '.join(arguments)}) -> {result}: ..."
    if max(map(len, text.splitlines())) <= 100:
        return text
    inner = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{head}{indent}def {name}(\n{inner}{indent}) -> {result}: ..."


def _is_spread(places: list[_Argument]) -> bool:
    """Whether the last is an int[] that may be given one by one: zeros(2, 3), x.view(2, 3)."""
    if not places or not places[-1].is_list or places[-1].default not in ("", " = None"):
        return False
    return [a.type for a in places[:-1]] in ([], ["Tensor"])


def _definitions(function: dict[str, Any], *, method: bool) -> str:
    """A function, or its overloads one after another."""
    several = len(function["overloads"]) > 0
    one = [_definition(function["signature"], method=method, overloaded=several)]
    # What x.view(*size) has beside it bears the name that introspection sees.
    places = _parse(function["signature"])[1]
    called = places[-1].name if method and _is_spread(places) else None
    others = [
        _definition(signature, method=method, overloaded=True, called=called)
        for signature in function["overloads"]
    ]
    return "\n".join([*one, *others])


def _by_numpy_names(
    name: str, places: list[_Argument], keywords: list[_Argument], end: list[str]
) -> list[list[str]]:
    """The arguments with axis for dim, keepdims for keepdim, and both: by keyword from there on."""
    if places and places[0].spread:
        return []
    every = [*places, *keywords]
    names = [a.name for a in every]
    forms = []
    for axis, keep in ((True, False), (True, True), (False, True)):
        renamed = {n: "axis" for n in _AXIS if axis and n in names}
        renamed |= {_KEEP: "keepdims"} if keep and _KEEP in names else {}
        if len(renamed) != axis + keep:
            continue
        at = min(len(places), *(names.index(n) for n in renamed))
        rest = [f"{renamed[a.name]}: {a.type}" if a.name in renamed else str(a) for a in every[at:]]
        form = [*map(str, every[:at]), "*", *rest, *end]
        forms.append([_with_dim(text) if name in _BY_DIM else text for text in form])
    return forms


def _with_dim(argument: str) -> str:
    """An argument of a function of _BY_DIM where it gives the pair."""
    return re.sub(r"^(dim|axis): int \| None( = None)?", r"\1: int", argument)


def _definition(
    signature: str, *, method: bool, overloaded: bool = False, called: str | None = None
) -> str:
    name, places, keywords, result = _parse(signature)
    first = ["self"] if method else []
    places = places[1:] if method else places
    if called:
        places[-1].name = called
    several = "" if result == "Tensor" else " | Sequence[Tensor]"
    # out= writes the result; a tensor for each of several, and no number
    out = [] if method or result == "bool" else [f"out: Tensor{several} | None = None"]
    renamed = _by_numpy_names(name, places, keywords, out)
    keywords = [*map(str, keywords), *out]
    spread_tensors = bool(places) and places[0].spread
    by_keyword = keywords if spread_tensors else ["*", *keywords] if keywords else []
    indent = "    " if method else ""
    others = [_line(name, [*first, *form], result, indent, True) for form in renamed]
    if name in _BY_DIM:
        pair = [*first, *(_with_dim(str(a)) for a in places), *by_keyword]
        only = [*first, *(str(a) for a in places if a.name == "input"), "dim: None = None",
                *by_keyword]  # fmt: skip
        return "\n".join([_line(name, only, "Tensor", indent, True),
                          _line(name, pair, result, indent, True), *others])  # fmt: skip
    spread = _is_spread(places)
    arguments = [*first, *map(str, places), *by_keyword]
    lines = [_line(name, arguments, result, indent, spread or overloaded or bool(others))]
    if spread:
        front = [*first, *map(str, places[:-1]), f"*{places[-1].name}: int"]
        lines.append(_line(name, [*front, *keywords], result, indent, True))
    return "\n".join([*lines, *others])


def stub(functions: list[dict[str, Any]]) -> str:
    """The text of _C.pyi for what ``list_functions()`` gives."""
    plain = [f for f in functions if not f["method_only"]]
    methods = [f for f in functions if f["method"] or f["method_only"]]
    return "\n".join(
        [
            _HEADER,
            *_result_types(functions),
            *(_definitions(f, method=False) for f in plain),
            "",
            "class TensorFunctions:",
            *(_definitions(f, method=True) for f in methods),
            "",
        ]
    )


_FACE = '''# SPDX-License-Identifier: Apache-2.0
# Written by `python -m oneflow_lite._stubs`.
"""The public names, from the modules that define them."""

'''
# Where values come from that do not say so.
_PLACES = ("_oneflow_lite", "_C", "_layouts", "_process", "_serialization", "op_check")
_HEAD = """from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from oneflow_lite._config import Config as _Config
"""


def _source(name: str, value: Any) -> tuple[str, str]:
    """The module that defines a public name, and its name there."""
    if inspect.isfunction(value):
        inner = inspect.unwrap(value)
        return inner.__module__.removeprefix("oneflow_lite."), inner.__name__
    if isinstance(value, type) and value.__module__.startswith("oneflow_lite."):
        return value.__module__.removeprefix("oneflow_lite."), value.__name__
    for place in _PLACES:
        here = importlib.import_module(f"oneflow_lite.{place}")
        if getattr(here, name, None) is value:
            return place, name
        for other, same in vars(here).items():
            if same is value and not other.startswith("_"):
                return place, other
    raise LookupError(f"where flow.{name} comes from is not known")


def face(package: types.ModuleType) -> str:
    """The text of __init__.pyi: each public name imported from the module that defines it."""
    typed = importlib.import_module("oneflow_lite._typed_tensors").TYPES
    lines, own = set(), []
    for name in dir(package):
        value = getattr(package, name)
        if name.startswith("__") or name in ("e", "inf", "nan", "newaxis", "pi"):
            continue
        if isinstance(value, types.ModuleType) or name == "ops":
            lines.add(f"from oneflow_lite import {name} as {name}")
        elif name in typed:
            own.append(f"{name} = Tensor")
        elif inspect.isfunction(value) and inspect.unwrap(value).__module__ == package.__name__:
            own.append(_own_function(name, inspect.unwrap(value)))
        else:
            module, there = _source(name, value)
            same = there == name  # another one would not be exported
            lines.add(f"from oneflow_lite.{module} import {there} as {'' if same else '_'}{there}")
            own += [] if same else [f"{name} = _{there}"]
    front = ["from builtins import bool as _bool", "from builtins import int as _int"]
    values = sorted(line for line in own if not line.startswith("def "))
    functions = sorted(line for line in own if line.startswith("def "))
    own = ["__config__: _Config", "__version__: str", "newaxis: None"]
    end = ["", *values, *own, "", *functions, ""]
    text = "\n".join([*front, _HEAD.rstrip(), *sorted(lines), *end])
    return _FACE + text


def _own_function(name: str, function: Any) -> str:
    signature = str(inspect.signature(function)).replace("'", "")
    return f"def {name}{signature}: ...".replace("_builtins.", "_").replace("oneflow_lite.", "")


def written(folder: Path) -> dict[Path, str]:
    """The stubs of this package as they should be, by their paths."""
    package = importlib.import_module("oneflow_lite")
    texts = {"_C.pyi": stub(_ext.list_functions()), "__init__.pyi": face(package)}
    return {folder / name: text for name, text in texts.items()}


def _write(folder: Path) -> None:
    for path, text in written(folder).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write(Path(sys.argv[1]))
