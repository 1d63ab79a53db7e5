"""Find the problems of a copy of tables (rplctl clone): unfinished, without progress, or with cancelled tables.

An unfinished copy is a warning, because the channel does not have all tables of its filters yet. It is critical if both
threads run and no row was copied for STUCK_S seconds. If a thread is stopped, the findings about threads report this.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from rplctl.channel import Channel
from rplctl.command.channel.context import Repositories, one_engine, open_repositories
from rplctl.command.check.findings import Finding, found
from rplctl.command.process.thread_report import Threads, clock, threads_of
from rplctl.command.show_clone import cloned
from rplctl.config import Config
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.errors import RplError
from rplctl.own_tables.clones import ClonedTable, CopyState, percent_of
from rplctl.own_tables.tables import channels_in, cloned_tables
from rplctl.status import ThreadStatus, read_status
from rplctl.target.asked_once import answer

STUCK_S: Final = 600.0
_MOST_NAMED: Final = 10


def check_clone(config: Config, channel: Channel) -> Iterator[Finding]:
    """Yield the findings about a copy of tables. If the target does not answer, yield none: another finding reports
    that.
    """
    try:
        with one_engine():
            repositories = open_repositories(config, channel.name)
            known = answer(repositories.engine(), "channels with clones", lambda: _channels(repositories))
            rows = cloned(repositories) if channel.name.casefold() in known else []
    except RplError:
        return
    rules = ReplicationFilter.from_config(config)
    cancelled = (row for row in rows if row.State is CopyState.LEFT_OUT)
    if left_out := [".".join(row.name) for row in cancelled if rules.accepts_rows(*row.name)]:
        more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        text = f"these tables were cancelled and are not replicated: {', '.join(left_out[:_MOST_NAMED])}{more}"
        repair = "to copy them, run: rplctl clone; to exclude them permanently, run: rplctl change-filter"
        yield found("clone_left_out", text, repair)
    if any(row.is_open for row in rows):
        threads, reader = threads_of(channel), read_status(channel.status_path("cloner"))
        yield _open(rows, threads, reader)
        if reader.last_errno:
            text = f"the copy cannot read rows since {clock(reader.last_error_timestamp)}: {reader.last_error}"
            yield found(
                "clone_reader_error",
                text,
                reader.last_hint or "repair the cause of the error; rplctl tries again every few seconds",
            )


def _channels(repositories: Repositories) -> frozenset[str]:
    """Return the channels that have rows in the table `rplctl_clone`, with their names in lower case."""
    if not repositories.target_has("rplctl_clone"):
        return frozenset()
    with repositories.engine().connect() as connection:
        return channels_in(connection, cloned_tables(connection.dialect.name))


def _open(rows: list[ClonedTable], threads: Threads, reader: ThreadStatus) -> Finding:
    done, count = (
        sum(row.State is CopyState.DONE for row in rows),
        sum(row.State is not CopyState.LEFT_OUT for row in rows),
    )
    text = f"{done} of {count} tables are copied, {percent_of(rows)} %"
    moved = max(threads.applier.status.clone_moved, reader.clone_moved)
    if threads.receiver.runs and threads.applier.runs and moved and time.time() - moved >= STUCK_S:
        return found(
            "clone_stuck", f"{text}; no row has moved since {clock(moved)}", "rplctl show-clone; rplctl doctor"
        )
    return found("cloning", text, "rplctl show-clone")
