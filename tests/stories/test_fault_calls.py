"""Receiver, switch, CHANGE MASTER, purge and recovery, killed or refused (ENOSPC, EIO) at their N-th system call that
changes a file, for all N; afterwards they go on, and nothing is lost, mixed or left over.

strace attaches to a fork of this process and counts each kind of call by itself. Some N in the suite, every N with
`-m torture`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.change_store import finish_pending_change
from rplctl.command.selftest import crash_steps
from rplctl.command.selftest.crash_run import (
    CHANNEL,
    ChildOutcome,
    Say,
    Work,
    apply,
    channel_of,
    in_child,
    receive,
    received,
    recorded,
)
from rplctl.command.selftest.crash_walk import CrashWalk
from rplctl.config import Config
from rplctl.demo.crash_log import states_without_statements
from rplctl.receiver.receiver import Receiver
from rplctl.relay_log.index import RelayLogIndex
from tests.kit.torture_page import count_torture

STRACE = shutil.which("strace") or ""
KILL_AT = ("write", "fsync", "rename", "unlink", "ftruncate", "pwrite64", "fdatasync")
REFUSED = (("write", "ENOSPC"), ("fsync", "EIO"), ("rename", "EIO"), ("write", "EIO"), ("pwrite64", "ENOSPC"))
EXISTING = "binlog.000002"  # CHANGE MASTER TO here

pytestmark = [
    pytest.mark.long(
        "A failing system call is rare; tests/command/test_crash_test.py kills at each point in make test."
    ),
    pytest.mark.slow,
    pytest.mark.timeout(3600),
]


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """`many`: received into small relay logs, not applied; `applied`: all of it applied; `fresh`: to be received."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="rplctl-calls-", dir=memory))
    try:
        if why := not_traceable():
            pytest.skip(why)
        CrashWalk(folder, "", "").prepare()
        applied, fresh = (config_at(folder / name) for name in ("applied", "fresh"))
        for config, work in (
            (applied, partial(apply, applied, states_without_statements()[-1])),
            (fresh, partial(crash_steps.forget_relay_logs, fresh)),
        ):
            shutil.copytree(folder / "many", config.datadir)
            assert not (done := in_child(work)).error, done
        shutil.copytree(folder / "many", folder / "torn")
        index = RelayLogIndex(channel_of(config_at(folder / "torn")))
        os.truncate(index.path(index.names()[-1]), index.path(index.names()[-1]).stat().st_size - 60)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver with a full disk tries again after a minute."""
    pause = Receiver.pause
    monkeypatch.setattr(Receiver, "pause", lambda receiver, _: pause(receiver, 0.05))


def config_at(folder: Path) -> Config:
    return Config(folder, max_relay_log_size=4096)


def not_traceable() -> str:
    if not STRACE:
        return "strace is not installed (apt-get install strace)"
    done = in_child(traced(lambda _say: None, Path(os.devnull), "write"))
    return "" if not done.error else f"strace may not attach here: {done.error}"


def traced(work: Work, log: Path, inject: str) -> Work:
    """The work, with strace attached to the process that does it."""

    def run(say: Say) -> None:
        calls = inject.partition(":")[0]
        command = [STRACE, "-f", "-qq", "-o", str(log), "-p", str(os.getpid()), "-e", f"trace={calls}"]
        quiet = subprocess.DEVNULL
        how = ["-e", f"inject={inject}"] if inject.count(":") > 1 else []
        tracer = subprocess.Popen([*command, *how], stdin=quiet, stdout=quiet, stderr=quiet)
        while "TracerPid:\t0\n" in Path("/proc/self/status").read_text():
            if tracer.poll() is not None:
                raise RuntimeError("strace ended")
            time.sleep(0.002)
        work(say)

    return run


def old_or_new(config: Config) -> list[str]:
    """A start after CHANGE MASTER: the settings of before, or those asked for, in both records."""
    from rplctl.command.channel.context import open_repositories

    def read(say: Say) -> None:
        finish_pending_change(config, channel_of(config))
        opened = open_repositories(config, CHANNEL)
        say([str(opened.master_info.read().read_position), opened.master_info.read().connect_retry])

    done = in_child(read)
    if done.error:
        return [done.error]
    return [] if done.said[0] in ([f"{EXISTING}:4", 7], done_before(config)) else [f"mixed: {done.said[0]}"]


def done_before(_config: Config) -> list[object]:
    return ["binlog.000003:3195", 60]


def fetched(config: Config) -> list[str]:
    done = in_child(partial(receive, config))
    if done.error or done.killed:
        return [done.error or "killed"]
    index = RelayLogIndex(channel_of(config))
    wrong = [] if received(config) == recorded() else ["the relay log differs from the source's"]
    return wrong + ([] if index.names() == index.files() else [f"index {index.names()}, files {index.files()}"])


def switched(config: Config) -> list[str]:
    """A start settles it; then both records are whole and as they were, each in one place."""
    wanted = config.datadir.parent / "many"
    before = in_child(partial(records, config_at(wanted)))
    done = in_child(partial(crash_steps.resolve, config))
    after = in_child(partial(records, config))
    if done.error or after.error:
        return [done.error or after.error]
    return [] if after.said[0]["records"] == before.said[0]["records"] else [f"records differ: {after.said[0]}"]


def records(config: Config, say: Say) -> None:
    crash_steps.records(config, say)


def purged(config: Config) -> list[str]:
    for step in (crash_steps.recover, crash_steps.purge):
        if (done := in_child(partial(step, config))).error:
            return [done.error]
    index = RelayLogIndex(channel_of(config))
    left = [path.name for path in config.datadir.glob("*~rec~")]
    return left if index.names() == index.files() and len(index.names()) < 3 else [*left, f"{index.files()} stay"]


def change(config: Config, _say: Say) -> None:
    wanted = MasterChanges(master_log_file=EXISTING, master_log_pos=4, master_connect_retry=7)
    change_master(config, CHANNEL, wanted)


@dataclass(frozen=True)
class Subject:
    base: str
    work: Callable[[Config, Say], None]
    wrong: Callable[[Config], list[str]]


SUBJECTS = {
    "receiver": Subject("fresh", receive, fetched),
    "recovery": Subject("torn", crash_steps.recover, fetched),
    "switch-repo": Subject("many", lambda config, say: crash_steps.switch(config, "table", say), switched),
    "change-master": Subject("many", change, old_or_new),
    "purge": Subject("applied", crash_steps.purge, purged),
}


def sweep(base: Path, name: str, call: str, how: str, numbers: Iterator[int]) -> tuple[int, list[str]]:
    """(cases, what went wrong) for N in `numbers`, up to the first that is not reached."""
    subject, cases, found = SUBJECTS[name], 0, []
    for number in numbers:
        folder = base / "case"
        shutil.copytree(base / subject.base, folder)
        try:
            config, log = config_at(folder), base / "strace"
            done = in_child(traced(partial(subject.work, config), log, f"{call}:{how}:when={number}"))
            is_hit = done.killed if how.startswith("signal") else "INJECTED" in log.read_text()
            if not is_hit:
                break
            cases += 1
            wrong = [*unexpected(done), *subject.wrong(config)]
            count_torture("system calls", f"{name}: {call} {how}", len(wrong))
            found += [f"{name} {call} {how} {number}: {text}" for text in wrong]
        finally:
            shutil.rmtree(folder)
    return cases, found


def unexpected(done: ChildOutcome) -> list[str]:
    """An error that is not ours, nor the system's own with a path, which the command line says in one line."""
    is_ours = not re.match(r"\w+(Error|Exception): ", done.error)
    return [] if is_ours or re.match(r"OSError: \[Errno (5|28)\] [\w/ ]+: '/[^']+'$", done.error) else [done.error]


def some(first: int, step: int) -> Iterator[int]:
    return iter(range(first, 10_000, step))


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.torture)], ids=["some", "all"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_killed_at_its_nth_call_it_goes_on(base: Path, name: str, everything: bool) -> None:
    cases, wrong = 0, list[str]()
    for call in KILL_AT:
        numbers = count(1) if everything else some(1, 31)
        done, found = sweep(base, name, call, "signal=SIGKILL", numbers)
        cases, wrong = cases + done, wrong + found
    assert wrong == [] and cases >= 3


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.torture)], ids=["some", "all"])
@pytest.mark.parametrize("name", ["receiver", "switch-repo", "change-master", "purge"])
def test_refused_its_nth_call_it_says_so_and_goes_on(base: Path, name: str, everything: bool) -> None:
    cases, wrong = 0, list[str]()
    for call, error in REFUSED:
        numbers = count(1) if everything else some(2, 41)
        done, found = sweep(base, name, call, f"error={error}", numbers)
        cases, wrong = cases + done, wrong + found
    assert wrong == [] and cases > 1


def test_a_wrong_order_is_caught(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: a switch that deletes before it writes, without its journal."""

    def wrong_order(switch: Any, _store: bool, _has_applied: object) -> None:
        info = switch.old.read()
        switch.old.remove()
        switch.write(info)
        switch.store_option()

    monkeypatch.setattr("rplctl.repository.switch.Switch.copy_and_delete", wrong_order)
    assert sweep(base, "switch-repo", "pwrite64", "signal=SIGKILL", some(1, 6))[1]
