"""Reading small files whole, whatever stands in their place.

Invariant: nothing that a name in an instance folder or in a backup stands for can make a command hang, fill its memory
or end it with anything but an error that names the file: a FIFO, a device, a folder, a file of gigabytes, JSON that is
nested too deep. Whoever reads a file of ours reads it here.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rplctl.errors import RplError

LARGEST = 64 << 20  # bytes; no file that is read whole comes near it
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnfitFile(RplError):
    """It is there and is nothing that can be read as what it should be; exit code 1."""


def read_plain(path: Path, largest: int = LARGEST, *, follow: bool = True) -> bytes:
    """All of the file. Raises OSError when the system refuses it, UnfitFile when it is no regular file or too large.

    `follow`: symbolic links are, as a Kubernetes ConfigMap needs it.
    """
    descriptor = open_plain(path, follow=follow)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise UnfitFile(f"{path}: larger than {largest} bytes", hint=f"ls -l {path}; move it away")
    return data


def read_if_there(path: Path, largest: int = LARGEST, *, follow: bool = True) -> bytes:
    """Read a file like `read_plain`; b'' if there is no file."""
    try:
        return read_plain(path, largest, follow=follow)
    except FileNotFoundError:
        return b""


def size_of(path: Path) -> int:
    """0 where there is no file, or no longer one."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def open_plain(path: Path, flags: int = os.O_RDONLY, *, follow: bool = True) -> int:
    """A descriptor of a regular file; never waits for somebody at the other end. Raises OSError, UnfitFile."""
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        if not follow and path.is_symlink():
            raise UnfitFile(f"{path} is a symbolic link, not a file", hint=f"ls -l {path}") from None
        refuse_unfit(path)  # a FIFO that nobody reads, a socket, a folder to write to: what it is says more
        raise
    try:
        refuse_unfit(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def closing_descriptor(descriptor: int) -> Iterator[int]:
    """It is closed when the block ends."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_unfit(path: Path, found: os.stat_result | None = None) -> None:
    """Raises UnfitFile for what is no regular file; none at all is fine."""
    if found is None:
        try:
            found = path.lstat()
        except OSError:
            return
    for is_kind, words in _KINDS:
        if is_kind(found.st_mode):
            raise UnfitFile(f"{path} is {words}, not a file", hint=f"ls -l {path}; move it away, then try again")


def stored_json(path: Path) -> Any:
    """None for what is not there, and for what is cut or junk: of files that may be lost. Raises UnfitFile."""
    try:
        return parsed_json(read_plain(path))
    except (FileNotFoundError, ValueError):
        return None


def parsed_json(data: bytes) -> Any:
    """Raises ValueError for all that is no JSON we can hold."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
