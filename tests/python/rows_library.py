# SPDX-License-Identifier: Apache-2.0
"""liboneflow_lite_rows.so by ctypes, its structs and functions read off ofl_rows.h; and memory of
the GPU through the driver, as a program without this framework has it.
"""

import ctypes
import importlib.util
import os
import re
from pathlib import Path

import numpy as np
import pytest

SIMPLE = {
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "ofl_dtype": ctypes.c_int32,
    "ofl_status": ctypes.c_int32,
    "ofl_stream": ctypes.c_void_p,
}


ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "primitive" / "cuda" / "c_api" / "ofl_rows.h"


def library_path():
    """The library: OFL_ROWS_LIBRARY, or the installed package's, or a skip."""
    spec = importlib.util.find_spec("oneflow_lite")
    folder = Path(spec.origin).parent if spec and spec.origin else Path("nowhere")
    named = os.environ.get("OFL_ROWS_LIBRARY")
    path = Path(named) if named else folder / "lib" / "liboneflow_lite_rows.so"
    if not path.exists():
        pytest.skip("no liboneflow_lite_rows.so: not built with CUDA, or not installed")
    return path


def without_comments(header):
    return re.sub(r"//[^\n]*", "", header)


def enumerators(header):
    return {
        name: int(value)
        for body in re.findall(r"\benum \{([^}]*)\}", without_comments(header))
        for name, value in re.findall(r"(OFL_\w+) = (\d+)", body)
    }


def of_declaration(text):
    """(name, ctypes type) of each name in `const void *x, *y` or `int64_t mask_dims[3], cols`."""
    kind, names = re.match(r"(?:const )?(\w+)\s*(.*)", text.strip(), re.S).groups()
    for name in names.split(","):
        pointer, name, _, size = re.match(r"\s*(\*?)\s*(\w+)(\[(\d+)\])?", name).groups()
        simple = ctypes.c_void_p if pointer else SIMPLE[kind]
        yield name, simple * int(size) if size else simple


def structs(header):
    """The struct types of the header by name."""
    found = {}
    pattern = r"typedef struct \{([^}]*)\} (\w+);"
    for body, name in re.findall(pattern, without_comments(header)):
        fields = [
            field for line in body.split(";") if line.strip() for field in of_declaration(line)
        ]
        found[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return found


def prototypes(header):
    """name -> (result, types of the parameters) of all functions."""
    found = {}
    pattern = r"^(const char\*|int|ofl_status) (ofl_\w+)\(([^)]*)\);"
    for result, name, parameters in re.findall(pattern, without_comments(header), re.M):
        types = []
        for parameter in parameters.split(",") if parameters != "void" else []:
            pointer = "*" in parameter
            types.append(ctypes.c_void_p if pointer else SIMPLE[parameter.split()[0]])
        found[name] = (ctypes.c_char_p if "char" in result else SIMPLE[result], types)
    return found


class Rows:
    """The library: `rows.call("ofl_softmax", None, dtype, ...)` gives the status, `rows.args` makes
    a struct of arguments from keywords, `rows.OFL_FLOAT16` is a constant.
    """

    def __init__(self, library, header):
        self._library = ctypes.CDLL(str(library))
        self._structs = structs(header)
        self.functions = prototypes(header)
        for name, (result, types) in self.functions.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, types
        vars(self).update(enumerators(header))

    def args(self, name, **fields):
        """A struct of the header, e.g. args("norm", rows=3) for ofl_norm_args."""
        made = self._structs[f"ofl_{name}_args"]()
        for field, value in fields.items():
            if isinstance(value, tuple | list):
                getattr(made, field)[:] = value
            else:
                setattr(made, field, value)
        return made

    def call(self, name, *arguments):
        arguments = [ctypes.addressof(a) if isinstance(a, ctypes.Structure) else a
                     for a in arguments]  # fmt: skip
        return getattr(self._library, name)(*arguments)

    def message(self):
        return self._library.ofl_rows_last_error().decode()

    def error_string(self, status):
        return self._library.ofl_rows_error_string(status).decode()

    def check(self, name, *arguments):
        """A call that must succeed."""
        status = self.call(name, *arguments)
        assert status == 0, f"{self.message()} ({self.error_string(status)})"

    def workspace_bytes(self, name, args):
        bytes_ = ctypes.c_size_t(1)
        self.check(name, args, ctypes.addressof(bytes_))
        return bytes_.value


def load():
    return Rows(library_path(), HEADER.read_text())


class Gpu:
    """Memory of the first GPU by the driver's API."""

    def __init__(self):
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError:
            pytest.skip("no GPU here: no driver")
        if self._driver.cuInit(0) != 0:
            pytest.skip("no GPU here")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._do("cuDeviceGet", ctypes.byref(device), 0)
        self._do("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._do("cuCtxSetCurrent", context)
        self._blocks = []

    def _do(self, name, *arguments):
        status = getattr(self._driver, name)(*arguments)
        assert status == 0, f"{name}: CUresult {status}"

    def empty(self, size):
        """The address of `size` bytes, all set so that what is not written is NaN."""
        pointer = ctypes.c_uint64()
        self._do("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self._blocks.append(pointer.value)
        self._do("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0xFF), ctypes.c_size_t(max(size, 1)))
        return pointer.value

    def put(self, array, offset=0):
        """The address of a copy of an array, so many bytes behind a multiple of 256."""
        array = np.ascontiguousarray(array)
        address = self.empty(array.nbytes + offset) + offset
        source = array.ctypes.data_as(ctypes.c_void_p)
        self._do("cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(array.nbytes))
        return address

    def get(self, address, shape, dtype):
        """What lies there, once all launches have ended."""
        array = np.empty(shape, dtype)
        self._do("cuCtxSynchronize")
        target = array.ctypes.data_as(ctypes.c_void_p)
        self._do("cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(array.nbytes))
        return array

    def release(self):
        for block in self._blocks:
            self._do("cuMemFree_v2", ctypes.c_uint64(block))
        self._blocks.clear()


class Float:
    """A dtype of the library: how its elements lie in memory, and how exact it is."""

    def __init__(self, name, memory, digits, compute):
        self.name, self.memory, self.digits = name, np.dtype(memory), digits
        self.compute = np.dtype(compute)  # of statistics and losses

    def encode(self, values):
        """Elements in memory, rounded to the nearest."""
        if self.name != "bfloat16":
            return np.asarray(values).astype(self.memory)
        bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def decode(self, elements):
        """Their values in float64."""
        if self.name != "bfloat16":
            return elements.astype(np.float64)
        return (elements.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    def tolerance(self, in_compute=False):
        """What an element may be off, relative to the size of the terms that it is made of."""
        step = 2.0**-self.digits
        exact = 1e-13 if self.name == "float64" else 4e-6
        return exact if in_compute or self.name == "float64" else exact + step


FLOATS = {
    "float16": Float("float16", np.float16, 11, np.float32),
    "bfloat16": Float("bfloat16", np.uint16, 8, np.float32),
    "float32": Float("float32", np.float32, 24, np.float32),
    "float64": Float("float64", np.float64, 53, np.float64),
}
