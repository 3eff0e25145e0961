# SPDX-License-Identifier: Apache-2.0
"""An op that is right in every respect, and variants of it that are not."""

import numpy as np
from numerics import flow, tensor

RNG = np.random.default_rng(5)
X = tensor(RNG.standard_normal((3, 4)), "float64")
DISTINCT = tensor((RNG.permutation(12).reshape(3, 4) - 5.5) / 2, "float64")
INSIDE = X.tanh() * 0.4 + 0.5  # of 0 and 1
SIGNS = tensor([[1.0, -1, -1, 1], [1, 1, -1, -1], [-1, 1, -1, 1]], "float64")
# Every kind of loss: x, t, p, its name, a and b, at places where it is smooth.
LOSSES = [
    (X, DISTINCT, None, "mse", 0.0, 0.0),
    (X, DISTINCT, None, "l1", 0.0, 0.0),
    (X, DISTINCT, None, "smooth_l1", 0.7, 0.0),
    (X, DISTINCT, None, "huber", 0.7, 0.0),
    (X, INSIDE, None, "kl_div", 0.0, 0.0),
    (X, DISTINCT, None, "kl_div_log", 0.0, 0.0),
    (DISTINCT, INSIDE, None, "bce_with_logits", 0.0, 0.0),
    (DISTINCT, INSIDE, INSIDE[0], "bce_with_logits", 0.0, 0.0),
    (INSIDE, INSIDE.flip(0), None, "bce", 0.0, 0.0),
    (INSIDE, INSIDE.flip(0), None, "poisson_nll", 0.1, 0.0),
    (X, INSIDE, None, "poisson_nll_log", 0.0, 0.0),
    (X, DISTINCT, INSIDE, "gaussian_nll", 1e-3, 0.5),
    (X, SIGNS, None, "soft_margin", 0.0, 0.0),
    (X, SIGNS, None, "hinge_embedding", 0.8, 0.0),
    (X, DISTINCT, SIGNS, "margin_ranking", 0.3, 0.0),
    (DISTINCT, X, None, "prelu_weight", 0.0, 0.0),
]


def check(op, samples, **kwargs):
    return flow.check_op(op, samples, verbose=False, raise_exception=False, **kwargs)


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
