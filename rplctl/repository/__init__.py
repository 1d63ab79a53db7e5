"""Where positions live: FILE and TABLE behind one protocol (WL#2775, WL#5125). The factory (`Rpl_info_factory`).

The SQLAlchemy engine comes as a callable: FILE neither opens nor imports it (design D16).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rplctl.channel import Channel, decode_channel_name, encode_channel_name
from rplctl.config import INSTANCE_FILE, Config, read_file
from rplctl.errors import RplError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.base import Info, InfoRepository, RepositoryKind
from rplctl.repository.file import FileRepository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from rplctl.repository.table import TableRepository

__all__ = [
    "InfoRepository",
    "RepositoryKind",
    "channels_of_folder",
    "compare_and_swap",
    "create_tables",
    "list_channels",
    "next_master_id",
    "open_master_info",
    "open_relay_log_info",
    "open_repository",
]


def open_master_info(config: Config, channel: Channel, engine: Callable[[], Engine]) -> InfoRepository[MasterInfo]:
    """The receiver's repository, of the kind that `master_info_repository` names."""
    return open_repository(MASTER_INFO, MASTER_INFO.kind(config), config, channel, engine)


def open_relay_log_info(config: Config, channel: Channel, engine: Callable[[], Engine]) -> InfoRepository[RelayLogInfo]:
    """The applier's repository, of the kind that `relay_log_info_repository` names."""
    return open_repository(RELAY_LOG_INFO, RELAY_LOG_INFO.kind(config), config, channel, engine)


def open_repository(
    record: Record[Info], kind: RepositoryKind, config: Config, channel: Channel, engine: Callable[[], Engine]
) -> FileRepository[Info] | TableRepository[Info]:
    """The repository of that record in that kind, whatever the options say (switch.py opens both)."""
    if kind is RepositoryKind.FILE:
        return FileRepository(record, channel, record.sync_period(config))
    from rplctl.repository.table import TableRepository  # SQLAlchemy only for TABLE

    return TableRepository(record, channel.name, engine, record.sync_period(config))


def create_tables(engine: Engine, rep_engine: str = "") -> None:
    """Create or upgrade both tables; see install.py."""
    from rplctl.repository import install

    install.create_tables(engine, rep_engine)


def compare_and_swap(connection: Connection, expected: RelayLogInfo, new: RelayLogInfo) -> bool:
    """Move the executed position inside the caller's transaction; see table.py."""
    from rplctl.repository import table

    return table.compare_and_swap(connection, expected, new)


def list_channels(config: Config, engine: Callable[[], Engine]) -> list[str]:
    """Names of the channels with an info file in the instance folder, or a row where a repository is TABLE; sorted."""
    found = {name.casefold(): name for name in _channels_in_files(config.datadir)}
    for record in (MASTER_INFO, RELAY_LOG_INFO):
        if RepositoryKind.TABLE in _kinds_in_use(config, record):
            found |= {name.casefold(): name for name in _channels_in_table(record, engine)}
    return sorted(found.values())


def channels_of_folder(datadir: Path) -> list[str]:
    """Those that are known while no table can be asked: with an info file, or with threads that ran here, whose names
    are in lower case then; sorted.
    """
    found = {encode_channel_name(name): name for name in _channels_in_files(datadir)}
    for path in (datadir / "run").glob("*/*.status.json"):
        with suppress(ValueError):
            name = "" if path.parent.name == "@" else decode_channel_name(path.parent.name)
            if Channel(name, datadir).run_folder == path.parent:
                found.setdefault(encode_channel_name(name), name)
    return sorted(found.values())


def next_master_id(config: Config, engine: Callable[[], Engine], channels: Sequence[str] | None = None) -> int:
    """The smallest free Master_id above all in use: WL#2775's key, unique in the instance. `channels`: what
    `list_channels` said, where it was asked already.
    """
    names = list_channels(config, engine) if channels is None else channels
    return max([0, *(_master_id(config, Channel(name, config.datadir), engine) for name in names)]) + 1


def _master_id(config: Config, channel: Channel, engine: Callable[[], Engine]) -> int:
    """Of either record, both hold it; 0 when neither can be read: what is wrong with one channel stops no other."""
    for open_record in (open_master_info, open_relay_log_info):
        with suppress(RplError):
            return open_record(config, channel, engine).read().master_id
    return 0


def _kinds_in_use(config: Config, record: Record[Any]) -> set[RepositoryKind]:
    """The options' kind, and those that `switch-repo` stored for single channels."""
    path = config.datadir / INSTANCE_FILE
    sections = read_file(path).get("channel", {}) if path.exists() else {}
    stored = {str(section.get(record.option, "")).upper() for section in sections.values()}
    return {record.kind(config)} | {RepositoryKind(kind) for kind in stored if kind in set(RepositoryKind)}


def _channels_in_files(datadir: Path) -> Iterator[str]:
    """From the channel line, which keeps upper case; else from the file's name. A damaged file still has its name."""
    for path in sorted(datadir.glob("master*.info")):
        suffix = path.stem.removeprefix("master")
        if suffix and not suffix.startswith("-"):
            continue
        try:
            name = decode_channel_name(suffix[1:])
        except ValueError:
            continue
        if Channel(name, datadir).master_info_path == path and _has_bytes(path):
            written = _written_name(path)
            yield written if written.casefold() == name.casefold() else name


def _has_bytes(path: Path) -> bool:
    """False, too, when RESET ALL of another process has just removed it."""
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _written_name(path: Path) -> str:
    try:
        return MASTER_INFO.parse(path.read_bytes()).channel_name
    except (RplError, ValueError, OSError):
        return ""


def _channels_in_table(record: Record[Any], engine: Callable[[], Engine]) -> list[str]:
    from rplctl.repository.table import stored_channels

    return stored_channels(engine(), record)
