"""Read small files as a whole, and reject every other kind of file.

Invariant: a file in an instance folder or in a backup cannot make a command hang or fill its memory. The command ends
with an error that names the file. Such files are a FIFO, a device, a folder, a file of gigabytes, or JSON that is
nested too deep. Every read of rplctl's own files uses this module.
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
    """The error for a file that exists but has the wrong kind or size; exit code 1."""


def read_plain(path: Path, largest: int = LARGEST, *, follow: bool = True) -> bytes:
    """Return the whole file. Raises OSError from the system; UnfitFile if the file is not regular, or too large.

    `follow`: accept symbolic links, as a Kubernetes ConfigMap needs them.
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
    """Read a file as `read_plain` does; b'' if there is no file."""
    try:
        return read_plain(path, largest, follow=follow)
    except FileNotFoundError:
        return b""


def size_of(path: Path) -> int:
    """Return the size of the file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def open_plain(path: Path, flags: int = os.O_RDONLY, *, follow: bool = True) -> int:
    """Return a descriptor of a regular file; never waits for another process. Raises OSError if it cannot be opened,
    and UnfitFile if it is not a regular file.
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
        refuse_unfit(path)  # a FIFO without a reader, a socket, a folder to write to: its kind is the better reason
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
    """Raise UnfitFile if the path is not a regular file; a missing file is accepted."""
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
    """Return the JSON of a file that may be lost; None if it is missing or damaged. Raises UnfitFile if it is not a
    regular file.
    """
    try:
        return parsed_json(read_plain(path))
    except (FileNotFoundError, ValueError):
        return None


def parsed_json(data: bytes) -> Any:
    """Parse JSON. Raises ValueError if the data are not valid JSON, or nested too deep."""
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None
