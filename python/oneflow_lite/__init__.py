# SPDX-License-Identifier: Apache-2.0
"""oneflow_lite: a deep-learning framework in readable layers.

>>> import oneflow_lite as flow
>>> x = flow.randn(2, 3, requires_grad=True)
>>> flow.softmax(x, dim=1).sum().backward()

The functions here (``softmax``, ``matmul``, ``zeros`` ...) are C++ functions, and so are many
methods of Tensor; ``help(flow.softmax)`` shows a signature. Modules are in ``flow.nn``, optimizers
in ``flow.optim``.
"""

import builtins as _builtins
import importlib as _importlib
from math import e, inf, nan, pi
from typing import Any as _Any

from oneflow_lite import (
    _creation,
    _indexing,
    _libraries,  # noqa: F401  (says where NVIDIA's packages are)
    _math,
    _numerical,
    _placing,
    _products,
    _promotion,
    _reductions,
    _scattering,
    _tensor,  # noqa: F401  (completes Tensor)
    amp,
    autograd,
    cuda,
    linalg,
    nn,
    ops,
    optim,
    profiler,
    random,
    sbp,
    special,
    utils,
)
from oneflow_lite._absent import public_face as _public_face
from oneflow_lite._C import *  # noqa: F403
from oneflow_lite._config import Config
from oneflow_lite._layouts import contiguous_format, layout, memory_format, preserve_format, strided
from oneflow_lite._limits import finfo, iinfo
from oneflow_lite._named_errors import named as _named
from oneflow_lite._oneflow_lite import (
    _C,
    DTypeError,
    Generator,
    OutOfMemoryError,
    ShapeError,
    Size,
    Tensor,
    bfloat16,
    bool,
    device,
    dtype,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    int8,
    int16,
    int32,
    int64,
    is_grad_enabled,
    placement,
    tensor,
    uint8,
)
from oneflow_lite._process import (
    are_deterministic_algorithms_enabled,
    default_generator,
    get_num_threads,
    manual_seed,
    set_num_threads,
    use_deterministic_algorithms,
)
from oneflow_lite._tensor import allclose
from oneflow_lite._typed_tensors import TYPES as _TYPES
from oneflow_lite.amp import autocast, get_autocast_dtype, is_autocast_enabled
from oneflow_lite.autograd import enable_grad, inference_mode, no_grad, set_grad_enabled
from oneflow_lite.custom_op import load_library, register_op
from oneflow_lite.random import get_rng_state, initial_seed, seed, set_rng_state

__config__ = Config()
__version__ = __config__["version"]

double, float, half, long, int, short = float64, float32, float16, int64, int32, int16


def is_tensor(obj: object) -> "_builtins.bool":
    """Whether it is a tensor."""
    return isinstance(obj, Tensor)


@_named
def is_floating_point(input: "Tensor") -> "_builtins.bool":
    """Whether its dtype is a float."""
    return input.is_floating_point()


@_named
def is_complex(input: "Tensor") -> "_builtins.bool":
    """Whether its dtype is complex: there is none."""
    return input.is_complex()


def get_default_dtype() -> dtype:
    """The dtype of what is made from Python's floats, ``float32``; it cannot be changed."""
    return float32


@_named
def numel(input: "Tensor") -> "_builtins.int":
    """The number of its elements."""
    return input.numel()


# The functions of linalg and special have their places there.
_elsewhere = ("linalg_", "special_")
for _name in dir(_C):
    if _name.startswith(_elsewhere):
        del globals()[_name]

# The functions that are composed in Python, under their names here.
_modules = (_creation, _math, _products, _reductions,
            _indexing, _numerical, _scattering, _placing, _promotion)  # fmt: skip
_composed = {_f.__name__: _named(_f, out=True)
             for _module in _modules for _f in _module.FUNCTIONS}  # fmt: skip
_composed |= {"allclose": _named(allclose)}
_composed |= _TYPES | {"cosine_similarity": nn.functional.cosine_similarity}
globals().update(_composed)

__all__ = ["CheckError", "check_op", "fuse"]  # noqa: F405 (they come when they are asked for)
__all__ += [
    "DTypeError", "Generator", "OutOfMemoryError", "ShapeError", "Tensor",
    "autograd", "bfloat16", "bool", "cuda", "default_generator", "device",
    "double", "dtype", "enable_grad", "float", "float16", "float32", "float64",
    "from_dlpack", "from_numpy", "get_num_threads", "half", "int", "int16", "int32",
    "int64", "int8", "is_grad_enabled", "linalg", "load_library", "long", "manual_seed", "nn",
    "no_grad", "ops", "optim", "profiler", "register_op", "set_grad_enabled",
    "set_num_threads", "short", "special", "tensor", "uint8", "utils",
]  # fmt: skip
__all__ += ["placement", "sbp"]  # global tensors
__all__ += ["are_deterministic_algorithms_enabled", "use_deterministic_algorithms"]
__all__ += ["amp", "autocast", "get_autocast_dtype", "is_autocast_enabled"]
__all__ += ["get_rng_state", "initial_seed", "random", "seed", "set_rng_state"]
__all__ += ["backends", "distributed"]  # noqa: F405  (so it does)
__all__ += ["load", "save"]  # noqa: F405  (__getattr__ brings them)
__all__ += ["Size", "contiguous_format", "layout", "memory_format", "preserve_format", "strided"]
__all__ += ["finfo", "get_default_dtype", "iinfo", "inf", "inference_mode", "is_complex",
            "is_floating_point", "is_tensor", "nan", "newaxis", "numel", "pi", "e",
            *_composed]  # fmt: skip
newaxis = None  # of an index: a new dim of size 1
# A star import brings functions of Python's names (abs, max, sum), but must not hide its types.
__all__ += [name for name in dir(_C) if not name.startswith(("_", *_elsewhere))]
_not_by_star = ("bool", "float", "int", "random", "slice")
__all__ = [name for name in __all__ if name not in _not_by_star]
_absent, _shown = _public_face(__name__)


def __getattr__(name: str) -> _Any:
    # A program that neither checks nor fuses ops nor saves should not wait for what does.
    if name in ("CheckError", "check_op"):
        from oneflow_lite import op_check

        return getattr(op_check, name)
    if name in ("load", "save"):
        from oneflow_lite import _serialization

        return getattr(_serialization, name)
    if name in ("backends", "distributed", "fuse"):
        return _importlib.import_module(f"oneflow_lite.{name}")
    return _absent(name)


def __dir__() -> list[str]:
    return sorted([*_shown(), *_not_by_star])
