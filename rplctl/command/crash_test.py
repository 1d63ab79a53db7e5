"""`crash-test`: every crash point killed on a scratch instance, what is left compared with what must be.

WL#3970's test matrix. A recorded log is received and applied; the receiver, the applier or a command is killed at the
point and started again. What the source held at each position is recorded beside the log: it is the source's word that
decides.

    rolled back     the position is where it was, and so are the rows: the transaction is applied again
    committed       position and rows are behind the transaction, also where recovery carried that out
    repeated        DDL of a server that commits by itself, its position not yet written: the restart stops with the
                    server's error, and a `skip` goes on (REQ-5: said, not hidden)
    fetched once    the relay log holds every transaction of the source once, byte for byte
    finished        the purge or switch is carried out; `undone`: the switch is as if it had never begun

Afterwards every case goes on to the end of its log, where rows and position must be the source's, and nothing may be
left over (temporary files, prepared transactions).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from rplctl import failpoint
from rplctl.channel import Channel
from rplctl.command import crash_steps
from rplctl.command.crash_run import (
    Outcome,
    apply,
    channel_of,
    configure,
    in_child,
    load_what_is_loaded_by,
    receive,
    received,
    recorded,
)
from rplctl.command.instance import administer, running
from rplctl.config import Config
from rplctl.demo.crash_log import KINDS, State, states
from rplctl.durable import private_folder
from rplctl.errors import NotRunning, RplError, UsageError

MODES: Final = ("transaction", "marker", "xa", "xa-pages")
SMALL_RELAY_LOG: Final = 4096  # bytes: the receiver rotates every few transactions
ROLLED_BACK, COMMITTED, REPEATED, FETCHED = "rolled back", "committed", "repeated", "fetched once"
FINISHED, UNDONE = "finished", "undone"
NOT_PASSED = "not passed"

_BEFORE: Final = ("crash_before_update_pos", "crash_after_apply", "crash_commit_before")
ONE_TRANSACTION: Final = {  # commit.transaction.commit_group
    **dict.fromkeys((*_BEFORE, "crash_after_update_pos_before_apply"), ROLLED_BACK),
    "crash_commit_after": COMMITTED,
    "crash_after_commit_before_update_pos": COMMITTED,
    "crash_after_commit_and_update_pos": COMMITTED,
}
TWO_PHASES: Final = {  # commit.two_phase: WL#3970's table
    **dict.fromkeys((*_BEFORE, "crash_commit_after_prepare"), ROLLED_BACK),
    "crash_commit_after_log": COMMITTED,
    "crash_commit_between_engines": COMMITTED,
    "crash_commit_before_unlog": COMMITTED,
    "crash_commit_after": COMMITTED,
    "crash_recovery_between_engines": COMMITTED,  # killed behind the decision, then again in recovery
}
POSITION_AFTER: Final = {  # commit.transaction.commit_after; DDL that commits by itself is repeated
    "crash_after_commit_before_update_pos": ROLLED_BACK,
    "crash_after_commit_and_update_pos": COMMITTED,
}
RECEIVER: Final = dict.fromkeys(
    (
        "crash_after_relay_log_append",
        "crash_before_flush_master_info",
        "crash_before_rotate_relaylog",
        "crash_create_non_critical_before_update_index",
        "crash_create_critical_before_update_index",
        "crash_create_after_update_index",
    ),
    FETCHED,
)
RECOVERY: Final = dict.fromkeys(
    ("crash_recovery_after_update_index", "crash_recovery_before_truncate", "crash_recovery_after_truncate"), FETCHED
)
PURGE: Final = dict.fromkeys(
    (
        "crash_before_purge_logs",
        "crash_purge_before_update_index",
        "crash_purge_critical_after_update_index",
        "crash_purge_non_critical_after_update_index",
    ),
    FINISHED,
)
SWITCH: Final = {
    "switch_after_journal": UNDONE,
    "switch_after_write": UNDONE,
    "switch_after_mark": FINISHED,
    "switch_after_delete": FINISHED,
}


@dataclass(frozen=True, slots=True)
class CrashCase:
    point: str
    mode: str  # of MODES, '-' where nothing is applied
    kind: str  # of KINDS, else what is killed: receiver, recovery, purge, to table, to file
    expected: str


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
    from rplctl.target import target_kind

    kind = target_kind(target or "sqlite")
    cases = [case for case in all_cases(kind) if _wanted(case, points, modes, kinds)]
    _check_names(points, modes, kinds)
    if not cases:
        raise UsageError(f"no such case on a target of kind {kind}", hint="rplctl crash-test without options walks all")
    with tempfile.TemporaryDirectory(prefix="rplctl-crash-") as name:
        walk = Walk(Path(name), target if kind != "sqlite" else "", target_password)
        walk.prepare()
        lines = []
        try:
            for case in cases:
                seen = walk.run(case)
                result = "OK" if seen == case.expected else "FAIL"
                shown = kind if case.mode != "-" else "-"
                lines.append(CrashLine(case.point, case.mode, case.kind, shown, case.expected, seen, result))
        finally:
            walk.close()
    return lines


def all_cases(target_kind: str) -> Iterator[CrashCase]:
    """What there is on a target of that kind, the applier's first."""
    for mode in MODES:
        for kind in KINDS:
            for point, expected in outcomes(mode, kind, target_kind).items():
                yield CrashCase(point, mode, kind, expected)
    for table, kinds in (
        (RECEIVER, ("receiver",)),
        (RECOVERY, ("recovery",)),
        (PURGE, ("purge",)),
        (SWITCH, ("to table", "to file")),
    ):
        for kind in kinds:
            for point, expected in table.items():
                yield CrashCase(point, "-", kind, expected)


def outcomes(mode: str, kind: str, target_kind: str) -> dict[str, str]:
    """Crash point → outcome, for the points that a group of the kind passes in the mode."""
    is_server = target_kind == "mysql"  # its DDL commits by itself, and without a key rows go one by one
    if mode.startswith("xa") and target_kind == "sqlite":
        return {}
    if is_server and kind == "ddl":
        return {**POSITION_AFTER, "crash_after_commit_before_update_pos": REPEATED}
    if is_server and kind == "keyless" and not mode.startswith("xa"):
        return POSITION_AFTER
    return TWO_PHASES if mode.startswith("xa") else ONE_TRANSACTION


def _wanted(case: CrashCase, points: Sequence[str], modes: Sequence[str], kinds: Sequence[str]) -> bool:
    chosen = ((case.point, points), (case.mode, modes), (case.kind, kinds))
    return all(not given or value in given for value, given in chosen)


def _check_names(points: Sequence[str], modes: Sequence[str], kinds: Sequence[str]) -> None:
    known = {case.kind for case in all_cases("mysql")}
    for what, given, names in (
        ("crash point", points, failpoint.CRASH_POINTS),
        ("commit mode", modes, {*MODES, "-"}),
        ("kind", kinds, known),
    ):
        if wrong := [name for name in given if name not in names]:
            raise UsageError(f"'{wrong[0]}' is not a {what}", hint=f"known are {', '.join(sorted(names))}")


class Walk:
    """Copies of one received log in a temporary folder, and the scratch database of a server."""

    def __init__(self, folder: Path, target: str, target_password: str) -> None:
        self._folder = folder
        self._target, self._password = target, target_password
        self._states = states()
        self._number = 0
        self._scratch: crash_steps.Scratch | None = None

    def prepare(self) -> None:
        """Warm up, then receive the log once in a single relay log and once in many. Raises RplError, UsageError."""
        from rplctl.demo.warm_up import warm_up

        warm_up()
        if self._target:
            scratch = crash_steps.Scratch(self._config(self._folder / "server", "marker"))
            scratch.claimed(**_said(in_child(scratch.claim)))
            self._scratch = scratch
        for name, size in (("one", 1 << 30), ("many", SMALL_RELAY_LOG)):
            config = self._local(self._folder / name, size)
            private_folder(config.datadir)
            _must(in_child(partial(configure, config)))
            if name == "one":
                load_what_is_loaded_by(partial(receive, config))
            else:
                _must(in_child(partial(receive, config)))
        warm = self._config(self._folder / "warm", "transaction")
        shutil.copytree(self._folder / "one", warm.datadir)
        for step in (partial(crash_steps.to_table, warm), partial(apply, warm, self._states[0])):
            load_what_is_loaded_by(step)
        if self._scratch is not None:
            _must(in_child(self._scratch.clear))

    def close(self) -> None:
        if self._scratch is not None:
            _must(in_child(self._scratch.clear))

    def run(self, case: CrashCase) -> str:
        """What is seen, in the words of the table; anything else is a failure. Raises RplError when it cannot begin."""
        self._number += 1
        folder = self._folder / str(self._number)
        try:
            if case.mode != "-":
                return self._apply(case, self._config(folder, case.mode))
            shutil.copytree(self._folder / "many", folder)
            config = self._local(folder, SMALL_RELAY_LOG)
            if case.kind == "receiver":
                return self._receive(case, config)
            if case.kind == "recovery":
                return self._recover(case, config)
            return self._purge(case, config) if case.kind == "purge" else self._switch(case, config)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _local(self, folder: Path, size: int = 1 << 30) -> Config:
        return Config(folder, max_relay_log_size=size)

    def _config(self, folder: Path, mode: str) -> Config:
        return replace(
            Config(folder, target=self._target, target_password=self._password),
            relay_log_info_repository="TABLE" if mode == "transaction" else "FILE",
            commit_mode="xa" if mode.startswith("xa") else "auto",
            prepared_position="pages" if mode == "xa-pages" else "line",
        )

    def _apply(self, case: CrashCase, config: Config) -> str:
        chosen = [n for n, state in enumerate(self._states) if state.kind == case.kind]
        per_commit = 0 if case.kind == "batch" else 1
        first, end = self._states[chosen[0] - 1], self._states[chosen[-1]]
        after = end if per_commit == 0 else self._states[chosen[0]]
        self._begin(case, config, first)
        again = partial(apply, config, end, per_commit=per_commit)
        if case.point == "crash_recovery_between_engines":
            if not in_child(again, "crash_commit_after_log=kill").killed:
                return NOT_PASSED
        killed = in_child(again, f"{case.point}=kill")
        if not killed.killed:
            return killed.error or NOT_PASSED
        restarted = in_child(again)
        seen = _compare(restarted, first, after)
        if seen == REPEATED and restarted.errno:
            restarted = in_child(partial(again, skip=1))
        return _judge(seen, killed, restarted, end)

    def _begin(self, case: CrashCase, config: Config, first: State) -> None:
        """An instance at the state before the case's groups; of a SQLite file a copy will do."""
        base = self._folder / f"{case.mode} {case.kind}"
        if self._scratch is not None:
            _must(in_child(self._scratch.clear))
            shutil.rmtree(base, ignore_errors=True)
        if not base.exists():
            made = replace(config, datadir=base)
            shutil.copytree(self._folder / "one", base)
            if made.relay_log_info_repository == "TABLE":
                _must(in_child(partial(crash_steps.to_table, made)))
            _must(in_child(partial(apply, made, first)))
        shutil.copytree(base, config.datadir)

    def _receive(self, case: CrashCase, config: Config) -> str:
        _must(in_child(partial(crash_steps.forget_relay_logs, config)))
        killed = in_child(partial(receive, config), f"{case.point}=kill@2")
        return self._fetched(config) if killed.killed else killed.error or NOT_PASSED

    def _recover(self, case: CrashCase, config: Config) -> str:
        from rplctl.relay_log.index import RelayLogIndex

        index = RelayLogIndex(channel_of(config))
        names = index.names()
        if case.point == "crash_recovery_after_update_index":
            index.path(names[len(names) // 2]).unlink()
        else:
            os.truncate(index.path(names[-1]), index.path(names[-1]).stat().st_size - 60)
        killed = in_child(partial(crash_steps.recover, config), f"{case.point}=kill")
        return self._fetched(config) if killed.killed else killed.error or NOT_PASSED

    def _fetched(self, config: Config) -> str:
        done = in_child(partial(receive, config))
        if done.error:
            return done.error
        return FETCHED if received(config) == recorded() else "the relay log differs from the source's log"

    def _purge(self, case: CrashCase, config: Config) -> str:
        from rplctl.relay_log.index import RelayLogIndex

        _must(in_child(partial(apply, config, self._states[-1])))
        needed = str(_said(in_child(partial(crash_steps.records, config)))["relay_log"])
        killed = in_child(partial(crash_steps.purge, config), f"{case.point}=kill")
        if not killed.killed:
            return killed.error or NOT_PASSED
        for step in (crash_steps.recover, crash_steps.purge):
            _must(in_child(partial(step, config)))
        index = RelayLogIndex(channel_of(config))
        is_done = index.names() == index.files() and index.names()[0] == needed
        left = list(config.datadir.glob("*~rec~"))
        return FINISHED if is_done and not left else f"left: {', '.join(map(str, [*index.files(), *left]))}"

    def _switch(self, case: CrashCase, config: Config) -> str:
        to = case.kind.partition(" ")[2]
        if to == "file":
            _must(in_child(partial(crash_steps.switch, config, "table")))
        before = _said(in_child(partial(crash_steps.records, config)))
        killed = in_child(partial(crash_steps.switch, config, to), f"{case.point}=kill")
        if not killed.killed:
            return killed.error or NOT_PASSED
        settled = in_child(partial(crash_steps.settle, config))
        if settled.error:
            return settled.error
        after = _said(in_child(partial(crash_steps.records, config)))
        if after["records"] != before["records"]:
            return "the records differ"
        return FINISHED if after["kind"] == to.upper() else UNDONE


def _compare(restarted: Outcome, first: State, after: State) -> str:
    """Where the restart found position and rows, before it applied anything."""
    starts = [said for said in restarted.said if said[0] == "start"]
    if not starts:
        return restarted.error
    _, position, digest = starts[0]
    if (position, digest) == (_at(first), first.digest):
        return ROLLED_BACK
    if (position, digest) == (_at(after), after.digest):
        return COMMITTED
    if (position, digest) == (_at(first), after.digest):
        return REPEATED
    return f"position {position} with rows of another"


def _judge(seen: str, killed: Outcome, restarted: Outcome, end: State) -> str:
    if restarted.error:
        return restarted.error
    acknowledged = [said[1] for said in killed.said if said[0] == "commit"]
    if seen == ROLLED_BACK and acknowledged:
        return f"{acknowledged[-1]} was committed and is gone"
    _, position, digest, left = restarted.said[-1]
    if (position, digest) != (_at(end), end.digest):
        return f"{seen}, then at {position} rows or position differ"
    return f"{seen}, left over: {', '.join(left)}" if left else seen


def _at(state: State) -> str:
    return f"{state.log_name}:{state.log_pos}"


def _must(outcome: Outcome) -> Outcome:
    """A step that is no test. Raises RplError."""
    if outcome.killed or outcome.error:
        raise RplError(outcome.error or "a child process was killed", errno=outcome.errno)
    return outcome


def _said(outcome: Outcome) -> dict[str, Any]:
    return dict(_must(outcome).said[0])


def arm(config: Config, channel_name: str, text: str) -> None:
    """Kill a running thread of the channel at its next pass of a point; '' takes it back. Raises ConfigError."""
    channel = Channel(channel_name, config.datadir)
    with administer(channel):
        if text and not running(channel):
            raise NotRunning("no thread of the channel runs", channel=channel_name, hint="rplctl start --crash-points")
        failpoint.arm(private_folder(channel.run_folder), text)
