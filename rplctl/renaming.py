"""Renames a channel, in steps that a crash may interrupt at any point.

    step        what the step writes or renames                                                 crash point after it
    journal     `run/rename-channel.json`: the two names, and the number of finished steps      rename_after_journal
    rows        the channel's rows in the target: repositories, marker, owner, models, copies   rename_after_rows
    relay_logs  the relay logs, their index, the list of an interrupted purge                   rename_after_relay_logs
    records     MasterInfo and RelayLogInfo, with the names of relay logs in them               rename_after_records
    options     `[channel.NAME]` of rplctl.toml                                                 rename_after_options
    folder      `run/CHAN/`, without its locks and without temporary files                      rename_after_folder

Invariant: while the journal exists, no thread runs under the old or the new name, and each step may be repeated. All
checks come before the journal is written. So an interrupted rename can always be finished: the next command that
changes or starts the channel, under the old or the new name, does this.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rplctl.channel import Channel, hold_lock
from rplctl.config import INSTANCE_FILE, Config, load_config
from rplctl.durable import private_folder, remove_file, rename, replace_file, sync_folder
from rplctl.errors import RplError, UsageError
from rplctl.failpoint import crash_point
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.option_file import options_held, read_document, sections_of, to_bytes
from rplctl.plain_file import parsed_json, read_plain
from rplctl.relay_log.index import RelayLogIndex
from rplctl.relay_log.purge import finish_purge
from rplctl.repository import open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from rplctl.repository.switch import may_have_table, may_have_target
from rplctl.target import mapped_errors

if TYPE_CHECKING:
    from sqlalchemy import Engine

LOCKS: Final = ("admin", "verify")  # `rplctl start` also takes the lock `admin`
_MADE_AGAIN: Final = frozenset({"spool", "clone", "verify", "verify-source", "java"})
EngineOf = Callable[[Config], Callable[[], "Engine"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The record of a rename in progress: both names, and the number of finished steps (`done`)."""

    old: str
    new: str
    done: int = 0


def journal_path(datadir: Path) -> Path:
    return datadir / "run" / "rename-channel.json"


def pending_rename(datadir: Path) -> Journal | None:
    """Return the journal of an interrupted or running rename. Return None if there is no such rename.

    Raises RplError if the journal is damaged.
    """
    path = journal_path(datadir)
    if not path.exists():
        return None
    try:
        found = Journal(**parsed_json(read_plain(path)))
        if [type(value) for value in asdict(found).values()] != [str, str, int]:
            raise ValueError("its values have other types")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        hint = f"restore {path} from a backup of the instance folder"
        raise RplError(f"{path} is not the journal of a rename: {error}", hint=hint) from None
    return found


def is_of(journal: Journal, channel: str) -> bool:
    return channel.casefold() in (journal.old.casefold(), journal.new.casefold())


def finish_rename(config: Config, channel: str, engine_of: EngineOf) -> None:
    """Finish an interrupted rename of this channel. Do nothing if there is no such rename.

    `channel`: the old or the new name. Raises LockBusy if the rename still runs, and TargetError if the target does not
    answer.
    """
    found = pending_rename(config.datadir)
    if found is None or not is_of(found, channel):
        return
    with both_locked(config.datadir, found.old, found.new):
        found = pending_rename(config.datadir)
        if found is not None:
            carry_out(config, found, engine_of)


def refuse_pending_rename(config: Config, channel: str) -> None:
    """Raise UsageError if a rename of this channel was interrupted, because a dry run must not finish it.

    `channel`: the old or the new name. Raises RplError if the journal is damaged.
    """
    found = pending_rename(config.datadir)
    if found is not None and is_of(found, channel):
        raise UsageError(
            f"a rename of channel '{found.old}' to '{found.new}' was interrupted, and a dry run does not finish it",
            channel=channel,
            hint=f"to finish it, run: {shlex.join(['rplctl', 'rename-channel', found.old, found.new])}",
        )


@contextmanager
def both_locked(datadir: Path, *names: str) -> Iterator[None]:
    """Prevent other commands from starting, changing or verifying these channels during the block.

    Raises LockBusy if such a command runs.
    """
    with ExitStack() as held:
        for role in LOCKS:
            for name in sorted(names, key=str.casefold):
                held.enter_context(hold_lock(Channel(name, datadir), role))
        yield


def begin(config: Config, old: str, new: str, engine_of: EngineOf) -> None:
    """Begin a rename: write the journal, and execute all steps.

    The caller is inside `both_locked` for both names, and has rejected invalid names.
    """
    journal = Journal(old=old, new=new)
    _write(config.datadir, journal)
    crash_point("rename_after_journal")
    carry_out(config, journal, engine_of)


def carry_out(config: Config, journal: Journal, engine_of: EngineOf) -> None:
    """Execute the remaining steps of the rename, and remove the journal. `journal.done` steps are finished already."""
    for number, step in enumerate(_STEPS[journal.done :], journal.done + 1):
        step(_Renaming(config, journal, engine_of))
        journal = replace(journal, done=number)
        _write(config.datadir, journal)
    remove_file(journal_path(config.datadir))


def _write(datadir: Path, journal: Journal) -> None:
    private_folder(datadir / "run")
    replace_file(journal_path(datadir), json.dumps(asdict(journal)).encode() + b"\n")


class _Renaming:
    """The steps of a rename, and the channels and options that they need."""

    def __init__(self, config: Config, journal: Journal, engine_of: EngineOf) -> None:
        datadir = config.datadir
        self.old, self.new = Channel(journal.old, datadir), Channel(journal.new, datadir)
        name = journal.old if journal.done < _OPTIONS_ARE_STEP else journal.new
        self.config = load_config(datadir, name, config_file=config.config_file)
        self.engine = engine_of(self.config)

    def rows(self) -> None:
        """Rename the channel in rplctl's tables in the target, in one transaction.

        Do nothing if the target has no such tables.
        """
        from rplctl.commit.marker import rename_relay_logs
        from rplctl.own_tables.tables import rename_channel
        from rplctl.repository.table import is_file_missing

        if not may_have_target(self.config) or is_file_missing(engine := self.engine()):
            return
        with mapped_errors(engine.dialect.name), engine.begin() as connection:
            rename_channel(connection, self.old.name, self.new.name)
            rename_relay_logs(connection, self.new.name, self.relay_log)
        crash_point("rename_after_rows")

    def relay_log(self, name: str) -> str:
        """Return the new name of a relay log. '' and names that do not belong to the channel are unchanged."""
        base, dot, number = name.rpartition(".")
        return f"{self.new.relay_log_base}{dot}{number}" if base == self.old.relay_log_base else name

    def relay_logs(self) -> None:
        """Rename the relay logs and their index. The files get their new names before the new index lists them."""
        old, new = RelayLogIndex(self.old), RelayLogIndex(self.new)
        with old.lock(), new.lock():
            finish_purge(self.old)
            for name in old.files():
                rename(old.path(name), new.path(self.relay_log(name)))
            sync_folder(self.old.datadir)
            if self.old.relay_log_index_path.exists():
                new.replace([self.relay_log(name) for name in old.names()])
                remove_file(self.old.relay_log_index_path)
        crash_point("rename_after_relay_logs")

    def records(self) -> None:
        """Write MasterInfo and RelayLogInfo with the new names of the channel and its relay logs.

        Records in files also move to the files of the new channel. For records in tables, the step `rows` has already
        renamed the channel.
        """
        for kind in RepositoryKind:
            if kind is RepositoryKind.TABLE and not may_have_table(self.config):
                continue
            channels = (self.old, self.new) if kind is RepositoryKind.FILE else (self.new, self.new)
            old, new = (open_repository(MASTER_INFO, kind, self.config, one, self.engine) for one in channels)
            if (master := old.stored()) is not None:
                new.flush(self._renamed_master(master), force=True)
            before, after = (open_repository(RELAY_LOG_INFO, kind, self.config, one, self.engine) for one in channels)
            if (relay := before.stored()) is not None:
                after.flush(self._renamed_relay(relay), force=True)
            if kind is RepositoryKind.FILE:
                before.remove()
                old.remove()
        crash_point("rename_after_records")

    def _renamed_master(self, info: MasterInfo) -> MasterInfo:
        flushed = self.relay_log(info.flushed_relay_log_name)
        return replace(info, channel_name=self.new.name, flushed_relay_log_name=flushed)

    def _renamed_relay(self, info: RelayLogInfo) -> RelayLogInfo:
        renamed = replace(info, channel_name=self.new.name, relay_log_name=self.relay_log(info.relay_log_name))
        return replace(renamed, left_at=renamed.place) if info.left_at == info.place else renamed

    def options(self) -> None:
        path = self.old.datadir / INSTANCE_FILE
        with options_held(self.old.datadir):
            document = read_document(path)
            sections = document.get("channel", {})
            if names := sections_of(document, self.old.name):
                first, *others = [sections.pop(name) for name in names]
                for section in others:
                    first.update(section)
                sections[self.new.name] = first
                replace_file(path, to_bytes(document))
        crash_point("rename_after_options")

    def folder(self) -> None:
        private_folder(self.new.run_folder)
        for path in sorted(self.old.run_folder.iterdir()):
            if path.name in _MADE_AGAIN:
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix != ".lock":
                rename(path, self.new.run_folder / path.name)
        sync_folder(self.new.run_folder)
        sync_folder(self.old.run_folder)
        crash_point("rename_after_folder")


_STEPS: Final = (
    _Renaming.rows,
    _Renaming.relay_logs,
    _Renaming.records,
    _Renaming.options,
    _Renaming.folder,
)
_OPTIONS_ARE_STEP: Final = 1 + _STEPS.index(_Renaming.options)
