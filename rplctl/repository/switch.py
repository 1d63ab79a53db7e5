"""The change of a repository from FILE to TABLE or back (WL#2775 REQ-6), with a journal that makes it crash-safe.

REQ-6 has a matrix: which repositories have data, and which kind the options name, determine the action (`DECISION`).
Invariant: the complete record is always in the repository that the options name now, or in the one that they name after
the next command. The last copy is never deleted. MySQL's own switch is not crash-safe. If rplctl's switch (design D6)
is killed at any point, the next command completes or undoes it. The last column has the crash points of the tests:

    1 journal   `run/CHAN/switch-….json`, state `copying`: from, to, digest of the record        switch_after_journal
    2 write     the record into the new repository, durably                                      switch_after_write
    3 mark      the journal's state becomes `decided`, the options name the new repository       switch_after_mark
    4 delete    the record in the old repository                                                 switch_after_delete
    5 forget    the journal

After a crash before step 3, the next command removes the copy. After a later crash, it resumes the switch. If both
repositories have a record with data and there is no journal, the switch fails with the server's error and changes
nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rplctl.channel import Channel, hold_lock, lock_holder
from rplctl.config import Config
from rplctl.durable import remove_file, replace_file
from rplctl.errors import RepositoryConflict, RplError, must_stop
from rplctl.failpoint import crash_point
from rplctl.option_file import store_options
from rplctl.plain_file import parsed_json, read_plain
from rplctl.repository import create_tables, open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record
from rplctl.target.registry import dialect_of, target_kind

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rplctl.repository.file import FileRepository
    from rplctl.repository.table import TableRepository

    _Place = FileRepository[Any] | TableRepository[Any]

RECORDS: dict[str, Record[Any]] = {record.name: record for record in (MASTER_INFO, RELAY_LOG_INFO)}
LOCK_PATIENCE_S = 30.0  # a start waits so many seconds until another command has finished its switch
FILE, TABLE = RepositoryKind.FILE, RepositoryKind.TABLE


class SwitchAction(StrEnum):
    """The action of a switch between FILE and TABLE (REQ-6).

    The action depends on which of the two repositories have data, and on the wanted kind.
    """

    READ = "read"
    FILL_IN = "fill in"
    UPDATE_AND_DELETE = "update, and delete the other"
    ERROR = "error"


# maps (table has data, file has data) and the wanted kind to the action
DECISION: dict[tuple[tuple[bool, bool], RepositoryKind], SwitchAction] = {
    ((False, True), TABLE): SwitchAction.UPDATE_AND_DELETE,
    ((False, True), FILE): SwitchAction.READ,
    ((True, True), TABLE): SwitchAction.ERROR,
    ((True, True), FILE): SwitchAction.ERROR,
    ((False, False), TABLE): SwitchAction.FILL_IN,
    ((False, False), FILE): SwitchAction.FILL_IN,
    ((True, False), TABLE): SwitchAction.READ,
    ((True, False), FILE): SwitchAction.UPDATE_AND_DELETE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPlan:
    """The plan of a switch: which repositories have data, the action of REQ-6 for this case, and its steps.

    `switch-repo --dry-run` prints the plan.
    """

    repository: str  # master-info or relay-log-info
    channel: str
    wanted: RepositoryKind
    table_has_data: bool
    file_has_data: bool
    action: SwitchAction
    file_where: str
    table_where: str
    steps: tuple[str, ...]
    positions: tuple[str, str] = ("", "")  # the positions in the file and in the table, if both have data


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intent:
    """The journal of a switch. It has a digest of the record, and not the record, which may contain a password."""

    repository: str
    to: str
    state: str  # copying | decided
    digest: str
    store: bool  # True if rplctl.toml must name the new kind after the switch


def plan_switch(  # noqa: PLR0913 - the two repositories, the record and the wanted kind
    config: Config,
    channel: Channel,
    engine: Callable[[], Engine],
    repository: str,
    wanted: RepositoryKind,
    to_come: RepositoryKind | None = None,
) -> SwitchPlan:
    """Return the plan for a switch to the kind `wanted`, after reading the FILE and the TABLE.

    This function changes nothing. `repository`: a key of RECORDS. `to_come`: the kind of the repository into which an
    unfinished switch will still write. This repository counts as one with data.
    """
    record = RECORDS[repository]
    file, table = (open_repository(record, kind, config, channel, engine) for kind in (FILE, TABLE))
    cell = (table.exists() or to_come is TABLE, file.exists() or to_come is FILE)
    action = DECISION[cell, wanted]
    new, old = (table, file) if wanted is TABLE else (file, table)
    steps = {
        SwitchAction.READ: (f"read {new.where}",),
        SwitchAction.FILL_IN: (f"fill in {new.where}",),
        SwitchAction.UPDATE_AND_DELETE: (f"update {new.where} from {old.where}", f"delete {old.where}"),
        SwitchAction.ERROR: (),
    }[action]
    both = action is SwitchAction.ERROR
    at = (_position_in(file), _position_in(table)) if both else ("", "")
    return SwitchPlan(
        repository=repository,
        channel=channel.name,
        wanted=wanted,
        table_has_data=cell[0],
        file_has_data=cell[1],
        action=action,
        file_where=file.where,
        table_where=table.where,
        steps=steps,
        positions=at,
    )


def _position_in(place: _Place) -> str:
    return position_of(place.read()) if place.exists() else "the position of the unfinished change"


def is_cut_off(channel: Channel, repository: str) -> bool:
    """True if a switch of this repository was interrupted, so that its journal still exists."""
    return _journal_path(channel, RECORDS[repository]).exists()


def position_of(info: Any) -> str:
    """Return the position in a record as text, for messages. The text includes the executed GTIDs, if there are any."""
    place = info.exec_position if hasattr(info, "exec_position") else info.read_position
    gtids = getattr(info, "gtid_executed", "")
    return f"{place if place.log_name else 'the first log'}{f', {gtids}' if gtids else ''}"


def keep_one(file: str, table: str) -> str:
    return (
        "keep the record whose position matches the target's rows, usually the later one, because with the other one "
        f"transactions are applied twice or skipped. To keep the row, run: mv {file} elsewhere; "
        f"to keep the file, DELETE the channel's row from {table}"
    )


def carry_out(  # noqa: PLR0913 - a switch needs all of them
    plan: SwitchPlan,
    config: Config,
    channel: Channel,
    engine: Callable[[], Engine],
    *,
    store: bool = True,
    has_applied: Callable[[], bool] = lambda: False,
) -> Config:
    """Execute the plan, and return the options, in which the repository now has the wanted kind.

    `store`: True to write the kind into rplctl.toml for this channel, as `switch-repo` does. A start passes False,
    because its options already name the kind. `has_applied`: returns True if an applier has already worked in the
    target. In this case, the new file gets the field `left_at`, which shows that the target has rows of the channel.
    Raises UsageError 3081 if a thread of the channel runs, RepositoryConflict if both repositories have data, and
    RplError if the plan is out of date.
    """
    with hold_lock(channel, "switch", LOCK_PATIENCE_S):
        if {lock_holder(channel, role) for role in ("receiver", "applier")} - {None, os.getpid()}:
            raise must_stop(channel.name)
        if plan_switch(config, channel, engine, plan.repository, plan.wanted) != plan:
            raise RplError(
                f"{plan.repository} changed since the switch was planned",
                channel=channel.name,
                hint="run the same command again",
            )
        if plan.action is SwitchAction.ERROR:
            raise conflict(plan)
        switch = Switch(config, channel, engine, RECORDS[plan.repository], plan.wanted)
        if plan.action is SwitchAction.UPDATE_AND_DELETE:
            switch.copy_and_delete(store, has_applied)
        else:
            if plan.action is SwitchAction.FILL_IN:
                switch.fill_in()
            if store:
                switch.store_option()
            if plan.action is SwitchAction.FILL_IN:
                switch.old.remove()
        return switch.new_config()


def resume_switch(config: Config, channel: Channel, engine: Callable[[], Engine]) -> Config:
    """Complete or undo each switch of this channel that was interrupted, and return the resulting options.

    Every start does this first. If there is no journal, the only cost is two `stat` calls.
    """
    if not any(_journal_path(channel, record).exists() for record in RECORDS.values()):
        return config
    with hold_lock(channel, "switch", LOCK_PATIENCE_S):
        for record in RECORDS.values():
            intent = _read_intent(channel, record)
            if intent is not None:
                config = Switch(config, channel, engine, record, RepositoryKind(intent.to)).resume(intent)
    return config


def resolve_repositories(
    config: Config, channel: Channel, engine: Callable[[], Engine], has_applied: Callable[[], bool] = lambda: False
) -> Config:
    """Give both repositories the kinds that the options name, when a thread starts (REQ-6).

    Return the resulting options. First, an interrupted switch is completed or undone. `has_applied`: see `carry_out`.
    """
    upgrade_tables(config, engine)
    config = resume_switch(config, channel, engine)
    for record in RECORDS.values():
        if record.kind(config) is FILE and not may_have_table(config):
            _fill_in_file(config, channel, engine, record)
            continue
        plan = plan_switch(config, channel, engine, record.name, record.kind(config))
        if plan.action is not SwitchAction.READ:
            config = carry_out(plan, config, channel, engine, store=False, has_applied=has_applied)
    return config


def _fill_in_file(config: Config, channel: Channel, engine: Callable[[], Engine], record: Record[Any]) -> None:
    """Write a record without data to the file if the file has no record, without any access to the target."""
    file = open_repository(record, FILE, config, channel, engine)
    if file.stored() is None:
        file.flush(record.empty(channel.name), force=True)


def upgrade_tables(config: Config, engine: Callable[[], Engine]) -> None:
    """Upgrade existing repository tables of an older layout, even if the options name FILE."""
    if may_have_table(config):
        from rplctl.repository.install import upgrade_if_old
        from rplctl.repository.table import is_file_missing

        if not is_file_missing(engine()):
            upgrade_if_old(engine())


def conflict(plan: SwitchPlan) -> RepositoryConflict:
    return RepositoryConflict(
        "Multiple replication metadata repository instances found with data in them. Unable to decide which is the "
        f"correct one to choose: {plan.file_where} (at {plan.positions[0]}) and {plan.table_where} (at "
        f"{plan.positions[1]}) (channel '{plan.channel}')",
        channel=plan.channel,
        hint=keep_one(plan.file_where, plan.table_where),
    )


class Switch:
    """The switch of one record, MasterInfo or RelayLogInfo, from the other kind of repository to the kind `wanted`."""

    def __init__(
        self,
        config: Config,
        channel: Channel,
        engine: Callable[[], Engine],
        record: Record[Any],
        wanted: RepositoryKind,
    ) -> None:
        other = FILE if wanted is TABLE else TABLE
        self.config, self.channel, self.engine, self.record, self.wanted = config, channel, engine, record, wanted
        self.new: _Place = open_repository(record, wanted, config, channel, engine)
        self.old: _Place = open_repository(record, other, config, channel, engine)

    def copy_and_delete(self, store: bool, has_applied: Callable[[], bool]) -> None:
        info = self.old.read()
        if self.wanted is FILE and hasattr(info, "left_at") and has_applied():
            info = replace(info, left_at=info.place)
        intent = _Intent(
            repository=self.record.name, to=str(self.wanted), state="copying", digest=self._digest(info), store=store
        )
        self._write_intent(intent)
        crash_point("switch_after_journal")
        self.write(info)
        crash_point("switch_after_write")
        self._finish(intent)

    def fill_in(self) -> None:
        """Write a record without data to the wanted repository, if there is no record yet.

        If RESET cleared the record in the other repository, the new record has the settings of the cleared one.
        """
        if self.new.stored() is None:
            self.write(self.old.stored() or self.record.empty(self.channel.name))

    def resume(self, intent: _Intent) -> Config:
        """Complete or undo the switch after a crash, and return the resulting options.

        The crash may have happened at any point. Raises RepositoryConflict if a record has changed since the crash.
        """
        new, old = self.new.stored(), self.old.stored()
        has_new, has_old = (info is not None and self.record.has_data(info) for info in (new, old))
        mine_new, mine_old = (info is not None and self._digest(info) == intent.digest for info in (new, old))
        if has_new and (intent.state == "decided" or not has_old):
            if has_old and not mine_old:
                raise conflict(plan_switch(self.config, self.channel, self.engine, self.record.name, self.wanted))
            self._finish(intent)
            return self.new_config() if intent.store else self.config
        if has_new and not mine_new:
            raise conflict(plan_switch(self.config, self.channel, self.engine, self.record.name, self.wanted))
        if has_new:
            self.new.remove()
        remove_file(_journal_path(self.channel, self.record))
        return self.config

    def new_config(self) -> Config:
        option: dict[str, Any] = {self.record.option: str(self.wanted)}
        return replace(self.config, **option)

    def store_option(self) -> None:
        values = {self.record.option: str(self.wanted)}
        store_options(self.config.datadir, self.channel.name, values, only_this_channel=True)

    def write(self, info: Any) -> None:
        if self.wanted is TABLE:
            create_tables(self.engine(), self.config.rep_engine)
        self.new.flush(info, force=True)

    def _finish(self, intent: _Intent) -> None:
        """Execute the steps of the module from step 3 (mark) on.

        If a step is already complete, its repetition changes nothing.
        """
        self._write_intent(replace(intent, state="decided"))
        if intent.store:
            self.store_option()
        crash_point("switch_after_mark")
        self.old.remove()
        crash_point("switch_after_delete")
        remove_file(_journal_path(self.channel, self.record))

    def _digest(self, info: Any) -> str:
        """Return a digest of those fields of the record that both kinds store alike.

        The other fields are `master_id`, because a table replaces 0 by a new id, and `left_at`, which a table does not
        have.
        """
        only_in_one = {"master_id": 0, "left_at": ""}
        alike = {name: value for name, value in only_in_one.items() if hasattr(info, name)}
        return hashlib.sha256(self.record.format(replace(info, **alike))).hexdigest()

    def _write_intent(self, intent: _Intent) -> None:
        replace_file(_journal_path(self.channel, self.record), json.dumps(asdict(intent)).encode() + b"\n")


def _journal_path(channel: Channel, record: Record[Any]) -> Path:
    return channel.run_folder / f"switch-{record.name}.json"


def _read_intent(channel: Channel, record: Record[Any]) -> _Intent | None:
    path = _journal_path(channel, record)
    try:
        intent = _Intent(**parsed_json(read_plain(path)))
        RepositoryKind(intent.to)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise RplError(
            f"{path} is not a switch journal: {error}", channel=channel.name, hint=f"to remove the file, run: rm {path}"
        ) from None
    return intent


def may_have_table(config: Config) -> bool:
    """True if a record can be a row of the target.

    False if the target does not exist yet, or if only one process at a time can open the target.
    """
    return may_have_target(config) and not dialect_of(target_kind(config.target_place)).is_held


def may_have_target(config: Config) -> bool:
    """True if the target may exist. False if the target is the default SQLite file and this file does not exist yet.

    If the result is False, code that uses only files need not load SQLAlchemy.
    """
    if config.target_place != f"sqlite:///{config.datadir / 'target.db'}":
        return True
    return (config.datadir / "target.db").exists()
