# SPDX-License-Identifier: Apache-2.0
"""Tensor.data: the same memory, in which changes are not counted as changes of the tensor."""

import copy

import numpy as np
import pytest
from numerics import flow

Function = flow.autograd.Function


def leaf(*values):
    return flow.tensor(values, dtype=flow.float64, requires_grad=True)


def test_a_change_of_data_is_not_counted():
    x = leaf(1, 2, 3)
    y, before = (x * x).sum(), x._version
    x.data.add_(1)
    x.data[0] = 7
    x.data.view(3, 1).mul_(2)
    assert x._version == before and x.tolist() == [14, 6, 8]
    y.backward()
    assert x.grad.tolist() == [28, 12, 16]  # of the numbers that were there when it ran


def test_a_change_of_the_tensor_is_counted_as_ever():
    x = leaf(1, 2, 3)
    y, data, before = (x * x).sum(), x.data, x._version
    with flow.no_grad():
        x.add_(1)
    assert x._version == before + 1 and data.tolist() == [2, 3, 4]
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()
    detached = leaf(1)
    z = (detached * detached).sum()
    detached.detach().add_(1)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.backward()


@pytest.mark.parametrize("change", [lambda d: d.add_(1), lambda d: d[0].zero_(),
                                    lambda d: d.detach().mul_(2)])  # fmt: skip
def test_what_is_saved_of_data_is_guarded_itself(change):
    w, x = leaf(1, 2), leaf(3, 4)
    data = x.data
    y = (w * data).sum()
    change(data)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_memory_that_is_read_and_written_at_once():
    n = 1000  # beyond what one vector of a kernel holds
    values = np.arange(float(n))
    moved, added = np.r_[0, values[:-1]], values + np.r_[0, values[:-1]]
    x = flow.from_numpy(values.copy())
    x.data[1:].copy_(x[:-1])
    assert x.tolist() == moved.tolist()
    x = flow.from_numpy(values.copy())
    x[1:].add_(x.data[:-1])
    assert x.tolist() == added.tolist()
    x = flow.from_numpy(values.copy())
    x.scatter_(0, flow.arange(n).flip(0), x.data)
    assert x.tolist() == values[::-1].tolist()
    # One array comes as two storages, which overlap.
    array = values.copy()
    flow.from_numpy(array)[1:].copy_(flow.from_numpy(array)[:-1])
    assert array.tolist() == moved.tolist()
    array = values.copy()
    flow.from_numpy(array[1:]).add_(flow.from_numpy(array[:-1]))
    assert array.tolist() == added.tolist()
    array = values.copy()
    flow.from_numpy(array).scatter_(0, flow.arange(n).flip(0), flow.from_numpy(array))
    assert array.tolist() == values[::-1].tolist()


def test_data_of_data_makes_no_chain():
    x = leaf(1, 2)
    for _ in range(300_000):
        x.data = x.data
    data = x.data
    del x
    assert data.tolist() == [1, 2]


def test_assigning_data_shares_it():
    x, y = leaf(1, 2), leaf(3, 4)
    x.data = y.data
    x.data.add_(1)
    assert y.tolist() == x.tolist() == [4, 5] and y.data_ptr() == x.data_ptr()


def test_a_deepcopy_keeps_what_is_shared():
    x = leaf(1, 2)
    y, data = copy.deepcopy([x, x.data])
    data.add_(1)
    assert x.tolist() == [1, 2] and y.tolist() == data.tolist() == [2, 3]
    assert y.data_ptr() == data.data_ptr() != x.data_ptr()


def test_a_gradient_is_not_the_memory_of_others():
    kept, array = flow.ones(2), np.ones(2, np.float32)
    for source in (lambda: kept.data, lambda: flow.from_numpy(array)):

        class Given(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, dy, source=source):
                return source()

        x = flow.zeros(2, requires_grad=True)
        for count in (1, 2):
            Given.apply(x).sum().backward()
            assert x.grad.tolist() == [count, count]
    assert kept.tolist() == array.tolist() == [1, 1]


def test_meta_and_empty():
    assert flow.ones(2, device="meta").data.device.type == "meta"
    x = flow.zeros(0, 3, requires_grad=True)
    x.data.add_(1)
    assert x.data.shape == (0, 3) and x._version == 0


class Assign(Function):
    """As solvers of differential equations fill the stages of a step."""

    @staticmethod
    def forward(ctx, stages, value, place):
        ctx.place = place
        stages.data[place] = value
        return stages

    @staticmethod
    def backward(ctx, grad):
        return grad, grad[ctx.place], None


def test_stages_that_are_filled_one_after_another():
    def step(y, weights, filled):
        if not filled:
            stages = [y.sin()]
            for i in range(1, 4):
                stages.append((y + (flow.stack(stages, -1) * weights[:i]).sum(-1)).sin())
            return (flow.stack(stages, -1) * weights).sum()
        stages = flow.empty(*y.shape, 4, dtype=flow.float64)
        stages = Assign.apply(stages, y.sin(), (..., 0))
        for i in range(1, 4):
            value = (y + (stages[..., :i] * weights[:i]).sum(-1)).sin()
            stages = Assign.apply(stages, value, (..., i))
        return (stages * weights).sum()

    gradients = []
    for filled in (False, True):
        y, weights = leaf(0.1, 0.7), leaf(0.1, 0.2, 0.3, 0.4)
        step(y, weights, filled).backward()
        gradients.append([*y.grad.tolist(), *weights.grad.tolist()])
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-12)


class Kind(flow.Tensor):
    """Of a subclass the copies do not take the place of what has just died."""


def test_a_deepcopy_keeps_the_gradients_of_parts_of_one_storage_apart():
    flat = flow.zeros(9)
    a, b = Kind(flat[:4]).requires_grad_(), Kind(flat[4:]).requires_grad_()
    a.grad, b.grad = flow.full((4,), 1.0), flow.full((5,), 2.0)
    x, y = copy.deepcopy([a, b])
    assert x.grad.tolist() == [1] * 4 and y.grad.tolist() == [2] * 5
    assert y.storage_offset() == 4 and x.data.data_ptr() + 16 == y.data.data_ptr()
