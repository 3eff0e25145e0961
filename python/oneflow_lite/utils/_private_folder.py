# SPDX-License-Identifier: Apache-2.0
"""Folders for what was compiled: whoever can write there has code run by all who load from there.

So a cache is a folder of mode 700 that belongs to the user, and its files are read only where they
are the user's own and nobody else could have written them.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


class NotPrivate(PermissionError):
    """Another user owns a folder or a file, or may write to it; the message says which."""


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def _refuse_foreign(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        raise NotPrivate(f"{path} may be written by others (its mode is {mode:o}); what is in it "
                         "may be theirs: remove it")  # fmt: skip


def _refuse_open_parents(folder: Path) -> None:
    """In a folder that everybody may write to, anybody could put another one in its place."""
    for parent in folder.parents:
        status = parent.stat()
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise NotPrivate(f"{parent}, in which {folder} lies, may be written by everybody")
        if status.st_uid not in (0, os.geteuid()) and status.st_mode & stat.S_IWUSR:
            raise NotPrivate(f"{parent}, in which {folder} lies, belongs to user {status.st_uid}")


def make_private(folder: Path) -> Path:
    """Make the folder, of mode 700, where it is not there, and check that nobody else writes to it.

    Returns
    -------
    Path
        The folder without symbolic links.

    Raises
    ------
    NotPrivate
        It, or what it lies in, belongs to or may be changed by another user.
    OSError
        It cannot be made, or is no folder.
    """
    folder = folder.absolute()
    missing = []
    for path in (folder, *folder.parents):
        if path.exists():
            break
        missing.append(path)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process made it
            path.mkdir(mode=0o700)
    folder = folder.resolve()
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(20, "Not a directory", str(folder))
    _refuse_foreign(folder, status)
    _refuse_open_parents(folder)
    if stat.S_IMODE(status.st_mode) != 0o700:  # others could look into it
        folder.chmod(0o700)
    return folder


def read_private(file: Path) -> bytes:
    """The content of a regular file of the user's own.

    Raises
    ------
    NotPrivate
        It is a symbolic link or no file, or another user owns it or may write to it.
    OSError
        It cannot be read.
    """
    try:
        number = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if file.is_symlink():
            raise NotPrivate(f"{file} is a symbolic link") from error
        raise
    with open(number, "rb") as opened:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            raise NotPrivate(f"{file} is no regular file")
        _refuse_foreign(file, status)
        return opened.read()


def write_whole(file: Path, content: bytes) -> None:
    """Put a file of mode 600 with that content in place, at once: nobody sees a part of it."""
    number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(number, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(number)
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
