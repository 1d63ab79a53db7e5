"""`crash-test`: every crash point killed on a scratch instance, what is left compared with what must be.

WL#3970's test matrix. A recorded log is received and applied; the receiver, the applier or a command is killed at the
point and started again. What the source held at each position is recorded beside the log: it is the source's word that
decides.

    rolled back     the position is where it was, and so are the rows: the transaction is applied again
    committed       position and rows are behind the transaction, also where recovery carried that out
    decided         the rows are behind the transaction and the position is before it: the restart finds by the note in
                    the target what of it is there, and goes on
    fetched once    the relay log holds every transaction of the source once, byte for byte
    finished        the purge or switch is carried out; `undone`: the switch is as if it had never begun

Afterwards every case goes on to the end of its log, where rows and position must be the source's, and nothing may be
left over (temporary files, prepared transactions).
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rplctl import failpoint
from rplctl.command.channel.context import administer, running
from rplctl.command.selftest.crash_cases import all_cases, check_names, is_wanted
from rplctl.command.selftest.crash_run import INTERRUPTIONS
from rplctl.command.selftest.crash_walk import Walk
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import NotRunning, UsageError
from rplctl.own_process import signals_to
from rplctl.target.registry import DEFAULT_KIND, target_kind


@dataclass(frozen=True, slots=True)
class CrashLine:
    """Field names are columns."""

    Crash_point: str
    Commit_mode: str
    Group_kind: str
    Target: str
    Expected: str
    Seen: str
    Result: str  # OK | FAIL


@dataclass(frozen=True, slots=True)
class ArmResult:
    channel: str
    armed: str


def crash_test(
    target: str = "",
    target_password: str = "",
    *,
    points: Sequence[str] = (),
    modes: Sequence[str] = (),
    kinds: Sequence[str] = (),
) -> list[CrashLine]:
    """Walk all cases, or those named; a target must not hold the scratch database yet.

    `target`: its URL; '' is a SQLite file. `target_password` as in Config. Raises UsageError, TargetError, RplError.
    """
    kind = target_kind(target or DEFAULT_KIND)
    cases = [case for case in all_cases(kind) if is_wanted(case, points, modes, kinds)]
    check_names(points, modes, kinds)
    if not cases:
        raise UsageError(f"no such case on a target of kind {kind}", hint="rplctl crash-test without options walks all")
    interrupted = signals_to(signal.default_int_handler, *INTERRUPTIONS)  # after SIGTERM, too, nothing is left
    with interrupted, tempfile.TemporaryDirectory(prefix="rplctl-crash-") as name:
        walk = Walk(Path(name), target if kind != DEFAULT_KIND else "", target_password)
        lines = []
        try:
            walk.prepare()
            for case in cases:
                seen = walk.run(case)
                result = "OK" if seen == case.expected else "FAIL"
                shown = kind if case.mode != "-" else "-"
                lines.append(CrashLine(case.point, case.mode, case.kind, shown, case.expected, seen, result))
        except KeyboardInterrupt:
            for number in INTERRUPTIONS:  # once is enough
                signal.signal(number, signal.SIG_IGN)
            raise
        finally:
            walk.close()
    return lines


def clone_crash_test(config: Config, channel_name: str, tables: str, points: Sequence[str] = ()) -> list[CrashLine]:
    """Copy tables of the channel's source into scratch targets, killed at each point of a copy, or at those named.

    Raises UsageError, NotConfigured; what fails at one point is in its line.
    """
    from rplctl.command.selftest.clone_walk import COPIED, POINTS, walk_clone

    if unknown := [point for point in points if point not in POINTS]:
        raise UsageError(f"a copy does not pass {unknown[0]}", hint=f"--points is one of {', '.join(POINTS)}")
    with (
        signals_to(signal.default_int_handler, *INTERRUPTIONS),
        tempfile.TemporaryDirectory(prefix="rplctl-crash-") as name,
    ):
        return [
            CrashLine(point, "-", "clone", DEFAULT_KIND, COPIED, seen, "OK" if seen == COPIED else "FAIL")
            for point, seen in walk_clone(config, channel_name, tables, points or POINTS, Path(name))
        ]


def arm(config: Config, channel_name: str, text: str) -> ArmResult:
    """Kill a running thread of the channel at its next pass of a point; '' takes it back. Raises ConfigError."""
    failpoint.parse_failpoints(text)
    with administer(config, channel_name) as repositories:
        channel = repositories.channel
        if text and not running(channel):
            raise NotRunning("no thread of the channel runs", hint="rplctl start --crash-points")
        failpoint.arm(private_folder(channel.run_folder), text)
    return ArmResult(channel_name, text)
