# SPDX-License-Identifier: Apache-2.0
"""PyTorch in a process of its own, for the CPU: reads requests, times, answers; JSON by lines.

    python torch_serve.py        with an interpreter that has PyTorch; oneflow_lite is not needed

    {"op", "dtype", "shape", "dim", "threads", "batch", "repeats"} -> {"times": [us, ...]}

``batch`` 0 asks for a warm-up alone: it gives the microseconds of one call.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch_eager  # beside this file

EPS = torch_eager.EPS


def tensors(op: str, dtype: Any, shape: list[int], dim: int) -> dict[str, Any]:
    """Random inputs of an op."""
    x = torch.randn(shape, dtype=dtype)
    if "softmax" in op and op.endswith("_backward"):
        forward = torch.log_softmax if op.startswith("log") else torch.softmax
        return {"y": forward(x, dim), "dy": torch.randn(shape, dtype=dtype)}
    if op.startswith("cross_entropy"):
        return {"x": x, "target": torch.randint(shape[1], shape[:1])}
    if op == "scale_mask_softmax":
        return {"x": x, "hidden": torch.rand(shape[0], 1, *shape[2:]) < 0.25, "scale": 0.125}
    if op == "causal_softmax":
        return {"x": x, "hidden": torch.ones(shape[2:], dtype=torch.bool).triu(1), "scale": 0.125}
    if op == "add_rms_norm":
        return {"x": x, "residual": torch.randn_like(x), "weight": x[0].clone()}
    if "norm" in op:
        wide = x.float() if dtype != torch.float64 else x
        mean = wide.mean(-1) if op.startswith("layer") else torch.zeros(shape[:-1]).to(wide.dtype)
        rstd = ((wide - mean.unsqueeze(-1)).square().mean(-1) + EPS).rsqrt()
        if op.startswith("layer"):  # PyTorch's CPU operators take statistics of the input's dtype
            mean, rstd = mean.to(dtype), rstd.to(dtype)
        t = {"x": x, "weight": torch.randn(shape[-1], dtype=dtype)}
        t |= {"bias": torch.randn(shape[-1], dtype=dtype)}
        return {**t, "dy": torch.randn_like(x), "mean": mean, "rstd": rstd}
    return {"x": x}


class Server:
    """Keeps the tensors of the case it is asked about."""

    def __init__(self) -> None:
        self.key: Any = None
        self.call: Callable[[], Any] = lambda: None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        torch.set_num_threads(request["threads"])
        key = [request[n] for n in ("op", "dtype", "shape", "dim")]
        if key != self.key:
            dtype = getattr(torch, request["dtype"])
            t = tensors(request["op"], dtype, request["shape"], request["dim"])
            known = torch_eager.calls(t, request["dim"], request["shape"][request["dim"]])
            if request["op"] not in known:
                return {"unsupported": f"PyTorch {torch.__version__} has no operator for this"}
            self.call, self.key = known[request["op"]], key
        if request["batch"] == 0:
            self.call()
            return {"times": [self._time(1)]}
        return {"times": [self._time(request["batch"]) for _ in range(request["repeats"])]}

    def _time(self, batch: int) -> float:
        begin = time.perf_counter()
        for _ in range(batch):
            self.call()
        return (time.perf_counter() - begin) / batch * 1e6


def main() -> None:
    server = Server()
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # goes to whoever asked
            answer = {"unsupported": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
