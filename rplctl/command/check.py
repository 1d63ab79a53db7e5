"""`check`: one verdict on a channel for monitoring systems (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN)."""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.command.show_status import SlaveStatus, show_status
from rplctl.config import Config
from rplctl.errors import RplError

WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


@dataclass(frozen=True, slots=True)
class Verdict:
    channel: str
    level: int  # index of WORDS
    text: str
    lag_s: int | None


def check(config: Config, channel_name: str, lag_warning_s: int, lag_critical_s: int) -> Verdict:
    """Never raises an RplError: what cannot be found out is UNKNOWN."""
    try:
        return judge(show_status(config, channel_name), lag_warning_s, lag_critical_s)
    except RplError as error:
        return Verdict(channel_name, 3, error.message, None)


def judge(status: SlaveStatus, lag_warning_s: int, lag_critical_s: int) -> Verdict:
    name, lag = status.Channel_Name, status.Seconds_Behind_Master
    threads = f"io {status.Slave_IO_Running}, sql {status.Slave_SQL_Running}"
    if status.Slave_SQL_Running != "Yes" or status.Slave_IO_Running == "No":
        error = status.Last_SQL_Error or status.Last_IO_Error
        return Verdict(name, 2, f"{threads}{f': {error}' if error else ''}", lag)
    if lag is not None and lag >= lag_critical_s:
        return Verdict(name, 2, f"{lag} s behind ({threads})", lag)
    if status.Slave_IO_Running != "Yes":
        return Verdict(name, 1, f"{threads}{f': {status.Last_IO_Error}' if status.Last_IO_Error else ''}", lag)
    if lag is not None and lag >= lag_warning_s:
        return Verdict(name, 1, f"{lag} s behind ({threads})", lag)
    return Verdict(name, 0, f"{lag} s behind, {status.Relay_Master_Log_File}:{status.Exec_Master_Log_Pos}", lag)
