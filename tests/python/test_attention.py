# SPDX-License-Identifier: Apache-2.0
"""Attention against a composition in float64: masks, alignments, groups, dropout, long rows, what
is not finite; on CUDA cuDNN's plans, captures and determinism.

Lengths go round the tiles of the CPU (blocks of 32, 64, 128 and 256 queries, tiles of 256 and 512
keys) and cuDNN's (64 and 128).
"""

import math

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor
from op_table_attention import np_attention

F = flow.nn.functional
attend = F.scaled_dot_product_attention
FINE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def use():
    """Who served the calls so far, for messages of tests that fail."""
    return flow._oneflow_lite.attention_use()


def composed(q, k, v, keep=None, causal=0, factors=None):
    """The same of functions, in the dtype of the inputs; keep is bool or added, causal 1 or 2."""
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = flow.matmul(q, k.mT) / math.sqrt(q.shape[-1])
    queries, keys = scores.shape[-2:]
    if keep is not None:
        hidden = flow.where(keep, scores, -math.inf) if keep.dtype is flow.bool else scores + keep
        scores = hidden
    if causal:
        seen = flow.ones(queries, keys, dtype=flow.bool, device=q.device)
        scores = flow.where(seen.tril(0 if causal == 1 else keys - queries), scores, -math.inf)
    weights = flow.fused_scale_mask_softmax(scores, None, 1.0, "zero")
    return flow.matmul(weights if factors is None else weights * factors, v)


def operands(shape, kv_heads, keys, dtype, device, dv=None, seed=0):
    """q of [batch, heads, queries, d] with k and v to it, as leaves and in float64 on the CPU."""
    rng = np.random.default_rng(seed)
    batch, _, _, d = shape
    sizes = (shape, (batch, kv_heads, keys, d), (batch, kv_heads, keys, dv or d))
    given = [tensor(rng.standard_normal(s), dtype, device).requires_grad_() for s in sizes]
    exact = [tensor(host(x).astype(np.float64), "float64", "cpu").requires_grad_() for x in given]
    return given, exact


def masks(kind, batch, heads, queries, keys, dtype, device):
    rng = np.random.default_rng(1)
    if kind is None:
        return None, None
    shapes = {
        "bool": (queries, keys),
        "keys": (batch, 1, 1, keys),
        "heads": (1, heads, queries, keys),
        "added": (batch, 1, queries, keys),
    }
    shape = shapes[kind]
    if kind == "added":
        values = rng.standard_normal(shape)
        values[rng.random(shape) < 0.2] = -np.inf
        given = tensor(values, dtype, device)
        return given, tensor(host(given).astype(np.float64), "float64", "cpu")
    keep = rng.random(shape) < 0.7
    if kind == "bool" and queries > 1:
        keep[1] = False  # a query that sees nothing
    return flow.tensor(keep, device=device), flow.tensor(keep)


def assert_near(got, want, dtype, what):
    got, want = host(got).astype(np.float64), host(want)
    size = max(1.0, np.abs(want).max(initial=0.0))
    np.testing.assert_allclose(got, want, rtol=0, atol=FINE[dtype] * size,
                               err_msg=f"{what} {use()}")  # fmt: skip


def check_call(given, exact, options, reference_options, dtype, seed=3):
    y, want = attend(*given, **options), composed(*exact, **reference_options)
    assert_near(y, want, dtype, "result")
    dy = np.random.default_rng(seed).standard_normal(tuple(want.shape))
    dy = tensor(dy, dtype, str(y.device))
    grads = flow.autograd.grad(y, given, dy)
    wanted = flow.autograd.grad(want, exact, tensor(host(dy).astype(np.float64), "float64", "cpu"))
    for name, a, b in zip("qkv", grads, wanted, strict=True):
        assert_near(a, b, dtype, f"gradient of {name}")


LENGTHS = [(1, 1), (1, 77), (31, 33), (65, 64), (129, 257), (200, 70), (300, 600), (777, 520)]


@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
@pytest.mark.parametrize("causal", [0, 1, 2])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_lengths_and_alignments(lengths, causal, dtype, device):
    queries, keys = lengths
    given, exact = operands((1, 2, queries, 16), 2, keys, dtype, device, dv=24)
    options = {"is_causal": causal == 1, "causal_bottom_right": causal == 2}
    check_call(given, exact, options, {"causal": causal}, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", *HALVES])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("kind", ["bool", "keys", "heads", "added"])
@pytest.mark.parametrize("causal", [0, 1])
def test_masks_and_groups(kind, kv_heads, causal, dtype, device):
    given, exact = operands((2, 4, 37, 16), kv_heads, 70, dtype, device)
    mask, exact_mask = masks(kind, 2, 4, 37, 70, dtype, device)
    options = {"attn_mask": mask, "is_causal": causal == 1, "enable_gqa": True}
    check_call(given, exact, options, {"keep": exact_mask, "causal": causal}, dtype)


@pytest.mark.parametrize("d", [1, 8, 40, 64, 128, 192, 256, 300])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_any_head_dim(d, dtype, device):
    given, exact = operands((1, 2, 66, d), 2, 66, dtype, device)
    check_call(given, exact, {"is_causal": True}, {"causal": 1}, dtype)


def test_a_float32_mask_beside_16_bits(device):
    given, exact = operands((1, 2, 20, 16), 2, 30, "bfloat16", device)
    mask = tensor(np.random.default_rng(4).standard_normal((20, 30)) * 100, "float32", device)
    y = attend(*given, mask)
    assert_near(y, composed(*exact, keep=mask.cpu().double()), "bfloat16", "result")


@pytest.mark.parametrize("kv_heads", [2, 1])
def test_gradients_of_masks_and_of_second_order(kv_heads):
    (q, k, v), _ = operands((1, 2, 4, 3), kv_heads, 5, "float64", "cpu", dv=2)
    mask = tensor(np.random.default_rng(5).standard_normal((2, 4, 1)), "float64", "cpu")
    mask.requires_grad_()
    keep = flow.tensor(np.arange(20).reshape(4, 5) % 3 > 0)

    def added(*inputs):
        return attend(*inputs, enable_gqa=True)

    def hidden(q, k, v):
        return attend(q, k, v, keep, is_causal=True, enable_gqa=True)

    assert flow.autograd.gradcheck(added, (q, k, v, mask))
    assert flow.autograd.gradgradcheck(added, (q, k, v, mask))
    assert flow.autograd.gradgradcheck(hidden, (q, k, v))


def test_second_order_in_float32_is_that_of_the_composition(device):
    found = []
    for f in (lambda *x: attend(*x, is_causal=True), lambda *x: composed(*x, causal=1)):
        (q, k, v), _ = operands((2, 2, 17, 8), 2, 17, "float32", device)
        y = f(q, k, v)
        first = flow.autograd.grad((y**2).sum(), (q, k, v), create_graph=True)
        found.append(flow.autograd.grad(sum((g**2).sum() for g in first), (q, k, v)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(host(a), host(b), rtol=1e-4, atol=1e-4 * np.abs(host(b)).max())


# ---- Dropout ----


def test_dropout_drops_what_dropout_draws(device):
    """Elsewhere than in cuDNN, the elements are those of the generator's uniform numbers."""
    (q, k, v), _ = operands((2, 3, 70, 8), 3, 130, "float32", device)
    flow.manual_seed(11)
    y = attend(q, k, v, dropout_p=0.3)
    flow.manual_seed(11)
    kept = flow.rand(2, 3, 70, 130, device=device) >= 0.3
    want = composed(q, k, v, factors=kept.float() / 0.7)
    np.testing.assert_allclose(host(y), host(want), atol=2e-5)
    dy = flow.randn(*y.shape, device=device)
    grads = (flow.autograd.grad(x, (q, k, v), dy) for x in (y, want))
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(host(a), host(b), atol=5e-5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dropout_keeps_its_share_and_its_backward_drops_the_same(dtype, device):
    """With q = 0 all weights are 1 / keys. v = 1 shows the share kept; dv of a sum shows it too."""
    q = flow.zeros(2, 4, 128, 64, dtype=getattr(flow, dtype), device=device)
    v = flow.ones_like(q).requires_grad_()
    for p in (0.1, 0.5):
        y = attend(q, q, v, dropout_p=p)
        share = host(y)[..., 0].astype(np.float64)
        assert abs(share.mean() - 1) < 0.01, use()
        spread = math.sqrt(p / (1 - p) / 128)
        assert 0.8 * spread < share.std() < 1.2 * spread, use()
        dv = flow.autograd.grad(y.sum(), v)[0]
        total = host(dv)[..., 0].astype(np.float64).sum((1, 2)) if dv.ndim == 4 else None
        np.testing.assert_allclose(total, share.sum((1, 2)), rtol=2e-3, err_msg=str(use()))
    assert (attend(q, q, v, dropout_p=1.0) == 0).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dropout_in_backward_is_that_of_forward_by_differences(dtype, device):
    """y is linear in v for one draw: dv at any v is that of v = 0, and <dv, v> is <y, dy>."""
    (q, k, v), _ = operands((1, 2, 64, 32), 2, 96, dtype, device)
    y = attend(q, k, v, dropout_p=0.4)
    dy = flow.randn(*y.shape, device=device).to(dtype=y.dtype)
    dv = flow.autograd.grad(y, v, dy)[0]
    left = (dv.double() * v.double()).sum().item()
    right = (dy.double() * y.double()).sum().item()
    size = (dy.double() * y.double()).abs().sum().item()
    assert abs(left - right) < (1e-5 if dtype == "float32" else 2e-2) * size, use()


def test_seeds_repeat_and_advance(device):
    q = flow.randn(1, 2, 33, 16, device=device).to(dtype=flow.float16)
    flow.manual_seed(5)
    first, second = (attend(q, q, q, dropout_p=0.5) for _ in range(2))
    flow.manual_seed(5)
    again = attend(q, q, q, dropout_p=0.5)
    assert (first == again).all() and not (first == second).all()
    generator = flow.default_generator
    if device == "cuda":
        generator = flow.cuda.default_generators[flow.cuda.current_device()]
    flow.manual_seed(5)
    assert (attend(q, q, q, dropout_p=0.5, generator=generator) == first).all()


# ---- What is not finite, and what is empty ----


def test_what_is_not_finite_stays_in_its_row(device):
    (q, k, v), _ = operands((1, 1, 40, 8), 1, 50, "float32", device)
    q, k, v = (x.detach() for x in (q, k, v))
    clean = host(attend(q, k, v))
    q[0, 0, 3, 0] = math.nan
    y = host(attend(q, k, v))
    assert np.isnan(y[0, 0, 3]).all()
    np.testing.assert_allclose(np.delete(y, 3, 2), np.delete(clean, 3, 2), atol=1e-5)
    mask = flow.zeros(40, 50, device=device)
    mask[5, 7], mask[6, 8], mask[7] = math.nan, math.inf, -math.inf
    y = host(attend(q.nan_to_num(0.0), k, v, mask))
    assert np.isnan(y[0, 0, 5]).all() and np.isnan(y[0, 0, 6]).all() and (y[0, 0, 7] == 0).all()
    assert np.isfinite(np.delete(y, [5, 6], 2)).all()


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
def test_a_query_without_keys_gives_zeros_and_moves_nothing(dtype, device):
    (q, k, v), _ = operands((2, 2, 70, 16), 2, 90, dtype, device)
    keep = flow.ones(70, 90, dtype=flow.bool, device=device)
    keep[3] = False
    keep[68] = False
    y = attend(q, k, v, keep)
    assert (y[:, :, [3, 68]] == 0).all(), use()
    dy = flow.zeros_like(y)
    dy[:, :, [3, 68]] = 100.0
    for g in flow.autograd.grad(y, (q, k, v), dy):
        assert (g == 0).all(), use()


def test_large_scores_keep_their_gradients(device):
    """Scores of 12800 that are alike: float32 tells their sum's logarithm to 1e-3 alone."""
    q = flow.full((1, 2, 300, 64), 40.0, device=device)
    v = flow.ones_like(q).requires_grad_()
    attend(q, q, v).sum().backward()
    np.testing.assert_allclose(host(v.grad), 1, rtol=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("far", [-1e4, -1e9, -1e30, "lowest"])
def test_keys_that_are_all_far_away_have_the_gradients_of_their_weights(far, dtype, device):
    """A mask that adds one large number to each key leaves equal weights, not weights of 1."""
    far = flow.finfo(getattr(flow, dtype)).min if far == "lowest" else far
    q = flow.zeros(1, 1, 3, 8, dtype=getattr(flow, dtype), device=device)
    k, v = (flow.ones(1, 1, 5, 8, dtype=q.dtype, device=device).requires_grad_() for _ in "kv")
    mask = flow.zeros(3, 5, dtype=q.dtype, device=device)
    mask[1] = far
    attend(q, k, v, mask).sum().backward()
    np.testing.assert_allclose(host(v.grad), 0.6, rtol=1e-5)
    assert (host(k.grad) == 0).all()


def test_a_mask_of_float32_goes_with_every_dtype(device):
    rng = np.random.default_rng(2)
    values = rng.standard_normal((3, 2, 4, 5, 8))
    added = rng.standard_normal((5, 5)).astype(np.float32)
    exact = np_attention(*values, mask=added.astype(np.float64))
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5), ("bfloat16", 5e-2)):
        q, k, v = (tensor(x, dtype, device).requires_grad_() for x in values)
        mask = tensor(added, "float32", device).requires_grad_()
        y = attend(q, k, v, mask)
        assert y.dtype is q.dtype
        np.testing.assert_allclose(host(y), exact, atol=tolerance)
        if dtype == "float64":
            y.sum().backward()
            assert mask.grad.dtype is flow.float32 and mask.grad.shape == (5, 5)
    with pytest.raises(flow.DTypeError, match="attn_mask float16 do not go together"):
        attend(*(flow.zeros(2, 5, 8) for _ in "qkv"), flow.zeros(5, 5, dtype=flow.float16))


def test_memory_does_not_grow_with_the_square_of_the_length():
    """16384 tokens would be 1 GiB of scores; the tiles need some MiB."""
    q = flow.randn(1, 1, 16384, 8, requires_grad=True)
    y = attend(q, q, q, is_causal=True)
    assert y.shape == q.shape
    want = np_attention(*[host(q)[:, :, :100]] * 3, is_causal=True)
    np.testing.assert_allclose(host(y)[:, :, :100], want, atol=1e-5)


# ---- The packed form ----


@pytest.mark.parametrize("dtype", ["float32", *HALVES])
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("tokens", [1, 50, 129])
def test_packed_is_the_same_as_apart(tokens, kv_heads, dtype, device):
    size = (4 + 2 * kv_heads) * 16
    values = np.random.default_rng(6).standard_normal((2, tokens, size))
    qkv = tensor(values, dtype, device).requires_grad_()
    y = F.attention_packed(qkv, 4, kv_heads, is_causal=True)
    assert y.shape == (2, tokens, 64) and y.is_contiguous()
    exact = tensor(host(qkv).astype(np.float64), "float64", "cpu").requires_grad_()
    parts = exact.reshape([2, tokens, -1, 16]).transpose(1, 2).split([4, kv_heads, kv_heads], 1)
    want = composed(*parts, causal=1).transpose(1, 2).flatten(2)
    assert_near(y, want, dtype, "result")
    dy = tensor(np.random.default_rng(7).standard_normal(tuple(y.shape)), dtype, device)
    got = flow.autograd.grad(y, qkv, dy)[0]
    exact_dy = tensor(host(dy).astype(np.float64), "float64", "cpu")
    assert_near(got, flow.autograd.grad(want, exact, exact_dy)[0], dtype, "gradient")
    assert got.is_contiguous()


# The second: heads + 2 kv_heads are 2 modulo 2^64, by which 4 can be divided.
@pytest.mark.parametrize("heads", [1 << 62, ((1 << 64) + 2) // 3, (1 << 63) - 1])
def test_more_heads_than_can_be_added_up_are_refused(heads):
    for refused in (
        lambda: F.attention_packed(flow.ones(1, 2, 4), heads),
        lambda: F.attention_packed(flow.ones(1, 2, 4), heads, 1),
        lambda: F.attention_packed(flow.ones(1, 2, 4), 1, heads),
        lambda: F.attention_packed(flow.ones(1, 2, 3, 1, 4), None, heads),
        lambda: flow.ops.attention_packed(flow.ones(1, 2, 2, 4), None, heads=heads, kv_heads=heads),
    ):
        with pytest.raises(ValueError, match=r"attention_packed\(\): qkv "):
            refused()


def test_dropout_of_more_scores_than_an_int64_counts():
    q, k = flow.ones(1, 1 << 33, 1, device="meta"), flow.ones(1, 1 << 34, 1, device="meta")
    assert attend(q, k, k, dropout_p=0.5).shape == q.shape


def test_packed_of_a_layer_that_has_the_batch_second(device):
    x = flow.randn(9, 2, 3, 2, 8, device=device)  # tokens first
    got = F.attention_packed(x.transpose(0, 1))
    want = F.attention_packed(x.transpose(0, 1).contiguous())
    np.testing.assert_allclose(host(got), host(want), atol=1e-6)


def test_strided_operands(device):
    base = flow.randn(2, 5, 7, 40, device=device)
    q = base[..., 3:19]  # odd offset, padded rows
    k, v = base[..., :16].transpose(1, 2).contiguous().transpose(1, 2), base[..., 20:36]
    got = attend(q, k, v)
    want = attend(*(x.contiguous() for x in (q, k, v)))
    np.testing.assert_allclose(host(got), host(want), atol=1e-6)
    one = flow.randn(2, 1, 7, 16, device=device).expand(2, 5, 7, 16)
    np.testing.assert_allclose(host(attend(one, one, one)),
                               host(attend(*[one.contiguous()] * 3)), atol=1e-6)  # fmt: skip


def test_the_switch_of_determinism():
    assert not flow.are_deterministic_algorithms_enabled()
    flow.use_deterministic_algorithms(True)
    try:
        assert flow.are_deterministic_algorithms_enabled()
    finally:
        flow.use_deterministic_algorithms(False)
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not int"):
        flow.use_deterministic_algorithms(1)


# ---- cuDNN ----


def half(*shape, seed=8):
    values = np.random.default_rng(seed).standard_normal(shape)
    return tensor(values, "bfloat16", "cuda").requires_grad_()


@pytest.fixture
def cudnn():
    """Skips where cuDNN is not to be had; else counts its launches."""
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    attend(*[half(1, 1, 128, 64).detach()] * 3)
    if not use()["library"].startswith("cuDNN"):
        pytest.skip(f"no cuDNN: {use()}")
    return lambda: use()["library_calls"]


@pytest.mark.cuda
def test_cudnn_serves_what_it_should(cudnn):
    before = cudnn()
    for length, d in ((1024, 64), (1000, 64), (197, 128), (64, 32)):
        q = half(2, 4, length, d)
        y = attend(q, q, q, is_causal=True)
        y.backward(y.detach())
    q, k = half(1, 8, 100, 64), half(1, 2, 300, 64)
    attend(q, k, k, enable_gqa=True).sum().backward()
    keep = flow.ones(100, 300, dtype=flow.bool, device="cuda").tril()
    attend(q, k, k, keep, enable_gqa=True).sum().backward()
    qkv = half(2, 256, 3, 4, 64)
    F.attention_packed(qkv, is_causal=True, dropout_p=0.1).sum().backward()
    assert cudnn() - before == 14, use()


@pytest.mark.cuda
def test_successive_lengths_need_few_plans(cudnn):
    before = use()["plans_built"]
    with flow.no_grad():
        for length in range(1, 1001):
            q = half(1, 2, length, 64, seed=1).detach()
            y = attend(q, q, q, is_causal=True)
            if length in (1, 7, 100, 129, 500, 999):
                exact = [q.double().cpu()] * 3
                assert_near(y, composed(*exact, causal=1), "bfloat16", f"length {length}")
    assert use()["plans_built"] - before <= 16, use()


@pytest.mark.cuda
def test_a_growing_cache_needs_few_plans(cudnn):
    before = use()["plans_built"]
    with flow.no_grad():
        cache = half(3, 4, 1000, 64, seed=2).detach()
        for length in range(1, 1001, 3):
            q, k = cache[:, :, :1] + 0, cache[:, :, :length].contiguous()
            y = attend(q, k, k)
            if length in (1, 100, 400, 1000):
                exact = [x.double().cpu() for x in (q, k, k)]
                assert_near(y, composed(*exact), "bfloat16", f"length {length}")
    assert use()["plans_built"] - before <= 16, use()


@pytest.mark.cuda
def test_padded_lengths_have_gradients_masks_and_dropout(cudnn):
    for length in (301, 302, 303, 304, 305, 306, 307, 308, 309, 310):
        given, exact = operands((2, 2, length, 32), 2, length + 5, "bfloat16", "cuda")
        mask, exact_mask = masks("keys", 2, 2, length, length + 5, "bfloat16", "cuda")
        check_call(given, exact, {"attn_mask": mask}, {"keep": exact_mask}, "bfloat16")
        q, k, v = given
        y = attend(q, k, flow.ones_like(v), dropout_p=0.5)
        assert abs(y.float().mean().item() - 1) < 0.05, use()


@pytest.mark.cuda
def test_capture_replays_and_asks_for_a_warm_up(cudnn):
    q = half(2, 3, 152, 64).detach()
    graph = flow.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="warm up"):
        with flow.cuda.graph(graph):
            attend(q, q, q)
    want = attend(q, q, q)
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        y = attend(q, q, q)
    graph.replay()
    flow.cuda.synchronize()
    assert (y == want).all(), use()


@pytest.mark.cuda
def test_replays_draw_anew(cudnn):
    q = flow.zeros(1, 2, 128, 64, dtype=flow.bfloat16, device="cuda")
    v = flow.ones_like(q).requires_grad_()

    def step():
        y = attend(q, q, v, dropout_p=0.5)
        return y, flow.autograd.grad(y.sum(), v)[0]

    step()
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        y, dv = step()
    seen = []
    for _ in range(3):
        graph.replay()
        flow.cuda.synchronize()
        seen.append(host(y))
        total = host(dv)[..., 0].astype(np.float64).sum()
        np.testing.assert_allclose(total, host(y)[..., 0].astype(np.float64).sum(), rtol=2e-3)
    assert not np.array_equal(seen[0], seen[1]) and not np.array_equal(seen[1], seen[2])


@pytest.mark.cuda
def test_deterministic_gradients_are_the_same_bits(cudnn):
    flow.use_deterministic_algorithms(True)
    try:
        qkv, dy = half(4, 1024, 3, 4, 64), half(4, 1024, 4, 64, seed=9).detach()
        found = []
        for _ in range(5):
            y = F.attention_packed(qkv, is_causal=True)
            found.append(host(flow.autograd.grad(y, qkv, dy)[0]))
        assert all(np.array_equal(found[0], x) for x in found[1:]), use()
        large = half(2, 32768, 3, 8, 64)
        with pytest.raises(RuntimeError, match="workspace of .* GiB"):
            F.attention_packed(large, is_causal=True).sum().backward()
    finally:
        flow.use_deterministic_algorithms(False)
