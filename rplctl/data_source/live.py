"""Copy a live server's binary logs into a folder, which `walk` then reads like any other folder.

The option `path` is mysql://USER@HOST:PORT. The folder is `spool`/HOST_PORT/FIRST_LOG. It has the logs from the first
to the last needed one, byte for byte as on the source. Spark calls the functions for schema, partitions and offsets in
separate processes, which share the folder. Only the process that holds the lock of the folder appends events to the
copies.

Invariant: a log is begun only when the log before it is complete. So a kill can only truncate the last log. The next
copy continues after the last complete event of this log, if the server still has the same log.
"""

from __future__ import annotations

import itertools
import os
import secrets
import stat
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import numpy as np

from rplctl.config import Config
from rplctl.durable import private_folder, write_all
from rplctl.errors import SourceError, UsageError
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import BINLOG_MAGIC, CHECKSUM_LENGTH, HEADER_LENGTH, EventHeader, build_header, parse_header
from rplctl.event.scan import event_offsets
from rplctl.event.types import EventType
from rplctl.info import MasterInfo
from rplctl.locks import FileLock
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition, is_log_name
from rplctl.receiver.pull import refuse_rewritten_log
from rplctl.secret import PasswordSources, find_password
from rplctl.source.base import Bytes, DumpStart, ReplicaIdentity, fatal_reading_binlog
from rplctl.source.dump import LiveStream, open_stream
from rplctl.source.log_folder import log_names, read_head
from rplctl.source.survey import log_end, survey
from rplctl.sql_text import written

SCHEMES: Final = ("mysql://", "mariadb://")
LIVE_OPTIONS: Final = frozenset(
    "spool password_file ssl ssl_ca ssl_cert ssl_key ssl_verify_server_cert get_public_key".split()
)
_CONTROLS: Final = (  # all other events are appended to the copy unchanged
    EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.HEARTBEAT_V2,
    EventType.START_ENCRYPTION,
)  # fmt: skip
_TYPE_AT: Final = 4
_ROTATE_NAME_AT: Final = HEADER_LENGTH + 8
_WRAP: Final = 1 << 32  # an event's header has the position modulo this number
_LARGEST_GAP: Final = 256
_ENOUGH: Final = 64 << 20  # bytes: one poll of a stream stops here, because a busy source always has more


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A live server whose logs are read.

    `spool` is the folder for the copies of its logs. Every executor must see this folder under the same name.
    """

    info: MasterInfo
    password_file: Path | None
    spool: Path


def live_server(url: str, given: Mapping[str, str]) -> LiveServer:
    """Return the server of the URL `url`, with the other options of the query in `given`.

    Raises UsageError if an option is not valid.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 3306
    except ValueError as error:
        raise UsageError(f"option path: {error}") from error
    if not parts.hostname or not parts.username or parts.password or parts.path.strip("/") or parts.query:
        raise UsageError(
            "option path: a server must have the form mysql://USER@HOST:PORT",
            hint="put the password into the file of option password_file, ~/.my.cnf or $RPLCTL_PASSWORD",
        )
    ca, cert, key = (given.get(name, "") for name in ("ssl_ca", "ssl_cert", "ssl_key"))
    verifies = is_on(given, "ssl_verify_server_cert")
    info = MasterInfo(
        host=parts.hostname,
        port=port,
        user_name=unquote(parts.username),
        enabled_ssl=is_on(given, "ssl") or verifies or bool(ca or cert or key),
        ssl_verify_server_cert=verifies,
        get_public_key=is_on(given, "get_public_key"),
        ssl_ca=ca,
        ssl_cert=cert,
        ssl_key=key,
    )
    password_file, spool = given.get("password_file"), given.get("spool")
    return LiveServer(info, Path(password_file) if password_file else None, Path(spool) if spool else _own_spool())


def is_on(given: Mapping[str, str], name: str) -> bool:
    """True if the switch `name` is on. Raises UsageError if its value is not true, false, 1 or 0."""
    word = given.get(name, "false").lower()
    if word not in ("true", "false", "1", "0"):
        raise UsageError(f"option {name}: '{word}' is not true or false")
    return word in ("true", "1")


def _own_spool() -> Path:
    """Return this account's spool folder in the folder for temporary files, and create it if it is missing.

    Raises UsageError if another account has created a folder of this name before.
    """
    folder = Path(tempfile.gettempdir()) / f"rplctl-binlog-{os.getuid()}"
    private_folder(folder)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
        raise UsageError(f"another account owns {folder}", hint="set option spool to a folder of your own")
    return folder


class LiveLogs:
    """The copies of a live server's logs, from the log `first` on.

    If `first` is '', the copies begin with the oldest log of the server.
    """

    def __init__(self, server: LiveServer, first: str = "") -> None:
        self._server, self._first = server, first
        self._config = Config(server.spool)
        self._stream: LiveStream | None = None
        self._place = BinlogPosition("", 0)  # the end of the copy
        self._checksum_length = CHECKSUM_LENGTH
        self._is_same = False  # True if the server's current log is the log in the folder
        self.folder = server.spool  # from the first poll on: the folder of the logs

    def copy_until_now(self, end: BinlogPosition | None = None) -> Path:
        """Copy everything that the source has logged until now, at most to `end`, and return the folder of the copies.

        Raises SourceError if the source reports an error, ConfigError if the password cannot be read, and OSError if a
        log cannot be written.
        """
        info = self._server.info
        password = find_password(PasswordSources(self._server.password_file), info.user_name) or ""
        with _own_hints(), survey(info, password, self._config) as query:
            now = log_end(query)
            self._first = self._first or str(query(written("SHOW BINARY LOGS"))[0][0])
        self.folder = private_folder(self._server.spool / f"{info.host}_{info.port}" / self._first)
        end = min((now, end), key=BinlogPosition.order_key) if end else now
        with self._lock(), _own_hints():
            self._open(password)
            while not self._is_same or self._place.is_before(end):
                self._take(self._config.replica_net_timeout)
        return self.folder

    def copy_new_bytes(self) -> Path:
        """Copy the bytes that have arrived since the last poll, and return the folder of the copies.

        If the connection is lost, the next call opens a new connection.
        """
        if self._stream is None:
            return self.copy_until_now()
        with self._lock():
            taken = 0
            try:
                while self._place == self._last() and taken < _ENOUGH and (count := self._take(0)):
                    taken += count
            except SourceError as error:
                self.close()
                if not error.transient:
                    raise
            if self._place != self._last():  # another process has appended
                self.close()
        return self.folder

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = FileLock(self.folder / "lock")
        try:
            with lock.held():
                yield
        finally:
            lock.close()

    def _last(self) -> BinlogPosition:
        names = log_names(self.folder)
        return BinlogPosition(names[-1], (self.folder / names[-1]).stat().st_size) if names else self._place

    def _open(self, password: str) -> None:
        """Open a stream of the source's events that begins at the end of the copy."""
        self.close()
        self._place, self._is_same = self._whole_end(), False
        start = DumpStart(replace(self._place, log_pos=max(FIRST_EVENT_POSITION, self._place.log_pos)))
        # The id is random, because the source ends the older of two dumps with the same id
        replica = ReplicaIdentity(secrets.randbelow(1 << 31) + (1 << 31), str(uuid.uuid4()))
        self._stream = open_stream(self._server.info, password, start, replica, self._config)
        self._checksum_length = CHECKSUM_LENGTH if self._stream.identity().has_checksums else 0

    def _whole_end(self) -> BinlogPosition:
        """Truncate the copy after its last complete event, and return the position of this end."""
        place = self._last()
        if not place.log_name:
            return BinlogPosition(self._first, 0)
        path = self.folder / place.log_name
        end = 0
        if place.log_pos > FIRST_EVENT_POSITION:
            end = int(event_offsets(np.memmap(path, np.uint8, "r"), FIRST_EVENT_POSITION)[0][-1])
        if end <= FIRST_EVENT_POSITION:
            end = 0
        os.truncate(path, end)
        return BinlogPosition(place.log_name, end)

    def _take(self, timeout_s: float) -> int:
        """Append the events that arrive within `timeout_s`, and return the number of bytes that arrived."""
        assert self._stream is not None
        batch = self._stream.read_batch(timeout_s)
        if batch is None:
            return 0
        controls = np.flatnonzero(np.isin(batch.data[batch.offsets[:-1] + _TYPE_AT], _CONTROLS)).tolist()
        for number, behind in itertools.pairwise([-1, *controls, len(batch)]):
            if number >= 0:
                self._control(batch.event(number))
            if number + 1 < behind:
                self._append(batch.data[batch.offsets[number + 1] : batch.offsets[behind]])
        return int(batch.offsets[-1])

    def _control(self, event: bytes) -> None:
        """Process a control event.

        A ROTATE is part of the log, or names the log of the next events. A FORMAT_DESCRIPTION begins a log. A heartbeat
        and START_ENCRYPTION are ignored, because the server sends the events unencrypted.
        """
        header = parse_header(event)
        if header.type_code == EventType.ROTATE and header.end_log_pos and not header.is_artificial:
            self._append(np.frombuffer(event, np.uint8))
        elif header.type_code == EventType.ROTATE:
            name = event[_ROTATE_NAME_AT : len(event) - self._checksum_length].decode("utf-8", "surrogateescape")
            if not is_log_name(name):
                raise fatal_reading_binlog(f"the source sent an invalid name of a binary log: {name!r}")
            if name != self._place.log_name:
                self._place = BinlogPosition(name, 0)
        elif header.type_code == EventType.FORMAT_DESCRIPTION:
            self._checksum_length = parse_format_description(event).checksum_length
            if self._place.log_pos:
                self._refuse_other_log(event)
            else:
                self._write(BINLOG_MAGIC + event)
            self._is_same = True

    def _refuse_other_log(self, description: bytes) -> None:
        try:
            refuse_rewritten_log(read_head(self._path), description, self._place)
        except SourceError as error:
            error.hint = "set option spool to another folder, or remove the server's logs from this folder"
            raise

    def _append(self, events: Bytes) -> None:
        """Append consecutive events of the log.

        If the server did not send some bytes of the log before them, an ignorable event of this size is appended first.
        So all events have the same offsets as in the server's log.
        """
        first = parse_header(events[:HEADER_LENGTH].tobytes())
        gap = (first.end_log_pos - first.event_length - self._place.log_pos) % _WRAP if first.end_log_pos else 0
        if gap:
            length = HEADER_LENGTH + self._checksum_length
            if not length <= gap <= _LARGEST_GAP:
                raise fatal_reading_binlog(f"the source did not send {gap} bytes of the log at {self._place}")
            head = EventHeader(
                timestamp=0,
                type_code=EventType.IGNORABLE,
                server_id=0,
                event_length=gap,
                end_log_pos=(self._place.log_pos + gap) % _WRAP,
                flags=0,
            )
            filler = build_header(head) + bytes(gap - length)
            self._write(append_checksum(filler) if self._checksum_length else filler)
        self._write(events.data)

    @property
    def _path(self) -> Path:
        return self.folder / self._place.log_name

    def _write(self, data: bytes | memoryview) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
        self._place = replace(self._place, log_pos=self._place.log_pos + len(data))


@contextmanager
def _own_hints() -> Iterator[None]:
    """Replace a hint that names options of change-master by a hint that names the options of a query."""
    try:
        yield
    except SourceError as error:
        if "--" in error.hint:
            error.hint = (
                "check the options path (mysql://USER@HOST:PORT), password_file, ssl, ssl_ca and get_public_key"
            )
        raise
