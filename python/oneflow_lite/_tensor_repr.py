# SPDX-License-Identifier: Apache-2.0
"""How a tensor is shown: aligned columns, large tensors by their edges, what is not default named.

>>> flow.tensor([[0.1, 0.2]], requires_grad=True)
tensor([[0.1000, 0.2000]], requires_grad=True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from oneflow_lite._oneflow_lite import _is_out_of_date

if TYPE_CHECKING:
    from oneflow_lite import Tensor

PRECISION = 4  # digits after the point
THRESHOLD = 1000  # tensors with more elements are shown by their edges
EDGE = 3  # rows and columns shown at each edge
WIDTH = 80  # columns of a line
SHOWN_WITHOUT_DTYPE = ("float32", "int64", "bool")


def _edges(x: Tensor) -> Tensor:
    """The first and last EDGE entries along each long dim, as a small tensor; copies little."""
    for dim in sorted(range(x.ndim), key=lambda d: -x.shape[d]):
        n = x.shape[dim]
        if n <= 2 * EDGE:
            continue
        # The two edges are two blocks, (n - EDGE) entries apart: a view, so one small copy.
        shape, strides = list(x.shape), list(x.stride())
        shape[dim : dim + 1] = [2, EDGE]
        strides[dim : dim + 1] = [(n - EDGE) * strides[dim], strides[dim]]
        x = x.as_strided(shape, strides, x.storage_offset()).contiguous()
        x = x.reshape([*shape[:dim], 2 * EDGE, *shape[dim + 2 :]])
    return x


def _to_numpy(x: Tensor) -> np.ndarray:
    """The values on the host, in float64 where they are floating."""
    if x.dtype.is_floating_point:
        return x.cpu().double().numpy()
    return x.cpu().numpy()


def _float_format(values: np.ndarray) -> Callable[[Any], str]:
    """One format for all values of a tensor: integers, fixed or scientific, padded to one width."""
    finite = np.abs(values[np.isfinite(values)])
    nonzero = finite[finite != 0]
    largest, smallest = (nonzero.max(), nonzero.min()) if nonzero.size else (0.0, 0.0)
    integers = bool(np.all(finite == np.floor(finite)))
    if largest > 1e8 or largest > 1000 * smallest or (not integers and smallest < 1e-4):
        spec = f".{PRECISION}e"
    elif integers:
        spec = ".0f"
    else:
        spec = f".{PRECISION}f"
    point = "." if integers and spec == ".0f" else ""

    def text(value: float) -> str:
        return format(value, spec) + (point if np.isfinite(value) else "")

    width = max((len(text(value)) for value in values.flat), default=0)
    return lambda value: text(value).rjust(width)


def _format(values: np.ndarray) -> Callable[[Any], str]:
    """How one element of these values is written, so that columns are aligned."""
    if values.dtype.kind == "f":
        return _float_format(values)
    width = max((len(str(value)) for value in values.flat), default=0)
    return lambda value: str(value).rjust(width)


def _rows(
    values: np.ndarray, shape: tuple[int, ...], show: Callable[[Any], str], indent: int
) -> str:
    """The nested brackets; where `shape` is larger than `values`, dots stand between the edges."""
    if values.ndim == 0:
        return show(values.item())
    cut = shape[0] > len(values)
    if values.ndim == 1:
        words = [show(value) for value in values.tolist()]
        if cut:
            words.insert(EDGE, " ...")
        per_line = max(1, (WIDTH - indent) // (max(map(len, words), default=0) + 2))
        lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [_rows(row, shape[1:], show, indent + 1) for row in values]
    if cut:
        rows.insert(EDGE, "...")
    gap = "," + "\n" * (values.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(rows) + "]"


def _notes(x: Tensor, *, has_values: bool) -> list[str]:
    """What stands after the values: whatever cannot be seen from them."""
    notes = []
    if x.is_global:
        notes += [f"size={tuple(x.shape)}", f"placement={x.placement!r}",
                  f"sbp=({', '.join(map(str, x.sbp))})"]  # fmt: skip
    elif (not has_values and x.ndim != 1) or x.device.type == "meta":
        notes.append(f"size={tuple(x.shape)}")
    if x.device.type != "cpu":
        notes.append(f"device='{x.device}'")
    if x.dtype.name not in SHOWN_WITHOUT_DTYPE or (not has_values and x.dtype.name != "float32"):
        notes.append(f"dtype={x.dtype}")
    if x.grad_fn is not None:
        notes.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        notes.append("requires_grad=True")
    return notes


def tensor_repr(x: Tensor) -> str:
    """Text for ``repr(x)``.

    Parameters
    ----------
    x : Tensor
        Any shape, dtype and device. Values of a CUDA tensor are copied to the host, at most the
        edges of a large one; a meta tensor shows ``...``; a global tensor shows this rank's
        shard, without a word to the other ranks.

    Returns
    -------
    str
        For example ``tensor([[0.1000, 0.2000]], device='cuda:0', grad_fn=<softmax_backward>)``.
    """
    prefix = "tensor("
    values, stale = x.detach(), _is_out_of_date(x)
    if x.is_global and not stale:  # what lies here, so that nobody has to wait for the others
        values = values.to_local()
    if x.device.type == "meta" or stale:
        body = "..."
    elif values.numel() == 0:
        body = "[]"
    else:
        shown = _to_numpy(_edges(values) if values.numel() > THRESHOLD else values)
        body = _rows(shown, tuple(values.shape), _format(shown), len(prefix))
    text = prefix + body
    last_line = len(text) - text.rfind("\n") - 1
    for note in [*_notes(x, has_values=x.numel() > 0), *(["out of date"] if stale else [])]:
        if last_line + len(note) + 3 > WIDTH:
            text, last_line = text + ",\n" + " " * len(prefix) + note, len(prefix) + len(note)
        else:
            text, last_line = text + ", " + note, last_line + len(note) + 2
    return text + ")"
