# SPDX-License-Identifier: Apache-2.0
"""The caches of compiled code: whose they are, and that nothing damaged is run from them."""

import os
import shutil
import stat
import warnings
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")
from oneflow_lite import _oneflow_lite as _ext  # noqa: E402
from oneflow_lite.utils import extension  # noqa: E402


def make_private(folder):
    return Path(os.fsdecode(_ext.make_private_folder(os.fsencode(folder))))


def read_private(file):
    return _ext.read_private(os.fsencode(file))


def write_whole(file, content):
    _ext.write_whole(os.fsencode(file), content)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "new" / "cache"
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(folder))
    return folder


def test_folders_are_private(tmp_path):
    before = os.umask(0)
    try:
        folder = make_private(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [mode(p) for p in (folder, folder.parent, folder.parent.parent)] == [0o700] * 3
    assert make_private(folder) == folder
    own = tmp_path / "own"
    own.mkdir(mode=0o755)  # as earlier versions made them
    assert mode(make_private(own)) == 0o700


@pytest.mark.parametrize("bits", [0o720, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path, bits):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(bits)
    with pytest.raises(ValueError, match=f"may be written by others .its mode is {bits:o}"):
        make_private(tmp_path / "open")
    assert mode(tmp_path / "open") == bits


def test_a_folder_within_one_that_everybody_may_write_to_is_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ValueError, match="may be written by everybody"):
        make_private(tmp_path / "open" / "cache")
    (tmp_path / "open").chmod(0o1777)  # as /tmp is: nobody can take away what is another's
    make_private(tmp_path / "open" / "cache")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_another_users_folder_and_files_are_refused(tmp_path):
    folder = make_private(tmp_path / "cache")
    write_whole(folder / "file", b"x")
    for path, call in [(folder / "file", read_private), (folder, make_private)]:
        os.chown(path, 12345, -1)
        with pytest.raises(ValueError, match=f"{path} belongs to user 12345, not to 0"):
            call(path)
    with pytest.raises(ValueError, match=f"{folder}, in which .*, belongs to user 12345"):
        make_private(folder / "below")


def test_names_of_any_bytes_are_taken(tmp_path):
    folder = make_private(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff \xc3\xa9")))
    write_whole(folder / "\udcfe", b"\0\1")
    assert read_private(folder / "\udcfe") == b"\0\1" and len(os.listdir(folder)) == 1


def test_only_plain_files_of_our_own_are_read(tmp_path):
    folder = make_private(tmp_path / "cache")
    write_whole(folder / "file", b"content")
    assert read_private(folder / "file") == b"content"
    assert mode(folder / "file") == 0o600 and os.listdir(folder) == ["file"]
    os.symlink(folder / "file", folder / "link")
    os.mkfifo(folder / "fifo")
    (folder / "open").write_bytes(b"x")
    (folder / "open").chmod(0o666)
    for name, message in [("link", "symbolic link"), ("fifo", "no regular file"),
                          ("open", "may be written by others")]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            read_private(folder / name)
    with pytest.raises(RuntimeError, match="missing: No such file or directory"):
        read_private(folder / "missing")


SOURCE = "#include <oneflow_lite/extension/op.h>\nOFL_EXTENSION {}\n"
needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")


@pytest.fixture
def builds(monkeypatch):
    """The names of what was compiled, in order."""
    built, build = [], extension._Source.build

    def noted(source, folder, verbose):
        built.append(source.name)
        build(source, folder, verbose)

    monkeypatch.setattr(extension._Source, "build", noted)
    return built


@needs_compiler
@pytest.mark.slow
def test_a_damaged_library_is_built_again(cache, builds):
    load = lambda: flow.utils.load_inline("c", SOURCE, flags=["-O0"], verbose=False)  # noqa: E731
    load()
    load()
    (library,) = cache.glob("c-*/libc.so")
    assert builds == ["c"] and mode(library) & 0o077 == 0
    assert [mode(p) for p in (cache, library.parent)] == [0o700] * 2
    assert len(library.parent.name) == len("c-") + 64
    damaged = bytearray(library.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    library.unlink()  # the old one is in use
    library.write_bytes(damaged)
    load()
    assert builds == ["c", "c"] and extension._is_whole(library)
    library.with_suffix(".sha256").write_text("x")
    load()
    library.chmod(0o722)  # anybody may have written it since
    load()
    assert builds == ["c"] * 4


@needs_compiler
def test_the_cache_of_another_is_refused(cache, builds):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(RuntimeError, match="load_inline.*may be written by others.*OFL_EXTENSION_"):
        flow.utils.load_inline("c", SOURCE, verbose=False)
    assert builds == [] and list(cache.iterdir()) == []


@needs_compiler
def test_the_digest_is_over_all_that_names_the_library(monkeypatch, tmp_path):
    def key(**changes):
        given = {"name": "c", "cpp": SOURCE, "cuda": "", "flags": (), "cuda_flags": (),
                 "link_flags": ()} | changes  # fmt: skip
        return extension._Source(**given).key()

    keys = [key(), key(name="d"), key(cpp=SOURCE + " "), key(flags=("-O1",)),
            key(cuda_flags=("-O1",)), key(link_flags=("-lm",))]  # fmt: skip
    monkeypatch.setattr(extension, "_version_of", lambda compiler: "g++ 99")
    keys.append(key())
    monkeypatch.setattr(extension, "_headers", lambda: "other headers")
    keys.append(key())
    monkeypatch.setenv("CPATH", str(tmp_path))
    keys.append(key())
    assert len(set(keys)) == len(keys) and all(len(k) == 64 for k in keys)


# What kernels are kept by, and that damaged ones are not believed: tests/cpp/kernel_cache_test.cpp.


KERNEL = "__global__ void Kernel() {}"


@pytest.fixture
def compile_again():
    """A compilation as another process would ask for it."""
    if problem := _ext.compiler_problem():
        pytest.skip(problem)

    def compile_(source=KERNEL, architecture=90):
        _ext.forget_kernels()
        return _ext.compile_kernel(source, "Kernel", architecture)

    yield compile_
    _ext.forget_kernels()


def test_kernels_are_kept_on_disk(cache, compile_again):
    before = _ext.kernel_compilations()
    kernel = compile_again()
    assert kernel.image[:4] == b"\x7fELF" and kernel.name == "_Z6Kernelv"
    assert compile_again().image == kernel.image
    assert _ext.kernel_compilations() == before + 1
    (file,) = (cache / "fused").iterdir()
    assert [mode(p) for p in (cache, cache / "fused")] == [0o700] * 2 and mode(file) == 0o600
    assert file.stem == kernel.key and len(kernel.key) == 64
    keys = {kernel.key, compile_again(KERNEL + " ").key, compile_again(architecture=80).key}
    assert len(keys) == 3


def test_a_kernel_cache_that_others_may_write_to_is_not_used(cache, compile_again):
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="fuse: .*may be written by others.*compiled anew"):
        compile_again()
    assert list(cache.iterdir()) == []


def test_no_kernel_cache_is_no_error(monkeypatch, compile_again, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path / "file" / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_again().image[:4] == b"\x7fELF"
