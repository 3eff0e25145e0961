# SPDX-License-Identifier: Apache-2.0
"""Ops from C++ and CUDA source, compiled at run time."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.custom_op import load_library

__all__ = ["cache_dir", "include_dir", "load_inline"]


def include_dir() -> Path:
    """The folder to give to a compiler's ``-I``: holds ``oneflow_lite/extension/op.h``."""
    return Path(__file__).resolve().parent.parent / "include"


def cache_dir() -> Path:
    """Where compiled extensions are kept; ``OFL_EXTENSION_CACHE`` chooses another folder."""
    if chosen := os.environ.get("OFL_EXTENSION_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "oneflow_lite" / "extensions"


class CompileError(RuntimeError):
    """A compiler refused the source; the message shows what it said about which lines."""


def _compiler(names: Sequence[str | None], what: str, hint: str) -> str:
    for name in names:
        if name and (found := shutil.which(name)):
            return found
    raise RuntimeError(f"load_inline(): no {what} was found; {hint}")


def _run(command: list[str], name: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise CompileError(f"load_inline(): {name} did not compile:\n{said}")


def _cuda_arch() -> str:
    if _ext.cuda_is_available():
        properties = _ext.cuda_device_properties(_ext.cuda_current_device())
        return f"{properties.major}{properties.minor}"
    return "90"


def _build(folder: Path, name: str, cpp: str, cuda: str, flags: Sequence[str],
           cuda_flags: Sequence[str], verbose: bool) -> Path:  # fmt: skip
    library = folder / f"lib{name}.so"
    include = f"-I{include_dir()}"
    objects = []
    sources = [("cpp", cpp), ("cu", cuda)]
    for kind, text in sources:
        if not text:
            continue
        source, out = folder / f"{name}.{kind}", folder / f"{name}_{kind}.o"
        # The compiler speaks of the user's lines: the text is not changed, only named.
        source.write_text(text)
        if verbose:
            print(f"load_inline: compiling {source.name} ...", file=sys.stderr, flush=True)
        if kind == "cpp":
            compiler = _compiler(
                [os.environ.get("CXX"), "g++", "clang++"], "C++ compiler", "install g++ or set CXX"
            )
            command = [
                compiler,
                "-std=c++17",
                "-O3",
                "-fPIC",
                "-fvisibility=hidden",
                include,
                *flags,
                "-c",
                str(source),
                "-o",
                str(out),
            ]
        else:
            compiler = _nvcc()
            command = [
                compiler,
                "-std=c++17",
                "-O3",
                f"-arch=sm_{_cuda_arch()}",
                "-Xcompiler=-fPIC,-fvisibility=hidden",
                include,
                *cuda_flags,
                "-c",
                str(source),
                "-o",
                str(out),
            ]
        _run(command, source.name)
        objects.append(str(out))
    unfinished = folder / f"lib{name}.{os.getpid()}.so"
    if cuda:
        link = [_nvcc(), "-shared", "-cudart=static"]
    else:
        link = [_compiler([os.environ.get("CXX"), "g++", "clang++"], "C++ compiler", ""), "-shared"]
    _run([*link, "-o", str(unfinished), *objects], name)
    unfinished.rename(library)
    return library


def _nvcc() -> str:
    return _compiler(
        [os.environ.get("CUDACXX"), "nvcc", "/usr/local/cuda/bin/nvcc"],
        "nvcc",
        "install the CUDA Toolkit or set CUDACXX",
    )


@contextlib.contextmanager
def _locked(folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def load_inline(name: str, cpp: str, cuda: str = "", *, flags: Sequence[str] = (),
                cuda_flags: Sequence[str] = (), verbose: bool = True) -> list[str]:  # fmt: skip
    """Compile C++ (and CUDA) source that registers ops, and load it.

    The result is kept in :func:`cache_dir` under the source, the flags, the compiler and the
    version of oneflow_lite, so that the same call in a later process compiles nothing.

    Parameters
    ----------
    name : str
        A name for files and messages.
    cpp : str
        C++17 that includes ``oneflow_lite/extension/op.h`` and has an ``OFL_EXTENSION`` block.
    cuda : str
        CUDA source that is compiled by nvcc and linked to it.
    flags, cuda_flags : sequence of str
        More options for the compilers.
    verbose : bool
        Say on stderr what is being compiled.

    Returns
    -------
    list of str
        The names of the new ops.

    Raises
    ------
    RuntimeError
        No compiler was found, the source does not compile (the message shows the lines), or the
        library could not be loaded.
    """
    if not name.isidentifier():
        raise ValueError(f"load_inline(): name must be an identifier, not {name!r}")
    content = repr(
        (
            cpp,
            cuda,
            list(flags),
            list(cuda_flags),
            _ext.build_config()["version"],
            os.environ.get("CXX"),
            os.environ.get("CUDACXX"),
            cuda and _cuda_arch(),
        )
    )
    key = hashlib.sha256(content.encode()).hexdigest()[:24]
    folder = cache_dir() / f"{name}-{key}"
    library = folder / f"lib{name}.so"
    if not library.exists():
        with _locked(folder):
            if not library.exists():
                _build(folder, name, cpp, cuda, flags, cuda_flags, verbose)
    return load_library(library)
