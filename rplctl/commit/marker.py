"""Commit mode `marker`: a row in the target, the marker, stores the position of a channel whose repository cannot be
part of the target's transactions.

The marker moves inside the data's transaction. The repository follows after COMMIT (REQ-5: "positions are updated after
processing the commit"). "File" below means a FILE repository, or a nontransactional table, which has no `left_at`.

A start chooses between the position in the file and the one in the marker:

* The file is before the marker: a crash came between COMMIT and the file. The marker counts.
* The file was edited after an orderly stop, at which both had the same position: the file counts (WL#5125 honours
  hand-edited files).
* The file is as the applier left it (`left_at`), but the marker has another position: the target or the file is from a
  backup. The marker counts, because it is as old as the rows.
* The file is ahead of the marker after a stop that was not orderly, which no crash causes: the marker counts, too.

rplctl logs a warning about a file that is ahead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import Connection, Engine, Update, bindparam, delete, insert, select, update

from rplctl import mysql_errors as er
from rplctl.commit.step import CommitMode, PositionStore, taken_over
from rplctl.errors import TargetError
from rplctl.info import RelayLogInfo
from rplctl.own_tables.owner import claim_channel
from rplctl.own_tables.tables import commit_marker
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.tables import own_table_exists
from rplctl.target import dialect_of, mapped_errors

CLOSE_PATIENCE_MS = 2000  # the wait for SQLite's write lock at STOP
log = logging.getLogger(__name__)


class MarkerPositionStore(PositionStore):
    mode = CommitMode.MARKER

    def __init__(self, repository: InfoRepository[RelayLogInfo], channel: str, engine: Engine) -> None:
        super().__init__()
        self._repository = repository
        self._channel = channel
        self._engine = engine
        self._marker = commit_marker(engine.dialect.name)

    def open(self) -> RelayLogInfo:
        """Choose the position from file and marker. Then mark them as moving (File_in_step false), until `close`."""
        if self._is_new():
            return self._begun()
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            self._set(connection, Channel_name=self._channel)  # locks the row before anything is read
            marker, in_step = read_marker(connection, self._channel)
            self._set(connection, File_in_step=False)
            claim_channel(connection, self._channel, self.owner, self.mode)
            info = self._repository.read()
            assert marker is not None  # the applier is stopped before its marker is removed
            is_set = info.gtid_executed and file_counts(info, in_step)  # import-info sets GTIDs, perhaps only these
            if info.is_at(marker) and not is_set:
                info = replace(info, gtid_executed=marker.gtid_executed)
            else:
                stored, info = info, one_that_counts(info, marker, in_step)
                if info is stored:
                    self._set(connection, **self._row(info))
        self._flush(info, force=True)
        return info

    def _is_new(self) -> bool:
        """True if the channel has no marker yet.

        This is read in a separate transaction, because InnoDB locks the gap of a missing row: if two new channels read
        it in the transaction that inserts the row, one of them fails with error 1213.
        """
        with mapped_errors(self._engine.dialect.name), self._engine.connect() as connection:
            return read_marker(connection, self._channel)[0] is None

    def _begun(self) -> RelayLogInfo:
        info = self._repository.read()
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            connection.execute(insert(self._marker).values(File_in_step=False, **self._row(info)))
            claim_channel(connection, self._channel, self.owner, self.mode)
        self._flush(info, force=True)
        return info

    def advance(self, connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> None:
        given = self._row(new) | {f"old_{name}": value for name, value in self._row(expected).items()}
        del given["Channel_name"]  # DuckDB deletes and inserts a row whose key is set, even to the same value
        with mapped_errors(connection.dialect.name):
            moved = connection.execute(_swap(connection.dialect.name), given).rowcount == 1
        if not moved:
            raise taken_over(expected)

    def stored(self, connection: Connection) -> RelayLogInfo | None:
        with mapped_errors(connection.dialect.name):
            return read_marker(connection, self._channel)[0]

    def committed(self, new: RelayLogInfo, *, force: bool = False) -> None:
        """Write the committed position to the repository.

        A repository in a table is written each time (REQ-5 iii to v), because it has no cache of the OS (REQ-3).
        """
        self._flush(new, force=force or self._repository.kind is RepositoryKind.TABLE)

    def close(self, last: RelayLogInfo) -> None:
        """Record that file and marker have the same position (File_in_step true).

        If the marker's row is locked by another connection, the next start chooses the position as after a crash.
        """
        self._flush(last, force=True)
        try:
            with mapped_errors(self._engine.dialect.name), self._engine.connect() as connection:
                dialect_of(connection.dialect.name).wait_at_most(connection, CLOSE_PATIENCE_MS)
                try:
                    with connection.begin():
                        self._set(connection, File_in_step=True)
                finally:
                    connection.invalidate()  # its lock timeout was changed
        except TargetError as error:
            if error.errno != er.LOCK_WAIT_TIMEOUT:
                raise

    def _flush(self, info: RelayLogInfo, *, force: bool) -> None:
        self._repository.flush(replace(info, left_at=info.place), force=force)

    def _set(self, connection: Connection, **values: Any) -> None:
        connection.execute(update(self._marker).where(self._marker.c.Channel_name == self._channel).values(**values))

    def _row(self, info: RelayLogInfo) -> dict[str, Any]:
        return {
            "Channel_name": self._channel,
            "Relay_log_name": info.relay_log_name,
            "Relay_log_pos": info.relay_log_pos,
            "Master_log_name": info.master_log_name,
            "Master_log_pos": info.master_log_pos,
            "Gtid_executed": info.gtid_executed,
        }


@cache
def _swap(dialect: str) -> Update:
    """Return the UPDATE that moves the marker. It is part of each transaction, and building it takes longer than
    executing it, so it is built once.
    """
    marker = commit_marker(dialect)
    names = ("Channel_name", "Relay_log_name", "Relay_log_pos", "Master_log_name", "Master_log_pos")
    return update(marker).where(*(marker.c[name] == bindparam(f"old_{name}") for name in names))


def read_marker(connection: Connection, channel: str) -> tuple[RelayLogInfo | None, bool]:
    """Return the channel's marker, and True if the repository had the same position at the last orderly stop; (None,
    False) without a marker.
    """
    marker = commit_marker(connection.dialect.name)
    row = connection.execute(select(marker).where(marker.c.Channel_name == channel)).first()
    if row is None:
        return None, False
    relay = RelayLogPosition(row.Relay_log_name, row.Relay_log_pos)
    info = RelayLogInfo(channel_name=channel, gtid_executed=row.Gtid_executed)
    return info.at(relay, BinlogPosition(row.Master_log_name, row.Master_log_pos)), bool(row.File_in_step)


def one_that_counts(info: RelayLogInfo, marker: RelayLogInfo, in_step: bool) -> RelayLogInfo:
    """Return `info`, the record in the file, with the position that counts: its own or the marker's. Log a warning if
    the file is ahead.
    """
    counts = info.is_at(marker) or file_counts(info, in_step)
    if marker.exec_position.is_before(info.exec_position):
        log.warning(*_ahead(info, marker, counts))
    return info if counts else info.moved_to(marker)


def file_counts(info: RelayLogInfo, in_step: bool) -> bool:
    """True if the position in relay-log.info counts although the marker has another one: somebody edited the file after
    an orderly stop.
    """
    return in_step and info.left_at != info.place


def has_gone_back(channel: str, engine: Engine, info: RelayLogInfo) -> bool:
    """True if the target was restored from a backup: its marker is before the position in a file that nobody edited.
    The marker's table must exist.
    """
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        marker, in_step = read_marker(connection, channel)
    behind = marker is not None and marker.exec_position.is_before(info.exec_position)
    return behind and not file_counts(info, in_step)


def rename_relay_logs(connection: Connection, channel: str, renamed: Callable[[str], str]) -> None:
    """Rename the relay log in the channel's marker by `renamed`. The caller commits the transaction."""
    found = read_marker(connection, channel)[0] if own_table_exists(connection, "rplctl_commit_marker") else None
    if found is not None:
        marker = commit_marker(connection.dialect.name)
        new = {"Relay_log_name": renamed(found.relay_log_name)}
        connection.execute(update(marker).where(marker.c.Channel_name == channel).values(new))


def remove_marker(channel: str, engine: Engine) -> None:
    """Remove the channel's marker, because its repository is removed, too (RESET REPLICA)."""
    marker = commit_marker(engine.dialect.name)
    with mapped_errors(engine.dialect.name), engine.begin() as connection:
        connection.execute(delete(marker).where(marker.c.Channel_name == channel))


def _ahead(info: RelayLogInfo, marker: RelayLogInfo, counts: bool) -> tuple[str, object, object, str]:
    """Return a log message, with its arguments, about a file that is ahead of the marker: an operator's edit, or a
    target from a backup.
    """
    how = (
        "taken as edited by hand; if the target was restored from a backup, stop and CHANGE MASTER to the latter"
        if counts
        else "the latter counts: the file is as it was left, so the target was restored from a backup; if its rows are "
        "newer than that, stop and CHANGE MASTER to where they are"
    )
    words = "the stored position %s is ahead of the target's own %s: %s"
    return words, info.exec_position, marker.exec_position, how
