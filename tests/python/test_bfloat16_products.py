# SPDX-License-Identifier: Apache-2.0
"""Products of bfloat16 on the CPU: by its own instructions through oneDNN, or by way of float32.

Both ways are held to the same bounds, each in a process of its own, since the library is opened
once. 2^19 multiplications in all are the least that go to oneDNN (bfloat16_product.cpp in
primitive/cpu), and 4096 floats the most that a thread widens a product of a batch in (matmul.cpp).
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numerics import flow, host

# Just below 2^19, at it, above; vectors' neighbours, one term, odd sizes, two threads' rests.
SHAPES = [(64, 127, 64), (64, 128, 64), (65, 129, 67), (2, 513, 512), (513, 2, 512), (300, 1800, 1),
          (300, 900, 2), (300, 301, 7), (2, 3, 90001), (1000, 16, 33), (17, 1000, 33)]  # fmt: skip
BATCHES = [(7, 3, 5, 4), (40, 8, 8, 8), (64, 32, 32, 32), (9, 40, 36, 37), (65, 31, 33, 17),
           (3, 130, 70, 129), (1030, 8, 8, 8)]  # fmt: skip
LIBRARY = Path(flow.__file__ or "").parent / "lib" / "liboneflow_lite_onednn.so"


def drawn(shape, transposed, seed):
    """A matrix, or a batch of them, stored by rows or by columns, and the same in float64."""
    stored = (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
    t = flow.tensor(np.random.default_rng(seed).standard_normal(stored)).to(flow.bfloat16)
    t = t.transpose(-1, -2) if transposed else t
    return t, t.to(flow.float64).numpy()


def assert_near(found, want, k, rounded=0):
    """Within one rounding of the result and of `rounded`, and the sum's own error in float32."""
    bound = 2.0**-8 * (np.abs(want) + np.abs(rounded)) + 2.0**-22 * k * np.maximum(1, np.sqrt(k))
    assert found.dtype == flow.bfloat16
    assert (np.abs(host(found.to(flow.float64)) - want) <= bound).all()


@pytest.mark.parametrize("ways", ["nn", "nt", "tn", "tt"])
def test_products(threads, ways):
    for m, n, k in SHAPES:
        a, wide_a = drawn((m, k), ways[0] == "t", 0)
        b, wide_b = drawn((k, n), ways[1] == "t", 1)
        found = a @ b
        assert_near(found, wide_a @ wide_b, k)
        assert flow.equal(found, a @ b), (m, n, k)


@pytest.mark.parametrize("ways", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("shared", ["neither", "a", "b"])
def test_batches(threads, shared, ways):
    for batch, m, n, k in BATCHES:
        a, wide_a = drawn((1 if shared == "a" else batch, m, k), ways[0] == "t", 2)
        b, wide_b = drawn((1 if shared == "b" else batch, k, n), ways[1] == "t", 3)
        assert_near(a @ b, wide_a @ wide_b, k)


def test_a_bias_is_added_before_the_sum_is_rounded(threads):
    for m, n, k in SHAPES:
        x, wide_x = drawn((m, k), False, 4)
        w, wide_w = drawn((n, k), False, 5)
        bias, wide_bias = drawn((1, n), False, 6)
        assert_near(flow.nn.functional.linear(x, w, bias[0]), wide_x @ wide_w.T + wide_bias, k)


def test_what_was_there_is_added_once(threads):
    for m, n, k in SHAPES:
        a, wide_a = drawn((m, k), False, 7)
        b, wide_b = drawn((k, n), False, 8)
        c, wide_c = drawn((m, n), False, 9)
        product = wide_a @ wide_b
        assert_near(flow.addmm(c, a, b), product + wide_c, k, product)
        c.addmm_(a, b)
        assert_near(c, product + wide_c, k, product)


def test_rows_that_lie_apart(threads):
    for m, n, k in SHAPES:
        a, wide_a = drawn((m, k + 3), False, 10)
        b, wide_b = drawn((k, n + 5), False, 11)
        place = flow.full((m, n + 9), 7.0, dtype=flow.bfloat16)
        flow.matmul(a[:, :k], b[:, 5:], out=place[:, 4 : n + 4])
        assert_near(place[:, 4 : n + 4], wide_a[:, :k] @ wide_b[:, 5:], k)
        assert (host(place[:, :4].to(flow.float32)) == 7).all()
        assert (host(place[:, n + 4 :].to(flow.float32)) == 7).all()


def test_infinities_and_nan_come_through(threads):
    a, wide_a = drawn((96, 80), False, 12)
    a[3, 5], a[4, 6], a[5, 7], a[6, 8] = np.inf, -np.inf, np.nan, 3e38
    wide_a = a.to(flow.float64).numpy()
    b = flow.ones((80, 70), dtype=flow.bfloat16)
    found = host((a @ b).to(flow.float64))
    assert (found[3] == np.inf).all() and (found[4] == -np.inf).all() and np.isnan(found[5]).all()
    np.testing.assert_allclose(found[6], wide_a[6].sum(), rtol=2**-8)
    assert np.isfinite(found[np.r_[0:3, 6:96]]).all()


def another_process(*arguments, library):
    env = dict(os.environ, OFL_ONEDNN_LIBRARY=str(library), PYTHONFAULTHANDLER="1")
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True,
                          timeout=600)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_same_without_the_library_in_another_process():
    tests = ["-q", "-x", "-p", "no:cacheprovider", "-k", "2 and not another_process"]
    another_process("-m", "pytest", *tests, __file__, library="/nowhere/oneflow_lite_onednn.so")


# Products of ever new shapes, each with a kernel of its own, while address space is short.
LITTLE_ROOM = """
import resource, sys
import oneflow_lite as flow
flow.set_num_threads(2)
x = flow.randn(200, 200)
x.bfloat16() @ x.bfloat16(), x @ x
used = next(int(s.split()[1]) for s in open("/proc/self/status") if s.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]) << 10, resource.RLIM_INFINITY))
right = refused = 0
for n in range(100, 220):
    try:
        a, b = flow.randn(n, 96 + n).bfloat16(), flow.randn(96 + n, 200 - n // 2).bfloat16()
        found, want = (a @ b).float(), a.float() @ b.float()
        right += int((found - want).abs().max() <= want.abs().max() / 128)
    except flow.OutOfMemoryError:
        refused += 1
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
flow.randn(300, 300).bfloat16() @ flow.randn(300, 300).bfloat16()
print(right, refused)
"""


@pytest.mark.skipif(not LIBRARY.exists(), reason="this build has no oneDNN (libdnnl-dev)")
def test_little_address_space_in_another_process():
    for kilobytes, least in ((200, 0), (12_000, 0), (60_000, 120)):
        right, refused = another_process("-c", LITTLE_ROOM, str(kilobytes), library=LIBRARY).split()
        assert int(right) + int(refused) == 120 and int(right) >= least, kilobytes


@pytest.mark.parametrize("m, k, n", [(5, 7, 3), (64, 128, 64), (65, 300, 67), (130, 1, 4100)])
def test_a_sum_takes_the_product_in_float32(threads, m, k, n):
    a, wide_a = drawn((m, k), False, 0)
    b, wide_b = drawn((k, n), True, 1)
    product = wide_a @ wide_b
    x = flow.tensor(-product).to(flow.bfloat16)
    left = host(x.to(flow.float64))
    assert_near(flow.addmm(x, a, b), left + product, k)
    assert_near(flow.addmm(x, a, b, beta=0.5, alpha=2), left / 2 + 2 * product, 2 * k)
    operands = [t.detach().requires_grad_() for t in (x, a, b)]
    dy, wide_dy = drawn((m, n), False, 2)
    found = flow.autograd.grad(flow.addmm(*operands), operands, dy)
    assert found[0].equal(dy)
    assert_near(found[1], wide_dy @ wide_b.T, n)
    assert_near(found[2], wide_a.T @ wide_dy, m)
