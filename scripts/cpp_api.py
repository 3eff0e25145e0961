# SPDX-License-Identifier: Apache-2.0
"""Writes docs/cpp_api.md: the headers, every functor of functional/*.h, and its names in Python.

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

[examples/digits.cpp](../examples/digits.cpp) is a whole program, which trains a classifier.

## What a program includes

Functions lie in `oneflow_lite::functional`, autograd's in `oneflow_lite::autograd`, all else in
`oneflow_lite`.

{headers}

What differs from LibTorch:

- No call throws. Each gives a `StatusOr<Tensor>` or a `Status`. `OFL_ASSIGN_OR_RETURN` takes the
  tensor out. `*Relu(x)` takes it too, and ends the process where the call failed.
- `status.message()` is the error's text and `KindOf(status)` its kind. `std::cout << status` prints
  Abseil's code instead of the kind.
- `x.data<float>()` ends the process where `x` is not float32.
- `autograd::Backward({{loss}}, {{}})` takes two lists. Without gradients of the outputs it begins
  with ones.
- Steps of optimizers and functions in place on parameters stand below a `GradGuard no_grad(false)`.
  `autograd::SetGrad(w, Tensor())` clears a gradient.
- A function with a backward of its own is a subclass of `Node`. Its `edges` are
  `autograd::GradientEdge(x)` of the inputs. The forward computes `y` below a `GradGuard
  no_grad(false)`, and `autograd::SetHistory(y, node, 0)` makes the node its producer.

## Every functor

Every functor that `functional/` declares, by its header; a functor's comment there is its contract.
Behind a functor stand the functions and methods of Python that come to it. "Into" says that the
first argument is changed in place: `lerp_` is `LerpInto`. Names of `flow.linalg` and `flow.special`
have that in front. `scripts/cpp_api.py` writes this page from the headers and from the
registrations, of which each names its functor (`oneflow_lite/framework/function.h`).
"""

# Headers beside functional/*.h, and the names in them that a program meets first.
HEADERS = {
    "oneflow_lite/core/tensor.h": ("Tensor", "shape", "dtype", "device", "data", "defined"),
    "oneflow_lite/core/shape.h": ("Shape", "Dims"),
    "oneflow_lite/core/dtype.h": ("DType", "kFloat32", "kInt64", "VisitFloating"),
    "oneflow_lite/core/device.h": ("Device", "DeviceType"),
    "oneflow_lite/core/scalar.h": ("Scalar",),
    "oneflow_lite/core/ref.h": ("Ref", "MakeRef"),
    "oneflow_lite/core/status.h": (
        "Status", "StatusOr", "ErrorKind", "KindOf", "OFL_ASSIGN_OR_RETURN", "OFL_RETURN_IF_ERROR",
    ),
    "oneflow_lite/core/generator.h": ("Generator", "DefaultGenerator", "ManualSeed"),
    "oneflow_lite/framework/autograd.h": (
        "SetRequiresGrad", "Backward", "Grad", "SetGrad", "Gradients", "AddHook", "RetainGrad",
        "GradientEdge", "SetHistory",
    ),
    "oneflow_lite/framework/node.h": ("Node", "Edge"),
    "oneflow_lite/framework/dispatch.h": ("GradGuard", "GradEnabled", "DispatchMode", "ModeGuard"),
    "oneflow_lite/framework/autocast.h": ("AutocastGuard", "AutocastOptions"),
    "oneflow_lite/framework/function.h": ("Operand",),
    "oneflow_lite/framework/op_expr.h": ("OpBuilder", "Call"),
    "oneflow_lite/framework/extension.h": ("LoadExtension",),
    "functional/creation.h": ("SizeList",),
    "functional/adam.h": ("AdamOptions", "AdamLists"),
    "functional/multi_tensor.h": ("SgdOptions", "StepNumbers"),
    "functional/attention.h": ("AttentionOptions",),
    "functional/norm.h": ("NormGradientInputs",),
}  # fmt: skip
NOTES = {
    "Scalar": "a bool, an integer or a double",
    "Operand": "a `Tensor` or a `Scalar`",
    "Dims": "a list of int64",
    "SizeList": "a span of int64: `{2, 3}`",
    "Call": "runs an op by its `OpExpr`, one of a loaded library too",
    "GradGuard": "switches recording off or on in its scope",
    "MakeRef": "makes a counted object",
}


def headers() -> str:
    """The table of the headers and what is in them."""

    def shown(name: str) -> str:
        return f"`{name}`" + (f" ({NOTES[name]})" if name in NOTES else "")

    rows = [f"| `{path}` | {', '.join(map(shown, names))} |" for path, names in HEADERS.items()]
    return "\n".join(["| header | has |", "|---|---|", *rows])


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
    parts, names = [HEAD.format(headers=headers())], python_names()
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
