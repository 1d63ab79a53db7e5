"""A replication channel: its name, its files, and the locks of the processes that work on it.

Files in the instance folder (`--datadir`), named like those of a MySQL or MariaDB server:

    master.info, relay-log.info                 repositories of the default channel (FILE)
    master-CHAN.info, relay-log-CHAN.info       of a named channel; CHAN is lower-cased and filename-encoded (@ + 4 hex)
    relay-bin[-CHAN].000001 …, relay-bin[-CHAN].index
    run/CHAN/                                   locks, status files, thread logs, spool/ (`run/@` for the default
    channel)

A process is alive if it holds its lock; the pid proves nothing. A killed process loses its flock at once.
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
OWED_SECONDS = 5.0  # the longest time between a command's file and its signal
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
    clone_folder = _InRunFolder("clone")  # chunks of a copy before they are loaded (clone/folder.py); may be lost
    # the operator's last settings for a copy (clone/throttle.py); after a change, the clone state is read again
    clone_orders_path = _InRunFolder("clone.json")
    verify_folder = _InRunFolder("verify")  # the work in progress of a verify (verify/progress.py); may be lost
    verify_source_folder = _InRunFolder("verify-source")  # a copy of a stopped source, while a verify reads it
    verify_report_path = _InRunFolder("verify.report")  # the last complete report (verify/report_file.py)
    # triggers, views and other objects of the source that the target lacks (skipped_objects.py)
    skipped_objects_path = _InRunFolder("skipped-objects.jsonl")
    source_zones_path = _InRunFolder("source-zones.json")  # the source's SYSTEM time zone (source_zones.py)
    undo_folder = _InRunFolder("undo")  # SQL that undoes a repair (verify/undo.py); belongs to the operator

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
        """The plan of a copy; the file exists while tables are being copied."""
        return self.clone_folder / "plan.json"

    def lock_path(self, role: str) -> Path:
        """Return the lock of a role (`receiver`, `applier` or `admin`), with one holder each."""
        return self.run_folder / f"{role}.lock"

    def status_path(self, role: str) -> Path:
        return self.run_folder / f"{role}.status.json"

    def asked_path(self, role: str, what: str = "stop") -> Path:
        """Return the file that addresses a signal to one channel of a process that serves several channels.

        The file has the pid, followed by STOP_NOW if nobody waits for the process any more. `what`: `stop` or `flush`.
        """
        return self.run_folder / f"{role}.{what}"

    @property
    def stop_path(self) -> Path:
        return self.asked_path("applier")

    def incident_path(self, role: str) -> Path:
        """Return the file of the thread's problem (incident.py), which may be lost.

        The file exists from an error until the thread works again.
        """
        return self.run_folder / f"{role}.incident.json"

    def log_path(self, role: str) -> Path:
        return self.run_folder / f"{role}.log"


@cache
def _run_folder(datadir: Path, name: str) -> Path:
    return datadir / "run" / (encode_channel_name(name) or "@")


@cache
def encode_channel_name(name: str) -> str:
    """Return the channel's name as part of a file name, as MariaDB and MySQL do.

    The name is in lower case; all characters except letters, digits and `_` become `@` + 4 hex digits.
    """
    units = name.lower().encode("utf-16-be")
    code_points = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(c) if c < 128 and (chr(c).isalnum() or c == 0x5F) else f"@{c:04x}" for c in code_points)


def decode_channel_name(encoded: str) -> str:
    """Decode a file name part; the inverse of `encode_channel_name`, except for case."""
    units = bytearray()
    i = 0
    while i < len(encoded):
        width = 5 if encoded[i] == "@" else 1
        unit = int(encoded[i + 1 : i + 5], 16) if width == 5 else ord(encoded[i])
        units += unit.to_bytes(2, "big")
        i += width
    return units.decode("utf-16-be")


def check_channel_name(name: str) -> None:
    """Raise UsageError 3076 if the server would reject the name."""
    # a surrogate stands for a byte that was not UTF-8
    # a surrogate is a byte that was no UTF-8
    is_wrong = any(ord(c) < 0x20 or ord(c) == 0x7F or 0xD800 <= ord(c) < 0xE000 for c in name)
    if is_wrong or len(name) > MAX_CHANNEL_NAME or name != name.strip():
        raise UsageError(
            "Couldn't create channel: Channel name is either invalid or too long.",
            errno=er.SLAVE_CHANNEL_NAME_INVALID_OR_TOO_LONG,
            channel=name,
        )


def asked_of_us(channel: Channel, role: str, what: str = "stop") -> list[str]:
    """Return the words of the channel's file if the file addresses this process, and remove the file. The first word
    is the pid of this process. Return [] if there is no such file.
    """
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
    """The channels that a signal addresses, in a process of several channels.

    A signal is for the channels whose file names the process; without such a file, it is for all channels. Two
    commands at the same time write two files and send two signals. If the first signal finds both files, the second
    signal finds no file. The second signal is then for no channel.
    """

    def __init__(self, role: str, what: str = "stop") -> None:
        self._role, self._what = role, what
        self._owed, self._owed_until = 0, 0.0  # signals whose files were read before the signals arrived

    def meant(self, channels: Iterable[Channel]) -> dict[Channel, list[str]]:
        """Return the channels that the present signal is for, each with the words of its request (see `asked_of_us`).
        The files of the requests are removed, so no later signal finds them. A signal for all channels has no words.
        """
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
    """Hold the channel's lock of that role for the block; the lock file has this process's pid, for people.

    The default patience is for `lock_holder` of another command, which holds the lock shared for an instant. Raises
    LockBusy with the holder's pid if another process holds the lock; RplError if the disk is full.
    """
    with closing(FileLock(channel.lock_path(role))) as lock:
        with file_errors(channel.name):
            if not lock.acquire(patience_s=patience_s):
                raise LockBusy(
                    f"the {role} of channel '{channel.name}' is held by process {lock.noted().strip() or 'unknown'}",
                    channel=channel.name,
                    hint="to see its state, run: rplctl show-status"
                    if role != "admin"
                    else "another rplctl command is running; try again",
                )
            lock.note(f"{os.getpid()}\n")
        yield


def lock_holder(channel: Channel, role: str) -> int | None:
    """Return the pid of the process that holds the lock; None if it is free.

    The check itself holds the lock only for an instant.
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
