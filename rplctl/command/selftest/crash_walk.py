"""Run the cases of `crash-test`: copy a received log, kill a child, and judge the state after the next start.

Invariant: the expected rows are those of the source at the same position (demo.crash_log). They are never those of an
applier that was not killed. Every case runs to the end of its log. At the end, rows, position and binary log must equal
the source's, and no leftovers may exist.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any, Final

from rplctl.command.selftest import crash_run, crash_steps
from rplctl.command.selftest.crash_cases import (
    COMMITTED,
    DECIDED,
    FETCHED,
    FINISHED,
    MODES,
    PER_TABLE,
    ROLLED_BACK,
    UNDONE,
    CrashCase,
)
from rplctl.command.selftest.crash_run import ChildOutcome, in_child
from rplctl.config import Config
from rplctl.demo.crash_log import State, states, states_without_statements
from rplctl.durable import private_folder
from rplctl.errors import RplError
from rplctl.event.warm_up import warm_up
from rplctl.relay_log.index import RelayLogIndex
from rplctl.target.registry import DEFAULT_KIND, dialect_of, is_local_file, target_kind

SMALL_RELAY_LOG: Final = 4096  # bytes: the receiver rotates every few transactions
NOT_PASSED: Final = "not passed"


class CrashWalk:
    """The environment of all cases: a folder with received logs, of which each case uses a copy, and the scratch
    database.
    """

    def __init__(self, folder: Path, target: str, target_password: str) -> None:
        self._folder = folder
        self._target, self._password = target, target_password
        self._kind = target_kind(target or DEFAULT_KIND)
        self._is_lake = dialect_of(self._kind).commits_per_table
        self._is_file = is_local_file(self._kind)
        self._states = crash_run.lake_states() if self._is_lake else states()
        self._number = 0
        self._scratch: crash_steps.Scratch | None = None

    def prepare(self) -> None:
        """Load all modules, and receive the recorded log twice: into a single relay log and into many.

        Raises RplError or UsageError if a step fails.
        """
        warm_up()
        if not self._is_lake and not self._is_file:
            scratch = crash_steps.Scratch(self._config(self._folder / "server", "marker"))
            scratch.claimed(**_said(in_child(scratch.claim)))
            self._scratch = scratch
        for name, size in (("one", 1 << 30), ("many", SMALL_RELAY_LOG)):
            config = self._local(self._folder / name, size)
            private_folder(config.datadir)
            _must(in_child(partial(crash_run.configure, config)))
            if name == "one":
                crash_run.load_what_is_loaded_by(partial(crash_run.receive, config))
            else:
                _must(in_child(partial(crash_run.receive, config)))
        mode = PER_TABLE if self._is_lake else "marker" if dialect_of(self._kind).is_held else "transaction"
        warm = self._config(self._folder / "warm", mode)
        shutil.copytree(self._folder / "one", warm.datadir)
        if warm.relay_log_info_repository == "TABLE":
            crash_run.load_what_is_loaded_by(partial(crash_steps.to_table, warm))
        crash_run.load_what_is_loaded_by(partial(crash_run.apply, warm, self._states[0]))
        if self._scratch is not None:
            _must(in_child(self._scratch.clear))

    def close(self) -> None:
        if self._scratch is not None:
            _must(in_child(self._scratch.clear))

    def run(self, case: CrashCase) -> str:
        """Run one case, and return the observed outcome. A text that is not in the table of outcomes describes a
        failure.

        Raises RplError if the case cannot begin.
        """
        self._number += 1
        folder = self._folder / str(self._number)
        seen = self._walked(case, folder)
        shutil.rmtree(folder, ignore_errors=True)  # an interruption leaves it: `close` needs its name
        return seen

    def _walked(self, case: CrashCase, folder: Path) -> str:
        if case.mode != "-":
            return self._apply(case, self._config(folder, case.mode))
        shutil.copytree(self._folder / "many", folder)
        config = self._local(folder, SMALL_RELAY_LOG)
        if case.kind == "receiver":
            return self._receive(case, config)
        if case.kind == "recovery":
            return self._recover(case, config)
        if case.kind == "task":
            return self._decode(case, config)
        return self._purge(case, config) if case.kind == "purge" else self._switch(case, config)

    def _local(self, folder: Path, size: int = 1 << 30) -> Config:
        return Config(folder, max_relay_log_size=size)

    def _config(self, folder: Path, mode: str) -> Config:
        if self._is_lake:
            return Config(folder, target=f"{self._kind}+file://{folder}/lake", **MODES[mode])
        if self._is_file:
            return Config(folder, target=f"{self._kind}:///{folder}/target.db", **MODES[mode])
        return Config(folder, target=self._target, target_password=self._password, **MODES[mode])

    def _apply(self, case: CrashCase, config: Config) -> str:
        chosen = [n for n, state in enumerate(self._states) if state.kind == case.kind]
        per_commit = 0 if case.kind == "batch" else 1
        first, end = self._states[chosen[0] - 1], self._states[chosen[-1]]
        after = end if per_commit == 0 else self._states[chosen[0]]
        self._begin(case, config, first)
        again = partial(crash_run.apply, config, end, per_commit=per_commit)
        if case.point == "crash_recovery_between_engines":
            if not in_child(again, "crash_commit_after_log=kill").killed:
                return NOT_PASSED
        killed = in_child(again, f"{case.point}=kill")
        if not killed.killed:
            return killed.error or NOT_PASSED
        restarted = in_child(again)
        seen = _compare(restarted, first, after)
        judged = judge(seen, killed, restarted, end)
        if judged == seen and config.log_bin and crash_run.logged(config) != crash_run.recorded_events(end):
            return f"{seen}, then the binary log differs from the source's log"
        return judged

    def _begin(self, case: CrashCase, config: Config, first: State) -> None:
        """Create an instance in the state `first`, before the transactions of the case.

        If the target is not a server, the state is made only once for each mode and kind, and then copied.
        """
        base = self._folder / f"{case.mode} {case.kind}"
        if self._scratch is not None:
            _must(in_child(self._scratch.clear))
            shutil.rmtree(base, ignore_errors=True)
        if not base.exists():
            made = self._config(base, case.mode)
            shutil.copytree(self._folder / "one", base)
            if made.relay_log_info_repository == "TABLE":
                _must(in_child(partial(crash_steps.to_table, made)))
            _must(in_child(partial(crash_run.apply, made, first)))
        shutil.copytree(base, config.datadir)

    def _receive(self, case: CrashCase, config: Config) -> str:
        _must(in_child(partial(crash_steps.forget_relay_logs, config)))
        killed = in_child(partial(crash_run.receive, config), f"{case.point}=kill@2")
        return self._fetched(config) if killed.killed else killed.error or NOT_PASSED

    def _recover(self, case: CrashCase, config: Config) -> str:
        index = RelayLogIndex(crash_run.channel_of(config))
        names = index.names()
        if case.point == "crash_recovery_after_update_index":
            index.path(names[len(names) // 2]).unlink()
        else:
            *_, torn, begun = names  # The last log has no transaction yet. Without it, the log before it is the last.
            index.remove([begun])
            index.path(begun).unlink()
            os.truncate(index.path(torn), index.path(torn).stat().st_size - 60)
            if crash_run.received(config) == crash_run.recorded():
                return "no transaction is torn"
        killed = in_child(partial(crash_steps.recover, config), f"{case.point}=kill")
        return self._fetched(config) if killed.killed else killed.error or NOT_PASSED

    def _fetched(self, config: Config) -> str:
        done = in_child(partial(crash_run.receive, config))
        if done.error:
            return done.error
        return (
            FETCHED
            if crash_run.received(config) == crash_run.recorded()
            else "the relay log differs from the source's log"
        )

    def _purge(self, case: CrashCase, config: Config) -> str:
        _must(in_child(partial(crash_run.apply, config, states_without_statements()[-1])))
        needed = str(_said(in_child(partial(crash_steps.records, config)))["relay_log"])
        killed = in_child(partial(crash_steps.purge, config), f"{case.point}=kill")
        if not killed.killed:
            return killed.error or NOT_PASSED
        for step in (crash_steps.recover, crash_steps.purge):
            if failure := _failure(in_child(partial(step, config))):
                return failure
        index = RelayLogIndex(crash_run.channel_of(config))
        is_done = index.names() == index.files() and index.names()[:1] == [needed]
        left = list(config.datadir.glob("*~rec~"))
        return FINISHED if is_done and not left else f"left: {', '.join(map(str, [*index.files(), *left]))}"

    def _decode(self, case: CrashCase, config: Config) -> str:
        """Kill a task of Spark while it decodes a range. The applier must still continue to the end of the log."""
        end = states_without_statements()[-1]
        done = in_child(partial(crash_run.apply_by_spark, config, end), f"{case.point}=kill@2")
        if failure := _failure(done):
            return failure
        *_, (_, position, digest, left), (_, failures) = done.said
        if not failures:
            return NOT_PASSED
        if (position, digest) != (_at(end), end.digest):
            return f"at {position} rows or position differ"
        return f"left over: {', '.join(left)}" if left else FINISHED

    def _switch(self, case: CrashCase, config: Config) -> str:
        to = case.kind.partition(" ")[2]
        if to == "file":
            _must(in_child(partial(crash_steps.switch, config, "table")))
        before = _said(in_child(partial(crash_steps.records, config)))
        killed = in_child(partial(crash_steps.switch, config, to), f"{case.point}=kill")
        if not killed.killed:
            return killed.error or NOT_PASSED
        for step in (crash_steps.resolve, crash_steps.records):
            done = in_child(partial(step, config))
            if failure := _failure(done):
                return failure
        after = _said(done)
        if after["records"] != before["records"]:
            return "the records differ"
        return FINISHED if after["kind"] == to.upper() else UNDONE


def _compare(restarted: ChildOutcome, first: State, after: State) -> str:
    """Return the outcome of a case: the position and the rows at the restart, before the applier has applied anything.

    `first` is the state before the transaction, and `after` the state after it.
    """
    starts = [said for said in restarted.said if said[0] == "start"]
    if not starts:
        return restarted.error
    _, position, digest = starts[0]
    if (position, digest) == (_at(first), first.digest):
        return ROLLED_BACK
    if (position, digest) == (_at(after), after.digest):
        return COMMITTED
    if (position, digest) == (_at(first), after.digest):
        return DECIDED
    return f"position {position} with rows of another"


def judge(seen: str, killed: ChildOutcome, restarted: ChildOutcome, end: State) -> str:
    if restarted.error:
        return restarted.error
    acknowledged = [said[1] for said in killed.said if said[0] == "commit"]
    if seen == ROLLED_BACK and acknowledged:
        return f"{acknowledged[-1]} was committed, but is missing"
    _, position, digest, left = restarted.said[-1]
    if (position, digest) != (_at(end), end.digest):
        return f"{seen}, then at {position} rows or position differ"
    return f"{seen}, left over: {', '.join(left)}" if left else seen


def _at(state: State) -> str:
    return f"{state.log_name}:{state.log_pos}"


def _failure(outcome: ChildOutcome) -> str:
    """Return the error of a step, or '' if the step succeeded. A killed child process is an error, too."""
    return outcome.error or ("a child process was killed" if outcome.killed else "")


def _must(outcome: ChildOutcome) -> ChildOutcome:
    """Return the outcome of a step that must succeed. Raises RplError if it failed."""
    if failure := _failure(outcome):
        raise RplError(failure, errno=outcome.errno)
    return outcome


def _said(outcome: ChildOutcome) -> dict[str, Any]:
    return dict(_must(outcome).said[0])
