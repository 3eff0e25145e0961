# SPDX-License-Identifier: Apache-2.0
"""Writes docs/what_there_is.md from the package that is installed.

.venv/bin/python scripts/what_there_is.py         # to the standard output
.venv/bin/python scripts/what_there_is.py PATH    # to a file
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oneflow_lite as flow
from oneflow_lite._absent import ABSENT

HEAD = """\
# What there is

The public names by module, with `import oneflow_lite as flow`. What has a name of PyTorch's has its
meaning, but for [a few](arrays_and_arguments.md#the-same-name-another-result);
`help(flow.softmax)` shows a signature. `scripts/what_there_is.py` writes this page from the
package, and a test compares them.
"""
MODULES = ["amp", "backends", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn",
           "optim", "optim.lr_scheduler", "optim.swa_utils", "autograd", "autograd.functional",
           "linalg", "special", "cuda", "cuda.amp", "utils", "utils.data", "utils.checkpoint",
           "fuse", "profiler", "random"]  # fmt: skip
NOT = """\
## What is not there

A well-known name that is absent says in its AttributeError what to use instead:

| not there | names | instead |
|---|---|---|"""


def public(module: types.ModuleType) -> list[str]:
    """``__all__``, or else what the module itself defines."""
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    return sorted(name for name, value in vars(module).items() if not name.startswith("_")
                  and getattr(value, "__module__", None) == module.__name__)  # fmt: skip


def paragraph(names: list[str]) -> str:
    text = ", ".join(f"`{name}`" for name in names)
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def kinds(value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return "Modules"
    if isinstance(value, flow.dtype):
        return "Dtypes"
    return "Types and constants" if isinstance(value, type) or not callable(value) else "Functions"


def page() -> Iterator[str]:
    """The page's paragraphs."""
    yield HEAD
    yield "## flow\n"
    found: dict[str, list[str]] = {"Functions": [], "Types and constants": []}
    for name in public(flow):
        found.setdefault(kinds(getattr(flow, name)), []).append(name)
    for kind, names in found.items():
        yield f"{kind}:\n\n{paragraph(names)}\n"
    yield "## flow.Tensor\n"
    yield "Methods and attributes; most functions of `flow` are methods too, not repeated here:\n"
    own = [n for n in dir(flow.Tensor) if not n.startswith("_") and hasattr(flow.Tensor, n)]
    yield paragraph([name for name in own if name not in flow.__all__]) + "\n"
    for name in MODULES:
        module = importlib.import_module(f"oneflow_lite.{name}")
        yield f"## flow.{name}\n"
        yield paragraph(public(module)) + "\n"
    yield NOT
    for absent in ABSENT:
        names = [f"`{module + '.' if module else ''}{name}`"
                 for module, some in absent.names.items() for name in some.split()]  # fmt: skip
        yield f"| {absent.what} | {', '.join(names)} | {absent.instead} |"


if __name__ == "__main__":
    text = "\n".join(page()) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
