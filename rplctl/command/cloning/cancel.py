"""`clone --cancel`: tables whose copy is not done are taken back, those that are done stay and are replicated.

Their events would come for tables that are not there and stop the channel at the first one; so they stay left out, as
they were, and the ledger says so until the table is copied (`check` tells). Invariant: chunk files go first, tables
next, and the ledger last: cut anywhere between, a start goes on with the copy, which begins such a table again empty,
and another cancel ends what this one began.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass, replace

from rplctl.channel import Channel
from rplctl.command.channel.context import administer, one_engine, refuse_while_running
from rplctl.command.show_clone import cloned
from rplctl.config import Config
from rplctl.failpoint import crash_point
from rplctl.own_tables.clones import COPYING, DONE, LEFT_OUT, ClonedTable, move_clone
from rplctl.own_tables.models import load_models, store_models
from rplctl.position import BinlogPosition
from rplctl.schema.context import DdlContext
from rplctl.schema.plan import DdlPlan, DropStep
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import written
from rplctl.status import read_status
from rplctl.target import open_target, statement_target
from rplctl.target.base import Target, committed


@dataclass(frozen=True, slots=True)
class CancelResult:
    """`kept`: how many tables are replicated; `taken_back`: those that are not, and whose events are left out."""

    channel: str
    kept: int
    taken_back: tuple[str, ...]
    dry_run: bool


@one_engine()
def cancel(config: Config, channel_name: str, *, dry_run: bool = False) -> CancelResult:
    """Raises UsageError 3081 while a thread runs, NotConfigured, TargetError."""
    with administer(config, channel_name, dry_run=dry_run) as repositories:
        channel = repositories.channel
        refuse_while_running(channel)
        repositories.master()
        rows = cloned(repositories)
        taken = [row for row in rows if row.is_open]
        if taken and not dry_run:
            shutil.rmtree(channel.clone_folder, ignore_errors=True)
            with closing(open_target(repositories.config.target_url)) as target:
                _take_back(target, channel_name, repositories.relay().exec_position, taken)
            _forget_progress(channel)
    kept = sum(row.State == DONE for row in rows)
    return CancelResult(channel_name, kept, tuple(".".join(row.name) for row in taken), dry_run)


def _forget_progress(channel: Channel) -> None:
    """Until the next applier tells of it."""
    said = read_status(channel.status_path("applier"))
    said.clone_tables = 0
    said.write(channel.status_path("applier"))


def _take_back(target: Target, channel: str, position: BinlogPosition, taken: list[ClonedTable]) -> None:
    """A table that still waits has no row of the copy: what the target has of it is older, and stays."""
    made = [row for row in taken if row.State == COPYING]
    server = statement_target(target)
    if server is not None:
        server.make_tables([written("DROP TABLE IF EXISTS {}", quote(*row.name)) for row in made])
    with committed(target):
        if server is None:
            catalog = load_models(target.connection, channel, position)
            models = {row.name: model for row in made if (model := catalog.tables.get(row.name)) is not None}
            steps = tuple(map(DropStep, models.values()))
            target.execute_ddl(DdlPlan((), DdlContext(), steps, dict.fromkeys(models)), catalog)
            store_models(target.connection, channel, position, dict.fromkeys(models))
        crash_point("crash_clone_cancel_before_ledger")
        for row in taken:
            gone = ClonedTable(row.Database_name, row.Table_name, row.Source_database, row.Family, LEFT_OUT)
            left = replace(gone, Expected_rows=row.Expected_rows, Expected_bytes=row.Expected_bytes)
            move_clone(target.connection, channel, row, left)
