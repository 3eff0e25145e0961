# SPDX-License-Identifier: Apache-2.0
"""no_grad and its relatives, backward and grad, hooks on saved tensors."""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")


def leaf(*shape):
    return flow.randn(*shape, dtype=flow.float64, requires_grad=True)


def test_no_grad_is_a_context_and_a_decorator():
    x = leaf(2)
    with flow.no_grad():
        assert not (x * 2).requires_grad
        with flow.enable_grad():
            assert (x * 2).requires_grad
        assert not flow.is_grad_enabled()
    assert flow.is_grad_enabled()

    @flow.no_grad()
    def called():
        """Its text."""
        return flow.is_grad_enabled()

    @flow.no_grad
    def plain():
        return flow.is_grad_enabled()

    assert (called(), plain(), called.__doc__) == (False, False, "Its text.")
    assert flow.is_grad_enabled()


def test_no_grad_ends_with_an_error_and_can_be_entered_again():
    mode = flow.no_grad()
    with pytest.raises(KeyError), mode:
        with mode:
            pass
        assert not flow.is_grad_enabled()
        raise KeyError
    assert flow.is_grad_enabled()


def test_set_grad_enabled_switches_at_once():
    try:
        flow.set_grad_enabled(False)
        assert not flow.is_grad_enabled()
    finally:
        flow.set_grad_enabled(True)
    with flow.set_grad_enabled(False):
        assert not flow.is_grad_enabled()
    assert flow.is_grad_enabled()

    @flow.set_grad_enabled(False)
    def off():
        return flow.is_grad_enabled()

    assert flow.is_grad_enabled() and not off()


def test_grad_leaves_the_leaves_alone():
    x, y = leaf(3), leaf(3)
    (gx,) = flow.autograd.grad((x * y).sum(), x)
    np.testing.assert_array_equal(gx.numpy(), y.detach().numpy())
    assert x.grad is None
    with pytest.raises(RuntimeError):
        flow.autograd.grad(x.sum(), [x, y])
    _, unused = flow.autograd.grad(x.sum(), [x, y], allow_unused=True)
    assert unused is None


def test_grad_of_grad():
    x = leaf(3)
    (g,) = flow.autograd.grad((x * x * x).sum(), x, create_graph=True)
    (gg,) = flow.autograd.grad(g.sum(), x)
    np.testing.assert_allclose(gg.numpy(), 6 * x.detach().numpy(), rtol=1e-12)


def test_backward_takes_gradients_and_inputs():
    x, y = leaf(3), leaf(3)
    flow.autograd.backward([x * y, x + y], [flow.ones_like(x), flow.ones_like(x) * 2])
    np.testing.assert_allclose(x.grad.numpy(), y.detach().numpy() + 2)
    x.grad = y.grad = None
    flow.autograd.backward((x * y).sum(), inputs=[x])
    assert x.grad is not None and y.grad is None


def test_backward_twice_needs_retain_graph():
    x = leaf(3)
    loss = x.exp().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="retain_graph"):
        loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(x.detach().numpy()))


def test_hooks_on_saved_tensors_pack_and_unpack():
    x = leaf(4, 5)
    expected = flow.autograd.grad(flow.softmax(x, 1).exp().sum(), x)[0].numpy()
    packed = []

    def pack(t):
        packed.append(t)
        return t.numpy(force=True).copy(), t.device

    def unpack(saved):
        return flow.from_numpy(saved[0]).to(saved[1])

    with flow.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = flow.softmax(x, 1).exp().sum()
    count = len(packed)
    flow.softmax(x, 1)  # no longer packed
    assert count >= 2 and len(packed) == count
    np.testing.assert_array_equal(flow.autograd.grad(y, x)[0].numpy(), expected)


def test_a_generator_runs_in_the_mode_and_its_caller_does_not():
    seen = []

    @flow.no_grad()
    def halves(x):
        try:
            while True:
                seen.append(flow.is_grad_enabled())
                x = (yield x) or x / 2
        except ValueError:
            yield flow.is_grad_enabled()
        finally:
            seen.append(flow.is_grad_enabled())
        return "end"

    generator = halves(8)
    assert next(generator) == 8 and next(generator) == 4 and flow.is_grad_enabled()
    assert generator.send(3) == 3 and generator.throw(ValueError) is False
    with pytest.raises(StopIteration, match="end"):
        next(generator)
    closed = halves(8)
    next(closed)
    closed.close()
    assert seen == [False] * 6 and flow.is_grad_enabled()


def test_inference_mode():
    @flow.inference_mode()
    def quiet():
        return flow.is_grad_enabled()

    @flow.inference_mode
    def plain():
        return flow.is_grad_enabled()

    assert quiet() is plain() is False and flow.is_grad_enabled()
    with flow.no_grad(), flow.inference_mode(False):
        assert flow.is_grad_enabled()


def test_zeros_for_what_no_output_depends_on():
    x, y = leaf(2), leaf(3)
    grads = flow.autograd.grad(x.sum(), [x, y], materialize_grads=True)
    assert [g.tolist() for g in grads] == [[1, 1], [0, 0, 0]]
    with pytest.raises(ValueError, match="materialize_grads"):
        flow.autograd.grad(x.sum(), [x, y], allow_unused=False, materialize_grads=True)


def test_save_on_cpu():
    x = leaf(4, 5)
    with flow.autograd.graph.save_on_cpu():
        y = flow.softmax(x, 1).exp().sum()
    y.backward()
    assert x.grad is not None


def test_an_error_in_a_hook_comes_back_as_itself():
    class Mine(Exception):
        pass

    def pack(t):
        raise Mine("no room")

    with pytest.raises(Mine, match="no room"):
        with flow.autograd.graph.saved_tensors_hooks(pack, lambda p: p):
            leaf(2).exp()


def test_grad_gives_gradients_and_changes_none():
    x = flow.ones(2, requires_grad=True)
    (g,) = flow.autograd.grad(outputs=(x * x).sum(), inputs=x, only_inputs=True)
    assert g.tolist() == [2, 2] and x.grad is None
    with pytest.raises(ValueError, match="only_inputs is False"):
        flow.autograd.grad(x.sum(), x, only_inputs=False)


def test_variables_are_leaves():
    x = flow.ones(2, requires_grad=True) * 2
    v = flow.autograd.Variable(x, requires_grad=True)
    assert v.is_leaf and v.requires_grad and v.data_ptr() == x.data_ptr()
    assert not flow.autograd.Variable(x).requires_grad
