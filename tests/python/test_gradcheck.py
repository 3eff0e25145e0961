# SPDX-License-Identifier: Apache-2.0
"""The checker itself: right gradients pass, wrong ones are found and named."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
gradcheck, gradgradcheck = flow.autograd.gradcheck, flow.autograd.gradgradcheck


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return flow.tensor(values, requires_grad=True)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_passes_twice(dim):
    x = leaf(2, 3, 4)
    assert gradcheck(lambda x: flow.softmax(x, dim), x)
    assert gradgradcheck(lambda x: flow.softmax(x, dim), x)
    assert gradgradcheck(lambda x: flow.log_softmax(x, dim), x)


def test_several_inputs_and_outputs():
    a, b = leaf(2, 3), leaf(3, 2, seed=1)
    assert gradcheck(lambda a, b: (a @ b, a.sum(), (b * b).exp()), [a, b])
    assert gradgradcheck(lambda a, b: (a @ b, (b * b).exp()), [a, b])


@pytest.mark.parametrize("wanted", range(1, 8))
def test_every_subset_of_inputs(wanted):
    x, w, b = leaf(3, 4), leaf(2, 4, seed=1), leaf(2, seed=2)
    for i, t in enumerate((x, w, b)):
        t.requires_grad = bool(wanted >> i & 1)
    assert gradcheck(flow._C.linear, [x, w, b])
    assert gradgradcheck(flow._C.linear, [x, w, b])


def test_zero_dim_empty_and_strided_inputs():
    assert gradcheck(lambda x: x * x, leaf())
    assert gradcheck(lambda x: flow.softmax(x, 1), leaf(0, 3))
    base = leaf(3, 4)
    strided = base.detach().t()
    strided.requires_grad = True
    assert gradcheck(lambda x: flow.softmax(x, 1), strided)


def test_a_wrong_gradient_is_named():
    def wrong(x):
        y = x * x
        if y.requires_grad:
            y.register_hook(lambda g: g * flow.tensor([1.0, 1.0, 1.5], dtype=flow.float64))
        return y

    with pytest.raises(flow.autograd.GradcheckError) as error:
        gradcheck(wrong, leaf(3))
    assert "output 0 with respect to input 0" in str(error.value)
    assert "input element [2] and output element [2]" in str(error.value)
    assert "1 of 9 entries" in str(error.value)
    assert gradcheck(wrong, leaf(3), raise_exception=False) is False


def test_what_cannot_be_checked_is_told():
    with pytest.raises(ValueError, match="no input requires a gradient"):
        gradcheck(lambda x: x, flow.ones(2, dtype=flow.float64))
    with pytest.raises(ValueError, match="differences need float64"):
        gradcheck(lambda x: x * 2, flow.ones(2, requires_grad=True))


def test_recording_is_as_before():
    with flow.no_grad():
        assert gradcheck(lambda x: flow.softmax(x, 0), leaf(3))
        assert not flow.is_grad_enabled()
    assert flow.is_grad_enabled()


def test_options_of_pytorch():
    x = flow.tensor([0.1, 0.2], dtype=flow.float64, requires_grad=True)
    check, again = flow.autograd.gradcheck, flow.autograd.gradgradcheck
    assert check(flow.exp, x, nondet_tol=0.0, check_undefined_grad=True, fast_mode=False)
    assert again(flow.exp, x, gen_non_contig_grad_outputs=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        check(flow.exp, x, tolerance=1)


def test_a_gradient_that_is_lost_is_wrong():
    for lost in (lambda x: x.detach() * 2, lambda x: flow.tensor(x.tolist(), dtype=x.dtype)):
        with pytest.raises(flow.autograd.GradcheckError, match="no output requires a gradient, th"):
            gradcheck(lost, leaf(3))
        assert gradcheck(lost, leaf(3), raise_exception=False) is False
    assert gradcheck(lambda x: flow.ones(2), leaf(3))
    assert gradcheck(lambda x: (x > 0, x.argsort()), leaf(3))
