"""List the channels that have a record in the instance folder or in a target that the options name.

Invariant: a row belongs to a channel only if it is in the target that the channel's own options name. If one target
does not answer, the channels of other targets are still listed. Channels that the options or the folder name are listed
in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rplctl.channel import Channel, decode_channel_name, encode_channel_name
from rplctl.config import INSTANCE_FILE, Config, channel_sections, load_config, read_file
from rplctl.errors import RplError
from rplctl.plain_file import read_plain, size_of
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record
from rplctl.target_url import url_without_password

if TYPE_CHECKING:
    from sqlalchemy import Engine

EngineOf = Callable[[Config], Callable[[], "Engine"]]
TargetKey = tuple[str, str]
_OF_A_TARGET = {"target", "target_password"}
_RECORDS: tuple[Record[Any], ...] = (MASTER_INFO, RELAY_LOG_INFO)


def channel_options(config: Config) -> ChannelOptions:
    """Return the options of all channels. Raises ConfigError if an option file is not valid."""
    return ChannelOptions(config, channel_sections(config.datadir, config.config_file))


class ChannelOptions:
    """The options of all channels.

    If no section of the option file names a target, all channels share one set of options.
    """

    def __init__(self, config: Config, sections: Mapping[str, frozenset[str]]) -> None:
        self._given = config
        self._sections = {name.casefold(): name for name in sections}
        self._differ = any(_OF_A_TARGET & names for names in sections.values())
        self._known: dict[str | None, Config] = {}

    def of(self, channel: str | None) -> Config:
        """Return the options of a channel, which may name another target than the options of the instance.

        If no section names a target, the result is always the options of the instance. `channel`: None for the options
        of channels without a section. Raises ConfigError if an option file is not valid.
        """
        if not self._differ:
            return self._given
        name = None if channel is None else self._sections.get(channel.casefold())
        if name not in self._known:
            self._known[name] = load_config(self._given.datadir, name, config_file=self._given.config_file)
        return self._known[name]

    def targets(self) -> dict[TargetKey, Config]:
        """Return the options for each distinct target. The target of channels without a section comes first."""
        found: dict[TargetKey, Config] = {}
        for name in (None, *self._sections.values()):
            found.setdefault(target_key(options := self.of(name)), options)
        return found

    def uses_table(self, key: TargetKey, record: Record[Any]) -> bool:
        """True if the options of any channel store this record as a TABLE in the target `key`."""
        if not self._differ:
            return RepositoryKind.TABLE in _kinds_in_use(self._given, record)
        names = (None, *self._sections.values())
        return any(target_key(o := self.of(n)) == key and record.kind(o) is RepositoryKind.TABLE for n in names)

    def named_with(self, key: TargetKey) -> list[str]:
        """Return the names of the sections that store a record as a TABLE in the target `key`.

        A channel of such a section need not exist yet. Return [] if no section names a target.
        """
        if not self._differ:
            return []
        mine = [name for name in self._sections.values() if target_key(self.of(name)) == key]
        return [n for n in mine if any(record.kind(self.of(n)) is RepositoryKind.TABLE for record in _RECORDS)]


@dataclass(slots=True, kw_only=True)
class FoundChannels:
    """The channels that `find_channels` found, and the targets that it could not read.

    `names`: the sorted names of the channels that certainly exist. `away`: the error for each target that could not be
    read, by the target's URL without a password. `perhaps`: channels that may exist in these targets, because a section
    or the folder names them. `is_one`: True if all channels have the same target.
    """

    names: list[str]
    away: dict[str, RplError] = field(default_factory=dict)
    perhaps: list[str] = field(default_factory=list)
    is_one: bool = True


def target_key(config: Config) -> TargetKey:
    """Return a key that is equal for all channels with the same target.

    If the options refer to a secret, for example a file with the password, the text of the reference is part of the
    key.
    """
    return config.target, config.target_password


def find_channels(config: Config, engine_of: EngineOf) -> FoundChannels:
    """Return each channel that has an info file in the instance folder or a row in its own target.

    Raises ConfigError if an option file is not valid. A target that cannot be read raises no error, but is in the
    result.
    """
    options = channel_options(config)
    found = {name.casefold(): name for name in _channels_in_files(config.datadir)}
    targets = options.targets()
    result = FoundChannels(names=[], is_one=len(targets) == 1)
    for key, place in targets.items():
        try:
            for record in _RECORDS:
                if options.uses_table(key, record):
                    from rplctl.repository.table import stored_channels  # SQLAlchemy only for TABLE

                    rows = stored_channels(engine_of(place)(), record)
                    found |= {name.casefold(): name for name in rows if target_key(options.of(name)) == key}
        except RplError as error:
            result.away[url_without_password(place.target or f"sqlite:///{place.datadir / 'target.db'}")] = error
            here = [name for name in channels_of_folder(config.datadir) if target_key(options.of(name)) == key]
            result.perhaps += [*options.named_with(key), *here]
    result.names = sorted(found.values())
    perhaps = {name.casefold(): name for name in reversed(result.perhaps)}  # keeps the spelling of a section
    result.perhaps = [name for folded, name in perhaps.items() if folded not in found]
    return result


def list_channels(config: Config, engine_of: EngineOf) -> list[str]:
    """Return the sorted names of all channels.

    If a target cannot be read, the function raises the target's error, because this target may have more channels.
    """
    found = find_channels(config, engine_of)
    for error in found.away.values():
        raise error
    return found.names


def stored_name(config: Config, channel: str, engine_of: EngineOf) -> str:
    """Return the channel's name in the letter case of its records, or the given name if no record can be read.

    For an operator, `East` and `east` are one channel, as on a MySQL or MariaDB server. In SQLite and PostgreSQL, they
    are the keys of two rows.
    """
    if channel.lower() == channel.upper():
        return channel
    written = _written_name(Channel(channel, config.datadir).master_info_path)
    names = [written] if written else []
    options = channel_options(config)
    place = options.of(channel)
    for record in _RECORDS:
        if not names and options.uses_table(target_key(place), record):
            from rplctl.repository.table import stored_channels  # SQLAlchemy only for TABLE

            with suppress(RplError):
                names = stored_channels(engine_of(place)(), record)
    return next((name for name in names if name.casefold() == channel.casefold()), channel)


def ids_in_tables(options: ChannelOptions, engine_of: EngineOf) -> Iterator[int]:
    """Yield every Master_id in the repository tables of all targets. A target that cannot be read is skipped.

    The result includes rows of channels of other instances, because a Master_id is unique in its table.
    """
    for key, place in options.targets().items():
        for record in _RECORDS:
            if options.uses_table(key, record):
                from rplctl.repository.table import stored_ids

                with suppress(RplError):
                    yield from stored_ids(engine_of(place)(), record)


def channels_of_folder(datadir: Path) -> list[str]:
    """Return the sorted names of the channels that can be found without reading a table.

    They are the channels with an info file, and the channels whose threads have run in this folder. If a channel has no
    info file, its name is in lower case, because only the name of its run folder is known.
    """
    found = {encode_channel_name(name): name for name in _channels_in_files(datadir)}
    for path in (datadir / "run").glob("*/*.status.json"):
        with suppress(ValueError):
            name = "" if path.parent.name == "@" else decode_channel_name(path.parent.name)
            if Channel(name, datadir).run_folder == path.parent:
                found.setdefault(encode_channel_name(name), name)
    return sorted(found.values())


def _kinds_in_use(config: Config, record: Record[Any]) -> set[RepositoryKind]:
    """Return the kinds of this repository that any channel uses.

    They are the kind that the options name, and the kinds that `switch-repo` stored for single channels.
    """
    path = config.datadir / INSTANCE_FILE
    sections = read_file(path).get("channel", {}) if path.exists() else {}
    stored = {str(section.get(record.option, "")).upper() for section in sections.values()}
    return {record.kind(config)} | {RepositoryKind(kind) for kind in stored if kind in set(RepositoryKind)}


def _channels_in_files(datadir: Path) -> Iterator[str]:
    """Yield the channel name of each master.info file in the folder.

    The name comes from the content of the file, because the file name has only lower case. If the file is damaged, the
    name comes from the file name.
    """
    for path in sorted(datadir.glob("master*.info")):
        suffix = path.stem.removeprefix("master")
        if suffix and not suffix.startswith("-"):
            continue
        try:
            name = decode_channel_name(suffix[1:])
        except ValueError:
            continue
        if Channel(name, datadir).master_info_path == path and size_of(path):
            written = _written_name(path)
            yield written if written.casefold() == name.casefold() else name


def _written_name(path: Path) -> str:
    try:
        return MASTER_INFO.parse(read_plain(path)).channel_name
    except (RplError, ValueError, OSError):
        return ""
