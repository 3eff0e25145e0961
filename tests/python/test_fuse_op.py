# SPDX-License-Identifier: Apache-2.0
"""The op around a fused kernel is an op like any other: its gradients, its names, its registration.
The composition stands for the kernel, so that no GPU is needed.
"""

import numpy as np
import pytest
from numerics import host, tensor

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite.fuse import kernel  # noqa: E402
from oneflow_lite.fuse.bases import row_shape  # noqa: E402
from oneflow_lite.fuse.compose import compose  # noqa: E402

fuse = flow.fuse
RNG = np.random.default_rng(5)


@pytest.fixture
def on_cpu(monkeypatch):
    """Calls that go through the op, with the composition in place of the kernel."""

    def launch(self, values, options):
        op = self._op
        return compose(op.base, op.load, op.store, values[op.input], values, options)

    monkeypatch.setattr(kernel._Kernels, "launch", launch)

    def call(op, *args, **kwargs):
        x, values, options = op._bind(args, kwargs)
        assert row_shape(op.base, x, options) is not None
        return kernel.run(op, x, values, options)

    return call


@pytest.mark.parametrize("base", ["softmax", "layer_norm", "rms_norm"])
def test_the_ops_gradients(on_cpu, base):
    op = getattr(fuse, base)(load=lambda x, s, c: x * s + c * x, store=lambda y, g, x: y * g + x)
    inputs = [tensor(RNG.normal(size=s), "float64").requires_grad_()
              for s in ((2, 3, 4), (4,), (2, 3, 1))]  # fmt: skip
    given = {"dim": -1} if base == "softmax" else {"normalized_shape": [3, 4]}
    if base == "layer_norm":
        given["weight"] = tensor(RNG.normal(size=(3, 4)), "float64").requires_grad_()
        given["bias"] = tensor(RNG.normal(size=(3, 4)), "float64")

    def function(x, s, g):
        return on_cpu(op, x, s, 0.5, g, **given)

    y = function(*inputs)
    np.testing.assert_allclose(host(y), host(op(inputs[0], inputs[1], 0.5, inputs[2], **given)))
    assert f"fuse::{base}_" in str(flow.ops.list("fuse"))
    assert flow.autograd.gradcheck(function, inputs)
    assert flow.autograd.gradgradcheck(function, inputs)
    if base == "layer_norm":
        y.sum().backward()
        assert given["weight"].grad.shape == (3, 4)


def test_a_gradient_that_nothing_flows_back_to(on_cpu):
    op = fuse.softmax(load=lambda x, b, unused: fuse.where(x > b, 1.0, 0.5))
    inputs = [tensor(RNG.normal(size=(2, 3)), "float64").requires_grad_() for _ in range(3)]
    on_cpu(op, *inputs, dim=-1).sum().backward()
    assert all((t.grad == 0).all() for t in inputs)
    assert flow.autograd.gradcheck(lambda *a: on_cpu(op, *a, dim=-1), inputs)


def test_the_same_tensor_twice(on_cpu):
    op = fuse.softmax(load=lambda x, b: x * b, store=lambda y, x: y * x)
    x = tensor(RNG.normal(size=(2, 3)), "float64").requires_grad_()
    assert flow.autograd.gradcheck(lambda x: on_cpu(op, x, x, dim=-1), [x])
    assert flow.autograd.gradgradcheck(lambda x: on_cpu(op, x, x, dim=-1), [x])


def test_parameters_named_as_the_op_names_things_itself(on_cpu):
    op = fuse.softmax(
        load=lambda needs, eps, p_x: needs * eps + p_x, store=lambda y, width: y * width
    )
    args = [tensor(RNG.normal(size=(2, 3)), "float64").requires_grad_() for _ in range(4)]
    np.testing.assert_allclose(host(on_cpu(op, *args, dim=-1)), host(op(*args, dim=-1)))
    assert flow.autograd.gradcheck(lambda *args: on_cpu(op, *args, dim=-1), args)
    assert on_cpu(op, args[0], 0.5, args[2], 2.0, dim=-1).shape == (2, 3)


def test_equal_expressions_are_one_op(on_cpu):
    x = flow.randn(2, 3)
    before = None
    for _ in range(3):
        on_cpu(fuse.log_softmax(load=lambda x, q: x * 7.25 + q), x, 1.0, dim=-1)
        names = flow.ops.list("fuse")
        assert before in (None, names)
        before = names
    on_cpu(fuse.log_softmax(load=lambda x, q: x * 7.2500000001 + q), x, 1.0, dim=-1)
    assert len(flow.ops.list("fuse")) == len(before) + 1
