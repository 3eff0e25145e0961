# SPDX-License-Identifier: Apache-2.0
"""CUDA source to a kernel's binary, through NVRTC, which is opened when it is first needed.

What was compiled is kept in the process and on disk, by source, kernel, architecture and version.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.utils._private_folder import NotPrivate, make_private, read_private, write_whole
from oneflow_lite.utils.extension import cache_dir, include_dir

_SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
_INSTALL = (
    "install the CUDA Toolkit (cuda-nvrtc, cuda-cudart-dev) or `pip install nvidia-cuda-nvrtc"
)


class Missing(RuntimeError):
    """NVRTC or a header that it needs is not on this machine; the message says what to install."""


class Kernel(NamedTuple):
    """A compiled kernel: the image to load, its name there, and a key that no other image has."""

    key: str
    image: bytes
    name: str


compilations = 0  # by this process, for those who want to know whether a cache was hit

# The standard headers that the device code includes: NVRTC has none of its own.
_HEADERS = {
    "stdint.h": "#include <cuda/std/cstdint>\n",
    "stddef.h": "",
    "string.h": "",
    "type_traits": """#pragma once
namespace std {
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
};
template <bool v>
using bool_constant = integral_constant<bool, v>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <class A, class B>
inline constexpr bool is_same_v = false;
template <class A>
inline constexpr bool is_same_v<A, A> = true;
template <class A, class... B>
inline constexpr bool is_any_of = (is_same_v<A, B> || ...);
template <bool kFirst, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool kFirst, class A, class B>
using conditional_t = typename conditional<kFirst, A, B>::type;
template <class...>
using void_t = void;
template <bool, class>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool kIf, class T = void>
using enable_if_t = typename enable_if<kIf, T>::type;
template <class T>
inline constexpr bool is_void_v = is_same_v<T, void>;
template <class T>
inline constexpr bool is_floating_point_v = is_any_of<T, float, double>;
template <class T>
inline constexpr bool is_integral_v =
    is_any_of<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned,
              long, unsigned long, long long, unsigned long long>;
}  // namespace std
""",
}


def _homes() -> Iterator[Path]:
    """Where a toolkit, or the packages that hold its parts, may be."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home)
    yield Path("/usr/local/cuda")
    for folder in map(Path, sys.path):
        yield from sorted((folder / "nvidia").glob("*"))


_WANTED = ("cuda_fp16.h", "cooperative_groups.h", "nv/target", "cuda/std/cstdint")


@functools.cache
def include_folders() -> tuple[str, ...]:
    """The folders to include from: our headers', then the toolkit's."""
    folders = [include_dir()]
    for wanted in _WANTED:
        places = (home / sub for home in _homes() for sub in ("include", "include/cccl"))
        found = next((place for place in places if (place / wanted).exists()), None)
        if found is None:
            raise Missing(
                f"no {wanted} was found; {_INSTALL} nvidia-cuda-runtime nvidia-cuda-cccl`"
            )
        if found not in folders:
            folders.append(found)
    return tuple(map(str, folders))


@functools.cache
def _library() -> ctypes.CDLL:
    paths = [*_SONAMES]
    for home in _homes():
        paths += [str(home / sub / name) for name in _SONAMES for sub in ("lib64", "lib")]
    for path in paths:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise Missing(f"NVRTC ({' or '.join(_SONAMES)}) was not found; {_INSTALL}`")


@functools.cache
def _problem() -> str:
    """What keeps this machine from compiling; looked for once."""
    try:
        _library()
        include_folders()
    except Missing as missing:
        return str(missing)
    return ""


def require() -> None:
    """Raises Missing where nothing can be compiled here."""
    if problem := _problem():
        raise Missing(problem)


@functools.cache
def _version() -> str:
    """Of everything but the source that a binary depends on."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "nvrtcVersion")
    digest = hashlib.sha256()
    headers = sorted((include_dir() / "primitive" / "cuda").glob("*.*h"))
    # Of the toolkit's, those that carry its version.
    toolkit = [Path(folder) / name for folder in include_folders()[1:]
               for name in (*_WANTED, "cuda.h", "cuda/std/detail/__config")]  # fmt: skip
    for header in [*headers, *(path for path in toolkit if path.is_file())]:
        content = header.read_bytes()
        digest.update(f"{header.name} {len(content)}\n".encode() + content)
    version = _ext.build_config()["version"]
    return f"{version} {major.value}.{minor.value} {digest.hexdigest()} {_HEADERS!r}"


def _check(code: int, what: str) -> None:
    if code != 0:
        error = _library().nvrtcGetErrorString
        error.restype = ctypes.c_char_p
        raise RuntimeError(f"{what} failed: {error(code).decode()}")


def _strings(texts: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*[t.encode() for t in texts])


def _output(program: ctypes.c_void_p, what: str) -> bytes:
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), f"nvrtcGet{what}")
    buffer = ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{what}")(program, buffer), f"nvrtcGet{what}")
    return buffer.raw


def _options(architecture: int) -> list[str]:
    return ["-std=c++17", "-default-device", f"-arch=sm_{architecture}"]


def _compile(key: str, source: str, expression: str, architecture: int) -> Kernel:
    global compilations
    library, program = _library(), ctypes.c_void_p()
    _check(
        library.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), b"fused.cu", len(_HEADERS),
            _strings([*_HEADERS.values()]), _strings([*_HEADERS]),
        ),
        "nvrtcCreateProgram",
    )  # fmt: skip
    try:
        _check(library.nvrtcAddNameExpression(program, expression.encode()), "a kernel's name")
        options = [*_options(architecture), *(f"-I{folder}" for folder in include_folders())]
        code = library.nvrtcCompileProgram(program, len(options), _strings(options))
        compilations += 1
        if code != 0:
            log = _output(program, "ProgramLog").rstrip(b"\0\n").decode(errors="replace")
            raise RuntimeError(f"NVRTC refused the source of a fused op:\n{log}\n{source}")
        name = ctypes.c_char_p()
        _check(
            library.nvrtcGetLoweredName(program, expression.encode(), ctypes.byref(name)),
            "nvrtcGetLoweredName",
        )
        return Kernel(key, _output(program, "CUBIN"), (name.value or b"").decode())
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


_kept: dict[str, Kernel] = {}
_lock = threading.Lock()


def compiled(source: str, expression: str, architecture: int) -> Kernel:
    """The kernel that a name expression stands for, for sm_<architecture>.

    Raises
    ------
    Missing
        NVRTC or a header is not there.
    RuntimeError
        The source does not compile; the message has the compiler's words.
    """
    content = repr((source, expression, _options(architecture), _version()))
    key = hashlib.sha256(content.encode()).hexdigest()
    with _lock:
        if key not in _kept:
            folder = _folder()
            file = folder / f"{key}.kernel" if folder else None
            kernel = _read(key, file) if file else None
            if kernel is None:
                kernel = _compile(key, source, expression, architecture)
                if file:
                    _write(file, kernel)
            _kept[key] = kernel
        return _kept[key]


def _folder() -> Path | None:
    """The cache; None, with a warning, where it cannot be trusted, and without where there is none.

    A disk that is full or not ours costs a compilation per process.
    """
    try:
        return make_private(make_private(cache_dir()) / "fused")
    except NotPrivate as error:
        warnings.warn(
            f"fuse: {error}; kernels are compiled anew in each process. Let OFL_EXTENSION_CACHE "
            "name another folder",
            RuntimeWarning,
            stacklevel=3,
        )
    except OSError:
        pass
    return None


def _seal(key: str, name: bytes, image: bytes) -> bytes:
    """A digest of all that a file holds and of what it stands for."""
    return hashlib.sha256(b"\n".join([key.encode(), name, image])).hexdigest().encode()


def _read(key: str, file: Path) -> Kernel | None:
    """Name, newline, digest, newline, image; None where that is not what is there."""
    try:
        name, digest, image = read_private(file).split(b"\n", 2)
        return Kernel(key, image, name.decode()) if _seal(key, name, image) == digest else None
    except (OSError, ValueError):
        return None


def _write(file: Path, kernel: Kernel) -> None:
    name = kernel.name.encode()
    digest = _seal(kernel.key, name, kernel.image)
    with contextlib.suppress(OSError):
        write_whole(file, b"\n".join([name, digest, kernel.image]))
