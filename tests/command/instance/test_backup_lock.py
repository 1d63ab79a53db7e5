"""The locks of a backup: the worklog's sequence, what waits and what goes on, holders that end (WL#9452 F-2.3, F-4)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import administer
from rplctl.command.init import init
from rplctl.command.instance.backup_lock import lock_detached, run_under_lock
from rplctl.command.lock_instance import INSTANCE
from rplctl.command.lock_tables import TABLES
from rplctl.command.log_status import log_status
from rplctl.command.reset import reset
from rplctl.command.skip import skip
from rplctl.command.stop import stop
from rplctl.command.unlock_instance import unlock_instance
from rplctl.command.unlock_tables import unlock_tables
from rplctl.config import Config
from rplctl.errors import LockBusy, NotConfigured, RplError
from rplctl.locks import InstanceLock, channel_map, read_lock
from tests.kit.replica import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(tmp_path)
    change_master(config, "", MasterChanges(master_host="db1", master_user="u"))
    return config


def is_locked(config: Config) -> bool:
    lock = InstanceLock(config.datadir)
    try:
        return not lock.acquire_verb(0)
    finally:
        lock.close()


def is_read_locked(config: Config) -> bool:
    lock = read_lock(config.datadir)
    with lock.shared(0) as is_free:
        pass
    lock.close()
    return not is_free


def test_the_worklogs_sequence_runs(config: Config) -> None:
    """LOCK INSTANCE FOR BACKUP; FLUSH TABLES WITH READ LOCK; collect; UNLOCK TABLES; UNLOCK INSTANCE. And without."""
    row = log_status(lambda _: config).row
    lock_detached(config, INSTANCE, 60)
    assert (is_locked(config), is_read_locked(config)) == (True, False)
    lock_detached(config, TABLES, 60)
    assert (is_locked(config), is_read_locked(config)) == (True, True)
    assert log_status(lambda _: config).row == row
    assert unlock_tables(config).pid
    assert (is_locked(config), is_read_locked(config)) == (True, False)
    assert unlock_instance(config).pid
    assert (is_locked(config), is_read_locked(config)) == (False, False)


@pytest.mark.slow
def test_a_locked_instance_refuses_commands_that_change_files_and_lets_stop_through(config: Config) -> None:
    before = (config.datadir / "master.info").read_bytes()
    lock_detached(config, INSTANCE, 60)
    try:
        for command in (
            lambda: change_master(config, "", MasterChanges(master_host="db2")),
            lambda: reset(config, "", everything=True),
            lambda: skip(config, "", 1),
            lambda: init(config.datadir, {"max_batch_bytes": 1 << 20}),
        ):
            with pytest.raises(LockBusy) as raised:
                command()
            assert (raised.value.errno, raised.value.exit_code) == (1205, 75)
        assert (config.datadir / "master.info").read_bytes() == before
        assert [note.errno for note in stop(config, "").notes] == [3084]
    finally:
        unlock_instance(config)
    assert change_master(config, "", MasterChanges(master_host="db2")).master_info.host == "db2"


def test_the_lock_is_not_given_while_a_command_changes_files(config: Config) -> None:
    with administer(config, ""), pytest.raises(LockBusy) as raised:
        lock_detached(config, INSTANCE, 0.1)
    assert raised.value.errno == 1205
    lock_detached(config, INSTANCE, 60)
    unlock_instance(config)


def test_commands_on_channels_wait_for_the_collection(config: Config) -> None:
    """F-2.3: create, remove, START, STOP, CHANGE, RESET, FLUSH RELAY LOGS share the channel map."""
    collector = channel_map(config.datadir)
    assert collector.acquire_exclusive(1)
    ended: list[str] = []

    def run(name: str, command: object) -> None:
        assert callable(command)
        command()
        ended.append(name)

    commands = {
        "change": lambda: change_master(config, "new", MasterChanges(master_host="db3")),
        "stop": lambda: stop(config, ""),
    }
    threads = [threading.Thread(target=run, args=item) for item in commands.items()]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    assert ended == [] and not Channel("new", config.datadir).master_info_path.exists()
    collector.close()
    for thread in threads:
        thread.join(180)
    assert sorted(ended) == ["change", "stop"]


def test_a_second_holder_is_refused_by_name_and_a_killed_one_frees_the_lock(config: Config) -> None:
    held = lock_detached(config, INSTANCE, 60)
    with pytest.raises(LockBusy, match=f"process {held.pid} already"):
        lock_detached(config, INSTANCE, 0)
    os.kill(held.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{held.pid}").exists(), 60)
    assert not is_locked(config)
    assert unlock_instance(config).pid is None


def test_a_holder_gives_the_lock_back_in_time(config: Config) -> None:
    begun = time.monotonic()
    lock_detached(config, TABLES, 60, timeout_s=0.3)
    assert is_read_locked(config) or time.monotonic() - begun >= 0.3
    deadline = time.monotonic() + 180
    while is_read_locked(config):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_command_runs_under_the_lock_and_gives_its_exit_code(config: Config) -> None:
    code = (
        "import sys; from pathlib import Path; from rplctl.locks import InstanceLock\n"
        "sys.exit(9 if not InstanceLock(Path(sys.argv[1])).acquire_verb(0) else 1)"
    )
    assert run_under_lock(config, INSTANCE, 60, [sys.executable, "-c", code, str(config.datadir)]) == 9
    assert not is_locked(config)
    with pytest.raises(RplError, match="no-such-program"):
        run_under_lock(config, INSTANCE, 60, ["/no-such-program"])


def test_sigterm_goes_on_to_the_command(config: Config, tmp_path: Path) -> None:
    words = ["lock-tables", "--", "sh", "-c", "echo begun; exec sleep 600"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rplctl", "--datadir", str(tmp_path), *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    assert is_read_locked(config)
    process.terminate()
    assert process.wait(180) == 128 + signal.SIGTERM
    process.stdout.close()
    assert not is_read_locked(config)


def test_as_typed(config: Config, tmp_path: Path) -> None:
    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "rplctl", "--datadir", str(tmp_path), *words], capture_output=True, text=True
        )
        return done.returncode, done.stdout

    code, out = run("lock-instance", "--timeout", "60", "--json")
    (row,) = json.loads(out)
    assert code == 0 and row["Lock"] == "instance" and is_locked(config)
    assert run("unlock-instance", "--json") == (0, f'[{{"Lock": "instance", "Pid": {row["Pid"]}}}]\n')
    assert run("unlock-instance") == (0, "was not locked\n")
    assert run("lock-instance", "--timeout", "5", "--", "true")[0] == 2


def test_no_instance_no_lock(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured):
        lock_detached(Config(tmp_path / "nowhere"), INSTANCE, 0)
    assert not (tmp_path / "nowhere").exists()
