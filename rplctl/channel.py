"""A replication channel: its name, its files, and the locks of the processes that work on it.

These are the files in the instance folder (`--datadir`). A MySQL or MariaDB server names its files in the same way:

    master.info, relay-log.info                 the repositories of the default channel, if they are files
    master-CHAN.info, relay-log-CHAN.info       the repositories of a named channel
    relay-bin[-CHAN].000001 …                   the relay logs
    relay-bin[-CHAN].index                      the list of the relay logs
    run/CHAN/                                   locks, status files, thread logs, temporary files in spool/
    run/@/                                      the same for the default channel

CHAN is the channel's name in lower case; a special character becomes `@` and 4 hexadecimal digits.
A process is alive if it holds its lock, because the system releases the lock when the process ends. A pid in a file
proves nothing.
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
OWED_SECONDS = 5.0  # the longest time between a command's request file and its signal
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
    clone_folder = _InRunFolder("clone")  # chunk files of a copy (clone/folder.py); the folder may be lost
    # the limits that the operator set last for a copy (clone/throttle.py)
    clone_orders_path = _InRunFolder("clone.json")
    verify_folder = _InRunFolder("verify")  # the progress of a verify (verify/progress.py); the folder may be lost
    verify_source_folder = _InRunFolder("verify-source")  # a copy of a stopped source, which a verify reads
    verify_report_path = _InRunFolder("verify.report")  # the last complete report (verify/report_file.py)
    # triggers, views and other objects of the source that the target lacks (skipped_objects.py)
    skipped_objects_path = _InRunFolder("skipped-objects.jsonl")
    source_zones_path = _InRunFolder("source-zones.json")  # the source's SYSTEM time zone (source_zones.py)
    undo_folder = _InRunFolder("undo")  # SQL with which the operator can undo a repair (verify/undo.py)

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
        """The file with the plan of an initial copy. The file exists while tables are being copied."""
        return self.clone_folder / "plan.json"

    def lock_path(self, role: str) -> Path:
        """Return the lock file of a role: `receiver`, `applier`, `admin` (commands), or another activity.

        One process at a time holds the lock of a role.
        """
        return self.run_folder / f"{role}.lock"

    def status_path(self, role: str) -> Path:
        return self.run_folder / f"{role}.status.json"

    def asked_path(self, role: str, what: str = "stop") -> Path:
        """Return the request file, by which a command addresses a signal only to this channel.

        This is needed because a process may serve several channels. A command writes the pid of the process into the
        file before it sends the signal. STOP_NOW after the pid means that the thread must abort its transaction. `what`
        is the request: `stop`, or `flush` for a new relay log.
        """
        return self.run_folder / f"{role}.{what}"

    @property
    def stop_path(self) -> Path:
        return self.asked_path("applier")

    def incident_path(self, role: str) -> Path:
        """Return the file that describes the present problem of the thread `role` (incident.py).

        The file exists from an error until the thread works again. If the file is lost, the problem is reported again.
        """
        return self.run_folder / f"{role}.incident.json"

    def log_path(self, role: str) -> Path:
        return self.run_folder / f"{role}.log"


@cache
def _run_folder(datadir: Path, name: str) -> Path:
    return datadir / "run" / (encode_channel_name(name) or "@")


@cache
def encode_channel_name(name: str) -> str:
    """Return the channel's name in the form in which MariaDB and MySQL use it in file names.

    The result is in lower case. Each character except ASCII letters, digits and `_` becomes `@` and 4 hexadecimal
    digits.
    """
    units = name.lower().encode("utf-16-be")
    code_points = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(chr(c) if c < 128 and (chr(c).isalnum() or c == 0x5F) else f"@{c:04x}" for c in code_points)


def decode_channel_name(encoded: str) -> str:
    """Return the channel's name, in lower case, from the form that `encode_channel_name` returns."""
    units = bytearray()
    i = 0
    while i < len(encoded):
        width = 5 if encoded[i] == "@" else 1
        unit = int(encoded[i + 1 : i + 5], 16) if width == 5 else ord(encoded[i])
        units += unit.to_bytes(2, "big")
        i += width
    return units.decode("utf-16-be")


def check_channel_name(name: str) -> None:
    """Raise UsageError 3076 if the name is too long or contains characters that a name must not have.

    A control character, a byte that is not UTF-8, and a blank at the beginning or the end are not permitted.
    """
    # Python decodes a byte that is not UTF-8 to a surrogate
    is_wrong = any(ord(c) < 0x20 or ord(c) == 0x7F or 0xD800 <= ord(c) < 0xE000 for c in name)
    if is_wrong or len(name) > MAX_CHANNEL_NAME or name != name.strip():
        raise UsageError(
            "Couldn't create channel: Channel name is either invalid or too long.",
            errno=er.SLAVE_CHANNEL_NAME_INVALID_OR_TOO_LONG,
            channel=name,
            hint=f"use at most {MAX_CHANNEL_NAME} characters, no control characters, and no blank at the beginning or "
            "the end",
        )


def asked_of_us(channel: Channel, role: str, what: str = "stop") -> list[str]:
    """Return the words of the channel's request file (`Channel.asked_path`), and remove the file.

    The first word is the pid of this process. Return [] if there is no file, or if it has the pid of another process.
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
    """The rule that decides which channels of a process a signal addresses.

    A command writes a request file (`Channel.asked_path`) before it sends a signal. A signal addresses each channel
    with a request file for this process. If there is no such file, a signal addresses all channels.
    But two commands at the same time write two files and send two signals. The process may find both files at the first
    signal. Then the second signal finds no file, and must not address all channels: it addresses no channel.
    """

    def __init__(self, role: str, what: str = "stop") -> None:
        self._role, self._what = role, what
        self._owed, self._owed_until = 0, 0.0  # signals whose files were read before the signals arrived

    def meant(self, channels: Iterable[Channel]) -> dict[Channel, list[str]]:
        """Return the channels that the signal addresses, each with the words of its request file.

        The request files are removed, so no later signal finds them. The lists of words are empty if the signal
        addresses all channels.
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
    """Hold the channel's lock of a role during the block, and write the pid of this process into the lock file.

    `patience_s`: seconds to wait for the lock. The default is enough for another command that only looks for the holder
    (`lock_holder`), because such a command holds the lock for an instant. Raises LockBusy, which names the pid of the
    holder, if another process holds the lock. Raises RplError if the lock file cannot be opened or written, for example
    on a full disk.
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
    """Return the pid of the process that holds the lock of a role. Return None if no process holds the lock.

    The result is 0 if the lock file has no readable pid. The check itself holds the lock only for an instant. Raises
    RplError if the lock file cannot be opened.
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
