# SPDX-License-Identifier: Apache-2.0
"""Every check that follows from a row of op_table.py."""

import inspect
import itertools
import re
from collections.abc import Sequence

import numpy as np
import op_table_signs
import pytest
from numerics import FLOATS, HALVES, LAYOUTS, assert_close, bits, flow, host, rounded, tensor
from op_row import T
from op_table import OPS

gradcheck, gradgradcheck = flow.autograd.gradcheck, flow.autograd.gradgradcheck

by_op = pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)


def rows(wanted):
    return pytest.mark.parametrize("op", [op for op in OPS if wanted(op)], ids=lambda op: op.name)


def rows_and_dtypes(wanted, dtypes=None):
    return pytest.mark.parametrize(
        ("op", "dtype"),
        [pytest.param(op, d, id=f"{op.name}-{d}") for op in OPS if wanted(op)
         for d in op.dtypes if dtypes is None or d in dtypes],
    )  # fmt: skip


by_op = rows(lambda op: True)
by_op_and_dtype = rows_and_dtypes(lambda op: True)
differentiable = rows(lambda op: op.differentiable and not op.factory)
# Taken now: tests may register more.
FUNCTIONS = {f["name"]: f for f in flow._oneflow_lite.list_functions() if not f["alias_of"]}


def run(op, sample, dtype, device, args=None):
    args = sample.make(dtype, device) if args is None else args
    kwargs = dict(sample.kwargs)
    if op.factory:
        kwargs |= {"dtype": getattr(flow, dtype), "device": device}
    return op.run(*args, **kwargs)


def expected_dtypes(op, dtype, outputs):
    rules = op.result if isinstance(op.result, Sequence) else [op.result] * len(outputs)
    return [rule(dtype) for rule in rules]


def check_values(op, sample, args, outputs, dtype, where):
    """Shapes, dtypes and values against NumPy on the very values of ``args``."""
    given = [host(a) if isinstance(a, flow.Tensor) else a for a in args]
    assert [y.dtype.name for y in outputs] == expected_dtypes(op, dtype, outputs), where
    if op.reference is None:  # only its shape is known
        size = given[0].shape if isinstance(given[0], np.ndarray) else given[0]
        assert tuple(outputs[0].shape) == tuple(size), where
        return
    reference = op.reference(*given, **sample.kwargs)
    magnitude = op.magnitude and op.magnitude(*given, **sample.kwargs)
    references = reference if isinstance(reference, list) else [reference]
    for y, r in zip(outputs, references, strict=True):
        assert_close(y, r, op.bound, magnitude, where)


# Of the table itself --------------------------------------------------------------------------


# Functions whose tests are in a file of their own.
ELSEWHERE = {
    # Of lists of tensors: test_adam_step.py and test_multi_tensor.py.
    "adam_", "adadelta_", "adagrad_", "lion_", "multi_clamp_", "multi_fill_", "multi_lerp_",
    "multi_norm", "multi_scale_", "multi_unscale_", "rmsprop_", "sgd_", "update_scale_",
    # They look at values, which meta has not: test_random.py, test_index_data.py, test_placing.py.
    "multinomial", "argwhere", "masked_select", "masked_scatter", "nonzero_static",
    # How large the result is depends on values, which meta has not: test_sorts.py.
    "bincount", "unique", "unique_consecutive",
    # It gives a bool: test_cpu_boundaries.py.
    "equal",
    # It takes no more than a dtype from the other tensor: test_promotion.py.
    "type_as",
}  # fmt: skip
# exp_ of exp, an alias or not: their rows are those of the function.
OVERWRITING = {
    name for name in FUNCTIONS
    if name.endswith("_") and name[:-1] in {f["name"] for f in flow._oneflow_lite.list_functions()}
}  # fmt: skip


def test_every_function_has_a_row():
    with_rows = {op.function for op in OPS}
    assert set(FUNCTIONS) - ELSEWHERE - OVERWRITING == with_rows - OVERWRITING


@rows(lambda op: f"{op.function}_" in OVERWRITING and hasattr(flow.Tensor, f"{op.function}_"))
def test_the_method_with_an_underscore_overwrites(op, device):
    for dtype, sample in itertools.product(op.dtypes, op.samples):
        args = sample.make(dtype, device)
        y = run(op, sample, dtype, device, args)[0]
        if not isinstance(args[0], flow.Tensor) or op.call is not None:
            continue
        if y.shape != args[0].shape or y.dtype != args[0].dtype:
            continue
        target = args[0].clone()
        result = getattr(target, f"{op.function}_")(*args[1:], **sample.kwargs)
        assert result is target and bits(target) == bits(y), f"{op.name}_{sample}, {dtype}"


@by_op
def test_some_sample_is_empty(op):
    # Of numbers alone; of one element at least.
    if op.name not in ("arange", "linspace", "logspace", "randperm", "eye", "tril_indices",
                       "triu_indices", "max", "min", "median", "nanmedian"):  # fmt: skip
        assert any(sample.is_empty() for sample in op.samples)


# Values ---------------------------------------------------------------------------------------


@by_op_and_dtype
def test_values(op, dtype, device):
    for sample in op.samples:
        args = sample.make(dtype, device)
        outputs = run(op, sample, dtype, device, args)
        assert all(y.device.type == device for y in outputs)
        check_values(op, sample, args, outputs, dtype, f"{op.name}{sample}")


@rows_and_dtypes(lambda op: op.layouts and not op.factory)
def test_values_of_any_layout(op, dtype, device):
    for sample, (name, layout) in itertools.product(op.samples, LAYOUTS.items()):
        args = [layout(a) if isinstance(a, flow.Tensor) else a for a in sample.make(dtype, device)]
        before = [bits(a) for a in args if isinstance(a, flow.Tensor)]
        if name == "expanded" and op.function.endswith("_"):  # self is a copy there
            args[0] = args[0].contiguous()
        outputs = run(op, sample, dtype, device, args)
        check_values(op, sample, args, outputs, dtype, f"{op.name}{sample}, {name}")
        assert before == [bits(a) for a in args if isinstance(a, flow.Tensor)], "inputs changed"


@rows(lambda op: op.reference is not None)
def test_the_same_call_gives_the_same_bits(op, device):
    for sample in op.samples:
        first, second = (run(op, sample, op.dtypes[0], device) for _ in range(2))
        assert [bits(y) for y in first] == [bits(y) for y in second]


@by_op_and_dtype
def test_meta_inference_tells_what_a_run_gives(op, dtype):
    for sample in op.samples:
        args = sample.make(dtype, "cpu")
        there = [a.to("meta") if isinstance(a, flow.Tensor) else a for a in args]
        outputs = run(op, sample, dtype, "cpu", args)
        inferred = run(op, sample, dtype, "meta", there)
        assert [(y.shape, y.dtype) for y in inferred] == [(y.shape, y.dtype) for y in outputs]
        assert all(y.is_meta for y in inferred), f"{op.name}{sample}"


@by_op
def test_the_method_is_the_function(op, device):
    form = FUNCTIONS[op.function]
    module, _, name = op.function.partition("_")
    if module in ("linalg", "special"):
        assert hasattr(getattr(flow, module), name)
    else:
        assert hasattr(flow, op.function) != form["method_only"]
    if not form["method"] and not form["method_only"]:
        # x.where(condition, other) is a composition: its arguments are in another order.
        assert op.function == "where" or not hasattr(flow.Tensor, op.function)
        return
    assert callable(getattr(flow.Tensor, op.function))
    if form["method_only"] or op.call is not None:
        return
    for sample in op.samples:
        args = sample.make(op.dtypes[-1], device)
        if isinstance(args[0], flow.Tensor):
            outputs = getattr(args[0], op.function)(*args[1:], **sample.kwargs)
            outputs = [outputs] if isinstance(outputs, flow.Tensor) else outputs
            expected = op.run(*args, **sample.kwargs)
            assert [bits(y) for y in outputs] == [bits(y) for y in expected]


@by_op
def test_signature_and_documentation(op):
    target = getattr(flow._C, op.function, None) or getattr(flow.Tensor, op.function)
    assert inspect.signature(target).parameters
    assert len(target.__doc__) > 10


# Signs of zero --------------------------------------------------------------------------------


def signed(name):
    late = name in op_table_signs.PENDING
    marks = pytest.mark.xfail(strict=True, reason="issue 24: kernels") if late else ()
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", list(map(signed, op_table_signs.OF_ONE | op_table_signs.OF_TWO)))
def test_signs_of_zero(name, dtype, device):
    if name in op_table_signs.OF_ONE:
        function, reference = op_table_signs.OF_ONE[name]
        operands = (np.array(op_table_signs.ONE),)
    else:
        function, reference = op_table_signs.OF_TWO[name]
        operands = tuple(v.ravel() for v in np.meshgrid(op_table_signs.TWO, op_table_signs.TWO))
    tensors = [tensor(v, dtype, device) for v in operands]
    got = host(function(*tensors))
    with np.errstate(all="ignore"):
        want = reference(*(host(t) for t in tensors))
    zero = rounded(want, dtype) == 0
    np.testing.assert_array_equal(got == 0, zero)
    wrong = zero & (np.signbit(got) != np.signbit(want))
    assert not wrong.any(), [tuple(v[wrong]) for v in operands]


# In place -------------------------------------------------------------------------------------


@rows(lambda op: op.in_place)
def test_in_place_is_out_of_place_into_self(op, device):
    for dtype, sample in itertools.product(op.dtypes, op.samples):
        args = sample.make(dtype, device)
        outputs = run(op, sample, dtype, device, args)[0]
        if not isinstance(args[0], flow.Tensor) or outputs.shape != args[0].shape:
            continue
        for name, layout in LAYOUTS.items():
            if name == "expanded":  # elements that share memory cannot be written
                continue
            target = layout(args[0].clone())
            address, version = target.data_ptr(), target._version
            result = getattr(target, op.in_place)(*args[1:])
            assert result is target and target.data_ptr() == address
            assert target._version > version
            assert bits(target) == bits(outputs), f"{op.name}{sample}, {dtype}, {name}"


# Gradients ------------------------------------------------------------------------------------


def subsets(places):
    return [s for n in range(1, len(places) + 1) for s in itertools.combinations(places, n)]


def leaves(sample, chosen, device, layout=lambda x: x):
    """float64 arguments; those chosen require a gradient."""
    args = sample.make("float64", device)
    for i in sample.tensors():
        args[i] = layout(args[i].double())
    for i in chosen:
        args[i] = args[i].detach().requires_grad_()
    return args


@differentiable
def test_gradients_of_every_subset_of_inputs(op, device):
    for sample in op.samples:
        if sum(np.prod(a.shape) for a in sample.args if isinstance(a, T)) > 200:
            continue  # entry by entry: only the small ones
        for chosen in subsets(sample.tensors()):
            args = leaves(sample, chosen, device)
            function = lambda *a: op.run(*a, **sample.kwargs)  # noqa: B023, E731
            assert gradcheck(function, args), f"{op.name}{sample}"


@rows(lambda op: op.differentiable and op.twice and not op.factory)
def test_second_order(op, device):
    for sample in op.samples:
        if sum(np.prod(a.shape) for a in sample.args if isinstance(a, T)) > 40:
            continue
        args = leaves(sample, sample.tensors(), device)
        assert gradgradcheck(lambda *a: op.run(*a, **sample.kwargs), args), f"{op.name}{sample}"  # noqa: B023


@rows(lambda op: op.differentiable and op.layouts and not op.factory)
@pytest.mark.parametrize("layout", ["transposed", "padded rows", "every other"])
def test_gradients_of_any_layout(op, layout, device):
    for sample in op.samples[:12]:
        if not 1 < sum(np.prod(a.shape) for a in sample.args if isinstance(a, T)) <= 60:
            continue
        args = leaves(sample, sample.tensors(), device, LAYOUTS[layout])
        assert gradcheck(lambda *a: op.run(*a, **sample.kwargs), args), f"{op.name}{sample}"  # noqa: B023


def gradients(op, sample, args):
    """The gradients of the floating ``args``, for seeds that are the same in every dtype."""
    args = list(args)
    places = [i for i in sample.tensors() if args[i].dtype.is_floating_point]
    for i in places:
        args[i] = args[i].detach().requires_grad_()
    outputs = [y for y in op.run(*args, **sample.kwargs) if y.requires_grad]
    rng = np.random.default_rng(1)
    seeds = [tensor(rng.integers(-2, 3, tuple(y.shape)) / 2, y.dtype.name, y.device)
             for y in outputs]  # fmt: skip
    inputs = [args[i] for i in places]
    return inputs, flow.autograd.grad(outputs, inputs, seeds, allow_unused=True)


@rows_and_dtypes(lambda op: op.differentiable and not op.factory, FLOATS[:-1])
def test_gradients_of_every_dtype(op, dtype, device):
    """Against float64's, which gradcheck has checked, from the same rounded inputs."""
    for sample in op.samples:
        if not sample.tensors():
            continue
        args = sample.make(dtype, device)
        wide = [a.double() if isinstance(a, flow.Tensor) and a.dtype.is_floating_point else a
                for a in args]  # fmt: skip
        inputs, grads = gradients(op, sample, args)
        _, exact = gradients(op, sample, wide)
        for x, g, e in zip(inputs, grads, exact, strict=True):
            where = f"gradient of {op.name}{sample}"
            if e is None:  # what is overwritten has none
                assert g is None, where
                continue
            assert g.dtype is x.dtype and g.shape == x.shape and g.device == x.device, where
            e = host(e)
            if not np.isfinite(e).all():  # the mean of nothing
                continue
            scale = np.abs(e).max(initial=0) + 1
            allowed = {"float32": 1e-5, "float16": 8e-3, "bfloat16": 6e-2}[dtype] * scale
            assert np.abs(host(g) - e).max(initial=0) <= allowed, where


@differentiable
def test_gradients_on_meta(op):
    for sample in op.samples:
        args = [a.to("meta") if isinstance(a, flow.Tensor) else a
                for a in sample.make("float64", "cpu")]  # fmt: skip
        leaves = [args[i].requires_grad_() for i in sample.tensors()]
        outputs = [y for y in op.run(*args, **sample.kwargs) if y.requires_grad]
        if not leaves:
            continue
        seeds = [flow.empty_like(y) for y in outputs]
        grads = flow.autograd.grad(outputs, leaves, seeds, allow_unused=True)
        for g, x in zip(grads, leaves, strict=True):
            assert g is None or (g.is_meta and g.shape == x.shape), f"{op.name}{sample}"


@rows(lambda op: not op.differentiable and not op.factory)
def test_what_is_not_differentiable_records_nothing(op):
    for sample in op.samples:
        args = sample.make(op.dtypes[0], "cpu")
        for i in sample.tensors():
            if args[i].dtype.is_floating_point:
                args[i].requires_grad_()
        outputs = op.run(*args, **sample.kwargs)
        if op.function != "to":  # between floats a gradient flows
            assert not any(y.requires_grad for y in outputs)


# CPU and CUDA ---------------------------------------------------------------------------------


@pytest.mark.cuda
@by_op_and_dtype
def test_cpu_and_cuda_agree(op, dtype):
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    for sample in op.samples:
        if op.reference is None:
            assert run(op, sample, dtype, "cuda")[0].shape == run(op, sample, dtype, "cpu")[0].shape
            continue
        here, there = run(op, sample, dtype, "cpu"), run(op, sample, dtype, "cuda")
        for a, b in zip(here, there, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if op.bound == "exact":
                assert bits(a) == bits(b), f"{op.name}{sample}"
                continue
            limit = 2e-2 if dtype in HALVES else 1e-5
            a, b = host(a).astype(float), host(b).astype(float)
            assert np.allclose(a, b, rtol=limit, atol=limit, equal_nan=True), f"{op.name}{sample}"


# Errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [pytest.param(b, id=f"{op.name}-{i}") for op in OPS for i, b in enumerate(op.errors)]
)
def test_errors(bad, device):
    with pytest.raises(bad.error) as error:
        bad.call(device)
    assert type(error.value) is bad.error
    assert str(error.value) == bad.text.replace("{device}", str(flow.device(device)))


@by_op
def test_too_few_too_many_and_unknown_arguments(op):
    function = getattr(flow._C, op.function, None)
    if function is None:
        return
    calls = [lambda: function(*[None] * 20), lambda: function(no_such_argument=1)]
    first = next(iter(inspect.signature(function).parameters.values()))
    if first.kind is not inspect.Parameter.VAR_POSITIONAL:  # which may be no tensors
        calls.append(lambda: function())
    named = re.sub("^(linalg|special)_", r"\1.", op.function)  # as it is called
    for call in calls:
        with pytest.raises(TypeError, match=rf"^{re.escape(named)}\(\)"):
            call()


# Functions of tensors that may be on several devices: only the shapes of the others count.
MIXING = {"copy_", "broadcast_tensors", "expand_as", "meshgrid", "reshape_as", "view_as"}


@by_op
def test_devices_do_not_mix(op):
    for sample in op.samples:
        places = [i for i, a in enumerate(sample.args) if isinstance(a, T) and a.shape != ()]
        if len(places) < 2 or op.function in MIXING:
            continue
        args = sample.make("float32", "cpu")
        args[places[0]] = args[places[0]].to("meta")
        with pytest.raises(RuntimeError, match="all tensors must be on one device"):
            op.run(*args, **sample.kwargs)
