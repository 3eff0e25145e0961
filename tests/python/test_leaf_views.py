# SPDX-License-Identifier: Apache-2.0
"""Views that are leaves, and views whose base got a history after they were cut."""

import pytest
from numerics import flow, tensor


def ones(device, count=4):
    return flow.ones(count, device=device)


WRITES = {
    "mul_": lambda v: v.mul_(3), "copy_": lambda v: v.copy_(v.detach() * 2),
    "zero_": lambda v: v.zero_(), "setitem": lambda v: v.__setitem__(0, 2.0),
    "normal_": lambda v: v.normal_(),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_a_leaf_that_is_a_view_is_not_changed_in_place(write, device):
    for cut in (lambda x: x[:2], lambda x: x.view(4), lambda x: x.reshape(4), lambda x: x.t()):
        x = ones(device)
        v = cut(x).requires_grad_()
        for target in (v, v[:1]):
            with pytest.raises(RuntimeError, match=r"\(\): a (view of a )?leaf that requires grad"):
                WRITES[write](target)
        assert v.is_leaf and not x.requires_grad and x.tolist() == [1] * 4
        with flow.no_grad():
            WRITES[write](v)
        (v * 2).sum().backward()
        assert v.grad.tolist() == [2] * v.numel()


def test_the_base_of_a_leaf_may_be_changed(device):
    x = ones(device)
    v = x[:2].requires_grad_()
    x.mul_(3)
    x[2:].add_(1)
    assert v.is_leaf and v.tolist() == [3, 3] and not x.requires_grad


def stale(device):
    """A view whose base got a history after it was cut."""
    x, p = ones(device), tensor([1.0, 2, 3, 4], "float32", device).requires_grad_()
    v = x[1:3]
    x.mul_(p)
    return v, p


def test_a_view_follows_its_base_into_a_graph(device):
    v, p = stale(device)
    assert v.requires_grad and not v.is_leaf and v.grad_fn is not None
    v, p = stale(device)
    v.requires_grad_()
    v.requires_grad = True
    assert not v.is_leaf
    (v * 3).sum().backward()
    assert p.grad.tolist() == [0, 3, 3, 0]
    v, p = stale(device)
    for clear in (lambda: v.requires_grad_(False), lambda: setattr(v, "requires_grad", False)):
        with pytest.raises(RuntimeError, match="only a leaf's flag can be cleared"):
            clear()
    v, p = stale(device)
    v.retain_grad()
    (v * 3).sum().backward()
    assert v.grad.tolist() == [3, 3] and p.grad.tolist() == [0, 3, 3, 0]
