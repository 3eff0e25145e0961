# SPDX-License-Identifier: Apache-2.0
"""Values found, counted and placed in order, composed of C++ functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._math import of_its_own
from oneflow_lite._named_results import with_results
from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite._shapes import wrapped_dim


def _unique_slices(input: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """The different slices along a dim, the place of each among them, how often each one occurs."""
    slices = input.detach().movedim(dim, 0) if input.ndim else input.detach().view(1)
    rows = slices.reshape(slices.shape[0], math.prod(slices.shape[1:]))
    host = (rows.float() if rows.dtype is _ext.bfloat16 else rows).numpy(force=True)
    _, first, which, counts = np.unique(
        host, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    places, inverse, times = (
        _ext.tensor(a.reshape(-1).astype(np.int64), device=input.device)
        for a in (first, which, counts)
    )
    return input.detach().index_select(dim, places), inverse, times


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements in ascending order; how many there are waits for the device.

    Parameters
    ----------
    sorted : bool
        Taken for PyTorch's sake: they always are.
    return_inverse, return_counts : bool
        Also, for each element, its place among them (the shape of ``input``), and how often each
        one occurs.
    dim : int, optional
        Compare slices along that dim, their elements one after the other, on the host.

    Returns
    -------
    Tensor, or a tuple of Tensors
        1-D values, or with ``dim`` the different slices along it; with the others after them, where
        asked for.
    """
    if dim is not None:
        values, which, counts = _unique_slices(input, wrapped_dim("unique", input, dim))
        wanted = (values, *[which] * return_inverse, *[counts] * return_counts)
        return wanted if len(wanted) > 1 else values
    flat = input.detach().reshape(-1)
    if flat.numel() == 0:
        places = _C.zeros([0], dtype=_ext.int64, device=input.device)
        values, which, first = flat, places, places
    else:
        ordered, order = _C.sort(flat.to(None, _ext.uint8) if flat.dtype is _ext.bool else flat)
        new = _C.cat([_C.ones([1], dtype=_ext.bool, device=input.device),
                      ordered.narrow(0, 1, flat.numel() - 1)
                      != ordered.narrow(0, 0, flat.numel() - 1)])  # fmt: skip
        values = ordered[new].to(None, flat.dtype)
        first = new.long().cumsum(0) - 1
        which = _C.zeros_like(first).scatter(0, order, first)
    found = [values]
    if return_inverse:
        found.append(which.view(input.shape))
    if return_counts:
        found.append(bincount(first, minlength=values.numel()))
    return tuple(found) if len(found) > 1 else values


@with_results("values", "indices")
@of_its_own
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """What occurs most often along a dim, of several the smallest, and its last place.

    IndexError along a dim of size 0.
    """
    axis = wrapped_dim("mode", input, dim)
    if input.ndim == 0:
        return input, _C.zeros([], dtype=_ext.int64, device=input.device)
    size = input.shape[axis]
    if size == 0:
        raise IndexError(f"mode(): there is no mode of no elements: shape {list(input.shape)}")
    values, places = _C.sort(input, axis)
    line = [-1 if d == axis else 1 for d in range(input.ndim)]
    at = _C.arange(size, device=input.device).view(line).expand(input.shape)
    later, earlier = (values.detach().narrow(axis, start, size - 1) for start in (1, 0))
    same = (later == earlier) | (later != later) & (earlier != earlier)
    # Where the run of equal elements began that each one is in.
    starts = _C.where(same, 0, at.narrow(axis, 1, size - 1))
    starts = _C.cummax(_C.cat([at.narrow(axis, 0, 1), starts], axis), axis)[0]
    last = _C.argmax(at - starts, axis, True)
    found = values.gather(axis, last), places.gather(axis, last)
    return found if keepdim else (found[0].squeeze(axis), found[1].squeeze(axis))


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs, or the sum of the weights there.

    Parameters
    ----------
    input : Tensor
        1-D, of integers that are not negative.
    weights : Tensor, optional
        One per element.
    minlength : int
        There are at least as many; otherwise the largest one says, which waits for the device.

    Raises
    ------
    ValueError
        A negative number, or not 1-D.
    """
    if input.ndim != 1 or input.dtype.is_floating_point:
        raise ValueError(f"bincount(): takes a 1-D tensor of integers, not shape "
                         f"{list(input.shape)} ({input.dtype.name})")  # fmt: skip
    places = input.long()
    count = minlength
    if places.numel() > 0:
        if int(places.amin()) < 0:
            raise ValueError("bincount(): input must not be negative")
        count = max(minlength, int(places.amax()) + 1)
    ones = _C.ones([places.numel()], dtype=_ext.int64, device=input.device)
    added = ones if weights is None else weights
    if weights is not None and not weights.dtype.is_floating_point:
        added = weights.double()
    zeros = _C.zeros([count], dtype=added.dtype, device=input.device)
    return zeros.scatter_add(0, places, added)


def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where to put elements so that a sequence stays in order.

    Parameters
    ----------
    sorted_sequence : Tensor
        ``[n]``, or ``[..., n]`` with the leading dims of ``input``; ascending.
    input : Tensor or float
        What is to be put.
    out_int32 : bool
        int32 places; else int64.
    right : bool
        After elements that are equal, else before them; ``side="right"`` says the same.
    sorter : Tensor, optional
        Places in the shape of the sequence, which bring it into order.

    Returns
    -------
    Tensor
        Places in the shape of ``input``.

    Raises
    ------
    ShapeError
        The leading dims differ.
    """
    line = sorted_sequence if sorter is None else sorted_sequence.gather(-1, sorter)
    x = input if isinstance(input, Tensor) else _ext.tensor(input, device=line.device)
    right = right or side == "right"
    if line.ndim != 1 and line.shape[:-1] != x.shape[:-1]:
        raise _ext.ShapeError(f"searchsorted(): input has shape {list(x.shape)}, expected "
                              f"{list(line.shape[:-1])} and one dim more")  # fmt: skip
    low = _C.zeros(list(x.shape), dtype=_ext.int64, device=x.device)
    n = line.shape[-1]
    step = 1 << n.bit_length() if n > 0 else 1
    while step > 1:  # the place lies in [low, low + step)
        step //= 2
        place = low + (step - 1)
        at = _C.clamp(place, None, n - 1)
        seen = line[at] if line.ndim == 1 else line.gather(-1, at)
        before = ((seen <= x) if right else (seen < x)) & (place < n)
        low = low + before.long() * step
    return low.int() if out_int32 else low


def bucketize(
    input: Tensor | float, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of the bucket, between boundaries, of each element; see :func:`searchsorted`."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


FUNCTIONS = (bincount, bucketize, mode, searchsorted, unique)
METHODS = (bincount, mode, unique)
