# SPDX-License-Identifier: Apache-2.0
"""autograd.Function: a forward and a backward of the user's."""

import gc
import inspect
import threading
import weakref

import pytest
from numerics import flow

Function = flow.autograd.Function


class Scaled(Function):
    """x * y * factor, with the output saved as well."""

    @staticmethod
    def forward(ctx, x, y, factor):
        z = x * y * factor
        ctx.save_for_backward(x, None, y, z)
        ctx.factor = factor
        return z

    @staticmethod
    def backward(ctx, dz):
        x, nothing, y, z = ctx.saved_tensors
        assert nothing is None and z.shape == dz.shape
        dx = dz * y * ctx.factor if ctx.needs_input_grad[0] else None
        return dx, dz * x * ctx.factor if ctx.needs_input_grad[1] else None, None


def leaf(*values):
    return flow.tensor(values, dtype=flow.float64, requires_grad=True)


def test_values_gradients_and_second_order():
    x, y = leaf(1, 2, 3), leaf(4, 5, 6)
    z = Scaled.apply(x, y, 2.0)
    assert z.requires_grad and z.grad_fn.name() == "ScaledBackward"
    z.sum().backward()
    assert z.tolist() == [8, 20, 36] and x.grad.tolist() == [8, 10, 12]
    assert y.grad.tolist() == [2, 4, 6]
    for inputs in ((x, y), (x.detach(), y), (x, y.detach())):
        assert flow.autograd.gradcheck(lambda *a: Scaled.apply(*a, 2.0), inputs)
        assert flow.autograd.gradgradcheck(lambda *a: Scaled.apply(*a, 2.0), inputs)


def test_nothing_is_recorded_where_nothing_is_needed():
    x, y = leaf(1, 2), leaf(3, 4)
    assert not Scaled.apply(x.detach(), y.detach(), 1.0).requires_grad
    with flow.no_grad():
        assert not Scaled.apply(x, y, 1.0).requires_grad


class Two(Function):
    @staticmethod
    def forward(ctx, x):
        order = x.argsort()
        ctx.mark_non_differentiable(order)
        return x * 2, x + 1, order, x

    @staticmethod
    def backward(ctx, a, b, order, same):
        return 2 * a + b + same


def test_several_outputs():
    x = leaf(2, 1)
    double, more, order, same = Two.apply(x)
    assert not order.requires_grad and order.tolist() == [1, 0]
    assert same is not x and same.requires_grad and not same.is_leaf and same.tolist() == [2, 1]
    (double * 3 + same).sum().backward()  # nothing flows to `more`: zeros
    assert x.grad.tolist() == [7, 7] and more.requires_grad


class Unmaterialised(Two):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        assert b is None
        return a * 2


def test_gradients_that_are_not_there():
    x = leaf(1)
    Unmaterialised.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2]


class Apart(Function):
    @staticmethod
    def forward(x, power):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.power = inputs
        ctx.save_for_backward(x)

    @staticmethod
    @flow.autograd.function.once_differentiable
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * ctx.power * x ** (ctx.power - 1), None


def test_setup_context_and_once_differentiable():
    x = leaf(3)
    (g,) = flow.autograd.grad(Apart.apply(x, 2).sum(), x, create_graph=True)
    assert g.tolist() == [6] and not g.requires_grad


def function(backward):
    members = {"forward": staticmethod(lambda ctx, x: x * 2), "backward": staticmethod(backward)}
    return type("Odd", (Function,), members)


@pytest.mark.parametrize(
    ("backward", "error", "text"),
    [
        (lambda ctx, dy: (dy, dy), RuntimeError, "Odd: backward gave 2 gradients for 1 arguments"),
        (lambda ctx, dy: dy.sum(), flow.ShapeError, "the gradient of tensor 0 has shape []"),
        (lambda ctx, dy: 1.0, TypeError, "float"),
        (lambda ctx, dy: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_errors_in_backward(backward, error, text):
    x = leaf(1, 2)
    with pytest.raises(error) as raised:
        function(backward).apply(x).sum().backward()
    assert text in str(raised.value) and x.grad is None


def test_saved_tensors_are_guarded():
    x, y = leaf(1, 2), leaf(3, 4)
    z = Scaled.apply(x * 1, y, 1.0)
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    with pytest.raises(RuntimeError, match="a second time"):
        z.sum().backward()
    a = x * 1
    z = Scaled.apply(a, y, 1.0)
    a.add_(1)
    with pytest.raises(RuntimeError, match="in place"):
        z.sum().backward()
    with pytest.raises(TypeError, match="save_for_backward"):
        Saves.apply(x)


class Saves(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward("x")
        return x


def test_the_gradient_has_the_dtype_of_the_input():
    x = flow.ones(2, dtype=flow.float16, requires_grad=True)
    function(lambda ctx, dy: dy.float()).apply(x).sum().backward()
    assert x.grad.dtype == flow.float16


def test_an_output_that_was_saved_does_not_keep_itself():
    class Canary:
        pass

    x, y, canary = leaf(1), leaf(2), Canary()

    class Kept(Scaled):
        @staticmethod
        def forward(ctx, x, y, factor):
            ctx.canary = canary
            return Scaled.forward(ctx, x, y, factor)

    z, watched = Kept.apply(x, y, 1.0), weakref.ref(canary)
    Kept.forward, canary = None, None
    del z
    gc.collect()
    assert watched() is None


def test_an_input_that_is_passed_on_can_be_constant():
    class Passes(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x, x * 2

        @staticmethod
        def backward(ctx, _, dy):
            return dy * 2

    x = leaf(1)
    passed, y = Passes.apply(x)
    assert not passed.requires_grad and y.requires_grad and x.requires_grad


def test_setup_context_sees_defaults_and_backward_may_give_none_for_them():
    class Power(Function):
        @staticmethod
        def forward(x, n=3):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.n = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return dy * ctx.n * x ** (ctx.n - 1), None

    for arguments, slope in (((), 12), ((2,), 4)):
        x = flow.tensor(2.0, requires_grad=True)
        Power.apply(x, *arguments).backward()
        assert x.grad.item() == slope


def test_no_inputs_are_an_error():
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="grad requires non-empty inputs"):
        flow.autograd.grad(x.sum(), [])
    with pytest.raises(RuntimeError, match="inputs is empty"):
        flow.autograd.backward(x.sum(), inputs=[])
    with pytest.raises(RuntimeError, match="inputs is empty"):
        x.sum().backward(inputs=[])


def test_a_signature_is_read_once_and_may_be_absent(monkeypatch):
    read, signature = [], inspect.signature
    monkeypatch.setattr(
        "inspect.signature", lambda function: read.append(function) or signature(function)
    )
    seen = []

    class Shifted(Function):
        @staticmethod
        def forward(x, by=3, *more, named=None):
            return x + by

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(inputs[1:])

    class Less(Shifted):
        @staticmethod
        def forward(x, by=4):
            return x - by

    for cls in (Shifted, Less, Shifted, Less):
        cls.apply(1)
        cls.apply(1, 2)
    Shifted.apply(1, 2, 5)
    assert seen == [(3,), (2,), (4,), (2,)] * 2 + [(2, 5)]
    assert read == [Shifted.forward, Less.forward]

    class Largest(Shifted):
        forward = max  # a function of C without a signature

    assert Largest.apply(1, 2) == 2 and seen[-1] == (2,)
    with pytest.raises(TypeError, match="missing 1 required"):
        Less.apply()


class ScaledInPlace(Function):
    """x becomes factor * x + y."""

    @staticmethod
    def forward(ctx, x, y, factor):
        ctx.factor = factor
        x.mul_(factor).add_(y)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, dz):
        return dz * ctx.factor, dz, None


def test_an_input_changed_in_place():
    x, y = leaf(1, 2), leaf(3, 4)
    changed = x * 3
    z = ScaledInPlace.apply(changed, y, 2.0)
    assert z is changed and z.tolist() == [9, 16]
    assert z.grad_fn.name() == "ScaledInPlaceBackward"
    (z * leaf(1, 10)).sum().backward()
    assert x.grad.tolist() == [6, 60] and y.grad.tolist() == [1, 10]

    constant = flow.ones(2, dtype=flow.float64)
    ScaledInPlace.apply(constant, y, 2.0)
    assert constant.requires_grad and not constant.is_leaf


def test_what_cannot_be_changed_in_place():
    x, y = leaf(1, 2), leaf(3, 4)
    with pytest.raises(RuntimeError, match="ScaledInPlace: a leaf that requires grad"):
        ScaledInPlace.apply(x, y, 2.0)
    with pytest.raises(RuntimeError, match="a view cannot be changed in place"):
        ScaledInPlace.apply((x * 1)[:1], y[:1], 2.0)

    class Other(ScaledInPlace):
        @staticmethod
        def forward(ctx, x, y, factor):
            ctx.mark_dirty(x)
            return x * factor

    with pytest.raises(RuntimeError, match="Other: what mark_dirty names must be an input"):
        Other.apply(x * 1, y, 2.0)


class Waits(Function):
    """2 x; backward waits where it is told to, and reads then what was saved."""

    here, go_on = threading.Event(), threading.Event()

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, dy):
        if not Waits.here.is_set():
            Waits.here.set()
            assert Waits.go_on.wait(60)
        (x,) = ctx.saved_tensors
        return dy * 2 + 0 * x


def test_two_threads_in_one_backward_have_what_was_saved():
    x = leaf(1.0, 2.0)
    y, errors = Waits.apply(x).sum(), []

    def first():
        try:
            y.backward(retain_graph=True)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert Waits.here.wait(60)
    y.backward(retain_graph=True)  # comes and goes while the other one waits
    Waits.go_on.set()
    thread.join()
    assert errors == [] and x.grad.tolist() == [4, 4]


def test_a_thread_of_backward_sees_what_was_saved():
    seen = []

    class Asks(Waits):
        @staticmethod
        def backward(ctx, dy):
            asking = threading.Thread(target=lambda: seen.extend(ctx.saved_tensors))
            asking.start()
            asking.join()
            return dy

    x = leaf(1.0)
    Asks.apply(x).sum().backward()
    assert len(seen) == 1 and seen[0].tolist() == [1.0]


def fixed_gradients(*gradients):
    """A Function of as many tensors, the sum of them; backward gives the gradients as they are."""
    members = {"forward": staticmethod(lambda ctx, *xs: sum(x.sum() for x in xs)),
               "backward": staticmethod(lambda ctx, dy: gradients)}  # fmt: skip
    return type("Fixed", (Function,), members)


@pytest.mark.parametrize(
    ("shape", "given", "expected"),
    [
        ([], [4, 1], 8.0),
        ([3], [2, 3], [10.0, 10.0, 10.0]),
        ([2, 1], [2, 3], [[15.0], [15.0]]),
        ([1], [], None),
        ([2, 3], [3], None),
        ([2], [4, 4, 1], None),
    ],
)
def test_a_gradient_is_summed_over_the_dims_in_which_its_tensor_was_broadcast(
    shape, given, expected
):
    x = flow.zeros(shape, dtype=flow.float64, requires_grad=True)
    value = 2.0 if expected == 8.0 else 5.0
    y = fixed_gradients(flow.full(given, value, dtype=flow.float64)).apply(x)
    if expected is None:
        with pytest.raises(flow.ShapeError, match="the gradient of tensor 0 has shape .* expected"):
            y.backward()
    else:
        y.backward()
        assert x.grad.tolist() == expected


def test_a_gradient_that_nobody_needs_is_not_looked_at():
    x, places, other = leaf(1, 2), flow.tensor([1, 0]), flow.zeros(3)
    gradients = flow.ones(2, dtype=flow.float64), places, flow.ones(5, 5, device="meta")
    fixed_gradients(*gradients).apply(x, places, other).backward()
    assert x.grad.tolist() == [1.0, 1.0]
    # The tensor that needs one is still told of its own.
    with pytest.raises(flow.ShapeError, match="the gradient of tensor 1 has shape"):
        fixed_gradients(None, flow.ones(3)).apply(flow.zeros(7), leaf(1, 2)).backward()


class Power(Function):
    @staticmethod
    def forward(ctx, x, n=2, *, scale=1.0):
        ctx.save_for_backward(x)
        ctx.n = n
        return scale * x**n

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * ctx.n * x ** (ctx.n - 1), None


class PowerOfTwo(Function):
    @staticmethod
    def forward(x, n=2):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.save_for_backward(x)

    backward = Power.backward


@pytest.mark.parametrize("function", [Power, PowerOfTwo])
def test_arguments_by_keyword(function):
    for args, kwargs, slopes in [((), {"x": 0}, [2, 4]), (("x",), {"n": 3}, [3, 12]),
                                 ((), {"n": 3, "x": 0}, [3, 12])]:  # fmt: skip
        x = leaf(1, 2)
        if "x" in kwargs:
            kwargs["x"] = x
        function.apply(*([x] if args else []), **kwargs).sum().backward()
        assert x.grad.tolist() == slopes


def test_keywords_that_forward_does_not_take():
    x = leaf(1, 2)
    for kwargs, message in [
        ({"q": 1}, r"Power.apply\(\): got an unexpected keyword argument 'q'"),
        ({"x": x}, r"Power.apply\(\): multiple values for argument 'x'"),
        ({"scale": 2.0}, r"Power.apply\(\): forward takes scale by keyword alone"),
    ]:
        with pytest.raises(TypeError, match=message):
            Power.apply(x, **kwargs)
    with pytest.raises(TypeError, match=r"Power.apply\(\): missing a required argument: 'x'"):
        Power.apply(n=3)


@pytest.mark.parametrize("materialize", [True, False])
def test_outputs_without_a_gradient_have_zeros_in_backward(materialize):
    seen = []

    class Several(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            constant = x * 3
            ctx.mark_non_differentiable(constant)
            return x * 2, constant, x.long(), x > 0, "no tensor"

        @staticmethod
        def backward(ctx, dy, *others):
            seen.extend(others)
            return dy * 2

    x = leaf(1, 2)
    Several.apply(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2] and seen[3] is None
    if materialize:
        assert [t.dtype for t in seen[:3]] == [flow.float64, flow.int64, flow.bool]
        assert [t.tolist() for t in seen[:3]] == [[0, 0], [0, 0], [False, False]]
    else:
        assert seen == [None] * 4
