# SPDX-License-Identifier: Apache-2.0
"""The bench: peers that are absent are named, those that are there are timed."""

import subprocess
import sys

import pytest
import torch
from oneflow_lite_torch import _bench_invariant, bench
from oneflow_lite_torch import _bench_peers as peers


def test_an_absent_peer_is_named(monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'some_peer'")

    monkeypatch.setattr(peers, "PEERS", {"some": missing, "there": lambda: {"softmax": len}})
    found, absent = peers.find()
    assert found == {"there": {"softmax": len}}
    assert absent == ["some is absent: ModuleNotFoundError: No module named 'some_peer'"]


@pytest.mark.parametrize("backward", [False, True])
def test_a_line_has_time_and_rate(backward):
    line, us = bench._line(
        "softmax",
        "eager",
        bench.EAGER["softmax"],
        (8, 64),
        torch.float32,
        "cpu",
        backward,
        copy_gbs=1.0,
    )
    assert us > 0
    moved = (5 if backward else 2) * 8 * 64 * 4
    assert f"{us:9.1f} us {moved / us / 1e3:7.0f} GB/s" in line


def test_the_least_share_of_oneflow_lite_is_named():
    cases = {
        ("softmax", (64, 4096), torch.float32, False): 1.01,
        ("rms_norm", (16384, 1000), torch.bfloat16, True): 0.97,
        ("layer_norm", (4096, 8192), torch.float32, False): 0.981,
    }
    assert bench.beside_oneflow_lite(cases) == (
        "share of oneflow_lite's speed: at least 0.970 (rms_norm forward+backward 16384x1000 "
        "bfloat16); below 0.98 in 1 of 3 cases"
    )
    assert "absent" in bench.beside_oneflow_lite({})


def test_all_cases_are_printed(monkeypatch, capsys):
    """Each function beside a peer that fails: its line says why, and the others are printed."""

    def fails(x, w, b, t):
        raise ValueError("not for such rows")

    monkeypatch.setattr(peers, "find", lambda: ({"some": {"softmax": fails}}, ["other is absent"]))
    once = lambda call, *_, **__: [call()] and 1.0  # noqa: E731
    for timer in ("host_us", "kernels_us", "device_us", "first_ms"):
        monkeypatch.setattr(bench, timer, once)
    bench.kernels("cpu", compile_too=False)
    text = capsys.readouterr().out
    assert "other is absent" in text and "softmax some: ValueError: not for such rows" in text
    for name in bench.OURS:
        assert text.count(f"{name:14} forward ") == 2  # ours and eager


def test_the_price_of_invariant_rows(capsys):
    """Every function in both ways and at both kinds of width, and the worst of each."""
    times = iter(range(1, 1000))

    def timer(call, device):
        call()
        return float(next(times))

    _bench_invariant.run("cpu", bench._tensors, timer)
    lines = capsys.readouterr().out.splitlines()
    cases = 2 * len(_bench_invariant.FUNCTIONS)
    assert len(lines) == 2 * cases + 2 * cases
    assert "1.0 us, invariant       2.0 us, price +100.0 %" in lines[0]
    assert lines[2 * cases].startswith("at most +100.0 %  softmax forward, whole packs")


def test_the_first_call_is_not_pytorchs_first():
    """Ours comes first in the table: what PyTorch's first gradient imports is not ours."""
    script = (
        "import sys, torch\n"
        "from oneflow_lite_torch import bench\n"
        "bench.start('cpu')\n"
        "before = set(sys.modules)\n"
        "tensors = bench._tensors((8, 64), torch.float32, 'cpu', True)\n"
        "torch.autograd.grad(bench.OURS['softmax'](*tensors), tensors[0], torch.ones(8, 64))\n"
        "print(len(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "0", done.stdout + done.stderr
