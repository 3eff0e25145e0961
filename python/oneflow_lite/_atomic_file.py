# SPDX-License-Identifier: Apache-2.0
"""A file that is replaced as a whole: whoever opens the path sees the old content or the new.

What is written goes to a partial file in the same folder, which takes the path's place when it is
complete and on the disk. Its name is random, so that any number of processes and threads, in any
number of containers, can write to one path at once: each writes a file of its own, and the last to
end is what stays. While it is written it is locked (flock). A process that was killed leaves its
partial file behind; a later write to the same path deletes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from typing import IO

PREFIX = ".oneflow_lite-partial-"
_FORGOTTEN = 3600  # seconds since the last write, after which an unlocked partial file is nobody's
_BUFFER = 1 << 18
# What says that a file system has no locks, or cannot be told to write to the disk.
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK,
                errno.EROFS, errno.EBADF}  # fmt: skip


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """A binary file that becomes ``path`` when the block ends, and vanishes where it raises.

    Parameters
    ----------
    path : path
        Of a symbolic link, the file that it names is replaced. A device or FIFO is written to as
        it is. An existing file's mode, and as far as is allowed its owner, go to the new one;
        other hard links keep the old content.

    Raises
    ------
    OSError
        As ``open`` raises it: IsADirectoryError, PermissionError (the file or its folder may not
        be written), FileNotFoundError (the folder is not there), or no space left. The path is
        what it was.
    """
    name = os.fsdecode(os.fspath(path))
    try:
        old = os.stat(name)
    except FileNotFoundError:
        old = None
    target = os.path.join(os.getcwd(), os.path.realpath(name) if os.path.islink(name) else name)
    if old is not None and not _can_be_replaced(old, target):
        with open(os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC), "wb") as stream:
            yield stream
        return
    if old is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
    folder, base = os.path.split(target)
    if base in ("", ".", ".."):
        number = errno.EISDIR if name else errno.ENOENT
        raise OSError(number, os.strerror(number), name)
    prefix = PREFIX + hashlib.sha256(os.fsencode(base)).hexdigest()[:16] + "-"
    delete_forgotten(folder, prefix)
    partial = os.path.join(folder, prefix + os.urandom(8).hex())
    stream = None
    try:
        try:
            stream = _create(partial, old)
        except OSError as error:  # of the path that the caller knows
            raise OSError(error.errno, error.strerror, name) from None
        yield stream
        stream.flush()
        _to_disk(stream.fileno())
        os.replace(partial, target)
        stream.close()
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(partial)
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # what is in its buffer is not wanted
                stream.close()
        raise
    _folder_to_disk(folder)


def _can_be_replaced(old: os.stat_result, target: str) -> bool:
    """A regular file with a name; not what a link in /proc leads to, which may have none."""
    return stat.S_ISREG(old.st_mode) and os.path.lexists(target)


def _create(partial: str, old: os.stat_result | None) -> IO[bytes]:
    """The partial file, new, locked, with the owner and mode that the path has."""
    mode = 0o666 if old is None else 0o600  # 0o666 less the umask

    def opener(path: str, flags: int) -> int:
        return os.open(path, flags | os.O_NOFOLLOW, mode)

    stream = open(partial, "xb", _BUFFER, opener=opener)  # who owns the descriptor closes it
    try:
        _lock(stream.fileno())
        if old is not None:
            _take_over(stream.fileno(), old)
        return stream
    except BaseException:
        stream.close()
        raise


def _take_over(fd: int, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode)
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(fd, old.st_uid, old.st_gid)
        except OSError:
            mode &= 0o777  # what is another's now does not run as its owner
            with contextlib.suppress(OSError):
                os.fchown(fd, -1, old.st_gid)
    with contextlib.suppress(PermissionError):  # file systems without modes
        os.fchmod(fd, mode)


def _lock(fd: int) -> bool:
    """Whether the lock is had; it goes with the last descriptor, so with the process."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def delete_forgotten(folder: str, prefix: str = PREFIX) -> None:
    """Deletes what killed processes left: of one path, or in the whole folder.

    A partial file is theirs where nobody holds its lock and nobody wrote to it for an hour: on
    file systems where locks are not seen by every machine, the hour alone protects it, and where
    there are none, nothing is deleted.
    """
    try:
        with os.scandir(folder or ".") as entries:
            found = [entry.path for entry in entries if entry.name.startswith(prefix)]
    except OSError:
        return  # whatever is wrong with the folder, writing will say
    for path in found:
        with contextlib.suppress(OSError):
            _delete_if_forgotten(path)


def _delete_if_forgotten(path: str) -> None:
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        own, there = os.fstat(fd), os.lstat(path)
        if time.time() - own.st_mtime > _FORGOTTEN and os.path.samestat(own, there) and _lock(fd):
            os.remove(path)
    finally:
        os.close(fd)


def _to_disk(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise


def _folder_to_disk(folder: str) -> None:
    """So that the new name outlives a loss of power, where the folder can be opened for it."""
    try:
        fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        _to_disk(fd)
    finally:
        os.close(fd)
