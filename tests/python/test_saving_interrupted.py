# SPDX-License-Identifier: Apache-2.0
"""What ends a save in its midst: an error, a signal, a full disk. One whole file stays."""

import errno
import gc
import io
import os
import resource
import signal
import subprocess
import sys

import pytest
from numerics import flow


def names(folder):
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("place", ["fsync", "replace", "write"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(errno.EIO, "broken")])
def test_an_error_leaves_the_old_file_alone(tmp_path, monkeypatch, place, error):
    path = tmp_path / "x"
    flow.save("old", path)

    def fail(*_):
        raise error

    if place == "write":
        monkeypatch.setattr("oneflow_lite._npy.parts", fail)
    else:
        monkeypatch.setattr(os, place, fail)
    with pytest.raises(error if isinstance(error, type) else OSError):
        flow.save({"x": flow.ones(100_000)}, path)
    monkeypatch.undo()
    assert names(tmp_path) == ["x"] and flow.load(path) == "old"


def test_a_signal_in_the_midst(tmp_path):
    path, arrived = tmp_path / "x", []

    def interrupt(number, frame):
        arrived.append(number)
        raise KeyboardInterrupt

    flow.save("old", path)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for n in range(1, 30):
            arrived.clear()
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, n * 0.0005)
                while not arrived:
                    flow.save({"x": flow.ones(1 << 20)}, path)
                raise KeyboardInterrupt  # it arrived in a destructor, where Python drops it
            left = names(tmp_path)
            assert left == ["x"], (n, left)
            flow.load(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def in_destructor(frame):
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def interrupted_at(n, action):
    """Whether a KeyboardInterrupt before the n-th line of Python in the action ended it.

    It did not where the action has fewer lines. Those of destructors do not count, and nothing is
    collected: Python drops what they raise.
    """
    left, before = n, sys.gettrace()

    def trace(frame, event, _):
        nonlocal left
        if in_destructor(frame):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt  # after which Python traces no more
        return trace

    gc.disable()
    sys.settrace(trace)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
        gc.enable()
    assert left >= 0, f"the interrupt before line {n} was lost"
    return False


# A ZipFile that was interrupted in its __init__ complains in its destructor, and of nothing else.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_before_any_line_reaches_the_caller(tmp_path):
    path = tmp_path / "x"
    flow.save("old", path)
    lines = 0
    while interrupted_at(lines, lambda: flow.save({"x": flow.ones(3)}, path)):
        assert names(tmp_path) == ["x"], lines
        flow.load(path)
        lines += 1
    assert lines > 200


def test_an_interrupted_save_writes_no_more_to_an_open_file():
    flow.save(1, io.BytesIO())  # what the first save imports is there
    streams, sizes = [io.BytesIO()], []
    while interrupted_at(len(sizes), lambda: flow.save({"x": flow.ones(3)}, streams[-1])):
        sizes.append(len(streams[-1].getvalue()))
        streams.append(io.BytesIO())
    gc.collect()
    whole = streams.pop()
    assert len(sizes) > 150 and [len(stream.getvalue()) for stream in streams] == sizes
    assert flow.load(io.BytesIO(whole.getvalue()))["x"].tolist() == [1, 1, 1]


def test_a_full_disk(tmp_path):
    """Of RLIMIT_FSIZE, which fails as a full disk does: in the midst of a write."""
    path = tmp_path / "x"
    flow.save("old", path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for most in (100, 5000, 1 << 20):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
        try:
            with pytest.raises(OSError) as caught:
                flow.save({"x": flow.ones(1 << 20)}, path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.errno == errno.EFBIG
        assert names(tmp_path) == ["x"] and flow.load(path) == "old"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
def test_a_full_file_system(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        path = folder / "x"
        flow.save("old", path)
        with pytest.raises(OSError) as caught:
            flow.save({"x": flow.ones(1 << 20)}, path)
        assert caught.value.errno == errno.ENOSPC
        assert names(folder) == ["x"] and flow.load(path) == "old"
    finally:
        subprocess.run(["umount", str(folder)], check=True)
