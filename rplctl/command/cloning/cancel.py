"""`clone --cancel`: remove the tables whose copy is not complete. Copied tables are kept and replicated.

Later events of a removed table would stop the channel. So the clone state records the table as left out. The applier
then skips its events until the table is copied again, and `check` reports it.

Invariant: chunk files are removed first, then tables, and the clone state is changed last. After a kill in between, a
start begins the copy of these tables again, and another `clone --cancel` completes this one.
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
from rplctl.own_tables.clones import ClonedTable, CopyState, move_clone
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
    """The result of `clone --cancel`.

    `kept` is the number of completely copied tables, which stay replicated. `taken_back` names the tables whose copy is
    cancelled and whose events are skipped from now on.
    """

    channel: str
    kept: int
    taken_back: tuple[str, ...]
    dry_run: bool


@one_engine()
def cancel(config: Config, channel_name: str, *, dry_run: bool = False) -> CancelResult:
    """Cancel the copy of all tables that are not completely copied.

    Raises UsageError 3081 if a thread runs, NotConfigured if the channel does not exist, and TargetError if the target
    reports an error.
    """
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
    kept = sum(row.State is CopyState.DONE for row in rows)
    return CancelResult(channel_name, kept, tuple(".".join(row.name) for row in taken), dry_run)


def _forget_progress(channel: Channel) -> None:
    """Remove the progress of the copy from the applier's status file. The next applier writes a new one."""
    said = read_status(channel.status_path("applier"))
    said.clone_tables = 0
    said.write(channel.status_path("applier"))


def _take_back(target: Target, channel: str, position: BinlogPosition, taken: list[ClonedTable]) -> None:
    """Remove the tables whose copy has begun from the target, and record all tables in `taken` as left out.

    If the copy of a table has not begun, the target may have an older table of the same name. This table is kept.
    """
    made = [row for row in taken if row.State is CopyState.COPYING]
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
            gone = ClonedTable(
                Database_name=row.Database_name,
                Table_name=row.Table_name,
                Source_database=row.Source_database,
                Family=row.Family,
                State=CopyState.LEFT_OUT,
            )
            left = replace(gone, Expected_rows=row.Expected_rows, Expected_bytes=row.Expected_bytes)
            move_clone(target.connection, channel, row, left)
