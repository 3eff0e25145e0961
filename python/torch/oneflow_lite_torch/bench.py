# SPDX-License-Identifier: Apache-2.0
"""Times the functions beside what else is installed: python -m oneflow_lite_torch.bench.

Beside PyTorch eager and torch.compile come oneflow_lite itself, Liger and QuACK where they are
installed; a line names each that is not. Each line gives microseconds a call, GB/s of what must
move, the share of a copy's speed, microseconds of host time, and the time of the first call. On a
GPU times are those of a captured graph, so that the host does not show in them; those of
oneflow_lite, QuACK and Liger's cross entropy, which no graph holds, are the sums of their kernels'.
"""

import argparse
import itertools
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

import oneflow_lite_torch as rows
from oneflow_lite_torch import _bench_invariant
from oneflow_lite_torch import _bench_peers as peers
from oneflow_lite_torch._bench_model import SIZES
from oneflow_lite_torch._bench_model import run as run_model

SHAPES = ((16384, 1024), (16384, 4096), (4096, 8192), (64, 4096), (16384, 1000))


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def host_us(call: Callable, device: str, calls: int = 200) -> float:
    """Microseconds of host time a call: the least of a few series, the GPU left behind."""
    best = float("inf")
    for _ in range(5):
        _synchronize(device)
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - start)
        _synchronize(device)
    return best / calls * 1e6


def device_us(call: Callable, device: str) -> float:
    """Microseconds of a call on the device; on the CPU those of the call itself."""
    if device == "cpu":
        return host_us(call, device, calls=5)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph, repeats = torch.cuda.CUDAGraph(), 20
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()
    times = []
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / repeats * 1e3)
    return min(times)


def kernels_us(call: Callable, device: str, calls: int = 20) -> float:
    """Microseconds of the kernels and copies of a call, by CUPTI: the least of a few series.

    For calls that a graph of PyTorch's cannot capture. What passes between kernels is not in it.
    """
    if device == "cpu":
        return device_us(call, device)
    best = float("inf")
    for _ in range(3):
        _synchronize(device)
        with profile(activities=[ProfilerActivity.CUDA]) as run:
            for _ in range(calls):
                call()
            _synchronize(device)
        best = min(best, sum(event.self_device_time_total for event in run.key_averages()))
    return best / calls


def start(device: str) -> None:
    """What PyTorch does once in a process: its first gradient imports 500 modules, sympy's too.

    Whoever is timed first would seem to take those seconds.
    """
    x = torch.ones(2, device=device, requires_grad=True)
    torch.autograd.grad(x * x, x, torch.ones_like(x))
    _synchronize(device)


def first_ms(call: Callable, device: str) -> float:
    _synchronize(device)
    start = time.perf_counter()
    call()
    _synchronize(device)
    return (time.perf_counter() - start) * 1e3


OURS = {
    "softmax": lambda x, w, b, t: rows.softmax(x),
    "log_softmax": lambda x, w, b, t: rows.log_softmax(x),
    "layer_norm": lambda x, w, b, t: rows.layer_norm(x, x.shape[-1], w, b),
    "rms_norm": lambda x, w, b, t: rows.rms_norm(x, x.shape[-1], w, 1e-5),
    "cross_entropy": lambda x, w, b, t: rows.cross_entropy(x, t),
}
EAGER = {
    "softmax": lambda x, w, b, t: F.softmax(x, -1),
    "log_softmax": lambda x, w, b, t: F.log_softmax(x, -1),
    "layer_norm": lambda x, w, b, t: F.layer_norm(x, x.shape[-1:], w, b),
    "rms_norm": lambda x, w, b, t: F.rms_norm(x, x.shape[-1:], w, 1e-5),
    "cross_entropy": lambda x, w, b, t: F.cross_entropy(x, t),
}


def _makers(compile_too: bool) -> dict[str, dict[str, Callable]]:
    """Who is timed; says who is not there."""
    makers = {"oneflow_lite_torch": OURS, "eager": EAGER}
    if compile_too:
        makers["compile"] = {n: torch.compile(f, dynamic=False) for n, f in EAGER.items()}
    found, absent = peers.find()
    for line in absent:
        print(line)
    return makers | found


def _tensors(shape, dtype, device, needs_grad):
    # PyTorch's default generator draws no more once the capture of a peer has failed.
    drawn = torch.Generator(device).manual_seed(0)

    def normal(*shape):
        numbers = torch.randn(shape, generator=drawn, device=device)
        return numbers.to(dtype).requires_grad_(needs_grad)

    x, w, b = normal(*shape), normal(shape[1]), normal(shape[1])
    return x, w, b, torch.randint(0, shape[1], shape[:1], generator=drawn, device=device)


def _captured(maker: str, name: str, backward: bool) -> bool:
    """Whether a graph of PyTorch's may hold the calls.

    Not those on streams of their own, or with launches that no graph holds, or that wait for the
    GPU, as Liger's cross entropy does for the number of targets.
    """
    if maker in ("quack", "oneflow_lite") or (maker, name) == ("liger", "cross_entropy"):
        return False
    return not (maker == "compile" and backward)


def _passes(name: str, backward: bool) -> int:
    """How often x's bytes must move."""
    if name == "cross_entropy":
        return 3 if backward else 1
    return 5 if backward else 2


def _line(name, maker, function, shape, dtype, device, backward, copy_gbs) -> tuple[str, float]:
    """A line of the table, and the microseconds in it."""
    tensors = _tensors(shape, dtype, device, backward)
    dy = torch.ones(() if name == "cross_entropy" else shape, dtype=dtype, device=device)

    def call():
        y = function(*tensors)
        if backward:
            peers.gradients(y, tensors, dy)

    first = first_ms(call, device)
    host = host_us(call, device, calls=50)
    us = (device_us if _captured(maker, name, backward) else kernels_us)(call, device)
    moved = _passes(name, backward) * shape[0] * shape[1] * dtype.itemsize
    gbs = moved / us / 1e3
    way = "forward+backward" if backward else "forward"
    return (
        f"{name:14} {way:16} {shape[0]:6}x{shape[1]:<6} {str(dtype)[6:]:9} {maker:18} "
        f"{us:9.1f} us {gbs:7.0f} GB/s {gbs / copy_gbs:6.2f} of copy "
        f"{host:7.1f} us host {first:9.1f} ms first"
    ), us


def kernels(device: str, compile_too: bool) -> None:
    start(device)
    x = torch.empty(1 << (28 if device == "cuda" else 22), dtype=torch.uint8, device=device)
    y = torch.empty_like(x)
    copy_gbs = 2 * x.numel() / device_us(lambda: y.copy_(x), device) / 1e3
    print(f"copy: {copy_gbs:.0f} GB/s")
    shapes = SHAPES if device == "cuda" else ((1024, 1024),)
    dtypes = (torch.bfloat16, torch.float32) if device == "cuda" else (torch.float32,)
    makers, shares = _makers(compile_too), {}
    for case in itertools.product(OURS, shapes, dtypes, (False, True)):
        name, shape, dtype, backward = case
        times = {}
        for maker, functions in makers.items():
            if name not in functions:
                continue
            try:
                line, times[maker] = _line(
                    name, maker, functions[name], shape, dtype, device, backward, copy_gbs
                )
            except Exception as error:
                line = f"{name} {maker}: {type(error).__name__}: {error}"
            print(line, flush=True)
        if "oneflow_lite" in times and "oneflow_lite_torch" in times:
            shares[case] = times["oneflow_lite"] / times["oneflow_lite_torch"]
    print(beside_oneflow_lite(shares))


def beside_oneflow_lite(shares: dict[tuple, float]) -> str:
    """The least of the shares of oneflow_lite's speed, and how many are below 0.98."""
    if not shares:
        return "no share of oneflow_lite's speed: it is absent"
    (name, shape, dtype, backward), least = min(shares.items(), key=lambda item: item[1])
    way = "forward+backward" if backward else "forward"
    below = sum(share < 0.98 for share in shares.values())
    return (
        f"share of oneflow_lite's speed: at least {least:.3f} ({name} {way} {shape[0]}x{shape[1]} "
        f"{str(dtype)[6:]}); below 0.98 in {below} of {len(shares)} cases"
    )


def _caller(function: Callable, shape, dtype, device: str, backward: bool) -> Callable:
    tensors = _tensors(shape, dtype, device, backward)
    inputs = [t for t in tensors if t.requires_grad]
    dy = torch.ones_like(function(*tensors))

    def call():
        y = function(*tensors)
        if backward:
            torch.autograd.grad(y, inputs, dy, allow_unused=True)

    return call


def host(device: str) -> None:
    """Host time of calls too small for the GPU to show: ours, PyTorch's, and PyTorch's patched."""
    shape = (64, 1024) if device == "cuda" else (4, 64)  # on the CPU little else is computed
    print(f"\nhost time, {shape[0]} x {shape[1]} float32, microseconds")
    for name in OURS:
        for backward in (False, True):
            found = {}
            for label, functions in (("ours", OURS), ("aten", EAGER), ("patched", EAGER)):
                if label == "patched":
                    rows.patch(device)
                call = _caller(functions[name], shape, torch.float32, device, backward)
                host_us(call, device, calls=20)  # warm
                found[label] = host_us(call, device)
                rows.unpatch()
            text = "  ".join(f"{k} {v:6.2f}" for k, v in found.items())
            print(f"{name:14} {'fwd+bwd' if backward else 'forward':8} {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m oneflow_lite_torch.bench")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile too; takes minutes")
    parser.add_argument("--host", action="store_true", help="host times alone")
    parser.add_argument("--invariant", action="store_true", help="the price of invariant=True")
    parser.add_argument(
        "--model", choices=sorted(SIZES), help="the step of a model of transformers instead"
    )
    arguments = parser.parse_args()
    where = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    print(f"{where}, PyTorch {torch.__version__}, oneflow_lite_torch {rows.__version__}")
    if arguments.model:
        run_model(arguments.model, arguments.device)
        return
    if arguments.invariant:
        _bench_invariant.run(arguments.device, _tensors, device_us)
        return
    if not arguments.host:
        kernels(arguments.device, arguments.compile)
    host(arguments.device)


if __name__ == "__main__":
    main()
