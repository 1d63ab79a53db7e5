"""Random sequences of commands against a model of two channels (WL#2775, REQ-6): after each step exit code, error
number, threads, positions, settings and the place of both records are what the model says.

Threads are processes that hold the thread's lock and do nothing else: what they would do is tested elsewhere, and the
commands see no difference. `make torture` runs many more and longer sequences.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rplctl.channel import Channel, lock_holder
from rplctl.cli import run
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of
from rplctl.command.process import preparation
from rplctl.command.process.child import Child
from rplctl.config import load_config
from rplctl.demo.crash_log import FOLDER
from rplctl.option_file import store_options
from rplctl.repository import create_tables, open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.switch import RECORDS
from tests.kit.replica import wait_until
from tests.kit.torture_page import count_torture, run_seed, walk

pytestmark = pytest.mark.long(
    "Random sequences of commands; tests/repository/test_switch.py and tests/cli/test_switch_repo.py hold each command."
)

START: Any = preparation
SEED = 2775
ROLES = ("receiver", "applier")
RECORD_NAMES = ("master-info", "relay-log-info")
THREAD = """
import signal, sys, time
from pathlib import Path
from rplctl.channel import Channel, hold_lock
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with hold_lock(Channel(sys.argv[2], Path(sys.argv[1])), sys.argv[3]):
    time.sleep(600)
"""
CHANNELS = st.sampled_from(["", "", "", "east"])
FIRST = ("binlog.000001", 480)
POSITIONS = st.sampled_from([FIRST, ("binlog.000001", 3743), ("binlog.000002", 847)])


@dataclass
class Model:
    """Of one channel: what an operator who knows the manual expects to see."""

    configured: bool = False
    kinds: dict[str, str] = field(default_factory=lambda: dict.fromkeys(RECORD_NAMES, "FILE"))
    read: tuple[str, int] = ("", 4)
    executed: tuple[str, int] | None = None  # None: there is no RelayLogInfo, after RESET
    retry: int = 60
    delay: int = 0
    skip: int = 0
    running: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def errno(self) -> int:
        found = re.search(r"ERROR (\d+)", self.err)
        return int(found[1]) if found else 0


class Commands(RuleBasedStateMachine):
    configured: Path  # an instance with both channels, to begin with

    @initialize()
    def begin(self) -> None:
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.datadir = Path(tempfile.mkdtemp(prefix="rplctl-model-", dir=memory))
        shutil.copytree(self.configured, self.datadir, dirs_exist_ok=True)
        store_options(self.datadir, "", {"spark": "auto"})  # else a start begins an applier before `spawn` is called
        self.models, self.changed = {name: Model(True, read=FIRST, executed=FIRST) for name in ("", "east")}, ""
        self.threads: list[subprocess.Popen[bytes]] = []
        self.original, START.spawn = START.spawn, self.spawn

    def teardown(self) -> None:
        try:
            for channel in self.models:  # the other one, too, is as it was left
                self.check(channel)
        finally:
            self.end()

    def end(self) -> None:
        START.spawn = self.original
        for thread in self.threads:
            thread.kill()
            thread.wait()
        shutil.rmtree(self.datadir)

    def spawn(self, channel: Channel, role: str, *_: Any, **__: Any) -> Child:
        command = [sys.executable, "-c", THREAD, str(self.datadir), channel.name, role]
        self.threads.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        return Child(role, channel, self.threads[-1], time.time())

    def call(self, *arguments: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["--datadir", str(self.datadir), *arguments])
        assert "bug" not in err.getvalue() and "Traceback" not in err.getvalue(), err.getvalue()
        return Done(code, out.getvalue(), err.getvalue())

    def expect(self, channel: str, verb: str, *more: str, refused: tuple[int, int] | None) -> bool:
        """Run it; `refused` is (exit code, errno). Whether it was carried out."""
        model, self.changed = self.models[channel], channel
        done = self.call(verb, "--channel", channel, *more)
        if not model.configured and verb != "change-master":
            refused = (4, 3074 if channel else 1200)
        assert (done.code, done.errno) == (refused or (0, 0)), (verb, more, model, done)
        assert bool(done.err) is bool(refused) or "hint" not in done.err
        return refused is None

    @rule(channel=CHANNELS, position=POSITIONS)
    def change_position(self, channel: str, position: tuple[str, int]) -> None:
        model = self.models[channel]
        source = [] if model.configured else ["--master-binlog-dir", str(FOLDER)]
        where = ["--master-log-file", position[0], "--master-log-pos", str(position[1]), "--yes"]
        if self.expect(channel, "change-master", *source, *where, refused=self.refused(channel, "receiver", 3021)):
            model.configured, model.read = True, position
            if not model.running:
                model.executed = position

    @rule(channel=CHANNELS, seconds=st.integers(1, 99))
    def change_retry(self, channel: str, seconds: int) -> None:
        model = self.models[channel]
        if not model.configured:
            return
        given = ("--master-connect-retry", str(seconds))
        if self.expect(channel, "change-master", *given, refused=self.refused(channel, "receiver", 3021)):
            model.retry = seconds
            model.executed = model.executed or model.read  # both records are written

    @rule(channel=CHANNELS, seconds=st.integers(0, 99))
    def change_delay(self, channel: str, seconds: int) -> None:
        model = self.models[channel]
        if not model.configured:
            return
        given = ("--master-delay", str(seconds))
        if self.expect(channel, "change-master", *given, refused=self.refused(channel, "applier", 3085)):
            model.delay = seconds
            model.executed = model.executed or model.read

    def refused(self, channel: str, role: str, errno: int) -> tuple[int, int] | None:
        return (2, errno) if role in self.models[channel].running else None

    def refused_while_running(self, channel: str) -> tuple[int, int] | None:
        return (2, 3081) if self.models[channel].running else None

    @rule(
        channel=CHANNELS,
        to=st.sampled_from(["table", "file"]),
        which=st.sampled_from([*RECORD_NAMES, "both"]),
        dry_run=st.sampled_from([False, False, False, True]),
    )
    def switch_repo(self, channel: str, to: str, which: str, dry_run: bool) -> None:
        refused = None if dry_run else self.refused_while_running(channel)
        dry = ["--dry-run"] if dry_run else []
        if (
            self.expect(channel, "switch-repo", "--to", to, "--repository", which, *dry, refused=refused)
            and not dry_run
        ):
            for name in RECORD_NAMES if which == "both" else (which,):
                self.models[channel].kinds[name] = to.upper()

    @rule(channel=CHANNELS, everything=st.sampled_from([False, False, True]))
    def reset(self, channel: str, everything: bool) -> None:
        more = ["--all"] if everything else []
        if self.expect(channel, "reset", "--yes", *more, refused=self.refused_while_running(channel)):
            old = self.models[channel]
            self.models[channel] = Model(kinds=old.kinds)
            if not everything:
                self.models[channel].configured, self.models[channel].retry = True, old.retry

    @precondition(lambda self: not self.models[""].running)
    @rule(channel=CHANNELS, roles=st.sampled_from([ROLES, ("receiver",), ("applier",)]))
    def start_what_stands(self, channel: str, roles: tuple[str, ...]) -> None:
        self.start(channel, roles)

    @rule(channel=CHANNELS, roles=st.sampled_from([ROLES, ("receiver",), ("applier",)]))
    def start(self, channel: str, roles: tuple[str, ...]) -> None:
        model = self.models[channel]
        if self.expect(channel, "start", *only(roles), refused=None):
            if "applier" in set(roles) - model.running:
                model.skip = 0
            model.executed = model.executed or model.read
            model.running |= set(roles)

    @rule(channel=CHANNELS, roles=st.sampled_from([ROLES, ("receiver",), ("applier",)]))
    def stop(self, channel: str, roles: tuple[str, ...]) -> None:
        if self.expect(channel, "stop", *only(roles), refused=None):
            self.models[channel].running -= set(roles)

    @rule(channel=CHANNELS, role=st.sampled_from(ROLES))
    def kill(self, channel: str, role: str) -> None:
        if role in self.models[channel].running:
            place = Channel(channel, self.datadir)
            holder = lock_holder(place, role)
            assert holder, "its thread ended by itself"
            os.kill(holder, signal.SIGKILL)
            wait_until(lambda: lock_holder(place, role) is None)
            self.models[channel].running.discard(role)

    @rule(channel=CHANNELS, count=st.integers(0, 3))
    def skip(self, channel: str, count: int) -> None:
        refused = self.refused(channel, "applier", 3085)
        if self.expect(channel, "skip", str(count), "--yes", refused=refused):
            self.models[channel].skip = count

    @rule(channel=CHANNELS, verb=st.sampled_from(["purge-relay-logs", "flush-relay-logs"]))
    def keep_order(self, channel: str, verb: str) -> None:
        self.expect(channel, verb, refused=None)

    @rule(channel=CHANNELS, dry_run=st.sampled_from([False, False, False, True]))
    def recover(self, channel: str, dry_run: bool) -> None:
        refused = None if dry_run else self.refused(channel, "receiver", 3021)
        self.expect(channel, "recover", *(["--dry-run"] if dry_run else []), refused=refused)

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if not hasattr(self, "models"):
            return
        self.check(self.changed)

    def check(self, channel: str) -> None:
        model = self.models[channel]
        done = self.call("show-status", "--json", "--channel", channel)
        if not model.configured:
            assert done.code == 4, done
            return
        row = json.loads(done.out)[0]
        assert {role for role, column in COLUMNS.items() if row[column] != "No"} == model.running
        shown = (row["Master_Log_File"], row["Read_Master_Log_Pos"])
        assert (shown, row["Connect_Retry"], row["Skip_Counter"]) == (model.read, model.retry, model.skip)
        if model.executed is not None:
            assert (row["Relay_Master_Log_File"], row["Exec_Master_Log_Pos"]) == model.executed
            assert row["SQL_Delay"] == model.delay
        self.each_record_is_in_its_place_alone(channel, model)

    def each_record_is_in_its_place_alone(self, channel: str, model: Model) -> None:
        config, place = load_config(self.datadir, channel), Channel(channel, self.datadir)
        for name in RECORD_NAMES:
            held = {
                str(kind)
                for kind in RepositoryKind
                if open_repository(RECORDS[name], kind, config, place, engine_of(config)).exists()
            }
            has_data = name == "master-info" or model.executed is not None
            assert held == ({model.kinds[name]} if has_data else set()), (channel, name, held, model)
        assert not list(self.datadir.rglob("switch-*.json")) and not list(self.datadir.rglob("*.pending"))
        assert not list(self.datadir.rglob(".*.tmp*"))


COLUMNS = {"receiver": "Slave_IO_Running", "applier": "Slave_SQL_Running"}


def only(roles: tuple[str, ...]) -> list[str]:
    return [] if len(roles) == 2 else [f"--{roles[0]}"]


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The instance that every sequence begins with."""
    create_tables(engine_of(load_config(tmp_path))())
    for channel in ("", "east"):
        changes = MasterChanges(master_binlog_dir=str(FOLDER), master_log_file=FIRST[0], master_log_pos=FIRST[1])
        change_master(load_config(tmp_path, channel), channel, changes)
    monkeypatch.setattr(Commands, "configured", tmp_path, raising=False)


def carry_out(sequences: int, steps: int, of_seed: int = SEED) -> None:
    how = settings(
        max_examples=sequences,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    run_state_machine_as_test(seed(of_seed)(Commands), settings=how)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(
    ("sequences", "steps"),
    [pytest.param(20, 10, id=f"20-of-seed-{SEED}"), pytest.param(1000, 40, marks=pytest.mark.torture, id="1000")],
)
def test_any_sequence_of_commands_does_what_the_model_says(sequences: int, steps: int) -> None:
    """A failure is shown as the sequence that led to it."""
    of_seed = SEED
    if sequences == 1000:
        of_seed = int(run_seed())
        sequences = len(walk("command sequences", f"of seed {of_seed}", range(sequences)))
    carry_out(sequences, steps, of_seed)
    count_torture("command sequences", f"up to {steps} steps", 0, sequences)


@pytest.mark.slow
@pytest.mark.usefixtures("begun")
def test_a_switch_that_forgets_its_option_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.repository.switch.Switch.store_option", lambda _: None)
    with pytest.raises(AssertionError):
        carry_out(20, 10)
