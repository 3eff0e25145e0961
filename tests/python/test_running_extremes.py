# SPDX-License-Identifier: Apache-2.0
"""cummax and cummin: values, the place of the last of equal elements, NaN, gradients.

On the CPU 8 elements of a row are gone through, then whole vectors of 2 to 64 elements are passed
over that do not reach the extreme so far.
"""

import numpy as np
import pytest
from numerics import NUMERIC, flow, host, tensor

NAN = float("nan")


def np_running(x, axis, beats):
    """One element at a time."""
    x = np.moveaxis(x, axis, -1)
    values, places = x.copy(), np.zeros(x.shape, np.int64)
    for i in range(1, x.shape[-1]):
        new, old = x[..., i], values[..., i - 1]
        wins = (beats(new, old) & (old == old)) | (new != new)
        values[..., i] = np.where(wins, new, old)
        places[..., i] = np.where(wins, i, places[..., i - 1])
    return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)


@pytest.mark.parametrize("dtype", NUMERIC)
@pytest.mark.parametrize(
    ("name", "beats"), [("cummax", np.greater_equal), ("cummin", np.less_equal)]
)
def test_values_and_places(name, beats, dtype, device):
    rng = np.random.default_rng(1)
    for shape, dim in (((9,), 0), ((3, 17), 1), ((5, 2, 4), 0), ((5, 2, 4), -2), ((0, 3), 1),
                       ((3, 0), 1), ((1,), 0)):  # fmt: skip
        x = tensor(rng.integers(0, 5, shape), dtype, device)
        values, places = getattr(x, name)(dim)
        want, at = np_running(host(x), dim, beats)
        assert values.dtype is x.dtype and places.dtype is flow.int64
        np.testing.assert_array_equal(host(values), want)
        np.testing.assert_array_equal(host(places), at)


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_nan_stays(name, device):
    x = tensor([1.0, NAN, 5.0, NAN, -1.0], "float32", device)
    values, places = getattr(flow, name)(x, 0)
    assert host(places).tolist() == [0, 1, 1, 3, 3]
    assert np.isnan(host(values))[1:].all() and values[0].item() == 1


def rows_of(n, rng):
    """Rows in which new extremes are rare, as often as can be, in pairs, and beside NaN."""
    rise = np.arange(n, dtype=np.float64) % 100
    return np.stack([
        rng.integers(0, 100, n), np.sort(rise), np.sort(rise)[::-1], rise // 9, np.zeros(n),
        np.where(np.arange(n) % 37 == 5, NAN, rise), np.where(np.arange(n) == 0, NAN, rise),
        np.where(np.arange(n) == n - 1, np.inf, -rise), np.where(np.arange(n) % 2, 0.0, -0.0),
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "int8", "uint8",
                                   "int64", "bool"])  # fmt: skip
def test_rows_of_every_length(dtype, device):
    rng = np.random.default_rng(3)
    for n in (*range(1, 43), 63, 64, 65, 71, 72, 73, 129, 137, 300):
        values = rows_of(n, rng)
        if dtype not in ("float32", "bfloat16", "float16", "float64"):
            values = np.nan_to_num(values, nan=7.0, posinf=99.0, neginf=0.0) % 100
        x = tensor(values, dtype, device)
        for name, beats in (("cummax", np.greater_equal), ("cummin", np.less_equal)):
            got, places = getattr(x, name)(1)
            want, at = np_running(host(x), 1, beats)
            np.testing.assert_array_equal(host(places), at)
            np.testing.assert_array_equal(host(got), want)
            if device == "cpu":  # the last of equal zeros
                zero = want == 0
                np.testing.assert_array_equal(np.signbit(host(got))[zero], np.signbit(want)[zero])


def test_gradients_and_numbers():
    x = tensor(np.random.default_rng(2).permutation(12).reshape(3, 4), "float64").requires_grad_()
    for dim in (0, 1):
        assert flow.autograd.gradcheck(lambda t, d=dim: flow.cummax(t, d)[0], [x])
        assert flow.autograd.gradcheck(lambda t, d=dim: flow.cummin(t, d)[0], [x])
    value, place = flow.cummax(flow.tensor(3.0), 0)
    assert value.item() == 3 and place.item() == 0
    with pytest.raises(IndexError, match=r"cummin\(\): dim 2"):
        x.cummin(2)
