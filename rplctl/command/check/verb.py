"""`check`: give a verdict on a channel to a monitoring system, with the reasons.

The verdict is 0 OK, 1 WARNING, 2 CRITICAL or 3 UNKNOWN. The scope decides what is checked:

    local      threads and lag; repositories, relay log and its index, target. For a monitoring system.
    offline    the same without threads and lag, but with every byte of the relay logs. For a check before a start, or
               of a copied instance.
    online     local and offline together, and the source with the end of its log. The bytes of the relay logs are read
               only if the channel is stopped.

Invariants: `check` changes nothing. Each finding has a permanent code, a sentence and the command that repairs it
(findings.py). A status that is too old is never OK, and a state that cannot be read is reported (design D22).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from rplctl.channel import Channel
from rplctl.command.channel.context import is_held_by_applier, one_look, running
from rplctl.command.channel.peers import Peers
from rplctl.command.check.ahead import check_ahead
from rplctl.command.check.ends import UNFIT, check_belonging, check_source, check_target
from rplctl.command.check.findings import Finding, found
from rplctl.command.check.progress import check_progress, known_end
from rplctl.command.check.relay_log import check_relay_log
from rplctl.command.check.repository import Stored, check_repositories
from rplctl.command.check.skipped import check_skipped
from rplctl.command.check.sync_record import SyncRecord, read_sync_record, runs_from_cron
from rplctl.command.check.threads import CheckLimits, check_cron, check_running, check_skips, limits_of
from rplctl.command.check.verify import check_verify
from rplctl.command.show_status import SlaveStatus, status_and_threads
from rplctl.config import Config
from rplctl.deadline import Deadline
from rplctl.errors import RplError, SourceError, TargetError, as_rpl_error, for_channel
from rplctl.info import MasterInfo
from rplctl.repository.switch import may_have_target

__all__ = ["CheckLimits", "Scope", "Verdict", "check", "check_each", "limits_of", "worst", "worst_first"]

WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
UNKNOWN = 3
ASKED_TOO = ("clock_skew", "source_purges_soon", "source_purges_now")
LEAST_FREE_BYTES = 16 << 20  # a batch, a relay log and a record together need this space


class Scope(StrEnum):
    LOCAL = "local"
    OFFLINE = "offline"
    ONLINE = "online"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    channel: str
    level: int  # index of WORDS
    text: str
    lag_s: int | None
    findings: tuple[Finding, ...] = ()
    delay_s: int = 0  # MASTER_DELAY: lag_s includes this time, but it does not count as lag
    sync_age_s: int | None = None  # seconds since the last sync of a channel run from cron
    error: str = ""  # the error of a stopped thread; `text` contains it

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The findings as dictionaries for JSON, each with its level as a word."""
        return [{**asdict(finding), "level": WORDS[finding.level]} for finding in self.findings]


def check_each(
    channels: Iterable[tuple[str, Config]],
    limits: Callable[[Config], CheckLimits],
    scope: Scope = Scope.LOCAL,
    deadline: Deadline | None = None,
) -> list[Verdict]:
    """Return the result of `check` for each channel. `limits` returns the limits for the options of a channel.

    Queries whose answer does not depend on the channel run only once for each target.
    """
    deadline = deadline or Deadline()
    with one_look():
        return [check(config, name, limits(config), scope, deadline) for name, config in channels]


def check(
    config: Config,
    channel_name: str,
    limits: CheckLimits,
    scope: Scope = Scope.LOCAL,
    deadline: Deadline | None = None,
) -> Verdict:
    """Return the verdict on a channel. All queries to servers must end before `deadline`.

    RplError is never raised. If the state cannot be read, the verdict is UNKNOWN, or a finding reports the error.
    """
    channel, now = Channel(channel_name, config.datadir), time.time()
    peers = _Peers(config, deadline or Deadline())
    verdict = Verdict(channel=channel_name, level=0, text="the stored state agrees", lag_s=None)
    findings: list[Finding] = []
    if scope is not Scope.OFFLINE:
        try:
            status, threads = peers.ask_target(lambda: status_and_threads(config, channel_name))
        except (RplError, OSError) as error:
            verdict = Verdict(channel=channel_name, level=UNKNOWN, text=as_rpl_error(error).message, lag_s=None)
        else:
            record = read_sync_record(channel)
            is_cron = runs_from_cron(config, record)
            verdict = _summary(status, record, now) if is_cron else _live(status)
            if is_cron:
                findings += check_cron(record, threads, limits, now)
            else:
                findings += check_running(status, threads, limits, now)
            findings += check_skips(status)
            findings += check_ahead(status, threads, limits.critical_s)
    findings += _find(config, channel, scope, limits, peers)
    if scope is Scope.ONLINE:  # a query to the source is newer than the reports of the threads
        last = {finding.code: finding for finding in findings}
        findings = [f for f in findings if f.code not in ASKED_TOO or last[f.code] is f]
    if purged := next((each for each in findings if each.code == "source_purged"), None):
        # a start would fail with error 1236
        findings = [replace(each, repair=purged.repair) if each.code == "never_started" else each for each in findings]
    findings = [replace(each, repair=for_channel(each.repair, channel_name)) for each in findings]
    findings = list(dict.fromkeys(findings))  # two checks may report the same stopped thread
    level = worst([verdict.level, *(finding.level for finding in findings)])
    serious = list(dict.fromkeys(finding.code for finding in findings if finding.level))
    text = f"{verdict.text}; found {', '.join(serious)}" if serious else verdict.text
    if serious and scope is Scope.OFFLINE:
        text = f"found {', '.join(serious)}"
    return replace(verdict, level=level, text=text, findings=tuple(findings))


def _live(status: SlaveStatus) -> Verdict:
    """Return a verdict without findings for a channel that must always run. Its text shows the lag, or the stopped
    threads.
    """
    name, lag, delay = status.Channel_Name, status.Seconds_Behind_Master, status.SQL_Delay
    threads = f"io {status.Slave_IO_Running}, sql {status.Slave_SQL_Running}"
    if (status.Slave_IO_Running, status.Slave_SQL_Running) != ("Yes", "Yes"):
        error = status.Last_SQL_Error or status.Last_IO_Error
        return Verdict(
            channel=name,
            level=0,
            text=f"{threads}{f': {error}' if error else ''}",
            lag_s=lag,
            delay_s=delay,
            error=error,
        )
    asked = f" (MASTER_DELAY {delay} s)" if delay else ""
    behind = f"{lag} s behind{asked}" if lag is not None else "behind by an unknown time"
    where = f"{status.Relay_Master_Log_File}:{status.Exec_Master_Log_Pos}"
    return Verdict(channel=name, level=0, text=f"{behind}, {where}", lag_s=lag, delay_s=delay)


def _summary(status: SlaveStatus, record: SyncRecord | None, now: float) -> Verdict:
    """Return a verdict without findings for a channel that cron runs.

    `record` has the time of the channel's last sync. It is None if the channel was never synced.
    """
    if record is None:
        return Verdict(channel=status.Channel_Name, level=0, text="never synced", lag_s=None)
    age = max(0, int(now - record.at))
    return Verdict(
        channel=status.Channel_Name, level=0, text=f"synced {age} s ago to {record.to}", lag_s=None, sync_age_s=age
    )


def worst(levels: Iterable[int]) -> int:
    return max(levels, key=worst_first, default=0)


def worst_first(level: int) -> int:
    """Return the rank of a level: a higher rank is worse. As in monitoring plugins, CRITICAL is worse than UNKNOWN."""
    return (0, 1, 3, 2)[level]


@dataclass(frozen=True, slots=True)
class _Peers(Peers):
    """The source and the target during a check. An error of a query becomes a finding."""

    def of_target(self, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
        return self.ask_target(lambda: list(_or_finding(look)))

    def of_source(self, master: MasterInfo, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
        return self.ask_source(master, lambda: list(_or_finding(look)))


def _find(config: Config, channel: Channel, scope: Scope, limits: CheckLimits, peers: _Peers) -> Iterator[Finding]:
    """Yield findings about the stored state. If one part of it cannot be read, the findings of the other parts still
    follow.
    """
    stored = Stored()
    is_asked = not is_held_by_applier(config, channel)
    is_fit = True
    try:
        unfit = peers.of_target(lambda: check_belonging(config, channel)) if is_asked else []
        yield from unfit
        is_fit = not any(finding.code in UNFIT for finding in unfit)
        yield from peers.of_target(lambda: check_repositories(config, channel, stored, is_fit=is_fit))
    except TargetError as late:
        yield found("target_away", late.message, late.hint)
    if stored.master is not None:
        master = stored.master
        deep = scope is Scope.OFFLINE or scope is Scope.ONLINE and not running(channel)
        yield from _or_finding(lambda: check_relay_log(channel, master, stored.relay, deep=deep))
    if is_fit and is_asked and may_have_target(config):
        from rplctl.command.check.clone import check_clone

        try:
            yield from peers.of_target(lambda: check_target(config, channel, stored))
            yield from peers.of_target(lambda: check_clone(config, channel))
        except TargetError as late:
            yield found("target_away", late.message, late.hint)
    yield from _or_finding(lambda: check_skipped(channel))
    yield from _or_finding(lambda: check_verify(channel, limits.verify_age_s))
    if scope is Scope.ONLINE and stored.master is not None:
        source = stored.master
        try:
            yield from peers.of_source(source, lambda: check_source(config, channel, stored))
            end = peers.ask_source(source, lambda: known_end(config, stored))
            yield from _or_finding(lambda: check_progress(channel, stored, end))
        except SourceError as late:
            yield found("source_away", late.message, late.hint)
    yield from _or_finding(lambda: _disk(config))


def _or_finding(look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except (RplError, OSError) as error:
        yield found("cannot_look", as_rpl_error(error).message, as_rpl_error(error).hint or "rplctl doctor")


def _disk(config: Config) -> Iterator[Finding]:
    if config.datadir.is_dir() and (free := shutil.disk_usage(config.datadir).free) < LEAST_FREE_BYTES:
        text = f"{free >> 10} KiB are free in {config.datadir}: relay logs and positions cannot be written"
        yield found("disk_full", text, f"df {config.datadir}; free some space")
