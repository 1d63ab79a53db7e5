"""Chooses the participant that stores the position in two-phase commit, and finds the participants of earlier options.

An earlier participant may still have the decision about a prepared transaction. Invariant: this decision is carried out
before the earlier participant is removed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Engine

from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.commit.participants.base import PositionParticipant
from rplctl.commit.participants.line import LinePosition
from rplctl.commit.participants.log import BinlogParticipant
from rplctl.commit.participants.page import PagePosition
from rplctl.commit.participants.row import RowPosition
from rplctl.config import Config
from rplctl.errors import ConfigError
from rplctl.info import RelayLogInfo
from rplctl.repository import open_relay_log_info, open_repository
from rplctl.repository.base import InfoRepository, RepositoryKind
from rplctl.repository.record import RELAY_LOG_INFO
from rplctl.target import dialect_of, mapped_errors

CRASH_SAFE_ENGINES = frozenset({"aria"})  # without transactions, but each statement is durable and atomic


def chosen_participant(
    config: Config, channel: Channel, engine: Engine, repository: InfoRepository[RelayLogInfo], prefix: str
) -> PositionParticipant | None:
    """Return the participant that the options choose. Return None if the channel cannot have the mode xa.

    The channel cannot have this mode if the position is in a table that is part of the target's transactions. The same
    applies to a table whose storage engine is not crash-safe (MyISAM). Raises ConfigError for prepared_position=binlog
    without `log_bin`.
    """
    files = binary_log_files(config, channel)
    in_log = BinlogParticipant(repository, files, logged_path(channel)) if files is not None else None
    if repository.kind is RepositoryKind.FILE:
        if config.prepared_position == "pages":
            return PagePosition(repository, pages_path(channel))
        if config.prepared_position == "binlog":
            if in_log is None:
                raise ConfigError(
                    "prepared_position=binlog requires log_bin, which is empty",
                    hint="to write a binary log (init changes only this setting), run: rplctl init --log-bin binlog\n"
                    "To store the position elsewhere, set another value of prepared_position (man 5 rplctl.toml)",
                )
            return in_log
        return LinePosition(repository)
    if repository.is_transactional():
        return None
    with mapped_errors(engine.dialect.name), engine.connect() as connection:
        engine_name = dialect_of(engine.dialect.name).engine_of(connection, RELAY_LOG_INFO.table)
    if engine_name.lower() not in CRASH_SAFE_ENGINES:
        return None
    return in_log or RowPosition(repository, engine, prefix)  # a row cannot wait until the binary log has decided


def possible_participants(config: Config, channel: Channel, engine: Engine, prefix: str) -> list[PositionParticipant]:
    """Return all participants that may have the decision about a prepared transaction.

    If the options have changed since the crash, another participant than the chosen one may have the decision.
    """
    file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, lambda: engine)
    stored = open_relay_log_info(config, channel, lambda: engine)
    found = [LinePosition(file), *_outside(config, channel, lambda: engine)]
    if stored.kind is RepositoryKind.TABLE and not any(isinstance(one, BinlogParticipant) for one in found):
        found.append(RowPosition(stored, engine, prefix))
    return found


def forget_others(
    config: Config, channel: Channel, engine: Callable[[], Engine], chosen: PositionParticipant | None = None
) -> None:
    """Write the position from a shadow-page file or a binary log to the repository, and no longer use this participant.

    The participant `chosen` stays as it is.
    """
    for position in _outside(config, channel, engine):
        if type(position) is not type(chosen):
            position.close(position.open())


def _outside(config: Config, channel: Channel, engine: Callable[[], Engine]) -> list[PositionParticipant]:
    """Return the participants that store the position outside of the repository: a shadow-page file, a binary log.

    A participant is returned if its file exists. The position in this participant is then the valid one, and the
    repository may have an earlier position.
    """
    found: list[PositionParticipant] = []
    if pages_path(channel).exists():
        file = open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, channel, engine)
        found.append(PagePosition(file, pages_path(channel)))
    files = binary_log_files(config, channel)
    if files is not None and logged_path(channel).exists():
        found.append(BinlogParticipant(open_relay_log_info(config, channel, engine), files, logged_path(channel)))
    return found


def pages_path(channel: Channel) -> Path:
    return channel.relay_log_info_path.with_suffix(".pages")


def logged_path(channel: Channel) -> Path:
    return channel.relay_log_info_path.with_suffix(".logged")
