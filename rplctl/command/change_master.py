"""CHANGE MASTER TO: set where a channel reads from and how it connects (MySQL's order of checks).

    1. channel name                        3076
    2. running threads                     3081, 3021, 3085
    3. values and their dependencies       1210 … 1776
    4. stored records                      1201, 1872, REQ-6
    5. relay logs purged (both threads stopped, and what is given says that they are of no use:
       channel/change_plan.py), both records flushed, journal

Neither 3075 nor 3078 is raised, here or by a server: MySQL 9 lets two channels read one host and port, too, and what
stops a channel from being removed has an error of its own (3081, 1205, the system's).

Invariant: the records change as one (channel/change_store.py); that of a running thread stays, it moves while we look.
"""

from __future__ import annotations

from dataclasses import replace

from rplctl.channel import Channel, check_channel_name
from rplctl.command.channel import change_plan as plan
from rplctl.command.channel.both_places import refuse_both_places
from rplctl.command.channel.change_options import (
    BOTH,
    EXECUTE,
    RECEIVE,
    MasterChanges,
    check_changes,
    without_zeros,
)
from rplctl.command.channel.change_store import (
    ChangeResult,
    after_pending_change,
    resolve_position,
    store_change,
    stored_records,
)
from rplctl.command.channel.context import APPLIER, RECEIVER, ROLES, Note, Repositories, administer, running
from rplctl.command.channel.lost_record import is_lost, lost_record, made_again
from rplctl.config import Config
from rplctl.errors import TargetError, must_stop
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.index import RelayLogIndex

_POSITION = ("master_log_file", "master_log_pos")


def change_master(config: Config, channel_name: str, changes: MasterChanges, *, dry_run: bool = False) -> ChangeResult:
    """Raises UsageError, RplError with MySQL's numbers, ConfigError, TargetError."""
    check_channel_name(channel_name)
    changes = without_zeros(changes)
    with administer(config, channel_name, makes=True, dry_run=dry_run) as repositories:
        config, channel = repositories.config, repositories.channel
        repositories, finished = after_pending_change(repositories, dry_run=dry_run)
        refuse_both_places(repositories)
        threads = running(channel)
        _check_running(channel_name, changes, threads)
        check_changes(changes)
        created = not repositories.master_info.exists()
        master, relay = stored_records(repositories, dry_run=dry_run)
        if not created and is_lost(repositories, master):
            relay = _lost(repositories, changes, master, dry_run=dry_run) or relay
        stands = created and repositories.relay_log_info.exists()
        master = plan.taken_for_the_same(changes, master) if stands else master
        plan.check_dependencies(changes, master, relay)
        plan.check_own_id(config, channel, changes)
        stays: tuple[Note, ...] = ()
        try:
            if resolve_position(repositories, dry_run=dry_run):
                relay = repositories.relay_log_info.read()
        except TargetError as error:
            stays = (_applier_stays(changes, master, error, channel_name),)
            threads |= {APPLIER: 0}  # as if it ran: its record and its relay logs stay as they are
        relay = _as_the_operator_says(repositories, changes, relay)
        plan.check_way(changes, master, relay)
        purges = not threads and plan.purges_relay_logs(changes, master)
        executed = _executed(channel, relay, by_gtid=master.uses_gtid) if purges else relay.exec_position
        stored = replace(changes, password=None) if dry_run else changes  # the key of passwords may not be there yet
        new_master = plan.new_master_info(config, stored, master, executed, purges)
        notes = [
            *plan.change_notes(config, changes, master, new_master),
            *plan.position_notes(changes, master, relay, purges),
        ]
        if stands and not purges and relay.master_log_name:
            begun = f"MasterInfo was gone and RelayLogInfo was not: the channel continues from {relay.exec_position}. "
            notes.append(Note(f"{begun}If this is another source: add --master-log-file and --master-log-pos"))
        result = ChangeResult(
            channel_name,
            master,
            new_master,
            plan.new_relay_log_info(channel, changes, relay, (master, new_master), purges),
            created,
            purges,
            dry_run,
            (*finished, *notes, *stays),
            frozenset(threads),
            plan.repeats(changes, master, relay),
        )
        if not dry_run:
            store_change(repositories, result, "CHANGE MASTER TO")
        return result


def _as_the_operator_says(repositories: Repositories, changes: MasterChanges, relay: RelayLogInfo) -> RelayLogInfo:
    """In a target that is lost a position that is given needs no marker until something is committed (design D29)."""
    is_given = plan.names_position(changes) or changes.relay_log_pos is not None
    if not relay.left_at or not is_given or APPLIER in running(repositories.channel):
        return relay
    return relay if repositories.target_is_fit() else replace(relay, left_at="")


def _lost(
    repositories: Repositories, changes: MasterChanges, master: MasterInfo, *, dry_run: bool
) -> RelayLogInfo | None:
    """RelayLogInfo is gone: the marker's in its place. Raises RplError 1201 without one, unless a place is named."""
    found = made_again(repositories, master, dry_run=dry_run)
    if found is None and not (plan.names_position(changes) or plan.names_other_source(changes, master)):
        raise lost_record(repositories, master)
    return found


def _executed(channel: Channel, relay: RelayLogInfo, *, by_gtid: bool) -> BinlogPosition:
    """Up to where the source's log is applied; where fetching once began when nothing is."""
    index = RelayLogIndex(channel)
    begun = None
    if not relay.master_log_name and (fetched := index.names()):
        from rplctl.relay_log.locate import first_fetched

        begun = first_fetched(index, fetched, relay, by_gtid=by_gtid)
    return begun or BinlogPosition(relay.master_log_name, max(FIRST_EVENT_POSITION, relay.master_log_pos))


def _applier_stays(changes: MasterChanges, master: MasterInfo, error: TargetError, channel: str) -> Note:
    """Without the target the receiver may be sent elsewhere, as under a running applier. Raises TargetError when the
    applier's position would move: only the target knows up to where its rows go.
    """
    moved = [row.name for row in changes.given() if row.concerns != RECEIVE or row.name in _POSITION]
    is_other = plan.names_other_source(changes, master)
    if not error.transient or moved or (is_other and not master.uses_gtid):
        what = ", ".join(name.upper() for name in moved) or "another source without GTIDs"
        raise TargetError(
            f"{error.message.rstrip('.')}: only the target knows its position, and {what} moves the applier",
            errno=error.errno,
            hint="when the target is there again; without it: connection options, or with GTIDs another source",
        ) from None
    return Note(
        f"the target cannot be asked ({error.message}): rplctl keeps the relay logs, and the applier continues in them"
    )


def _check_running(channel: str, changes: MasterChanges, threads: dict[str, int]) -> None:
    concerns = {row.concerns for row in changes.given()}
    if changes.password is not None or changes.password_reference is not None:
        concerns.add(RECEIVE)
    if threads and (BOTH in concerns or (concerns >= {RECEIVE, EXECUTE} and len(threads) == len(ROLES))):
        raise must_stop(channel)
    for concern, role in ((RECEIVE, RECEIVER), (EXECUTE, APPLIER)):
        if concern in concerns and role in threads:
            raise must_stop(channel, role)
