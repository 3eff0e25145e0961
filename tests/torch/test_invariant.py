# SPDX-License-Identifier: Apache-2.0
"""invariant=True: a row's results depend, to the last bit, on that row alone."""

import copy

import oneflow_lite_torch as rows
import pytest
import torch
import torch.nn.functional as F
from conftest import assert_near

# Whole packs of 16 bytes in every dtype, in some, in none; and both sides of where kernels change
# hands: on CUDA 4 lanes to 16 packs a thread; 32 and 256 columns element by element; of others a
# warp, a block, a block's shared memory of four sizes, that of a cluster of three sizes, and again
# element by element; of the norms' gradients element by element up to 256 packs, then blocks and
# clusters of 2 to 16.
WIDTHS = (
    1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 100, 127, 128, 129, 192, 255, 256, 257,
    333, 384, 500, 511, 512, 513, 640, 768, 1000, 1023, 1024, 1025, 1280, 1536, 2000, 2048, 2049,
    2560, 3000, 3072, 4095, 4096, 4097, 5120, 6007, 7168, 8191, 8192, 8193, 10007, 12288, 16384,
    16385, 32000, 50257, 65536, 131073,
    259, 263, 515, 519, 1031, 1033, 2055, 2057, 4103, 4105, 4611, 6911, 6913, 9217, 12297, 18433,
    32769, 61441, 65537, 98303, 98305,
    1001, 2047, 2051, 3001, 6653, 13823, 14337, 27647, 34555, 55291, 107467, 110587,
    7681, 13373, 13379, 13439, 13443, 15367, 18239, 18247, 18307, 26879, 26887, 36607, 36617, 53501,
    53509, 55943, 72967, 107007, 107013, 107523, 111877, 114311, 146437, 224261, 228611, 457733,
    1919, 1923, 3839, 3847, 6047, 6053, 7679, 12091, 12103,
    135, 137, 271, 273, 527, 529, 783, 785, 1039, 1041, 1551, 1553, 2063, 2065, 3849, 3851, 4085,
    4101, 4119, 4121, 8163, 18415, 18417,
)  # fmt: skip
SOME = (1, 7, 32, 100, 257, 1000, 1024, 4096, 4097, 65536, 70001, 140000)
MOST_ROWS = 4096


def _of_rows(x, w, b, residual, target, dy):
    """What each function gives for the rows of x, with the gradients of what is x's: by name."""
    n = x.shape[-1]
    how = {"invariant": True}
    wide = w.float() if x.dtype.itemsize == 2 else w

    def loss(**more):
        logits = x.detach().clone().requires_grad_() if more else x.detach().requires_grad_()
        losses = rows.cross_entropy(logits * 1, target, reduction="none", **more, **how)
        return losses.detach(), torch.autograd.grad(losses, logits, dy[:, 0])[0]

    def of(function, *others):
        leaves = [t.detach().requires_grad_() for t in (x, *others)]
        y = function(*leaves)
        ys = y if isinstance(y, tuple) else (y,)
        return [t.detach() for t in ys] + list(torch.autograd.grad(ys, leaves, [dy] * len(ys)))

    mask = (torch.arange(n, device=x.device) * 7 % 5 != 0) | (torch.arange(n, device=x.device) == 0)
    return {
        "softmax": lambda: of(lambda x: rows.softmax(x, **how)),
        "log_softmax": lambda: of(lambda x: rows.log_softmax(x, **how)),
        "scale_mask_softmax": lambda: of(lambda x: rows.scale_mask_softmax(x, mask, 0.3, **how)),
        "layer_norm": lambda: of(lambda x: rows.layer_norm(x, n, w, b, **how)),
        "layer_norm of a wide weight": lambda: of(lambda x: rows.layer_norm(x, n, wide, **how)),
        "rms_norm": lambda: of(lambda x: rows.rms_norm(x, n, w, 1e-5, **how)),
        "add_layer_norm": lambda: of(
            lambda x, r: rows.add_layer_norm(x, r, n, w, b, **how), residual
        ),
        "add_rms_norm": lambda: of(lambda x, r: rows.add_rms_norm(x, r, n, w, **how), residual),
        "cross_entropy": loss,
        "cross_entropy in place": lambda: loss(inplace_backward=True),
        "smooth cross_entropy": lambda: loss(label_smoothing=0.1),
        "smooth cross_entropy in place": lambda: loss(inplace_backward=True, label_smoothing=0.1),
    }


NAMES = tuple(_of_rows(*[torch.zeros(1, 1)] * 6))
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bits(t):
    return t.contiguous().view(_BITS[t.dtype.itemsize])


def _sums_of_rows(name, x, w, b, residual, dy):
    """The gradients of weight and bias, by the norm of that name."""
    n, leaves = x.shape[-1], [t.detach().requires_grad_() for t in (w, b)]
    calls = {
        "layer_norm": lambda: rows.layer_norm(x, n, *leaves, invariant=True),
        "rms_norm": lambda: rows.rms_norm(x, n, leaves[0], 1e-5, invariant=True),
        "add_rms_norm": lambda: rows.add_rms_norm(x, residual, n, leaves[0], invariant=True)[0],
    }
    grads = torch.autograd.grad(calls[name](), leaves, dy, allow_unused=True)
    return [t for t in grads if t is not None]


def _parts(count):
    """(first, how many): alone, at either end, at odd places, as few and many."""
    parts = [(0, 1), (1, 1), (count - 1, 1), (1, 2), (3, 3), (2, 64), (5, 67), (1, 130), (7, 2000)]
    return sorted({(a, min(n, count - a)) for a, n in parts if 0 <= a < count})


@pytest.fixture
def threads():
    """More threads than the narrowest batches have rows."""
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def _check(name, cols, dtype, device, most_elements):
    count = max(3, min(MOST_ROWS, most_elements // cols))
    make = lambda *shape: torch.randn(*shape, device=device).to(dtype)  # noqa: E731
    x, residual, dy, w, b = *(make(count, cols) for _ in range(3)), make(cols), make(cols)
    target = torch.randint(0, cols, (count,), device=device)
    whole = _of_rows(x, w, b, residual, target, dy)[name]()
    for first, n in _parts(count):
        at = slice(first, first + n)
        part = _of_rows(x[at], w, b, residual[at], target[at], dy[at])[name]()
        for k, (ours, all_rows) in enumerate(zip(part, whole, strict=True)):
            same = torch.equal(_bits(ours), _bits(all_rows[at]))
            assert same, f"result {k} of rows {first} to {first + n} of {count} x {cols} {dtype}"


@pytest.mark.parametrize("name", NAMES)
def test_a_row_alone_and_among_others(name, dtype, device, threads):
    widths = WIDTHS if device == "cuda" else SOME
    for cols in widths:
        _check(name, cols, dtype, device, 1 << (24 if device == "cuda" else 18))


@pytest.mark.parametrize("name", ("layer_norm", "rms_norm", "add_rms_norm"))
def test_sums_over_rows_twice(name, dtype, device):
    """Weight and bias get the same bits from the same batch, and what the default gives them."""
    for cols in (33, 1001, 2047, 4097, 14337, 110587) if device == "cuda" else (33, 1001):
        x, residual, dy = (torch.randn(300, cols, device=device).to(dtype) for _ in range(3))
        w, b = (torch.randn(cols, device=device).to(dtype) for _ in range(2))
        once, twice = (_sums_of_rows(name, x, w, b, residual, dy) for _ in range(2))
        for sums, same in zip(once, twice, strict=True):
            assert torch.equal(_bits(sums), _bits(same))
        if name == "layer_norm":
            leaves = [t.clone().requires_grad_() for t in (w, b)]
            others = torch.autograd.grad(rows.layer_norm(x, cols, *leaves), leaves, dy)
            for ours, other in zip(once, others, strict=True):
                scale = 1 + other.abs().max().item()
                assert_near(ours, other, dtype, scale=scale, units=16)


def _moved(t, elements):
    """The same values, so many elements behind a multiple of 16 bytes."""
    room = torch.empty(elements + t.numel(), dtype=t.dtype, device=t.device)
    moved = room[elements:].view(t.shape).copy_(t)
    assert (moved.data_ptr() - elements * t.element_size()) % 16 == 0
    return moved


# Of float32 column by column up to 1024 columns, of 16 bits up to 2048; then a block, clusters of 2
# to 16, and by columns again; of float64 teams. There are more rows than blocks, so that a column's
# sum is rounded row by row.
@pytest.mark.parametrize("of_x", (False, True))
@pytest.mark.parametrize("name", ("layer_norm", "rms_norm"))
def test_sums_over_rows_wherever_they_begin(name, of_x, dtype, device):
    """Weight and bias, and x, get the same bits wherever x and dy begin within 16 bytes."""
    widths = (1001, 1025, 2051, 4097, 8191, 14337, 27647, 50257, 110587)
    wide = torch.float32 if dtype.itemsize == 2 else dtype  # 16 bits would hide most differences
    places = range(16 // dtype.itemsize)

    def sums(x, dy, w, b):
        leaves = [t.detach().requires_grad_() for t in (x, w, b)]
        leaves[0].requires_grad_(of_x)
        if name == "layer_norm":
            y = rows.layer_norm(leaves[0], x.shape[-1], *leaves[1:], invariant=True)
        else:
            del leaves[2]
            y = rows.rms_norm(leaves[0], x.shape[-1], leaves[1], 1e-5, invariant=True)
        return torch.autograd.grad(y, leaves if of_x else leaves[1:], dy)

    for cols in widths if device == "cuda" else (33, 1001):
        count = 1000 if cols < 10000 else 300
        x, dy = (torch.randn(count, cols, device=device).to(dtype) for _ in range(2))
        w, b = (torch.randn(cols, device=device).to(wide) for _ in range(2))
        first = sums(x, dy, w, b)
        for of_rows, of_dy in [(k, 0) for k in places] + [(3 * k, k) for k in places]:
            again = sums(_moved(x, of_rows), _moved(dy, of_dy), w, b)
            for ours, other in zip(again, first, strict=True):
                same = torch.equal(_bits(ours), _bits(other))
                assert same, f"{count} x {cols}: x {of_rows} elements further, dy {of_dy}"


@pytest.mark.parametrize("name", ("softmax", "layer_norm", "rms_norm"))
def test_4096_rows(name, device, threads):
    for cols in (16, 33, 96):
        _check(name, cols, torch.float32, device, MOST_ROWS * cols)


@pytest.mark.parametrize("cols", (96, 1001, 70001))
def test_the_number_of_threads_does_not_show(cols, dtype):
    x, dy = (torch.randn(3, cols).to(dtype) for _ in range(2))
    w, b, target = torch.randn(cols).to(dtype), torch.randn(cols).to(dtype), torch.tensor([0, 1, 2])
    before, found = torch.get_num_threads(), []
    for count in (1, 2, 7):
        torch.set_num_threads(count)
        calls = _of_rows(x, w, b, x, target, dy)
        leaf = w.clone().requires_grad_()
        y = rows.layer_norm(x, cols, leaf, b, invariant=True)
        found.append([_bits(t) for name in NAMES for t in calls[name]()])
        found[-1].append(_bits(torch.autograd.grad(y, leaf, dy)[0]))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, c) for a, c in zip(found[0], other, strict=True))


@pytest.mark.parametrize("cols", (33, 64, 1000, 4097))
def test_values_are_those_of_the_default(cols, dtype, device):
    x, dy = (torch.randn(50, cols, device=device).to(dtype) for _ in range(2))
    w, b = (torch.randn(cols, device=device).to(dtype) for _ in range(2))

    def outcome(function, **how):
        leaves = [t.clone().requires_grad_() for t in (x, w, b)]
        y = function(*leaves, **how)
        return [y, *torch.autograd.grad(y, leaves, dy, allow_unused=True)]

    functions = (
        lambda x, w, b, **how: rows.softmax(x, **how),
        lambda x, w, b, **how: rows.layer_norm(x, cols, w, b, **how),
        lambda x, w, b, **how: rows.rms_norm(x, cols, w, **how),
    )
    for function in functions:
        for ours, other in zip(outcome(function, invariant=True), outcome(function), strict=True):
            if other is not None:
                assert_near(ours, other, dtype, scale=1 + other.abs().max().item(), units=16)


@pytest.mark.parametrize("in_place", (False, True))
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_losses_are_those_of_the_default(in_place, smoothing, dtype, device):
    for cols in (33, 300, 1001, 2047, 4097, 8191, 20011, 50257) if device == "cuda" else (33, 1001):
        x, dy = torch.randn(20, cols, device=device).to(dtype), torch.randn(20, device=device)
        target = torch.randint(0, cols, (20,), device=device)
        target[3] = -100
        found = []
        for invariant in (True, False):
            leaf = x.clone().requires_grad_()
            loss = rows.cross_entropy(
                leaf * 1,
                target,
                reduction="none",
                label_smoothing=smoothing,
                inplace_backward=in_place,
                invariant=invariant,
            )
            found.append((loss.detach(), torch.autograd.grad(loss, leaf, dy.to(dtype))[0]))
        for ours, other in zip(*found, strict=True):
            assert_near(ours, other, dtype, scale=1 + other.abs().max().item(), units=16)


def test_another_dim(dtype, device):
    x = torch.randn(3, 70, 5, device=device).to(dtype)
    turned = rows.softmax(x.transpose(1, 2).contiguous(), invariant=True).transpose(1, 2)
    for dim in (1, -2):
        assert torch.equal(rows.softmax(x, dim, invariant=True), turned)
        alone = rows.softmax(x[1:2, :, 2:4], dim, invariant=True)
        assert torch.equal(alone, turned[1:2, :, 2:4])


def test_rows_that_lie_apart(dtype, device):
    packed = torch.randn(40, 3, 64, device=device).to(dtype)
    for name in ("softmax", "layer_norm", "rms_norm"):
        how = (64,) if name != "softmax" else ()
        function = getattr(rows, name)
        strided = function(packed[:, 1], *how, invariant=True)
        assert torch.equal(strided, function(packed[:, 1].contiguous(), *how, invariant=True))
        assert torch.equal(strided[7:8], function(packed[7:8, 1], *how, invariant=True))


# Of odd widths on CUDA: column by column up to 1088 columns, of 16 bits mostly up to 416; there a
# warp, of 2 to 8 packs a lane, to 2063; a block; shared memory of a block, and of a cluster;
# element by element.
MASKED = (
    50, 143, 145, 223, 225, 415, 417, 513, 521, 641, 769, 777, 1001, 1025, 1033, 1087, 1089, 1091,
    1281, 1289, 1537, 1545, 2047, 2063, 2065, 3073, 4097, 4099, 6145, 8191, 9215, 9217, 12287,
    12297, 16387, 33001, 50257, 100003, 140001, 460001, 930001,
)  # fmt: skip
MASKS = ("none", "causal", "bool", "bool of rows", "bool of keys, causal", "strided bool of rows",
         "additive", "additive of rows", "additive of rows, causal", "strided additive",
         "wide of rows", "negative scale")  # fmt: skip


@pytest.mark.parametrize("kind", MASKS)
def test_masks_of_every_kind(kind, dtype, device, threads):
    """A row alone and among others, its place among 16 bytes another; values are the default's."""
    for cols in MASKED if device == "cuda" else (50, 1001):
        count = max(9, min(MOST_ROWS, (1 << 22) // cols))
        if "causal" in kind:
            count = min(count, cols)  # each query sees a key
        x = torch.randn(count, cols, device=device).to(dtype)
        mask = torch.randn(count if "rows" in kind else 1, cols, device=device)
        mask = mask > -1 if "bool" in kind else mask if "wide" in kind else mask.to(dtype)
        if kind in ("none", "causal", "negative scale"):
            mask = None
        elif "strided" in kind:  # every other column of memory
            mask = torch.stack((mask, mask), -1)[..., 0]
        if kind.startswith("wide") and dtype.itemsize > 2:
            mask = mask.to(dtype)
        causal, scale = "causal" in kind, -0.3 if "negative" in kind else 0.3

        def call(at, x=x, mask=mask, causal=causal, scale=scale, invariant=True):
            seen = mask[at] if mask is not None and len(mask) > 1 else mask
            return rows.scale_mask_softmax(x[at], seen, scale, causal=causal, invariant=invariant)

        whole = call(slice(None))
        assert_near(whole, call(slice(None), invariant=False), dtype, scale=1, units=16)
        for first, n in _parts(count):
            at = slice(first, None if causal else first + n)  # the last queries see the last keys
            same = torch.equal(_bits(call(at)), _bits(whole[at]))
            assert same, f"rows {first} to {first + n} of {count} x {cols} {dtype}"


def test_masked_rows_wherever_they_begin(dtype, device):
    for cols in (143, 1001, 2047, 6145):
        x, mask = torch.randn(20, cols, device=device).to(dtype), torch.rand(20, cols) > 0.3
        mask = mask.to(device)
        for m in (mask, torch.randn(20, cols, device=device).to(dtype)):
            first = rows.scale_mask_softmax(x, m, 0.5, invariant=True)
            for k in range(16 // dtype.itemsize):
                for moved in (m, _moved(m, 3 * k + 1)):
                    y = rows.scale_mask_softmax(_moved(x, k), moved, 0.5, invariant=True)
                    assert torch.equal(_bits(y), _bits(first)), f"{cols} columns, {k} further"


def test_masks_of_matrices(dtype, device):
    x = torch.randn(6, 5, 40, device=device).to(dtype)
    mask = torch.rand(6, 1, 40, device=device) > 0.3
    for m in (mask, torch.randn(6, 5, 40, device=device).to(dtype)):
        whole = rows.scale_mask_softmax(x, m, 0.5, causal=True, invariant=True)
        for i in (0, 3):
            alone = rows.scale_mask_softmax(
                x[i : i + 1], m[i : i + 1], 0.5, causal=True, invariant=True
            )
            assert torch.equal(_bits(alone), _bits(whole[i : i + 1]))


def test_what_is_not_served_is_refused():
    x, target = torch.randn(4, 5), torch.randint(0, 5, (4,))
    calls = {
        "cross_entropy": lambda: rows.cross_entropy(x, target, torch.ones(5), invariant=True),
        "layer_norm": lambda: rows.layer_norm(x, 5, torch.ones(5).double(), invariant=True),
        "scale_mask_softmax": lambda: rows.scale_mask_softmax(
            x, torch.zeros(4, 5).double(), invariant=True
        ),
        "softmax": lambda: torch.func.vmap(lambda r: rows.softmax(r, invariant=True))(x),
    }
    for name, call in calls.items():
        with pytest.raises(
            (NotImplementedError, RuntimeError), match=rf"{name}\(\): invariant|dtype"
        ):
            call()
    assert rows.softmax(torch.empty(0, 5), invariant=True).shape == (0, 5)


@pytest.mark.parametrize("name", ("softmax", "layer_norm", "rms_norm", "cross_entropy"))
def test_compiled(name, device):
    x, w = torch.randn(9, 33, device=device), torch.randn(33, device=device)
    target = torch.randint(0, 33, (9,), device=device)

    def call(x, w):
        if name == "softmax":
            return rows.softmax(x, invariant=True)
        if name == "layer_norm":
            return rows.layer_norm(x, 33, w, invariant=True)
        if name == "rms_norm":
            return rows.rms_norm(x, 33, w, 1e-5, invariant=True)
        return rows.cross_entropy(x, target, reduction="none", invariant=True)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    found = []
    for function in (call, compiled):
        leaf = x.clone().requires_grad_()
        y = function(leaf, w)
        found.append((y, torch.autograd.grad(y.sum(), leaf)[0]))
    assert all(torch.equal(a, c) for a, c in zip(*found, strict=True))


@pytest.mark.parametrize(
    "call",
    (
        lambda x, w: torch.ops.oneflow_lite_torch.softmax,
        lambda x, w: torch.ops.oneflow_lite_torch.layer_norm,
        lambda x, w: torch.ops.oneflow_lite_torch.rms_norm,
    ),
)
def test_opcheck(call, device):
    x = torch.randn(4, 6, device=device, requires_grad=True)
    w = torch.randn(6, device=device, requires_grad=True)
    op = call(x, w)
    arguments = {
        "softmax": (x, -1, False, False, True),
        "layer_norm": (x, w, w, 1, 1e-5, True),
        "rms_norm": (x, w, 1, 1e-5, True),
    }[op.default._schema.name.split("::")[1]]
    torch.library.opcheck(op.default, arguments)


def test_modules(device):
    norm = torch.nn.LayerNorm(70001).to(device)
    model = torch.nn.Sequential(copy.deepcopy(norm), torch.nn.CrossEntropyLoss(reduction="none"))
    assert len(rows.apply_to(model, invariant=True)) == 2
    x = torch.randn(6, 70001, device=device)
    y = model[0](x)
    assert torch.equal(y[3:4], model[0](x[3:4]))
    assert torch.equal(y, rows.layer_norm(x, 70001, norm.weight, norm.bias, invariant=True))
    target = torch.randint(0, 70001, (6,), device=device)
    assert torch.equal(model[1](x, target)[2:3], model[1](x[2:3], target[2:3]))
    again = copy.deepcopy(model[0])
    assert torch.equal(again(x[1:2]), y[1:2])


def test_patched(device, threads):
    x = torch.randn(6, 70001, device=device)
    w = torch.randn(70001, device=device)
    rows.patch(device, invariant=True)
    try:
        for function in (
            lambda x: torch.softmax(x, -1),
            lambda x: F.log_softmax(x, -1),
            lambda x: F.layer_norm(x, x.shape[-1:], w),
        ):
            leaf = x.clone().requires_grad_()
            y = function(leaf)
            dx = torch.autograd.grad(y, leaf, x)[0]
            alone = x[4:5].clone().requires_grad_()
            assert torch.equal(function(alone), y[4:5])
            assert torch.equal(torch.autograd.grad(function(alone), alone, x[4:5])[0], dx[4:5])
        y = torch.softmax(x.t(), 0)  # not of the last dim: PyTorch's own
        assert_near(y, rows.softmax(x).t(), torch.float32)
        assert torch.equal(torch.softmax(x, -1), rows.softmax(x, invariant=True))
    finally:
        rows.unpatch()
    rows.patch(device)
    try:
        assert torch.equal(torch.softmax(x, -1), rows.softmax(x))
    finally:
        rows.unpatch()
