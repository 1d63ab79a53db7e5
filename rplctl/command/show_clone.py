"""`show-clone`: list the tables that are copied from the source, their progress, and the reasons for a delay."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.channel import Channel
from rplctl.command.channel.context import Repositories, one_engine, open_repositories
from rplctl.command.process.thread_report import clock, threads_of
from rplctl.config import Config
from rplctl.own_tables.clones import ClonedTable, CopyState, percent_of, read_clones
from rplctl.status import ThreadStatus, read_status


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneProgress:
    """The progress of an unfinished copy of tables. Rates are per second.

    * `left_s`: the estimated remaining seconds; None if unknown
    * `paused`: the threads that do not run
    * `incident`: the chunk that is read again, how often, and why
    * `error`: the last error of the reader, with number and time
    """

    tables: int
    done: int
    percent: int
    rows: int
    bytes: int
    left_s: int | None
    reader: str
    paused: tuple[str, ...]
    incident: str
    error: str


@one_engine()
def show_clone(config: Config, channel: str) -> list[ClonedTable]:
    """Return the tables of the copy, also those that are already copied.

    Raises NotConfigured if the channel does not exist, and TargetError if the target reports an error.
    """
    repositories = open_repositories(config, channel)
    repositories.master()
    return cloned(repositories)


def progress(config: Config, channel_name: str, rows: list[ClonedTable]) -> CloneProgress | None:
    """Return the progress of the copy. Return None if all tables are copied. `rows` is the result of `show_clone`.

    Rates are known only while the threads run.
    """
    if not any(row.is_open for row in rows):
        return None
    channel = Channel(channel_name, config.datadir)
    threads, reader = threads_of(channel), read_status(channel.status_path("cloner"))
    applier = threads.applier.status if threads.applier.runs else ThreadStatus()
    return CloneProgress(
        tables=sum(row.State is not CopyState.LEFT_OUT for row in rows),
        done=sum(row.State is CopyState.DONE for row in rows),
        percent=percent_of(rows),
        rows=applier.clone_rows,
        bytes=applier.clone_bytes,
        left_s=applier.clone_left,
        reader=reader.state if threads.receiver.runs else "",
        paused=tuple(thread.role for thread in (threads.receiver, threads.applier) if not thread.runs),
        incident=threads.applier.status.clone_incident,
        error=f"ERROR {reader.last_errno} at {clock(reader.last_error_timestamp)}: {reader.last_error}"
        if reader.last_errno
        else "",
    )


def cloned(repositories: Repositories) -> list[ClonedTable]:
    """Return the clone state of the channel: one row for each table of a copy.

    Return [] if no table was ever copied.
    """
    if not repositories.target_has("rplctl_clone"):
        return []
    with repositories.engine().connect() as connection:
        return read_clones(connection, repositories.channel.name)
