"""Provide the first steps of every command: the channel's repositories, the running threads, and the stored records.

Invariant: a command changes a channel only inside `administer`. Inside this block:

* No backup lock is held (LOCK INSTANCE FOR BACKUP).
* No command collects the state of the logs (WL#9452 F-2.3).
* No rename of the channel is unfinished.
* The command holds the channel's `admin` lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.channel import Channel, hold_lock, lock_holder
from rplctl.config import INSTANCE_FILE, Config, load_config, read_options
from rplctl.deadline import first_answer, own_work
from rplctl.errors import (
    NAME_CHANNEL,
    NotConfigured,
    RplError,
    SourceError,
    TargetError,
    UsageError,
    file_error,
    must_stop,
    no_instance,
)
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.locks import PATIENCE_S, InstanceLock, channel_map, lock_wait_timeout
from rplctl.repository import open_master_info, open_relay_log_info
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.channels import channels_of_folder, find_channels, stored_name
from rplctl.repository.switch import may_have_table
from rplctl.secret import reveal
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.status import read_status
from rplctl.target import dialect_of, open_engine, target_kind
from rplctl.target.asked_once import answer, asked_once
from rplctl.target_url import authority, url_without_password

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rplctl.commit.belonging import Belonging
    from rplctl.source.survey import Ask

RECEIVER = "receiver"
APPLIER = "applier"
ROLES = (RECEIVER, APPLIER)
ADMIN = "admin"
BACKUP_PATIENCE_S = 0.5  # how long a command waits for a backup lock; it must not wait for a whole backup


@dataclass(frozen=True, slots=True)
class Note:
    """A warning or note about a successful command, with MySQL's number and text if MySQL has one."""

    text: str
    errno: int = 0


@dataclass(frozen=True, slots=True)
class Repositories:
    """Both repositories of one channel. `engine` connects to the target when it is called for the first time."""

    config: Config
    channel: Channel
    master_info: InfoRepository[MasterInfo]
    relay_log_info: InfoRepository[RelayLogInfo]
    engine: Callable[[], Engine]

    def master(self) -> MasterInfo:
        """Return MasterInfo. Raises NotConfigured 3074 or 1200 if CHANGE MASTER never ran for the channel.

        Raises UnfitTarget instead if the record was in a target that is lost.
        """
        info = self.master_info.stored()
        if info is None or not info.is_configured:
            self.refuse_lost_table()
            raise not_configured(self.channel)
        return info

    def refuse_lost_table(self) -> None:
        """Raise UnfitTarget if the channel exists but its records were in a target that is lost."""
        is_known = read_status(self.channel.status_path(APPLIER)).has_applied
        if RepositoryKind.TABLE in (self.master_info.kind, self.relay_log_info.kind) and is_known:
            self.refuse_unfit_target()

    def refuse_unfit_target(self) -> None:
        """Raise UnfitTarget if the stored position does not belong to this target (design D29).

        Raises TargetError if the target does not answer.
        """
        from rplctl.commit.belonging import refuse_unfit

        refuse_unfit(self.config, self.channel, self.engine)

    def target_is_fit(self) -> bool:
        """True if the stored position belongs to this target. Raises TargetError if the target does not answer."""
        return self.belonging().error is None

    def belonging(self) -> Belonging:
        """Return the relation of the stored position to this target.

        The `error` of this relation is None if the position belongs to the target. Raises TargetError if the target
        does not answer.
        """
        from rplctl.commit.belonging import belonging_of

        return belonging_of(self.config, self.channel, self.engine)

    def relay(self) -> RelayLogInfo:
        """Return RelayLogInfo. If none is stored, return a new one without a position. After RESET, it has only
        settings.
        """
        return self.relay_log_info.stored() or RelayLogInfo(channel_name=self.channel.name)

    def target_has(self, table: str) -> bool:
        """True if the target has this internal table of rplctl. Before the applier's first start, there are no internal
        tables.
        """
        from rplctl.repository.table import is_file_missing, mapped_errors
        from rplctl.repository.tables import own_table_exists

        engine = self.engine()
        if is_file_missing(engine):
            return False
        with mapped_errors(table, None), engine.connect() as connection:
            return own_table_exists(connection, table)

    def marker(self) -> tuple[RelayLogInfo | None, bool]:
        """Return the position of the marker, and True if the file had the same position at the last orderly stop.

        Without a marker, return (None, False). Raises TargetError if the target reports an error.
        """
        if not self.target_has("rplctl_commit_marker"):
            return None, False
        from rplctl.commit.marker import read_marker

        engine = self.engine()
        with dialect_of(engine.dialect.name).mapped_errors(), engine.connect() as connection:
            return read_marker(connection, self.channel.name)


@contextmanager
def administer(
    config: Config, channel_name: str, *, makes: bool = False, dry_run: bool = False
) -> Iterator[Repositories]:
    """Lock the channel for changes within the block, and yield its repositories, whose `config` the block must use.

    `makes` permits that the instance folder does not exist. `dry_run` refuses an interrupted rename instead of
    finishing it. Raises LockBusy if another command changes the channel (1205: the instance is locked for a backup),
    NotConfigured if the instance folder is missing, and RplError for an error of the operating system.
    """
    channel, datadir = Channel(channel_name, config.datadir), config.datadir
    try:
        if not makes and not datadir.exists():
            raise not_configured(channel)
        with files_may_change(datadir), channels_stay(datadir):
            from rplctl.renaming import finish_rename, refuse_pending_rename  # commands that only read do not need it

            if dry_run:
                refuse_pending_rename(config, channel_name)
            else:
                finish_rename(config, channel_name, engine_of)
            with hold_lock(channel, ADMIN):
                yield open_repositories(kinds_now(config, channel_name), channel_name)
    except RplError as error:
        error.channel = error.channel or channel_name
        raise
    except OSError as error:
        raise file_error(error, channel_name) from error


def kinds_now(config: Config, channel: str) -> Config:
    """Return the options with the present kinds of both repositories: FILE or TABLE.

    A `switch-repo` may have changed them after `config` was read. Raises ConfigError if an option file is not valid.
    """
    path = config.datadir / INSTANCE_FILE
    _, section = read_options(path, channel) if path.exists() else ({}, {})
    if not {"master_info_repository", "relay_log_info_repository"} & set(section):
        return config
    now = load_config(config.datadir, channel, config_file=config.config_file)
    return replace(
        config,
        master_info_repository=now.master_info_repository,
        relay_log_info_repository=now.relay_log_info_repository,
    )


_END_CONNECTION = "or, if a client of serve --mysql holds the lock, run in that client: UNLOCK INSTANCE"


@contextmanager
def files_may_change(datadir: Path) -> Iterator[None]:
    """Prevent other programs from locking the instance for a backup within the block.

    Raises LockBusy 1205 if the instance is already locked.
    """
    with closing(InstanceLock(datadir)) as lock:
        if not lock.acquire_verb(BACKUP_PATIENCE_S):
            raise lock_wait_timeout("the instance is locked for a backup", f"rplctl unlock-instance\n{_END_CONNECTION}")
        yield


@contextmanager
def channels_stay(datadir: Path) -> Iterator[None]:
    """Prevent other commands from collecting the state of the logs within the block (WL#9452 F-2.3).

    Raises LockBusy 1205 if a running collection does not end in time.
    """
    with closing(channel_map(datadir)) as lock:
        if not lock.acquire_shared(PATIENCE_S):
            raise lock_wait_timeout("the state of the logs is being collected", "run the same command again")
        yield


_shared: ContextVar[dict[str, Engine] | None] = ContextVar("_shared", default=None)


def engine_of(config: Config) -> Callable[[], Engine]:
    """Return a function that connects to the target when it is called for the first time, and then returns the same
    engine.

    The function raises TargetError if the server does not answer. Inside a `one_engine` block, all options with the
    same target share one engine.
    """
    shared = _shared.get()
    opened: dict[str, Engine] = {} if shared is None else shared

    @cache
    def engine() -> Engine:
        whose = f"{config.target_place} {config.target_password}"
        url = answer(config.datadir, whose, lambda: config.target_url)  # revealing a password takes time
        if url not in opened:
            with own_work():  # loads the driver
                made = open_engine(url)
            if authority(config.target_place):  # files do not hang
                first_answer(target_shown(config), TargetError, lambda: reach_engine(made))
            opened[url] = made
        return opened[url]

    return engine


def target_shown(config: Config) -> str:
    return f"the target {url_without_password(config.target_place)}"


def source_shown(master: MasterInfo) -> str:
    return f"the source {master.master_binlog_dir or f'{master.host}:{master.port}'}"


def reach_engine(engine: Engine) -> None:
    """Return when the target has answered. An error message from the target counts as an answer.

    Without an answer the function waits, so the caller sets a deadline.
    """
    from sqlalchemy.exc import SQLAlchemyError

    with suppress(RplError, SQLAlchemyError, OSError), engine.connect() as connection:
        run(connection, written("SELECT 1"))


@contextmanager
def ask_source(config: Config, master: MasterInfo) -> Iterator[Ask]:
    """Yield a function that runs queries on the source, with the channel's account.

    Opening the session and each query raise SourceError if the source does not answer, or refuses the request. The
    block raises SourceError, too, if it cannot use an answer. A rogue source or a proxy may send any value.
    """
    from rplctl.source.survey import survey

    session = survey(master, reveal(master.user_password, config.datadir), config)
    with ExitStack() as opened:
        query = first_answer(source_shown(master), SourceError, session.__enter__)
        opened.push(session)
        try:
            yield query
        except (ValueError, ArithmeticError, LookupError, TypeError) as error:
            raise SourceError(
                f"cannot use an answer of {source_shown(master)}: {error!r}",
                errno=er.CR_MALFORMED_PACKET,
                hint="to check what answers at this address, run: rplctl doctor",
            ) from error


def refuse_lake(config: Config, hint: str, text: str = "a lake accepts rows only from the binary log") -> None:
    """Raise UsageError with this text if the target is a lake. Commands that write rows to the target call this
    first.
    """
    if dialect_of(target_kind(config.target_place)).commits_per_table:
        raise UsageError(text, hint=hint)


def refuse_changes(config: Config) -> None:
    """Raise UsageError if the target is a lake of changes. Commands that read rows of the target call this first."""
    if not dialect_of(target_kind(config.target_place)).has_rows(config.target_place):
        hint = "to list the changes of a table, run: rplctl show-changes --table DB.TABLE; a Delta mirror has rows"
        raise UsageError("a lake stores changes, not rows that could be compared", hint=hint)


def no_engine() -> Engine:
    """Raise AssertionError. A caller passes this instead of a function that connects, if every repository is a FILE."""
    raise AssertionError("a FILE needs no engine")


@contextmanager
def one_engine() -> Iterator[None]:
    """Share one engine for each target within the block, and close the engines at its end.

    Commands that read many channels, or that repeat their queries, use this block. So 256 channels do not need 256
    connections. A nested block uses the engines of the outer block.
    """
    if _shared.get() is not None:
        yield
        return
    opened: dict[str, Engine] = {}
    token = _shared.set(opened)
    try:
        yield
    finally:
        _shared.reset(token)
        for engine in opened.values():
            _close_at_return(engine)
            engine.dispose()


def _close_at_return(engine: Engine) -> None:
    """Make the engine close each connection that is returned to its pool from now on.

    At the end of a `one_engine` block, an abandoned query may still run. Its connection is closed when the query ends.
    """
    from sqlalchemy import event

    event.listen(engine.pool, "checkin", lambda _, record: record.invalidate())


@contextmanager
def one_look() -> Iterator[None]:
    """Share engines and answers within the block, for a command that reads many channels.

    A query whose answer is the same for all channels runs only once. The block must take only seconds, because the
    answers are not renewed.
    """
    with one_engine(), asked_once():
        yield


def open_repositories(config: Config, name: str) -> Repositories:
    """Return the repositories of channel `name`.

    Raises ConfigError if an option is not valid, and TargetError if a repository in a table cannot be reached.
    """
    engine = engine_of(config)
    channel = Channel(name, config.datadir)
    master, relay = open_master_info(config, channel, engine), open_relay_log_info(config, channel, engine)
    return Repositories(config, channel, master, relay, engine)


def known_channels(config: Config, says: Callable[[Note], None] = lambda note: None) -> list[str]:
    """Return the names of all channels, sorted.

    If a target does not answer, the names come from the options and the folder, and `says` receives a note about this.
    So commands that show or stop channels work without the target. Raises TargetError if there are no such names.
    """
    found = find_channels(config, engine_of)
    known = {name.casefold() for name in (*found.names, *found.perhaps)}
    # The folder still shows the channels whose records were in a lost target.
    lost = [
        name
        for name in channels_of_folder(config.datadir)
        if name.casefold() not in known and _has_applied(config, name)
    ]
    names = sorted([*found.names, *found.perhaps, *lost])
    for target, error in found.away.items():
        if not names or (found.is_one and not isinstance(error, TargetError)):
            raise error
        which = "the target" if found.is_one else f"the target {target}"
        says(
            Note(f"{which} does not answer ({error.message}): the list has only the channels that are known without it")
        )
    return names


def _has_applied(config: Config, name: str) -> bool:
    return read_status(Channel(name, config.datadir).status_path(APPLIER)).has_applied


def one_channel(config: Config, given: str | None) -> str:
    """Return the name of the channel that a command means: the `given` name, or else the only channel ('' if none
    exists). The letter case is that of the channel's records.

    Raises UsageError 3079 if there are several channels and no name is given.
    """
    if given is not None:
        return stored_name(config, given, engine_of)
    channels = known_channels(config)
    if len(channels) > 1:
        raise UsageError(
            er.SLAVE_MULTIPLE_CHANNELS_CMD_TEXT,
            errno=er.SLAVE_MULTIPLE_CHANNELS_CMD,
            hint=NAME_CHANNEL,
        )
    return channels[0] if channels else ""


def not_configured(channel: Channel) -> NotConfigured:
    name, hint = channel.name, "to list the channels, run: rplctl show-channels"
    text, errno = f"Slave channel '{name}' does not exist.", er.SLAVE_CHANNEL_DOES_NOT_EXIST
    if not name:
        text, errno = er.BAD_SLAVE_TEXT, er.BAD_SLAVE
        hint = "to set the source, run: rplctl change-master --master-host HOST --master-user USER --ask-password"
    if not channel.datadir.exists():
        hint = no_instance(channel.datadir)
    return NotConfigured(text, errno=errno, channel=name, hint=hint)


def refuse_unknown(config: Config, channel: str) -> None:
    """Raise NotConfigured 3074 or 1200 if the channel does not exist: none of the repositories has a record of it."""
    for kind in ("FILE", "TABLE", "FILE"):  # a simultaneous switch writes the new record before it removes the old one
        if kind == "TABLE" and not may_have_table(config):  # a query would create the target's file
            continue
        places = replace(config, master_info_repository=kind, relay_log_info_repository=kind)
        repositories = open_repositories(places, channel)
        if repositories.master_info.exists() or repositories.relay_log_info.exists():
            return
    open_repositories(config, channel).refuse_lost_table()
    raise not_configured(Channel(channel, config.datadir))


def running(channel: Channel) -> dict[str, int]:
    """Return the process ids of the threads that run now, by role. A thread runs while a process holds its lock."""
    pids = {role: lock_holder(channel, role) for role in ROLES}
    return {role: pid for role, pid in pids.items() if pid is not None}


def is_held_by_applier(config: Config, channel: Channel) -> bool:
    """True if the channel's applier runs, and if the target permits only one process, so that no other process can read
    it.
    """
    return dialect_of(target_kind(config.target_place)).is_held and APPLIER in running(channel)


def refuse_while_running(channel: Channel, role: str = "") -> None:
    """Raise UsageError if the thread `role` runs: 3021 for the receiver, 3085 for the applier.

    Without a role, raise UsageError 3081 if any thread runs.
    """
    if any(role in ("", thread) for thread in running(channel)):
        raise must_stop(channel.name, role)
