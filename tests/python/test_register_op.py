# SPDX-License-Identifier: Apache-2.0
"""Ops in Python: every way to declare them, and what is said where one is declared wrongly."""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import pickle
import typing
from typing import TYPE_CHECKING

import numpy as np
import pytest

import oneflow_lite as flow

if TYPE_CHECKING:
    from typing import Optional

    from oneflow_lite import Tensor

numbers = itertools.count()
PLACE = r"\(.*test_register_op.py:\d+\)$"  # of forward


def register(**functions):
    """A new op of these functions and lists."""
    static = {k: staticmethod(v) if callable(v) else v for k, v in functions.items()}
    return flow.register_op(f"declared::op{next(numbers)}")(type("Op", (), static))


def ones(*shape):
    return flow.ones(*shape, requires_grad=True)


# ---- parameters


def test_parameters_by_keyword_only():
    def forward(x, *, y, factor: float = 2.0):
        return x * factor + y

    def infer(x, y, factor):
        return x.shape, x.dtype

    op = register(forward=forward, infer=infer, backward=lambda ctx, dz: (dz * ctx.factor, dz))
    x, y = ones(2), ones(2)
    assert op(x, y=y, factor=3).tolist() == [4, 4] and op(x, y).tolist() == [3, 3]
    op(x, y).sum().backward()
    assert x.grad.tolist() == [2, 2] and y.grad.tolist() == [1, 1]


def annotated(
    x: Tensor,  # a name of the type checker's only
    y: flow.Tensor | None = None,
    z: Optional[Tensor] = None,  # noqa: UP045
    v: None | Tensor = None,
    w: typing.Optional["flow.Tensor"] = None,  # noqa: UP037, UP045
    a: typing.Optional[float] = None,  # noqa: UP045
    b: typing.List[int] = [1, 2],  # noqa: B006, UP006
    c: tuple[int, ...] = (3,),
    d: flow.dtype = flow.float32,
    e: bool = False,
    f: str = "mean",
    g: "int | None" = None,  # noqa: UP037
    h: typing.Literal["a", "b"] = "a",
):
    return x * 1


def test_annotations_however_they_are_written():
    op = register(forward=annotated)
    assert repr(op).endswith(
        "(Tensor x, Tensor? y, Tensor? z, Tensor? v, Tensor? w, float? a=None, int[] b=[1, 2], "
        "int[] c=[3], dtype d=float32, bool e=False, str f='mean', int? g=None, str h='a') "
        "-> (Tensor out)>"
    )
    assert op(ones(2), a=1, b=(4, 5), d=flow.int64, g=3).tolist() == [1, 1]


@pytest.mark.parametrize(
    "annotation",
    ["list[Tensor]", "List[Tensor]", "Sequence[flow.Tensor]", "tuple[oneflow_lite.Tensor, ...]",
     typing.List["flow.Tensor"], list["flow.Tensor"]],  # noqa: UP006
)  # fmt: skip
def test_annotations_of_lists_that_only_a_type_checker_reads(annotation):
    forward = eval("lambda x, ys: x + ys[0]", {})
    forward.__annotations__["ys"] = annotation
    assert repr(register(forward=forward)).endswith("(Tensor x, Tensor[] ys) -> (Tensor out)>")


@pytest.mark.parametrize("annotation", ["list[Tensor | None]", "list[float]", "tuple[int, str]"])
def test_lists_that_are_none_of_an_op(annotation):
    forward = eval("lambda x, ys: x", {})
    forward.__annotations__["ys"] = annotation
    with pytest.raises(TypeError, match="parameter ys has type .*; allowed are Tensor, list"):
        register(forward=forward)


def test_a_list_of_ints_is_a_tuple():
    seen = []

    def forward(x, axes: list[int]):
        seen.append(axes)
        return x * 1

    def backward(ctx, dy):
        seen.append(ctx.axes)
        return dy

    op = register(forward=forward, backward=backward, infer=lambda x, axes: seen.append(axes) or x)
    op(ones(2), [1, 2]).sum().backward()
    assert seen == [(1, 2)] * 3


def test_a_list_of_tensors():
    def forward(scale, xs: list[flow.Tensor], factor: float = 1.0):
        return flow.cat([x * scale * factor for x in xs])

    def backward(ctx, dy):
        assert ctx.needs == {"scale": False, "xs": [True, False]} and len(ctx.xs) == 2
        first = len(ctx.xs[0])
        return None, [dy[:first] * ctx.scale * ctx.factor, dy[first:]]

    op = register(forward=forward, backward=backward)
    x, y = ones(2), flow.ones(3)
    z = op(flow.tensor([2.0]), [x, y], factor=5.0)
    assert z.tolist() == [10] * 5
    z.sum().backward()
    assert x.grad.tolist() == [10, 10]

    pair = lambda xs: xs[0] + xs[1]  # noqa: E731
    pair.__annotations__["xs"] = list[flow.Tensor]
    both = register(forward=pair, backward=lambda ctx, dy: (dy, dy * 2))
    a, b = ones(2), ones(2)
    both([a, b]).sum().backward()
    assert a.grad.tolist() == [1, 1] and b.grad.tolist() == [2, 2]
    three = register(forward=pair, backward=lambda ctx, dy: (dy, dy, dy))
    with pytest.raises(ValueError, match="3 gradients for the 2 tensors of xs"):
        three([a, b]).sum().backward()


def test_any_callable_is_a_forward():
    class Doubled:
        def __call__(self, x):
            return x * 2

    for forward in (Doubled(), functools.partial(flow.mul, flow.tensor(2.0)), lambda x: x * 2):
        if not isinstance(forward, functools.partial):
            op = flow.register_op(f"declared::op{next(numbers)}")(forward)
            assert op(ones(2)).tolist() == [2, 2]
    assert register(forward=flow.exp)(flow.zeros(2)).tolist() == [1, 1]


def has_default(value, kind):
    def forward(x, a=value):
        return x

    forward.__annotations__["a"] = kind
    return forward


@pytest.mark.parametrize(
    "functions, message",
    [
        ({"forward": lambda self, x: x}, "there is no object, and forward has no self"),
        ({"forward": lambda ctx, x: x}, "forward gets no ctx: write def forward"),
        ({"forward": lambda x, *a: x}, r"forward may not have \*a"),
        ({"forward": lambda x, a=1.5: x}, "annotate attributes with their type"),
        ({"forward": has_default(1.5, int)}, "the default of a, 1.5, is no int"),
        ({"forward": has_default("s", float)}, "the default of a, 's', is no float"),
        ({"forward": has_default(1, bool)}, "the default of a, 1, is no bool"),
        ({"forward": has_default([1.5], list[int])}, r"the default of a, \[1.5\], is no int\[\]"),
        ({"forward": has_default(None, set)}, "parameter a has type <class 'set'>; allowed are"),
        ({"forward": lambda x: x, "infer": lambda: 1}, r"infer is called with \(x\), but is infer"),
        ({"forward": lambda x: x, "backward": lambda ctx: 1}, r"called with \(ctx, dout\)"),
        ({"forward": lambda x: x, "cost": lambda x, y: 1}, "cost is called with"),
        ({"forwards": lambda x: x}, "the class has 'forwards'; did you mean 'forward'"),
        (
            {"forward": lambda x: x, "bakward": lambda ctx, dout: dout},
            "the class has 'bakward'; did you mean 'backward'",
        ),
        ({"forward": lambda x: x, "infer": 3}, "infer is 3, which is no function"),
        ({"forward": lambda x: x, "save": "z"}, r"save names 'z'; there are \['x', 'out'\]"),
        ({"forward": has_default(2**70, int)}, r"of a, \d+, is no int of 64 bits"),
        ({"forward": has_default([2**70], list[int])}, r"of a, \[\d+\], is no int\[\] of 64 bits"),
        ({"forward": has_default(10**400, float)}, r"the default of a, \d+, is no float"),
        ({"forward": has_default(None, list[flow.Tensor])}, "a, a list of tensors, cannot be opt"),
        (
            {"forward": has_default(inspect.Parameter.empty, list[flow.Tensor] | None)},
            "a, a list of tensors, cannot be optional",
        ),
        ({"forward": lambda x: x, "outputs": 2}, "outputs must be names, not 2"),
        ({"forward": lambda x: x, "outputs": None}, "outputs must be names, not None"),
        ({"forward": lambda x: x, "outputs": ("a b", "c")}, "outputs has 'a b', which is no ident"),
        ({"forward": lambda x: x, "outputs": ("a", "class")}, "outputs has 'class', which is no"),
        ({"forward": lambda x, _op: x}, "ctx has '_op' itself; another name"),
        ({"forward": lambda x, needs: x}, "ctx has 'needs' itself"),
        ({"forward": lambda x: x, "outputs": "__dict__"}, "ctx has '__dict__' itself"),
        ({"forward": lambda x: x, "outputs": "x"}, "'x' names two things"),
        ({"forward": lambda x: x, "outputs": ("y", "y")}, "'y' names two things"),
    ],
)
def test_a_wrong_declaration_is_refused_at_once(functions, message):
    before = flow.ops.list()
    with pytest.raises((TypeError, ValueError), match=message):
        register(**functions)
    assert flow.ops.list() == before


def test_a_class_may_have_functions_of_its_own():
    assert register(forward=lambda x: x * 2, forward_on_cpu=3, shape_of=4)(ones(2)).tolist() == [
        2,
        2,
    ]


@pytest.mark.parametrize(
    "name", ["x", "a::", "::b", "a::b::c", "a b::c", "1a::b", "a::class", "a::b-c", "é::b",
             "a::__b__", "list::x", "describe::x", 3, None, lambda x: x, "softmax::x", "add::x",
             "unknown::x", "builtins::x", "annotations::x", "Any::x", "_ext::x", "_op::x"]
)  # fmt: skip
def test_a_name_that_cannot_be_written_is_refused(name):
    with pytest.raises(ValueError, match='the name must be "namespace::name"'):
        flow.register_op(name)(lambda x: x)


# ---- what infer and forward give

WANTED = r"must give a meta tensor or a pair \(shape, dtype\)"


@pytest.mark.parametrize(
    "infer, message",
    [
        (lambda x: None, f"infer gave None as output out, but {WANTED}"),
        (lambda x: [x.shape], f"infer gave .*Size.*2.* as output out, but {WANTED}"),
        (lambda x: (2, x.dtype), f"infer gave .2, .*float32. as output out, but {WANTED}"),
        (lambda x: ((2.0,), x.dtype), f"infer gave .* as output out, but {WANTED}"),
        (lambda x: (x.shape, "float32"), "infer gave 2 outputs, but the op has 1, and each is"),
        (lambda x: [(x.shape, x.dtype)] * 2, "infer gave 2 outputs, but the op has 1"),
        (lambda x: ((-1,), x.dtype), r"infer gave the shape \[-1\]"),
        (None, "forward, run on meta tensors to infer, gave <generator"),
    ],
)
def test_what_infer_gives_is_checked(infer, message):
    op = register(forward=lambda x: (t for t in [x]), **({"infer": infer} if infer else {}))
    with pytest.raises((TypeError, ValueError), match=message):
        op(ones(2))


@pytest.mark.parametrize(
    "forward",
    [lambda x: flow.from_numpy(x.numpy()), lambda x: x if x.sum() > 0 else -x,
     lambda x: x * x.sum().item(), lambda x: flow.from_dlpack(np.from_dlpack(x)),
     lambda x: x * x.data_ptr()],
)  # fmt: skip
def test_a_forward_that_wants_values_is_told_to_have_an_infer(forward):
    with pytest.raises(RuntimeError, match="wants values .*; give the op an infer function"):
        register(forward=forward)(ones(2))


OUTSIDE = flow.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    "forward",
    [lambda x: x + OUTSIDE, lambda x: x * flow.zeros(1), lambda x: flow.cat([x, flow.rand(3)]),
     lambda x: flow.where(x > 0, x, OUTSIDE), lambda x: x @ OUTSIDE],
)  # fmt: skip
def test_a_forward_with_a_tensor_from_outside_is_told_to_have_an_infer(forward):
    message = r"^declared::op\d+\(\): .* on meta tensors .*a tensor from outside.*infer function"
    with pytest.raises(RuntimeError, match=message) as caught:
        register(forward=forward)(ones(2))
    assert "on one device" in str(caught.value.__cause__)
    shape = forward(flow.zeros(2)).shape
    assert register(forward=forward, infer=lambda x: (shape, x.dtype))(ones(2)).shape == shape


def test_what_forward_gives_is_checked():
    like = lambda x: x  # noqa: E731
    with pytest.raises(TypeError, match=f"forward gave numpy.ndarray as output out.* {PLACE}"):
        register(infer=like, forward=lambda x: x.detach().numpy())(ones(2))
    meta = register(infer=like, forward=lambda x: flow.empty(2, device="meta"))
    with pytest.raises(RuntimeError, match=r"promised .*float32, cpu.* gave .*float32, meta"):
        meta(ones(2))


def test_text_defaults_that_are_hard_to_write():
    assert "str a='\\x00\\n')" in repr(register(forward=lambda_of("\0\n")))
    with pytest.raises(ValueError, match="default of attribute a has half of a surrogate pair"):
        register(forward=lambda_of("\ud800"))


def lambda_of(default):
    def forward(x, a: str = default):
        return x * 1

    return forward


def test_local_and_global_tensors_do_not_mix():
    far = ones(2).to_global(flow.placement("cpu", [0]), flow.sbp.broadcast).detach()
    spec = {"infer": lambda x: (x.shape, x.dtype)}
    op = register(forward=lambda x: far, **spec)
    with pytest.raises(RuntimeError, match=r"but the kernel gave .*\(float32, cpu\) on placement"):
        op(ones(2))
    op = register(forward=lambda x: x * 2, backward=lambda ctx, dy: far, **spec)
    x = ones(2)
    for backward in (lambda y: y.backward(), lambda y: flow.autograd.grad(y, x)):
        with pytest.raises(RuntimeError, match="local and global tensors do not mix"):
            backward(op(x).sum())
    y = x * 1
    y.register_hook(lambda grad: far)
    with pytest.raises(RuntimeError, match=r"^register_hook\(\): .* do not mix"):
        y.sum().backward()


def test_outputs_share_nothing():
    def forward(x):
        y = x * 2
        return y, y, y[:1], constant

    constant = flow.ones(2)
    op = register(forward=forward, outputs=("a", "b", "c", "d"), infer=lambda x: (x, x, x[:1], x),
                  backward=lambda ctx, da, db, dc, dd: da)  # fmt: skip
    x = ones(2)
    a, b, c, d = op(x)
    with flow.no_grad():
        a.zero_()
    assert b.tolist() == [2, 2] and c.tolist() == [2]
    assert d is not constant and not constant.requires_grad and d.requires_grad
    assert op(x)[3] is not d


def test_a_view_of_memory_of_its_own_may_be_changed_in_place():
    @flow.register_op("register_op_test::doubled_flat")
    class DoubledFlat:
        def forward(x):
            return (x * 2).view(-1)

        def backward(ctx, dy):
            return 2 * dy.view(ctx.x.shape)

    x = flow.ones(2, 2, requires_grad=True)
    y = DoubledFlat(x)
    y[:1].mul_(5)
    y.add_(1)
    y.sum().backward()
    assert y.tolist() == [11, 3, 3, 3] and x.grad.tolist() == [[10, 2], [2, 2]]


def test_memory_that_comes_back_through_numpy_is_copied():
    outside = [
        lambda x: flow.from_numpy(x.numpy().T),
        lambda x: flow.from_numpy(x.numpy()[1:, ::-1].copy()[:0].reshape(0)),  # of no elements
        lambda x: flow.from_numpy(x.numpy()[1:]),
        lambda x: flow.from_dlpack(np.from_dlpack(x))[:, 1],
    ]
    for forward in outside:
        op = register(forward=forward, infer=lambda x, f=forward: (f(flow.zeros(*x.shape)).shape,
                                                                   x.dtype))  # fmt: skip
        x = flow.arange(6.0).reshape(2, 3)
        y = op(x)
        want = forward(x).tolist()
        y.zero_()
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and forward(x).tolist() == want
    twice = register(
        forward=lambda x: (a := flow.from_numpy((x * 2).numpy()), flow.from_numpy(a.numpy())),
        outputs=("a", "b"), infer=lambda x: (x, x),
    )  # fmt: skip
    a, b = twice(flow.ones(2))
    a.zero_()
    assert b.tolist() == [2, 2]


# ---- gradients


def test_a_gradient_that_did_not_flow_is_zeros():
    def backward(ctx, da, db, dn):
        assert dn is None and db.tolist() == [[0, 0]] and db.dtype == flow.float64
        return da * 2 + db.reshape(2).to(dtype=flow.float32)

    op = register(
        forward=lambda x: (x * 2, x.reshape(1, 2).to(dtype=flow.float64), x.to(dtype=flow.int64)),
        outputs=("a", "b", "n"),
        backward=backward,
    )
    x = ones(2)
    op(x)[0].sum().backward()
    assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    "backward, message",
    [
        (lambda ctx, dy: dy.to(dtype=flow.float64), rf"of x has dtype float64, .* float32 {PLACE}"),
        (lambda ctx, dy: dy.sum(), rf"gradient of x has shape \[\], expected \[2\] {PLACE}"),
        (lambda ctx, dy: (dy, dy), rf"2 gradients for 1 inputs \(x\) {PLACE}"),
        (lambda ctx, dy: 3.0, f"backward gave float for x, .* {PLACE}"),
        (lambda ctx, dy: None, f"backward gave no gradient, though x needs one; .* {PLACE}"),
        (lambda ctx, dy: dy * ctx.z, r"ctx has no 'z'; there are \['x', 'needs'\]"),
        (lambda ctx, dy: dy * ctx.out, "out is not kept for backward; name it in `save`"),
    ],
)
def test_what_backward_does_is_checked(backward, message):
    y = register(forward=lambda x: x * 2, backward=backward)(ones(2)).sum()
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        y.backward()


def test_one_gradient_of_several_may_be_none():
    op = register(forward=lambda x, y: x * 2 + y, backward=lambda ctx, dz: (dz * 2, None))
    x, y = ones(2), ones(2)
    op(x, y).sum().backward()
    assert x.grad.tolist() == [2, 2] and y.grad is None
    with pytest.raises(ValueError, match="backward gave no gradient, though y needs one"):
        op(x.detach(), y).sum().backward()


def test_the_gradient_of_a_list_is_named_by_its_place():
    def forward(x, ys: list[flow.Tensor]):
        return x + ys[0] + ys[1]

    op = register(forward=forward, backward=lambda ctx, dz: (dz, [dz, dz.sum()]))
    z = op(ones(2), [ones(2), ones(2)])
    with pytest.raises(ValueError, match=r"gradient of ys\[1\] has shape \[\], expected \[2\] \("):
        z.sum().backward()


# ---- elsewhere


def test_autocast_stands_above_an_op():
    op = register(forward=lambda x, w: x @ w, backward=lambda ctx, dy: (dy @ ctx.w.T, ctx.x.T @ dy))
    x, w = ones(2, 3), ones(3, 2).requires_grad_()
    with flow.autocast("cpu", dtype=flow.bfloat16):
        y = op(x, w)
        assert y.dtype is flow.float32 and (x @ w).dtype is flow.bfloat16
    y.sum().backward()
    assert w.grad.tolist() == [[2, 2]] * 3


def test_an_op_is_pickled_and_copied_by_its_name():
    op = flow.ops.softmax
    assert pickle.loads(pickle.dumps(op)) is op and copy.deepcopy(op) is op

    class Model(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.op = register(forward=lambda x: x * 2)

    assert copy.deepcopy(Model()).op(ones(2)).tolist() == [2, 2]


def test_ops_are_described_by_name_and_by_themselves():
    assert flow.ops.describe(flow.ops.softmax) == flow.ops.describe("softmax")
    with pytest.raises(NotImplementedError, match='no op named "sofmax"; did you mean softmax or'):
        flow.ops.describe("sofmax")
    with pytest.raises(AttributeError, match='no op and no namespace named "sofmax"; did you mean'):
        flow.ops.sofmax  # noqa: B018
    with pytest.raises(AttributeError) as caught:
        flow.ops.minec  # noqa: B018
    assert caught.value.obj is None  # else Python adds a suggestion of its own
    with pytest.raises(TypeError, match="a name or an op is wanted, not int"):
        flow.ops.describe(3)


def test_a_list_of_more_tensors_than_a_mask_has_bits():
    def forward(xs: list[flow.Tensor]):
        return sum(x * 1 for x in xs)

    def backward(ctx, dy):
        return [dy * i + 0 * x for i, x in enumerate(ctx.xs)]

    op = register(forward=forward, backward=backward)
    xs = [ones(2) for _ in range(70)]
    op(xs).sum().backward()
    assert [x.grad.tolist()[0] for x in xs] == list(range(70))
