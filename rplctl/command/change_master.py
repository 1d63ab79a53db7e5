"""CHANGE MASTER TO: set the source of a channel, its position and its connection.

The order of the checks is MySQL's. Each row names the errors that a check raises:

    1. channel name                        3076
    2. running threads                     3081, 3021, 3085
    3. values and their dependencies       1210 … 1776
    4. stored records                      1201, 1872, REQ-6

After the checks, the command purges the relay logs if both threads are stopped and the changes make the logs useless
(channel/change_plan.py). Then it writes both records, and an entry in history.jsonl.

rplctl never raises 3075 and 3078, and no server does. MySQL 9, too, lets two channels read one host and port. The
reasons that prevent the removal of a channel have errors of their own (3081, 1205, or an error of the operating
system).

Invariant: both records change together (channel/change_store.py). The record of a running thread is not written,
because the thread changes it at the same time.
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
from rplctl.command.channel.lost_record import is_lost, lost_record, record_from_marker
from rplctl.config import Config
from rplctl.errors import TargetError, must_stop
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.relay_log.index import RelayLogIndex

_POSITION = ("master_log_file", "master_log_pos")


def change_master(config: Config, channel_name: str, changes: MasterChanges, *, dry_run: bool = False) -> ChangeResult:
    """Carry out CHANGE MASTER TO for one channel. `dry_run` returns the same result and changes nothing.

    Raises UsageError or RplError with MySQL's number if the change is refused. Raises ConfigError if an option file is
    not valid, and TargetError if the target is needed and does not answer.
    """
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
        master = plan.with_given_source(changes, master) if stands else master
        plan.check_dependencies(changes, master, relay)
        plan.check_own_id(config, channel, changes)
        stays: tuple[Note, ...] = ()
        try:
            if resolve_position(repositories, dry_run=dry_run):
                relay = repositories.relay_log_info.read()
        except TargetError as error:
            stays = (_applier_stays(changes, master, error, channel_name),)
            threads |= {APPLIER: 0}  # treat the applier as running, so that its record and relay logs stay unchanged
        relay = _as_the_operator_says(repositories, changes, relay)
        plan.check_way(changes, master, relay)
        purges = not threads and plan.purges_relay_logs(changes, master)
        executed = _executed(channel, relay, by_gtid=master.uses_gtid) if purges else relay.exec_position
        stored = replace(changes, password=None) if dry_run else changes  # a dry run must not create the key
        new_master = plan.new_master_info(config, stored, master, executed, purges)
        notes = [
            *plan.change_notes(config, changes, master, new_master),
            *plan.position_notes(changes, master, relay, purges),
        ]
        if stands and not purges and relay.master_log_name:
            begun = f"Only RelayLogInfo existed: the channel continues from {relay.exec_position}. "
            notes.append(Note(f"{begun}For another source, add --master-log-file and --master-log-pos."))
        result = ChangeResult(
            channel=channel_name,
            previous=master,
            master_info=new_master,
            relay_log_info=plan.new_relay_log_info(channel, changes, relay, (master, new_master), purges),
            created=created,
            purges_relay_logs=purges,
            dry_run=dry_run,
            notes=(*finished, *notes, *stays),
            untouched=frozenset(threads),
            repeats=plan.repeats(changes, master, relay),
        )
        if not dry_run:
            store_change(repositories, result, "CHANGE MASTER TO")
        return result


def _as_the_operator_says(repositories: Repositories, changes: MasterChanges, relay: RelayLogInfo) -> RelayLogInfo:
    """Return `relay`. If the operator names a position and the target is lost, the field `left_at` becomes empty.

    While `left_at` is set, a start accepts the position only if the target has a marker. If `left_at` is empty, the
    position needs no marker until a transaction is committed (design D29).
    """
    is_given = plan.names_position(changes) or changes.relay_log_pos is not None
    if not relay.left_at or not is_given or APPLIER in running(repositories.channel):
        return relay
    return relay if repositories.target_is_fit() else replace(relay, left_at="")


def _lost(
    repositories: Repositories, changes: MasterChanges, master: MasterInfo, *, dry_run: bool
) -> RelayLogInfo | None:
    """Return a new RelayLogInfo in place of the lost record, with the position of the marker.

    Return None if there is no marker. Raises RplError 1201 if there is no marker and the changes name neither a
    position nor another source.
    """
    found = record_from_marker(repositories, master, dry_run=dry_run)
    if found is None and not (plan.names_position(changes) or plan.names_other_source(changes, master)):
        raise lost_record(repositories, master)
    return found


def _executed(channel: Channel, relay: RelayLogInfo, *, by_gtid: bool) -> BinlogPosition:
    """Return the executed position in the source's log.

    If nothing is applied yet, return the position at which the receiver began to fetch events.
    """
    index = RelayLogIndex(channel)
    begun = None
    if not relay.master_log_name and (fetched := index.names()):
        from rplctl.relay_log.locate import first_fetched

        begun = first_fetched(index, fetched, relay, by_gtid=by_gtid)
    return begun or BinlogPosition(relay.master_log_name, max(FIRST_EVENT_POSITION, relay.master_log_pos))


def _applier_stays(changes: MasterChanges, master: MasterInfo, error: TargetError, channel: str) -> Note:
    """Return the note that the applier continues in its present relay logs, because the target does not answer.

    The change then concerns only the receiver, as if the applier ran. Raises TargetError if the changes move the
    applier's position, because only the target knows the position of its rows.
    """
    moved = [row.name for row in changes.given() if row.concerns != RECEIVE or row.name in _POSITION]
    is_other = plan.names_other_source(changes, master)
    if not error.transient or moved or (is_other and not master.uses_gtid):
        what = ", ".join(name.upper() for name in moved) or "another source without GTIDs"
        raise TargetError(
            f"{error.message.rstrip('.')}: {what} moves the applier, and only the target knows the applier's position",
            errno=error.errno,
            hint="run the command again when the target answers; without the target, only connection options "
            "and, with GTIDs, another source can be set",
        ) from None
    return Note(
        f"The target does not answer ({error.message}). rplctl keeps the relay logs, and the applier continues in them."
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
