# SPDX-License-Identifier: Apache-2.0
"""One of two libraries that are timed against each other on the CPU: a process of its own, asked
line by line.

    python functions_worker.py LIBRARY [PACKAGE]

LIBRARY is oneflow_lite or torch; PACKAGE is the folder that oneflow_lite is in. A line of JSON
asks, a line of JSON answers. The cases are here, because both processes need them: a function of
the library's module ``m``, its ``nn.functional`` ``f``, and tensors.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SAMPLES = 512  # elements of a result that are compared

# Names of one tensor, of m and of f; of values in (0, 1), where all are defined.
ONE = """abs neg exp exp2 expm1 log log1p log2 log10 sin cos tan sinh cosh tanh asin acos atan
asinh atanh erf erfc erfinv lgamma digamma i0 sqrt rsqrt reciprocal square sigmoid floor ceil trunc
round frac sign isnan isinf isfinite nan_to_num logit signbit sinc""".split()
ACTIVATIONS = """relu gelu silu mish softplus elu selu celu hardswish hardsigmoid hardtanh
leaky_relu logsigmoid softsign tanhshrink softshrink hardshrink relu6""".split()
TWO = """add sub mul div fmod remainder floor_divide atan2 hypot logaddexp maximum minimum fmax
fmin pow copysign xlogy lt eq logical_and heaviside nextafter""".split()
DIMS = """sum prod mean amax amin argmax var std norm logsumexp count_nonzero any cumsum cumprod
cummax logcumsumexp""".split()  # along rows and over rows
LOSSES = """mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
binary_cross_entropy_with_logits kl_div soft_margin_loss""".split()

# Label: a function of the module, its functional, two squares, a third one, a row, and indices of
# rows.
MORE: dict[str, Callable[..., Any]] = {
    "clamp": lambda m, f, x, y, z, row, index: m.clamp(x, 0.2, 0.6),
    "clamp_min": lambda m, f, x, y, z, row, index: m.clamp(x, min=0.3),
    "lerp": lambda m, f, x, y, z, row, index: m.lerp(x, y, 0.3),
    "lerp(tensor)": lambda m, f, x, y, z, row, index: m.lerp(x, y, z),
    "addcmul": lambda m, f, x, y, z, row, index: m.addcmul(x, y, z, value=0.5),
    "addcdiv": lambda m, f, x, y, z, row, index: m.addcdiv(x, y, z, value=0.5),
    "where": lambda m, f, x, y, z, row, index: m.where(x < y, x, z),
    "masked_fill": lambda m, f, x, y, z, row, index: x.masked_fill(y < 0.5, 0.0),
    "pow 2": lambda m, f, x, y, z, row, index: x**2,
    "pow 2.5": lambda m, f, x, y, z, row, index: x**2.5,
    "x + 1": lambda m, f, x, y, z, row, index: x + 1.0,
    "x * 2": lambda m, f, x, y, z, row, index: x * 2.0,
    "x < 0.5": lambda m, f, x, y, z, row, index: x < 0.5,
    "x += y": lambda m, f, x, y, z, row, index: z.add_(y).sub_(y),
    "sin out=": lambda m, f, x, y, z, row, index: m.sin(x, out=z),
    "x + row": lambda m, f, x, y, z, row, index: x + row,
    "x * column": lambda m, f, x, y, z, row, index: x * y[:, :1],
    "x + y.T": lambda m, f, x, y, z, row, index: x + y.T,
    "x[:, ::2] + 1": lambda m, f, x, y, z, row, index: x[:, ::2] + 1.0,
    "x[:, 1:-2] + 1": lambda m, f, x, y, z, row, index: x[:, 1:-2] + 1.0,
    "to other float": lambda m, f, x, y, z, row, index: x.to(
        m.bfloat16 if x.dtype is m.float32 else m.float32
    ),
    "to int32": lambda m, f, x, y, z, row, index: (x * 100).to(m.int32),
    "sum": lambda m, f, x, y, z, row, index: m.sum(x),
    "mean": lambda m, f, x, y, z, row, index: m.mean(x),
    "prod": lambda m, f, x, y, z, row, index: m.prod(x + 0.5),
    "max": lambda m, f, x, y, z, row, index: m.max(x),
    "argmax": lambda m, f, x, y, z, row, index: m.argmax(x),
    "var": lambda m, f, x, y, z, row, index: m.var(x),
    "aminmax": lambda m, f, x, y, z, row, index: m.aminmax(x),
    "nansum": lambda m, f, x, y, z, row, index: m.nansum(x),
    "dist": lambda m, f, x, y, z, row, index: m.dist(x, y),
    "sort": lambda m, f, x, y, z, row, index: m.sort(x)[0],
    "sort(0)": lambda m, f, x, y, z, row, index: m.sort(x, 0)[0],
    "topk 8": lambda m, f, x, y, z, row, index: m.topk(x, 8)[0],
    "kthvalue": lambda m, f, x, y, z, row, index: m.kthvalue(x, 3)[0],
    "median": lambda m, f, x, y, z, row, index: m.median(x, -1)[0],
    "contiguous .T": lambda m, f, x, y, z, row, index: x.T.contiguous(),
    "flip(0)": lambda m, f, x, y, z, row, index: m.flip(x, (0,)),
    "flip(1)": lambda m, f, x, y, z, row, index: m.flip(x, (1,)),
    "roll": lambda m, f, x, y, z, row, index: m.roll(x, 3, 1),
    "cat(0)": lambda m, f, x, y, z, row, index: m.cat([x, y], 0),
    "cat(1)": lambda m, f, x, y, z, row, index: m.cat([x, y], 1),
    "stack(2)": lambda m, f, x, y, z, row, index: m.stack([x, y], 2),
    "tril": lambda m, f, x, y, z, row, index: m.tril(x),
    "pad": lambda m, f, x, y, z, row, index: f.pad(x, (1, 2)),
    "repeat_interleave": lambda m, f, x, y, z, row, index: m.repeat_interleave(x, 2, 0),
    "tile": lambda m, f, x, y, z, row, index: m.tile(x, (2, 1)),
    "clone": lambda m, f, x, y, z, row, index: x.clone(),
    "index_select": lambda m, f, x, y, z, row, index: m.index_select(x, 0, index),
    "gather": lambda m, f, x, y, z, row, index: m.gather(
        x, 0, index.unsqueeze(1).expand(x.shape[0], x.shape[1])
    ),
    "embedding": lambda m, f, x, y, z, row, index: f.embedding(index, x),
}


def labels() -> list[str]:
    """All cases."""
    dims = [f"{name}({dim})" for name in DIMS for dim in (1, 0)]
    return [*ONE, *ACTIVATIONS, *TWO, *MORE, *dims, *LOSSES]


def function(m: Any, f: Any, label: str) -> Callable[..., Any]:
    """What a label stands for, of (x, y, z, row, index, spread)."""
    if label in MORE:
        return lambda *t: MORE[label](m, f, *t[:5])
    if label.endswith(")"):
        name, dim = label[:-1].split("(")
        along = getattr(m, name)
        if name == "norm":
            return lambda *t: along(t[0], 2, int(dim))
        return lambda *t: along(t[0], int(dim))
    if label in ACTIVATIONS:
        return lambda *t: getattr(f, label)(t[5])
    if label in LOSSES:
        return lambda *t: getattr(f, label)(t[0], t[1])
    if label in TWO:
        return lambda *t: getattr(m, label)(t[0], t[1])
    return lambda *t: getattr(m, label)(t[0])


class Worker:
    """Holds one case at a time, ready to be timed."""

    def __init__(self, library: str, package: str) -> None:
        if package:
            sys.path.insert(0, package)
        self.m = importlib.import_module(library)
        self.f = importlib.import_module(f"{library}.nn.functional")
        self.tensors: dict[Any, list[Any]] = {}
        self.call: Callable[[], Any] = lambda: None

    def inputs(self, dtype: str, n: int) -> list[Any]:
        """Random numbers in (0.05, 0.95), rows to take, and numbers of both signs, as the library's
        tensors: the same ones for both.
        """
        if (dtype, n) not in self.tensors:
            rows = math.isqrt(n)
            shapes = [(rows, n // rows)] * 3 + [(n // rows,)]
            values = np.random.default_rng(n)
            made = [values.random(shape, np.float32) * 0.9 + 0.05 for shape in shapes]
            wanted = getattr(self.m, dtype)
            index = self.m.from_numpy(values.integers(0, rows, rows))
            spread = self.m.from_numpy(2 * values.standard_normal(shapes[0], np.float32))
            floats = [self.m.from_numpy(v).to(wanted) for v in made]
            self.tensors = {(dtype, n): [*floats, index, spread.to(wanted)]}
        return self.tensors[dtype, n]

    def prepare(self, label: str, dtype: str, n: int, threads: int) -> dict[str, Any]:
        """Calls once; gives samples of the result, evenly spaced."""
        self.m.set_num_threads(threads)
        tensors = list(self.inputs(dtype, n))
        if label in ("x += y", "sin out="):  # which write to the third
            tensors[2] = tensors[2].clone()
        f = function(self.m, self.f, label)
        self.call = lambda: f(*tensors)
        result = self.call()
        first = result[0] if isinstance(result, (tuple, list)) else result
        flat = first.reshape(-1)
        part = flat[:: max(1, flat.shape[0] // SAMPLES)][:SAMPLES]
        found = part.to(self.m.float64).tolist()
        return {"shape": list(first.shape), "samples": [repr(float(v)) for v in found]}

    def time(self, budget: float) -> dict[str, Any]:
        """The median of the microseconds of a call, over batches that fill the budget."""
        begin = time.perf_counter()
        self.call()
        once = time.perf_counter() - begin
        batch = max(1, int(budget / 8 / max(once, 1e-7)))
        taken: list[float] = []
        end = time.perf_counter() + budget
        while len(taken) < 2 or time.perf_counter() < end:
            begin = time.perf_counter()
            for _ in range(batch):
                self.call()
            taken.append((time.perf_counter() - begin) / batch)
        return {"us": sorted(taken)[(len(taken) - 1) // 2] * 1e6}

    def version(self) -> dict[str, Any]:
        return {"version": self.m.__version__}


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    try:
        worker = Worker(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
    except ImportError as error:
        print(json.dumps({"error": str(error)}), file=out, flush=True)
        return
    print(json.dumps(worker.version()), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # the other cells go on
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
