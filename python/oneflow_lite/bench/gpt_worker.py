# SPDX-License-Identifier: Apache-2.0
"""Times the training step of one library in a process of its own, which may have another
interpreter: a request as JSON on the command line, the result as JSON on the last line of output.

It imports nothing of oneflow_lite where torch is timed: the model's source is loaded by its path.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import resource
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

WARMUP = 5  # steps, more than graphed_step takes before its capture


def load_models() -> Any:
    """models/gpt.py, without the package around it."""
    path = Path(__file__).resolve().parents[1] / "models" / "gpt.py"
    spec = importlib.util.spec_from_file_location("gpt_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["gpt_model"] = module
    spec.loader.exec_module(module)
    return module


def fill(lib: Any, model: Any, seed: int = 0) -> None:
    """The same weights in both libraries, drawn by NumPy in the order of the names."""
    rng = np.random.default_rng(seed)
    with lib.no_grad():
        for _, p in sorted(model.named_parameters()):
            if p.ndim > 1:
                drawn = rng.standard_normal(tuple(p.shape), dtype=np.float32) * 0.02
                p.copy_(lib.from_numpy(drawn).to(p.device, p.dtype))


class Trainer:
    """The model of a library with its optimizer, as the request wants them."""

    def __init__(self, lib: Any, request: dict[str, Any]) -> None:
        self.lib, self.request = lib, request
        self.device, self.torch = request["device"], lib.__name__ == "torch"
        gpt = load_models()
        config = gpt.Config(**request["config"])
        self.model = gpt.build(lib, config)
        narrow = getattr(lib, request["narrow"])
        if request["precision"] == "narrow":
            self.model.to(narrow)
        self.model.to(self.device)
        fill(lib, self.model)
        self.autocast = request["precision"] == "autocast"
        if self.autocast and request["residual"] != "float32":
            self.model.residual_dtype = getattr(lib, request["residual"])
        self.narrow = narrow
        self.loss = self.model.loss
        options: dict[str, Any] = {"lr": 3e-4, "betas": (0.9, 0.95)}
        if self.torch:
            options |= {"fused": True, "capturable": request["mode"] == "graph"}
            if options["capturable"] and self.device == "cpu":
                options["capturable"] = False
        groups = gpt.parameter_groups(self.model, 0.1)
        self.optimizer = lib.optim.AdamW(groups, **options)
        self.batches = self._batches(config)

    def _batches(self, config: Any) -> list[tuple[Any, Any]]:
        rng = np.random.default_rng(1)
        shape = (self.request["batch"], config.length + 1)
        rows = [rng.integers(0, config.vocab, shape) for _ in range(4)]
        return [(self._placed(r[:, :-1]), self._placed(r[:, 1:])) for r in rows]

    def _placed(self, x: np.ndarray) -> Any:
        return self.lib.from_numpy(x.copy()).to(self.device)

    def precision(self) -> Any:
        if not self.autocast:
            return nullcontext()
        autocast = self.lib.amp.autocast
        return autocast(self.device, dtype=self.narrow)

    def step(self, ids: Any, targets: Any) -> Any:
        with self.precision():
            loss = self.loss(ids, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def synchronize(self) -> None:
        if self.device == "cuda":
            self.lib.cuda.synchronize()

    def memory(self) -> dict[str, int]:
        """Bytes that the allocator has had from the driver, or that the process has had."""
        if self.device == "cpu":
            return {"peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
        cuda = self.lib.cuda
        reserved = cuda.max_memory_reserved() if self.torch else cuda.memory_reserved()
        return {"peak_bytes": int(reserved), "allocated_bytes": int(cuda.max_memory_allocated())}


def torch_graph(trainer: Trainer) -> Callable[..., Any]:
    """The step captured by torch, after steps on a side stream as its documentation has them."""
    torch = trainer.lib
    ids, targets = (t.clone() for t in trainer.batches[0])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            trainer.step(ids, targets)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    trainer.optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = trainer.step(ids, targets)

    def step(x: Any, y: Any) -> Any:
        ids.copy_(x)
        targets.copy_(y)
        graph.replay()
        return loss

    return step


def stepper(trainer: Trainer) -> Callable[..., Any]:
    """The step in the mode that the request names."""
    mode, lib = trainer.request["mode"], trainer.lib
    if mode == "eager":
        return trainer.step
    if mode == "graph":
        return torch_graph(trainer) if trainer.torch else lib.cuda.graphed_step(trainer.step)
    how = {} if mode == "compile" else {"mode": "max-autotune-no-cudagraphs"}
    trainer.loss = lib.compile(trainer.model.loss, **how)
    return trainer.step


def measure(request: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of a step in each round, memory, the loss of the first and of the last step."""
    lib = importlib.import_module(request["library"])
    if lib.__name__ == "torch":
        lib.set_float32_matmul_precision("high")
    lib.set_num_threads(request["threads"])
    trainer = Trainer(lib, request)
    step, batches = stepper(trainer), trainer.batches
    first = float(step(*batches[0]).item())
    for i in range(request["warmup"]):
        loss = step(*batches[i % len(batches)])
    rounds = []
    for _ in range(request["rounds"]):
        trainer.synchronize()
        begin = time.perf_counter()
        for i in range(request["steps"]):
            loss = step(*batches[i % len(batches)])
        trainer.synchronize()
        rounds.append(1e3 * (time.perf_counter() - begin) / request["steps"])
    return {"version": lib.__version__, "ms": rounds, "first_loss": first,
            "last_loss": float(loss.item()), **trainer.memory()}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
