# SPDX-License-Identifier: Apache-2.0
"""PyTorch's switches of the libraries below, as far as there is something to switch.

>>> flow.backends.cudnn.deterministic = True       # flow.use_deterministic_algorithms(True)
>>> flow.backends.cuda.matmul.allow_tf32
False

Leave to be less exact or to try several ways (``allow_tf32``, ``benchmark``) may be given; nothing
makes use of it, a warning says so, and the switch stays False. A switch that would have to change
what cannot be changed raises RuntimeError.
"""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite import _process
from oneflow_lite._absent import public_face
from oneflow_lite._process import (
    are_deterministic_algorithms_enabled,
    use_deterministic_algorithms,
)

__all__ = ["cpu", "cuda", "cudnn", "mps"]


def _permission(name: str, instead: str) -> Any:
    """A switch that allows what is never done."""

    def give(self: Any, value: bool) -> None:
        if value:
            warnings.warn(f"{self.__name__}.{name} changes nothing: {instead}", stacklevel=2)

    return property(lambda self: False, give, doc=f"False: {instead}")


def _fixed(name: str, fact: bool, why: str) -> Any:
    """A switch that cannot be moved."""

    def move(self: Any, value: bool) -> None:
        if bool(value) is not fact:
            raise RuntimeError(f"{self.__name__}.{name} stays {fact}: {why}")

    return property(lambda self: fact, move, doc=f"{fact}: {why}")


class _Module(types.ModuleType):
    """A module with switches; another name in it is an error."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not hasattr(type(self), name):
            raise AttributeError(f"module {self.__name__!r} has no switch {name!r}", name=name)
        super().__setattr__(name, value)


_NO_TF32 = ("products of float32 are computed in float32; flow.autocast computes in float16 or "
            "bfloat16")  # fmt: skip
_WIDE_SUMS = "sums of 16-bit products are kept in float32"
_CHOICE = "the arguments decide which engine computes attention; all give the same function"


class _Matmul(_Module):
    """Of cuBLASLt."""

    allow_tf32 = _permission("allow_tf32", _NO_TF32)
    allow_fp16_reduced_precision_reduction = _permission(
        "allow_fp16_reduced_precision_reduction", _WIDE_SUMS
    )
    allow_bf16_reduced_precision_reduction = _permission(
        "allow_bf16_reduced_precision_reduction", _WIDE_SUMS
    )


def _engine(name: str) -> Any:
    def enable(self: Any, enabled: bool) -> None:
        if not enabled:
            raise RuntimeError(f"{self.__name__}.{name}(False): {_CHOICE}")

    enable.__name__, enable.__doc__ = name, f"Allowed in any case: {_CHOICE}."
    return enable


def _allowed(name: str) -> Any:
    def enabled(self: Any) -> bool:
        return True

    enabled.__name__, enabled.__doc__ = name, f"True: {_CHOICE}."
    return enabled


class _Cuda(_Module):
    """Of CUDA."""

    enable_flash_sdp = _engine("enable_flash_sdp")
    enable_mem_efficient_sdp = _engine("enable_mem_efficient_sdp")
    enable_math_sdp = _engine("enable_math_sdp")
    enable_cudnn_sdp = _engine("enable_cudnn_sdp")
    flash_sdp_enabled = _allowed("flash_sdp_enabled")
    mem_efficient_sdp_enabled = _allowed("mem_efficient_sdp_enabled")
    math_sdp_enabled = _allowed("math_sdp_enabled")
    cudnn_sdp_enabled = _allowed("cudnn_sdp_enabled")

    def is_built(self) -> bool:
        """Whether this build has a CUDA half."""
        return bool(_ext.build_config()["CUDA"])


class _Cudnn(_Module):
    """Of cuDNN, which computes attention where it takes the arguments."""

    benchmark = _permission("benchmark", "engines are chosen without measuring")
    allow_tf32 = _permission("allow_tf32", _NO_TF32)
    enabled = _fixed("enabled", True, _CHOICE)

    @property
    def deterministic(self) -> bool:
        """Whether cuDNN's attention, too, gives the same results twice. False takes back True; what
        ``use_deterministic_algorithms`` asked for stays, with a warning.
        """
        return are_deterministic_algorithms_enabled()

    @deterministic.setter
    def deterministic(self, value: bool) -> None:
        if value == self.deterministic:
            return
        if value or _process.deterministic_by_switch:
            use_deterministic_algorithms(bool(value))
            _process.deterministic_by_switch = bool(value)
        else:
            warnings.warn(f"{self.__name__}.deterministic stays True: "
                          "use_deterministic_algorithms asked for it", stacklevel=2)  # fmt: skip

    def is_available(self) -> bool:
        """Whether there is a GPU, and cuDNN's package for Python."""
        found = importlib.util.find_spec("nvidia") and importlib.util.find_spec("nvidia.cudnn")
        return found is not None and _ext.cuda_device_count() > 0


class _Mps(_Module):
    """Of Apple's GPUs, which are not used."""

    def is_available(self) -> bool:
        """False."""
        return False

    def is_built(self) -> bool:
        """False."""
        return False


class _Cpu(_Module):
    """Of the CPU."""

    def get_cpu_capability(self) -> str:
        """The widest vectors that this machine has: "AVX512", "AVX2" or "DEFAULT"."""
        widest = str(_ext.build_config()["SIMD"]).split(",")[0]
        return {"AVX2": "AVX2"}.get(widest, "AVX512" if widest.startswith("AVX3") else "DEFAULT")


def _made(kind: type[_Module], name: str) -> Any:
    module = kind(f"{__name__}.{name}", kind.__doc__)
    sys.modules[module.__name__] = module
    return module


__path__: list[str] = []  # a package for Python: `import oneflow_lite.backends.cudnn as cudnn`
cpu, cuda, cudnn, mps = (_made(kind, kind.__name__[1:].lower())
                         for kind in (_Cpu, _Cuda, _Cudnn, _Mps))  # fmt: skip
types.ModuleType.__setattr__(cuda, "matmul", _made(_Matmul, "cuda.matmul"))

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
