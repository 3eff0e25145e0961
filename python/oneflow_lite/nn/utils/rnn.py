# SPDX-License-Identifier: Apache-2.0
"""Sequences of several lengths in one tensor.

>>> batch = pad_sequence([flow.ones(3), flow.ones(5)], batch_first=True)    # [2, 5]
>>> [a, b] = unpad_sequence(batch, flow.tensor([3, 5]), batch_first=True)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from oneflow_lite._absent import public_face
from oneflow_lite._oneflow_lite import _C, ShapeError, Tensor
from oneflow_lite._signature import check_flag

__all__ = ["pad_sequence", "unpad_sequence"]

_SIDES = ("left", "right")


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of any lengths as one tensor, the shorter ones filled up.

    Parameters
    ----------
    sequences : iterable of Tensor
        Each ``[length, ...]``, all alike but for the length.
    batch_first : bool
        The result is ``[count, longest, ...]``, else ``[longest, count, ...]``.
    padding_value : float
        What fills up.
    padding_side : {"right", "left"}
        Whether that comes behind a sequence or before it.

    Raises
    ------
    ShapeError
        There is no sequence, one has no dims, or they differ beyond the length.
    """
    check_flag("pad_sequence", "batch_first", batch_first)
    if padding_side not in _SIDES:
        raise ValueError(f"pad_sequence(): padding_side must be 'left' or 'right', "
                         f"not {padding_side!r}")  # fmt: skip
    given = list(sequences)
    for t in given:
        if not isinstance(t, Tensor):
            raise TypeError(f"pad_sequence(): a sequence must be a Tensor, "
                            f"not {type(t).__name__}")  # fmt: skip
    if not given:
        raise ShapeError("pad_sequence(): there must be at least one sequence")
    model = given[0].shape[1:]
    for i, t in enumerate(given):
        if t.ndim == 0 or t.shape[1:] != model:
            raise ShapeError(f"pad_sequence(): sequence {i} has shape {list(t.shape)}, but must "
                             f"be [length{''.join(f', {n}' for n in model)}]")  # fmt: skip
    longest = max(t.shape[0] for t in given)
    dims = [0, 0] * len(model)  # from the last one on, as pad takes them

    def filled(t: Tensor) -> Tensor:
        gap = longest - t.shape[0]
        return _C.pad(t, [*dims, *((0, gap) if padding_side == "right" else (gap, 0))],
                      value=padding_value)  # fmt: skip

    return _C.stack([filled(t) for t in given], 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences that :func:`pad_sequence` made one tensor of, filled up on the right.

    Parameters
    ----------
    padded_sequences : Tensor
        ``[longest, count, ...]``, with ``batch_first`` ``[count, longest, ...]``.
    lengths : Tensor
        ``[count]``, of any integer dtype; its numbers are read on the host.
    """
    if padded_sequences.ndim < 2:
        given = list(padded_sequences.shape)
        raise ShapeError(f"unpad_sequence(): padded_sequences has shape {given}, but must have "
                         "2 dims or more")  # fmt: skip
    if lengths.is_floating_point() or lengths.dtype.name == "bool":
        raise TypeError(f"unpad_sequence(): lengths is of {lengths.dtype.name}, but must be of an "
                        "integer dtype")  # fmt: skip
    by_row = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    counts = [int(n) for n in lengths.tolist()] if lengths.ndim == 1 else None
    if counts is None or len(counts) != by_row.shape[0]:
        raise ShapeError(f"unpad_sequence(): lengths has shape {list(lengths.shape)}, but must be "
                         f"[{by_row.shape[0]}]")  # fmt: skip
    for n in counts:
        if not 0 <= n <= by_row.shape[1]:
            raise ValueError(f"unpad_sequence(): a length is {n}, but must be in "
                             f"[0, {by_row.shape[1]}]")  # fmt: skip
    return [row[:n] for row, n in zip(by_row, counts, strict=True)]


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
