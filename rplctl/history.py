"""`<datadir>/history.jsonl`: the events of the channels and the accounts that caused them, one JSON object per line.

Threads and commands write the file; `rplctl history` and `serve` read it; no decision depends on it. Invariants: the
file and `.1`, to which it is rotated, have at most LARGEST bytes each. It contains no secret. A line that a power
failure or a full disk tore is skipped, and the next line is intact. The file is not synced. If it cannot be written,
the error is only logged.
"""

from __future__ import annotations

import getpass
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from rplctl.attempts import attempts
from rplctl.durable import write_all
from rplctl.errors import RplError
from rplctl.locks import flock
from rplctl.log_file import turn_over
from rplctl.mask import masked
from rplctl.plain_file import closing_descriptor, open_plain, read_plain

HISTORY: Final = "history.jsonl"
LARGEST: Final = 1 << 20  # bytes: some thousand events
PATIENCE_S: Final = 1.0
_MOST_WORDS = 2000  # characters of one text
log = logging.getLogger(__name__)
_doer: ContextVar[str] = ContextVar("_doer", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event. Field names are columns, and keys in the file, which omits empty values."""

    Time: str  # UTC, 2026-11-24T03:00:00Z
    Channel_Name: str | None = None  # None: an event of the instance
    Event: str = ""
    Thread: str = ""  # the thread that reported the event; '' for commands
    Errno: int = 0
    Info: str = ""
    Position: str = ""
    Done_By: str = ""  # the user, and the program that ran the command; '' for threads
    Process: int = 0


def note_event(  # noqa: PLR0913 - the columns
    datadir: Path, channel: str | None, event: str, text: str, *, thread: str = "", errno: int = 0, position: str = ""
) -> None:
    """Append one line to the history. An error is logged and not raised."""
    info = masked(text)[:_MOST_WORDS]
    by = "" if thread else _doer.get() or _who()
    noted = Event(
        Time=stamp(time.time()),
        Channel_Name=channel,
        Event=event,
        Thread=thread,
        Errno=errno,
        Info=info,
        Position=position,
        Done_By=by,
        Process=os.getpid(),
    )
    filled = {name: value for name, value in asdict(noted).items() if value or (name == "Channel_Name" and value == "")}
    line = json.dumps(filled).encode() + b"\n"
    try:
        append_line(datadir / HISTORY, line)
    except (OSError, RplError) as error:
        log.warning("cannot write %s: %s", datadir / HISTORY, error)


@contextmanager
def done_by(who: str) -> Iterator[None]:
    """Record the block's events under this account, instead of the process's account."""
    token = _doer.set(who)
    try:
        yield
    finally:
        _doer.reset(token)


def append_line(path: Path, line: bytes) -> None:
    """Append one line to the history. Raises OSError if it cannot be written, and UnfitFile if it is not a regular
    file.
    """
    with closing_descriptor(open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, follow=False)) as descriptor:
        turn_over(path, LARGEST)
        if not any(flock(descriptor, wait=False) for _ in attempts(PATIENCE_S, 0.01)):  # its holder is frozen
            raise BlockingIOError("another process holds its lock")
        size = os.fstat(descriptor).st_size
        is_torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
        write_all(descriptor, b"\n" + line if is_torn else line)


def read_history(datadir: Path) -> Iterator[Event]:
    """Yield the events, the oldest first; skips lines that are not valid. Raises OSError if a file cannot be read, and
    UnfitFile if it is not a regular file.
    """
    for name in (f"{HISTORY}.1", HISTORY):
        with suppress(FileNotFoundError):
            for line in read_plain(datadir / name, follow=False).splitlines():
                if event := _event(line):
                    yield event


def stamp(at: float) -> str:
    """Return the time in UTC, in the format of the column Time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


_KINDS = {f.name: int if f.default == 0 else str for f in fields(Event)}


def _event(line: bytes) -> Event | None:
    try:
        stored = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(stored, dict) or not isinstance(stored.get("Time"), str):
        return None
    known: dict[str, Any] = {name: value for name, value in stored.items() if type(value) is _KINDS.get(name)}
    return Event(**known)


def _who() -> str:
    """Return the user and the caller: `root`, `root (sudo by anna) from bash`, `rplctl from systemd`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    through = os.environ.get("SUDO_USER", "")
    caller = ""
    with suppress(OSError):  # no /proc, or another user's process
        caller = Path(f"/proc/{os.getppid()}/comm").read_text(errors="replace").strip()
    return f"{user}{f' (sudo by {through})' if through else ''}{f' from {caller}' if caller else ''}"
