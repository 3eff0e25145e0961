# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: attention."""

import math

import numpy as np
from op_row import Bad, Op, S, T, flow, ones


def np_attention(q, k, v, mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False,
                 causal_bottom_right=False):  # fmt: skip
    """softmax(scale q k^T + mask) v in float64; a query that sees no key gets 0."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2)
    scores = scores * (1 / math.sqrt(q.shape[-1] or 1) if scale is None else scale)
    queries, keys = scores.shape[-2:]
    if mask is not None:
        mask = np.asarray(mask)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal or causal_bottom_right:
        seen = np.tri(queries, keys, 0 if is_causal else keys - queries, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    largest = scores.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isinf(largest), 0, largest))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


def np_packed(qkv, num_heads=None, num_kv_heads=None, mask=None, dropout_p=0.0, is_causal=False,
              scale=None):  # fmt: skip
    five = qkv.ndim == 5
    heads = qkv.shape[3] if five else num_heads
    kv_heads = num_kv_heads or heads
    d = qkv.shape[4] if five else qkv.shape[2] // (heads + 2 * kv_heads)
    rows = qkv.reshape(*qkv.shape[:2], heads + 2 * kv_heads, d)
    q, k, v = np.split(rows.swapaxes(1, 2), [heads, heads + kv_heads], 1)
    y = np_attention(q, k, v, mask, 0, is_causal, scale, True).swapaxes(1, 2)
    return y if five else y.reshape(*y.shape[:2], heads * d)


def heads(*shape, keys=None, dv=None):
    """q of the shape, and k and v to go with it."""
    *lead, queries, d = shape
    keys = queries if keys is None else keys
    return T(shape), T((*lead, keys, d)), T((*lead, keys, d if dv is None else dv))


SEEN = np.arange(15).reshape(3, 5) % 4 != 1  # each query sees some key, the first always key 0
UNSEEN = np.array([[True, False], [False, False]])
GROUPED = (T((2, 4, 3, 2)), T((2, 2, 5, 2)), T((2, 2, 5, 2)))

ATTENTION = [
    S(*heads(3, 4)), S(*heads(2, 3, 4)), S(*heads(2, 2, 3, 4), None, 0.0, True),
    S(*heads(2, 1, 3, 4, keys=5, dv=2)), S(*heads(1, 2, 3, 2, keys=5), None, 0.0, True),
    S(*heads(1, 2, 5, 2, keys=3), causal_bottom_right=True), S(*heads(1, 1, 1, 8)),
    S(*heads(1, 2, 3, 2, keys=5), causal_bottom_right=True), S(*heads(2, 3, 4), scale=0.3),
    S(*heads(1, 2, 3, 2, keys=5), SEEN), S(*heads(3, 2, keys=5), T((1, 5))),
    S(*heads(2, 2, 3, 2, keys=5), T((2, 1, 3, 5))), S(*heads(2, 2, 2, 3), UNSEEN),
    S(*heads(1, 1, 3, 2, keys=5), SEEN, 0.0, True), S(*GROUPED, enable_gqa=True),
    S(*GROUPED, T((2, 4, 1, 5)), enable_gqa=True), S(T((2, 4, 3, 2)), T((5, 2)), T((5, 3))),
    S(*heads(0, 2, 3, 4)), S(*heads(2, 3, 0)), S(*heads(2, 0, 3, keys=2)),
    S(*heads(1, 3, 4, keys=0)), S(*heads(1, 1, 130, 3, keys=40)),
    S(*heads(1, 1, 2, 3, keys=530)),
]  # fmt: skip
PACKED = [
    S(T((2, 3, 3, 2, 4))), S(T((1, 5, 3, 1, 2)), None, None, None, 0.0, True), S(T((2, 3, 24)), 2),
    S(T((2, 3, 16)), 4, 2, None, 0.0, True), S(T((1, 2, 3, 2, 3)), None, None, UNSEEN),
    S(T((2, 2, 12)), 2, None, T((2, 1, 1, 2))), S(T((2, 0, 3, 2, 4))), S(T((0, 3, 12)), 2),
]  # fmt: skip


def largest_value(q, k, v, *rest, **options):
    return 1 + 4 * np.abs(v).max(initial=0.0)


TOGETHER = "do not go together: expected [..., queries, d], [..., keys, d], [..., keys, dv]"

ATTENTIONS = [
    Op("scaled_dot_product_attention", ATTENTION, np_attention, bound="composite",
       magnitude=largest_value, errors=[
        Bad(lambda d: flow.scaled_dot_product_attention(ones(d, 2, 3), *[ones(d, 2, 4)] * 2),
            flow.ShapeError, "scaled_dot_product_attention(): query [2, 3], key [2, 4], value "
            "[2, 4] " + TOGETHER),
        Bad(lambda d: flow.scaled_dot_product_attention(*[ones(d, 2, 3)] * 3, ones(d, 3, 2)),
            flow.ShapeError, "scaled_dot_product_attention(): query [2, 3], key [2, 3], value "
            f"[2, 3], attn_mask [3, 2] {TOGETHER}, [..., queries, keys]"),
        Bad(lambda d: flow.scaled_dot_product_attention(
                *[ones(d, 2, 3)] * 3, ones(d, 2, 2, dtype="int64")), flow.DTypeError,
            "scaled_dot_product_attention(): query float32, key float32, value float32, attn_mask "
            "int64 do not go together: expected one floating dtype, for the mask float32 or bool, "
            "too"),
        Bad(lambda d: flow.scaled_dot_product_attention(*[ones(d, 2, 3)] * 3, dropout_p=1.5),
            ValueError, "scaled_dot_product_attention(): dropout_p is 1.5, but it must be in "
            "[0, 1]"),
        Bad(lambda d: flow.scaled_dot_product_attention(
                *[ones(d, 2, 3)] * 3, is_causal=True, causal_bottom_right=True), ValueError,
            "scaled_dot_product_attention(): is_causal and causal_bottom_right are two alignments, "
            "expected one of them")]),
    Op("attention_packed", PACKED, np_packed, bound="composite",
       magnitude=lambda qkv, *rest, **options: 1 + 4 * np.abs(qkv).max(initial=0.0), errors=[
        Bad(lambda d: flow.attention_packed(ones(d, 2, 3, 12)), flow.ShapeError,
            "attention_packed(): qkv has shape [2, 3, 12], expected [batch, tokens, 3, heads, d], "
            "or [batch, tokens, (heads + 2 kv_heads) d] with num_heads=None and "
            "num_kv_heads=None"),
        Bad(lambda d: flow.attention_packed(ones(d, 2, 3, 12), 3, 2), flow.ShapeError,
            "attention_packed(): qkv has shape [2, 3, 12], expected [batch, tokens, 3, heads, d], "
            "or [batch, tokens, (heads + 2 kv_heads) d] with num_heads=3 and num_kv_heads=2")]),
]  # fmt: skip
