# SPDX-License-Identifier: Apache-2.0
"""The yardsticks: streams that move the bytes of an op and do nothing else.

On a GPU they are the kernels of streams.cu, compiled at their first use (nvcc and g++ are needed)
and kept. On the CPU a copy serves all patterns, as in STREAM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import oneflow_lite as flow

# pattern: the streams that may stand for it (the faster counts), each with how many tensors its
# bytes are shared out over
PATTERNS = {
    "1R1W": {"memcpy": 2, "copy": 2},
    "2R1W": {"add": 3},
    "1R": {"read": 1},
    "1W": {"fill": 1},
}


def load() -> None:
    """Compile and register ``flow.ops.bench``."""
    folder = Path(__file__).parent
    if "bench::copy" not in flow.ops.list():
        sources = [
            (folder / f"streams.{kind}").read_text(encoding="utf-8") for kind in ("cpp", "cu")
        ]
        flow.utils.load_inline("bench_streams", *sources)


def _words(nbytes: int, device: str) -> Any:
    """Random data of that size, up to a multiple of 16 bytes."""
    return flow.random_bits(max(2, -(-nbytes // 16) * 2), device=device)


def yardsticks(pattern: str, nbytes: int, device: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The streams of a pattern, by name, each moving ``nbytes`` in all."""
    if device == "cpu":
        x = flow.rand(max(1, nbytes // 8))
        z = flow.empty_like(x)
        yield "copy", lambda: z.copy_(x)
        return
    for name, tensors in PATTERNS[pattern].items():
        inputs = [_words(nbytes // tensors, device) for _ in range(2 if name == "add" else 1)]
        if name == "fill":
            yield name, inputs[0].zero_
            continue
        op = getattr(flow.ops.bench, name)
        yield name, lambda op=op, inputs=inputs: op(*inputs)
