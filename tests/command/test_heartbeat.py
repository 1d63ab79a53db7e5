"""Against a live MariaDB: the true lag without any right, with a heartbeat, and logs that the source purges soon."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from rplctl.applier.heartbeat import unix_time
from rplctl.command.heartbeat import HeartbeatLag
from tests.cli.program import Program
from tests.kit.private_server import PASSWORD, USER
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer


@pytest.mark.long("tests/stories/test_transfer.py has the lag of a transaction in transfer.")
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.mariadb
def test_the_true_lag_is_told_and_a_purge_foreseen(mariadb: MariadbServer, tmp_path: Path) -> None:
    replica = Replica(tmp_path, spark=False)
    try:
        mariadb.sql("CREATE DATABASE IF NOT EXISTS beat; SET GLOBAL binlog_expire_logs_seconds=86400")
        name, offset = mariadb.master_status()
        replica.run("init")
        replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(offset))
        replica.run("start")
        mariadb.sql("CREATE TABLE beat.t (id INT PRIMARY KEY); INSERT INTO beat.t VALUES (1)")
        replica.wait_synced(mariadb)
        (row,) = json.loads(replica.run("heartbeat", "--json").stdout)
        assert (row["True_Lag"], row["True_Lag_From"]) == (0.0, "source") and row["Applied"] == row["Source_End"]
        assert list(row) == list(HeartbeatLag.__dataclass_fields__)
        assert abs(row["Clock_Skew"]) < 1 and 0 <= row["Clock_Skew_Error"] < 1, "the same machine"

        refused = replica.run("heartbeat", "--update", "--run-time", "1", expect=None)
        assert refused.returncode and "run: rplctl heartbeat --update --create-table" in refused.stderr
        replica.run("heartbeat", "--update", "--create-table", "--run-time", "0")
        ((moment, server, file),) = mariadb.sql("SELECT ts, server_id, file FROM heartbeat.heartbeat")
        assert abs(unix_time(str(moment), is_utc=True) - time.time()) < 60 and file == mariadb.master_status()[0]
        wait_until(lambda: replica.status()["True_Lag_From"] == "heartbeat", 40)
        first = replica.status()["True_Lag"]
        wait_until(lambda: replica.status()["True_Lag"] >= first + 1, 20)  # nobody writes it any more
        samples = {row["Name"]: row for row in json.loads(replica.run("metrics", "--json").stdout)}
        now, stored = (samples[f"mysql_heartbeat_{what}_timestamp_seconds"] for what in ("now", "stored"))
        assert stored["Labels"] == {"server_id": str(server)} and 1 <= now["Value"] - stored["Value"] < 120
        assert abs(stored["Value"] - unix_time(str(moment), is_utc=True)) < 0.001

        wait_until(lambda: replica.status()["Clock_Skew"] is not None, 20)
        wait_until(lambda: _said(replica)["source_keeps_s"] == 86400, 20)
        replica.run("stop")
        assert 86000 < replica.status()["Source_Purge_In"] <= 86400, "known without asking anybody"
        mariadb.sql("FLUSH BINARY LOGS")
        assert "source_purges" not in replica.run("check", "--online", expect=2).stdout
        for hours, code in ((21, "source_purges_soon"), (23.5, "source_purges_now")):
            said = _said(replica) | {"read_timestamp": time.time() - hours * 3600}
            replica.channel.status_path("receiver").write_text(json.dumps(said))
            for words in (["check"], ["check", "--online"]):
                found = replica.run(*words, expect=2).stdout
                assert found.count(f" {code}: ") == 1 and "the source keeps its logs for 24 h" in found, found
    finally:
        replica.close()
        mariadb.sql("SET GLOBAL binlog_expire_logs_seconds=DEFAULT; DROP DATABASE IF EXISTS heartbeat")


@pytest.mark.torture
@pytest.mark.spark
@pytest.mark.skipif(
    not shutil.which("pt-heartbeat"), reason="pt-heartbeat is not installed: apt-get install percona-toolkit"
)
def test_a_real_pt_heartbeat_is_read_and_reads_ours(mariadb: MariadbServer, tmp_path: Path) -> None:
    replica = Replica(tmp_path, spark=False)
    at = f"h={mariadb.host},P={mariadb.port},u={USER},p={PASSWORD}"
    pt = ["pt-heartbeat", "--utc", "-D", "heartbeat", at]
    try:
        mariadb.sql("CREATE OR REPLACE DATABASE heartbeat")
        replica.run("init")
        name, offset = mariadb.master_status()
        replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(offset))
        replica.run("start")
        with subprocess.Popen([*pt, "--update", "--create-table", "--run-time", "20", "--interval", "0.5"]) as writer:
            wait_until(lambda: replica.status()["True_Lag_From"] == "heartbeat", 40)
            time.sleep(2)
            assert replica.status()["True_Lag"] < 3
            (row,) = json.loads(replica.run("heartbeat", "--json").stdout)
            assert row["True_Lag_From"] == "heartbeat" and row["Server_Id"] == mariadb.sql("SELECT @@server_id")[0][0]
            writer.terminate()
        time.sleep(3)
        assert replica.status()["True_Lag"] > 2
        server = str(mariadb.sql("SELECT @@server_id")[0][0])
        replica.run("heartbeat", "--update", "--run-time", "0")
        said = subprocess.run(
            [*pt, "--check", "--master-server-id", server], capture_output=True, text=True, check=True
        )
        assert 0 <= float(said.stdout) < 3, said
    finally:
        replica.close()
        mariadb.sql("DROP DATABASE IF EXISTS heartbeat")


def _said(replica: Replica) -> dict[str, float]:
    said: dict[str, float] = json.loads(replica.channel.status_path("receiver").read_text())
    return said


def test_what_does_not_go_together_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "instance", capsys)
    assert program("change-master", "--master-binlog-dir", str(tmp_path)).code == 0
    for words in (["--update", "--monitor"], ["--create-table"], ["--interval", "x"]):
        assert program("heartbeat", *words).code == 2, words
    done = program("heartbeat")
    assert done.code == 2 and "reads a folder of binary logs, which has no clock" in done.err
    assert program("heartbeat", "--update").code == 2


@pytest.mark.parametrize("text", ["2026-11-24T03:00:00.500000", "2026-11-24 03:00:00.5"])
def test_times_are_read_as_pt_heartbeat_writes_them(text: str) -> None:
    assert unix_time(text, is_utc=True) == 1795489200.5
