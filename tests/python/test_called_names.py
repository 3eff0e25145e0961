# SPDX-License-Identifier: Apache-2.0
"""An error begins with the name of the function that was called, whichever function inside it was
refused: of all public functions and methods, for arguments that are wrong in many ways."""

import importlib
import inspect
import itertools
import operator

import numpy as np
import pytest
from numerics import flow

F = flow.nn.functional
X = (2, 3)

# They register, save or load (with errors of files), or call what they are given.
OTHERS = {"check_op", "from_dlpack", "load", "load_library", "manual_seed", "register_op", "save",
          "set_num_threads", "register_hook", "retain_grad", "backward", "apply_"}  # fmt: skip


def targets():
    for where, module in (("flow", flow), ("nn.functional", F)):
        for name in module.__all__:
            if inspect.isroutine(getattr(module, name)) and name not in OTHERS:
                yield f"{where}.{name}", name, getattr(module, name)
    for name in dir(flow.Tensor):
        method = getattr(flow.Tensor, name, None)
        if not name.startswith("_") and callable(method) and name not in OTHERS:
            yield f"Tensor.{name}", name, method


TARGETS = {label: (name, function) for label, name, function in targets()}


def operands():
    """Tensors, and what is none, that few functions take together."""
    x, meta = flow.ones(X), flow.ones(X, device="meta")
    ints, truths = flow.ones(X, dtype=flow.int64), flow.ones(X, dtype=flow.bool)
    narrow = [flow.ones(X, dtype=d) for d in (flow.int8, flow.int16)]
    return [[x, x, x], [x, flow.ones(5, 7), flow.ones(4)], [flow.ones(()), flow.ones(()), x],
            [truths] * 3, [ints] * 3, [x, flow.ones(X, dtype=flow.float64), *narrow],
            [*narrow, ints], [x, meta, x], [meta, x, x], [flow.ones(0, 3), flow.ones(0), x],
            [1, 2.5, "a"], [[1.0], [[1]], {}], [x, object(), None]]  # fmt: skip


VALUES = [[1] * 4, [99] * 4, [-99, 0, 1, 1], [(0, 0)] * 4, [(1, 2, 3, 4)] * 4, ["a"] * 4,
          [1.5] * 4, [object()] * 4, [None] * 4, [1 << 70] * 4, [0, 1 << 62, 0, 0]]  # fmt: skip


def calls(function):
    """Positional and keyword arguments, most of them wrong."""
    x = flow.ones(X)
    try:
        parameters = [p for p in inspect.signature(function).parameters.values()
                      if p.kind is p.POSITIONAL_OR_KEYWORD]  # fmt: skip
    except ValueError:
        parameters = []
    yield from (((), {}), ((x,), {"no_such": 1}), ((x,) * 9, {}))
    count = min(4, len(parameters))
    for given in operands():
        for k in range(1, count + 1):
            yield given[:k], {}
            for values in VALUES:
                yield given[:1] + values[: k - 1], {}
                yield given[:2] + values[: max(0, k - 2)], {}
    for parameter in parameters[1:]:
        for value in (object(), "zzz", 99, (0, 0), 1.5, 1 << 70, x):
            yield (x,), {parameter.name: value}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", TARGETS)
def test_an_error_begins_with_the_name_that_was_called(label):
    name, function = TARGETS[label]
    refused, wrong = 0, {}
    for args, kwargs in calls(function):
        if "Tensor." in label and not (args and isinstance(args[0], flow.Tensor)):
            continue
        try:
            function(*args, **kwargs)
        except Exception as error:
            refused, text = refused + 1, str(error)
            # Python's own words come with the name of the class or the module.
            own = text.split("(")[0].endswith(name) or text.endswith(f"for {name}()")
            if not (text.startswith(f"{name}()") or (own and isinstance(error, TypeError))):
                wrong[text[:200]] = (type(error).__name__, args, kwargs)
    assert not wrong
    assert refused > 0


# Of these modules' functions: what is wrong with arguments, not what the system or other ranks say.
OF_ARGUMENTS = (TypeError, AttributeError, ValueError, IndexError, KeyError, OverflowError)
MODULES = ["distributed", "cuda", "nn.init", "nn.utils", "linalg", "special"]
# They change the process, or wait.
NOT_CALLED = {"init", "barrier"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("where", MODULES)
def test_functions_of_modules_speak_of_themselves(where):
    module, wrong, refused = importlib.import_module(f"oneflow_lite.{where}"), [], 0
    for name in sorted({*module.__all__} - NOT_CALLED):
        function = getattr(module, name)
        if not inspect.isroutine(function):
            continue
        for args, kwargs in itertools.islice(calls(function), 0, None, 3):
            try:
                function(*args, **kwargs)
            except OF_ARGUMENTS as error:
                refused, text = refused + 1, str(error).strip("'")
                own = text.split("(")[0].endswith(name) or text.endswith(f"for {name}()")
                if not (text.startswith((f"{name}()", f"{where}.{name}()")) or own):
                    wrong.append((name, text[:200], args, kwargs))
            except Exception:
                continue
    assert not wrong
    assert refused > len(module.__all__)


@pytest.mark.parametrize(
    "name, call",
    [
        ("init", lambda: flow.distributed.init(rank="x")),
        ("init", lambda: flow.distributed.init(timeout=-1)),
        ("load_library", lambda: flow.load_library(3)),
        ("backward", lambda: flow.autograd.backward(object())),
        ("grad", lambda: flow.autograd.grad(object(), flow.ones(1, requires_grad=True))),
        ("split", lambda: flow.sbp.split("x")),
        ("split", lambda: flow.sbp.split(1 << 70)),
        ("saved_tensors_hooks", lambda: flow.autograd.graph.saved_tensors_hooks(3, 4)),
        ("machine_limit", lambda: flow.profiler.machine_limit(3)),
        ("save_whole", lambda: flow.distributed.checkpoint.save_whole({"a": {1}}, "x")),
        ("load", lambda: flow.distributed.checkpoint.load(3)),
    ],
)
def test_what_is_no_registered_function_speaks_of_itself(name, call):
    with pytest.raises(OF_ARGUMENTS) as caught:
        call()
    assert str(caught.value).startswith(f"{name}(): ")


def test_a_name_that_is_no_text_is_shown():
    with flow.profiler.profile(), flow.profiler.record_function("\ud800"):
        flow.ones(2)


BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": operator.pow, "matmul": operator.matmul, "floor_divide": operator.floordiv,
    "remainder": operator.mod, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "add_": operator.iadd,
    "sub_": operator.isub, "mul_": operator.imul, "div_": operator.itruediv, "pow_": operator.ipow,
    "floor_divide_": operator.ifloordiv, "remainder_": operator.imod,
    "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift, "bitwise_right_shift": operator.rshift,
    "bitwise_and_": operator.iand, "bitwise_or_": operator.ior, "bitwise_xor_": operator.ixor,
    "bitwise_left_shift_": operator.ilshift, "bitwise_right_shift_": operator.irshift,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_an_operator_speaks_of_its_function(name):
    x = flow.ones(X, dtype=flow.int64 if name.startswith("bitwise") else flow.float32)
    for other in (flow.ones(5, 7, dtype=x.dtype), flow.ones(X, dtype=x.dtype, device="meta")):
        with pytest.raises(RuntimeError) as caught:
            BINARY[name](x, other)
        assert str(caught.value).startswith(f"{name}(): ")


@pytest.mark.parametrize(
    "name, call",
    [
        ("bitwise_not", lambda: ~flow.ones(2)),
        ("neg", lambda: -flow.ones(2, dtype=flow.bool)),
        ("min", lambda: flow.min(flow.ones(2), 5)),
        ("min", lambda: flow.ones(0).min()),
        ("amin", lambda: flow.ones(2).amin(5)),
        ("amax", lambda: flow.ones(2).amax(5)),
        ("argmin", lambda: flow.ones(2).argmin(5)),
        ("any", lambda: flow.any(flow.ones(2), 7)),
        ("std", lambda: flow.ones(2, dtype=flow.int64).std()),
        ("clip", lambda: flow.clip(flow.ones(2))),
        ("clip", lambda: flow.ones(2).clip()),
        ("less", lambda: flow.less(flow.ones(2), flow.ones(3))),
        ("concat", lambda: flow.concat([flow.ones(2), flow.ones(3, 2)])),
        ("multiply_", lambda: flow.ones(2).multiply_(flow.ones(3))),
        ("mse_loss", lambda: F.mse_loss(flow.ones(2), flow.ones(3))),
        ("new_zeros", lambda: flow.ones(2).new_zeros(-1)),
        ("layer_norm", lambda: flow.nn.LayerNorm(4)(flow.ones(2, 3))),
    ],
)
def test_functions_inside_are_not_spoken_of(name, call):
    with pytest.raises(Exception) as caught:
        call()
    assert str(caught.value).startswith(f"{name}(): ")


def test_the_exception_of_a_caller_stays_as_it_is():
    class Broken:
        def __index__(self):
            raise ValueError("mine(): broken")

    for call in (lambda: flow.zeros(Broken()), lambda: flow.ones(3).new_zeros(Broken()),
                 lambda: flow.linspace(0, 1, Broken())):  # fmt: skip
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == "mine(): broken"


def test_no_number_of_sections_hangs():
    with pytest.raises(ValueError, match=r"tensor_split\(\): .* sections, but there must be 1 to"):
        flow.tensor_split(flow.ones(2), 1 << 60)
    assert len(flow.tensor_split(flow.ones(2), 5)) == 5


def test_two_dtypes_are_spoken_of():
    a, b = flow.ones(2, 2, dtype=flow.int8), flow.ones(2, 2, dtype=flow.int16)
    for call in (lambda: a @ b, lambda: flow.matmul(a, b), lambda: a.matmul(b)):
        with pytest.raises(flow.DTypeError) as caught:
            call()
        text = str(caught.value)
        assert text.startswith("matmul(): input has dtype int8 and other int16, but both must be")


def test_an_optimizer_says_what_it_was_given():
    with pytest.raises(TypeError, match=r"SGD\(\): params must be .* not Linear"):
        flow.optim.SGD(flow.nn.Linear(2, 2), lr=0.1)


def test_gradients_and_operators_beside_arrays():
    x = flow.ones(3, requires_grad=True)
    for gradient in (flow.ones(3), flow.ones(2, 3, device="meta")):
        with pytest.raises((ValueError, RuntimeError), match=r"^grad\(\): "):
            flow.autograd.grad(x * 2, x, gradient, is_grads_batched=True)
    with pytest.raises(RuntimeError, match=r"^grad\(\): .* meta"):
        flow.autograd.grad(x * 2, x, flow.ones(3, device="meta"))
    with pytest.raises(RuntimeError, match=r"^backward\(\): "):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"^add\(\): .* requires grad"):
        np.ones(3) + x
    with pytest.raises(RuntimeError, match=r"^mul\(\): .* requires grad"):
        x * np.ones(3)
    with pytest.raises(RuntimeError, match="its own gradient"):
        x.grad = x
