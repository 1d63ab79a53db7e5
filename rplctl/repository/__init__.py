"""Store each position in a repository, a FILE or a TABLE, behind one protocol (WL#2775 `Rpl_info_factory`).

fields           each value of both records, in a line and in a column
lines            the bytes of master.info and relay-log.info
record           the differences between the two records
base             the protocol: the operations on a whole record
file             FILE: a record in one file, which each write replaces
shadow_page      a file in which a record is prepared and committed
tables           TABLE: the two tables, as SQLAlchemy objects
table            TABLE: a record in one row, with compare-and-swap of the position
layout           the layouts of the tables, and changes between them
install          creates the tables, or upgrades them by migrations/
next_event       the view of the next event on the target
channels         lists the channels that have a record
snapshot_reader  reads the records of many channels at once
switch           the change from FILE to TABLE and back (REQ-6)
exchange/        records in the formats of other servers and tools

The two records are MasterInfo and RelayLogInfo. The functions of this package receive a callable that returns the
SQLAlchemy engine. So code that uses only files neither connects to the target nor imports SQLAlchemy (design D16).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.deadline import own_work
from rplctl.errors import ConfigError, RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.base import Info, InfoRepository, RepositoryKind
from rplctl.repository.channels import EngineOf, channel_options, ids_in_tables, list_channels
from rplctl.repository.file import FileRepository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record
from rplctl.target.registry import dialect_of, target_kind

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from rplctl.repository.table import TableRepository

__all__ = [
    "InfoRepository",
    "RepositoryKind",
    "create_tables",
    "list_channels",
    "next_master_id",
    "open_master_info",
    "open_relay_log_info",
    "open_repository",
    "refuse_held_table",
]


def open_master_info(config: Config, channel: Channel, engine: Callable[[], Engine]) -> InfoRepository[MasterInfo]:
    """Return the receiver's repository, of the kind that `master_info_repository` names."""
    return open_repository(MASTER_INFO, MASTER_INFO.kind(config), config, channel, engine)


def open_relay_log_info(config: Config, channel: Channel, engine: Callable[[], Engine]) -> InfoRepository[RelayLogInfo]:
    """Return the applier's repository, of the kind that `relay_log_info_repository` names."""
    return open_repository(RELAY_LOG_INFO, RELAY_LOG_INFO.kind(config), config, channel, engine)


def open_repository(
    record: Record[Info], kind: RepositoryKind, config: Config, channel: Channel, engine: Callable[[], Engine]
) -> FileRepository[Info] | TableRepository[Info]:
    """Return the repository of the given kind for the record, even if the options name the other kind.

    switch.py opens both kinds in this way. Raises ConfigError if the kind is TABLE and only one process can open the
    target.
    """
    if kind is RepositoryKind.FILE:
        return FileRepository(record, channel, record.sync_period(config))
    refuse_held_table(config)
    with own_work():
        from rplctl.repository.table import TableRepository  # SQLAlchemy only for TABLE

    return TableRepository(record, channel.name, engine, record.sync_period(config))


def refuse_held_table(config: Config) -> None:
    """Raise ConfigError if only one process at a time can open the target.

    A repository in such a target cannot be a TABLE, because several processes read the repositories.
    """
    kind = target_kind(config.target_place)
    if dialect_of(kind).is_held:
        raise ConfigError(
            f"a repository cannot be a TABLE of a {kind} target: only one process at a time can open such a target, "
            "but the receiver, the applier and every command read their records",
            hint="a FILE is crash-safe by a marker row in the target (commit mode 'marker'). To use files, run: "
            "rplctl init --master-info-repository FILE --relay-log-info-repository FILE",
        )


def create_tables(engine: Engine, rep_engine: str = "") -> None:
    """Create both repository tables, or upgrade them to the newest layout.

    `rep_engine`: the storage engine; '' means a transactional engine of the target. install.py describes the errors.
    """
    from rplctl.repository import install

    install.create_tables(engine, rep_engine)


def next_master_id(config: Config, engine_of: EngineOf, channels: Sequence[str] | None = None) -> int:
    """Return a Master_id that is 1 above the highest one in use.

    In WL#2775, the Master_id is the key of a row. rplctl gives each channel of an instance another Master_id.
    `channels`: the result of `list_channels`, if the caller already has it.
    """
    names = list_channels(config, engine_of) if channels is None else channels
    options = channel_options(config)
    used = [_master_id(options.of(name), Channel(name, config.datadir), engine_of) for name in names]
    return max([0, *used, *ids_in_tables(options, engine_of)]) + 1


def _master_id(config: Config, channel: Channel, engine_of: EngineOf) -> int:
    """Return the Master_id of the channel from MasterInfo, or from RelayLogInfo if MasterInfo cannot be read.

    Return 0 if neither record can be read, so that a damaged channel does not stop other channels.
    """
    for open_record in (open_master_info, open_relay_log_info):
        with suppress(RplError):
            return open_record(config, channel, engine_of(config)).read().master_id
    return 0
