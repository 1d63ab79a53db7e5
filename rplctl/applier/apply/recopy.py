"""Copies tables again at a statement whose effect on rows only the source knows.

Such a statement fails with error 1846. If the option `on_uncomputable_ddl` is `recopy`, the statement is not executed.
Instead, its tables become tables of a copy, as after `rplctl clone --tables … --replace`, together with the tables that
foreign keys link with them. The definition and the rows of these tables are read from the source without a lock, while
the channel continues.

Invariant: no part of the statement was executed before. The rows of the clone state are committed together with the
position after the statement. So after a crash, the target has both the rows and the position, or neither.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import numpy as np

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.decode.ddl_context import ddl_context
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.row_stream import EventRun
from rplctl.errors import TargetError
from rplctl.event.query import parse_query
from rplctl.event.types import EventType
from rplctl.history import note_event
from rplctl.repository import open_master_info
from rplctl.schema.statement import TableName
from rplctl.schema.updated_names import named_tables
from rplctl.target import dialect_of
from rplctl.target.base import Target

RECOPY: Final = "recopy"
_HINT: Final = (
    "to copy the statement's tables again from the source (init changes only this setting), run: rplctl init "
    "--on-uncomputable-ddl recopy; rplctl start"
)
log = logging.getLogger(__name__)


def tables_to_copy_again(  # noqa: PLR0913 - what surrounds a statement
    error: TargetError,
    run: EventRun,
    rules: ReplicationFilter,
    target: Target,
    config: Config,
    channel: Channel,
) -> list[TableName]:
    """Return the tables of the statement of `run`, which failed with `error`, to copy them again instead.

    The result has the target's names. It is empty if the statement must stop the channel:
    * the option is not set,
    * the error is not 1846,
    * the source is a folder of binary logs, or
    * the target is a lake.
    """
    if error.errno != er.ALTER_OPERATION_NOT_SUPPORTED_REASON or dialect_of(target.kind).commits_per_table:
        return []
    stored = open_master_info(config, channel, lambda: target.engine)
    if not stored.exists() or stored.read().master_binlog_dir:
        return []
    if config.on_uncomputable_ddl != RECOPY:
        error.hint = _HINT
        return []
    names = list(dict.fromkeys(_updated(run, rules)))
    if names:
        text = f"{', '.join(map('.'.join, names))}: copied again from the source. {error.message}"
        log.warning("%s", text)
        note_event(config.datadir, channel.name, "recopy", text)
    return names


def _updated(run: EventRun, rules: ReplicationFilter) -> Iterator[TableName]:
    for number in np.flatnonzero(run.types == EventType.QUERY).tolist():
        query = parse_query(run.event(number), run.description)
        context = ddl_context(query, run.description, rules.lower_case)
        updated, _ = named_tables(query.sql, rules.rewritten(query.database), context)
        yield from (name for name in updated if rules.accepts_rows(*name))
