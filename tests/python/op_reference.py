# SPDX-License-Identifier: Apache-2.0
"""What NumPy makes of the ops in float64, where it is more than one call."""

import math

import numpy as np


def _axes(dim):
    return None if dim is None or dim == () else dim


def np_sum(x, dim=None, keepdim=False):
    return np.sum(x, axis=_axes(dim), keepdims=keepdim)


def np_mean(x, dim=None, keepdim=False):
    with np.errstate(all="ignore"):
        count = np.sum(np.ones_like(x), axis=_axes(dim), keepdims=keepdim)
        return np_sum(x, dim, keepdim) / count


def np_softmax(x, dim=None, log=False):
    if dim is None:
        dim = 0 if x.ndim in (0, 1, 3) else 1
    if x.ndim == 0:
        return np_softmax(x.reshape(1), 0, log)[0]
    if x.size == 0:
        return x.copy()
    with np.errstate(all="ignore"):
        centred = x - x.max(axis=dim, keepdims=True)
        total = np.exp(centred).sum(axis=dim, keepdims=True)
        return centred - np.log(total) if log else np.exp(centred) / total


def np_log_softmax(x, dim=None):
    return np_softmax(x, dim, log=True)


def np_scale_mask_softmax(x, mask=None, scale=1.0, masked_row="nan", causal=False):
    scores = x * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        queries, keys = x.shape[-2:] if x.ndim > 1 else (1, x.shape[-1])
        seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
        scores = np.where(seen.reshape(*x.shape[-2:-1], keys), scores, -np.inf)
    y = np_softmax(scores, -1)
    if masked_row == "zero":
        y = np.where((scores == -np.inf).all(-1, keepdims=True), 0.0, y)
    return y


def _norm(x, normalized_shape, weight, bias, eps, centred):
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    axes = tuple(range(-count, 0))
    if x.size == 0:
        return x.copy()
    v = x - x.mean(axes, keepdims=True) if centred else x
    y = v / np.sqrt((v * v).mean(axes, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def np_layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, memory_efficient=False):
    return _norm(x, normalized_shape, weight, bias, eps, centred=True)


def np_rms_norm(x, normalized_shape, weight=None, eps=2.0**-52, memory_efficient=False):
    return _norm(x, normalized_shape, weight, None, eps, centred=False)


def np_add_layer_norm(x, residual, *args, **kwargs):
    return [np_layer_norm(x + residual, *args, **kwargs), x + residual]


def np_add_rms_norm(x, residual, *args, **kwargs):
    return [np_rms_norm(x + residual, *args, **kwargs), x + residual]


def np_linear(x, weight, bias=0.0):
    return x @ weight.T + bias


def np_nll(logp, target, weight=None, ignore_index=-100, reduction="mean"):
    if logp.ndim == 1:
        return np_nll(logp[None], target[None], weight, ignore_index, reduction).reshape(
            () if reduction != "none" else target.shape
        )
    weight = np.ones(logp.shape[1]) if weight is None else weight
    counted = target != ignore_index
    safe = np.where(counted, target, 0)
    w = np.where(counted, weight[safe] if weight.size else 0.0, 0.0)
    loss = -w * np.take_along_axis(logp, np.expand_dims(safe, 1), 1).squeeze(1)
    with np.errstate(all="ignore"):
        return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / w.sum()}[reduction]


def np_cross_entropy(
    x, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    axis = 0 if x.ndim == 1 else 1
    logp = np_log_softmax(x, axis)
    classes = x.shape[axis]
    w = np.ones(classes) if weight is None else weight
    along = [1] * x.ndim
    along[axis] = classes
    spread = 0.0  # not 0 times an infinite sum
    if label_smoothing > 0:
        spread = -(logp * w.reshape(along)).sum(axis) / classes * label_smoothing
    if target.dtype.kind == "f":
        t = (1 - label_smoothing) * target
        loss = -(logp * t * w.reshape(along)).sum(axis) + spread
        total = loss.size
    else:
        counted = target != ignore_index
        loss = (1 - label_smoothing) * np_nll(logp, target, weight, ignore_index, "none")
        loss = loss + spread * counted
        total = (w[np.where(counted, target, 0)] * counted).sum()
    with np.errstate(all="ignore"):
        return {"none": loss, "sum": loss.sum(), "mean": loss.sum() / total}[reduction]


def np_slice(x, dim, start=None, end=None, step=1):
    index = [slice(None)] * x.ndim
    index[dim] = slice(start, end, step)
    return x[tuple(index)]


def np_narrow(x, dim, start, length):
    start = start + x.shape[dim] if start < 0 else start
    return np_slice(x, dim, start, start + length)


def np_expand(x, size):
    kept = [x.shape[i - len(size)] if n == -1 else n for i, n in enumerate(size)]
    return np.broadcast_to(x, kept).copy()


def np_as_strided(x, size, stride, offset=0):
    flat = np.ascontiguousarray(x).reshape(-1)[offset:]
    steps = [x.itemsize * s for s in stride]
    return np.lib.stride_tricks.as_strided(flat, size, steps).copy()


def np_flatten(x, start_dim=0, end_dim=-1):
    if x.ndim == 0:
        return x.reshape(1)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    merged = int(np.prod(x.shape[first : last + 1]))
    return x.reshape(*x.shape[:first], merged, *x.shape[last + 1 :])


def np_squeeze(x, dim=None):
    if dim is None:
        return np.squeeze(x)
    dims = [d % x.ndim for d in ((dim,) if isinstance(dim, int) else dim)]
    return np.squeeze(x, axis=tuple(d for d in dims if x.shape[d] == 1))


def np_argmax(x, dim=None, keepdim=False):
    return np.argmax(x, axis=dim, keepdims=keepdim) if x.ndim else np.int64(0)


def np_max(x, dim, keepdim=False):
    if x.ndim == 0:
        return [x, np.int64(0)]
    return [np.max(x, axis=dim, keepdims=keepdim), np.argmax(x, axis=dim, keepdims=keepdim)]


def np_min(x, dim, keepdim=False):
    values, places = np_max(-x, dim, keepdim)
    return [-values, places]


def np_divide(a, b):
    with np.errstate(all="ignore"):
        return np.asarray(a, np.float64) / b


def np_any(x, dim=None, keepdim=False):
    return np.any(x, axis=() if dim == () else _axes(dim), keepdims=keepdim)


def np_all(x, dim=None, keepdim=False):
    return np.all(x, axis=() if dim == () else _axes(dim), keepdims=keepdim)


def np_var(x, dim=None, unbiased=True, keepdim=False, correction=None):
    less = correction if correction is not None else int(unbiased)
    return np.var(x, axis=_axes(dim), keepdims=keepdim, ddof=less)


def np_logsumexp(x, dim=None, keepdim=False):
    return np.log(np.exp(x).sum(axis=_axes(dim), keepdims=keepdim))


np_erf = np.vectorize(math.erf, otypes=[float])


def np_gelu(x, approximate="none"):
    x = x.astype(float)
    if approximate == "tanh":
        # (1 + tanh(u)) / 2, which would cancel, is 1 / (1 + exp(-2 u)).
        return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2))
