"""The begin of every verb: the channel's repositories, the running threads, and the stored records.

Invariant: verbs that change something do it inside `administer`: no backup lock is held then (LOCK INSTANCE FOR
BACKUP), nobody collects the state of the logs (WL#9452 F-2.3), no rename of the channel is cut off half-way, and the
channel's `admin` lock is theirs.
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
from rplctl.errors import NotConfigured, RplError, SourceError, TargetError, UsageError, file_error, must_stop
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.locks import PATIENCE_S, InstanceLock, channel_map, lock_wait_timeout
from rplctl.repository import open_master_info, open_relay_log_info
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.channels import channels_of_folder, find_channels
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
    from rplctl.source.survey import Query

RECEIVER = "receiver"
APPLIER = "applier"
ROLES = (RECEIVER, APPLIER)
ADMIN = "admin"
BACKUP_PATIENCE_S = 0.5  # for a backup lock to go away: a command is not to hang as long as a backup lasts


@dataclass(frozen=True, slots=True)
class Note:
    """A warning or note, in MySQL's words where it has a number: the command did its work."""

    text: str
    errno: int = 0


@dataclass(frozen=True, slots=True)
class Repositories:
    """Both repositories of one channel, and whose they are; `engine` connects to the target at its first call."""

    config: Config
    channel: Channel
    master_info: InfoRepository[MasterInfo]
    relay_log_info: InfoRepository[RelayLogInfo]
    engine: Callable[[], Engine]

    def master(self) -> MasterInfo:
        """Raises NotConfigured 3074 or 1200."""
        info = self.master_info.stored()
        if info is None or not info.is_configured:
            self.refuse_lost_table()
            raise not_configured(self.channel)
        return info

    def refuse_lost_table(self) -> None:
        """Raises UnfitTarget where the records were in a target that is lost: there is a channel."""
        is_known = read_status(self.channel.status_path(APPLIER)).has_applied
        if RepositoryKind.TABLE in (self.master_info.kind, self.relay_log_info.kind) and is_known:
            self.refuse_unfit_target()

    def refuse_unfit_target(self) -> None:
        """Raises UnfitTarget where the target does not belong to the stored position (design D29), TargetError."""
        from rplctl.commit.belonging import refuse_unfit

        refuse_unfit(self.config, self.channel, self.engine)

    def target_is_fit(self) -> bool:
        """False where the target does not belong to the stored position. Raises TargetError."""
        return self.belonging().error is None

    def belonging(self) -> Belonging:
        """Return whether the target belongs to the stored position, and whose the rows are. Raises TargetError."""
        from rplctl.commit.belonging import belonging_of

        return belonging_of(self.config, self.channel, self.engine)

    def relay(self) -> RelayLogInfo:
        """A fresh one when there is none; the settings alone after RESET."""
        return self.relay_log_info.stored() or RelayLogInfo(channel_name=self.channel.name)

    def target_has(self, table: str) -> bool:
        """True if the target has one of our internal tables; there is none before the applier's first start."""
        from rplctl.repository.table import is_file_missing, mapped_errors
        from rplctl.repository.tables import own_table_exists

        engine = self.engine()
        if is_file_missing(engine):
            return False
        with mapped_errors(table, None), engine.connect() as connection:
            return own_table_exists(connection, table)

    def marker(self) -> tuple[RelayLogInfo | None, bool]:
        """The position that the transactions themselves moved; see commit.marker.read_marker. Raises TargetError."""
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
    """The channel is ours to change for the block, by the options of what is yielded; with `makes` its instance folder
    need not be there. A `dry_run` is refused where a rename was cut off. Raises LockBusy, 1205 while the instance is
    locked for a backup; NotConfigured; a file that the system refuses as RplError.
    """
    channel, datadir = Channel(channel_name, config.datadir), config.datadir
    try:
        if not makes and not datadir.exists():
            raise not_configured(channel)
        with files_may_change(datadir), channels_stay(datadir):
            from rplctl.renaming import finish_rename, refuse_pending_rename  # what only looks needs none of it

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
    """The options, with the kinds of the repositories as `switch-repo` left them: it may have ended since they were
    read. Raises ConfigError.
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


@contextmanager
def files_may_change(datadir: Path) -> Iterator[None]:
    """No backup lock is held, and none is given for the length of the block. Raises LockBusy 1205."""
    with closing(InstanceLock(datadir)) as lock:
        if not lock.acquire_verb(BACKUP_PATIENCE_S):
            raise lock_wait_timeout("the instance is locked for a backup", "rplctl unlock-instance")
        yield


@contextmanager
def channels_stay(datadir: Path) -> Iterator[None]:
    """Nobody collects the state of the logs for the length of the block (WL#9452 F-2.3). Raises LockBusy 1205."""
    with closing(channel_map(datadir)) as lock:
        if not lock.acquire_shared(PATIENCE_S):
            raise lock_wait_timeout("the state of the logs is being collected", "try again")
        yield


_shared: ContextVar[dict[str, Engine] | None] = ContextVar("_shared", default=None)


def engine_of(config: Config) -> Callable[[], Engine]:
    """Connects at its first call, which raises TargetError where the target's server is silent. Inside `one_engine` all
    that name one target have the same.
    """
    shared = _shared.get()
    opened: dict[str, Engine] = {} if shared is None else shared

    @cache
    def engine() -> Engine:
        whose = f"{config.target_place} {config.target_password}"
        url = answer(config.datadir, whose, lambda: config.target_url)  # to reveal a password is work
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
    """Ask the target for nothing; what it refuses is an answer, too."""
    from sqlalchemy.exc import SQLAlchemyError

    with suppress(RplError, SQLAlchemyError, OSError), engine.connect() as connection:
        run(connection, written("SELECT 1"))


@contextmanager
def ask_source(config: Config, master: MasterInfo) -> Iterator[Query]:
    """A function that asks the source's server, as the channel's account. Raises SourceError, also from it."""
    from rplctl.source.survey import survey

    session = survey(master, reveal(master.user_password, config.datadir), config)
    with ExitStack() as opened:
        query = first_answer(source_shown(master), SourceError, session.__enter__)
        opened.push(session)
        yield query


def refuse_lake(config: Config, hint: str) -> None:
    """Refuse a lake for commands that write rows of the target in addition to the applier. Raises UsageError."""
    if dialect_of(target_kind(config.target_place)).commits_per_table:
        raise UsageError("a lake takes its rows from the log only", hint=hint)


def refuse_changes(config: Config) -> None:
    """Refuse a lake of changes for commands that read the target's rows. Raises UsageError."""
    if not dialect_of(target_kind(config.target_place)).has_rows(config.target_place):
        hint = "rplctl show-changes --table DB.TABLE lists what the logs say of a table; layer=mirror of Delta has rows"
        raise UsageError("a lake keeps changes, not rows that could be compared", hint=hint)


def no_engine() -> Engine:
    """Refuse to open an engine: a repository that is a FILE needs none."""
    raise AssertionError("a FILE asks no engine")


@contextmanager
def one_engine() -> Iterator[None]:
    """Share one engine for each target within the block, for commands that read many channels or repeat their
    questions. So 256 channels do not need 256 connections, and no connection stays open. A nested block uses the outer
    one's engines.
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
    """Close connections that come back after the block, from a question whose answer was late."""
    from sqlalchemy import event

    event.listen(engine.pool, "checkin", lambda _, record: record.invalidate())


@contextmanager
def one_look() -> Iterator[None]:
    """Share engines and answers within the block, for one reading of many channels that takes seconds. Questions that
    do not depend on the channel are asked once.
    """
    with one_engine(), asked_once():
        yield


def open_repositories(config: Config, name: str) -> Repositories:
    """Raises ConfigError, TargetError when the repository is a table that cannot be reached."""
    engine = engine_of(config)
    channel = Channel(name, config.datadir)
    master, relay = open_master_info(config, channel, engine), open_relay_log_info(config, channel, engine)
    return Repositories(config, channel, master, relay, engine)


def known_channels(config: Config, says: Callable[[Note], None] = lambda note: None) -> list[str]:
    """Return the channels of `list_channels`. If the target cannot be asked, return those that the options and the
    folder name, and say so: to view or stop channels, no target is needed. Raises TargetError if they name none.
    """
    found = find_channels(config, engine_of)
    known = {name.casefold() for name in (*found.names, *found.perhaps)}
    # records that a lost target held: the folder still knows of them
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
        says(Note(f"{which} cannot be asked which channels there are ({error.message}): those known here follow"))
    return names


def _has_applied(config: Config, name: str) -> bool:
    return read_status(Channel(name, config.datadir).status_path(APPLIER)).has_applied


def one_channel(config: Config, given: str | None) -> str:
    """The channel that a command means: the one given, else the only one there is. Raises UsageError 3079."""
    if given is not None:
        return given
    channels = known_channels(config)
    if len(channels) > 1:
        raise UsageError(
            er.SLAVE_MULTIPLE_CHANNELS_CMD_TEXT,
            errno=er.SLAVE_MULTIPLE_CHANNELS_CMD,
            hint="add --channel NAME; rplctl show-channels lists them",
        )
    return channels[0] if channels else ""


def not_configured(channel: Channel) -> NotConfigured:
    name, hint = channel.name, "rplctl show-channels"
    text, errno = f"Slave channel '{name}' does not exist.", er.SLAVE_CHANNEL_DOES_NOT_EXIST
    if not name:
        text, errno = er.BAD_SLAVE_TEXT, er.BAD_SLAVE
        hint = "rplctl change-master --master-host HOST --master-user USER --ask-password"
    if not channel.datadir.exists():
        hint = f"there is no {channel.datadir}: rplctl init, or name it with --datadir"
    return NotConfigured(text, errno=errno, channel=name, hint=hint)


def refuse_unknown(config: Config, channel: str) -> None:
    """A channel is known when either record is in either place. Raises NotConfigured 3074 or 1200."""
    for kind in ("FILE", "TABLE", "FILE"):  # a switch beside us writes the one before it removes the other
        if kind == "TABLE" and not may_have_table(config):  # looking would make the target's file
            continue
        places = replace(config, master_info_repository=kind, relay_log_info_repository=kind)
        repositories = open_repositories(places, channel)
        if repositories.master_info.exists() or repositories.relay_log_info.exists():
            return
    open_repositories(config, channel).refuse_lost_table()
    raise not_configured(Channel(channel, config.datadir))


def running(channel: Channel) -> dict[str, int]:
    """role → pid of the threads that run now: those whose lock is held."""
    pids = {role: lock_holder(channel, role) for role in ROLES}
    return {role: pid for role, pid in pids.items() if pid is not None}


def is_held_by_applier(config: Config, channel: Channel) -> bool:
    """True if only the channel's running applier can read the target."""
    return dialect_of(target_kind(config.target_place)).is_held and APPLIER in running(channel)


def refuse_while_running(channel: Channel, role: str = "") -> None:
    """Raises UsageError while that thread runs: 3021 for the receiver, 3085 for the applier; 3081 for either."""
    if any(role in ("", thread) for thread in running(channel)):
        raise must_stop(channel.name, role)
