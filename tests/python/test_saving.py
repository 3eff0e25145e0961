# SPDX-License-Identifier: Apache-2.0
"""How save puts a file in its place: whole or not at all, whoever else writes there."""

import errno
import fcntl
import hashlib
import io
import os
import stat
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numerics import flow

PREFIX = ".oneflow_lite-partial-"


def names(folder):
    return sorted(os.listdir(folder))


def partial_of(path, end="0123456789abcdef"):
    """A name that save could have given to the partial file of a path."""
    return path.parent / f"{PREFIX}{hashlib.sha256(path.name.encode()).hexdigest()[:16]}-{end}"


def test_savers_on_one_path_do_not_meet(tmp_path):
    """Each leaves a complete file; a process whose threads all have one pid is the worst case."""
    path, errors = tmp_path / "x", []

    def saver(n):
        try:
            for _ in range(20):
                flow.save({"x": flow.full([1000], n)}, path)
                x = flow.load(path)["x"]
                assert x.shape == (1000,) and (x == x[0]).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=saver, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and names(tmp_path) == ["x"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "a").mkdir()
    target, link, second = tmp_path / "a" / "target", tmp_path / "link", tmp_path / "second"
    link.symlink_to("a/target")
    second.symlink_to("link")
    for path, value in ((link, 1), (second, 2)):  # the first time, the link leads nowhere
        flow.save(value, path)
        assert link.is_symlink() and second.is_symlink() and not target.is_symlink()
        assert flow.load(target) == value
    assert names(tmp_path) == ["a", "link", "second"] and names(tmp_path / "a") == ["target"]
    link.unlink()
    link.symlink_to("link")
    with pytest.raises(OSError) as caught:
        flow.save(3, link)
    assert caught.value.errno == errno.ELOOP


def test_a_device_and_a_fifo_stay_what_they_are(tmp_path):
    flow.save({"x": flow.ones(3)}, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    fifo, got = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    flow.save({"x": flow.ones(3)}, fifo)
    reader.join()
    assert fifo.is_fifo() and names(tmp_path) == ["fifo"]
    assert flow.load(io.BytesIO(got[0]))["x"].tolist() == [1, 1, 1]


def test_a_file_without_a_name_is_written_in_place():
    fd = os.memfd_create("nowhere")
    try:
        flow.save([1, 2], f"/proc/self/fd/{fd}")
        flow.save([3], f"/proc/self/fd/{fd}")  # which is shorter
        with open(fd, "rb", closefd=False) as file:
            assert flow.load(file) == [3]
    finally:
        os.close(fd)


def test_modes(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    mask = os.umask(0o027)
    try:
        flow.save(1, new)
        for mode in (0o600, 0o666, 0o751, 0o2640):
            old.write_bytes(b"")
            old.chmod(mode)
            flow.save(2, old)
            assert stat.S_IMODE(old.stat().st_mode) == mode and flow.load(old) == 2
    finally:
        os.umask(mask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_the_owner_stays(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    os.chown(path, 12345, 23456)
    path.chmod(0o640)
    flow.save(1, path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o640)


AS_NOBODY = """
import os, sys
import oneflow_lite as flow
flow.save(1, os.devnull)  # imports what saving needs, which may be where others do not read
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    try:
        flow.save(1, path)
        print("saved")
    except PermissionError as error:
        print(error.errno, error.filename == path)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_what_may_not_be_written_is_not_replaced(tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if folder == tmp_path or folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(folder.stat().st_mode | 0o001)  # pytest makes them for itself alone
        elif not folder.stat().st_mode & 0o001:
            pytest.skip(f"others may not enter {folder}")
    open_, closed = tmp_path / "open", tmp_path / "closed"
    for folder, mode in ((open_, 0o777), (closed, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    ours = open_ / "ours"
    ours.write_bytes(b"as it was")
    ours.chmod(0o644)
    shared = open_ / "shared"
    shared.write_bytes(b"")
    shared.chmod(0o4666)
    said = subprocess.run([sys.executable, "-c", AS_NOBODY, ours, closed / "x", shared], text=True,
                          capture_output=True)  # fmt: skip
    assert said.stdout.splitlines() == ["13 True", "13 True", "saved"], said.stderr
    assert ours.read_bytes() == b"as it was" and names(closed) == []
    # Replaced by someone who cannot keep its owner: it no longer runs as root.
    assert stat.S_IMODE(shared.stat().st_mode) == 0o666 and shared.stat().st_uid == 65534


def test_errors_of_the_path_stay_what_they_are(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path, error in (
        (tmp_path, IsADirectoryError), (tmp_path / "none" / "x", FileNotFoundError),
        ("", FileNotFoundError), (f"{tmp_path}/none/", IsADirectoryError),
        (tmp_path / "file" / "x", NotADirectoryError), (tmp_path / ("x" * 300), OSError),
    ):  # fmt: skip
        with pytest.raises(error) as caught:
            flow.save(1, path)
        assert caught.value.filename in (str(path), path)
    for path, error in ((tmp_path, IsADirectoryError), (tmp_path / "none", FileNotFoundError)):
        with pytest.raises(error):
            flow.load(path)
    for function in (lambda file: flow.save(1, file), flow.load):
        with pytest.raises(ValueError, match="null"):
            function("a\0b")
        with pytest.raises(TypeError, match=r"\(\): file must be a path or a binary file, not int"):
            function(3)
    assert names(tmp_path) == ["file"]


def test_long_names_have_room(tmp_path):
    path = tmp_path / ("x" * 255)
    flow.save(1, path)
    assert flow.load(path) == 1 and names(tmp_path) == [path.name]


def test_relative_paths_are_those_of_the_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flow.save(1, "x")
    assert flow.load("x") == 1 and names(tmp_path) == ["x"]


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL])
def test_file_systems_without_locks_or_fsync(tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    path = tmp_path / "x"
    forgotten = partial_of(path)
    forgotten.write_bytes(b"")
    os.utime(forgotten, (0, 0))
    monkeypatch.setattr(fcntl, "flock", fail)
    monkeypatch.setattr(os, "fsync", fail)
    flow.save(1, path)
    assert flow.load(path) == 1
    assert forgotten.exists()  # without locks nobody knows whether it is still written to


# ---- What a killed process left.


def test_forgotten_partial_files_are_deleted(tmp_path):
    path = tmp_path / "x"
    old, young, held = (partial_of(path, digit * 16) for digit in "012")
    other = partial_of(tmp_path / "y")
    for file in (old, young, held, other):
        file.write_bytes(b"half of a file")
        os.utime(file, (time.time() - 3700,) * 2)
    os.utime(young, (time.time() - 3500,) * 2)
    folder = partial_of(path, "4" * 16)
    folder.mkdir()
    link = partial_of(path, "5" * 16)
    link.symlink_to(other)
    with open(held, "rb") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        flow.save(1, path)
        left = {young.name, held.name, other.name, folder.name, link.name, "x"}
        assert set(names(tmp_path)) == left
    flow.save(1, path)
    assert set(names(tmp_path)) == left - {held.name}


def test_a_file_is_locked_while_it_is_written(tmp_path, monkeypatch):
    path, seen = tmp_path / "x", []
    replace = os.replace

    def look(source, target):
        with open(source, "rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.utime(source, (0, 0))
        monkeypatch.undo()
        flow.save("other", path)  # to the same path, while this partial file looks forgotten
        seen.append(os.path.exists(source))
        replace(source, target)

    monkeypatch.setattr(os, "replace", look)
    flow.save("first", path)
    assert seen == [True] and flow.load(path) == "first" and names(tmp_path) == ["x"]


def test_it_is_on_the_disk_before_it_has_the_name(tmp_path, monkeypatch):
    path, order = tmp_path / "x", []
    fsync, replace = os.fsync, os.replace

    def synced(fd):
        order.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else os.fstat(fd).st_size)
        fsync(fd)

    def replaced(*args):
        order.append("replace")
        replace(*args)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    flow.save({"x": flow.ones(1000)}, path)
    assert order == [path.stat().st_size, "replace", "folder"]


# ---- Files that are given open.


class Stubborn(io.RawIOBase):
    """Takes a few bytes at a time, as a pipe may."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data[:1000])
        return min(1000, len(data))


def test_raw_files_and_pipes():
    raw = Stubborn()
    flow.save({"x": flow.arange(10_000)}, raw)
    assert not raw.closed
    got = flow.load(io.BytesIO(raw.data))["x"]
    np.testing.assert_array_equal(got.numpy(), np.arange(10_000))


def test_files_that_do_not_fit(tmp_path):
    closed, text = io.BytesIO(), io.StringIO()
    closed.close()
    read, write = os.pipe()
    with open(read, "rb") as pipe, open(write, "wb"), open(os.devnull, "rb") as unwritable:
        for call, error, message in (
            (lambda: flow.save(1, closed), ValueError, r"save\(\): the file is closed"),
            (lambda: flow.load(closed), ValueError, r"load\(\): the file is closed"),
            (lambda: flow.save(1, text), TypeError, "text mode"),
            (lambda: flow.load(text), TypeError, "text mode"),
            (lambda: flow.load(pipe), ValueError, r"cannot seek; give io.BytesIO\(file.read\(\)\)"),
            (lambda: flow.save(1, unwritable), ValueError, "cannot be written"),
        ):
            with pytest.raises(error, match=message):
                call()
    with open(tmp_path / "x", "w") as file, pytest.raises(TypeError, match="text mode"):
        flow.save(1, file)


def test_one_file_after_another_in_a_stream():
    stream = io.BytesIO()
    flow.save({"x": flow.ones(2)}, stream)
    flow.save({"y": flow.zeros(2)}, stream)
    assert list(flow.load(stream)) == ["y"]


class Stream:
    """In memory; a method gives what a case wants, however wrong."""

    def __init__(self, data=b"", **given):
        self.inner, self.given = io.BytesIO(data), given
        for name in ("seek", "tell"):
            setattr(self, name, getattr(self.inner, name))
        for name in given:
            setattr(self, name, lambda argument, name=name: self.call(name, argument))

    def read(self, n):
        return self.inner.read(n)

    def call(self, name, argument):
        given = self.given[name]
        return given(argument) if callable(given) else given


@pytest.mark.parametrize("given", [0, -5, 10**9, "5", 2.0, b""])
def test_a_count_of_written_bytes_that_cannot_be_is_an_error(given):
    """Not a loop without an end, nor a file that is believed to be whole."""
    with pytest.raises(OSError, match=r"save\(\): write\(\) of the file gave "):
        flow.save({"a": flow.ones(3)}, Stream(write=given))


WRONG_READS = {
    "readinto gives -1": {"readinto": -1},
    "readinto gives None": {"readinto": None},
    "readinto gives too many": {"readinto": lambda part: len(part) + 7},
    "readinto gives text": {"readinto": "x"},
    "read gives None": {"read": None},
    "read gives too many": {"read": lambda n: b"x" * (n + 5)},
    "read gives text": {"read": lambda n: "x" * n},
}


@pytest.mark.parametrize("given", WRONG_READS.values(), ids=WRONG_READS)
def test_a_count_of_read_bytes_that_cannot_be_is_an_error(given):
    whole = io.BytesIO()
    flow.save({"a": flow.ones(3)}, whole)
    (name,) = given
    with pytest.raises(OSError, match=rf"load\(\): {name}\(\) of the file gave "):
        flow.load(Stream(whole.getvalue(), **given))
    assert flow.load(Stream(whole.getvalue()))["a"].tolist() == [1.0] * 3
