"""The history of an instance, in the file `<datadir>/history.jsonl`: each line is a JSON object about one event.

An event is for example a start, a stop, an error or a changed option; its line names the user who caused it. Threads
and commands write the file, and `rplctl history` and `serve` show it. No decision of rplctl depends on the file.
Invariants: the file contains no secret. A large file is moved to `history.jsonl.1`; each of the two files has at most
LARGEST bytes. If a power failure or a full disk has torn a line, readers skip this line, and the next line is intact.
The file is not synced. If the file cannot be written, the error is only logged.
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
    """One event. The names of the fields are the columns of `rplctl history`, and the keys in the file.

    The file omits empty values.
    """

    Time: str  # UTC, 2026-11-24T03:00:00Z
    Channel_Name: str | None = None  # None for an event of the whole instance
    Event: str = ""
    Thread: str = ""  # the thread that reported the event; '' for commands
    Errno: int = 0
    Info: str = ""
    Position: str = ""
    Done_By: str = ""  # the user, and the program that started the command; '' for threads
    Process: int = 0


def note_event(  # noqa: PLR0913 - the columns
    datadir: Path, channel: str | None, event: str, text: str, *, thread: str = "", errno: int = 0, position: str = ""
) -> None:
    """Append an event to the history. If the file cannot be written, the error is logged and not raised."""
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
    """Record the events of the block under the account `who`, instead of the user of the process."""
    token = _doer.set(who)
    try:
        yield
    finally:
        _doer.reset(token)


def append_line(path: Path, line: bytes) -> None:
    """Append one line, which ends in a newline, to the history file at `path`.

    Raises OSError if the file cannot be written or stays locked, and UnfitFile if the file is not a regular file.
    """
    with closing_descriptor(open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, follow=False)) as descriptor:
        turn_over(path, LARGEST)
        if not any(flock(descriptor, wait=False) for _ in attempts(PATIENCE_S, 0.01)):  # its holder is frozen
            raise BlockingIOError("another process holds its lock")
        size = os.fstat(descriptor).st_size
        is_torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
        write_all(descriptor, b"\n" + line if is_torn else line)


def read_history(datadir: Path) -> Iterator[Event]:
    """Yield the events of the instance, the oldest first, without lines that are not valid.

    Raises OSError if a file cannot be read, and UnfitFile if it is not a regular file.
    """
    for name in (f"{HISTORY}.1", HISTORY):
        with suppress(FileNotFoundError):
            for line in read_plain(datadir / name, follow=False).splitlines():
                if event := _event(line):
                    yield event


def stamp(at: float) -> str:
    """Return a Unix time as text in UTC, in the format of the column Time: `2026-11-24T03:00:00Z`."""
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
    """Return the user of this process and the program that started it, for the column Done_By.

    Examples: `root`, `root (sudo by anna) from bash`, `rplctl from systemd`.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    through = os.environ.get("SUDO_USER", "")
    caller = ""
    with suppress(OSError):  # no /proc, or another user's process
        caller = Path(f"/proc/{os.getppid()}/comm").read_text(errors="replace").strip()
    return f"{user}{f' (sudo by {through})' if through else ''}{f' from {caller}' if caller else ''}"
