"""Threads of a live channel suspended and killed for real: what check, doctor and show-status say, and that the repair
which they name is one. The table of all situations is test_situations.py.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import asdict
from typing import Any

import pytest

from rplctl.command.check.verb import CheckLimits, Scope, Verdict, check
from rplctl.command.doctor import doctor
from rplctl.command.show_status import show_status
from rplctl.config import load_config
from rplctl.status import SILENT_S
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [
    pytest.mark.long(
        "tests/command/check/test_situations.py::test_check_doctor_and_show_status_say_what_is holds the reports; "
        "freezing takes minutes."
    ),
    pytest.mark.slow,
]
SCHEMA = "DROP DATABASE IF EXISTS frozen; CREATE DATABASE frozen; CREATE TABLE frozen.t (a INT PRIMARY KEY)"


def judged(replica: Replica, scope: Scope = Scope.LOCAL) -> Verdict:
    return check(load_config(replica.datadir), "", CheckLimits(warning_s=60, critical_s=300), scope)


def codes(verdict: Verdict) -> list[str]:
    return [finding.code for finding in verdict.findings if finding.level]


def status(replica: Replica) -> dict[str, Any]:
    return asdict(show_status(load_config(replica.datadir), ""))


def suspended(replica: Replica, role: str) -> int:
    pid = replica.pid(role)
    assert pid
    os.kill(pid, signal.SIGSTOP)
    return pid


def until_silent(replica: Replica, code: str) -> Verdict:
    wait_until(lambda: code in codes(judged(replica)), pause_s=0.3)
    return judged(replica)


def test_what_is_frozen_or_killed_is_never_said_to_be_in_order(replica: Replica, source: MariadbServer) -> None:
    replica.set_up(source)
    replica.run("start")
    source.sql("INSERT INTO frozen.t VALUES (1)")
    replica.wait_synced(source)
    wait_until(lambda: judged(replica, Scope.ONLINE).level == 0)

    pid = suspended(replica, "applier")
    source.sql("INSERT INTO frozen.t VALUES (2)")
    began = time.time()
    repair = next(f.repair for f in until_silent(replica, "applier_silent").findings if f.code == "applier_silent")
    assert repair == f"kill -CONT {pid}" and time.time() - began < SILENT_S + 60
    first = status(replica)["Seconds_Behind_Master"]
    assert first >= SILENT_S - 1 and "nothing reported since" in status(replica)["Slave_SQL_Running_State"]
    wait_until(lambda: status(replica)["Seconds_Behind_Master"] > first)
    assert ("FAIL", repair) in [(f.Result, f.Hint) for f in doctor(load_config(replica.datadir), [""])]
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not codes(judged(replica)))

    pid = suspended(replica, "receiver")
    source.sql("INSERT INTO frozen.t VALUES (3)")
    end = "{}:{}".format(*source.master_status())
    online = judged(replica, Scope.ONLINE)  # before it is silent for long: only the source knows that there is more
    assert online.level == 2 and {"receiver_stuck", "receiver_silent"} & set(codes(online))
    assert end in " ".join(finding.text for finding in online.findings) or "receiver_silent" in codes(online)
    until_silent(replica, "receiver_silent")
    assert (status(replica)["Slave_IO_Running"], status(replica)["Seconds_Behind_Master"]) == ("Connecting", None)
    os.kill(pid, signal.SIGCONT)
    replica.wait_synced(source)
    wait_until(lambda: judged(replica, Scope.ONLINE).level == 0)

    before = int(time.time())
    for role, errno, name in (("applier", 1105, "SQL"), ("receiver", 1105, "IO")):
        replica.kill(role)
        assert f"{role}_killed" in codes(judged(replica))
        seen = status(replica)
        assert seen[f"Last_{name}_Errno"] == errno and "was killed at about" in seen[f"Last_{name}_Error"]
        moment = time.mktime(time.strptime(seen[f"Last_{name}_Error_Timestamp"], "%y%m%d %H:%M:%S"))
        assert before - SILENT_S <= moment <= time.time()
    replica.run("start")
    source.sql("INSERT INTO frozen.t VALUES (4)")
    replica.wait_synced(source)
    wait_until(lambda: not codes(judged(replica)))
    assert replica.query("SELECT count(*) FROM frozen__t") == [(4,)]
    replica.run("stop")
    assert codes(judged(replica)) == ["receiver_stopped", "applier_stopped"]  # by the operator: nobody was killed
    assert status(replica)["Last_Error"] == status(replica)["Last_IO_Error"] == ""
