# SPDX-License-Identifier: Apache-2.0
"""Every row of the table of errors: exact types and texts. op_table.py has each op's own."""

import inspect
import math
import pickle

import numpy as np
import pytest
from numerics import bits, flow

NAN = math.nan


def raised(error, call):
    """The text of the exception, whose type is exactly ``error``."""
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    return str(caught.value)


def test_the_error_types_serve_both_habits():
    assert flow.DTypeError.__bases__ == (TypeError, RuntimeError)
    assert flow.ShapeError.__bases__ == (ValueError, RuntimeError)
    assert flow.OutOfMemoryError.__bases__ == (RuntimeError,)
    for error in (flow.DTypeError, flow.ShapeError, flow.OutOfMemoryError):
        assert error.__module__ == "oneflow_lite" and error.__doc__


def test_the_example_message():
    text = raised(IndexError, lambda: flow.softmax(flow.ones(4, 5), 3))
    assert (
        text
        == "softmax(): dim 3 is out of range [-2, 1] for a tensor of shape [4, 5] (float32, cpu)"
    )


@pytest.mark.cuda
def test_the_example_message_on_cuda():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    text = raised(IndexError, lambda: flow.softmax(flow.ones(4, 5, device="cuda"), 3))
    assert text == (
        "softmax(): dim 3 is out of range [-2, 1] for a tensor of shape [4, 5] (float32, cuda:0)"
    )


@pytest.mark.parametrize("dim", [2, -3, 1 << 40, -(1 << 62)])
def test_dim_out_of_range_is_an_index_error(dim, device):
    x = flow.ones(4, 5, device=device)
    for call in (lambda: flow.softmax(x, dim), lambda: x.sum(dim), lambda: x.transpose(dim, 0),
                 lambda: flow.argmax(x, dim), lambda: x.size(dim), lambda: x.narrow(dim, 0, 1),
                 lambda: x.select(dim, 0), lambda: x.permute(0, dim)):  # fmt: skip
        assert f"dim {dim} is out of range [-2, 1]" in raised(IndexError, call)


@pytest.mark.parametrize("index", [4, -5, 1 << 40])
def test_index_out_of_range_is_an_index_error(index, device):
    x = flow.ones(4, 5, device=device)
    assert raised(IndexError, lambda: x[index]).endswith(
        f"index {index} is out of range [-4, 3] for dim 0 of size 4"
    )
    raised(IndexError, lambda: flow.select(x, 0, index))
    raised(IndexError, lambda: x[0, 0, 0])
    with pytest.raises(IndexError):
        x[index] = 1


def test_target_out_of_range_is_an_index_error():
    text = raised(IndexError, lambda: flow.nll_loss(flow.zeros(2, 3), flow.tensor([0, 3])))
    assert "3" in text
    raised(IndexError, lambda: flow.cross_entropy(flow.zeros(2, 3), flow.tensor([-1, 0])))


def test_dtypes_that_do_not_go_together(device):
    x, d = flow.ones(2, 2, device=device), flow.ones(2, 2, device=device, dtype=flow.float64)
    raised(flow.DTypeError, lambda: x @ d)
    raised(flow.DTypeError, lambda: flow.nll_loss(x, x[0]))
    raised(flow.DTypeError, lambda: x.to(flow.int64).mean())
    raised(flow.DTypeError, lambda: x.to(flow.int64).add_(1.5))
    raised(flow.DTypeError, lambda: x.to(flow.bool).add_(1))
    assert isinstance(flow.DTypeError("x"), TypeError)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: flow.softmax("x", 0),
        lambda x: flow.softmax(x, "0"),
        lambda x: flow.softmax(x, 1.0),
        lambda x: flow.softmax(x, True),
        lambda x: flow.softmax(x, [0]),
        lambda x: flow.softmax(x, 0, "float32"),
        lambda x: flow.softmax(x, 0, np.float32),
        lambda x: flow.softmax(None, 0),
        lambda x: flow.softmax(np.ones(2), 0),
        lambda x: flow.softmax(x, 0, no=1),
        lambda x: flow.softmax(x, dim=0, **{"input": x}),
        lambda x: flow.softmax(),
        lambda x: flow.softmax(x, 0, None, None),
        lambda x: flow.sum(x, keepdim=1),
        lambda x: flow.zeros("2"),
        lambda x: flow.zeros(2.0),
        lambda x: flow.zeros(2, dtype=2),
        lambda x: flow.zeros(2, device=2.0),
        lambda x: flow.add(x, object()),
        lambda x: x + "1",
        lambda x: x["a"],
        lambda x: x @ 2,
    ],
)
def test_a_wrong_python_type_is_a_type_error(call, device):
    raised(TypeError, lambda: call(flow.ones(2, 2, device=device)))


def test_shapes_that_do_not_go_together(device):
    x, y = flow.ones(2, 3, device=device), flow.ones(4, device=device)
    for call in (lambda: x + y, lambda: x @ y, lambda: x.view(4), lambda: x.reshape(-1, 4),
                 lambda: x.expand(2, 4), lambda: x.copy_(y), lambda: y.add_(x),
                 lambda: flow.linear(x, x.view(3, 2)),
                 lambda: flow.cross_entropy(x, y.long())):  # fmt: skip
        text = raised(flow.ShapeError, call)
        assert "[" in text and "():" in text
    with pytest.raises(ValueError):
        x + y
    with pytest.raises(RuntimeError):
        x + y


def test_a_bad_value_is_a_value_error(device):
    x = flow.ones(2, 3, device=device)
    for call in (lambda: flow.zeros(-1, device=device), lambda: x[::-1], lambda: x[::0],
                 lambda: flow.cross_entropy(x, x, reduction="average"),
                 lambda: flow.cross_entropy(x, x, label_smoothing=-0.1), lambda: x.sum((0, 0)),
                 lambda: flow.cross_entropy(x, x, ignore_index=1),
                 lambda: flow.device("gpu"), lambda: flow.as_strided(x, (9,), (1,)),
                 lambda: x.permute(0, 0), lambda: flow.arange(0, 1, NAN, device=device),
                 lambda: flow.set_num_threads(0), lambda: flow.tensor([[1], [2, 3]])):  # fmt: skip
        raised(ValueError, call)


def test_tensors_on_different_devices(device):
    x, m = flow.ones(2, device=device), flow.ones(2, device="meta")
    for call in (lambda: x + m, lambda: x @ m, lambda: x.add_(m), lambda: flow.matmul(m, x)):
        text = raised(RuntimeError, call)
        assert "all tensors must be on one device" in text and "meta" in text and device in text


def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError):
        flow.ones(2, device="cuda:77")
    with pytest.raises(RuntimeError):
        flow.ones(2).to("cuda:77")
    if not flow.cuda.is_available():
        for call in (lambda: flow.ones(2, device="cuda"), lambda: flow.ones(2).cuda(),
                     flow.cuda.synchronize, flow.cuda.Stream):  # fmt: skip
            assert "CUDA is not available" in raised(RuntimeError, call)


def test_a_tensor_without_data(device):
    m = flow.ones(2, device="meta")
    for call in (m.numpy, m.tolist, m[0].item, lambda: m.to(device), lambda: bool(m[0])):
        assert "has no data" in raised(RuntimeError, call)


def test_what_is_not_there_is_not_implemented(device):
    x = flow.ones(4, device=device)
    assert "no_such_op" in raised(NotImplementedError, lambda: flow.ops.describe("no_such_op"))
    raised(NotImplementedError, lambda: flow.optim.SGD([x], differentiable=True))


ONE_KERNEL = r"""
#include <oneflow_lite/extension/op.h>
namespace ext = oneflow_lite::extension;
OFL_EXTENSION {
  ext::Op op("errors::one_kernel");
  op.input("x").output("y");
  op.infer([](ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); });
  op.kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel) {});
  op.add();
}
"""


@pytest.mark.slow
def test_an_op_without_kernel_for_the_dtype_lists_those_there_are(tmp_path, monkeypatch):
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path))
    flow.utils.load_inline("one_kernel", ONE_KERNEL, verbose=False)
    op = flow.ops.errors.one_kernel
    assert op(flow.ones(2)).shape == (2,)
    text = raised(NotImplementedError, lambda: op(flow.ones(2, dtype=flow.int16)))
    assert text.startswith("errors::one_kernel()")
    assert "int16" in text and "float32" in text and "cpu" in text


def test_backward_twice(device):
    x = flow.ones(3, device=device, requires_grad=True)
    y = flow.softmax(x, 0).sum()
    y.backward()
    assert "retain_graph=True" in raised(RuntimeError, y.backward)
    y = flow.softmax(x, 0).sum()
    y.backward(retain_graph=True)
    y.backward()


def test_in_place_change_of_a_saved_tensor(device):
    x = flow.ones(3, device=device, requires_grad=True)
    for save, change in ((flow.softmax, "output"), (flow.log_softmax, "output")):
        middle = x * 1
        y = save(middle, 0)
        (y if change == "output" else middle).mul_(2)
        assert "changed in place" in raised(RuntimeError, y.sum().backward)
    middle = x * 1
    y = flow.log(middle)
    middle.view(3)[1:].zero_()  # through a view as well
    assert "changed in place" in raised(RuntimeError, y.sum().backward)
    assert "leaf" in raised(RuntimeError, lambda: x.add_(1))


def test_backward_without_history(device):
    x = flow.ones(3, device=device)
    raised(RuntimeError, x.sum().backward)
    x.requires_grad_()
    raised(RuntimeError, (x * 2).backward)  # no scalar and no gradient given
    raised(RuntimeError, lambda: flow.ones(2, dtype=flow.int64).requires_grad_())


def test_out_of_memory_is_an_error_to_survive(device):
    for size in (1 << 45, 1 << 58):
        text = raised(flow.OutOfMemoryError, lambda: flow.empty(size, device=device))  # noqa: B023
        assert "out of memory" in text and str(4 * size) in text
        assert flow.ones(1 << 10, device=device).sum().item() == 1 << 10


def test_a_failed_call_leaves_the_tensor_alone(device):
    x = flow.ones(2, 3, device=device)
    before, version = bits(x), x._version
    for call in (lambda: x.add_(flow.ones(4, device=device)), lambda: x.copy_(flow.ones(5, 3)),
                 lambda: x.add_(flow.ones(3, device="meta")), lambda: x.mul_("2")):  # fmt: skip
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            call()
        assert bits(x) == before and x._version == version


COMPOSED = {
    f"{name} of {module.__name__}": getattr(module, name)
    for module in (flow, flow.nn.functional)
    for name in module.__all__
    if hasattr(getattr(module, name), "__wrapped__")
}


def example(parameter):
    x = flow.ones(2, 2, dtype=flow.bool if parameter.name == "mask" else flow.float32)
    return {"Tensor": x, "Sequence[Tensor]": [x]}.get(parameter.annotation, 1)


def test_errors_are_pickled():
    """As those of a worker process are."""
    for kind in (flow.DTypeError, flow.ShapeError, flow.OutOfMemoryError, flow.linalg.LinAlgError):
        error = pickle.loads(pickle.dumps(kind("why")))
        assert type(error) is kind and error.args == ("why",)


@pytest.mark.parametrize("function", COMPOSED.values(), ids=COMPOSED)
def test_a_composed_function_names_the_argument_that_is_no_tensor(function):
    assert pickle.loads(pickle.dumps(function)) is function
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    given = {p.name: example(p) for p in needed}
    for name in (p.name for p in needed if p.annotation == "Tensor"):
        if function.__name__ == "flip":  # it hands on what it does not look at
            continue
        for wrong in ([[1.0, 2.0]], None, "a"):
            with pytest.raises(TypeError) as caught:
                function(**given | {name: wrong})
            text = str(caught.value)
            kind = type(wrong).__name__
            assert text == f"{function.__name__}(): argument '{name}' must be Tensor, not {kind}"


def test_a_composed_function_names_the_keyword_that_was_meant():
    x = flow.ones(2, 3)
    for call in (lambda: flow.roll(x, shfits=1), lambda: flow.nn.functional.silu(inptu=x)):
        with pytest.raises(TypeError, match="unexpected keyword argument '.*'; did you mean '.*'"):
            call()


@pytest.mark.parametrize(
    "call, argument",
    [
        (lambda n: flow.softmax(flow.ones(2), n), r"softmax\(\): argument 'dim'"),
        (lambda n: flow.zeros(n, 2), r"zeros\(\): argument 'size'"),
        (lambda n: flow.zeros((2, n)), r"zeros\(\): argument 'size'"),
        (lambda n: flow.nn.functional.layer_norm(flow.ones(2), n), r"'normalized_shape'"),
    ],
)
def test_an_int_beyond_64_bits_is_named(call, argument):
    for number in (1 << 63, -(1 << 63) - 1, 1 << 2000):
        with pytest.raises(OverflowError, match=argument + ".*too large for 64 bits"):
            call(number)


@pytest.mark.parametrize(
    "name, arguments, error",
    [
        ("tril", (flow.ones(3),), flow.ShapeError),
        ("triu", (flow.ones(()),), flow.ShapeError),
        ("diff", (flow.ones(()),), flow.ShapeError),
        ("diff", (flow.ones(3), -1), ValueError),
        ("repeat_interleave", (flow.tensor(2),), flow.ShapeError),
        ("repeat_interleave", (flow.ones(2, 2, dtype=flow.int64),), flow.ShapeError),
    ],
)
def test_what_a_composed_function_cannot_take_is_named(name, arguments, error):
    assert raised(error, lambda: getattr(flow, name)(*arguments)).startswith(f"{name}(): ")


def test_what_a_composed_function_says_itself_stays():
    with pytest.raises(flow.ShapeError, match=r"bmm\(\): takes batches of matrices"):
        flow.bmm(flow.ones(2), flow.ones(2))
    with pytest.raises(
        TypeError, match=r"hstack\(\): argument 'tensors' must be a list or tuple of Tensors"
    ):
        flow.hstack([flow.ones(2), 1.0])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'other'"):
        flow.dist(flow.ones(2))
    assert inspect.signature(flow.lerp).parameters.keys() == {"input", "end", "weight"}


def test_errors_speak_of_the_function_that_was_called():
    layer, x = flow.nn.Linear(3, 2), flow.ones(4, 3)
    F = flow.nn.functional
    as_weight = "expected float32 as the weight"
    for call in (layer, lambda x: F.linear(x, layer.weight)):
        text = raised(flow.DTypeError, lambda call=call: call(x.to(dtype=flow.float64)))
        assert text == f"linear(): input has dtype float64, {as_weight}"
        text = raised(flow.DTypeError, lambda call=call: call(x.to(dtype=flow.int64)))
        assert text == f"linear(): input has dtype int64, {as_weight}"
    boolean = flow.ones(4, 3, dtype=flow.bool)
    text = raised(flow.DTypeError, lambda: F.linear(boolean, boolean))
    assert text.startswith("linear(): input has dtype bool")
    text = raised(flow.ShapeError, lambda: F.linear(x, layer.weight, flow.ones(5)))
    assert text.startswith("linear(): ")
    places = flow.tensor([0, 4])
    text = raised(IndexError, lambda: F.embedding(places, x))
    assert text == "embedding(): index 4 is out of range [0, 3]"
    text = raised(IndexError, lambda: flow.nn.Embedding(4, 3)(places))
    assert text == "embedding(): index 4 is out of range [0, 3]"
    text = raised(IndexError, lambda: flow.index_select(x, 0, places))
    assert text == "index_select(): index 4 is out of range [0, 3]"


def test_attention_speaks_of_its_own_arguments():
    attend = flow.nn.functional.scaled_dot_product_attention
    q, k = flow.ones(2, 3, 4), flow.ones(2, 5, 6)
    text = raised(flow.ShapeError, lambda: attend(q, k, k))
    assert text == (
        "scaled_dot_product_attention(): query [2, 3, 4], key [2, 5, 6], value [2, 5, 6] do not go "
        "together: expected [..., queries, d], [..., keys, d], [..., keys, dv]"
    )
    for wrong in (lambda: attend(q, q, k), lambda: attend(q, q, q, flow.ones(7, 7)),
                  lambda: attend(q[0, 0], q[0, 0], q[0, 0]),
                  lambda: attend(q[0], q[0], q[0], enable_gqa=True)):  # fmt: skip
        text = raised(flow.ShapeError, wrong)
        assert text.startswith("scaled_dot_product_attention(): query [")
    text = raised(flow.DTypeError, lambda: attend(q, q, q.to(dtype=flow.float64)))
    assert text == (
        "scaled_dot_product_attention(): query float32, key float32, value float64 do not go "
        "together: expected one floating dtype, for the mask float32 or bool, too"
    )
    with pytest.raises(TypeError, match="argument 'key' must be Tensor, not list"):
        attend(q, [1.0], q)


def ones(*shape, dtype=flow.float32):
    return flow.ones(shape, dtype=dtype)


NAMED_AS_CALLED = {
    "mv": (lambda: flow.mv(ones(2, 3), ones(2)), "vec has shape"),
    "addmm": (lambda: flow.addmm(ones(2), ones(2, 3), ones(2, 3)), "mat2 has shape"),
    "addmm_": (lambda: ones(2, 3).addmm_(ones(2, 3), ones(2, 3)), "mat2 has shape"),
    "addmm of 16 bits": (
        lambda: flow.addmm(*(x.bfloat16() for x in (ones(2), ones(2, 3), ones(2, 3)))),
        "mat2 has shape"),
    "baddbmm": (lambda: flow.baddbmm(ones(2), ones(2, 3, 4), ones(2, 3, 4)), "batch2 has shape"),
    "tile": (lambda: flow.tile(ones(2), (-1,)), r"dims are \[-1\]"),
    "linalg.cond": (lambda: flow.linalg.cond(ones(2, 2), 3.0), "p is 3"),
    "lu_unpack": (lambda: flow.lu_unpack(ones(2, 2), ones(2)), "LU_pivots has dtype"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED_AS_CALLED)
def test_an_argument_has_the_name_that_the_caller_knows(name):
    call, text = NAMED_AS_CALLED[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{name.split()[0]}\(\): {text}"):
        call()
