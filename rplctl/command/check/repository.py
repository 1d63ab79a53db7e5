"""Find problems of the stored records: each must exist once, be complete, and be in the configured repository.

Nothing is changed. If a record cannot be read, this is a finding, and no other finding is based on the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rplctl.channel import Channel, lock_holder
from rplctl.command.channel.change_options import ignored_settings
from rplctl.command.channel.context import APPLIER, Repositories, open_repositories
from rplctl.command.channel.lost_record import lost_record, record_from_marker
from rplctl.command.check.findings import Finding, found
from rplctl.config import Config
from rplctl.durable import is_readable_by_others
from rplctl.errors import RplError, TargetError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.renaming import is_of, pending_rename
from rplctl.repository import open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, OlderLayout, Record
from rplctl.repository.switch import keep_one, may_have_table, may_have_target, position_of
from rplctl.secret import KEY_FILE
from rplctl.target.registry import dialect_of


@dataclass(slots=True)
class Stored:
    """The records of a channel, MasterInfo and RelayLogInfo. A record that could not be read is None."""

    master: MasterInfo | None = None
    relay: RelayLogInfo | None = None


def check_repositories(config: Config, channel: Channel, stored: Stored, *, is_fit: bool = True) -> Iterator[Finding]:
    """Yield findings about the repositories, and store each readable record in `stored`, for the checks that follow.

    `is_fit` is True if the stored position belongs to this target. If it is False, missing records are not reported,
    and nothing is compared with the marker.
    """
    yield from _interrupted(channel)
    repositories = open_repositories(config, channel.name)
    damaged = False
    for record in (MASTER_INFO, RELAY_LOG_INFO):
        for item in _one_record(record, repositories, stored):
            damaged = damaged or item.code in ("repository_damaged", "repository_both", "repository_old_layout")
            yield item
    yield from _ignored(channel, stored)
    if stored.relay is not None and not damaged and is_fit and may_have_target(config):
        yield from _marker(repositories, stored.relay)
    has_relay = stored.relay is not None and stored.relay.master_log_name
    if stored.relay is not None and has_relay and stored.master is None and is_fit and not damaged:
        yield _no_master_info(repositories, stored.relay)
    is_missing = stored.master is not None and stored.relay is None and stored.master.master_log_name
    if stored.master is not None and is_missing and is_fit and not damaged:
        yield _missing(repositories, stored.master)


def _no_master_info(repositories: Repositories, relay: RelayLogInfo) -> Finding:
    executed = relay.exec_position
    text = f"there is no MasterInfo in {repositories.master_info.where}, but RelayLogInfo exists (applied: {executed})"
    where = f"--master-log-file {executed.log_name} --master-log-pos {executed.log_pos}"
    return found("repository_missing", text, f"rplctl change-master --master-host HOST --master-user USER {where}")


def _missing(repositories: Repositories, master: MasterInfo) -> Finding:
    text = f"there is no RelayLogInfo in {repositories.relay_log_info.where}"
    try:
        marker = record_from_marker(repositories, master, dry_run=True)
    except TargetError:  # check_target names it
        marker = None
    if marker is not None:
        return found(
            "repository_missing",
            f"{text}; the position in the target is {marker.exec_position}",
            "rplctl start (creates the record)",
        )
    error = lost_record(repositories, master)
    return found("repository_missing", f"{text}{error.message.partition(text)[2]}", error.hint)


def _interrupted(channel: Channel) -> Iterator[Finding]:
    for record in (MASTER_INFO, RELAY_LOG_INFO):
        if (channel.run_folder / f"switch-{record.name}.json").exists():
            yield found(
                "switch_interrupted", f"a switch of {record.name} was interrupted", "rplctl start (finishes it)"
            )
    if (channel.run_folder / "change_master.pending").exists():
        yield found("change_interrupted", "a CHANGE MASTER was interrupted", "rplctl start (finishes it)")
    if (rename := pending_rename(channel.datadir)) is not None and is_of(rename, channel.name):
        text = f"a rename of channel '{rename.old}' to '{rename.new}' was interrupted"
        yield found("rename_interrupted", text, "rplctl start (finishes it)")


def _ignored(channel: Channel, stored: Stored) -> Iterator[Finding]:
    """Yield a finding for each stored setting that has no effect in rplctl. Such settings come from the files of a
    server.
    """
    where = f" --channel {channel.name}" if channel.name else ""
    for row in ignored_settings(stored.master or MasterInfo(), stored.relay or RelayLogInfo()):
        off = "0" if row.kind == "switch" else "''"
        yield found(
            "option_ignored",
            f"{row.sql_name} is stored and has no effect here: {row.refused}",
            f"rplctl change-master{where} {row.flags[0]} {off}; {row.instead}",
        )


def _one_record(record: Record[Any], repositories: Repositories, stored: Stored) -> Iterator[Finding]:
    """Yield the findings about one record, and assign it to `stored` if it can be read."""
    config, channel = repositories.config, repositories.channel
    wanted = record.kind(config)
    places: dict[RepositoryKind, Any] = {}
    infos: dict[RepositoryKind, Any] = {}
    yield from _file_modes(record, channel)
    for kind in RepositoryKind:
        if kind is not wanted and kind is RepositoryKind.TABLE and not may_have_table(config):
            continue
        place = places[kind] = open_repository(record, kind, config, channel, repositories.engine)
        try:
            info = place.stored()
            if info is not None and record.has_data(info):
                if kind is wanted is RepositoryKind.TABLE:
                    yield from _engine(place, repositories)
                infos[kind] = info
        except TargetError:  # check_target names it
            continue
        except RplError as error:
            old = isinstance(error, OlderLayout)
            if kind is wanted or old:
                yield found("repository_old_layout" if old else "repository_damaged", error.message, error.hint)
    if len(infos) > 1 and not (channel.run_folder / f"switch-{record.name}.json").exists():
        there = {places[kind].where: position_of(info) for kind, info in infos.items()}
        where = " and in ".join(f"{place} (at {position})" for place, position in there.items())
        yield found("repository_both", f"{record.name} is in {where}: the next start refuses", keep_one(*there))
    if infos and wanted not in infos:
        ((other, infos[wanted]),) = infos.items()
        text = f"{record.option}={wanted}, but {record.name} is in {places[other].where}: the next start moves it"
        yield found("repository_elsewhere", text, "rplctl start")
    if record is MASTER_INFO:
        stored.master = infos.get(wanted)
    else:
        stored.relay = infos.get(wanted)


def _file_modes(record: Record[Any], channel: Channel) -> Iterator[Finding]:
    for path in (record.path(channel), channel.datadir / KEY_FILE) if record is MASTER_INFO else ():
        if path.exists() and is_readable_by_others(path):
            yield found("file_mode", f"{path} may hold a password and others can read it", f"chmod 600 {path}")


def _engine(place: Any, repositories: Repositories) -> Iterator[Finding]:
    if not place.is_transactional():
        command = dialect_of(repositories.engine().dialect.name).to_crash_safe.format(table=place.where)
        text = f"{place.where} is in an engine without transactions: rows may be lost when the target crashes"
        yield found("repository_not_transactional", text, command)


def _marker(repositories: Repositories, relay: RelayLogInfo) -> Iterator[Finding]:
    """Yield a finding if the position in the file differs from the marker, while no applier runs (commit mode
    `marker`).
    """
    from rplctl.commit.marker import is_file_edited

    if lock_holder(repositories.channel, APPLIER):
        return
    try:
        marker, in_step = repositories.marker()
    except TargetError:  # check_target names it
        return
    if marker is None or marker.exec_position == relay.exec_position:
        return
    where = repositories.relay_log_info.where
    is_ahead = marker.exec_position.is_before(relay.exec_position)
    if is_file_edited(relay, in_step):
        yield found(
            "edited_by_hand",
            f"{where} has {relay.exec_position}, but {marker.exec_position} is applied: the next start uses {where}",
            f"rplctl change-master --master-log-file {marker.master_log_name} --master-log-pos {marker.master_log_pos}",
        )
    elif is_ahead or in_step:
        text = f"{where}, which was not edited, has {relay.exec_position}, the target has {marker.exec_position}"
        repair = "rplctl start (uses the position in the target)"
        yield found("target_gone_back", f"{text}: one of them is from a backup", repair)
    else:
        text = f"{where} is older than the position that was committed before a crash, {marker.exec_position}"
        yield found("file_behind_marker", text, "rplctl start (moves it forward)")
