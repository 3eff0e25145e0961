# SPDX-License-Identifier: Apache-2.0
"""check_op: every op of the library passes it; what it reports, and what is listed."""

import inspect
import re
import warnings

import numpy as np
import pytest
from checked import DISTINCT, LOSSES, X, check, register
from numerics import flow, tensor
from op_samples import recorded

# About half of it above DISTINCT and half below, nothing equal, also where it is broadcast.
NEAR = DISTINCT + X.relu() - 0.1
TARGETS = tensor([1, -100, 3], "int64")
# Samples of ops that no row of the op table comes to, or not at smooth places.
SAMPLES = {
    "to_device": [(X, "cpu")],
    "cross_entropy_in_place": [(X, tensor([1, 0, 3], "int64")), (X, tensor([1, -100, 3], "int64"))],
    "cross_entropy_parts": [
        (X, TARGETS, -100, smooth, 0, 0, parts) for parts in (1, 2, 3) for smooth in (0.0, 0.1)
    ],
    "cross_entropy_of_parts": [
        (X, TARGETS, flow.ops.cross_entropy_parts(X, TARGETS, -100, smoothing, 0, 0, 2), -100,
         smoothing) for smoothing in (0.0, 0.1)
    ],
    "cross_entropy_gradient_": [
        (X, TARGETS, flow.ops.cross_entropy(X, TARGETS)[1], tensor([1.0, -2.0, 0.5], "float64"),
         -100, smoothing, first, classes)
        for smoothing, first, classes in ((0.0, 0, 0), (0.1, 0, 0), (0.1, 1, 9))
    ],
    "mean_weight": [(tensor([1, 0, 3], "int64"),), (tensor([1, -100, 3], "int64"),)],
    "scale_rows_": [(X, tensor([1.0, -2.0, 0.5], "float64"))],
    **dict.fromkeys(
        ["maximum", "minimum", "fmax", "fmin"], [(DISTINCT, NEAR), (DISTINCT, NEAR[0])]
    ),
    **dict.fromkeys(
        ["maximum_slope", "minimum_slope", "fmax_slope", "fmin_slope"],
        [(X, DISTINCT, NEAR), (X[0], DISTINCT, NEAR[:, :1])],
    ),
    **dict.fromkeys(
        ["floor_divide_", "trunc_divide_", "heaviside_"],
        [(DISTINCT, X.abs() + 0.3), (DISTINCT, X[0].abs() + 0.3)],
    ),
    "pow_": [(X.abs() + 0.3, DISTINCT), (X.abs() + 0.3, DISTINCT[0])],
    # At a bound it has no slope; where several meet in one place, the last one stays.
    "scatter_": [
        (X, tensor([[0, 2, 1, 0], [1, 0, 2, 2], [2, 1, 0, 1]], "int64"), DISTINCT, 0),
        (X, tensor([[0, 2, 1, 3], [1, 3, 0, 2], [3, 2, 1, 0]], "int64"), DISTINCT, 1),
    ],
    **dict.fromkeys(["scatter_mul_", "scatter_max_", "scatter_min_"], [
        (X, tensor([[0, 2, 1, 0], [0, 0, 2, 2], [2, 1, 0, 1]], "int64"), DISTINCT, 0),
        (X, tensor([[0, 2, 1, 3], [1, 1, 1, 1]], "int64"), DISTINCT[:2], 1),
    ]),
    "index_copy_": [
        (X, tensor([2, -3], "int64"), DISTINCT[:2], 0),
        (X, tensor([3, -3, 0], "int64"), DISTINCT[:, :3], 1),
    ],
    "linspace": [(5, -1.5, 2.0, flow.float64, "cpu"), (1, 0.5, 2.0, flow.int64, "cpu")],
    **dict.fromkeys(["clamp", "clamp_"], [
        (DISTINCT, X - 2.1, X.relu() + 0.7),
        (DISTINCT, tensor(-1.0625, "float64"), tensor(2.0625, "float64")),
    ]),
    # All differ: values behind the different ones mean nothing.
    "unique_values": [(X.reshape(-1),), (tensor([3, 1, 2, 4, 0], "int64"),)],
    "sort_rows": [(X,), (tensor([[1, 2], [0, 3], [1, 2], [0, 1]], "int64"),)],
    "hardtanh_": [(DISTINCT, -1.0625, 2.0625)],
    "hardtanh_backward": [(X, DISTINCT, -1.03, 2.03)],
    "threshold_": [(DISTINCT, 0.4375, 0.0)],
    "threshold_backward": [(X, DISTINCT, 0.43)],
    "relu_backward": [(X, DISTINCT), (X, tensor([[1.5], [-2.0], [3.0]], "float64"))],
    "multi_norm": [([X, X[0]], 2.0), ([DISTINCT], 1.0)],
    "loss": [(x, t, p, kind, reduction, *ab) for x, t, p, kind, *ab in LOSSES
             for reduction in ("none", "sum", "mean")],
    "ravel_multi_index": [
        ([tensor([[0], [-2]], "int64"), tensor([1, -1, 3], "int64")], [3, 4], [0, 1]),
        ([tensor([2, -3, 1], "int64")] * 5, [3, 4, 3, 5, 3], [0, 1, 2, 3, 4]),
    ],
    "equal": [(X, X), (X, DISTINCT)],
    "triangle_": [(X.reshape(3, 2, 2), 0, True), (X.reshape(3, 2, 2), 1, False)],
    "distances": [
        (X.reshape(1, *X.shape), X[1:].reshape(1, -1, X.shape[1]), p, False)
        for p in (0.0, 1.0, 2.0, float("inf"))
    ] + [(X.reshape(1, *X.shape), X.reshape(1, *X.shape), 1.0, True)],
    "bin_counts": [
        (X.reshape(-1), X[:0, 0], None, 5, -1.0, 1.5),
        (X.reshape(-1), tensor([-1.0, 0.25, 1.5], "float64"), None, 2, -1.0, 1.5),
        (X.reshape(-1), X[:0, 0], DISTINCT.reshape(-1), 5, -1.0, 1.5),
    ],
    # What they count waits for the device, which the op table's meta tensors are none of.
    "presence": [(tensor([3, 1, 3, -2], "int32"), 0, 5), (tensor([[7, 9]], "int64"), 1, 9)],
    "nonzero": [(X.relu(), int((X > 0).sum())), (X.relu(), 1)],
    "masked_take": [(X, X > 0, int((X > 0).sum())), (X, X > 0, 2)],
    "masked_put": [(X, X > 0, DISTINCT.reshape(-1))],
    "loss_slope": [(X, x, t, p, kind, by, 1.5, *ab) for x, t, p, kind, *ab in LOSSES
                   for by in ("x", "t") if (kind, by) != ("hinge_embedding", "t")],
}  # fmt: skip
# An op for each number of results that an expression of elements may have.
NAMES = "abcdefgh"
SAMPLES |= {
    f"fuse_elements_{n}": [
        ([X] + [X[0] + i for i in range(n - 1)],
         f"{', '.join(NAMES[:n])}: {', '.join(f'{a} * sigmoid(a) + {a} * {a}' for a in NAMES[:n])}")
    ]
    for n in range(2, 9)
}  # fmt: skip
# Ops without any sample, and why there can be none. Empty: keep it so.
WITHOUT_SAMPLES = {"adam_": "it has lists of tensors and no outputs: test_adam_step.py"}
WITHOUT_SAMPLES |= dict.fromkeys(
    ["adadelta_", "adagrad_", "lion_", "multi_clamp_", "multi_fill_", "multi_lerp_", "multi_scale_",
     "multi_unscale_", "rmsprop_", "sgd_", "update_scale_"],
    "they have lists of tensors and no outputs: test_multi_tensor.py",
)  # fmt: skip
# Checks that make no sense for an op, and why.
SKIP = {
    "as_strided": {"layouts": "strides are its meaning"},
    "cross_entropy_in_place": dict.fromkeys(
        ["mutation", "gradients", "gradient dtypes", "second order"], "it overwrites the logits"
    ),
    # test_global_head.py checks their gradients together.
    "cross_entropy_of_parts": {
        **dict.fromkeys(["gradients", "second order"], "the parts are a function of the logits"),
        "cost": "the logits are not read",
    },
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
    # The rows of the op table check them on symmetric matrices, and vectors without their signs.
    "cholesky": dict.fromkeys(
        ["gradients", "second order"], "one triangle is read, the gradient is symmetric"
    ),
    "eigh": {
        **dict.fromkeys(
            ["gradients", "second order"], "one triangle is read, the gradient is symmetric"
        ),
        **dict.fromkeys(
            ["dtypes", "gradient dtypes", "cuda against cpu"], "the vectors' signs are free"
        ),
    },
    "svd": dict.fromkeys(
        ["cuda against cpu", "dtypes (cuda)", "gradient dtypes (cuda)"],
        "the vectors' signs are free",
    ),
    # test_losses.py checks that the next derivative is refused.
    "loss_slope": {"second order": "the derivatives of most losses end with the second"},
}
# Ops whose backward is constant in all inputs, so that its gradient is nothing.
NO_SECOND_ORDER = {"fill_", "to_device", "floor_divide", "floor_divide_", "trunc_divide",
                   "trunc_divide_", "nextafter", "nextafter_", "uniform_", "normal_",
                   "exponential_", "random_", "bernoulli_", "ceil", "floor", "round",
                   "round_decimals", "sign", "trunc"}  # fmt: skip
# Taken now: tests may register more.
OWN = flow.ops.list("")


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
    for name in ("gradients", "second order"):
        assert large[name].detail.startswith("not looked at: no sample of at most 120 elements")
        assert large[name].status == "skipped"
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


def test_an_op_whose_result_is_always_float32_is_told_why_differences_fail():
    def backward(ctx, dy):
        return (dy * 2 * ctx.x).to(ctx.x.dtype)

    def refuses(x):
        if x.dtype is flow.float64:
            raise flow.DTypeError("no float64")
        return x.shape, flow.float32

    narrow = {"forward": lambda x: x.float() * x.float(), "backward": backward}
    failed = check(register(**narrow), [X])["gradients"]
    assert failed.status == "FAILED"
    assert "the output is float32, too coarse for differences of float64 inputs" in failed.detail
    assert check(register(**narrow, infer=refuses), [X.float()])["gradients"].status == "ok"
    wrong = check(register(backward=lambda ctx, dy: dy * ctx.x), [X])["gradients"]
    assert wrong.status == "FAILED" and "too coarse" not in wrong.detail


def test_samples():
    softmax = flow.ops.softmax
    for sample in [(X, 1), [X, 1], (X, {"axis": 1}), {"in": X, "axis": 1}]:
        assert check(softmax, [sample]).passed
        assert check("softmax", [sample], devices=["cpu"]).passed
    for sample in [X, (X, 1, None, 2), {"axis": 1}, (X, {"in": X, "axis": 1}), {"x": X}]:
        with pytest.raises(TypeError, match=r"check_op\(\): .*softmax\(Tensor in, int axis, "):
            check("softmax", [sample])
    for samples in (X, {"in": X}, None):
        with pytest.raises(TypeError, match="samples must be a list of calls, not"):
            check("softmax", samples)
    with pytest.raises(ValueError, match="no samples"):
        check("softmax", [])
    with pytest.raises(NotImplementedError, match="softmx.*did you mean softmax"):
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


def test_absent_inputs():
    logp = flow.log_softmax(X, 1)
    target = tensor([1, 0, 3], "int64")
    weight = tensor([1.0, 2.0, 0.5, 1.5], "float64")
    result = check("nll_loss", [(logp, target), (logp, target, weight, 2)])
    assert result.passed, str(result)
    assert "(S(0), S(0), B) -> (S(0), S(0))" in result["sharding"].detail
    assert result["gradients"].detail == "of logp / weight / logp, weight"


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
    assert lines[0] == "softmax(Tensor in, int axis, dtype? out_dtype=None) -> (Tensor out)"
    assert lines[1:] == [
        "  Softmax over one axis: exp(x - max) / sum exp(x - max). Of 16-bit floats also as "
        "float32.",
        lines[2],
        lines[3],
        "  has a gradient",
        "  sharding: every tensor split on any dim but the axis",
        "  cost: in is read once, out written once; 5 operations per element",
        "  autocast: as is",
    ]
    assert lines[2].startswith("  defined in ops/softmax.cpp:")
    assert lines[3].startswith("  kernel for any device: float16, bfloat16, float32, float64 (kern")
    call = flow.ops.describe("softmax", flow.empty(8, 512, device="meta"), axis=1).splitlines()
    assert call[: len(lines)] == lines
    assert call[len(lines) :] == [
        "  a call of (float32[8, 512], 1, None) gives float32[8, 512]",
        "    on shards as (S(0)) -> (S(0))",
        "    32768 bytes, 20480 operations",
    ]


def test_a_call_that_cannot_be_described_says_so():
    with pytest.raises(TypeError, match=r"^describe\(\): the call \(float32\[2\]\) lacks 'axis'"):
        flow.ops.describe("softmax", flow.ones(2))
    with pytest.raises(TypeError, match=r"^describe\(\): the call .* does not go with softmax"):
        flow.ops.describe("softmax", flow.ones(2), 1, None, 2)


def test_signatures_can_be_inspected():
    assert str(inspect.signature(flow.ops.softmax)) == "(in, /, axis, out_dtype=None)"
    signature = str(inspect.signature(flow.ops.rand))
    assert signature == "(shape, dtype, device=device(type='cpu'), *, seed, offset)"
    for name in OWN:
        inspect.signature(flow._oneflow_lite.op_function(name))


# ---- Random functions, dicts, functions whose tensors are elsewhere.


@pytest.mark.parametrize(
    "function, cause",
    [
        (lambda x: x + flow.rand(3), "draws from flow's generator"),
        (lambda x: flow.nn.functional.dropout(x, 0.5), "draws from flow's generator"),
        (flow.nn.Dropout(0.5), "draws from flow's generator"),
        (lambda x: x * float(np.random.random()), "draws random numbers elsewhere"),
    ],
)
def test_a_random_function_is_said_to_be_so_once(function, cause):
    seed = flow.initial_seed()
    result = flow.check_op(function, [flow.ones(64, 3)], devices="cpu", verbose=False,
                           raise_exception=False)  # fmt: skip
    (failure,) = result.failures
    assert failure.name == "repetition" and cause in failure.detail
    skipped = [c.name for c in result.checks if "see repetition" in c.detail]
    assert {"layouts", "gradients", "second order", "gradient dtypes", "sharding"} <= set(skipped)
    # The numbers go on from where they were: only the runs themselves drew some.
    assert flow.initial_seed() == seed
    fixed = flow.nn.Dropout(0.5).eval()
    flow.check_op(fixed, [flow.rand(2, 3)], devices="cpu", verbose=False)


def test_dicts_of_tensors_are_looked_into():
    def right(batch, scale):
        x, (y, z) = batch["x"], batch["rest"]
        return {"sum": x + y["deep"] * scale, "all": [x * z, (y["deep"].exp(),)]}

    x, y, z = (flow.rand(2, 3, dtype=flow.float64) for _ in range(3))
    sample = ({"x": x, "rest": [{"deep": y}, z]}, {"scale": 2.0})
    result = flow.check_op(right, [sample], devices="cpu", verbose=False)
    assert result["gradients"].status == "ok" and result["mutation"].status == "ok"

    def wrong(batch):
        batch["x"].add_(1)
        return {"y": batch["x"] * 2}

    result = flow.check_op(wrong, [({"x": x}, {})], devices="cpu", verbose=False,
                           raise_exception=False)  # fmt: skip
    assert "was changed" in result["mutation"].detail and result["mutation"].status == "FAILED"

    with pytest.raises(AssertionError, match="gave str, but must give tensors"):
        flow.check_op(lambda x: {"y": x, "name": "a"}, [x], devices="cpu", verbose=False)


def test_a_function_whose_tensors_are_on_the_device(device):
    if device == "cpu":
        pytest.skip("the CPU is where samples are")
    weight = flow.rand(3, device=device)
    for devices in (None, "cuda"):
        result = flow.check_op(lambda x: x * weight, [flow.rand(2, 3)], devices=devices,
                               verbose=False)  # fmt: skip
        assert result.passed and result["gradients (cuda)"].status == "ok"
    left_out = flow.check_op(lambda x: x * weight, [flow.rand(2, 3)], verbose=False)["cpu"]
    assert "whose own tensors are on a GPU" in left_out.detail


def test_where_a_function_is_at_home(monkeypatch):
    """As on a machine with a GPU: the CPU is left out where only the other device runs."""
    from oneflow_lite import op_check

    class Elsewhere(op_check.Subject):
        def on(self, call, where):
            return where

        def run(self, call, tensors=None):
            if call == "cpu":
                raise RuntimeError("mul(): all tensors must be on one device, but input is on cpu")
            return []

    monkeypatch.setattr(op_check._ext, "cuda_is_available", lambda: True)
    found, left_out = op_check._devices(Elsewhere(lambda x: x, [flow.rand(2)]))
    assert found == ["cuda"] and [c.name for c in left_out] == ["cpu"]
    assert "own tensors are on a GPU" in left_out[0].detail


def test_partial_sums_of_infinities_are_shares_of_what_is_finite():
    @flow.register_op("my::negated_sum")
    class NegatedSum:
        """Minus x."""

        def forward(x):
            return -x

        def backward(ctx, dy):
            return -dy

        def sbp(x):
            return [("P", "P"), (flow.sbp.split(0), flow.sbp.split(0))]

    x = flow.tensor([1.0, -float("inf"), 3.0, float("inf"), float("nan")])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = flow.check_op("my::negated_sum", [x], raise_exception=False)
    assert result["sharding"].detail == "P -> P, S(0) -> S(0)"
    assert result["inference"].detail == "shapes, dtypes and devices of 1 call"
