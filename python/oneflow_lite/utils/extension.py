# SPDX-License-Identifier: Apache-2.0
"""Ops from C++ and CUDA source, compiled at run time."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import os
import platform
import shlex
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


def _compiler(variable: str, names: Sequence[str], hint: str) -> list[str]:
    """The command that the environment variable names ("ccache g++"), or the first one found."""
    chosen = shlex.split(os.environ.get(variable, ""))
    for command in [chosen] if chosen else [[n] for n in names]:
        if found := shutil.which(command[0]):
            return [found, *command[1:]]
    if chosen:
        raise RuntimeError(f"load_inline(): {variable} names {chosen[0]!r}, which was not found")
    raise RuntimeError(f"load_inline(): none of {', '.join(names)} was found; {hint}")


def _cxx() -> list[str]:
    return _compiler("CXX", ["g++", "clang++", "c++"], "install g++ or set CXX")


def _nvcc() -> list[str]:
    hint = "install the CUDA Toolkit or set CUDACXX"
    return _compiler("CUDACXX", ["nvcc", "/usr/local/cuda/bin/nvcc"], hint)


@functools.cache
def _version_of(compiler: tuple[str, ...]) -> str:
    """What a compiler says of itself, and the file that it is."""
    said = subprocess.run(
        [*compiler, "--version"], capture_output=True, text=True, errors="replace"
    )
    path = Path(compiler[0]).resolve()
    status = path.stat()
    return f"{compiler} {path} {status.st_size} {status.st_mtime_ns} {said.stdout}"


def _run(command: list[str], output: Path, name: str) -> None:
    command = [*command, "-o", str(output)]
    output.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode == 0 and output.is_file():
        return
    what = "did not compile" if done.returncode else "was not compiled, though the command succeeds"
    said = f"{done.stderr.strip()}\n{done.stdout.strip()}".strip()
    raise CompileError(f"load_inline(): {name} {what}:\n{said}\n{shlex.join(command)}")


def _cuda_arch() -> str:
    if _ext.cuda_is_available():
        properties = _ext.cuda_device_properties(_ext.cuda_current_device())
        return f"{properties.major}{properties.minor}"
    return "90"


def _headers() -> str:
    """A digest of what a source may include of oneflow_lite."""
    digest = hashlib.sha256()
    folder = include_dir()
    for header in sorted(folder.rglob("*.*h")):
        digest.update(f"{header.relative_to(folder)}\n".encode() + header.read_bytes())
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class _Source:
    """What is compiled, and how: all that the result depends on."""

    name: str
    cpp: str
    cuda: str
    flags: tuple[str, ...]
    cuda_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    def key(self) -> str:
        compilers = [_version_of(tuple(_cxx()))] + ([_version_of(tuple(_nvcc()))] * bool(self.cuda))
        arch = _cuda_arch() if self.cuda else ""
        paths = [os.environ.get(v) for v in ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH")]
        version = _ext.build_config()["version"]
        content = repr((self, version, _headers(), compilers, arch, paths, platform.machine()))
        return hashlib.sha256(content.encode()).hexdigest()

    def commands(self) -> list[tuple[str, str, list[str]]]:
        """File name, text and compiler of each part that there is."""
        cpp = lambda: [*_cxx(), "-O3", "-fPIC", "-fvisibility=hidden"]  # noqa: E731
        cuda = lambda: [*_nvcc(), "-O3", f"-arch=sm_{_cuda_arch()}",  # noqa: E731
                        "-Xcompiler=-fPIC,-fvisibility=hidden"]  # fmt: skip
        parts = [
            (f"{self.name}.cpp", self.cpp, cpp, self.flags),
            (f"{self.name}.cu", self.cuda, cuda, self.cuda_flags),
        ]
        return [(file, text, [*compiler(), "-std=c++17", f"-I{include_dir()}", *flags])
                for file, text, compiler, flags in parts if text]  # fmt: skip

    def build(self, folder: Path, verbose: bool) -> None:
        objects = []
        for file, text, command in self.commands():
            # The compiler speaks of the user's lines: the text is not changed, only named.
            (folder / file).write_text(text, encoding="utf-8")
            objects.append(folder / f"{file}.o")
            if verbose:
                print(f"load_inline: compiling {file} ...", file=sys.stderr, flush=True)
            _run([*command, "-c", str(folder / file)], objects[-1], file)
        link = [*_nvcc(), "-cudart=static"] if self.cuda else _cxx()
        unfinished = folder / f"unfinished.lib{self.name}.so"
        _run([*link, "-shared", *map(str, objects), *self.link_flags], unfinished, self.name)
        library = folder / f"lib{self.name}.so"
        unfinished.chmod(0o700)
        _ext.write_whole(os.fsencode(_digest_file(library)), _digest(unfinished).encode())
        unfinished.replace(library)


@contextlib.contextmanager
def _locked(folder: Path):
    """One process at a time compiles into the folder."""
    try:
        lock = open(folder / "lock", "w")
    except OSError as error:
        raise _no_cache(folder, error) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _no_cache(folder: Path, error: Exception) -> RuntimeError:
    why = str(error) if isinstance(error, ValueError) else f"cannot write to {folder} ({error})"
    return RuntimeError(f"load_inline(): {why}; let OFL_EXTENSION_CACHE name another folder")


def _private_folder(folder: Path) -> Path:
    """The folder under the cache, both of them private."""
    try:
        cache = _ext.make_private_folder(os.fsencode(folder.parent))
        return Path(os.fsdecode(_ext.make_private_folder(cache + b"/" + os.fsencode(folder.name))))
    except (ValueError, RuntimeError) as error:
        raise _no_cache(folder, error) from error


def _read(file: Path) -> bytes:
    return _ext.read_private(os.fsencode(file))


def _digest(library: Path) -> str:
    return hashlib.sha256(_read(library)).hexdigest()


def _digest_file(library: Path) -> Path:
    return library.with_suffix(".sha256")


def _is_whole(library: Path) -> bool:
    """Whether the library is what was built: opening half of one can end the process."""
    try:
        return _read(_digest_file(library)) == _digest(library).encode()
    except (ValueError, RuntimeError):  # not ours alone; not there
        return False


def load_inline(name: str, cpp: str, cuda: str = "", *, flags: Sequence[str] = (),
                cuda_flags: Sequence[str] = (), link_flags: Sequence[str] = (),
                verbose: bool = True) -> list[str]:  # fmt: skip
    """Compile C++ (and CUDA) source that registers ops, and load it.

    The result is kept in :func:`cache_dir` under a digest of the source, the flags, the compilers
    with their versions, and the headers and version of oneflow_lite, so that the same call in a
    later process compiles nothing. Headers of your own are not part of it: after a change to one,
    change a flag (``["-DREVISION=2"]``). The cache is a folder of mode 700 that nobody else can
    write to. A library in it that was damaged is compiled again.

    Parameters
    ----------
    name : str
        A name for files and messages.
    cpp : str
        C++17 that includes ``oneflow_lite/extension/op.h`` and has an ``OFL_EXTENSION`` block.
    cuda : str
        CUDA source that is compiled by nvcc and linked to it.
    flags, cuda_flags, link_flags : sequence of str
        More options for the C++ compiler, for nvcc, and for linking (``["-fopenmp"]``).
    verbose : bool
        Say on stderr what is being compiled.

    Returns
    -------
    list of str
        The names of the new ops; none where this process had loaded the same source before.

    Raises
    ------
    RuntimeError
        No compiler was found, the source does not compile (the message shows the lines and the
        command), the cache cannot be written or belongs to others, or the library could not be
        loaded.
    """
    if not (isinstance(name, str) and name.isidentifier()):
        raise ValueError(f"load_inline(): name must be an identifier, not {name!r}")
    for what, options in [("flags", flags), ("cuda_flags", cuda_flags), ("link_flags", link_flags)]:
        if isinstance(options, str):
            raise TypeError(f"load_inline(): {what} is a list of options, not {options!r}")
    for what, text in [("cpp", cpp), ("cuda", cuda)]:
        if not isinstance(text, str):
            raise TypeError(f"load_inline(): {what} must be source text, not {type(text).__name__}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            at = text[error.start]
            raise ValueError(
                f"load_inline(): {what} has {at!a}, half of a surrogate pair"
            ) from None
    if not cpp and not cuda:
        raise ValueError("load_inline(): there is no source")
    source = _Source(name, cpp, cuda, tuple(flags), tuple(cuda_flags), tuple(link_flags))
    folder = _private_folder(cache_dir() / f"{name}-{source.key()}")
    library = folder / f"lib{name}.so"
    if not _is_whole(library):
        with _locked(folder):
            if not _is_whole(library):
                try:
                    source.build(folder, verbose)
                except OSError as error:
                    raise _no_cache(folder, error) from error
    return load_library(library)
