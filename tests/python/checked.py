# SPDX-License-Identifier: Apache-2.0
"""An op that is right in every respect, and variants of it that are not."""

import numpy as np
from numerics import flow, tensor

RNG = np.random.default_rng(5)
X = tensor(RNG.standard_normal((3, 4)), "float64")
DISTINCT = tensor((RNG.permutation(12).reshape(3, 4) - 5.5) / 2, "float64")


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
