# SPDX-License-Identifier: Apache-2.0
"""Attention of several heads and the encoder: against NumPy, against PyTorch, and learning."""

import math

import numpy as np
import pytest
from numerics import HALVES, flow, host, tensor, ulp

nn, F = flow.nn, flow.nn.functional
RNG = np.random.default_rng(6)
BATCH, LENGTH, FEATURES, HEADS = 3, 5, 8, 2
CAUSAL = np.triu(np.ones((LENGTH, LENGTH), bool), 1)
PADDED = np.arange(LENGTH) >= np.array([[5], [3], [4]])


def np_attention(layer, x, hidden):
    """x is [batch, length, features]; gives the result and the weights of each head."""
    weight, bias = host(layer.in_proj_weight), host(layer.in_proj_bias)
    rows = (x @ weight.T + bias).reshape(BATCH, LENGTH, 3, HEADS, -1)
    q, k, v = rows.transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    y = (weights @ v).swapaxes(1, 2).reshape(x.shape)
    return y @ host(layer.out_proj.weight).T + host(layer.out_proj.bias), weights


def attention(**options):
    flow.manual_seed(0)
    layer = nn.MultiheadAttention(FEATURES, HEADS, dtype=flow.float64, **options)
    nn.init.normal_(layer.in_proj_bias)
    nn.init.normal_(layer.out_proj.bias)
    return layer


@pytest.mark.parametrize("causal", ["no", "mask", "added", "flag"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_attention(causal, padded, batch_first):
    layer = attention(batch_first=batch_first)
    x = RNG.standard_normal((BATCH, LENGTH, FEATURES))
    hidden = (CAUSAL if causal != "no" else False) | (PADDED[:, None, None] if padded else False)
    expected, weights = np_attention(layer, x, hidden)
    given = flow.tensor(x if batch_first else x.swapaxes(0, 1))
    mask = {"mask": flow.tensor(CAUSAL), "added": flow.tensor(np.where(CAUSAL, -np.inf, 0.0))}
    got, shown = layer(
        given, given, given, flow.tensor(PADDED) if padded else None, attn_mask=mask.get(causal),
        is_causal=causal == "flag",
    )  # fmt: skip
    got = host(got) if batch_first else host(got).swapaxes(0, 1)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(host(shown), weights.mean(1), rtol=1e-11, atol=1e-13)
    again, each = layer(given, given, given, average_attn_weights=False)
    assert each.shape == (BATCH, HEADS, LENGTH, LENGTH) and again.shape == given.shape
    assert layer(given, given, given, need_weights=False)[1] is None


def test_attention_without_a_batch_and_with_a_mask_per_head():
    layer = attention()
    x = flow.tensor(RNG.standard_normal((LENGTH, FEATURES)))
    y, weights = layer(x, x, x)
    rows, same = layer(x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1))
    assert flow.equal(y, rows.squeeze(1)) and flow.equal(weights, same.squeeze(0))
    batch = x.unsqueeze(1).expand(LENGTH, BATCH, FEATURES)
    masks = flow.tensor(RNG.standard_normal((BATCH * HEADS, LENGTH, LENGTH)))
    y, _ = layer(batch, batch, batch, attn_mask=masks)
    first, _ = layer(batch[:, :1], batch[:, :1], batch[:, :1], attn_mask=masks[:HEADS])
    np.testing.assert_allclose(host(y[:, :1]), host(first), rtol=1e-12)
    with pytest.raises(ValueError, match="embed_dim is 8"):
        nn.MultiheadAttention(8, 3)


@pytest.mark.parametrize("bias_kv", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("dims", [(None, None), (6, 10)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_keys_added_and_features_of_other_sizes(bias_kv, zero, dims, causal):
    flow.manual_seed(1)
    layer = nn.MultiheadAttention(FEATURES, HEADS, 0.0, True, bias_kv, zero, *dims, True,
                                  dtype=flow.float64)  # fmt: skip
    nn.init.normal_(layer.in_proj_bias)
    q, k, v = (RNG.standard_normal((BATCH, LENGTH, d or FEATURES)) for d in (FEATURES, *dims))
    whole = layer.in_proj_weight
    weights = ([host(getattr(layer, f"{n}_proj_weight")) for n in "qkv"] if whole is None
               else np.split(host(whole), 3))  # fmt: skip
    assert (whole is None) == (dims[0] is not None)
    biases = np.split(host(layer.in_proj_bias), 3)
    rows = [x @ w.T + b for x, w, b in zip((q, k, v), weights, biases, strict=True)]
    for i, added in ((1, layer.bias_k), (2, layer.bias_v)):
        more = [np.broadcast_to(host(added), (BATCH, 1, FEATURES))] if bias_kv else []
        more += [np.zeros((BATCH, 1, FEATURES))] if zero else []
        rows[i] = np.concatenate([rows[i], *more], 1)
    a, b, c = (r.reshape(BATCH, -1, HEADS, FEATURES // HEADS).swapaxes(1, 2) for r in rows)
    hidden = np.repeat(PADDED[:, None, None], LENGTH, 2) | (CAUSAL if causal else False)
    hidden = np.pad(hidden, [(0, 0)] * 3 + [(0, bias_kv + zero)])
    shares = np.exp(np.where(hidden, -np.inf, a @ b.swapaxes(-1, -2) / math.sqrt(a.shape[-1])))
    shares /= shares.sum(-1, keepdims=True)
    y = (shares @ c).swapaxes(1, 2).reshape(BATCH, LENGTH, FEATURES) @ host(layer.out_proj.weight).T
    got, shown = layer(*map(flow.tensor, (q, k, v)), flow.tensor(PADDED), is_causal=causal)
    np.testing.assert_allclose(host(got), y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(host(shown), shares.mean(1), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("bias_kv", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("queries, keys", [(2, 5), (5, 2), (4, 4)])
def test_the_last_query_is_at_the_last_key_given(bias_kv, zero, queries, keys):
    layer = attention(add_bias_kv=bias_kv, add_zero_attn=zero, batch_first=True)
    q, k = (flow.tensor(RNG.standard_normal((2, n, FEATURES))) for n in (queries, keys))
    hidden = np.arange(keys) - keys > np.arange(queries)[:, None] - queries
    got, shown = layer(q, k, k, is_causal=True)
    want, weights = layer(q, k, k, attn_mask=flow.tensor(hidden))
    np.testing.assert_allclose(host(got), host(want), rtol=1e-12)
    np.testing.assert_allclose(host(shown), host(weights), rtol=1e-12)
    known = np.nan_to_num(host(shown)[..., :keys])  # NaN: a query that sees nothing
    assert (known[:, hidden] == 0).all() and (known[:, ~hidden] > 0).all()


def test_gradients_of_attention():
    layer = attention(batch_first=True)
    x = flow.tensor(RNG.standard_normal((2, 3, FEATURES)), requires_grad=True)
    flow.autograd.gradcheck(lambda x: layer(x, x, x, is_causal=True), x)


def np_scaled(q, k, v, mask=0.0):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + mask
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", HALVES)
def test_scores_of_16_bits_do_not_overflow(dtype, device):
    q = flow.full((1, 2, 4, 64), 40.0, dtype=getattr(flow, dtype), device=device)
    v = flow.ones_like(q).requires_grad_()
    y = F.scaled_dot_product_attention(q, q, v)
    # On CUDA four shares of a quarter may be rounded before they are added.
    unit = flow.finfo(q.dtype).eps if q.is_cuda else 0.0
    assert y.dtype is q.dtype and (abs(y - 1) <= unit).all()
    y.sum().backward()
    assert (abs(v.grad - 1) <= unit).all()
    layer = nn.MultiheadAttention(64, 1, bias=False, dtype=q.dtype, device=device)
    with flow.no_grad():
        layer.in_proj_weight.copy_(flow.eye(64, device=device).repeat(3, 1))
        layer.out_proj.weight.copy_(flow.eye(64, device=device))
    got, weights = layer(q[0], q[0], q[0])
    assert got.dtype is weights.dtype is q.dtype
    assert (got == 40).all() and (weights == 0.5).all()


@pytest.mark.parametrize("scale", [None, 0.1, -0.3, 0.0])
@pytest.mark.parametrize("dtype", HALVES)
def test_attention_of_16_bits_is_rounded_once_on_the_cpu(dtype, scale):
    q, k, v = (tensor(RNG.standard_normal((2, 3, 16, 64)) * s, dtype) for s in (3, 3, 1))
    masks = [None, tensor(RNG.standard_normal((16, 16)), dtype)]
    factor = 1 if scale is None else scale * 8  # of 64 features it is 1 / 8
    for mask in (*masks, flow.tensor(RNG.standard_normal((16, 16))).float()):
        x = q.clone().requires_grad_()
        got = F.scaled_dot_product_attention(x, k, v, mask, scale=scale)
        want = np_scaled(host(q) * factor, host(k), host(v), 0.0 if mask is None else host(mask))
        assert got.dtype is q.dtype
        assert (abs(host(got) - want) <= 0.51 * ulp(want, dtype) + 1e-5).all()
        got.float().square().sum().backward()
        wide = q.double().requires_grad_()
        y = F.scaled_dot_product_attention(
            wide, k.double(), v.double(), None if mask is None else mask.double(), scale=scale
        )
        y.square().sum().backward()
        size = abs(host(wide.grad)).max()
        assert x.grad.dtype is q.dtype
        np.testing.assert_allclose(host(x.grad), host(wide.grad), rtol=0.05, atol=0.015 * size)
    with pytest.raises(flow.DTypeError, match="do not go together"):
        F.scaled_dot_product_attention(q, k.float(), v.float())


def test_attention_speaks_of_the_arguments_as_given():
    layer = attention()
    x, other = flow.ones(5, 3, 8, dtype=flow.float64), flow.ones(5, 3, 4, dtype=flow.float64)
    for call, text in (
        (lambda: layer(x[None], x, x), r"query has shape \[1, 5, 3, 8\], expected 2 or 3 dims"),
        (lambda: layer(other, x, x), r"query has shape \[5, 3, 4\], expected \[5, 3, 8\]"),
        (lambda: layer(x, other, x), r"key has shape \[5, 3, 4\], expected \[5, 3, 8\]"),
        (lambda: layer(x, x[0], x[0]), r"key has shape \[3, 8\], expected 3 dims"),
        (lambda: layer(x, x[:, :1], x), r"key has shape \[5, 1, 8\], expected \[5, 3, 8\]"),
        (lambda: layer(x, x, x[:4]), r"value has shape \[4, 3, 8\], expected \[5, 3, 8\]"),
        (
            lambda: layer(x, x[:4], x[:4], flow.zeros(5, 3).bool()),
            r"key_padding_mask has shape \[5, 3\], expected \[3, 4\]",
        ),
        (
            lambda: layer(x, x[:4], x[:4], attn_mask=flow.zeros(3, 5, 4)),
            r"attn_mask has shape \[3, 5, 4\], expected \[5, 4\] or \[6, 5, 4\]",
        ),
    ):
        with pytest.raises(flow.ShapeError, match="^MultiheadAttention: " + text):
            call()
    heads = [flow.ones(1, n, 3, 8) for n in (4, 3, 1, 2)]
    for q, k in ((0, 1), (2, 3)):
        text = rf"query {list(heads[q].shape)}, key {list(heads[k].shape)}".replace("[", r"\[")
        with pytest.raises(flow.ShapeError, match=text):
            F.scaled_dot_product_attention(heads[q], heads[k], heads[k], enable_gqa=True)


def encoder(lib, norm_first, activation, bias):
    layer = lib.nn.TransformerEncoderLayer(
        FEATURES, HEADS, 16, 0.0, activation, norm_first=norm_first, bias=bias, batch_first=True,
        dtype=lib.float64,
    )  # fmt: skip
    return lib.nn.TransformerEncoder(layer, 2, lib.nn.LayerNorm(FEATURES, dtype=lib.float64))


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_encoder_is_pytorchs(norm_first, activation, bias):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: no parity check")
    theirs, ours = (encoder(lib, norm_first, activation, bias) for lib in (torch, flow))
    ours.load_state_dict({name: p.numpy() for name, p in theirs.state_dict().items()})
    x = RNG.standard_normal((BATCH, LENGTH, FEATURES))
    found = []
    for lib, model in ((torch, theirs), (flow, ours)):
        mask = lib.triu(lib.ones(LENGTH, LENGTH), diagonal=1).bool()
        y = model(lib.from_numpy(x), mask=mask)
        (y**3).sum().backward()
        found.append([y, *(p.grad for p in model.parameters())])
    for got, want in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(host(got), want.detach().numpy(), rtol=1e-8, atol=1e-10)


def test_the_layer_is_its_parts():
    layer = encoder(flow, True, "relu", True).layers[1].eval()
    x = flow.tensor(RNG.standard_normal((BATCH, LENGTH, FEATURES)))
    n = layer.norm1(x)
    h = x + layer.self_attn(n, n, n, need_weights=False, is_causal=True)[0]
    y = h + layer.linear2(F.relu(layer.linear1(layer.norm2(h))))
    np.testing.assert_array_equal(host(layer(x, is_causal=True)), host(y))
    with pytest.raises(ValueError, match='activation is "tan"'):
        nn.TransformerEncoderLayer(8, 2, activation="tan")


def test_a_language_model_learns_to_count(device):
    flow.manual_seed(0)
    words, width = 11, 16
    layer = nn.TransformerEncoderLayer(width, 2, 32, 0.0, batch_first=True, norm_first=True)
    model = nn.ModuleDict({
        "words": nn.Embedding(words, width), "places": nn.Embedding(LENGTH, width),
        "encoder": nn.TransformerEncoder(layer, 1, nn.LayerNorm(width)),
        "head": nn.Linear(width, words, bias=False),
    }).to(device)  # fmt: skip
    model.head.weight = model.words.weight
    optimizer = flow.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
    schedule = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, 120)
    losses = []
    for _ in range(120):
        starts = flow.from_numpy(RNG.integers(0, words, (16, 1))).to(device)
        text = (starts + flow.arange(LENGTH + 1, device=device)) % words
        x = model.words(text[:, :-1]) + model.places(flow.arange(LENGTH, device=device))
        logits = model.head(model.encoder(x, is_causal=True))
        loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    assert losses[0] > 2 and losses[-1] < 0.1
    text = flow.tensor([[3]], device=device)
    with flow.no_grad():
        for _ in range(LENGTH - 1):
            x = model.words(text) + model.places(flow.arange(text.size(1), device=device))
            shares = F.softmax(model.head(model.encoder(x, is_causal=True))[:, -1], dim=-1)
            text = flow.cat((text, shares.topk(1).indices), dim=1)
    assert text.tolist() == [[3, 4, 5, 6, 7]]
