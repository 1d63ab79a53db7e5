"""Implements the commit mode `marker`: a row in the target, the marker, stores the position together with the data.

This mode is for a channel whose repository cannot be part of the target's transactions. Each transaction changes the
rows and the marker. After its COMMIT, the applier writes the position to the repository (REQ-5: "positions are updated
after processing the commit"). "File" below means a repository of kind FILE, or a nontransactional table. The file's
field `left_at` is the last position that the applier wrote there. A table has no such field.

At a start, the file and the marker may have different positions. One of these rules applies:

* The file has an earlier position: A crash came after COMMIT, before the file was written. The marker's position is
  used.
* The file was edited after an orderly stop, at which file and marker had the same position: The file's position is
  used, because WL#5125 honours files that were edited by hand.
* The file has the position `left_at`, but the marker has another one: The target or the file is from a backup. The
  marker's position is used, because it is as old as the rows.
* The file has a later position after a stop that was not orderly: No crash causes this. The marker's position is used.

If the file has a later position than the marker, rplctl logs a warning.
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
        """Choose the position from file and marker, store it in both, and return it.

        Also set the marker's column File_in_step to false, because from now on the file and the marker may differ. An
        orderly stop (`close`) sets it to true.
        """
        if self._is_new():
            return self._begun()
        with mapped_errors(self._engine.dialect.name), self._engine.begin() as connection:
            self._set(connection, Channel_name=self._channel)  # locks the row before anything is read
            marker, in_step = read_marker(connection, self._channel)
            self._set(connection, File_in_step=False)
            claim_channel(connection, self._channel, self.owner, self.mode)
            info = self._repository.read()
            assert marker is not None  # a command stops the applier before it removes the marker
            is_set = info.gtid_executed and is_file_edited(info, in_step)  # import-info may set the GTIDs alone
            if info.is_at(marker) and not is_set:
                info = replace(info, gtid_executed=marker.gtid_executed)
            else:
                stored, info = info, valid_position(info, marker, in_step)
                if info is stored:
                    self._set(connection, **self._row(info))
        self._flush(info, force=True)
        return info

    def _is_new(self) -> bool:
        """True if the channel has no marker in the target yet.

        The marker is read in a separate transaction, because InnoDB locks the gap of a missing row. If two new channels
        read their markers in the transactions that insert them, one channel fails with error 1213.
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

        A FILE repository is written each time, but synced to the disk only if `force` is true or `sync_relay_log_info`
        requires it. A TABLE repository is always updated durably (REQ-3, REQ-5 iii to v).
        """
        self._flush(new, force=force or self._repository.kind is RepositoryKind.TABLE)

    def close(self, last: RelayLogInfo) -> None:
        """Write the last position to the file, and set the marker's column File_in_step to true.

        If another connection locks the marker's row for too long, the column is not set. The next start then chooses
        the position as after a crash.
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
    """Return the UPDATE that writes a new position to the marker, if the marker still has the expected position.

    The statement is built once for each dialect, because building it takes longer than executing it.
    """
    marker = commit_marker(dialect)
    names = ("Channel_name", "Relay_log_name", "Relay_log_pos", "Master_log_name", "Master_log_pos")
    return update(marker).where(*(marker.c[name] == bindparam(f"old_{name}") for name in names))


def read_marker(connection: Connection, channel: str) -> tuple[RelayLogInfo | None, bool]:
    """Return the channel's marker, and the value of its column File_in_step. Return (None, False) without a marker.

    File_in_step is true if the last stop was orderly, so that the repository had the same position then.
    """
    marker = commit_marker(connection.dialect.name)
    row = connection.execute(select(marker).where(marker.c.Channel_name == channel)).first()
    if row is None:
        return None, False
    relay = RelayLogPosition(row.Relay_log_name, row.Relay_log_pos)
    info = RelayLogInfo(channel_name=channel, gtid_executed=row.Gtid_executed)
    return info.at(relay, BinlogPosition(row.Master_log_name, row.Master_log_pos)), bool(row.File_in_step)


def valid_position(info: RelayLogInfo, marker: RelayLogInfo, in_step: bool) -> RelayLogInfo:
    """Return `info`, the record in the file, with the valid position: that of the file or that of the marker.

    `in_step`: the marker's column File_in_step. A warning is logged if the file has a later position than the marker.
    """
    counts = info.is_at(marker) or is_file_edited(info, in_step)
    if marker.exec_position.is_before(info.exec_position):
        log.warning(*_ahead(info, marker, counts))
    return info if counts else info.moved_to(marker)


def is_file_edited(info: RelayLogInfo, in_step: bool) -> bool:
    """True if somebody edited the file `info` after an orderly stop, so that its position is used, not the marker's.

    `in_step`: the marker's column File_in_step, which is true after an orderly stop.
    """
    return in_step and info.left_at != info.place


def has_gone_back(channel: str, engine: Engine, info: RelayLogInfo) -> bool:
    """True if the target was restored from a backup, so that its rows are older than the position in the file.

    The sign of a backup is a marker that is before the position in a file that nobody edited. `info`: the record in
    the file. The marker's table must exist.
    """
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        marker, in_step = read_marker(connection, channel)
    behind = marker is not None and marker.exec_position.is_before(info.exec_position)
    return behind and not is_file_edited(info, in_step)


def rename_relay_logs(connection: Connection, channel: str, renamed: Callable[[str], str]) -> None:
    """Change the name of the relay log in the channel's marker, because the channel is renamed.

    `renamed` returns the new file name for an old one. The caller commits the transaction.
    """
    found = read_marker(connection, channel)[0] if own_table_exists(connection, "rplctl_commit_marker") else None
    if found is not None:
        marker = commit_marker(connection.dialect.name)
        new = {"Relay_log_name": renamed(found.relay_log_name)}
        connection.execute(update(marker).where(marker.c.Channel_name == channel).values(new))


def remove_marker(channel: str, engine: Engine) -> None:
    """Remove the channel's marker, after RESET REPLICA or a change to another commit mode."""
    marker = commit_marker(engine.dialect.name)
    with mapped_errors(engine.dialect.name), engine.begin() as connection:
        connection.execute(delete(marker).where(marker.c.Channel_name == channel))


def _ahead(info: RelayLogInfo, marker: RelayLogInfo, counts: bool) -> tuple[str, object, object, str]:
    """Return the warning that the file has a later position than the marker, as the arguments of `log.warning`.

    `counts`: True if an operator edited the file, so that its position is used. Otherwise, the target is from a backup.
    """
    how = (
        "taken as edited by hand; if the target was restored from a backup, stop and CHANGE MASTER to the latter"
        if counts
        else "the latter counts: the file is as it was left, so the target was restored from a backup; if its rows are "
        "newer than that, stop and CHANGE MASTER to where they are"
    )
    words = "the stored position %s is ahead of the target's own %s: %s"
    return words, info.exec_position, marker.exec_position, how
