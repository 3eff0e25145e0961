# SPDX-License-Identifier: Apache-2.0
"""Writes docs/cpp_api.md: every functor of functional/*.h, by header, and its names in Python.

.venv/bin/python scripts/cpp_api.py         # to the standard output
.venv/bin/python scripts/cpp_api.py PATH    # to a file
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from oneflow_lite import _oneflow_lite as ext

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# The C++ API

Every functor that `functional/` declares, by its header; a functor's comment there is its contract.
All are in the namespace `oneflow_lite::functional`. Behind a functor stand the functions and
methods of Python that come to it. "Into" says that the first argument is changed in place: `lerp_`
is `LerpInto`. Names of `flow.linalg` and `flow.special` have that in front. `scripts/cpp_api.py`
writes this page from the headers and from the registrations, of which each names its functor
(`oneflow_lite/framework/function.h`).
"""


def headline(text: str) -> str:
    """The first sentence of a header's opening comment."""
    lines = []
    for line in text.splitlines()[1:]:
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    prose = " ".join(lines).strip()
    return re.split(r"(?<=[.:])\s", prose, maxsplit=1)[0].rstrip(":").rstrip(".") + "."


def functors(text: str) -> list[str]:
    """The declarations of a header that the library exports, one line each."""
    found = re.findall(r"^OFL_API ([^;]+\));", text, re.MULTILINE)
    return [" ".join(declaration.split()) for declaration in found]


def name_of(declaration: str) -> str:
    """The functor's name: Softmax of "StatusOr<Tensor> Softmax(const Tensor& x, ...)"."""
    return re.search(r"(\w+)\(", declaration)[1]


def declared() -> dict[str, str]:
    """The header of each functor that the library exports, by the functor's name."""
    return {
        name_of(declaration): path.name
        for path in sorted((ROOT / "functional").glob("*.h"))
        for declaration in functors(path.read_text(encoding="utf-8"))
    }


def registered() -> list[tuple[str, str]]:
    """The functions of Python, one by one with their overloads, and the functor of each."""
    return [
        (function["name"], functor)
        for function in ext.list_functions()
        for functor in function["functors"]
    ]


def python_names() -> dict[str, list[str]]:
    """The names in Python of each functor."""
    names: dict[str, list[str]] = {}
    for name, functor in registered():
        if name not in names.setdefault(functor, []):
            names[functor].append(name)
    return names


def page() -> str:
    """The whole page."""
    parts, names = [HEAD], python_names()
    for path in sorted((ROOT / "functional").glob("*.h")):
        text = path.read_text(encoding="utf-8")
        if found := functors(text):
            body = "\n".join(
                f"{declaration};" + "".join(f"  // {', '.join(called)}" for called in
                                            [names.get(name_of(declaration))] if called)
                for declaration in found
            )  # fmt: skip
            parts.append(f"## functional/{path.name}\n\n{headline(text)}\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
