"""FILE: master.info and relay-log.info, in the layout of lines.py.

Invariant: a reader sees one flushed record, whole: every flush replaces the file (temporary file, rename). A flush that
is forced or due is durable when it returns; one in between reaches the OS only and may be lost in a power cut, never in
a crash of the process (WL#2775 REQ-3: "we optimistically write to the OS' cache"). Some file systems then show a file
without its data, empty or zeroed: `.relay-log.info.synced`, a link to the last durable record, is read instead.
Mode 0600; a file that others may read and that holds a password is refused (design D14). Nothing here loads SQLAlchemy
(D16).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Generic

from rplctl.channel import Channel
from rplctl.durable import Guard, is_readable_by_others, private_folder, remove_file, replace_file
from rplctl.errors import ConfigError, file_errors
from rplctl.plain_file import UnfitFile, read_plain
from rplctl.repository.base import Info, RepositoryKind
from rplctl.repository.fields import FieldError
from rplctl.repository.lines import END_MARKER
from rplctl.repository.record import Record

_BLOCK = 4096  # of every file system there is, or a multiple


def _has_lost_data(data: bytes) -> bool:
    """True if the file looks like one whose blocks were lost in a power cut. Such a file is empty, has zeros, or ends
    at a block. If the system wrote it twice, it may end within a line, which no editor leaves.
    """
    is_cut = len(data) % _BLOCK == 0 or not data.endswith(b"\n")
    return not data or b"\0" in data or (is_cut and END_MARKER.encode() not in data)


@cache
def _begin_of_ours(record: Record[Any]) -> tuple[int, bytes]:
    """Where our section begins in a file that we wrote: number of its first line, from 0, and the name there."""
    lines = record.format(record.empty("")).splitlines()
    return next((number, line.partition(b"=")[0]) for number, line in enumerate(lines) if b"=" in line)


class FileRepository(Generic[Info]):
    """One record in one file."""

    kind = RepositoryKind.FILE

    def __init__(self, record: Record[Info], channel: Channel, sync_period: int) -> None:
        self._record: Record[Info] = record
        self._channel = channel
        self.path = record.path(channel)
        self._sync_period = sync_period
        self._events_since_sync = 0
        self.guard: Guard = nullcontext

    @property
    def synced_path(self) -> Path:
        """The last durable record; counts only while `path` has lost its data."""
        return self.path.with_name(f".{self.path.name}.synced")

    @property
    def where(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        """A file with data: not missing, not empty, not cleared by RESET. Raises 1201/1872 when it is damaged."""
        info = self.stored()
        return info is not None and self._record.has_data(info)

    def read(self) -> Info:
        info = self.stored()
        if info is None:
            raise self._record.missing(self._channel.name, f"there is no {self.where}")
        return info

    def stored(self) -> Info | None:
        """The record, cleared or not; None when there is no file or an empty one."""
        return self.parsed(self.load())

    def load(self) -> bytes | None:
        """The file's bytes as they count; None when there is no file."""
        data = self._load(self.path)
        if data is not None and _has_lost_data(data):
            data = self._load(self.synced_path) or data
        return data

    def parsed(self, data: bytes | None) -> Info | None:
        """The record that `load` gave, once all that is refused has been looked for."""
        if not data:
            return None
        try:
            self._refuse_cut_off(data)
            info = self._record.parse(data)
        except FieldError as error:
            raise self._record.damaged(self._channel.name, f"{self.where}: {error}", self._repair_hint()) from None
        if info.channel_name and info.channel_name.casefold() != self._channel.name.casefold():
            why = f"{self.where} belongs to channel '{info.channel_name}'"
            raise self._record.damaged(self._channel.name, why, "rplctl import-info")
        if getattr(info, "user_password", "") and is_readable_by_others(self.path):
            why = f"{self.where} holds a password and others may read it"
            raise ConfigError(why, channel=self._channel.name, hint=f"chmod 600 {self.path}")
        is_named = info.channel_name == self._channel.name
        return info if is_named else replace(info, channel_name=self._channel.name)

    def flush(self, info: Info, *, force: bool, events: int = 1) -> None:
        """Write always; make it durable when forced or when `sync_…` events have gone by."""
        self._events_since_sync += events
        due = force or 0 < self._sync_period <= self._events_since_sync
        try:
            data = self._record.format(replace(info, channel_name=self._channel.name))
        except FieldError as error:
            raise self._record.damaged(self._channel.name, str(error)) from None
        with file_errors(self._channel.name):  # the old record is still whole: replace_file removes what it began
            private_folder(self.path.parent)
            replace_file(self.path, data, durable=due, guard=self.guard, keep=self.synced_path)
        if due:
            self._events_since_sync = 0

    def remove(self) -> None:
        with file_errors(self._channel.name):
            self.synced_path.unlink(missing_ok=True)
            remove_file(self.path)

    def is_transactional(self) -> bool:
        return False

    def _load(self, path: Path) -> bytes | None:
        """The file's bytes, None when there is none. A pipe or device in its place is refused, not waited for."""
        try:
            return read_plain(path)
        except FileNotFoundError:
            return None
        except UnfitFile:
            why = f"{self.where} is not an info file"
            raise self._record.damaged(self._channel.name, why, self._repair_hint()) from None
        except PermissionError:
            raise ConfigError(
                f"{self.where} cannot be read: permission denied", hint=f"run as the owner of {self.path.parent}"
            ) from None

    def _refuse_cut_off(self, data: bytes) -> None:
        """Refuse a file of ours that was cut off. Our file has our section directly after the counted lines, up to its
        marker. A server's file has no such section, and is not put in the place of ours.
        """
        if not self.synced_path.exists():
            return
        number, first = _begin_of_ours(self._record)
        lines = data.splitlines()
        if END_MARKER.encode() not in lines or not b"".join(lines[number : number + 1]).startswith(first + b"="):
            why = "(a server's file goes in by import-info)"
            raise FieldError(f"lines are missing, or more than there were, before {END_MARKER} {why}")

    def _repair_hint(self) -> str:
        channel = f" --channel {self._channel.name}" if self._channel.name else ""
        return f"correct {self.path} by hand, or remove it and run rplctl change-master{channel}"
