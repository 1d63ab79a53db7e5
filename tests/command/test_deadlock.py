"""No two commands, and no command and a collection, can wait for each other for ever (WL#9452 NF-1).

Every pair runs at the same time on one instance with a live receiver; each must end, with its result or an error of
ours, before the watchdog shows where everybody stands. The long version adds a source under load, appliers and two
collectors for five minutes, and measures how long a collection keeps others out.
"""

from __future__ import annotations

import faulthandler
import itertools
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.backup import backup
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.flush_relay_logs import flush_relay_logs
from rplctl.command.instance.backup_lock import BackupLock, lock_detached, unlock
from rplctl.command.lock_instance import INSTANCE
from rplctl.command.lock_tables import TABLES
from rplctl.command.log_status import log_status
from rplctl.command.process.start_request import StartRequest
from rplctl.command.purge_binary_logs import purge_binary_logs
from rplctl.command.purge_relay_logs import purge_relay_logs
from rplctl.command.recover import recover
from rplctl.command.reset import reset
from rplctl.command.show_status import show_status
from rplctl.command.skip import skip
from rplctl.command.start import start
from rplctl.command.stop import stop
from rplctl.command.switch_repo import switch_repo
from rplctl.config import Config, load_config
from rplctl.errors import RplError
from rplctl.option_file import store_options
from tests.command.test_backup import Load, replica_of
from tests.kit.servers import MariadbServer
from tests.source.binlogs import FIRST_EVENT, statements, write_log

pytestmark = pytest.mark.long("Pairs of commands take a minute; tests/test_locks.py holds the order of locks.")

WATCHDOG_S = 240.0
HOLD_P99_S = 0.05
TORTURE_S = 300.0
Command = Callable[[], object]


class Commands:
    """What an operator may do, each as a call; `other` is a channel without threads."""

    def __init__(self, folder: Path, archive: Path) -> None:
        self.datadir = folder / "instance"
        self.datadir.mkdir()
        store_options(self.datadir, "", {"log_bin": "logs/binlog"})
        self._folder = folder
        self._number = itertools.count()
        changes = MasterChanges(master_binlog_dir=str(archive))
        for name in ("", "other"):
            change_master(self.config(name), name, changes)
        self.all: dict[str, Command] = {
            "log-status": lambda: log_status(self.config),
            "backup": self._backup,
            "lock-instance": lambda: self._locked(INSTANCE),
            "lock-tables": lambda: self._locked(TABLES),
            "start": lambda: start(self.config(), "", StartRequest(roles=("receiver",))),
            "stop": lambda: stop(self.config(), ""),
            "flush-relay-logs": lambda: flush_relay_logs(self.config(), ""),
            "purge-relay-logs": lambda: purge_relay_logs(self.config(), ""),
            "purge-binary-logs": lambda: purge_binary_logs(self.config(), "", to="binlog.000001"),
            "show-status": lambda: show_status(self.config(), ""),
            "change-master": lambda: change_master(self.config("other"), "other", changes),
            "reset": lambda: reset(self.config("other"), "other"),
            "skip": lambda: skip(self.config("other"), "other", 0),
            "recover": lambda: recover(self.config("other"), "other"),
            "switch-repo": self._switch,
        }

    def config(self, name: str = "") -> Config:
        return load_config(self.datadir, name)

    def _backup(self) -> None:
        backup(self.config, self._folder / f"backup{next(self._number)}")

    def _locked(self, lock: BackupLock) -> None:
        lock_detached(self.config(), lock, 1)
        unlock(self.config(), lock)

    def _switch(self) -> None:
        to = "file" if self.config("other").master_info_repository == "TABLE" else "table"
        switch_repo(self.config("other"), "other", to, "both")


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    archive = tmp_path / "archive"
    archive.mkdir()
    write_log(archive / "bin.000001", statements(200, start=FIRST_EVENT))
    made = Commands(tmp_path, archive)
    made.all["start"]()
    yield made
    stop(made.config(), "")


def together(*commands: Command) -> list[Exception | None]:
    """Run them at once; what each raised. Errors of ours are answers; the watchdog ends the process on a deadlock."""
    outcomes: list[Exception | None] = [None] * len(commands)
    gate = threading.Barrier(len(commands))

    def run(number: int) -> None:
        gate.wait()
        try:
            commands[number]()
        except Exception as error:  # noqa: BLE001 - shown by the caller
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(commands))]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + WATCHDOG_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback(all_threads=True)
        pytest.fail("deadlock: a command did not end")
    return outcomes


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_pair_of_commands_comes_to_an_end(commands: Commands) -> None:
    pairs = list(itertools.combinations_with_replacement(commands.all.items(), 2))
    random.Random(9452).shuffle(pairs)
    for (one, first), (two, second) in pairs:
        for name, outcome in zip((one, two), together(first, second), strict=True):
            assert outcome is None or isinstance(outcome, RplError), (one, two, name, outcome)
        if "stop" in (one, two):
            together(commands.all["start"])
    assert log_status(commands.config).row["CHANNELS"]["channels"][0]["channel_name"] == ""


COLLECTOR = """
import sys, time; from pathlib import Path
from rplctl.command.log_status import log_status; from rplctl.config import load_config
from rplctl.errors import LockBusy
ended = time.monotonic() + float(sys.argv[2])
while time.monotonic() < ended:
    try:
        print(log_status(lambda name: load_config(Path(sys.argv[1]), name)).held_s, flush=True)
    except LockBusy:  # a start or stop that takes longer than a collection waits
        print("busy", flush=True)
    time.sleep(0.02)
"""


def collector(datadir: Path, seconds: float, output: Path) -> subprocess.Popen[bytes]:
    """A process that collects all the time and writes for how long each one kept receivers and appliers out."""
    command = [sys.executable, "-c", COLLECTOR, str(datadir), str(seconds)]
    with output.open("wb") as file:
        return subprocess.Popen(command, stdout=file)


@pytest.mark.torture
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", ["file", "table"])
def test_collections_against_everything_for_five_minutes(mariadb: MariadbServer, tmp_path: Path, layout: str) -> None:
    """Two collectors, load, appliers and every command: no deadlock, held 50 ms at most in 99 of 100."""
    with replica_of(mariadb, tmp_path, layout, f"torture_{layout}") as ours:
        datadir = ours.datadir

        def config(name: str = "") -> Config:
            return load_config(datadir, name)

        ours.run("start")
        ended = time.monotonic() + TORTURE_S
        number = itertools.count()

        def administer() -> None:
            verbs: list[Command] = [
                lambda: flush_relay_logs(config(), ""),
                lambda: purge_relay_logs(config(), ""),
                lambda: show_status(config(), ""),
                lambda: (lock_detached(config(), INSTANCE, 5), unlock(config(), INSTANCE)),
                lambda: (lock_detached(config(), TABLES, 20), unlock(config(), TABLES)),
                lambda: backup(config, tmp_path / f"backup{next(number)}"),
                lambda: change_master(config("x"), "x", MasterChanges(master_host="nowhere", master_user="u")),
                lambda: reset(config("x"), "x", everything=True),
                lambda: (stop(config(), ""), start(config(), "", StartRequest())),
            ]
            chance = random.Random(1)
            while time.monotonic() < ended:
                try:
                    chance.choices(verbs, [9] * 8 + [1])[0]()
                except RplError:
                    pass

        errors: list[Exception] = []

        def noted(work: Command) -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001 - shown below
                errors.append(error)

        with Load(mariadb, f"torture_{layout}") as load:
            outputs = [tmp_path / f"held{number}" for number in range(2)]
            collectors = [collector(datadir, TORTURE_S, output) for output in outputs]
            thread = threading.Thread(target=noted, args=(administer,), daemon=True)
            thread.start()
            thread.join(TORTURE_S + 4 * WATCHDOG_S)
            if thread.is_alive():
                faulthandler.dump_traceback(all_threads=True)
                pytest.fail("deadlock")
            assert [process.wait(WATCHDOG_S) for process in collectors] == [0, 0]
            lines = [line for output in outputs for line in output.read_text().split()]
        assert [traceback.format_exception(error) for error in errors] == []
        held = sorted(float(line) for line in lines if line != "busy")
        report = f"{len(held)} collections, {load.count} transactions: p50 {held[len(held) // 2] * 1e3:.1f} ms, "
        report += f"p99 {held[len(held) * 99 // 100] * 1e3:.1f} ms, longest {held[-1] * 1e3:.1f} ms, "
        report += f"{lines.count('busy')} refused"
        sys.stderr.write(f"{report}\n")
        ours.run("stop", "--channel", "")
        ours.run("start", "--channel", "", "--until-synced", "--max-time", "200")
        assert held[len(held) * 99 // 100] <= HOLD_P99_S, report
        assert Channel("", datadir).master_info_path.exists() == (layout == "file")
