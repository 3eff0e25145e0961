# SPDX-License-Identifier: Apache-2.0
"""Which kernels the BLAS multiplies with: those that the CPU's instructions allow."""

import os
import pathlib
import platform
import subprocess
import sys

import pytest

# The name of the core whose kernels OpenBLAS took, in a process of its own.
CORE = """
import ctypes, pathlib
import oneflow_lite as flow
maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
paths = {line.split(maxsplit=5)[5] for line in maps if "libopenblas" in line}
linked = [p for p in sorted(paths) if hasattr(ctypes.CDLL(p), "openblas_get_corename")]
name = ctypes.CDLL(linked[0]).openblas_get_corename
name.restype = ctypes.c_char_p
x = flow.arange(64 * 64).reshape(64, 64).to(flow.float64) / 64
assert ((x @ x).numpy() == x.numpy() @ x.numpy()).all()
import os
print(len(linked), name().decode(), os.environ.get("OPENBLAS_CORETYPE"))
"""
SHORT_VECTORS = {"Unknown", "Prescott", "Core2", "Nehalem", "Barcelona"}

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or not pathlib.Path("/proc/cpuinfo").exists(),
    reason="the cores have these names, and are found so, on Linux on x86-64",
)


def taken(**variables):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"} | variables
    run = subprocess.run([sys.executable, "-c", CORE], env=environment, capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    copies, core, variable = run.stdout.split()
    assert copies == "1"
    return core, variable


def has(flag):
    if not pathlib.Path("/proc/cpuinfo").exists():
        return False
    return f" {flag} " in pathlib.Path("/proc/cpuinfo").read_text().replace("\n", " ")


@pytest.mark.skipif(not has("avx2"), reason="the CPU has vectors of 16 bytes only")
def test_kernels_have_the_vectors_of_the_cpu():
    core, variable = taken()
    assert core not in SHORT_VECTORS
    assert variable == "None"  # nobody else's choice


@pytest.mark.skipif(not has("avx2"), reason="the CPU has no kernels of a Haswell")
@pytest.mark.parametrize("core", ["Haswell", "Prescott"])
def test_a_named_core_is_kept(core):
    assert taken(OPENBLAS_CORETYPE=core) == (core, core)
