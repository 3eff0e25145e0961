# SPDX-License-Identifier: Apache-2.0
"""check_op: each kind of defect is caught by it."""

import math
import sys

import numpy as np
import pytest
from checked import DISTINCT, X, check, register
from numerics import flow, tensor


def test_a_right_op_passes_in_every_check():
    result = check(register(doc="x squared."), [X, (X,), {"x": DISTINCT}])
    assert {c.status for c in result.checks if not c.name.startswith("cuda")} == {"ok"}, str(result)
    assert result["sharding"].detail == "S(0) -> S(0), S(1) -> S(1)"


def flat(x):
    """Reads memory in order, whatever the strides say."""
    return flow.as_strided(x, x.shape, flow.empty(x.shape, device="meta").stride()) * 1


def flat_gradient(x, dy):
    return flat(dy) * 2 * x if dy.stride() == x.stride() else dy * x


def writing_gradient(ctx, dy):
    x = ctx.x.detach()
    gradient = dy * 2 * ctx.x.clone()
    x.mul_(2)
    return gradient


def writes(x):
    x.mul_(2)
    return x * 1


def counter():
    state = []

    def forward(x):
        state.append(1)
        return x * x + len(state)

    return forward


def infer_like(x):
    return x.shape, x.dtype


def squeezing(x):
    return [n for n in x.shape if n != 1], x.dtype


DEFECTS = {
    "inferred shape": ("inference", "promised a tensor of shape \\[3, 5\\]",
                       lambda: register(infer=lambda x: ((3, 5), x.dtype))),
    "inferred shape of one": ("inference", "promised a tensor of shape \\[4\\]",
                              lambda: register(infer=squeezing, forward=lambda x: x * x)),
    "inferred dtype": ("inference", "promised",
                       lambda: register(infer=lambda x: (x.shape, flow.int64))),
    "no documentation": ("schema", "no documentation", lambda: register(doc="")),
    "an exception": ("inference", "raised KeyError: 'mine'",
                     lambda: register(infer=infer_like, forward=lambda x: {}["mine"])),
    "state": ("repetition", "two equal calls differ",
              lambda: register(infer=infer_like, forward=counter())),
    "mutation": ("mutation", "x was changed, but .* does not mark it",
                 lambda: register(infer=infer_like, forward=writes)),
    "strides ignored": ("layouts", "inputs transposed: 1?\\d of 12 elements of the float64",
                        lambda: register(infer=infer_like, forward=flat)),
    "empty": ("empty", "raised",
              lambda: register(infer=infer_like, forward=lambda x: x * x + 0 * x.max())),
    "one dtype": ("dtypes", "against float64: 1?\\d of 12 elements of the bfloat16 result",
                  lambda: register(infer=infer_like, forward=lambda x: x * (
                      x * 1.1 if x.dtype is flow.bfloat16 else x))),
    "gradient": ("gradients", "x requiring a gradient: .*autograd gives",
                 lambda: register(backward=lambda ctx, dy: dy * ctx.x)),
    "gradient by a part in a thousand": ("gradients", "x requiring a gradient: .*autograd gives",
                                         lambda: register(backward=lambda ctx, dy: (
                                             dy * 2.002 * ctx.x))),
    "gradient from an expanded one": ("gradients", "from an expanded incoming gradient", lambda:
                                      register(backward=lambda ctx, dy: flat_gradient(ctx.x, dy))),
    "gradient from a transposed one": ("gradients", "from a transposed incoming gradient", lambda:
                                       register(backward=lambda ctx, dy: (
                                           dy if 0 in dy.stride() else flat(dy)) * 2 * ctx.x)),
    "gradient of transposed inputs": ("gradients", "of transposed inputs", lambda: register(
        backward=lambda ctx, dy: dy * 2 * flat(ctx.x))),
    "a gradient that writes into the incoming one": (
        "gradients", "backward changed an incoming gradient",
        lambda: register(backward=lambda ctx, dy: dy.detach().mul_(2) * ctx.x)),
    "gradient of one dtype that is NaN": (
        "gradient dtypes", "gradient of x is off by nan", lambda: register(
            backward=lambda ctx, dy: dy * ctx.x * (
                2 if dy.dtype is flow.float64 else float("nan")))),
    "no infinity": ("dtypes", "expected -?inf within 0", lambda: register(
        forward=lambda x: x * (math.inf if x.dtype is flow.float64 else x), infer=infer_like,
        backward=None)),
    "a gradient that writes": ("gradients", "saved for backward was changed in place",
                               lambda: register(backward=writing_gradient)),
    "gradient of one dtype": ("gradient dtypes", "bfloat16.*gradient of x is off by",
                              lambda: register(backward=lambda ctx, dy: dy * ctx.x * (
                                  2.5 if dy.dtype is flow.bfloat16 else 2))),
    "gradient's dtype": ("gradient dtypes", "gradient of x has dtype float64",
                         lambda: register(backward=lambda ctx, dy: (dy * 2 * ctx.x).double())),
    "empty gradient": ("gradients", "raised", lambda: register(
        backward=lambda ctx, dy: dy * 2 * ctx.x + 0 * ctx.x.detach().max())),
    "second order": ("second order", "autograd gives",
                     lambda: register(backward=lambda ctx, dy: dy * 2 * ctx.x.detach())),
    "split of a sum": ("sharding", "as S\\(0\\) -> S\\(0\\) in 2 parts: .* wrong",
                       lambda: register(forward=lambda x: x - x.sum(0, True), backward=None)),
    "partial sum": ("sharding", "as P -> P in 2 parts: output out: 1?\\d of 12 elements",
                    lambda: register(sbp=lambda x: [("P", "P")])),
    "broadcast": ("sharding", "as S\\(0\\) -> B in 2 parts: output out: the shape is \\[2, 4\\]",
                  lambda: register(sbp=lambda x: [("S(0)", "B")])),
    "axis beyond": ("sharding", "raised RuntimeError: .*signature \\(S\\(2\\)\\) -> \\(S\\(2\\)\\)"
                    ".*does not fit a call \\(\\[3, 4\\]\\)",
                    lambda: register(sbp=lambda x: [("S(2)", "S(2)")])),
    "entries missing": ("sharding", "does not fit a call",
                        lambda: register(sbp=lambda x: [("S(0)",)])),
    "no text": ("sharding", r"sbp gave \(0, 0\), but an entry is .*not 0",
                lambda: register(sbp=lambda x: [(0, 0)])),
    "no ways": ("sharding", "sbp gave 3, which is no list of ways",
                lambda: register(sbp=lambda x: 3)),
    "no finite cost": ("cost", "costs nan bytes",
                       lambda: register(cost=lambda x: (float("nan"), 1))),
    "negative cost": ("cost", "costs -1.0 operations",
                      lambda: register(cost=lambda x: (x.numel() * 16, -1))),
    "one cost": ("cost", "cost gave 192, not .bytes, operations.",
                 lambda: register(cost=lambda x: 192)),
    "no SBP": ("sharding", "an SBP entry is .*, not \"S\"",
               lambda: register(sbp=lambda x: [("S", "S")])),
    "no cost": ("cost", "costs 0 bytes; its inputs and outputs have 192",
                lambda: register(cost=lambda x: (0, 0))),
    "high cost": ("cost", "costs 12000 bytes",
                  lambda: register(cost=lambda x: (x.numel() * 1000, 1))),
    "constant cost": ("cost", "no more than", lambda: register(cost=lambda x: (192, 12))),
}  # fmt: skip


# What cost raises is printed, because it is not asked for by a call that could fail.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_caught(defect):
    name, pattern, op = DEFECTS[defect]
    result = check(op(), [X])
    assert not result.passed
    assert result[name].status == "FAILED", str(result)
    with pytest.raises(AssertionError, match=f"(?s){pattern}"):
        raise flow.CheckError(result[name].detail)


def test_each_input_is_checked_against_the_outputs_that_it_reaches():
    op = register(backward=lambda ctx, dy: dy * ctx.x)
    for function, place in (lambda x, y: (op(x), y * 3), 0), (lambda x, y: (x.sum(), op(y)), 1):
        result = check(function, [(X, DISTINCT)])
        assert f"tensor {place} requiring a gradient" in result["gradients"].detail, str(result)
    result = check(lambda x, y: (x * 2, y * 3), [(X, DISTINCT)])
    assert result.passed and result["gradients"].detail == "of tensor 0 / tensor 1"


def test_a_function_of_a_python_op_without_infer():
    op = register()
    result = check(lambda x: op(x), [X])
    assert result.passed and "S(0) -> S(0)" in result["sharding"].detail, str(result)


def test_a_module_is_checked_on_every_device(device):
    module = flow.nn.Linear(4, 2)
    result = check(module, [flow.randn(3, 4)])
    assert result.passed and result["inference"].status == "ok", str(result)
    if device == "cuda":
        assert result["gradients (cuda)"].status == result["cuda against cpu"].status == "ok"
    assert all(p.device.type == "cpu" and p.grad is None for p in module.parameters())
    result = check(flow.nn.Embedding(5, 2), [tensor([1, 0, 3], "int64")])  # rows that none names
    assert result.passed and result["cost"].status == "ok", str(result)


def test_a_function_may_have_tensors_of_its_own():
    weight = flow.randn(2, 4)
    result = check(lambda x: flow.nn.functional.linear(x, weight), [flow.randn(3, 4)])
    assert result.passed and "tensors of its own" in result["inference"].detail, str(result)
    assert result["layouts"].status == "ok" and result["cuda"].status == "skipped"


def test_an_exception_is_told_with_its_call():
    def forward(x):
        if not x.is_contiguous():
            raise KeyError("mine")
        return x * x

    result = check(register(forward=forward, infer=infer_like), [X])
    assert "mine" in result["layouts"].detail
    assert "of strides [[1, 3]]" in result["layouts"].detail, str(result)


def test_options():
    for wrong, error in (
        ({"tolerance": {"float17": 1}}, ValueError), ({"skip": ["cost"]}, TypeError),
        ({"devices": []}, ValueError), ({"devices": ["gpu"]}, ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match=rf"check_op\(\): {next(iter(wrong))}"):
            check("softmax", [(X, 1)], **wrong)
    assert check("softmax", [(X, 1)], devices="cpu").passed
    assert not check("softmax", [(X, 1)], tolerance={flow.float16: 1e-9}).passed


def test_an_exception_in_a_cost_is_shown(monkeypatch):
    def wrong(x):
        raise KeyError("mine")

    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: shown.append(u.exc_value))
    result = check(register(cost=wrong), [X])
    monkeypatch.undo()
    assert result["cost"].status == "FAILED"
    assert shown and isinstance(shown[0], KeyError)


def test_an_exception_in_sbp_is_that_of_the_call(monkeypatch):
    def wrong(x):
        raise KeyError("mine")

    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: shown.append(u.exc_value))
    op = register(sbp=wrong)
    result = check(op, [X])
    x = X.to_global(flow.placement("cpu", [0]), flow.sbp.broadcast)
    with pytest.raises(KeyError, match="mine"):
        op(x)
    monkeypatch.undo()
    assert result["sharding"].status == "FAILED" and "mine" in result["sharding"].detail
    assert not shown


def test_a_gradient_that_is_right_only_for_all_inputs_at_once():
    @flow.register_op("wrong::product")
    class Product:
        """x times y; where y is frozen, x gets nothing."""

        def forward(x, y):
            return x * y

        def backward(ctx, dz):
            return (dz * ctx.y if ctx.needs["y"] else 0 * dz), dz * ctx.x

    result = check(Product, [(X, DISTINCT)])
    assert "x requiring a gradient" in result["gradients"].detail
    assert result["gradients"].status == "FAILED"


def test_square_samples_are_warned_of(capsys):
    square, oblong = flow.randn(3, 3), flow.randn(3, 4)
    for samples, warned in ([(square, 1)], True), ([(square, 1), (oblong, 1)], False):
        flow.check_op("softmax", samples)
        assert ("hides exchanged dims" in capsys.readouterr().out) == warned


def test_terms_that_cancel_are_no_defect():
    values = np.random.default_rng(7).standard_normal((3, 16))
    x = tensor(np.concatenate([values, -values], 1), "float64")
    result = check("sum", [(x, (1,)), (x, (0, 1))])
    assert result.passed, str(result)
