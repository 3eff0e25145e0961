# SPDX-License-Identifier: Apache-2.0
"""One of two builds that are timed against each other: a process of its own, asked line by line.

    python against_worker.py PACKAGE DEVICE BUDGET

PACKAGE is the folder in which that build's oneflow_lite is. What measures is beside this file, and
the same for both; what is measured is theirs. A line of JSON asks, a line of JSON answers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import traceback
from pathlib import Path
from typing import Any


def adopt(package: str) -> None:
    """Imports that build, and this folder as its oneflow_lite.bench."""
    sys.path.insert(0, package)
    import oneflow_lite

    found = Path(oneflow_lite.__file__).resolve().parent.parent
    if found != Path(package).resolve():
        raise ImportError(f"oneflow_lite comes from {found}, not from {package}")
    here = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        "oneflow_lite.bench", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["oneflow_lite.bench"] = module
    spec.loader.exec_module(module)


def identity(package: str) -> dict[str, str]:
    """The build's version, and a digest of its libraries."""
    import oneflow_lite

    digest = hashlib.sha256()
    for path in sorted(Path(package, "oneflow_lite").rglob("*.so*")):
        digest.update(path.read_bytes())
    return {"version": oneflow_lite.__version__, "libraries": digest.hexdigest()[:12]}


class Worker:
    """Holds one problem at a time, ready to be timed."""

    def __init__(self, device: str, budget: float) -> None:
        import oneflow_lite
        from oneflow_lite.bench import clock

        self.flow, self.device = oneflow_lite, device
        timer = clock.CudaClock if device == "cuda" else clock.CpuClock
        self.clock: Any = timer(rounds=1, budget=budget)
        self.candidate: Any = None

    def prepare(self, op: str, dtype: str, case: dict[str, Any]) -> dict[str, Any]:
        from oneflow_lite.bench.cases import Case
        from oneflow_lite.bench.workloads import WORKLOADS

        made = Case(**{**case, "shape": tuple(case["shape"])})
        if made.threads:
            self.flow.set_num_threads(made.threads)
        w = WORKLOADS[op]
        self.candidate = w.ours(w.problem(dtype, self.device, made))
        self.candidate.call()
        return {}

    def time(self) -> dict[str, Any]:
        return {"us": self.clock.measure({"ours": self.candidate})["ours"].median}

    def drop(self) -> dict[str, Any]:
        self.candidate = None
        if self.device == "cuda":
            self.flow.cuda.empty_cache()
        return {}

    def digests(self, count: int) -> dict[str, Any]:
        """Of the results of the planted cases, in their order."""
        from oneflow_lite.bench import canary
        from oneflow_lite.bench.workloads import WORKLOADS

        found = []
        for op, dtype, case in canary.planted(count):
            w = WORKLOADS[op]
            self.flow.manual_seed(0)
            p = canary.Planted(op, dtype, self.device, case)
            p.t = w.tensors(p)
            digest = hashlib.sha256()
            for result in w.ours(p).call():
                if result is not None:
                    exact = result.detach().cpu().contiguous()
                    if exact.dtype is self.flow.bfloat16:  # which NumPy does not have
                        exact = exact.float()
                    digest.update(exact.numpy().tobytes())
            found.append(digest.hexdigest()[:16])
        return {"digests": found}


def main() -> None:
    package, device, budget = sys.argv[1:4]
    out, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    adopt(package)
    worker = Worker(device, float(budget))
    print(json.dumps(identity(package)), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # the other cells go on
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
