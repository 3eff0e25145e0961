# SPDX-License-Identifier: Apache-2.0
"""flow.fuse: what can be traced, and what an error says."""

import copy
import functools
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


class Gate:
    """Functions that a traced one may call in ways of its own."""

    @staticmethod
    def of(v):
        return v * flow.sigmoid(v)

    def __call__(self, v):
        return flow.where(v > 0, self.of(v), flow.nn.functional.relu(input=-v))


def gate_of(v, exp=flow.exp):
    return v / (1 + exp(-v))


def test_helpers_may_call_the_library():
    one, partial = Gate(), functools.partial(flow.maximum, other=0.5)
    sigmoid = "x * sigmoid(x)"
    for load, shown in [
        (lambda x: Gate.of(x), sigmoid),
        (lambda x: one.of(x), sigmoid),
        (lambda x: one(x), "where(x > 0, x * sigmoid(x), relu(-x))"),
        (one, "where(v > 0, v * sigmoid(v), relu(-v))"),
        (lambda x: gate_of(x), "x / (1 + exp(-x))"),
        (lambda x: partial(x), "maximum(x, 0.5)"),
        (lambda x: [f(x) for f in (flow.exp, flow.abs)][0], "exp(x)"),
        (lambda x: flow.multiply(flow.negative(x), 2), "-x * 2"),
    ]:
        assert str(fuse.softmax(load=load).load) == shown
        x = flow.randn(3, 5)
        np.testing.assert_allclose(fuse.elements(load)(x), load(x), rtol=1e-6)
    assert fuse.elements(lambda x: math_of(x)).expression == "x: sin(x) + clamp_min(x, 0)"


def math_of(v):
    return flow.sin(v) + v.clamp(min=0)


def test_a_helper_that_cannot_be_followed_says_where():
    def helper(v):
        return v - flow.sum(v)

    for make in fuse.elements, lambda f: fuse.softmax(load=f):
        with pytest.raises(fuse.TraceError, match="this sum.. is a function of whole tensors") as e:
            make(lambda x: helper(x))
        assert "return v - flow.sum(v)" in str(e.value)


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
    "of nn": (lambda x: flow.nn.functional.silu(x), "silu() cannot be fused here; allowed are"),
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
    "numpy's where": (lambda x: np.where(x > 0, x, 0), "NumPy's functions are of whole arrays"),
    "numpy's sum": (lambda x: x - np.sum(x), "sum is of a whole tensor"),
    "number alone": (lambda x: x / fuse.sqrt(2.0), "take Python's: math.sqrt"),
    "numbers alone": (lambda x: x * fuse.maximum(1.0, 2), "take Python's: math.sqrt"),
    "complex": (lambda x: x * np.complex64(2j), "mul takes numbers, not complex64"),
    "too large": (lambda x: 10**400, "OverflowError: int too large"),
    "error": (lambda x: 1 // 0 + x, "ZeroDivisionError"),
    "too many": (lambda x: fuse.where(x, x), "takes 3"),
    "unknown keyword": (lambda x: flow.add(x, 1, alpha=2), "add(): got an unexpected keyword"),
    "of the method where": (lambda x: x.where(x > 0), "missing 1 required positional"),
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


def test_a_method_is_that_of_a_tensor():
    x, keep = flow.tensor([[1.0, -2.0, 3.0]]), flow.tensor([[True, False, True]])
    op = fuse.softmax(load=lambda x, keep: x.where(keep, -1.0))
    assert "load = where(keep, x, -1)" in repr(op)
    assert op(x, keep, dim=1).tolist() == flow.softmax(x.where(keep, -1.0), 1).tolist()
    for load in (lambda x, b: x.maximum(b), lambda x, b: flow.maximum(x, b)):
        assert str(fuse.softmax(load=load).load) == "maximum(x, b)"


@pytest.mark.parametrize(
    "load, shown",
    [
        (lambda x: flow.maximum(x, other=0), "maximum(x, 0)"),
        (lambda x: fuse.minimum(other=x, input=0), "minimum(0, x)"),
        (lambda x: x.maximum(other=0), "maximum(x, 0)"),
        (lambda x: x.where(other=0, condition=x > 1), "where(x > 1, x, 0)"),
        (lambda x: flow.where(x > 0, input=x, other=0), "where(x > 0, x, 0)"),
        (lambda x: flow.add(x, other=2), "x + 2"),
    ],
)
def test_arguments_by_name(load, shown):
    assert str(fuse.softmax(load=load).load) == shown


@pytest.mark.parametrize("name", ["exp", "where", "maximum", "relu"])
def test_a_function_as_a_whole(name):
    of_tensors, of_both = (fuse.softmax(load=getattr(m, name)) for m in (flow, fuse))
    assert repr(of_tensors) == repr(of_both) and f"load = {name}(" in repr(of_both)


def test_where_of_tensors_promotes():
    keep = flow.tensor([True, False])
    for a, b in [(1.5, 2.5), (flow.tensor([1, 2]), 2.5), (1, 2)]:
        got, want = fuse.where(keep, a, b), flow.where(keep, a, b)
        assert got.tolist() == want.tolist() and got.dtype is want.dtype
    numbers = fuse.where(flow.tensor([0.5, 0.0]), 1, flow.tensor([7.0, 8.0]))
    assert numbers.tolist() == [1, 8] and fuse.where(0, 1, keep).tolist() == [1, 0]
    assert fuse.where(0.5, flow.tensor([3]), 2.5).tolist() == [3.0]
    with pytest.raises(TypeError, match="one of condition, input and other must be a tensor"):
        fuse.where(1, 2, 3)


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
    with pytest.raises(fuse.TraceError, match="default of b is beyond a float"):
        fuse.softmax(load=lambda x, b=10**400: x)


def test_one_parameter_has_one_default():
    with pytest.raises(ValueError, match="b is one parameter of load and store, .* 1.0 and 2.0"):
        fuse.softmax(load=lambda x, b=1.0: x * b, store=lambda y, b=2.0: y * b)
    for load, store in [(lambda x=3.0: x, None), (None, lambda y=3.0: y),
                        (lambda x: x, lambda y, x=3.0: y * x)]:  # fmt: skip
        with pytest.raises(ValueError, match="[xy] is an element and can have no default, 3.0"):
            fuse.softmax(load=load, store=store)
    op = fuse.softmax(load=lambda x, b: x * b, store=lambda y, b=2.0: y * b)
    assert repr(op).startswith("<fuse.softmax(x, b=2.0, *, dim=None)")


def test_masks_and_truth_values_are_conditions():
    op = fuse.softmax(load=lambda x, keep, scale: fuse.where(keep & (x > 0) & True, x * scale, 0))
    x, keep = flow.tensor([[1.0, -1.0, 2.0]]), flow.tensor([[True, True, False]])
    assert op(x, keep, 2.0, dim=1).tolist() == flow.softmax(
        flow.tensor([[2.0, 0.0, 0.0]]), 1).tolist()  # fmt: skip


def test_conditions_are_0_or_1_in_either_order():
    x, m = flow.tensor([[1.0, 2.0, -1.0]]), flow.tensor([[2.0, 2.0, 2.0]])
    for load in (lambda x, m: ((x > 0) & m) * x, lambda x, m: (m & (x > 0)) * x,
                 lambda x, m: ~((x <= 0) | ~m) * x):  # fmt: skip
        got = fuse.softmax(load=load)(x, m, dim=1)
        np.testing.assert_allclose(got, flow.softmax(flow.tensor([[1.0, 2.0, 0.0]]), 1), rtol=1e-6)
    op = fuse.softmax(load=lambda x, m: ((x < 1) | (x > 0) & m) * x)
    assert "where(x < 1, 1, where(x > 0, m != 0, 0)) * x" in repr(op)


def test_an_element_of_another_function():
    leak = []
    fuse.softmax(load=lambda x, a: (leak.append(x * a), x)[1])
    with pytest.raises(flow.fuse.TraceError, match="not an element of another function\n.*leak"):
        fuse.softmax(load=lambda x, b: leak[0])
    assert "load = x * 2" in repr(fuse.softmax(load=lambda x: copy.deepcopy(x) * 2))


def test_rms_norms_eps_is_of_the_inputs_dtype():
    x = flow.full((1, 4), 1e-5)
    op = fuse.rms_norm(store=lambda y, a: y * a)
    for one in (1.0, flow.tensor(1.0), flow.tensor(1.0).double()):
        got = op(x, one, normalized_shape=4)
        np.testing.assert_allclose(got, flow.rms_norm(x, [4]), rtol=1e-6)


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
    for number in (np.str_("1"), np.complex64(1), np.array(None), np.datetime64("2020")):
        with pytest.raises(TypeError, match="b must be a tensor or a number, not"):
            op(x, number)
    with pytest.raises(TypeError, match="x must be a tensor, not float"):
        op(1.0, x)
    with pytest.raises(OverflowError, match=r"fuse.softmax\(\): b is beyond a float"):
        op(x, 10**400)
    with pytest.raises(flow.ShapeError, match=r"b of shape \[2\] does not broadcast"):
        op(x, flow.ones(2))
    with pytest.raises(flow.ShapeError, match="does not broadcast"):
        op(x, flow.ones(4, 2, 3))
    with pytest.raises(flow.DTypeError, match="not int64"):
        op(x.long(), 1.0)
    with pytest.raises(IndexError):
        op(x, 1.0, dim=2)
    for dim in (1.0, "1", True, [1]):
        with pytest.raises(TypeError, match=r"fuse.softmax\(\): dim must be an int or None, not"):
            op(x, 1.0, dim=dim)
    assert op(x, 1.0, dim=np.int64(1)).tolist() == op(x, 1.0, dim=1).tolist()
    with pytest.raises(TypeError, match="normalized_shape"):
        fuse.layer_norm()(x)


@pytest.mark.parametrize("base", ["layer_norm", "rms_norm"])
def test_arguments_of_a_norm(device, base):
    op, x = getattr(fuse, base)(), flow.arange(8.0, device=device).reshape(2, 4)
    want = op(x, normalized_shape=4).tolist()
    for shape in (np.int64(4), [np.int32(4)], (4,)):
        assert op(x, normalized_shape=shape).tolist() == want
    for shape in (4.0, None, "4", True, [4.0]):
        with pytest.raises(TypeError, match=rf"fuse.{base}\(\): normalized_shape must be an int"):
            op(x, normalized_shape=shape)
    for weight in (2.0, np.ones(4)):
        with pytest.raises(TypeError, match=rf"fuse.{base}\(\): weight must be a tensor or None"):
            op(x, normalized_shape=4, weight=weight)
    for shape in ([1], [1, 4], [2, 4], [2], [3, 2, 4]):
        with pytest.raises(flow.ShapeError, match=rf"{base}\(\): weight has shape .*, expected"):
            op(x, normalized_shape=4, weight=flow.ones(*shape, device=device))
    with pytest.raises(ValueError, match="eps is nan"):
        op(x, normalized_shape=4, eps=math.nan)
    for eps in ("1e-5", [1e-5], None)[: 3 if base == "layer_norm" else 2]:
        with pytest.raises(TypeError, match=rf"fuse.{base}\(\): eps must be a float, not"):
            op(x, normalized_shape=4, eps=eps)
    assert op(x, normalized_shape=4, eps=np.float32(1)).tolist() != want
