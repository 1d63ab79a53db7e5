"""A replication channel: its name, the files that belong to it, and the locks that say who works on it.

Layout under the instance folder (`--datadir`), as a MySQL/MariaDB server lays out its own:

    master.info, relay-log.info                 repositories of the default channel (FILE)
    master-CHAN.info, relay-log-CHAN.info       of a named channel; CHAN is lower-cased and filename-encoded (@ + 4 hex)
    relay-bin[-CHAN].000001 …, relay-bin[-CHAN].index
    run/CHAN/                                   locks, status files, thread logs, spool/ (`run/@` for the default
    channel)

Liveness is the lock, never the pid: a killed process loses its flock at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rplctl import mysql_errors as er
from rplctl.errors import LockBusy, UsageError, file_error, file_errors
from rplctl.locks import FileLock, flock
from rplctl.plain_file import UnfitFile, closing_descriptor, open_plain, read_plain

MAX_CHANNEL_NAME = 64
MAX_CHANNELS = 256
STOP_NOW = "now"
LOCK_PATIENCE_SECONDS = 0.5
OWED_SECONDS = 5.0  # between a verb's file and its signal, at most
_PID_DIGITS = 11


class _InRunFolder:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, channel: Channel, _: type[Channel]) -> Path:
        return channel.run_folder / self._name


@dataclass(frozen=True, slots=True)
class Channel:
    name: str  # '' is the default channel
    datadir: Path

    spool_folder = _InRunFolder("spool")
    clone_folder = _InRunFolder("clone")  # what waits to be loaded of a copy (clone/folder.py); all may be lost
    # what the operator asked of a copy last (clone/throttle.py); when it changes the ledger is read again
    clone_orders_path = _InRunFolder("clone.json")
    verify_folder = _InRunFolder("verify")  # what a verify has in hand (verify/progress.py); all may be lost
    verify_source_folder = _InRunFolder("verify-source")  # a copy of a stopped source, while a verify reads it
    verify_report_path = _InRunFolder("verify.report")  # the last whole one (verify/report_file.py)
    # triggers, views and other objects of the source that the target lacks (skipped_objects.py)
    skipped_objects_path = _InRunFolder("skipped-objects.jsonl")
    source_zones_path = _InRunFolder("source-zones.json")  # the source's SYSTEM time zone (source_zones.py)
    undo_folder = _InRunFolder("undo")  # SQL that takes back what a repair changed (verify/undo.py); the operator's

    @property
    def suffix(self) -> str:
        return f"-{encode_channel_name(self.name)}" if self.name else ""

    @property
    def master_info_path(self) -> Path:
        return self.datadir / f"master{self.suffix}.info"

    @property
    def relay_log_info_path(self) -> Path:
        return self.datadir / f"relay-log{self.suffix}.info"

    @property
    def relay_log_base(self) -> str:
        return f"relay-bin{self.suffix}"

    @property
    def relay_log_index_path(self) -> Path:
        return self.datadir / f"{self.relay_log_base}.index"

    @property
    def run_folder(self) -> Path:
        return _run_folder(self.datadir, self.name)

    @property
    def clone_plan(self) -> Path:
        """There as long as tables are to be copied."""
        return self.clone_folder / "plan.json"

    def lock_path(self, role: str) -> Path:
        """`receiver`, `applier` or `admin`: one holder each."""
        return self.run_folder / f"{role}.lock"

    def status_path(self, role: str) -> Path:
        return self.run_folder / f"{role}.status.json"

    def asked_path(self, role: str, what: str = "stop") -> Path:
        """Names the process whose thread of this channel, and of no other that it serves, a signal is for; behind the
        pid STOP_NOW when nobody waits for it any more. `what`: `stop` or `flush`.
        """
        return self.run_folder / f"{role}.{what}"

    @property
    def stop_path(self) -> Path:
        return self.asked_path("applier")

    def incident_path(self, role: str) -> Path:
        """Return the file that describes the thread's problem (incident.py), from its error until it works again. The
        file may be lost.
        """
        return self.run_folder / f"{role}.incident.json"

    def log_path(self, role: str) -> Path:
        return self.run_folder / f"{role}.log"


@cache
def _run_folder(datadir: Path, name: str) -> Path:
    return datadir / "run" / (encode_channel_name(name) or "@")


@cache
def encode_channel_name(name: str) -> str:
    """Channel name → part of a file name: lower case, all but letters, digits and `_` as `@` + 4 hex (MariaDB,
    MySQL).
    """
    units = name.lower().encode("utf-16-be")
    code_points = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(c) if c < 128 and (chr(c).isalnum() or c == 0x5F) else f"@{c:04x}" for c in code_points)


def decode_channel_name(encoded: str) -> str:
    """The inverse of `encode_channel_name`, up to case."""
    units = bytearray()
    i = 0
    while i < len(encoded):
        width = 5 if encoded[i] == "@" else 1
        unit = int(encoded[i + 1 : i + 5], 16) if width == 5 else ord(encoded[i])
        units += unit.to_bytes(2, "big")
        i += width
    return units.decode("utf-16-be")


def check_channel_name(name: str) -> None:
    """Raises UsageError 3076 for a name the server would refuse."""
    # a surrogate is a byte that was no UTF-8
    is_wrong = any(ord(c) < 0x20 or ord(c) == 0x7F or 0xD800 <= ord(c) < 0xE000 for c in name)
    if is_wrong or len(name) > MAX_CHANNEL_NAME or name != name.strip():
        raise UsageError(
            "Couldn't create channel: Channel name is either invalid or too long.",
            errno=er.SLAVE_CHANNEL_NAME_INVALID_OR_TOO_LONG,
            channel=name,
        )


def asked_of_us(channel: Channel, role: str, what: str = "stop") -> list[str]:
    """Return, once only, the words after this process's pid in the channel's file; [] if there are none."""
    path = channel.asked_path(role, what)
    try:
        asked = read_plain(path).decode(errors="replace").split()
    except (OSError, UnfitFile):
        return []
    if asked[:1] != [str(os.getpid())]:
        return []
    path.unlink(missing_ok=True)
    return asked


class SignalsOfChannels:
    """Whom a signal means that a process of several channels gets: those whose file names the process, else all.

    Two verbs at once write two files and send two signals. The first signal may find both files; the second one, which
    then finds none, is not for all.
    """

    def __init__(self, role: str, what: str = "stop") -> None:
        self._role, self._what = role, what
        self._owed, self._owed_until = 0, 0.0  # signals whose files were found before they came

    def meant(self, channels: Iterable[Channel]) -> dict[Channel, list[str]]:
        """Channel → what its file says (`asked_of_us`); each file counts once."""
        channels = list(channels)
        asked = {channel: words for channel in channels if (words := asked_of_us(channel, self._role, self._what))}
        is_owed = self._owed > 0 and time.monotonic() < self._owed_until
        if asked:
            self._owed = len(asked) - 1 + (self._owed - 1 if is_owed else 0)
            self._owed_until = time.monotonic() + OWED_SECONDS
            return asked
        if is_owed:
            self._owed -= 1
            return {}
        return {channel: [] for channel in channels}


@contextmanager
def hold_lock(channel: Channel, role: str, patience_s: float = LOCK_PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the channel's lock of that role for the block; our pid is written into it for people to read.

    The default patience is for `lock_holder` of another command, which holds it shared for an instant.
    Raises LockBusy, naming the holder, when another process has it; RplError when the disk has no room for it.
    """
    with closing(FileLock(channel.lock_path(role))) as lock:
        with file_errors(channel.name):
            if not lock.acquire(patience_s=patience_s):
                raise LockBusy(
                    f"the {role} of channel '{channel.name}' is held by process {lock.noted().strip() or 'unknown'}",
                    channel=channel.name,
                    hint="rplctl show-status" if role != "admin" else "another rplctl command is running; try again",
                )
            lock.note(f"{os.getpid()}\n")
        yield


def lock_holder(channel: Channel, role: str) -> int | None:
    """Pid of the live process that holds the lock, None when nobody does. Takes no lock that others would notice for
    long.
    """
    try:
        descriptor = open_plain(channel.lock_path(role), follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise file_error(error, channel.name) from error
    with closing_descriptor(descriptor):
        if flock(descriptor, shared=True, wait=False):
            return None
        text = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        return int(text) if text.isdecimal() and len(text) < _PID_DIGITS else 0
