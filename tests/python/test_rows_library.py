# SPDX-License-Identifier: Apache-2.0
"""The row kernels as a C library: its symbols, its example, and how it refuses arguments."""

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import rows_library

ROOT = Path(__file__).resolve().parents[2]
HEADER = rows_library.HEADER
SOME = 1 << 20  # an address that is looked at, but never read


@pytest.fixture(scope="module")
def rows():
    return rows_library.load()


def tool_or_skip(name):
    path = f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin"
    return shutil.which(name, path=path) or pytest.skip(f"no {name} here")


def output(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


@pytest.mark.parametrize("language", ["-std=c99 -xc", "-std=c17 -xc", "-std=c++11 -xc++"])
def test_the_header_is_c99_and_needs_no_cuda(language):
    flags = [*language.split(), "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    result = subprocess.run(
        [tool_or_skip("gcc"), *flags, "-include", HEADER, "/dev/null"],
        text=True,
        capture_output=True,
    )
    assert result.returncode == 0, result.stderr
    assert re.findall(r"#include (\S+)", HEADER.read_text()) == ["<stddef.h>", "<stdint.h>"]


def test_it_exports_the_functions_of_its_header_and_nothing_else(rows):
    library = rows_library.library_path()
    symbols = output(tool_or_skip("nm"), "-D", "--defined-only", library)
    assert {line.split()[-1] for line in symbols.splitlines()} == set(rows.functions)
    assert len(rows.functions) > 25


def test_it_needs_neither_the_framework_nor_abseil_nor_the_cpp_library(rows):
    library = rows_library.library_path()
    undefined = output(tool_or_skip("nm"), "-D", "--undefined-only", library)
    names = [line.split()[-1] for line in undefined.splitlines()]
    assert names
    foreign = [name for name in names if name.startswith("_Z") or re.match(r"cuda|cu[A-Z]", name)]
    assert not foreign, "C++ or CUDA symbols from elsewhere"
    needed = re.findall(r"NEEDED.*\[(.+)\]", output(tool_or_skip("readelf"), "-d", library))
    of_libc = re.compile(r"(libc|libm|libdl|librt|libpthread|ld-linux.*|libgcc_s)\.so\.\d+$")
    assert needed and not [name for name in needed if not of_libc.match(name)], needed


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["-x", "cu"]], ids=["C", "CUDA C++"])
def test_the_example_compiles_with_nvcc_alone_and_runs(flags, tmp_path):
    nvcc, library = tool_or_skip("nvcc"), rows_library.library_path()
    source = tmp_path / "library.c"
    shutil.copy(ROOT / "examples" / "rows" / "library.c", source)
    program = tmp_path / "library"
    folder = library.parent
    places = [f"-I{HEADER.parent}", f"-L{folder}", f"-Xlinker=-rpath,{folder}"]
    command = [nvcc, *flags, source, *places, "-loneflow_lite_rows", "-o", program]
    result = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    result = subprocess.run([program], text=True, capture_output=True)
    if result.returncode == 77:
        assert "no GPU" in result.stdout
        pytest.skip("compiled and linked; no GPU here to run it")
    assert result.returncode == 0, result.stdout


# What is wrong, in a call that would be right without it, and what the message says.
SOFTMAX = dict(dtype=3, rows=2, cols=8, x=SOME, y=SOME)
SOFTMAX_BACKWARD = dict(dtype=3, rows=2, cols=8, y=SOME, dy=SOME, dx=SOME)
NORM = dict(dtype=3, rows=2, cols=8, x=SOME, y=SOME, eps=1e-5)
NORM_BACKWARD = dict(dtype=3, rows=2, cols=8, dy=SOME, x=SOME, rstd=SOME, mean=SOME, dx=SOME)
CROSS_ENTROPY = dict(dtype=1, rows=2, classes=8, x=SOME, target=SOME, loss=SOME, stats=SOME)
CE_BACKWARD = dict(dtype=1, rows=2, classes=8, x=SOME, target=SOME, stats=SOME, dx=SOME)
IN_PLACE = dict(dtype=1, rows=2, classes=8, x=SOME, target=SOME, loss=SOME)
MASK = dict(dtype=2, rows=6, cols=8, scale=1, x=SOME, mask=SOME, mask_dtype=5, y=SOME)
MASK_BACKWARD = dict(dtype=2, rows=6, cols=8, scale=1, y=SOME, dy=SOME, dx=SOME)
NULL, SIZE, UNKNOWN, UNSERVED, MISALIGNED, VALUE = 1, 2, 3, 4, 5, 6
WRONG = [
    ("softmax", SOFTMAX, dict(x=None), NULL, "x is null"),
    ("softmax", SOFTMAX, dict(y=None), NULL, "y is null"),
    ("softmax", SOFTMAX, dict(rows=-1), SIZE, "-1 rows of 8 columns"),
    ("softmax", SOFTMAX, dict(cols=-3), SIZE, "2 rows of -3 columns"),
    ("softmax", SOFTMAX, dict(rows=1 << 40, cols=1 << 40), SIZE, "below 2^59"),
    ("softmax", SOFTMAX, dict(x_stride=7), SIZE, "x_stride is 7"),
    ("softmax", SOFTMAX, dict(x_stride=-8), SIZE, "x_stride is -8"),
    ("softmax", SOFTMAX, dict(rows=1 << 30, x_stride=1 << 40), SIZE, "x_stride is 1099511627776"),
    ("softmax", SOFTMAX, dict(dtype=0), UNKNOWN, "dtype is 0"),
    ("softmax", SOFTMAX, dict(dtype=6), UNKNOWN, "dtype is 6"),
    ("softmax", SOFTMAX, dict(dtype=5), UNSERVED, "dtype is bool"),
    ("softmax", SOFTMAX, dict(y_dtype=1), UNSERVED, "y_dtype is 1 beside dtype 3"),
    ("softmax", SOFTMAX, dict(dtype=1, y_dtype=3, inner=2), UNSERVED, "and inner > 1"),
    ("softmax", SOFTMAX, dict(inner=3), SIZE, "inner is 3"),
    ("softmax", SOFTMAX, dict(inner=-1), SIZE, "inner is -1"),
    ("softmax", SOFTMAX, dict(inner=2, x_stride=9), UNSERVED, "inner is 2 beside a row stride"),
    ("softmax", SOFTMAX, dict(x=SOME + 2), MISALIGNED, "x is not aligned to its element, 4 bytes"),
    ("softmax", SOFTMAX, dict(dtype=1, y_dtype=3, y=SOME + 2), MISALIGNED, "y is not aligned"),
    ("softmax_backward", SOFTMAX_BACKWARD, dict(dy=None), NULL, "dy is null"),
    ("softmax_backward", SOFTMAX_BACKWARD, dict(dy_stride=1), SIZE, "dy_stride is 1"),
    ("softmax_backward", SOFTMAX_BACKWARD, dict(dx=SOME + 1), MISALIGNED, "dx is not aligned"),
    ("layer_norm", NORM, dict(y=None), NULL, "y is null"),
    ("layer_norm", NORM, dict(sum=SOME), NULL, "residual is null, and sum is not"),
    ("layer_norm", NORM, dict(weight_dtype=1), UNSERVED, "weight_dtype is 1 beside dtype 3"),
    ("layer_norm", NORM, dict(dtype=4, weight_dtype=3), UNSERVED, "weight_dtype is 3"),
    ("layer_norm", NORM, dict(dtype=1, weight_dtype=3, weight=SOME + 2), MISALIGNED, "weight is"),
    ("layer_norm", NORM, dict(rstd=SOME + 2), MISALIGNED, "rstd is not aligned"),
    ("rms_norm", NORM, dict(bias=SOME), UNSERVED, "bias is given; rms_norm has none"),
    ("rms_norm", NORM, dict(mean=SOME), UNSERVED, "mean is given; rms_norm has none"),
    ("layer_norm_backward", NORM_BACKWARD, dict(dy=None), NULL, "dy is null"),
    ("layer_norm_backward", NORM_BACKWARD, dict(x=None), NULL, "x and y are both null"),
    ("layer_norm_backward", NORM_BACKWARD, dict(y=SOME), UNSERVED, "x and y are both given"),
    ("layer_norm_backward", NORM_BACKWARD, dict(mean=None), NULL, "mean is null"),
    ("rms_norm_backward", NORM_BACKWARD, dict(mean=None, rstd=None), NULL, "rstd is null"),
    ("rms_norm_backward", NORM_BACKWARD, dict(mean=None, dbias=SOME), UNSERVED, "dbias is given"),
    ("cross_entropy", CROSS_ENTROPY, dict(target=None), NULL, "target is null"),
    ("cross_entropy", CROSS_ENTROPY, dict(stats=None), NULL, "stats is null"),
    ("cross_entropy", CROSS_ENTROPY, dict(target=SOME + 4), MISALIGNED, "target is not aligned"),
    ("cross_entropy", CROSS_ENTROPY, dict(loss=SOME + 2), MISALIGNED, "loss is not aligned"),
    ("cross_entropy", CROSS_ENTROPY, dict(smoothing=1.5), VALUE, "smoothing is 1.5"),
    ("cross_entropy", CROSS_ENTROPY, dict(smoothing=float("nan")), VALUE, "smoothing is"),
    ("cross_entropy_backward", CE_BACKWARD, dict(dx=None), NULL, "dx is null"),
    ("cross_entropy_backward", CE_BACKWARD, dict(dloss_stride=-1), SIZE, "dloss_stride is -1"),
    ("cross_entropy_in_place", IN_PLACE, dict(loss=None), NULL, "loss is null"),
    ("cross_entropy_in_place", IN_PLACE, dict(scale=SOME + 2), MISALIGNED, "scale is not aligned"),
    ("scale_mask_softmax", MASK, dict(queries=4), SIZE, "queries is 4"),
    ("scale_mask_softmax", MASK, dict(mask_dtype=0), UNKNOWN, "mask_dtype is 0"),
    ("scale_mask_softmax", MASK, dict(mask_dtype=1), UNSERVED, "mask_dtype is 1 beside dtype 2"),
    ("scale_mask_softmax", MASK, dict(mask_dims=(1, 2, 2)), SIZE, "mask_dims are 1, 2, 2"),
    ("scale_mask_softmax", MASK, dict(mask_dims=(0, 2, 3)), SIZE, "mask_dims are 0, 2, 3"),
    ("scale_mask_softmax", MASK, dict(mask_dims=(-1, -2, 3)), SIZE, "mask_dims are -1, -2, 3"),
    ("scale_mask_softmax", MASK, dict(mask_dtype=3, mask=SOME + 2), MISALIGNED, "mask is not"),
    ("scale_mask_softmax_backward", MASK_BACKWARD, dict(y=None), NULL, "y is null"),
]
STRUCT_OF = {"layer_norm": "norm", "rms_norm": "norm", "layer_norm_backward": "norm_backward",
             "rms_norm_backward": "norm_backward"}  # fmt: skip


@pytest.mark.parametrize("op, right, wrong, status, message", WRONG)
def test_what_is_wrong_is_said(rows, op, right, wrong, status, message):
    args = rows.args(STRUCT_OF.get(op, op), **{**right, **wrong})
    assert rows.call(f"ofl_{op}_with", None, args) == status
    assert rows.message().startswith(f"ofl_{op}_with: ") and message in rows.message()
    assert rows.error_string(status) not in ("no error", "unknown status")
    question = f"ofl_{op}_workspace"
    of_sizes = status in (SIZE, UNKNOWN, UNSERVED) and not set(wrong) & {"bias", "mean", "dbias"}
    if question in rows.functions and of_sizes and set(wrong) != {"y"}:
        assert rows.call(question, args, SOME) == status, "the question is refused alike"


POSITIONAL = [
    ("ofl_softmax", (None, 3, 2, 8, None, SOME), NULL),
    ("ofl_log_softmax", (None, 9, 2, 8, SOME, SOME), UNKNOWN),
    ("ofl_softmax_backward", (None, 3, -2, 8, SOME, SOME, SOME), SIZE),
    ("ofl_log_softmax_backward", (None, 3, 2, 8, SOME, SOME, SOME + 1), MISALIGNED),
    ("ofl_layer_norm", (None, 3, 2, 8, 1e-5, SOME, SOME + 1, None, SOME), MISALIGNED),
    ("ofl_rms_norm", (None, 3, 2, 8, 1e-5, SOME, None, None), NULL),
    ("ofl_cross_entropy", (None, 3, 2, 8, SOME, None, SOME, SOME), NULL),
    ("ofl_mean_weight", (None, 3, 2, -100, None, SOME), NULL),
    ("ofl_reduce_loss", (None, 3, -1, -100, SOME, None, SOME, SOME), SIZE),
    ("ofl_scale_rows", (None, 3, 2, 8, SOME, -1, SOME), SIZE),
]


@pytest.mark.parametrize("name, arguments, status", POSITIONAL)
def test_positional_calls_are_refused_by_their_own_name(rows, name, arguments, status):
    assert rows.call(name, *arguments) == status
    assert rows.message().startswith(f"{name}: ")


def test_every_function_refuses_null_for_its_struct(rows):
    structs = [n for n in rows.functions if n.endswith(("_with", "_workspace"))]
    assert len(structs) > 15
    for name in structs:
        first = [None] if name.endswith("_with") else []
        assert rows.call(name, *first, None, *([SOME] if not first else [])) == NULL
        assert rows.message() == f"{name}: args is null"
    args = rows.args("softmax", **SOFTMAX)
    assert rows.call("ofl_softmax_workspace", args, None) == NULL
    assert rows.message() == "ofl_softmax_workspace: bytes is null"


def test_nothing_to_do_needs_no_gpu(rows):
    """Rows or columns of 0 are no error, whatever the pointers."""
    nothing = dict(dtype=1, rows=0, cols=8)
    assert rows.call("ofl_softmax_with", None, rows.args("softmax", **nothing)) == 0
    assert rows.call("ofl_layer_norm_with", None, rows.args("norm", **nothing)) == 0
    assert rows.call("ofl_softmax", None, 3, 5, 0, None, None) == 0
    empty = rows.args("cross_entropy", dtype=1, rows=0, classes=8)
    assert rows.call("ofl_cross_entropy_with", None, empty) == 0
    assert rows.call("ofl_scale_rows", None, 4, 0, 8, None, 0, None) == 0


def test_messages_are_the_threads_own(rows):
    import threading

    rows.call("ofl_softmax", None, 3, 2, 8, None, SOME)
    before, seen = rows.message(), []
    thread = threading.Thread(target=lambda: seen.append(rows.message()))
    thread.start()
    thread.join()
    assert seen == [""] and rows.message() == before == "ofl_softmax: x is null"


def test_statuses_have_texts(rows):
    assert rows.call("ofl_rows_version") == int(
        re.search(r"#define OFL_ROWS_VERSION (\d+)", HEADER.read_text())[1]
    )
    texts = [rows.error_string(status) for status in range(9)]
    assert len(set(texts)) == 9 and texts[0] == "no error" and texts[8] == "unknown status"
    assert rows.error_string(-5) == rows.error_string(rows.OFL_CUDA_ERROR) == "unknown status"
    assert rows.error_string(rows.OFL_CUDA_ERROR + 2) == "out of memory"


def test_without_a_gpu_it_says_so(rows):
    bytes_ = ctypes.c_size_t(7)
    args = rows.args("softmax", **SOFTMAX)
    status = rows.call("ofl_softmax_workspace", args, ctypes.addressof(bytes_))
    if status == rows.OFL_OK:
        pytest.skip("there is a GPU")
    assert status > rows.OFL_CUDA_ERROR and bytes_.value == 7
    assert rows.message() == f"ofl_softmax_workspace: {rows.error_string(status)}"
    assert rows.call("ofl_softmax_with", None, args) == status
