"""The logs of receivers and appliers: `run/CHAN/ROLE.log`, and `ROLE.log.1` with older lines.

Invariant: each message of rplctl is one line without control characters and secrets, whoever wrote its parts. A
traceback is indented below this line.
Each of the two files has at most LARGEST bytes, plus the lines of a few seconds. A log that is larger is copied to `.1`
and truncated while its process runs. It is not renamed, because Spark's Java and Python processes append to the same
open file. Lines that they write between the copy and the truncation may be lost.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rplctl.durable import replace_file
from rplctl.locks import flock
from rplctl.mask import masked
from rplctl.plain_file import closing_descriptor

LARGEST = 16 << 20  # bytes
LOOK_SECONDS = 5.0
_PIECE = 1 << 20
_here = threading.local()  # its attribute `channel` is the channel of this thread
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


class LineFormatter(logging.Formatter):
    """The formatter of rplctl's logs, which masks secrets and control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return _one_line(masked(super().formatMessage(record)))

    def formatException(self, ei: object) -> str:
        text = masked(super().formatException(ei))  # type: ignore[arg-type]
        return "\n".join(f"  {_one_line(line)}" for line in text.splitlines())


def _one_line(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _NAMED.get(c) or f"\\u{ord(c):04x}" for c in text)


def log_on_stderr(form: str, path: Path) -> None:
    """Log on stderr, in the format `form` of Python's logging.

    If stderr is the log file at `path`, limit the size of this file from now on.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        is_our_log = os.path.samestat(os.fstat(2), path.stat())
    except OSError:
        return
    if is_our_log:
        keep_small([path])


def log_by_thread(role: str, paths: Mapping[str, Path]) -> None:
    """Log each line to the log of its channel, in a process that serves several channels.

    A line belongs to the channel of `logging_as`; all other lines go to stderr. `paths`: the log of each channel.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    for name, path in [(None, None), *paths.items()]:
        handler = logging.StreamHandler() if path is None else logging.FileHandler(path)
        whose = role if name is None else f"{role} '{name}'"
        handler.setFormatter(LineFormatter(f"%(asctime)s %(levelname)s {whose}: %(message)s"))
        handler.addFilter(_only(name))
        root.addHandler(handler)
    keep_small(list(paths.values()))


@contextmanager
def logging_as(channel: str) -> Iterator[None]:
    """Send the lines that this thread logs in the block to the channel's log (see `log_by_thread`)."""
    _here.channel = channel
    try:
        yield
    finally:
        del _here.channel


def _only(channel: str | None) -> Callable[[logging.LogRecord], bool]:
    return lambda _: getattr(_here, "channel", None) == channel


def keep_small(paths: list[Path]) -> None:
    """Start a thread that limits the size of these logs until the process ends."""

    def look() -> None:
        while not asleep.wait(LOOK_SECONDS):
            for path in paths:
                try:
                    turn_over(path)
                except OSError:  # a full disk: a log must not stop the process
                    continue

    asleep = threading.Event()  # never set
    threading.Thread(target=look, name="rplctl-log", daemon=True).start()


def turn_over(path: Path, largest: int = LARGEST) -> bool:
    """Move the content of a log that exceeds `largest` bytes to the file `.1`, and return True.

    Return False if the log is smaller, or if another process moves it at this moment. Raises OSError if a file cannot
    be read or written.
    """
    with closing_descriptor(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)) as descriptor:
        if os.fstat(descriptor).st_size <= largest or not flock(descriptor, wait=False):
            return False
        size = os.fstat(descriptor).st_size
        if size <= largest:
            return False
        replace_file(path.with_name(f"{path.name}.1"), _end_of(descriptor, size, largest), durable=False)
        os.ftruncate(descriptor, 0)
        return True


def _end_of(descriptor: int, size: int, largest: int) -> bytes:
    """Return the last complete lines of the file, at most `largest` bytes if the file does not grow meanwhile."""
    pieces, at = [], max(0, size - largest)
    while piece := os.pread(descriptor, _PIECE, at):
        pieces.append(piece)
        at += len(piece)
    data = b"".join(pieces)
    return data[data.find(b"\n") + 1 :] if size > largest else data
