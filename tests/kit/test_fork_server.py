"""A forked program is as one that was begun by itself, as far as tests look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl.applier.report import DELAYING
from rplctl.channel import lock_holder
from rplctl.demo import BINLOG_FOLDER
from tests.kit import fork_server
from tests.kit.replica import Replica, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.long("It compares the fork server of these tests with the program; the kit changes rarely.")
@pytest.mark.parametrize("arguments", [["--version"], ["show-status", "--no-such"], ["show-status"]])
def test_says_and_ends_as_the_program_does(tmp_path: Path, arguments: list[str]) -> None:
    command = ["--datadir", str(tmp_path / "none"), *arguments]
    real = subprocess.run([sys.executable, "-m", "rplctl", *command], capture_output=True, text=True, check=False)
    forked = fork_server.run(command, "", dict(os.environ), 60)
    assert (forked.returncode, forked.stdout, forked.stderr) == (real.returncode, real.stdout, real.stderr)


@pytest.mark.long("It compares the fork server of these tests with the program; the kit changes rarely.")
def test_threads_that_start_began_are_seen_signalled_and_ended_as_processes_of_their_own(replica: Replica) -> None:
    replica.run("init")
    replica.run("change-master", "--master-binlog-dir", os.fspath(BINLOG_FOLDER), "--master-delay", "2000000000")
    replica.run("start")
    for role in ("receiver", "applier"):
        pid = lock_holder(replica.channel, role)
        assert pid and os.getsid(pid) == pid
        shown = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        assert shown[:3] == [os.fsencode(sys.executable), b"-m", f"rplctl.{role}".encode()]
        opened = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
        assert str(replica.channel.log_path(role)) in opened
        assert "/dev/null" in opened or role == "applier"  # an applier reads its options there
    wait_until(lambda: replica.status()["Slave_SQL_Running_State"].startswith(DELAYING[:8]))
    pid = lock_holder(replica.channel, "applier")
    assert pid
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not replica.pid("applier"))
    assert replica.status()["Slave_SQL_Running"] == "No" and replica.status()["Last_SQL_Errno"] == 0
    replica.run("stop")


def test_what_acts_while_python_starts_is_not_forked() -> None:
    differing = set(os.environ.items()) ^ set(fork_server.os_environment().items())
    assert fork_server.takes(dict(os.environ)), sorted(name for name, _ in differing)
    assert fork_server.takes({**os.environ, "RPLCTL_FAILPOINTS": "crash_commit_after=kill"})
    assert fork_server.takes({**os.environ, "PYSPARK_PYTHON": "python3", "SPARK_BUFFER_SIZE": "65536"})
    assert not fork_server.takes({**os.environ, "NUMBA_DISABLE_JIT": "1"})
    assert not fork_server.takes({**os.environ, "PYTHONPATH": "/elsewhere"})
