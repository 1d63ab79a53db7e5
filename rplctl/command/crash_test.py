"""`crash-test`: kill rplctl at every crash point on a scratch instance, and compare the state with the expected one.

This is the test matrix of WL#3970. In each case, a recorded binary log is received and applied. The receiver, the
applier or a command is killed at a crash point and started again. The expected rows come from the source: they were
recorded together with the log, for each position. These are the expected states after the kill:

    rolled back     position and rows are as before the transaction, which is applied again
    committed       position and rows are those after the transaction, perhaps because the recovery committed it
    decided         the rows are those after the transaction, and the position is before it. A note in the target, which
                    was written before the kill, shows which part of the transaction is committed. The restart
                    continues after this part.
    fetched once    the relay log contains every transaction of the source exactly once, byte for byte
    finished        the purge or switch is complete
    undone          the state is as if the switch had never begun

After the comparison, every case runs to the end of its log. There, rows and position must equal the source's, and no
temporary files or prepared transactions may exist.
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
from rplctl.command.selftest.crash_walk import CrashWalk
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import NotRunning, UsageError
from rplctl.own_process import signals_to
from rplctl.target.registry import DEFAULT_KIND, target_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashLine:
    """The result of one case. The field names are the column names of the report."""

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
    """Run all cases, or the selected ones, and return one line per case. `points`, `modes` and `kinds` select by name.

    `target` is a URL, and '' means a SQLite file. The target must not have the scratch database yet. `target_password`
    is the value of the option with this name. Raises UsageError if a name is unknown or no case is selected,
    TargetError if the target reports an error, and RplError if the preparation fails.
    """
    kind = target_kind(target or DEFAULT_KIND)
    cases = [case for case in all_cases(kind) if is_wanted(case, points, modes, kinds)]
    check_names(points, modes, kinds)
    if not cases:
        hint = "to run all cases, run: rplctl crash-test"
        raise UsageError(f"there is no such case on a target of kind {kind}", hint=hint)
    interrupted = signals_to(signal.default_int_handler, *INTERRUPTIONS)  # SIGTERM, too, must remove the scratch files
    with interrupted, tempfile.TemporaryDirectory(prefix="rplctl-crash-") as name:
        walk = CrashWalk(Path(name), target, target_password)
        lines = []
        try:
            walk.prepare()
            for case in cases:
                seen = walk.run(case)
                result = "OK" if seen == case.expected else "FAIL"
                shown = kind if case.mode != "-" else "-"
                lines.append(
                    CrashLine(
                        Crash_point=case.point,
                        Commit_mode=case.mode,
                        Group_kind=case.kind,
                        Target=shown,
                        Expected=case.expected,
                        Seen=seen,
                        Result=result,
                    )
                )
        except KeyboardInterrupt:
            for number in INTERRUPTIONS:  # a second signal must not interrupt the cleanup
                signal.signal(number, signal.SIG_IGN)
            raise
        finally:
            walk.close()
    return lines


def clone_crash_test(config: Config, channel_name: str, tables: str, points: Sequence[str] = ()) -> list[CrashLine]:
    """Copy tables of the channel's source into scratch targets, one copy for each crash point, and kill the copy there.

    `points` selects crash points; () means all. A failure is reported in the line of its point. Raises UsageError for
    an unknown point, and NotConfigured if the channel does not exist.
    """
    from rplctl.command.selftest.clone_walk import COPIED, POINTS, walk_clone

    if unknown := [point for point in points if point not in POINTS]:
        raise UsageError(f"a copy has no crash point '{unknown[0]}'", hint=f"use one of these: {', '.join(POINTS)}")
    with (
        signals_to(signal.default_int_handler, *INTERRUPTIONS),
        tempfile.TemporaryDirectory(prefix="rplctl-crash-") as name,
    ):
        return [
            CrashLine(
                Crash_point=point,
                Commit_mode="-",
                Group_kind="clone",
                Target=DEFAULT_KIND,
                Expected=COPIED,
                Seen=seen,
                Result="OK" if seen == COPIED else "FAIL",
            )
            for point, seen in walk_clone(config, channel_name, tables, points or POINTS, Path(name))
        ]


def arm(config: Config, channel_name: str, text: str) -> ArmResult:
    """Make a running thread of the channel kill itself when it next reaches the crash point in `text`.

    If `text` is '', an earlier request is cancelled. Raises ConfigError if the text is not valid, and NotRunning if no
    thread runs.
    """
    failpoint.parse_failpoints(text)
    with administer(config, channel_name) as repositories:
        channel = repositories.channel
        if text and not running(channel):
            raise NotRunning(
                "no thread of the channel runs",
                hint="to start the channel with crash points, run: rplctl start --crash-points NAME=kill",
            )
        failpoint.arm(private_folder(channel.run_folder), text)
    return ArmResult(channel_name, text)
