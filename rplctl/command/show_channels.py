"""SHOW CHANNELS: return one line for each configured channel, for lists and for completion in a shell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rplctl.channel import Channel
from rplctl.command.channel.context import ROLES, known_channels, one_engine, running
from rplctl.command.show_status import show_status
from rplctl.config import Config
from rplctl.errors import RplError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLine:
    """One channel in the list. The field names are the column names."""

    Channel_Name: str
    Source: str
    Slave_IO_Running: str
    Slave_SQL_Running: str
    Seconds_Behind_Master: int | None
    Position: str
    Last_Error: str


def show_channels(config: Config, config_of: Callable[[str], Config]) -> list[ChannelLine]:
    """Return one line for each channel. `config_of` returns the options of a channel.

    A channel that cannot be read has a line with its error, so that the other channels are still listed.
    """
    with one_engine():
        return [_line(config_of(name), name) for name in known_channels(config)]


def _line(config: Config, name: str) -> ChannelLine:
    try:
        status = show_status(config, name)
    except RplError as error:
        threads = running(Channel(name, config.datadir))
        receives, applies = ("Yes" if role in threads else "No" for role in ROLES)
        return ChannelLine(
            Channel_Name=name,
            Source="",
            Slave_IO_Running=receives,
            Slave_SQL_Running=applies,
            Seconds_Behind_Master=None,
            Position="",
            Last_Error=error.message,
        )
    return ChannelLine(
        Channel_Name=name,
        Source=status.Master_Binlog_Dir or f"{status.Master_Host}:{status.Master_Port}",
        Slave_IO_Running=status.Slave_IO_Running,
        Slave_SQL_Running=status.Slave_SQL_Running,
        Seconds_Behind_Master=status.Seconds_Behind_Master,
        Position=f"{status.Relay_Master_Log_File}:{status.Exec_Master_Log_Pos}" if status.Relay_Master_Log_File else "",
        Last_Error=status.Last_SQL_Error or status.Last_IO_Error,
    )
