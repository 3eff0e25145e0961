# SPDX-License-Identifier: Apache-2.0
"""check_op: every op of the library passes it, and each kind of defect is caught by it."""

import inspect
import re
import sys

import numpy as np
import pytest
from numerics import flow, tensor
from op_samples import recorded

RNG = np.random.default_rng(5)
X = tensor(RNG.standard_normal((3, 4)), "float64")
DISTINCT = tensor((RNG.permutation(12).reshape(3, 4) - 5.5) / 2, "float64")

# Samples of ops that no row of the op table comes to, or not at smooth places.
SAMPLES = {
    "to_device": [(X, "cpu")],
    "cross_entropy_in_place": [(X, tensor([1, 0, 3], "int64")), (X, tensor([1, -100, 3], "int64"))],
    "mean_weight": [(tensor([1, 0, 3], "int64"),), (tensor([1, -100, 3], "int64"),)],
    "scale_rows_": [(X, tensor([1.0, -2.0, 0.5], "float64"))],
    **dict.fromkeys(["maximum", "minimum"], [(DISTINCT, DISTINCT + X.relu() - 0.1)]),
    "relu_backward": [(X, DISTINCT), (X, tensor([[1.5], [-2.0], [3.0]], "float64"))],
}
# Ops without any sample, and why there can be none. Empty: keep it so.
WITHOUT_SAMPLES: dict[str, str] = {}
# Checks that make no sense for an op, and why.
SKIP = {
    **dict.fromkeys(
        ["gather", "scatter_", "scatter_add_"], {"cost": "what is not named costs nothing"}
    ),
    "as_strided": {"layouts": "strides are its meaning"},
    "cross_entropy_in_place": dict.fromkeys(
        ["mutation", "gradients", "gradient dtypes", "second order"], "it overwrites the logits"
    ),
    # Derivatives with all else fixed are not those that it gives and are wanted: test_op_table.py
    # checks the second order of the forward op.
    "cross_entropy_backward": dict.fromkeys(
        ["gradients", "second order"], "stats is a function of the logits"
    ),
    "scale_mask_softmax_backward": dict.fromkeys(
        ["gradients", "second order"], "y is 0 where causal hides, and its gradient of no account"
    ),
    "layer_norm_backward": dict.fromkeys(
        ["gradients", "second order"], "the mean is computed again from x"
    ),
}
# Ops whose backward is constant in all inputs, so that its gradient is nothing.
NO_SECOND_ORDER = {"fill_", "to_device"}
# Taken now: tests may register more.
OWN = flow.ops.list("")


def check(op, samples, **kwargs):
    return flow.check_op(op, samples, verbose=False, raise_exception=False, **kwargs)


def samples_of(name):
    return SAMPLES.get(name) or recorded().get(name) or []


def test_every_op_has_samples():
    without = {name for name in OWN if not samples_of(name)}
    assert without == set(WITHOUT_SAMPLES), "a row in op_table.py gives an op its samples"


@pytest.mark.parametrize("name", OWN)
def test_own_ops_pass(name):
    samples = samples_of(name) or pytest.skip(WITHOUT_SAMPLES.get(name, "there are no samples"))
    result = check(name, samples, skip=SKIP.get(name))
    assert result.passed, str(result)
    info = flow._oneflow_lite.op_info(name)
    # What the op declares was really held against something.
    ran = {"schema", "inference", "repetition", "mutation", "dtypes", "cost"}
    ran |= {"sharding"} if info["has_sbp"] else set()
    if info["differentiable"] and info["has_backward"]:
        ran |= {"gradients", "gradient dtypes", "second order"}
        ran -= {"second order"} if name in NO_SECOND_ORDER else set()
    ran -= set(SKIP.get(name, {}))
    assert {c.name for c in result.checks if c.status == "ok"} >= ran, str(result)


@pytest.mark.parametrize("name", OWN)
def test_own_ops_are_described_in_words(name):
    sample = samples_of(name)[:1] or pytest.skip("there are no samples")
    text = flow.ops.describe(name, *sample[0])
    for part in (flow._oneflow_lite.op_info(name)["schema"], "defined in", "sharding: ", "cost: "):
        assert part in text
    assert ("  kernel for" in text) != ("  a view:" in text)
    assert "a call of" in text and "operations" in text
    assert "by its own" not in text, "sbp_text and cost_text say it in words"


# What a defect is caught by -------------------------------------------------------------------


class Right:
    """x squared."""

    def forward(x):
        return x * x

    def backward(ctx, dy):
        return dy * 2 * ctx.x

    def sbp(x):
        return [(f"S({d})", f"S({d})") for d in range(x.ndim)]

    def cost(x):
        return 2 * x.numel() * x.dtype.itemsize, x.numel()


registered = 0


def register(*bases, doc="x squared, wrongly.", **functions):
    """An op like Right but for the functions given."""
    global registered
    registered += 1
    members = {k: staticmethod(f) if callable(f) else f for k, f in functions.items()}
    definition = type("Wrong", (*bases, Right), {**members, "__doc__": doc})
    return flow.register_op(f"wrong::op{registered}")(definition)


def test_a_right_op_passes_in_every_check():
    result = check(register(doc="x squared."), [X, (X,), {"x": DISTINCT}])
    assert {c.status for c in result.checks if not c.name.startswith("cuda")} == {"ok"}, str(result)
    assert result["sharding"].detail == "S(0) -> S(0), S(1) -> S(1)"


def flat(x):
    """Reads memory in order, whatever the strides say."""
    return flow.as_strided(x, x.shape, flow.empty(x.shape, device="meta").stride()) * 1


def flat_gradient(x, dy):
    return flat(dy) * 2 * x if dy.stride() == x.stride() else dy * x


def writing_gradient(ctx, dy):
    x = ctx.x.detach()
    gradient = dy * 2 * ctx.x.clone()
    x.mul_(2)
    return gradient


def writes(x):
    x.mul_(2)
    return x * 1


def counter():
    state = []

    def forward(x):
        state.append(1)
        return x * x + len(state)

    return forward


def infer_like(x):
    return x.shape, x.dtype


DEFECTS = {
    "inferred shape": ("inference", "promised a tensor of shape \\[3, 5\\]",
                       lambda: register(infer=lambda x: ((3, 5), x.dtype))),
    "inferred dtype": ("inference", "promised",
                       lambda: register(infer=lambda x: (x.shape, flow.int64))),
    "no documentation": ("schema", "no documentation", lambda: register(doc="")),
    "an exception": ("inference", "raised KeyError: 'mine'",
                     lambda: register(infer=infer_like, forward=lambda x: {}["mine"])),
    "state": ("repetition", "two runs differ",
              lambda: register(infer=infer_like, forward=counter())),
    "mutation": ("mutation", "x was changed, but .* does not mark it",
                 lambda: register(infer=infer_like, forward=writes)),
    "strides ignored": ("layouts", "inputs transposed: 1?\\d of 12 elements of the float64",
                        lambda: register(infer=infer_like, forward=flat)),
    "empty": ("empty", "raised",
              lambda: register(infer=infer_like, forward=lambda x: x * x + 0 * x.max())),
    "one dtype": ("dtypes", "against float64: 1?\\d of 12 elements of the bfloat16 result",
                  lambda: register(infer=infer_like, forward=lambda x: x * (
                      x * 1.1 if x.dtype is flow.bfloat16 else x))),
    "gradient": ("gradients", "x requiring a gradient: .*autograd gives",
                 lambda: register(backward=lambda ctx, dy: dy * ctx.x)),
    "gradient from an expanded one": ("gradients", "from an expanded incoming gradient", lambda:
                                      register(backward=lambda ctx, dy: flat_gradient(ctx.x, dy))),
    "a gradient that writes": ("gradients", "saved for backward was changed in place",
                               lambda: register(backward=writing_gradient)),
    "gradient of one dtype": ("gradient dtypes", "bfloat16.*gradient of x is off by",
                              lambda: register(backward=lambda ctx, dy: dy * ctx.x * (
                                  2.5 if dy.dtype is flow.bfloat16 else 2))),
    "gradient's dtype": ("gradient dtypes", "the gradient of x is float64",
                         lambda: register(backward=lambda ctx, dy: (dy * 2 * ctx.x).double())),
    "empty gradient": ("gradients", "raised", lambda: register(
        backward=lambda ctx, dy: dy * 2 * ctx.x + 0 * ctx.x.detach().max())),
    "second order": ("second order", "autograd gives",
                     lambda: register(backward=lambda ctx, dy: dy * 2 * ctx.x.detach())),
    "split of a sum": ("sharding", "as S\\(0\\) -> S\\(0\\) in 2 parts: .* wrong",
                       lambda: register(forward=lambda x: x - x.sum(0, True), backward=None)),
    "partial sum": ("sharding", "as P -> P in 2 parts: output out: 1?\\d of 12 elements",
                    lambda: register(sbp=lambda x: [("P", "P")])),
    "broadcast": ("sharding", "as S\\(0\\) -> B in 2 parts: output out: the shape is \\[2, 4\\]",
                  lambda: register(sbp=lambda x: [("S(0)", "B")])),
    "axis beyond": ("sharding", "raised RuntimeError: .*signature \\(S\\(2\\)\\) -> \\(S\\(2\\)\\)"
                    ".*does not fit a call \\(\\[3, 4\\]\\)",
                    lambda: register(sbp=lambda x: [("S(2)", "S(2)")])),
    "entries missing": ("sharding", "does not fit a call",
                        lambda: register(sbp=lambda x: [("S(0)",)])),
    "no finite cost": ("cost", "costs nan bytes",
                       lambda: register(cost=lambda x: (float("nan"), 1))),
    "negative cost": ("cost", "costs -1.0 operations",
                      lambda: register(cost=lambda x: (x.numel() * 16, -1))),
    "no cost": ("cost", "costs 0 bytes; its inputs and outputs have 192",
                lambda: register(cost=lambda x: (0, 0))),
    "high cost": ("cost", "costs 12000 bytes",
                  lambda: register(cost=lambda x: (x.numel() * 1000, 1))),
    "constant cost": ("cost", "no more than", lambda: register(cost=lambda x: (192, 12))),
}  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_caught(defect):
    name, pattern, op = DEFECTS[defect]
    result = check(op(), [X])
    assert not result.passed
    assert result[name].status == "FAILED", str(result)
    with pytest.raises(AssertionError, match=f"(?s){pattern}"):
        raise flow.CheckError(result[name].detail)


@pytest.mark.parametrize("function", ["sbp", "cost"])
def test_an_exception_in_what_an_op_declares_is_caught_and_shown(function, monkeypatch):
    def wrong(x):
        raise KeyError("mine")

    shown = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: shown.append(u.exc_value))
    result = check(register(**{function: wrong}), [X])
    monkeypatch.undo()
    assert result["sharding" if function == "sbp" else "cost"].status == "FAILED"
    assert shown and isinstance(shown[0], KeyError)


def test_a_gradient_that_is_right_only_for_all_inputs_at_once():
    @flow.register_op("wrong::product")
    class Product:
        """x times y; where y is frozen, x gets nothing."""

        def forward(x, y):
            return x * y

        def backward(ctx, dz):
            return (dz * ctx.y if ctx.needs["y"] else 0 * dz), dz * ctx.x

    result = check(Product, [(X, DISTINCT)])
    assert "x requiring a gradient" in result["gradients"].detail
    assert result["gradients"].status == "FAILED"


def test_terms_that_cancel_are_no_defect():
    values = np.random.default_rng(7).standard_normal((3, 16))
    x = tensor(np.concatenate([values, -values], 1), "float64")
    result = check("sum", [(x, (1,)), (x, (0, 1))])
    assert result.passed, str(result)


# The report and the arguments -----------------------------------------------------------------


def test_the_report_is_aligned_and_the_error_carries_it(capsys):
    op = register(cost=lambda x: (0, 0))
    with pytest.raises(flow.CheckError) as error:
        flow.check_op(op, [X], devices=["cpu"])
    lines = capsys.readouterr().out.splitlines()
    message = str(error.value).splitlines()
    assert message[0] == lines[0] and message[1].startswith("  cost                 FAILED   ")
    assert message == [line for line in lines if line in message]
    assert re.match(rf"check_op\({op.__name__}\): \d+ ok, 1 FAILED", lines[0])
    assert all(len(line) <= 100 for line in lines)
    statuses = {line[23:31].strip() for line in lines[1:] if line[2] != " "}
    assert {"ok", "FAILED"} <= statuses <= {"ok", "FAILED", "skipped"}


def test_what_cannot_run_says_why():
    @flow.register_op("test::halves_only_no_gradient")
    def halves(x):
        """x, doubled by NumPy."""
        return x + x

    result = check(halves, [X])
    assert result.passed
    assert result["gradients"].detail == "the op has no backward"
    assert result["sharding"].detail == "no signature is declared for the samples"
    if not flow.cuda.is_available():
        assert result["cuda"].detail == "no GPU here"
    large = check("exp", [flow.ones(50, 50)])
    assert "at most 120 elements" in large["gradients"].detail
    small = check("exp", [flow.ones(1)])
    assert "large enough for two parts" in small["sharding"].detail
    skipped = check("exp", [X], skip={"layouts": "for a reason"})
    assert skipped["layouts"].detail == "for a reason" and skipped.passed
    with pytest.raises(KeyError):
        skipped["no such check"]
    with pytest.raises(ValueError, match="no check 'layuts'; there are schema, inference, "):
        check("exp", [X], skip={"layuts": "for a reason"})


def test_a_backward_without_a_gradient_of_its_own():
    def backward(ctx, dy):
        return flow.from_numpy(dy.numpy() * 2 * ctx.x.detach().numpy())

    def detached(ctx, dy):
        return dy.detach() * 2 * ctx.x.detach()

    for gradient, reason in [
        (backward, "backward has no gradient: "),
        (detached, "backward is not recorded, so it has no gradient"),
    ]:
        skip = {"gradient dtypes": "NumPy has no bfloat16"}
        result = check(register(backward=gradient), [X], devices=["cpu"], skip=skip)
        assert result.passed, str(result)
        assert result["second order"].detail.startswith(reason)


def test_a_float32_op_is_differentiated_in_float32():
    def infer(x):
        if x.dtype is not flow.float32:
            raise flow.DTypeError("float32 only")
        return x.shape, x.dtype

    result = check(register(infer=infer), [X.float()])
    assert result.passed and "in float32" in result["gradients"].detail
    wrong = check(register(infer=infer, backward=lambda ctx, dy: dy * ctx.x), [X.float()])
    assert wrong["gradients"].status == "FAILED"


def test_samples():
    softmax = flow.ops.softmax
    for sample in [(X, 1), [X, 1], (X, {"axis": 1}), {"in": X, "axis": 1}]:
        assert check(softmax, [sample]).passed
        assert check("softmax", [sample], devices=["cpu"]).passed
    for sample in [X, (X, 1, 2), {"axis": 1}, (X, {"in": X, "axis": 1}), {"x": X}]:
        with pytest.raises(TypeError, match=r"check_op\(\): .*softmax\(Tensor in, int axis\)"):
            check("softmax", [sample])
    for samples in (X, {"in": X}, None):
        with pytest.raises(TypeError, match="samples must be a list of calls, not"):
            check("softmax", samples)
    with pytest.raises(ValueError, match="no samples"):
        check("softmax", [])
    with pytest.raises(NotImplementedError, match="softmx"):
        check("softmx", [X])
    with pytest.raises(TypeError, match="must be a name or a function, not 3"):
        check(3, [X])


def test_a_function_composed_of_ops():
    def layer(x, weight, *, scale=1.0):
        return flow.relu(x @ weight * scale).sum(1), x

    weight = tensor(np.random.default_rng(6).standard_normal((4, 2)), "float64")
    result = check(layer, [(X, weight), (X, weight, {"scale": 2.0})])
    assert result.passed, str(result)
    assert result.name == "layer"
    assert result["schema"].detail == "a function of matmul, mul, relu, sum"
    assert "(S(1), S(0)) -> P" in result["sharding"].detail

    def leaky(x):
        return flow.from_numpy(x.numpy() * 2)

    result = check(leaky, [X], devices=["cpu"])
    assert "raised" in result["inference"].detail and len(result.failures) == 1
    assert result["dtypes"].detail == "the samples do not run, see inference"


def test_absent_inputs_and_inputs_without_a_gradient():
    logp = flow.log_softmax(X, 1)
    target = tensor([1, 0, 3], "int64")
    weight = tensor([1.0, 2.0, 0.5, 1.5], "float64")
    result = check("nll_loss", [(logp, target), (logp, target, weight, 2)])
    assert result.passed, str(result)
    assert "(S(0), S(0), B) -> (S(0), S(0))" in result["sharding"].detail
    assert "weight has no gradient" in result["gradients"].detail


# Listing and describing -----------------------------------------------------------------------


def test_ops_are_listed_by_namespace():
    op = register()
    assert op.__name__ in flow.ops.list("wrong") and op.__name__ in flow.ops.list()
    assert all(name.startswith("wrong::") for name in flow.ops.list("wrong"))
    assert "softmax" in flow.ops.list("") and not any("::" in n for n in flow.ops.list(""))
    assert flow.ops.list("no_such_namespace") == []
    assert flow.ops.list() == sorted(flow.ops.list())


def test_an_op_is_described():
    lines = flow.ops.describe("softmax").splitlines()
    assert lines[0] == "softmax(Tensor in, int axis) -> (Tensor out)"
    assert lines[1:] == [
        "  Softmax over one axis: exp(x - max) / sum exp(x - max).",
        lines[2],
        lines[3],
        "  has a gradient",
        "  sharding: every tensor split on any dim but the axis",
        "  cost: in is read once, out written once; 5 operations per element",
    ]
    assert lines[2].startswith("  defined in ops/softmax.cpp:")
    assert lines[3].startswith("  kernel for any device: float16, bfloat16, float32, float64 (kern")
    call = flow.ops.describe("softmax", flow.empty(8, 512, device="meta"), axis=1).splitlines()
    assert call[: len(lines)] == lines
    assert call[len(lines) :] == [
        "  a call of (float32[8, 512], 1) gives float32[8, 512]",
        "    on shards as (S(0)) -> (S(0))",
        "    32768 bytes, 20480 operations",
    ]


def test_signatures_can_be_inspected():
    assert str(inspect.signature(flow.ops.softmax)) == "(in, /, axis)"
    signature = str(inspect.signature(flow.ops.rand))
    assert signature == "(shape, dtype, device=device(type='cpu'), *, seed, offset)"
    for name in OWN:
        inspect.signature(flow._oneflow_lite.op_function(name))


# In C++ ---------------------------------------------------------------------------------------

SOURCE = r"""
#include <oneflow_lite/extension/op.h>
#include <stdexcept>
namespace ext = oneflow_lite::extension;

static ext::Op Twice(const char* name) {
  ext::Op op(name);
  op.doc("x + x.").input("x").output("y");
  op.infer([](ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); });
  op.kernel(OFL_CPU, {OFL_FLOAT64}, [](ext::Kernel c) {
    for (int64_t i = 0; i < c.input(0).numel(); ++i) {
      c.output(0).data<double>()[i] = 2 * c.input(0).data<double>()[i];
    }
  });
  op.backward({}, [](ext::Grad c) { c.set(0, ext::call("mul", c.grad(0), 2)); });
  op.sbp([](ext::SbpSignatures s) {
    for (int32_t d = 0; d < s.ndim(0); ++d) s.add({{'S', d}, {'S', d}});
    s.add({{'P', 0}, {'P', 0}});
  });
  op.cost([](ext::Infer c) {
    double n = 1;
    for (int64_t d : c.shape(0)) n *= static_cast<double>(d);
    return ext::Cost{16 * n, n};
  });
  return op;
}

static ext::Op Total() {
  ext::Op op("checked::total");
  op.doc("The sum of tensors of one shape.").input("xs", OFL_INPUT_VARIADIC).output("y");
  op.infer([](ext::Infer c) {
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (c.shape(i) != c.shape(0)) throw ext::Error(OFL_SHAPE_ERROR, "shapes differ");
      if (c.dtype(i) != c.dtype(0)) throw ext::Error(OFL_DTYPE_ERROR, "dtypes differ");
    }
    c.set_output(0, c.shape(0), c.dtype(0));
  });
  op.kernel(OFL_CPU, {OFL_FLOAT64}, [](ext::Kernel c) {
    double* y = c.output(0).data<double>();
    for (int64_t j = 0; j < c.output(0).numel(); ++j) {
      y[j] = 0;
      for (int i = 0; i < c.num_inputs(); ++i) y[j] += c.input(i).data<double>()[j];
    }
  });
  op.backward({}, [](ext::Grad c) {
    for (int i = 0; i < 3; ++i) {
      if (c.needs(i)) c.set(i, c.grad(0));
    }
  });
  op.sbp([](ext::SbpSignatures s) {
    for (int32_t d = 0; d < s.ndim(0); ++d) s.add({{'S', d}, {'S', d}, {'S', d}, {'S', d}});
    s.add({{'P', 0}, {'P', 0}, {'P', 0}, {'P', 0}});
  });
  return op;
}

OFL_EXTENSION {
  Total().add();
  Twice("checked::right").add();
  Twice("checked::sbp").sbp([](ext::SbpSignatures s) { s.add({{'S', 0}, {'B', 0}}); }).add();
  Twice("checked::sbp_count").sbp([](ext::SbpSignatures s) { s.add({{'S', 0}}); }).add();
  Twice("checked::cost").cost([](ext::Infer) { return ext::Cost{1, 1}; }).add();
  Twice("checked::cost_throws")
      .cost([](ext::Infer) -> ext::Cost { throw std::runtime_error("mine"); })
      .add();
  Twice("checked::gradient")
      .backward({}, [](ext::Grad c) { c.set(0, ext::call("mul", c.grad(0), 3)); })
      .add();
  Twice("checked::mutates")
      .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) {
        for (int64_t i = 0; i < c.input(0).numel(); ++i) {
          c.output(0).data<float>()[i] = c.input(0).data<float>()[i]++;
        }
      })
      .add();
}
"""


@pytest.mark.slow
def test_extensions_in_cpp(tmp_path, monkeypatch):
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path))
    flow.utils.load_inline("checked", SOURCE, verbose=False)
    ops = flow.ops.checked
    right = check(ops.right, [X], devices=["cpu"])
    assert {c.status for c in right.checks} == {"ok"}, str(right)
    assert right["sharding"].detail == "S(0) -> S(0), S(1) -> S(1), P -> P"
    for op, name, detail in [
        (ops.sbp, "sharding", "as S(0) -> B in 2 parts"),
        (ops.sbp_count, "sharding", "does not fit a call"),
        (ops.cost, "cost", "costs 1 bytes"),
        (ops.cost_throws, "cost", "costs nan bytes"),
        (ops.gradient, "gradients", "autograd gives 3, differences 2"),
    ]:
        result = check(op, [X], devices=["cpu"])
        assert result[name].status == "FAILED" and detail in result[name].detail, str(result)
        assert len(result.failures) == 1 or op is ops.gradient, str(result)
    several = check(ops.total, [[[X, DISTINCT, X + 1]], ([X[0], X[1], X[2]],)], devices=["cpu"])
    assert {c.status for c in several.checks} == {"ok"}, str(several)
    assert "(P, P, P) -> P" in several["sharding"].detail
    result = check(ops.mutates, [X.float()], devices=["cpu"])
    assert result["mutation"].status == "FAILED"
