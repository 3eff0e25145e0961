# SPDX-License-Identifier: Apache-2.0
"""How many kernels the elementwise functions come to, by the names in the CUDA library."""

import collections
import re
from pathlib import Path

import pytest
from numerics import flow

# UnitsKernel and ElementsKernel<inputs, compute type, function>: two ways through memory
NAME = (rb"_ZN12oneflow_lite4cuda(11Units|14Elements)KernelILi(\d)E([a-z])(\w+)EEvNS0_4PassIXT_EEE"
        rb"T1_\0")  # fmt: skip
# PlainKernel and PlainRowsKernel<inputs, function>: the ways of 16-bit floats that follow each
# other, and that lie in rows or across them
PLAIN = rb"_ZN12oneflow_lite4cuda(11Plain|15PlainRows)KernelILi(\d)E(\w+)EEvNS0_4PassIXT_EEET0_\0"
COMPUTE_TYPES = {b"f", b"d", b"i", b"j", b"l", b"m"}  # float, double, (unsigned) int, long


def kernels():
    library = Path(flow.__file__).parent / "lib" / "liboneflow_lite_cuda.so"
    if not library.exists():
        pytest.skip("this build has no CUDA library")
    return library.read_bytes()


def test_a_function_has_two_kernels_per_compute_type_and_two_of_16_bits():
    found = set(re.findall(NAME, kernels()))
    assert len(found) > 80, "the kernels' names are not in the library"
    types = collections.defaultdict(set)
    for walk, inputs, compute, function in found:
        types[walk, inputs, function].add(compute)
    for (_, _, function), of_function in types.items():
        # Integers are signed or unsigned: at most float, double and two of them; of a cast, of
        # which each result is a function, three.
        assert of_function <= COMPUTE_TYPES and len(of_function) <= 4, function
    # Two more of a function of float, for both 16-bit floats.
    plain = set(re.findall(PLAIN, kernels()))
    floats = {(inputs, function) for (_, inputs, function), t in types.items() if b"f" in t}
    dense, rows = ({found[1:] for found in plain if found[0].endswith(way)}
                   for way in (b"Plain", b"Rows"))  # fmt: skip
    assert len(dense) > 80 and dense == rows and dense <= floats
    # Two tensors of any dtypes: no kernel has a dtype beside the compute type in its name.
    # But the number next to one of 16 bits is another in float16 than in bfloat16.
    found = [function for *_, function in found if b"NextAfter16" not in function]
    assert not any(b"half" in function or b"bfloat" in function for function in found)


def test_no_function_has_kernels_of_dtypes():
    for name in (b"UnaryRun", b"BinaryRun", b"TernaryRun", b"SlopeRun", b"SelectRun", b"CopyRun"):
        assert name not in kernels()
