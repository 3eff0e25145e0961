# SPDX-License-Identifier: Apache-2.0
"""Functions whose forward gives a view: its backward is never lost to a change in place."""

import pytest

flow = pytest.importorskip("oneflow_lite")


class Reversed(flow.autograd.Function):
    """A view of the input; the gradient comes back with the other sign."""

    @staticmethod
    def forward(ctx, x):
        return x.view(2, 2)

    @staticmethod
    def backward(ctx, dy):
        return -dy.reshape(-1)


class PassedOn(Reversed):
    @staticmethod
    def forward(ctx, x):
        return x


class Halves(Reversed):
    @staticmethod
    def forward(ctx, x):
        return x[:2], x[2:]

    @staticmethod
    def backward(ctx, a, b):
        return -flow.cat([a, b])


def leaf():
    return flow.arange(4.0).requires_grad_()


GIVES = {"view": Reversed.apply, "input": PassedOn.apply, "part": lambda x: Halves.apply(x)[1]}
IN_PLACE = {
    "add_": lambda y: y.add_(1),
    "assignment": lambda y: y.__setitem__(0, 1),
    "of a view": lambda y: y.view(-1)[1:].mul_(2),
    "of a part": lambda y: y.split(1)[0].mul_(2),
    "copy_": lambda y: y.copy_(flow.ones(y.shape)),
    "relu_": flow.nn.functional.relu_,
}


@pytest.mark.parametrize("change", IN_PLACE)
@pytest.mark.parametrize("gives", GIVES)
def test_a_view_of_an_input_is_not_changed_in_place(gives, change):
    x = leaf()
    y = GIVES[gives](x * 1)
    before = y.tolist()
    with pytest.raises(RuntimeError, match="a view that a Function gave cannot be changed in pl"):
        IN_PLACE[change](y)
    assert y.tolist() == before
    y.sum().backward()
    assert x.grad.abs().sum().item() == y.numel() and x.grad.max().item() <= 0
    x.grad = None
    IN_PLACE[change](changed := GIVES[gives](x * 1).clone())
    changed.sum().backward()
    assert x.grad.max().item() <= 0


@pytest.mark.parametrize("gives", GIVES)
def test_a_view_is_not_used_after_its_base_was_changed(gives):
    x = leaf()
    base = x * 1
    y = GIVES[gives](base)
    part = y[:1]
    base.mul_(7)
    for used in (y, part):
        with pytest.raises(RuntimeError, match="used after its memory was changed in place"):
            used.sum()
    base.sum().backward()
    assert x.grad.tolist() == [7, 7, 7, 7]


def test_a_view_of_memory_of_its_own_is_a_tensor_like_others():
    class Doubled(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x.detach() * 2).view(2, 2)

        @staticmethod
        def backward(ctx, dy):
            return dy.reshape(-1) * 100

    for change, slopes in (
        (lambda y: y.add_(1), [100] * 4),
        (lambda y: y.mul_(3), [300] * 4),
        (lambda y: y[0].mul_(3), [300, 300, 100, 100]),
        (lambda y: y.t()[0].fill_(3), [0, 100, 0, 100]),
    ):
        x = leaf()
        y = Doubled.apply(x)
        earlier = y[0]
        change(y)
        (y.sum() + 0 * earlier.sum()).backward()
        assert x.grad.tolist() == slopes


def test_two_outputs_of_one_memory_are_not_changed_in_place():
    class Twice(Reversed):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y.view(2, 2)

        @staticmethod
        def backward(ctx, a, b):
            return 2 * (a + b.reshape(-1))

    x = leaf()
    y, z = Twice.apply(x)
    with pytest.raises(RuntimeError, match="a view that a Function gave"):
        z.add_(1)
    (y.sum() + z.sum()).backward()
    assert x.grad.tolist() == [4, 4, 4, 4]


def test_nothing_is_refused_where_nothing_is_recorded():
    x = leaf()
    with flow.no_grad():
        y = Reversed.apply(x)
        y.add_(1)
    assert x.tolist() == [1, 2, 3, 4] and y.tolist() == [[1, 2], [3, 4]]
    constant = flow.arange(4.0)
    Reversed.apply(constant).add_(1)
    assert constant.tolist() == [1, 2, 3, 4]


def test_hooks_of_modules_leave_results_that_can_be_changed_in_place():
    linear = flow.nn.Linear(4, 4)
    seen = []
    linear.register_full_backward_hook(lambda m, dx, dy: seen.append(dy[0].tolist()))
    y = linear(leaf())
    y.mul_(3)
    y.sum().backward()
    assert seen == [[3, 3, 3, 3]] and linear.bias.grad.tolist() == [3, 3, 3, 3]
