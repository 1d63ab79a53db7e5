"""Find the problems of the target and the source of a channel.

The target must accept writes and have the tables. The source must have the log that the channel needs next.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, ask_source, engine_of, no_engine
from rplctl.command.check.ahead import judge_purge, judge_skew
from rplctl.command.check.findings import Finding, found
from rplctl.command.check.repository import Stored
from rplctl.command.check.source_end import without_ignored
from rplctl.command.process.thread_report import threads_of
from rplctl.config import Config
from rplctl.deadline import own_work
from rplctl.errors import RplError, SourceError, TargetError
from rplctl.event.gtid import GtidHistory, MariadbGtidState, has_reached
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition, log_number
from rplctl.repository import open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.source.base import COPY_AGAIN
from rplctl.status import read_status
from rplctl.target import dialect_of, open_target
from rplctl.target.asked_once import answer
from rplctl.target.registry import is_missing_file
from rplctl.target_url import url_without_password

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rplctl.schema.model import TableModel

LOADED = "rplctl load-schema --rows-loaded all"
_FOLDER = "put the missing logs into the folder; or load a backup, then rplctl change-master with its position"
UNFIT = frozenset({"target_lost", "target_of_another"})


def check_belonging(config: Config, channel: Channel) -> Iterator[Finding]:
    """Yield a finding if the stored position does not belong to this target.

    If the target or the stored position cannot be read, yield none, because other findings report this failure.
    """
    with suppress(RplError):
        if is_missing_file(config.target_place) and not _has_applied(config, channel):
            return  # the target's file is created later, and a FILE repository does not need it yet (design D16)
        with own_work():
            from rplctl.commit.belonging import belonging_of

        if (error := belonging_of(config, channel, engine_of(config)).error) is not None:
            yield found(error.state, error.message, error.hint)


def _has_applied(config: Config, channel: Channel) -> bool:
    file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, no_engine).stored()
    return read_status(channel.status_path(APPLIER)).has_applied or (file is not None and bool(file.left_at))


def check_target(config: Config, channel: Channel, stored: Stored) -> Iterator[Finding]:
    """Yield findings about the target: whether it answers, accepts a write, and has the tables of the channel.

    The checked tables are those whose definitions are known at the executed position. The write changes no row.
    """
    from sqlalchemy.exc import SQLAlchemyError

    try:
        engine = engine_of(config)()
        if dialect_of(engine.dialect.name).is_missing(engine):  # a query would create the file
            if threads_of(channel).applier.has_run:
                shown = url_without_password(config.target_url)
                yield found("target_away", f"the file of {shown} is no longer there", "mount or restore it")
            return
        yield from _version(engine)
        with_models = answer(engine, "channels with models", lambda: _channels_with_models(engine))
    except (SQLAlchemyError, RplError) as error:
        text = error.message if isinstance(error, RplError) else f"the target does not answer: {_reason(error)}"
        yield found("target_away", text, "rplctl doctor; rplctl change-target URL")
        return
    if with_models is None:
        return
    yield from answer(engine, "write", lambda: list(_write(engine)))
    if channel.name.casefold() not in with_models:
        return
    from rplctl.own_tables.models import load_models, tables_made_empty

    position = stored.relay.exec_position if stored.relay else BinlogPosition("", 0)
    with engine.connect() as connection:
        catalog = load_models(connection, channel.name, position)
        empty = [f"{database}.{table}" for database, table in tables_made_empty(connection, channel.name)]
    if empty:
        text = f"load-schema created these tables empty, and their rows were never copied: {', '.join(empty)}"
        yield found("rows_never_copied", text, "copy the rows (INITIAL COPY in rplctl(1)), then " + LOADED)
    # sequences have no rows to check
    if models := [model for model in catalog.tables.values() if model.holds_rows]:
        yield from _tables(config, models)


def _channels_with_models(engine: Engine) -> frozenset[str] | None:
    """Return the channels whose table definitions the target stores, with their names in lower case.

    None means that the target does not have the internal table of definitions yet.
    """
    from sqlalchemy import inspect

    from rplctl.own_tables.tables import channels_in, table_models

    if not inspect(engine).has_table("rplctl_table_models", schema=dialect_of(engine.dialect.name).own_schema):
        return None
    with engine.connect() as connection:
        return channels_in(connection, table_models(engine.dialect.name))


def _tables(config: Config, models: list[TableModel]) -> Iterator[Finding]:
    target = open_target(config.target_url)
    try:
        for model in models:
            try:
                target.check_table(model)
            except TargetError as error:
                code = "table_missing" if error.errno == er.NO_SUCH_TABLE else "table_differs"
                yield found(code, error.message, error.hint or "rplctl load-schema --from-source")
    finally:
        target.rollback()
        target.close()


def _version(engine: Engine) -> Iterator[Finding]:
    from rplctl.repository.install import SCHEMA_VERSION, is_newer

    if version := answer(engine, "version", lambda: is_newer(engine)):
        text = f"rplctl's tables have version {version}, this rplctl supports versions up to {SCHEMA_VERSION}"
        yield found("tables_newer", text, "install the version of rplctl that created the tables")


def _write(engine: Engine) -> Iterator[Finding]:
    """Yield a finding if an UPDATE that changes no row fails: privileges are missing, or the target is read-only."""
    from sqlalchemy import false, update
    from sqlalchemy.exc import SQLAlchemyError

    from rplctl.own_tables.tables import commit_marker

    marker = commit_marker(engine.dialect.name)
    try:
        with engine.begin() as connection:
            connection.execute(update(marker).where(false()).values(File_in_step=marker.c.File_in_step))
    except (SQLAlchemyError, TargetError) as error:
        reason = error.message if isinstance(error, TargetError) else _reason(error)
        yield found("target_refuses_writes", f"the target refuses writes: {reason}", "see PRIVILEGES in rplctl(1)")


def _reason(error: BaseException) -> str:
    return " ".join(str(getattr(error, "orig", None) or type(error).__name__).split())[:300]


def check_source(config: Config, channel: Channel, stored: Stored) -> Iterator[Finding]:
    """Query the source, or read its folder, and yield the findings. If no source is configured, yield none."""
    master, relay = stored.master, stored.relay or RelayLogInfo()
    if master is None or not master.is_configured:
        return
    next_event = _next_event(master, relay)
    if master.master_binlog_dir:
        from rplctl.source.log_folder import log_names

        folder = Path(master.master_binlog_dir)
        try:
            sizes = {name: (folder / name).stat().st_size for name in log_names(folder)}
        except (OSError, SourceError) as error:
            yield found("source_away", f"{folder}: {error}", "rplctl change-master --master-binlog-dir DIR")
            return
        yield from judge_position(sizes, next_event, _FOLDER)
        return
    from rplctl.source.keeps import look, purge_at, purged_gtids

    try:
        with ask_source(config, master) as query:
            kept = look(query)
            purged = purged_gtids(query, kept) if master.uses_gtid and kept.logs else ""
    except RplError as error:
        yield found("source_away", error.message, error.hint or "rplctl doctor")
        return
    yield from judge_identity(kept.variables, master, config.server_id)
    yield from judge_skew(kept.clock.difference, kept.clock.error)
    if kept.variables.get("log_bin") != "ON":
        text = "the source writes no binary log"
        yield found("source_binlog_off", text, "set log_bin on the source and restart it")
        return
    said = read_status(channel.status_path("receiver"))
    if not (next_event.log_name or relay.gtid_executed):
        yield from judge_beginning(kept.logs)
    elif master.uses_gtid:
        yield from judge_gtids(without_ignored(purged, master), relay.gtid_executed, said.retrieved_gtid_set)
        if not [*judge_identity(kept.variables, master, 0)]:  # positions of two servers cannot be compared
            begun_anew = judge_position(kept.logs, next_event)
            yield from (finding for finding in begun_anew if finding.code == "source_past_end")
    else:
        yield from judge_position(kept.logs, next_event)
    moment = purge_at(kept, next_event, said.read_timestamp, said.source_bytes_per_s)
    if moment is not None:
        yield from judge_purge(max(0.0, moment - time.time()), next_event.log_name, kept.keeps_s)


def _next_event(master: MasterInfo, relay: RelayLogInfo) -> BinlogPosition:
    """Return the position of the event that the channel fetches next: the later one of the read position and the
    executed position (WL#4621).
    """
    read, executed = master.read_position, relay.exec_position
    return executed if executed.log_name and (not read.log_name or read.is_before(executed)) else read


def judge_identity(variables: Mapping[str, str], master: MasterInfo, server_id: int) -> Iterator[Finding]:
    """Yield findings about the server ids of the source.

    One finding reports that the source is another server than before. The other finding reports that `server_id`, the
    id of this instance, is also the source's id; 0 skips this check.
    """
    seen_id, seen_uuid = master.master_server_id, master.uuid
    now_id, now_uuid = variables.get("server_id", ""), variables.get("server_uuid", "")
    differs = (seen_id and now_id and str(seen_id) != now_id) or (seen_uuid and now_uuid and seen_uuid != now_uuid)
    if differs:
        yield found(
            "source_changed",
            f"{master.host}:{master.port} is server {now_id} {now_uuid}; "
            f"the channel replicated from {seen_id} {seen_uuid}",
            "if the change is intended, run rplctl change-master --master-host HOST with file and position",
        )
    if server_id and now_id == str(server_id):
        text = f"server_id {server_id} is also the server_id of this instance"
        yield found("source_same_server_id", text, "rplctl init --server-id N")


def judge_beginning(sizes: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a finding if the source has purged its first logs, for a channel that has not begun to read.

    The remaining logs then do not contain the older rows. `sizes` maps the source's logs to their sizes in bytes.
    """
    if sizes and (first := min(sizes, key=log_number)) and log_number(first) > 1:
        text = f"the channel never began, and the source's logs begin with {first}: they do not contain the older rows"
        yield found("source_purged", text, "rplctl clone")


def judge_gtids(purged: str, executed: str, retrieved: str) -> Iterator[Finding]:
    """Yield a finding if the source has purged GTIDs that the channel has neither executed nor retrieved.

    `purged` has the GTIDs that are in none of the source's logs. All three texts are GTID sets; '' is the empty set.
    """
    have_any = executed or retrieved
    if not purged or have_any and (":" in purged) != (":" in have_any):  # GTIDs of the other vendor: start reports it
        return
    if ":" in purged:
        lacks_some = not has_reached(purged, executed, retrieved)
    else:
        states = (MariadbGtidState.parse(executed), MariadbGtidState.parse(retrieved))
        lacks_some = GtidHistory.parse(purged).is_surely_ahead_of(*states)
    if lacks_some:
        text = f"the source purged its logs up to {purged}, and the channel has not received all of these GTIDs"
        yield found("source_purged", text, COPY_AGAIN)


def judge_position(sizes: Mapping[str, int], position: BinlogPosition, repair: str = COPY_AGAIN) -> Iterator[Finding]:
    """Yield a finding if the source's logs do not contain `position`, where the channel reads next.

    Either the source has purged this position, or its logs end before it. `sizes` maps the source's logs to their sizes
    in bytes. `repair` is the advice in the finding.
    """
    if not position.log_name or not sizes:
        return
    if position.log_name in sizes:
        size = sizes[position.log_name]
        if position.log_pos > size:
            text = f"{position} is past the end of the source's binary log ({size}): the source lost events"
            yield found("source_past_end", text, repair)
        return
    if log_number(position.log_name) < min(map(log_number, sizes)):
        text = (
            f"the source purged {position.log_name}, which is needed next; its first log is "
            f"{min(sizes, key=log_number)}"
        )
        yield found("source_purged", text, repair)
    else:
        yield found("source_past_end", f"the source has no {position.log_name}, which is needed next", repair)
