# SPDX-License-Identifier: Apache-2.0
"""Arrays of numbers as the bytes of an .npy file, and back without evaluating anything."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator

import numpy as np

from oneflow_lite._archive import Damaged, shown

_CHUNK = 1 << 20
# As numpy.lib.format writes it, of plain numbers: {'descr': '<f4', 'fortran_order': False, ...}
_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufc]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,19}, )*\d{1,19},?)?\), \} *\n"
)


def is_numbers(dtype: np.dtype) -> bool:
    """Whether arrays of this dtype are stored: bool, integers, floats, complex."""
    return dtype.kind in "biufc" and dtype.itemsize <= 16


def parts(array: np.ndarray) -> Iterator[bytes]:
    """The bytes of the file, in pieces.

    Each piece is a copy, so that a checksum and a file that take it see the same bytes, whatever
    another thread does to the array.
    """
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(array))
    yield header.getvalue()
    flat = array if array.flags.c_contiguous else array.T
    data = flat.reshape(-1).view(np.uint8)
    for at in range(0, data.size, _CHUNK):
        yield data[at : at + _CHUNK].tobytes()


def array_of(data: np.ndarray) -> np.ndarray:
    """The array in the bytes of a file, over their memory.

    Raises
    ------
    Damaged
        Where they are no .npy file of numbers, or not as many bytes as its header says.
    """
    start = 10
    head = data[:start].tobytes()
    if head[:8] != b"\x93NUMPY\1\0" or len(head) < start:
        raise Damaged("an array is in no .npy format of version 1.0")
    end = start + int.from_bytes(head[8:], "little")
    match = _HEADER.fullmatch(data[start:end].tobytes())
    if match is None:
        raise Damaged(f"the header of an array is {shown(data[start:end].tobytes())}")
    try:
        dtype = np.dtype(match[1].decode())
        shape = tuple(int(n) for n in (match[3] or b"").replace(b",", b" ").split())
        if math.prod(shape) * dtype.itemsize != data.size - end:
            raise Damaged(f"{data.size - end} bytes for an array of shape {list(shape)} and dtype "
                          f"{dtype.name}")  # fmt: skip
        if dtype.kind == "b" and data.size > end and data[end:].max() > 1:
            raise Damaged("an array of bool has bytes other than 0 and 1")
        array = data[end:].view(dtype)
        array = array if array.flags.aligned else array.copy()
        return array.reshape(shape, order="F" if match[2] == b"True" else "C")
    except (TypeError, ValueError, OverflowError) as error:
        raise Damaged(f"an array cannot be read: {error}") from error
