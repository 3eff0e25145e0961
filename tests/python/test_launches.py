# SPDX-License-Identifier: Apache-2.0
"""A function of elements is one op, and on a GPU one launch: the function, the method, in place and
into ``out=``. Its gradient is at most two, and a sum for each operand that was broadcast.

The functions are those of the op table. On the CPU ops are counted that are no views.
"""

import numpy as np
import pytest
from numerics import flow
from op_row import T
from op_table import OPS
from op_table_activations import ACTIVATIONS
from op_table_two import TWO_AND_THREE
from op_table_unary import UNARY_ROWS

FROM_OTHERS = {
    "abs", "add", "clamp", "cos", "div", "eq", "erf", "exp", "floor", "ge", "gelu", "gt",
    "isfinite", "isinf", "isnan", "le", "log", "logical_not", "lt", "maximum", "minimum",
    "mul", "ne", "neg",
    "pow", "relu", "rsqrt", "sigmoid", "silu", "sin", "sqrt", "sub", "tanh",
}  # fmt: skip
NO_ELEMENTS = {"softmin", "glu"}  # of rows
CASTS = {"float_power"}  # its operands become float64 first
# What is in place the result and its copy: the functions of one element that have no op in place.
COPIES = {op.function for op in UNARY_ROWS} | {
    "abs", "cos", "erf", "exp", "floor", "log", "neg", "rsqrt", "sigmoid", "sin", "sqrt", "tanh",
}  # fmt: skip
ROOTS = {"pow[half]", "pow[minus half]"}  # functions of one element, too
ELEMENTWISE = [
    op for op in [*UNARY_ROWS, *ACTIVATIONS, *TWO_AND_THREE,
                  *(op for op in OPS if op.function in FROM_OTHERS)]
    if op.call is None and not op.function.endswith("_") and op.function not in NO_ELEMENTS | CASTS
    and op.name != "pow[integer]"  # products
]  # fmt: skip
ELEMENTWISE = list({op.name: op for op in ELEMENTWISE}.values())
by_op = pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)


def work(run, device):
    """What a call enqueues, by op."""
    with flow.profiler.profile() as prof:
        run()
    if device == "cuda":
        return prof.launches
    # What writes something: views declare no bytes.
    return {s.name: s.calls for s in prof.stats() if s.bytes > 0}


def samples_of(op):
    """Calls on tensors with elements; those that broadcast last."""

    def elements(s):
        return all(0 not in a.shape for a in s.args if isinstance(a, T | np.ndarray))

    found = [s for s in op.samples if isinstance(s.args[0], T) and s.args[0].shape and elements(s)]
    return [s for s in found if len({a.shape for a in s.args if isinstance(a, T)}) == 1][:1] + [
        s for s in found if len({a.shape for a in s.args if isinstance(a, T)}) > 1
    ][:2]


def dtype_of(op):
    return "float32" if "float32" in op.dtypes else op.dtypes[-1]


@by_op
def test_one_launch_forward(op, device):
    for sample in samples_of(op):
        args = sample.make(dtype_of(op), device)
        op.run(*args, **sample.kwargs)  # what is made once
        seen = work(lambda: op.run(*args, **sample.kwargs), device)  # noqa: B023
        assert sum(seen.values()) <= 1, (sample, seen)


@by_op
def test_one_launch_in_place_and_two_into_out(op, device):
    """Into ``out=``: the result, and its copy."""
    sample = next(iter(samples_of(op)))
    args = sample.make(dtype_of(op), device)
    (result,) = op.run(*args, **sample.kwargs)
    method = getattr(flow.Tensor, op.function + "_", None)
    if method is not None and result.dtype is args[0].dtype and result.shape == args[0].shape:
        own = args[0].clone()
        seen = work(lambda: method(own, *args[1:], **sample.kwargs), device)
        copies = op.function in COPIES or op.name in ROOTS
        assert sum(seen.values()) <= (2 if copies else 1), seen
    function = getattr(flow, op.function, None)
    if function is None or op.call is not None:
        return
    out = flow.empty_like(result)
    try:
        function(*args, **sample.kwargs, out=out)
    except TypeError:  # it takes none
        return
    seen = work(lambda: function(*args, **sample.kwargs, out=out), device)
    assert sum(seen.values()) <= 2, seen


@pytest.mark.parametrize("op", [op for op in ELEMENTWISE if op.differentiable],
                         ids=lambda op: op.name)  # fmt: skip
def test_two_launches_backward(op, device):
    for sample in samples_of(op):
        args = sample.make(dtype_of(op), device)
        leaves = [args[i].requires_grad_() for i in sample.tensors()]
        (y,) = op.run(*args, **sample.kwargs)
        if not leaves or not y.requires_grad:
            continue
        dy = flow.ones_like(y)

        def backward(y=y, leaves=leaves, dy=dy):
            flow.autograd.grad(y, leaves, dy, retain_graph=True, allow_unused=True)

        backward()
        sums = sum(leaf.shape != y.shape for leaf in leaves)
        seen = work(backward, device)
        assert sum(seen.values()) <= 2 * len(leaves) + sums, (sample, seen)
        if len(leaves) == 1:
            assert sum(seen.values()) <= 2 + sums, (sample, seen)


def test_frexp_has_two_results_in_one_launch(device):
    x = flow.tensor([[0.75, -3.0, 0.0], [5.0, 1e-8, -0.25]]).to(device).requires_grad_()
    for given in (x, x.t()):
        assert sum(work(lambda: flow.frexp(given), device).values()) == 1  # noqa: B023
        mantissa, exponent = flow.frexp(given)
        assert exponent.dtype is flow.int32 and not exponent.requires_grad
        np.testing.assert_array_equal(
            (mantissa * 2.0 ** exponent.to(flow.float32)).detach().cpu().numpy(),
            given.detach().cpu().numpy(),
        )
        dy = flow.ones_like(mantissa)

        def backward(mantissa=mantissa, dy=dy):
            return flow.autograd.grad(mantissa, x, dy, retain_graph=True)

        (slope,) = backward()
        want = 2.0 ** -exponent.to(flow.float32)
        want = want if given is x else want.t()
        np.testing.assert_array_equal(slope.cpu().numpy(), want.cpu().numpy())
        assert sum(work(backward, device).values()) <= 2
