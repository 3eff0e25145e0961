# SPDX-License-Identifier: Apache-2.0
"""What takes a bool takes nothing else that has a truth value, as in PyTorch: a TypeError that
names the function and the argument."""

import numpy as np
import pytest
from numerics import flow

F = flow.nn.functional
NO_BOOLS = ["a", "", None, [], 1.5, 2, flow.ones(1)]


def x():
    return flow.ones(2, 2)


def loss():
    return (flow.ones(2, requires_grad=True) * 2).sum()


def gradients(**options):
    leaf = flow.ones(2, requires_grad=True)
    return flow.autograd.grad((leaf * 2).sum(), [leaf], **options)


PLACE = (flow.tensor([1]),)
# A call with a flag, by the names that its error has.
FLAGS = {
    ("requires_grad_", "requires_grad"): lambda v: x().requires_grad_(v),
    ("tensor", "requires_grad"): lambda v: flow.tensor([1.0], requires_grad=v),
    ("new_tensor", "requires_grad"): lambda v: x().new_tensor([1.0], requires_grad=v),
    ("zeros", "requires_grad"): lambda v: flow.zeros(2, requires_grad=v),
    ("linspace", "requires_grad"): lambda v: flow.linspace(0, 1, 3, requires_grad=v),
    ("logspace", "requires_grad"): lambda v: flow.logspace(0, 1, 3, requires_grad=v),
    ("asarray", "requires_grad"): lambda v: flow.asarray([1.0], requires_grad=v),
    ("Tensor", "requires_grad"): lambda v: flow.Tensor([1.0], requires_grad=v),
    ("Parameter", "requires_grad"): lambda v: flow.nn.Parameter(x(), v),
    ("numpy", "force"): lambda v: x().numpy(force=v),
    ("to", "non_blocking"): lambda v: x().to("cpu", non_blocking=v),
    ("to", "non_blocking", 2): lambda v: x().to("cpu", flow.float32, v),
    ("to", "non_blocking", 3): lambda v: flow.nn.Linear(1, 1).to("cpu", non_blocking=v),
    ("type", "non_blocking"): lambda v: x().type(flow.float64, v),
    ("nonzero", "as_tuple"): lambda v: flow.nonzero(x(), as_tuple=v),
    ("nonzero", "as_tuple", 2): lambda v: x().nonzero(as_tuple=v),
    ("index_put", "accumulate"): lambda v: x().index_put(PLACE, x()[0], v),
    ("index_put_", "accumulate"): lambda v: x().index_put_(PLACE, x()[0], accumulate=v),
    ("allclose", "equal_nan"): lambda v: flow.allclose(x(), x(), equal_nan=v),
    ("histogram", "density"): lambda v: flow.histogram(x(), 3, density=v),
    ("norm", "keepdim"): lambda v: flow.norm(x(), 2, 1, v),
    ("norm", "keepdim", 2): lambda v: x().norm(2, 1, keepdims=v),
    ("sum", "keepdim"): lambda v: x().sum(1, v),
    ("embedding", "sparse"): lambda v: F.embedding(flow.tensor([1]), x(), sparse=v),
    ("embedding", "scale_grad_by_freq"): lambda v: F.embedding(
        flow.tensor([1]), x(), scale_grad_by_freq=v
    ),
    ("pad_sequence", "batch_first"): lambda v: flow.nn.utils.rnn.pad_sequence([x()], v),
    ("use_deterministic_algorithms", "mode"): flow.use_deterministic_algorithms,
    ("use_deterministic_algorithms", "warn_only"): lambda v: flow.use_deterministic_algorithms(
        False, warn_only=v
    ),
}
# PyTorch's backward takes ints, and None for retain_graph and allow_unused.
SWITCHES = {
    ("backward", "create_graph"): lambda v: loss().backward(create_graph=v),
    ("backward", "retain_graph"): lambda v: loss().backward(retain_graph=v),
    ("backward", "create_graph", 2): lambda v: flow.autograd.backward(loss(), None, True, v),
    ("backward", "retain_graph", 2): lambda v: flow.autograd.backward(loss(), retain_graph=v),
    ("grad", "create_graph"): lambda v: gradients(retain_graph=True, create_graph=v),
    ("grad", "retain_graph"): lambda v: gradients(retain_graph=v),
    ("grad", "allow_unused"): lambda v: gradients(allow_unused=v),
}
TAKES_NONE = ("retain_graph", "allow_unused")


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_a_bool(name):
    for flag in (False, np.False_):
        FLAGS[name](flag)
    for wrong in NO_BOOLS:
        with pytest.raises(TypeError, match=rf"^{name[0]}\(\): argument '{name[1]}' must be bool"):
            FLAGS[name](wrong)


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_of_backward_is_a_bool_or_an_int(name):
    for flag in (True, False, np.True_, 1, 0):
        SWITCHES[name](flag)
    for wrong in NO_BOOLS:
        if type(wrong) is int or (wrong is None and name[1] in TAKES_NONE):
            continue
        with pytest.raises(TypeError, match=rf"^{name[0]}\(\): argument '{name[1]}' must be bool"):
            SWITCHES[name](wrong)


def test_a_copy_is_asked_for_by_a_bool_or_none():
    assert flow.asarray([1.0], copy=None).tolist() == [1]
    for wrong in ("a", [], 1.5, 2):
        with pytest.raises(TypeError, match=r"^asarray\(\): argument 'copy' must be bool or None"):
            flow.asarray([1.0], copy=wrong)


def test_what_has_a_truth_value_is_a_flag_where_pytorch_takes_it():
    for hard in (1, "yes"):
        y = F.gumbel_softmax(x(), hard=hard)
        assert y.sum(1).tolist() == [1, 1] and {*y.flatten().tolist()} <= {0, 1}
