# SPDX-License-Identifier: Apache-2.0
"""A rank of ``python -m oneflow_lite.bench parallel``.

On the command line: a part's name, its request as JSON, the file for what rank 0 finds, as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite import distributed as dist
from oneflow_lite.bench.gpt_worker import Trainer

F = flow.nn.functional
BROADCAST, SPLIT = flow.sbp.broadcast, flow.sbp.split


def _synchronize() -> None:
    if flow.cuda.is_available():
        flow.cuda.synchronize()


def _seconds(run: Callable[[], Any], times: int) -> float:
    """Of one of so many runs, together: from an idle device until it is idle again."""
    _synchronize()
    begin = time.perf_counter()
    for _ in range(times):
        run()
    _synchronize()
    return (time.perf_counter() - begin) / times


def _together(run: Callable[[], Any], times: int, device: str) -> float:
    """The same, begun together by all ranks; the slowest's."""
    dist.barrier(device_type=device)
    taken = flow.tensor([_seconds(run, times)], dtype=flow.float64).to(device)
    dist.all_reduce(taken, "max")
    return float(taken.item())


class _Training:
    """The step of one precision and mode, of this rank alone and of all."""

    def __init__(self, request: dict[str, Any], spread: bool) -> None:
        self.trainer = Trainer(flow, request)
        if spread:
            wrapped = dist.DataParallel(self.trainer.model, request["bucket_mb"])
            self.trainer.loss, self.wrapped = wrapped.module.loss, wrapped
        graph = request["mode"] == "graph"
        self._step = flow.cuda.graphed_step(self.trainer.step) if graph else self.trainer.step
        self._number = 0

    def step(self) -> Any:
        batches = self.trainer.batches
        self._number += 1
        return self._step(*batches[self._number % len(batches)])

    def checksums(self) -> list[float]:
        return [float(p.detach().double().sum().item()) for p in self.trainer.model.parameters()]


def training(request: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of a step of ranks that train each for itself, and together; turn by turn.

    All GPUs work in both: their clocks follow the power that they take, and one that has been idle
    runs some percent faster for seconds. GPUs of one machine differ by as much, and together they
    are as fast as the slowest; ``alone_ms`` and the efficiency are of that one.
    """
    device = request["device"]
    alone, spread = _Training(request, False), _Training(request, True)
    losses: dict[str, list[float]] = {"alone": [], "parallel": []}
    for _ in range(request["warmup"]):  # of the same batches: the same step, on every rank
        losses["alone"].append(float(alone.step().item()))
        losses["parallel"].append(float(spread.step().item()))
    different = max(abs(a - b) / abs(a) for a, b in zip(*losses.values(), strict=True))
    _together(spread.step, request["heating"], device)
    mine: list[float] = []
    parallel: list[float] = []
    for _ in range(request["rounds"]):
        dist.barrier(device_type=device)
        mine.append(1e3 * _seconds(alone.step, request["steps"]))
        parallel.append(1e3 * _together(spread.step, request["steps"], device))
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, spread.checksums())
    by_rank: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(by_rank, mine)
    if dist.get_rank() > 0:
        return {}
    slowest = max(by_rank, key=statistics.median)
    one, all_of_them = statistics.median(slowest), statistics.median(parallel)
    tokens = request["batch"] * request["config"]["length"]
    return {
        "alone_ms": slowest, "alone_ms_by_rank": by_rank, "parallel_ms": parallel,
        "ranks": len(everyone), "losses": losses,
        "tokens_per_s_alone": tokens / one * 1e3,
        "tokens_per_s": len(everyone) * tokens / all_of_them * 1e3, "efficiency": one / all_of_them,
        "loss_differs_by": different,
        "right": different < 0.01 and all(other == everyone[0] for other in everyone),
    }  # fmt: skip


def _torch_group(port: int) -> Any:
    """torch.distributed with NCCL beside ours; None where torch is not there."""
    try:
        import torch
    except ImportError:
        return None
    torch.cuda.set_device(dist.get_device().index or 0)
    torch.distributed.init_process_group(
        "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=dist.get_rank(),
        world_size=dist.get_world_size())  # fmt: skip
    return torch


def all_reduce(request: dict[str, Any]) -> dict[str, Any]:
    """Microseconds of the sum of bfloat16 over the ranks, ours and torch's turn by turn."""
    device = request["device"]
    torch = _torch_group(request["port"]) if device == "cuda" else None
    found: dict[str, Any] = {"cells": {}, "torch": torch.__version__ if torch else "not here"}
    if torch:
        found["torch_nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    rng = np.random.default_rng(dist.get_rank())
    for count in request["counts"]:
        values = rng.standard_normal(count, np.float32)
        x = flow.from_numpy(values).to(device).bfloat16()
        runs: dict[str, Callable[[], Any]] = {"ours": lambda x=x: dist.all_reduce(x)}
        first = x.clone()
        dist.all_reduce(first)
        same = None
        if torch:
            y = torch.from_numpy(values).cuda().bfloat16()
            torch.distributed.all_reduce(y)
            a, b = first[: 1 << 20].float().cpu().numpy(), y[: 1 << 20].float().cpu().numpy()
            same = bool((a == b).all())
            y.zero_()
            runs["torch"] = lambda y=y: torch.distributed.all_reduce(y)
        x.zero_()  # sums of sums grow
        times: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            _together(run, 5, device)
        for _ in range(request["rounds"]):
            for name, run in (*runs.items(), *reversed(runs.items())):
                times[name].append(1e6 * _together(run, request["times"], device))
        cell: dict[str, Any] = {"bytes": 2 * count, "us": times}
        cell |= {f"{name}_us": statistics.median(us) for name, us in times.items()}
        if torch:
            cell |= {"same_bits_as_torch": same, "over_torch": cell["ours_us"] / cell["torch_us"]}
        found["cells"][str(2 * count)] = cell
    found["right"] = all(c.get("same_bits_as_torch") is not False for c in found["cells"].values())
    return found


def head(request: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of the head and its loss, forward and backward: of one rank with all classes,
    each rank by itself, and of all ranks with a part of the classes each.

    Fused is linear_cross_entropy, plain cross_entropy of the logits of linear. Split, every rank
    has the whole gradient of the activations in the end, and its part of the weight's.
    """
    device, dtype = request["device"], getattr(flow, request["dtype"])
    rows, width, vocab = request["rows"], request["width"], request["vocab"]
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s, np.float32) * 0.05 for s in ((rows, width), (vocab, width))]
    hidden, weight = (flow.from_numpy(v).to(device, dtype) for v in values)
    target = flow.from_numpy(rng.integers(0, vocab, rows)).to(device)
    place = flow.placement(device, list(range(dist.get_world_size())))
    spread, part, spread_target = (
        t.to_global(place, BROADCAST).to_global(sbp=sbp)
        for t, sbp in ((hidden, BROADCAST), (weight, SPLIT(0)), (target, BROADCAST))
    )

    def fused(h: Any, w: Any, t: Any) -> Any:
        return F.linear_cross_entropy(h, w, t, 1)

    def plain(h: Any, w: Any, t: Any) -> Any:
        return F.cross_entropy(F.linear(h, w), t)

    def step(of: Callable[..., Any], x: Any, y: Any, t: Any) -> tuple[Any, Any, Any]:
        h, w = (v.detach().requires_grad_() for v in (x, y))
        loss = of(h, w, t)
        loss.backward()
        return loss, h.grad.to_global(sbp=BROADCAST) if h.is_global else h.grad, w.grad

    runs: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
        "one_rank_fused": lambda: step(fused, hidden, weight, target),
        "one_rank": lambda: step(plain, hidden, weight, target),
        "split_fused": lambda: step(fused, spread, part, spread_target),
        "split": lambda: step(plain, spread, part, spread_target),
    }
    results = {}
    for name, run in runs.items():
        loss, dx, dw = run()
        # This rank's first rows of each; of the weight's gradient the first rank's are the first.
        gradients = [t.to_local() if t.is_global else t for t in (dx, dw)]
        results[name] = float(loss.item()), [g[:64].float().cpu().numpy() for g in gradients]
        for _ in range(2):
            run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(request["rounds"]):
        for name, run in runs.items():
            times[name].append(1e3 * _together(run, request["times"], device))
    want_loss, want = results["one_rank"]
    errors = {name: {"loss": abs(loss - want_loss) / want_loss,
                     "gradient": max(float(np.abs(a - b).max() / np.abs(b).max())
                                     for a, b in zip(got, want, strict=True))}
              for name, (loss, got) in results.items()}  # fmt: skip
    found: dict[str, Any] = {f"{name}_ms": statistics.median(ms) for name, ms in times.items()}
    found["gain"] = (min(found["one_rank_ms"], found["one_rank_fused_ms"])
                     / min(found["split_ms"], found["split_fused_ms"]))  # fmt: skip
    right = all(e["loss"] < 0.01 and e["gradient"] < 0.03 for e in errors.values())
    return {**found, "ms": times, "errors": errors, "right": right, "ranks": dist.get_world_size()}


def overhead(request: dict[str, Any]) -> dict[str, Any]:
    """Microseconds of the host for an op on small tensors, local and global."""
    device, times = request["device"], request["times"]
    place = flow.placement(device, list(range(dist.get_world_size())))
    local = [flow.ones(32, 32, device=device) for _ in range(2)]
    spread = [flow.ones(64, 32, placement=place, sbp=SPLIT(0)) for _ in range(2)]
    square = flow.ones(32, 32, placement=place, sbp=BROADCAST)
    ops: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "add": (lambda: flow.add(*local), lambda: flow.add(*spread)),
        "mul": (lambda: flow.mul(*local), lambda: flow.mul(*spread)),
        "relu": (lambda: flow.relu(local[0]), lambda: flow.relu(spread[0])),
        "softmax": (lambda: flow.softmax(local[0], 1), lambda: flow.softmax(spread[0], 1)),
        "matmul": (lambda: flow.matmul(*local), lambda: flow.matmul(spread[0], square)),
    }  # fmt: skip

    def host(run: Callable[[], Any]) -> float:
        """The queue of the device is never full; what waits for it is not counted."""
        taken, batch = 0.0, 200
        for _ in range(max(times // batch, 1)):
            _synchronize()
            begin = time.perf_counter()
            for _ in range(batch):
                run()
            taken += time.perf_counter() - begin
        _synchronize()
        return 1e6 * taken / (max(times // batch, 1) * batch)

    cells = {}
    with flow.no_grad():
        for name, (one, all_of_them) in ops.items():
            y = all_of_them()
            right = y.is_global and bool(y.sbp[0] == SPLIT(0))
            right = right and float(y.to_local().sum().item()) > 0
            taken: dict[str, list[float]] = {"local_us": [], "global_us": []}
            for _ in range(request["rounds"]):
                taken["local_us"].append(host(one))
                taken["global_us"].append(host(all_of_them))
            least = {key: min(us) for key, us in taken.items()}
            difference = least["global_us"] - least["local_us"]
            cells[name] = {**least, "overhead_us": difference, "right": right}
    return {"cells": cells, "largest_us": max(c["overhead_us"] for c in cells.values()),
            "right": all(c["right"] for c in cells.values())}  # fmt: skip


PARTS = {f.__name__: f for f in (training, all_reduce, head, overhead)}


def main(part: str, request: str, output: str) -> None:
    dist.init()
    found = PARTS[part](json.loads(request))
    if dist.get_rank() == 0:
        Path(output).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
