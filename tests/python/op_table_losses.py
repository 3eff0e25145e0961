# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: losses of each element, their sums and means. op_table.py says what a row
is; test_losses.py holds the values to tighter bounds.
"""

import numpy as np
from numerics import flow
from op_row import Bad, Op, S, T, ones

REDUCED = {
    "none": lambda y: y,
    "sum": np.sum,
    "mean": lambda y: np.sum(y) / max(y.size, 1) if y.size else np.float64(np.nan),
    "batchmean": lambda y: np.sum(y) / len(y),
}


def softplus(x):
    return np.logaddexp(0, x)


def near(d, beta):
    d = np.abs(d)
    return np.where(d < beta, d * d / 2 / beta, d - beta / 2)


# Of one element each, in float64.


def bce(x, t, weight=1.0):
    return -weight * (t * np.log(x) + (1 - t) * np.log1p(-x))


def bce_with_logits(x, t, weight=1.0):
    return weight * (t * softplus(-x) + (1 - t) * softplus(x))


def kl_div(x, t, log_target=False):
    return np.exp(t) * (t - x) if log_target else t * (np.log(t) - x)


def poisson(x, t, log_input=True, full=False, eps=1e-8):
    y = np.exp(x) - t * x if log_input else x - t * np.log(x + eps)
    if full:
        with np.errstate(all="ignore"):
            more = t * np.log(t) - t + np.log(2 * np.pi * t) / 2
        y = y + np.where(t > 1, more, 0)
    return y


def gaussian(x, t, var, full=False, eps=1e-6):
    var = np.maximum(var, eps)
    return (np.log(var) + (x - t) ** 2 / var + (np.log(2 * np.pi) if full else 0)) / 2


def hinge_embedding(x, t, margin=1.0):
    return np.where(t == 1, x, np.maximum(0, margin - x))


def margin_ranking(a, b, t, margin=0.0):
    return np.maximum(0, margin - t * (a - b))


SHAPES = [((7,), {}), ((3, 4), {"reduction": "none"}), ((2, 3), {"reduction": "sum"}),
          ((), {}), ((0, 3), {"reduction": "sum"}), ((0,), {}), ((130,), {})]  # fmt: skip


def samples(*domains, grads=None, **options):
    """Every shape and reduction; a domain "signs" is of labels, 1 and -1."""

    def operand(domain, shape):
        if domain == "signs":
            return np.array(np.random.default_rng(7).integers(0, 2, shape) * 2 - 1, np.int64)
        return T(shape, domain)

    return [S(*(operand(d, shape) for d in domains), **kwargs, **options)
            for shape, kwargs in SHAPES]  # fmt: skip


def broadcast(*domains, reduction="none", **options):
    shapes = [(3, 1), (4,), (2, 1, 1)]
    return [S(*map(T, shapes, domains), reduction=reduction, **options)]


def loss(name, given, of_one, errors=(), **kwargs):
    """A row; the function of one element takes the operands and all options but the reduction."""
    function = name.split("[")[0]

    def reference(*args, reduction="mean", **options):
        return REDUCED[reduction](np.asarray(of_one(*args, **options), float))

    def magnitude(*args, reduction="mean", **options):
        size = np.abs(np.asarray(of_one(*args, **options), float))
        return REDUCED[reduction](size) + 1

    count = len(given[0].args)
    refused = Bad(
        lambda d: getattr(flow, function)(*[ones(d, 2)] * count, reduction="all"), ValueError,
        f'{function}(): reduction is "all", but it must be "none", "sum" or "mean"',
    )  # fmt: skip
    return Op(name, given, reference, bound="composite", magnitude=magnitude,
              errors=[*errors, *([] if "[" in name else [refused])], **kwargs)  # fmt: skip


def shapes_differ(name, text, count=2):
    def call(d):
        getattr(flow, name)(ones(d, 2, 3), *[ones(d, 4)] * (count - 1))

    return [Bad(call, flow.ShapeError, f"{name}(): {text}")]


BROADCAST = "target has shape [4], input [2, 3]: they do not broadcast"
EQUAL = "target has shape [4], expected [2, 3]"

LOSSES = [
    loss("mse_loss", samples("normal", "normal") + broadcast("normal", "normal"),
         lambda x, t: (x - t) ** 2, shapes_differ("mse_loss", BROADCAST)),
    loss("l1_loss", samples("normal", "normal") + broadcast("normal", "normal"),
         lambda x, t: np.abs(x - t), shapes_differ("l1_loss", BROADCAST), twice=False),
    loss("smooth_l1_loss", samples("normal", "normal", beta=0.5) + broadcast("normal", "normal"),
         lambda x, t, beta=1.0: near(x - t, beta), shapes_differ("smooth_l1_loss", BROADCAST)),
    loss("huber_loss", samples("normal", "normal", delta=0.75) + broadcast("normal", "normal"),
         lambda x, t, delta=1.0: delta * near(x - t, delta),
         shapes_differ("huber_loss", BROADCAST)),
    loss("kl_div", samples("normal", "probability") + broadcast("normal", "probability") +
         [S(T((3, 4)), T((3, 4), "probability"), reduction="batchmean")],
         kl_div, shapes_differ("kl_div", BROADCAST)),
    loss("kl_div[logs]", samples("normal", "normal", log_target=True), kl_div),
    loss("binary_cross_entropy", samples("inside", "inside"), bce,
         shapes_differ("binary_cross_entropy", EQUAL)),
    loss("binary_cross_entropy[weight]", samples("inside", "inside", "positive"), bce),
    loss("binary_cross_entropy_with_logits", samples("normal", "probability"), bce_with_logits,
         shapes_differ("binary_cross_entropy_with_logits", EQUAL)),
    loss("binary_cross_entropy_with_logits[weight]",
         samples("normal", "probability", "positive"), bce_with_logits),
    loss("poisson_nll_loss", samples("normal", "positive") + broadcast("normal", "positive"),
         poisson, shapes_differ("poisson_nll_loss", BROADCAST)),
    loss("poisson_nll_loss[full]", samples("normal", "positive", full=True), poisson),
    loss("poisson_nll_loss[no logs]", samples("positive", "positive", log_input=False), poisson),
    loss("gaussian_nll_loss", samples("normal", "normal", "positive"), gaussian,
         shapes_differ("gaussian_nll_loss", BROADCAST, 3)),
    loss("gaussian_nll_loss[full]", samples("normal", "normal", "positive", full=True), gaussian),
    loss("soft_margin_loss", samples("normal", "signs"), lambda x, t: softplus(-t * x),
         shapes_differ("soft_margin_loss", BROADCAST)),
    loss("hinge_embedding_loss", samples("normal", "signs", margin=0.75), hinge_embedding,
         shapes_differ("hinge_embedding_loss", BROADCAST)),
    loss("margin_ranking_loss", samples("normal", "normal", "signs", margin=0.25),
         margin_ranking, shapes_differ(
             "margin_ranking_loss", "the shapes [2, 3] and [4] and [4] do not broadcast", 3)),
]  # fmt: skip
