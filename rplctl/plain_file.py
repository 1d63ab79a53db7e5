"""Reads small files as a whole, and rejects every other kind of file.

Invariant: no file in an instance folder or in a backup can make a command hang or fill its memory. A FIFO, a device or
a file of gigabytes could do this; rplctl reports an error that names the file. It also rejects a folder, and JSON that
is nested too deep. Every read of rplctl's own files uses this module.
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

LARGEST = 64 << 20  # bytes; far more than any file that is read as a whole
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class UnfitFile(RplError):
    """The error for a file that exists, but is not a regular file or is too large. The exit code is 1."""


def read_plain(path: Path, largest: int = LARGEST, *, follow: bool = True) -> bytes:
    """Return the whole content of a file.

    `follow`: True if the path may be a symbolic link, for example to the files of a Kubernetes ConfigMap. Raises
    OSError if the file cannot be read. Raises UnfitFile if it is not regular, or has more than `largest` bytes.
    """
    descriptor = open_plain(path, follow=follow)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise UnfitFile(
            f"{path}: larger than {largest} bytes",
            hint=f"move the file to another folder, then try again; to see its size, run: ls -l {path}",
        )
    return data


def read_if_there(path: Path, largest: int = LARGEST, *, follow: bool = True) -> bytes:
    """Return the whole content of a file. Return b'' if the file does not exist.

    The parameters and the other errors are those of `read_plain`.
    """
    try:
        return read_plain(path, largest, follow=follow)
    except FileNotFoundError:
        return b""


def size_of(path: Path) -> int:
    """Return the size of the file. Return 0 if the file does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def open_plain(path: Path, flags: int = os.O_RDONLY, *, follow: bool = True) -> int:
    """Open a regular file without waiting for another process, and return its descriptor.

    `follow`: as in `read_plain`. Raises OSError if the file cannot be opened, and UnfitFile if it is not a regular
    file.
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        if not follow and path.is_symlink():
            raise UnfitFile(
                f"{path} is a symbolic link, not a file",
                hint=f"replace the link by the file that it names, then try again; to see this file, run: ls -l {path}",
            ) from None
        refuse_unfit(path)  # for a FIFO, a socket or a folder, UnfitFile explains the reason better than the OSError
        raise
    try:
        refuse_unfit(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def closing_descriptor(descriptor: int) -> Iterator[int]:
    """Close the descriptor at the end of the block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def refuse_unfit(path: Path, found: os.stat_result | None = None) -> None:
    """Raise UnfitFile if the path is not a regular file. Accept a path that does not exist.

    `found`: the state of the file, if the caller has it already.
    """
    if found is None:
        try:
            found = path.lstat()
        except OSError:
            return
    for is_kind, words in _KINDS:
        if is_kind(found.st_mode):
            raise UnfitFile(
                f"{path} is {words}, not a file",
                hint=f"move it to another folder, then try again; to see it, run: ls -l {path}",
            )


def stored_json(path: Path) -> Any:
    """Return the parsed JSON of a file.

    Return None if the file is missing or damaged, because rplctl can do without it. Raises OSError if the file cannot
    be read, and UnfitFile if it is not a regular file.
    """
    try:
        return parsed_json(read_plain(path))
    except (FileNotFoundError, ValueError):
        return None


def parsed_json(data: bytes) -> Any:
    """Return the parsed JSON. Raises ValueError if the data are not valid JSON, or are nested too deep."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
