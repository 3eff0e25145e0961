# SPDX-License-Identifier: Apache-2.0
"""flow.fuse: what can be traced, and what an error says."""

import math
import pickle
import pydoc

import numpy as np
import pytest
from numerics import tensor

flow = pytest.importorskip("oneflow_lite")

fuse = flow.fuse


def test_repr_shows_the_expression():
    op = fuse.softmax(load=lambda x, bias, scale=2.0: x * scale + bias, store=lambda y: 1 - y)
    assert repr(op) == (
        "<fuse.softmax(x, bias, scale=2.0, *, dim=None), load = x * scale + bias, store = 1 - y>"
    )
    op = fuse.rms_norm(load=lambda x: (fuse.exp(x) + 1) / (fuse.exp(x) - (x - 1) * -3))
    assert "load = t0 = exp(x); (t0 + 1) / (t0 - (x - 1) * -3)" in repr(op)


def test_a_helper_and_a_closure_are_followed():
    factor = 3.0

    def gelu(v):
        return v * fuse.sigmoid(v * 1.702)

    op = fuse.softmax(load=lambda x: gelu(x) * factor)
    assert str(op.load) == "x * sigmoid(x * 1.702) * 3"
    for written in (lambda x: 0.5 * x * (1 + x.tanh())), (lambda x: 0.5 * x * (x.tanh() + 1)):
        assert str(fuse.softmax(load=written).load) == "0.5 * x * (2 * sigmoid(2 * x))"


def test_parameters_by_name_and_defaults():
    x = flow.randn(3, 4)
    op = fuse.softmax(load=lambda x, bias, scale=2.0: x * scale + bias)
    want = op(x, 1.0, 2.0, dim=-1).tolist()
    assert op(x, bias=1.0, dim=-1).tolist() == want
    assert op(scale=2, bias=np.float32(1), x=x, dim=-1).tolist() == want


PLACE = flow.ones(3)
WRONG = {
    "if": (lambda x: x if x > 0 else 0 * x, "where(condition, a, b)"),
    "and": (lambda x: (x > 0) and (x < 1), "where(condition, a, b)"),
    "max": (lambda x: max(x, 0), "maximum"),
    "reduction": (lambda x: x - x.sum(), "one element at a time"),
    "index": (lambda x: x[0], "one element at a time"),
    "len": (lambda x: x / len(x), "one element at a time"),
    "iteration": (lambda x: [v for v in x][0], "one element at a time"),
    "in place": (lambda x: x.add_(1), "in place"),
    "math": (lambda x: math.exp(x), "module math"),
    "numpy": (lambda x: np.exp(x), "from flow.fuse"),
    "unknown function": (lambda x: flow.softmax(x), "of whole tensors; it cannot be fused"),
    "of nn": (lambda x: flow.nn.functional.relu(x), "write flow.fuse.relu(...), or relu()"),
    "bits": (lambda x: x & 1, "& is of conditions"),
    "bits of one": (lambda x: (x > 0) | x, "| is of conditions"),
    "bits inverted": (lambda x: ~(x + 1), "~ is of conditions"),
    "unknown name": (lambda x: flow.no_such(x), "no_such"),
    "unknown method": (lambda x: x.no_such(), "there is no no_such"),
    "power": (lambda x: x**0.5, "from 1 to 8"),
    "tensor": (lambda x: x + PLACE, "make it a parameter"),
    "tensor first": (lambda x: PLACE * x, "make it a parameter"),
    "any number": (lambda *x: x[0], "no fixed number of parameters"),
    "none": (lambda: 1.0, "no parameter"),
    "two results": (lambda x: (x, x), "one number per element"),
    "no result": (lambda x: None, "one number per element"),
    "error": (lambda x: 1 // 0 + x, "ZeroDivisionError"),
    "too many": (lambda x: fuse.where(x, x), "takes 3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_traced_says_why_and_where(name):
    function, why = WRONG[name]
    with pytest.raises(fuse.TraceError) as error:
        fuse.softmax(load=function)
    text = str(error.value)
    assert text.startswith("fuse.softmax(load=...): ") and why in text
    assert f'"{name}": (lambda' in text and "test_fuse_tracing.py:" in text
    assert isinstance(error.value, TypeError)


def test_in_place_operators():
    def load(x):
        x += 1
        return x

    with pytest.raises(fuse.TraceError, match="write x = x \\+ y"):
        fuse.softmax(load=load)


def test_names_that_clash():
    with pytest.raises(fuse.TraceError, match="bias is an argument of layer_norm"):
        fuse.layer_norm(load=lambda x, bias: x + bias)
    with pytest.raises(fuse.TraceError, match="y is the result in store"):
        fuse.softmax(load=lambda x, y: x + y, store=lambda y: y)
    with pytest.raises(fuse.TraceError, match="a function is wanted"):
        fuse.softmax(load=3)
    with pytest.raises(fuse.TraceError, match="default of b"):
        fuse.softmax(load=lambda x, b=None: x)


def test_masks_and_truth_values_are_conditions():
    op = fuse.softmax(load=lambda x, keep, scale: fuse.where(keep & (x > 0) & True, x * scale, 0))
    x, keep = flow.tensor([[1.0, -1.0, 2.0]]), flow.tensor([[True, True, False]])
    assert op(x, keep, 2.0, dim=1).tolist() == flow.softmax(
        flow.tensor([[2.0, 0.0, 0.0]]), 1).tolist()  # fmt: skip


def test_help_shows_the_op_itself():
    op = fuse.softmax(load=lambda x, scale: x * scale)
    text = pydoc.render_doc(op, renderer=pydoc.plaintext)
    assert "fuse.softmax(x, scale, *, dim=None)" in text and "load = x * scale" in text
    assert "Methods defined here" not in text


def test_a_fused_op_is_pickled():
    op = fuse.rms_norm(load=lambda x, b: x + b, store=lambda y, gain=2.0: y * gain)
    again = pickle.loads(pickle.dumps(op))
    assert repr(again) == repr(op)
    x = tensor(np.random.default_rng(11).normal(size=(3, 5)), "float32")
    same = again(x, 1.0, normalized_shape=5) == op(x, 1.0, normalized_shape=5)
    assert same.all()


def test_wrong_calls():
    op = fuse.softmax(load=lambda x, b: x + b)
    x = flow.ones(2, 3)
    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        op(x)
    with pytest.raises(TypeError, match="unexpected keyword argument 'dm'; did you mean 'dim'"):
        op(x, 1.0, dm=1)
    with pytest.raises(TypeError, match="b must be a tensor or a number, not str"):
        op(x, "1")
    with pytest.raises(TypeError, match="x must be a tensor, not float"):
        op(1.0, x)
    with pytest.raises(flow.ShapeError, match=r"b of shape \[2\] does not broadcast"):
        op(x, flow.ones(2))
    with pytest.raises(flow.ShapeError, match="does not broadcast"):
        op(x, flow.ones(4, 2, 3))
    with pytest.raises(flow.DTypeError, match="not int64"):
        op(x.long(), 1.0)
    with pytest.raises(IndexError):
        op(x, 1.0, dim=2)
    with pytest.raises(TypeError, match="normalized_shape"):
        fuse.layer_norm()(x)
