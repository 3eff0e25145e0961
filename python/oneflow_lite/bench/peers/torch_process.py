# SPDX-License-Identifier: Apache-2.0
"""PyTorch on the CPU, timed in a process of its own (torch_serve.py), which may have another
interpreter: two libraries in one process would share, and fight over, its threads.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from oneflow_lite.bench.problem import Candidate, Problem, Unsupported


class TorchProcess:
    """A peer like the modules beside it: ``available`` and ``make``."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("torch_serve.py")
        # Its own interpreter has its own packages.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=environment)  # fmt: skip
        self._version = self._read().get("version", "")

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ImportError("the interpreter does not import torch, or it ended")
        return json.loads(line)

    def _ask(self, request: dict[str, Any]) -> list[float]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if "unsupported" in answer:
            raise Unsupported(answer["unsupported"])
        return answer["times"]

    def available(self) -> str:
        return self._version

    def make(self, p: Problem) -> Candidate:
        if p.case.pad or p.case.offset:
            raise Unsupported("not measured on this layout")
        request = {"op": p.op, "dtype": p.dtype, "shape": p.case.shape, "dim": p.case.dim,
                   "threads": p.case.threads or 1}  # fmt: skip
        return Candidate(
            lambda: [],
            timer=lambda batch, repeats: self._ask({**request, "batch": batch, "repeats": repeats}),
        )

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
