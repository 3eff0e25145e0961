# SPDX-License-Identifier: Apache-2.0
"""Tensors as text; the style is PyTorch's."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
inf, nan = float("inf"), float("nan")


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: flow.tensor([[0.1, 0.2]]), "tensor([[0.1000, 0.2000]])"),
        (lambda: flow.tensor(1.5), "tensor(1.5000)"),
        (lambda: flow.tensor(3), "tensor(3)"),
        (lambda: flow.tensor([1.0, -2.0]), "tensor([ 1., -2.])"),
        (lambda: flow.tensor([1, -20]), "tensor([  1, -20])"),
        (lambda: flow.tensor([True, False]), "tensor([ True, False])"),
        (lambda: flow.tensor([nan, inf, -inf, 1.25]), "tensor([   nan,    inf,   -inf, 1.2500])"),
        (lambda: flow.tensor([nan, inf]), "tensor([nan, inf])"),
        (lambda: flow.tensor([1e-7, 1.0]), "tensor([1.0000e-07, 1.0000e+00])"),
        (lambda: flow.tensor([1e10]), "tensor([1.0000e+10])"),
        (lambda: flow.tensor([0.5], dtype=flow.float64),
         "tensor([0.5000], dtype=oneflow_lite.float64)"),
        (lambda: flow.tensor([0.5]).to(flow.bfloat16),
         "tensor([0.5000], dtype=oneflow_lite.bfloat16)"),
        (lambda: flow.tensor([0.5]).half(), "tensor([0.5000], dtype=oneflow_lite.float16)"),
        (lambda: flow.tensor([1], dtype=flow.uint8), "tensor([1], dtype=oneflow_lite.uint8)"),
        (lambda: flow.tensor([0.5], requires_grad=True), "tensor([0.5000], requires_grad=True)"),
        (lambda: flow.zeros(0), "tensor([])"),
        (lambda: flow.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lambda: flow.zeros(0, 3, dtype=flow.int64),
         "tensor([], size=(0, 3), dtype=oneflow_lite.int64)"),
        (lambda: flow.empty(2, 3, device="meta"), "tensor(..., size=(2, 3), device='meta')"),
        (lambda: flow.nn.Parameter(flow.ones(1)),
         "Parameter containing:\ntensor([1.], requires_grad=True)"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_small_tensors(make, text):
    assert repr(make()) == text == str(make())


def test_matrices_are_aligned():
    x = flow.tensor([[1.5, -10.25], [100.0, 0.125]])
    assert repr(x) == "tensor([[  1.5000, -10.2500],\n        [100.0000,   0.1250]])"


def test_blocks_are_apart():
    assert repr(flow.arange(8).reshape(2, 2, 2)) == (
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])"
    )


def test_results_name_their_function():
    x = flow.ones(2, requires_grad=True)
    assert "grad_fn=<softmax_backward>" in repr(flow.softmax(x, 0))
    assert "requires_grad" not in repr(flow.softmax(x, 0))


def test_long_rows_are_broken():
    lines = repr(flow.arange(100)).splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 82 for line in lines)
    assert {line.index(line.strip()[0]) for line in lines[1:]} == {8}


def test_large_tensors_show_their_edges():
    x = flow.arange(2000)
    assert repr(x) == "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])"
    y = flow.arange(10000).reshape(100, 100)
    assert repr(y) == (
        "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
        "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [9700, 9701, 9702,  ..., 9797, 9798, 9799],\n"
        "        [9800, 9801, 9802,  ..., 9897, 9898, 9899],\n"
        "        [9900, 9901, 9902,  ..., 9997, 9998, 9999]])"
    )


@pytest.mark.parametrize("shape", [(2, 1000), (1000, 2), (20, 7, 20), (3, 4, 5, 50)], ids=str)
def test_edges_are_those_of_the_tensor(shape):
    """The same text as NumPy's where the format is the same: integers."""
    x = np.arange(np.prod(shape)).reshape(shape)
    text = repr(flow.from_numpy(x))[len("tensor(") : -1]
    with np.printoptions(threshold=1000, edgeitems=3, linewidth=10000):
        expected = np.array2string(x, separator=", ", prefix="tensor(")
    assert text.replace("\n", "").replace(" ", "") == expected.replace("\n", "").replace(" ", "")


def test_views_show_what_they_see():
    x = flow.arange(6).reshape(2, 3).t()[1:]
    assert repr(x) == "tensor([[1, 4],\n        [2, 5]])"


def test_scalars_are_formatted_as_numbers():
    assert f"{flow.tensor(1.23456):.2f}" == "1.23"
    assert f"{flow.tensor(3)}" == "3" and f"{flow.tensor([1.0])}" == "tensor([1.])"


def test_printing_records_nothing_and_needs_no_gradient():
    x = flow.ones(2000, requires_grad=True)
    repr(x)
    assert x.grad is None and x.is_leaf


@pytest.mark.cuda
def test_cuda_tensors_name_their_device():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    assert repr(flow.ones(1, device="cuda")) == "tensor([1.], device='cuda:0')"
    x = flow.arange(10000).reshape(100, 100)
    assert repr(x.cuda()).replace(", device='cuda:0'", "") == repr(x)
