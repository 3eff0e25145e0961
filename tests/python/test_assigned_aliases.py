# SPDX-License-Identifier: Apache-2.0
"""x[i] = what shares that memory: another value to autograd, unless it is that view."""

import numpy as np
import pytest
from numerics import flow, host


def detached_part(x):
    x[1:3] = x[1:3].detach()


def detached_whole(x):
    x[:] = x.detach()


def own_view(x):
    x[1:3] = x[1:3]


def older_view(x):
    v = x[1:3]
    x.mul_(2)
    x[1:3] = v


def added_to(x):
    x[1:3] += x[:2]


def of_no_grad(x):
    with flow.no_grad():
        v = x[1:3]
    x[1:3] = v


SLOPES = {detached_part: [2, 0, 0, 2, 2], detached_whole: [0] * 5, own_view: [2] * 5,
          older_view: [4] * 5, added_to: [4, 4, 2, 2, 2], of_no_grad: [2, 0, 0, 2, 2]}  # fmt: skip


@pytest.mark.parametrize("change", SLOPES, ids=lambda f: f.__name__)
def test_slopes_behind_an_assignment(change, device):
    a = flow.arange(1.0, 6, device=device).requires_grad_()
    x = a * 2
    change(x)
    x.sum().backward()
    np.testing.assert_array_equal(host(a.grad), SLOPES[change])


def test_what_is_assigned_brings_its_history(device):
    x = flow.ones(5, device=device, requires_grad=True)
    y = x.detach().clone().detach()
    z = (x * 2).detach().requires_grad_()
    w = z * 1
    v = w.detach()
    v[1:3] = w[1:3]  # shares the memory that it is written into
    assert v.requires_grad
    v.sum().backward()
    np.testing.assert_array_equal(host(z.grad), [0, 1, 1, 0, 0])
    y[1:3] = y[1:3]
    assert not y.requires_grad
