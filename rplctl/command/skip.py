"""`skip`: the operator's way past a transaction (sql_slave_skip_counter, or by GTID)."""

from __future__ import annotations

from dataclasses import dataclass, field

from rplctl import mysql_errors as er, skip_list
from rplctl.command.channel.context import APPLIER, Note, administer, refuse_while_running
from rplctl.config import Config
from rplctl.errors import UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet, is_executed
from rplctl.history import note_event


@dataclass(frozen=True, slots=True)
class SkipResult:
    channel: str
    count: int = field(metadata={"column": "Skip_Counter"})  # transactions that the next start passes over
    gtids: tuple[str, ...] = field(metadata={"column": "Skip_Gtids"})  # passed over when they are reached
    notes: tuple[Note, ...]
    dry_run: bool


def skip(config: Config, channel_name: str, count: int | None, gtids: str = "", *, dry_run: bool = False) -> SkipResult:
    """The next start passes over `count` transactions (sql_slave_skip_counter; 0 takes back all that is still to be
    skipped), or over each GTID's when it is reached: both are committed as empty ones. Raises UsageError 3085, 1772,
    1941.
    """
    if count is not None and count < 0:
        raise UsageError(f"skip {count}: a number of transactions, 0 to take it back")
    wanted = _parts(gtids)
    with administer(config, channel_name) as repositories:
        folder = repositories.channel.run_folder
        repositories.master()
        refuse_while_running(repositories.channel, APPLIER)
        done, kept = _executed(repositories.relay().gtid_executed, wanted), skip_list.read_gtids(folder)
        kept = () if count == 0 else (*kept, *(g for g in wanted if g not in done and g not in kept))
        left = skip_list.read_count(folder) if count is None else count
        if not dry_run:
            if count is not None:
                skip_list.write_count(folder, count)
            skip_list.write_gtids(folder, kept)
            what = f"skip {count}" if count is not None else f"skip --gtid {gtids}"
            note_event(config.datadir, channel_name, "skip", what)
    notes = tuple(Note(f"GTID {gtid} is executed already: there is nothing to skip") for gtid in done)
    return SkipResult(channel_name, left, kept, notes, dry_run)


def _parts(gtids: str) -> tuple[str, ...]:
    """`domain-server-number,…` one by one, a MySQL set by source, each as the servers print it."""
    parts = tuple(part.strip() for part in gtids.split(",") if part.strip())
    if not any(":" in part for part in parts):
        return tuple(str(MariadbGtidState.parse(part)) for part in parts)
    return tuple(str(MysqlGtidSet.parse(gtids)).split(","))


def _executed(executed: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the GTIDs whose transactions are behind the applier. Raises UsageError for the other vendor's."""
    if executed and any((":" in gtid) != (":" in executed) for gtid in wanted):
        kind = "UUID:NUMBER" if ":" in executed else "DOMAIN-SERVER-NUMBER"
        raise UsageError(
            f"this channel's GTIDs are of the form {kind}",
            errno=er.MALFORMED_GTID_SET_SPECIFICATION if ":" in executed else er.INCORRECT_GTID_STATE,
            hint="rplctl show-status --field Executed_Gtid_Set",
        )
    return tuple(gtid for gtid in wanted if is_executed(gtid, executed))
