# SPDX-License-Identifier: Apache-2.0
"""flow.fuse.elements: its source for CUDA compiles wherever there is NVRTC; what is kept of it."""

import gc
import re

import pytest
from fused_operands import made, same
from numerics import INTEGERS, flow

from oneflow_lite import _oneflow_lite as _ext

elements = flow.fuse.elements


def test_what_texts_make_is_let_go():
    """Expressions without end: the caches are begun anew."""
    x = flow.ones(2)
    for i in range(9000):
        flow.fuse_elements(f"x: x + {i}", [x])
    gc.collect()
    assert flow.fuse_elements("x: x + 1", [x])[0].tolist() == [2, 2]


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Compiles the source that a call would compile on CUDA; gives it."""
    if problem := _ext.compiler_problem():
        pytest.skip(problem)
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path))

    def compile_(text, tensors, numbers=0):
        results = flow.fuse_elements(text, tensors, numbers)
        source, kernel, fits = _ext.element_source(text, tensors, results, numbers)
        assert fits
        image = _ext.compile_kernel(source, kernel, 90)
        assert image.image[:4] == b"\x7fELF"
        return source, kernel

    return compile_


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "bfloat16"])
def test_every_function_compiles(compiled, dtype):
    every = _ext.element_functions()
    calls = [f"{name}({', '.join(['x', 'y', 'x'][:arity])})" for name, arity in every.items()
             if not name.startswith("bitwise")]  # fmt: skip
    calls = [call.replace("where(x,", "where(x > y,") for call in calls]
    text = "x, y: " + " ".join(f"r{i} = {call};" for i, call in enumerate(calls))
    text += " " + " + ".join(f"float32(r{i})" for i in range(len(calls)))
    compiled(text, [made((8, 8), dtype).t(), made((8, 8), dtype)])  # of one element at a time


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_functions_of_integers_compile(compiled, dtype):
    names = ["abs", "neg", "relu", "sign", "square", "floor", "round", "isnan", "isinf", "signbit",
             "bitwise_not", "logical_not", "isfinite", "exp"]  # fmt: skip
    names += ["add", "sub", "mul", "maximum", "minimum", "fmod", "remainder", "floor_divide", "pow",
              "eq", "lt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor", "div",
              "where"]  # fmt: skip
    if dtype == "bool":
        no = "neg abs relu sign square floor round sub fmod remainder floor_divide pow".split()
        names = [n for n in names if n not in no]
    every = _ext.element_functions()
    calls = [f"{name}({', '.join(['x', 'y', 'x'][: every[name]])})" for name in names]
    calls = [call.replace("where(x,", "where(x > y,") for call in calls]
    compiled(f"x, y: {' + '.join(f'float32({c})' for c in calls)}",
             [made((8, 8), dtype).t(), made((8, 8), dtype)])  # fmt: skip


@pytest.mark.slow
def test_every_layout_compiles(compiled):
    text = "x, y, s: x * y + s, float16(x), x > y"
    x, s = made((32, 64)), flow.tensor(0.5, dtype=flow.float64)
    seen = {}
    for name, other in {
        "dense": made((32, 64), "float16"), "row": made((64,)), "column": made((32, 1)),
        "one": made(()), "strided": made((64, 32)).t(), "byte": made((32, 64), "uint8"),
        "wide": made((32, 64), "float64"),
    }.items():  # fmt: skip
        source, kernel = compiled(text, [x, other, s], 4)
        seen[name] = re.search(r"Kernel<(\d), (\d)", kernel).groups()
        assert ("size1" in source) == (name in ("row", "column", "strided"))
    # Packs of 16 bytes of the widest, and about 64 bytes of inputs in flight.
    assert seen == {"dense": ("4", "3"), "row": ("4", "2"), "column": ("4", "2"), "one": ("4", "2"),
                    "strided": ("1", "4"), "byte": ("4", "3"), "wide": ("2", "3")}  # fmt: skip
    compiled("x: -x", [made((5, 4, 3, 2)).permute(3, 1, 0, 2)])
    compiled("x: x * 0.5 + inf - nan + -3", [made((7,))])
    many = [made((64,)) for _ in range(40)]
    compiled(f"{', '.join(f'a{i}' for i in range(40))}: "
             f"{' + '.join(f'a{i}' for i in range(40))}", many)  # fmt: skip


@pytest.mark.slow
def test_gradients_compile(compiled):
    text = "d0, x0, x1: t = sigmoid(x1); float16(d0 * t), d0 * x0 * (t * (1 - t))"
    compiled(text, [made((8, 64), "float16"), made((8, 64), "float16"), made((64,))])


@pytest.mark.cuda
def test_one_compilation_serves_many_shapes():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    op = elements(lambda x, b: flow.tanh(x) * b + 0.123)
    op(made((4, 64), device="cuda"), made((64,), device="cuda"))
    before = _ext.kernel_compilations()
    for rows, width in (64, 128), (1000, 4), (3, 65536), (1, 8):
        x, b = made((rows, width), device="cuda"), made((width,), device="cuda")
        same(op(x, b), flow.tanh(x) * b + 0.123)
    assert _ext.kernel_compilations() <= before + 2  # of rows alone, and of several dims


@pytest.mark.cuda
def test_in_a_graph():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    op = elements(lambda x, s: x * s + 1)
    x = made((1000,), device="cuda")
    op(x, 2.0)
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        y = op(x, 2.0)
    x.fill_(3.0)
    graph.replay()
    assert y[0].item() == 7.0
