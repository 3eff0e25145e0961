# SPDX-License-Identifier: Apache-2.0
"""What is no view has memory of its own, in which every element has its own place."""

import pytest
from numerics import flow

# Of arguments for which nothing has to be computed.
CALLS = {
    "repeat once": lambda x: x.repeat(1, 1), "tile once": lambda x: x.tile(1),
    "repeat_interleave once": lambda x: x.repeat_interleave(1, 0),
    "flip no dim": lambda x: x.flip([]), "roll by nothing": lambda x: x.roll(0, 0),
    "rot90 not at all": lambda x: flow.rot90(x, 0), "diff of order 0": lambda x: flow.diff(x, 0),
    "floor": lambda x: x.long().floor(), "cumsum": lambda x: x.cumsum(0),
    "nan_to_num": lambda x: x.nan_to_num(),
}  # fmt: skip
OF_ONE = {
    "prod": lambda x: x.prod(), "prod along": lambda x: x.prod(0, True),
    "cumprod": lambda x: x.cumprod(0), "logcumsumexp": lambda x: x.logcumsumexp(0),
    "median": lambda x: x.median(), "median along": lambda x: x.median(0)[0],
    "nanmedian": lambda x: x.nanmedian(), "kthvalue": lambda x: x.kthvalue(1)[0],
    "flip": lambda x: x.flip(0), "roll": lambda x: x.roll(3, 0), "diff": lambda x: flow.diff(x, 0),
    "sum": lambda x: x.sum(), "amax": lambda x: x.amax(),
}  # fmt: skip
OF_INTEGERS = {
    "floor": flow.floor, "ceil": flow.ceil, "round": flow.round, "trunc": flow.trunc,
    "nan_to_num": flow.nan_to_num, "abs": flow.abs, "cumprod": lambda x: x.cumprod(0),
}  # fmt: skip


def leaves_alone(call, x):
    before = x.clone()
    call(x).fill_(77)
    return flow.equal(x, before)


@pytest.mark.parametrize("name", CALLS)
def test_of_matrices(name):
    assert leaves_alone(CALLS[name], flow.arange(6.0).view(2, 3))
    assert leaves_alone(CALLS[name], flow.arange(6.0).view(3, 2).t())


@pytest.mark.parametrize("name", OF_ONE)
def test_of_one_element(name):
    for dtype in (flow.float32, flow.float16, flow.int64):
        if dtype is flow.int64 and name == "logcumsumexp":
            continue
        assert leaves_alone(OF_ONE[name], flow.ones(1, dtype=dtype))
        if name not in ("prod along", "diff"):
            assert leaves_alone(OF_ONE[name], flow.tensor(1, dtype=dtype))


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_of_integers(name):
    assert leaves_alone(OF_INTEGERS[name], flow.arange(4))


# What expand would show as rows of one memory.
REPEATED = {
    "repeat": lambda: flow.arange(3.0).view(1, 3).repeat(4, 1),
    "repeat with a dim": lambda: flow.arange(3.0).repeat(2, 1),
    "tile": lambda: flow.ones(1, 1).tile(3, 2),
    "repeat_interleave": lambda: flow.ones(1).repeat_interleave(5),
    "repeat_interleave along": lambda: flow.ones(1, 2).repeat_interleave(3, 0),
    "repeat_interleave of counts": lambda: flow.ones(1).repeat_interleave(flow.tensor([4])),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_elements_are_apart(name):
    x = REPEATED[name]()
    assert x.is_contiguous()
    before = x.clone()
    x.view(-1)[0] = 77
    assert flow.equal(x.view(-1)[1:], before.view(-1)[1:]) and x.view(-1)[0].item() == 77


VIEWS = {
    "expand": lambda y: y.expand(4, 3, 3), "a row, expanded": lambda y: y[0].expand(2, 3),
    "a dim in front": lambda y: y[None].expand(2, 3, 3), "a dim behind":
    lambda y: y.view(3, 3, 1).expand(3, 3, 2), "broadcast_to": lambda y: y.broadcast_to(2, 3, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_an_expanded_view_keeps_its_gradient_when_its_base_changes(name):
    grads = []
    for first in (True, False):
        x = flow.arange(1.0, 10.0).view(3, 3).clone().requires_grad_()
        y = x * 1
        v = VIEWS[name](y) if first else None
        y.mul_(x)
        v = v if first else VIEWS[name](y)
        weight = flow.arange(float(v.numel())).view(v.shape)
        (v * weight).sum().backward()
        grads.append(x.grad)
    assert flow.equal(*grads)


def test_windows_that_overlap_say_that_they_have_no_gradient():
    x = flow.ones(4, requires_grad=True)
    y = x * 1
    windows = y.as_strided([3, 2], [1, 1])
    y.add_(1)
    with pytest.raises(NotImplementedError, match="overlapping elements"):
        windows.sum().backward()
