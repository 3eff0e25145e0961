# SPDX-License-Identifier: Apache-2.0
"""Values of every function of the C row library on the GPU, against float64.

    python -m pytest tests/python/test_rows_library_values.py

Memory comes from the driver and is set to NaN before: what a kernel leaves unwritten shows.
"""

import numpy as np
import pytest
import rows_library
from rows_library import FLOATS, Gpu

pytestmark = pytest.mark.cuda

# Narrow, odd, whole packs, a block's, a cluster's, few wide rows (workspace).
SIZES = [(5, 1), (3, 17), (65, 128), (7, 1000), (33, 4096), (4, 4097), (2, 50257), (1, 262144)]
EPS = 1e-5

by_dtype = pytest.mark.parametrize("dtype", FLOATS)
by_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")


@pytest.fixture(scope="module")
def rows():
    return rows_library.load()


@pytest.fixture(scope="module")
def driver():
    return Gpu()


@pytest.fixture
def gpu(driver):
    yield driver
    driver.release()


class Case:
    """Operands of one size: values that are exact in the dtype, and where they lie on the GPU."""

    def __init__(self, rows, gpu, dtype, size):
        self.lib, self.gpu, self.float = rows, gpu, FLOATS[dtype]
        self.dtype = getattr(rows, f"OFL_{dtype.upper()}")
        self.rows, self.cols = size
        self.random = np.random.default_rng([*map(ord, dtype), *size])
        # Every other size lies one element behind a multiple of 16 bytes.
        self.offset = self.float.memory.itemsize if self.cols % 2 else 0
        self.shape = dict(dtype=self.dtype, rows=self.rows, cols=self.cols)

    def draw(self, shape, scale=1.0, of=None):
        """(values, address) of normal numbers of a dtype."""
        of = of or self.float
        elements = of.encode(self.random.normal(size=shape) * scale)
        return of.decode(elements), self.gpu.put(elements, self.offset if of is self.float else 0)

    def matrix(self, scale=1.0):
        return self.draw((self.rows, self.cols), scale)

    def strided(self, stride, scale=1.0):
        """Rows that lie `stride` elements apart."""
        values, address = self.draw((self.rows, stride), scale)
        return values[:, : self.cols], address

    def room(self, shape, of=None):
        of = of or self.float
        return self.gpu.empty(int(np.prod(shape)) * of.memory.itemsize + 16) + (
            self.offset if of is self.float else 0
        )

    def read(self, address, shape=None, of=None):
        of = of or self.float
        shape = (self.rows, self.cols) if shape is None else shape
        return of.decode(self.gpu.get(address, shape, of.memory))

    @property
    def statistic(self):
        return FLOATS["float64" if self.float.name == "float64" else "float32"]

    def with_workspace(self, op, args):
        """args with the workspace that its ..._workspace asks for, exactly."""
        size = self.lib.workspace_bytes(f"ofl_{op}_workspace", args)
        args.workspace = self.gpu.empty(size) if size else None
        args.workspace_bytes = size
        return args

    def near(self, found, exact, size=None, of=None, what=""):
        """Within the dtype's rounding of terms of so much size."""
        of = of or self.float
        size = np.abs(exact) if size is None else size
        least = 1e-30 if of.name != "float16" else 6e-8  # below that, numbers are subnormal
        allowed = of.tolerance() * np.maximum(size, np.abs(exact)) + least
        off = np.abs(found - exact)
        assert (off <= allowed).all(), f"{what}: off by {np.max(off / allowed):.3g} of the allowed"


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_soft(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def sum_of(a):
    return a.sum(-1, keepdims=True)


@by_dtype
@by_size
@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
def test_softmax(rows, gpu, dtype, size, log):
    c = Case(rows, gpu, dtype, size)
    name = "ofl_log_softmax" if log else "ofl_softmax"
    x, at = c.matrix(3)
    exact, y = (log_soft if log else soft)(x), c.room(x.shape)
    # log_softmax is a difference of terms as large as the row's range.
    terms = np.ptp(x, axis=-1, keepdims=True) + 1 if log else None
    rows.check(name, None, c.dtype, *size, at, y)
    plain = gpu.get(y, size, c.float.memory).tobytes()
    c.near(c.read(y), exact, terms, what="plain")
    args = rows.args("softmax", **c.shape, log=log, x=at, y=c.room(x.shape))
    rows.check("ofl_softmax_with", None, c.with_workspace("softmax", args))
    c.near(c.read(args.y), exact, terms, what="with workspace")
    if not args.workspace:
        assert gpu.get(args.y, size, c.float.memory).tobytes() == plain
    x, at = c.strided(c.cols + 3, 3)
    args = rows.args("softmax", **c.shape, log=log, x=at, x_stride=c.cols + 3, y=c.room(x.shape))
    rows.check("ofl_softmax_with", None, args)
    c.near(c.read(args.y), (log_soft if log else soft)(x), terms, what="strided")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@by_size
def test_softmax_to_float32(rows, gpu, dtype, size):
    c, single = Case(rows, gpu, dtype, size), FLOATS["float32"]
    x, at = c.matrix(3)
    args = rows.args(
        "softmax", **c.shape, y_dtype=rows.OFL_FLOAT32, x=at, y=c.room(x.shape, single)
    )
    rows.check("ofl_softmax_with", None, c.with_workspace("softmax", args))
    c.near(c.read(args.y, of=single), soft(x), of=single)


@by_dtype
@by_size
@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
def test_softmax_backward(rows, gpu, dtype, size, log):
    c = Case(rows, gpu, dtype, size)
    name = "ofl_log_softmax_backward" if log else "ofl_softmax_backward"

    def exact(y, dy):
        if log:
            return dy - np.exp(y) * sum_of(dy), np.abs(dy) + np.exp(y) * sum_of(np.abs(dy))
        return y * (dy - sum_of(y * dy)), np.abs(y) * (np.abs(dy) + sum_of(np.abs(y * dy)))

    elements = c.float.encode((log_soft if log else soft)(c.random.normal(size=size)))
    y, y_at = c.float.decode(elements), gpu.put(elements, c.offset)
    (dy, dy_at), dx = c.matrix(), c.room(size)
    rows.check(name, None, c.dtype, *size, y_at, dy_at, dx)
    c.near(c.read(dx), *exact(y, dy), what="plain")
    dy, dy_at = c.strided(2 * c.cols)
    args = rows.args("softmax_backward", **c.shape, log=log, y=y_at, dy=dy_at,
                     dy_stride=2 * c.cols, dx=c.room(size))  # fmt: skip
    rows.check("ofl_softmax_backward_with", None, c.with_workspace("softmax_backward", args))
    c.near(c.read(args.dx), *exact(y, dy), what="strided dy, workspace")


@by_dtype
@pytest.mark.parametrize("axis", [(2, 5, 3), (3, 300, 17), (1, 4096, 8), (2, 1000, 64)])
def test_softmax_over_the_middle_axis(rows, gpu, dtype, axis):
    outer, cols, inner = axis
    c = Case(rows, gpu, dtype, (outer * inner, cols))
    x, at = c.draw(axis)
    exact = np.moveaxis(soft(np.moveaxis(x, 1, -1)), -1, 1)
    args = rows.args("softmax", **c.shape, inner=inner, x=at, y=c.room(axis))
    rows.check("ofl_softmax_with", None, c.with_workspace("softmax", args))
    c.near(c.read(args.y, axis), exact)
    y = c.read(args.y, axis)
    dy, dy_at = c.draw(axis)
    product = (y * dy).sum(1, keepdims=True)
    size = np.abs(y) * (np.abs(dy) + np.abs(y * dy).sum(1, keepdims=True))
    back = rows.args("softmax_backward", **c.shape, inner=inner, y=args.y, dy=dy_at,
                     dx=c.room(axis))  # fmt: skip
    rows.check("ofl_softmax_backward_with", None, c.with_workspace("softmax_backward", back))
    c.near(c.read(back.dx, axis), y * (dy - product), size)


def normalise(s, centred):
    mean = s.mean(-1, keepdims=True) if centred else 0.0
    rstd = 1 / np.sqrt(((s - mean) ** 2).mean(-1, keepdims=True) + EPS)
    return (s - mean) * rstd, mean, rstd


by_norm = pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])


@by_dtype
@by_size
@by_norm
@pytest.mark.parametrize("wide_weight", [False, True], ids=["weight of dtype", "float32 weight"])
def test_norm(rows, gpu, dtype, size, norm, wide_weight):
    if wide_weight and dtype in ("float32", "float64"):
        pytest.skip("weights of float32 are for the 16-bit dtypes")
    c, centred = Case(rows, gpu, dtype, size), norm == "layer_norm"
    of_weight = FLOATS["float32"] if wide_weight else c.float
    weight, weight_at = c.draw(c.cols, of=of_weight)
    bias, bias_at = c.draw(c.cols, of=of_weight) if centred else (0.0, None)
    x, at = c.strided(c.cols + 8)
    args = rows.args(
        "norm", **c.shape, x_stride=c.cols + 8, eps=EPS, x=at, weight=weight_at, bias=bias_at,
        weight_dtype=rows.OFL_FLOAT32 if wide_weight else 0, y=c.room(size),
        mean=c.room(c.rows, c.statistic) if centred else None, rstd=c.room(c.rows, c.statistic),
    )  # fmt: skip
    rows.check(f"ofl_{norm}_with", None, c.with_workspace(norm, args))
    x_hat, mean, rstd = normalise(x, centred)
    terms = (np.abs(x_hat) + 1) * np.abs(weight) + np.abs(bias)
    c.near(c.read(args.y), x_hat * weight + bias, terms, what="y")
    found = c.read(args.rstd, (c.rows, 1), c.statistic)
    c.near(found, rstd, of=c.statistic, what="rstd")
    if centred:
        found = c.read(args.mean, (c.rows, 1), c.statistic)
        c.near(found, mean, np.abs(x).mean(-1, keepdims=True), c.statistic, "mean")
    if wide_weight:
        return
    x, at = c.matrix()
    y = c.room(size)
    biases = [bias_at] if centred else []
    rows.check(f"ofl_{norm}", None, c.dtype, *size, EPS, at, weight_at, *biases, y)
    x_hat = normalise(x, centred)[0]
    terms = (np.abs(x_hat) + 1) * np.abs(weight) + np.abs(bias)
    c.near(c.read(y), x_hat * weight + bias, terms, what="plain")


@by_dtype
@by_size
@by_norm
def test_norm_of_a_sum(rows, gpu, dtype, size, norm):
    c, centred = Case(rows, gpu, dtype, size), norm == "layer_norm"
    (x, at), (residual, residual_at) = c.matrix(), c.matrix()
    args = rows.args("norm", **c.shape, eps=EPS, x=at, residual=residual_at, y=c.room(size),
                     sum=c.room(size))  # fmt: skip
    rows.check(f"ofl_{norm}_with", None, c.with_workspace(norm, args))
    total = c.read(args.sum)
    c.near(total, x + residual, what="sum")
    x_hat = normalise(total, centred)[0]
    c.near(c.read(args.y), x_hat, np.abs(x_hat) + 1, what="y")


@by_dtype
@by_size
@by_norm
@pytest.mark.parametrize("efficient", [False, True], ids=["from x", "from y"])
def test_norm_backward(rows, gpu, dtype, size, norm, efficient):
    c, centred = Case(rows, gpu, dtype, size), norm == "layer_norm"
    weight = c.float.decode(c.float.encode(c.random.uniform(0.5, 2, c.cols)))
    weight_at = gpu.put(c.float.encode(weight), c.offset)
    bias, bias_at = c.draw(c.cols) if centred else (np.zeros(c.cols), None)
    x, at = c.matrix()
    x_hat, mean, rstd = normalise(x, centred)
    if efficient:  # what the rounded output says of x_hat
        y = c.float.encode(x_hat * weight + bias)
        at, x_hat = gpu.put(y, c.offset), (c.float.decode(y) - bias) / weight
    statistic = c.statistic
    (dy, dy_at), (dsum, dsum_at) = c.matrix(), c.matrix()
    args = rows.args(
        f"{'norm'}_backward", **c.shape, dy=dy_at, weight=weight_at, bias=bias_at, dsum=dsum_at,
        rstd=gpu.put(statistic.encode(rstd)), dx=c.room(size), dweight=c.room(c.cols),
    )  # fmt: skip
    if centred:
        args.mean, args.dbias = gpu.put(statistic.encode(mean)), c.room(c.cols)
    setattr(args, "y" if efficient else "x", at)
    rows.check(f"ofl_{norm}_backward_with", None, c.with_workspace(f"{norm}_backward", args))
    g = dy * weight
    shared = x_hat * (g * x_hat).mean(-1, keepdims=True)
    terms = np.abs(g) + np.abs(x_hat) * np.abs(g * x_hat).mean(-1, keepdims=True)
    if centred:
        shared = shared + g.mean(-1, keepdims=True)
        terms = terms + np.abs(g).mean(-1, keepdims=True)
    off = 1 if centred else 0  # x - mean is rounded to the spacing of x
    c.near(c.read(args.dx), rstd * (g - shared) + dsum, rstd * terms * (1 + off) + np.abs(dsum),
           what="dx")  # fmt: skip
    c.near(c.read(args.dweight, c.cols), (dy * x_hat).sum(0),
           (np.abs(dy) * (np.abs(x_hat) + off)).sum(0), what="dweight")  # fmt: skip
    if centred:
        c.near(c.read(args.dbias, c.cols), dy.sum(0), np.abs(dy).sum(0), what="dbias")


@by_norm
def test_norm_of_nothing(rows, gpu, norm):
    """Gradients of no rows are 0, statistics of no columns NaN."""
    c = Case(rows, gpu, "float16", (0, 6))
    args = rows.args("norm_backward", **c.shape, dweight=gpu.put(np.ones(6, np.float16)))
    rows.check(f"ofl_{norm}_backward_with", None, args)
    assert (gpu.get(args.dweight, 6, np.float16) == 0).all()
    rstd = gpu.put(np.ones(3, np.float32))
    rows.check(f"ofl_{norm}_with", None, rows.args("norm", dtype=1, rows=3, cols=0, rstd=rstd))
    assert np.isnan(gpu.get(rstd, 3, np.float32)).all()


def test_a_norms_backward_needs_its_workspace(rows, gpu):
    c = Case(rows, gpu, "float32", (64, 512))
    at = c.room((64, 512))
    args = rows.args("norm_backward", **c.shape, dy=at, x=at, rstd=c.room(64), dx=at,
                     dweight=c.room(512))  # fmt: skip
    size = rows.workspace_bytes("ofl_rms_norm_backward_workspace", args)
    assert size > 0
    assert rows.call("ofl_rms_norm_backward_with", None, args) == rows.OFL_WORKSPACE
    assert f"{size} bytes of workspace are needed, 0 were given" in rows.message()
    args.workspace, args.workspace_bytes = gpu.empty(size + 8) + 8, size
    assert rows.call("ofl_rms_norm_backward_with", None, args) == rows.OFL_MISALIGNED
    args.workspace, args.workspace_bytes = gpu.empty(size), size - 1
    assert rows.call("ofl_rms_norm_backward_with", None, args) == rows.OFL_WORKSPACE


@by_dtype
@by_size
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(rows, gpu, dtype, size, smoothing):
    c, statistic = Case(rows, gpu, dtype, size), FLOATS[dtype]
    statistic = c.statistic
    n, classes = size
    shape = dict(dtype=c.dtype, rows=n, classes=classes)
    x, at = c.matrix(3)
    target = c.random.integers(0, classes, n)
    ignored = np.zeros(n, bool)
    if n > 2:
        target[1], ignored[1] = -7, True
    target_at = gpu.put(target.astype(np.int64))
    logs, here = log_soft(x), np.arange(n)
    picked = logs[here, np.where(ignored, 0, target)]
    loss = np.where(ignored, 0, -(1 - smoothing) * picked - smoothing * logs.mean(-1))
    terms = np.ptp(x, axis=-1) + 1 + np.abs(loss)
    options = dict(shape, has_ignore_index=1, ignore_index=-7, smoothing=smoothing,
                   target=target_at)  # fmt: skip
    args = rows.args("cross_entropy", **options, x=at, loss=c.room(n, statistic),
                     stats=c.room(2 * n, statistic))  # fmt: skip
    rows.check("ofl_cross_entropy_with", None, c.with_workspace("cross_entropy", args))
    c.near(c.read(args.loss, n, statistic), loss, terms, statistic, "loss")

    dloss, dloss_at = c.draw(n, of=statistic)
    hot = np.zeros(size)
    hot[here[~ignored], target[~ignored]] = 1
    gradient = np.exp(logs) - (1 - smoothing) * hot - smoothing / classes
    gradient[ignored] = 0
    dx = c.room(size)
    back = rows.args("cross_entropy_backward", **options, x=at, stats=args.stats, dloss=dloss_at,
                     dloss_stride=1, dx=dx)  # fmt: skip
    rows.check("ofl_cross_entropy_backward_with", None, back)
    near = (np.exp(logs) + hot + smoothing / classes) * 4  # the terms and exp's own error
    c.near(c.read(dx), gradient * dloss[:, None], near * np.abs(dloss[:, None]), what="dx")

    scale, scale_at = c.draw(1, of=statistic)
    place = rows.args("cross_entropy_in_place", **options, x=at, scale=scale_at,
                      loss=c.room(n, statistic))  # fmt: skip
    rows.check("ofl_cross_entropy_in_place_with", None,
               c.with_workspace("cross_entropy_in_place", place))  # fmt: skip
    c.near(c.read(place.loss, n, statistic), loss * scale, terms * abs(scale), statistic, "loss")
    c.near(c.read(at), gradient * scale, near * abs(scale), what="x in place")


@by_dtype
def test_cross_entropy_in_one_line_and_its_means(rows, gpu, dtype):
    c = Case(rows, gpu, dtype, (40, 300))
    statistic = c.statistic
    x, at = c.matrix()
    target = c.random.integers(0, 300, 40)
    target[::9] = -100  # the default
    target_at = gpu.put(target.astype(np.int64))
    loss, stats = c.room(40, statistic), c.room(80, statistic)
    rows.check("ofl_cross_entropy", None, c.dtype, 40, 300, at, target_at, loss, stats)
    counts = target != -100
    exact = np.where(counts, -log_soft(x)[np.arange(40), np.where(counts, target, 0)], 0)
    c.near(c.read(loss, 40, statistic), exact, 9, statistic)
    weight, value, unit = c.room(1, statistic), c.room(1), c.room(1, statistic)
    rows.check("ofl_mean_weight", None, c.dtype, 40, -100, target_at, weight)
    c.near(c.read(weight, 1, statistic), 1 / counts.sum(), of=statistic)
    rows.check("ofl_reduce_loss", None, c.dtype, 40, -100, loss, target_at, value, weight)
    c.near(c.read(value, 1), exact.sum() / counts.sum(), 9, what="mean")
    rows.check("ofl_reduce_loss", None, c.dtype, 40, -100, loss, None, value, unit)
    c.near(c.read(value, 1), exact.sum(), 9 * 40, what="sum")
    assert c.read(unit, 1, statistic) == 1
    factor, factor_at = c.draw(40, of=statistic)
    rows.check("ofl_scale_rows", None, c.dtype, 40, 300, factor_at, 1, at)
    c.near(c.read(at), x * factor[:, None], what="scale_rows")


MASKS = ["none", "bool", "additive", "wide", "broadcast", "causal"]


@by_dtype
@pytest.mark.parametrize("size", [(2, 3, 4, 40), (2, 2, 33, 128), (1, 2, 5, 1001), (1, 2, 8, 4096)])
@pytest.mark.parametrize("kind", MASKS)
def test_scale_mask_softmax(rows, gpu, dtype, size, kind):
    batch, heads, queries, cols = size
    c = Case(rows, gpu, dtype, (batch * heads * queries, cols))
    if kind == "wide" and dtype not in ("float16", "bfloat16"):
        pytest.skip("masks of float32 beside a 16-bit dtype")
    scale = 0.375
    x, at = c.matrix(2)
    scores = (x * scale).reshape(size)
    args = rows.args("scale_mask_softmax", **c.shape, queries=queries, scale=scale, x=at,
                     y=c.room((c.rows, cols)))  # fmt: skip
    if kind in ("bool", "broadcast"):
        keep = (
            c.random.random((c.rows, cols) if kind == "bool" else (batch, 1, queries, cols)) > 0.3
        )
        keep[..., 0] = True
        scores = np.where(keep.reshape(size if kind == "bool" else keep.shape), scores, -np.inf)
        args.mask, args.mask_dtype = gpu.put(keep), rows.OFL_BOOL
        if kind == "broadcast":  # over heads
            args.mask_dims[:] = (batch, heads, queries)
            args.mask_strides[:] = (queries * cols, 0, cols)
            args.mask_col_stride = 1
    elif kind in ("additive", "wide"):
        of = FLOATS["float32"] if kind == "wide" else c.float
        mask, args.mask = c.draw((c.rows, cols), of=of)
        args.mask_dtype = rows.OFL_FLOAT32 if kind == "wide" else c.dtype
        scores = scores + mask.reshape(size)
    elif kind == "causal":
        args.causal = 1
        seen = np.arange(cols)[None, :] <= cols - queries + np.arange(queries)[:, None]
        scores = np.where(seen, scores, -np.inf)
    rows.check("ofl_scale_mask_softmax_with", None, c.with_workspace("scale_mask_softmax", args))
    exact = soft(scores).reshape(c.rows, cols)
    c.near(c.read(args.y), exact, exact * 4, what="y")

    y = c.read(args.y)
    dy, dy_at = c.matrix()
    back = rows.args("scale_mask_softmax_backward", **c.shape, queries=queries, scale=scale,
                     causal=args.causal, y=args.y, dy=dy_at, dx=c.room((c.rows, cols)))  # fmt: skip
    rows.check("ofl_scale_mask_softmax_backward_with", None,
               c.with_workspace("scale_mask_softmax_backward", back))  # fmt: skip
    size = np.abs(y) * (np.abs(dy) + sum_of(np.abs(y * dy)))
    c.near(c.read(back.dx), scale * y * (dy - sum_of(y * dy)), scale * size, what="dx")


def test_rows_of_nothing_but_minus_infinity(rows, gpu):
    c = Case(rows, gpu, "float32", (2, 64))
    _, at = c.matrix()
    mask = gpu.put(np.array([[False] * 64, [True] * 64]))
    for zero in (False, True):
        args = rows.args("scale_mask_softmax", **c.shape, scale=1, x=at, mask=mask,
                         mask_dtype=rows.OFL_BOOL, zero_masked_rows=zero,
                         y=c.room((2, 64)))  # fmt: skip
        rows.check("ofl_scale_mask_softmax_with", None, args)
        y = c.read(args.y)
        assert (y[0] == 0).all() if zero else np.isnan(y[0]).all()
        assert abs(y[1].sum() - 1) < 1e-5
