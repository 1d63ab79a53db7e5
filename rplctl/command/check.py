"""`check`: one verdict on a channel for monitoring systems (0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN), and why.

    local      threads and lag; repositories, relay log and index, target      (for a monitoring system)
    offline    the same without threads and lag, every relay log byte read     (before a start, on a copied instance)
    online     all of it, and the source is asked

Invariant: it reads only. Each finding has a permanent code, a sentence and the command that repairs it (finding.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from rplctl.channel import Channel
from rplctl.command.finding import Finding
from rplctl.command.show_status import SlaveStatus, show_status
from rplctl.config import Config
from rplctl.errors import RplError

WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
UNKNOWN = 3


class Scope(StrEnum):
    LOCAL = "local"
    OFFLINE = "offline"
    ONLINE = "online"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds behind the source."""

    warning_s: int
    critical_s: int


@dataclass(frozen=True, slots=True)
class Verdict:
    channel: str
    level: int  # index of WORDS
    text: str
    lag_s: int | None
    findings: tuple[Finding, ...] = ()


def check(config: Config, channel_name: str, limits: Limits, scope: Scope = Scope.LOCAL) -> Verdict:
    """Never raises an RplError: what cannot be found out is UNKNOWN."""
    verdict = Verdict(channel_name, 0, "the stored state agrees", None)
    if scope is not Scope.OFFLINE:
        try:
            verdict = judge(show_status(config, channel_name), limits)
        except RplError as error:
            verdict = Verdict(channel_name, UNKNOWN, error.message, None)
    found = tuple(_find(config, Channel(channel_name, config.datadir), scope))
    level = worst([verdict.level, *(finding.level for finding in found)])
    serious = [finding.code for finding in found if finding.level]
    text = f"{verdict.text}; found {', '.join(serious)}" if serious else verdict.text
    if serious and scope is Scope.OFFLINE:
        text = f"found {', '.join(serious)}"
    return replace(verdict, level=level, text=text, findings=found)


def worst(levels: Iterable[int]) -> int:
    """CRITICAL is worse than UNKNOWN, as monitoring plugins have it."""
    return max(levels, key=lambda level: (0, 1, 3, 2)[level], default=0)


def _find(config: Config, channel: Channel, scope: Scope) -> Iterator[Finding]:
    from rplctl.command.check_repository import Stored, check_repositories
    from rplctl.repository.switch import may_have_table

    stored = Stored()
    yield from check_repositories(config, channel, stored)
    if stored.master is not None:
        from rplctl.command.check_relay_log import check_relay_log

        yield from check_relay_log(channel, stored.master, stored.relay, deep=scope is not Scope.LOCAL)
    if may_have_table(config):
        from rplctl.command.check_ends import check_target

        yield from check_target(config, channel, stored)
    if scope is Scope.ONLINE:
        from rplctl.command.check_ends import check_source

        yield from check_source(config, stored)


def judge(status: SlaveStatus, limits: Limits) -> Verdict:
    name, lag = status.Channel_Name, status.Seconds_Behind_Master
    threads = f"io {status.Slave_IO_Running}, sql {status.Slave_SQL_Running}"
    if status.Slave_SQL_Running != "Yes" or status.Slave_IO_Running == "No":
        error = status.Last_SQL_Error or status.Last_IO_Error
        return Verdict(name, 2, f"{threads}{f': {error}' if error else ''}", lag)
    if lag is not None and lag >= limits.critical_s:
        return Verdict(name, 2, f"{lag} s behind ({threads})", lag)
    if status.Slave_IO_Running != "Yes":
        return Verdict(name, 1, f"{threads}{f': {status.Last_IO_Error}' if status.Last_IO_Error else ''}", lag)
    if lag is not None and lag >= limits.warning_s:
        return Verdict(name, 1, f"{lag} s behind ({threads})", lag)
    return Verdict(name, 0, f"{lag} s behind, {status.Relay_Master_Log_File}:{status.Exec_Master_Log_Pos}", lag)
