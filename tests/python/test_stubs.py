# SPDX-License-Identifier: Apache-2.0
"""The committed stub is what the registered signatures give, and it parses."""

import ast
import inspect
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import _oneflow_lite, _stubs  # noqa: E402

STUB = Path(flow.__file__).with_name("_C.pyi")


def test_stubs_are_current():
    for path, text in _stubs.written(STUB.parent).items():
        assert path.read_text(encoding="utf-8") == text, (
            "run: python -m oneflow_lite._stubs python/oneflow_lite"
        )


def test_every_public_name_is_typed():
    """A type checker reads __init__.pyi: what it lacks is an error in a typed program."""
    tree = ast.parse(STUB.with_name("__init__.pyi").read_text(encoding="utf-8"))
    names = {"__dir__", "__getattr__", "__all__"}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names.add((node.targets[0] if isinstance(node, ast.Assign) else node.target).id)
    here = {name for name in dir(flow) if not name.startswith("__")}
    assert here | {"__version__", "__config__"} <= names


@pytest.mark.parametrize("name", ["_C.pyi", "__init__.pyi", "_composed.pyi", "_oneflow_lite.pyi"])
def test_stubs_parse(name):
    ast.parse(STUB.with_name(name).read_text(encoding="utf-8"))


def test_stub_names_every_function():
    names = {node.name for node in ast.parse(STUB.read_text(encoding="utf-8")).body
             if isinstance(node, ast.FunctionDef)}  # fmt: skip
    assert names == {name for name in dir(flow._C) if not name.startswith("_")}


def test_stub_names_every_public_name_of_the_extension():
    tree = ast.parse(STUB.with_name("_oneflow_lite.pyi").read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    public = {name for name in dir(_oneflow_lite) if not name.startswith("_")}
    assert {name for name in names if not name.startswith("_")} == public


def test_stub_names_every_attribute_of_tensor():
    tree = ast.parse(STUB.with_name("_oneflow_lite.pyi").read_text(encoding="utf-8"))
    functions = ast.parse(STUB.read_text(encoding="utf-8"))
    composed = ast.parse(STUB.with_name("_composed.pyi").read_text(encoding="utf-8"))
    names = set()
    for node in (*tree.body, *functions.body, *composed.body):
        if isinstance(node, ast.ClassDef) and node.name in ("Tensor", "TensorFunctions"):
            for item in node.body:
                if isinstance(item, ast.FunctionDef):
                    names.add(item.name)
                elif isinstance(item, ast.AnnAssign):
                    names.add(item.target.id)
    public = {n for n in dir(flow.Tensor) if not n.startswith("_") and hasattr(flow.Tensor, n)}
    assert public - names == set()


def test_functions_show_their_signature():
    assert str(inspect.signature(flow.softmax)) == "(input, dim=None, dtype=None)"
    assert "Softmax" in flow.softmax.__doc__
