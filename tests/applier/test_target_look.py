"""An applier that has nothing to apply does not say that all is well of a target that it has not seen lately."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing

import pytest

from rplctl.command.check.verb import CheckLimits, Scope, check
from rplctl.command.process.thread_report import threads_of
from rplctl.config import load_config
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long(
        "tests/test_status.py::test_the_pulse_of_a_thread_that_waits_ends_with_its_own_word holds the silence; to "
        "lose a place takes a server ten seconds."
    ),
    pytest.mark.slow,
    pytest.mark.mariadb,
]
SCHEMA = "DROP DATABASE IF EXISTS look; CREATE DATABASE look; CREATE TABLE look.t (a INT PRIMARY KEY)"


def codes(replica: Replica) -> set[str]:
    verdict = check(load_config(replica.datadir), "", CheckLimits(warning_s=60, critical_s=300), Scope.LOCAL)
    return {finding.code for finding in verdict.findings if finding.level}


def test_an_idle_applier_sees_a_frozen_target_and_the_loss_of_its_place(
    replica: Replica, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    server = mariadb_factory("--skip-log-bin")
    replica.set_up(source, *replica.into(server), "--heartbeat-table", "")
    replica.run("start")
    replica.wait_synced(source)
    wait_until(lambda: not codes(replica) and replica.status()["Seconds_Behind_Master"] == 0)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: replica.status()["Seconds_Behind_Master"] is None, timeout_s=25)  # and not after HUNG_S
        assert threads_of(replica.channel).applier.silent_since is not None
    finally:
        os.kill(server.pid, signal.SIGCONT)
    wait_until(lambda: not codes(replica) and replica.status()["Seconds_Behind_Master"] == 0)

    owner = server.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE ID = IS_USED_LOCK('rplctl:')")[0][0]
    with closing(server.connect()) as other, other.cursor() as cursor:
        cursor.execute(f"KILL {owner}")
        cursor.execute("SELECT GET_LOCK('rplctl:', 60)")  # as another host's applier does
        assert cursor.fetchone() == (1,)
        wait_until(lambda: replica.pid("applier") is None)
    status = replica.status()
    assert status["Slave_SQL_Running"] == "No" and "another applier" in status["Last_SQL_Error"]
