"""Against a live MariaDB: --until-synced from the command line, doctor, and a password that shows up nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.command.doctor import OK, WARN, doctor
from rplctl.config import Config
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

CANARY = "C4nary-9f2e"


def rplctl(datadir: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    kept = {"XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")), "RPLCTL_SPARK": "auto"}
    environment = {**os.environ, **kept, "HOME": str(datadir), "RPLCTL_PASSWORD": "wrong-but-last"}
    command = [sys.executable, "-m", "rplctl", "--datadir", str(datadir), *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, env=environment, timeout=280)


def everything_in_proc(needle: bytes) -> list[str]:
    """Processes whose arguments or environment hold the needle."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            for name in ("cmdline", "environ"):
                try:
                    if needle in (process / name).read_bytes():
                        found.append(f"{process.name}/{name}")
                except OSError:
                    pass
    return found


@pytest.mark.long("tests/applier/test_strangers.py looks for what authenticates.")
@pytest.mark.spark
@pytest.mark.slow
def test_a_channel_syncs_from_cron_and_its_password_is_nowhere_in_clear(mariadb: MariadbServer, tmp_path: Path) -> None:
    mariadb.sql(
        f"CREATE USER cli@'%' IDENTIFIED BY '{CANARY}'; GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO cli@'%';"
        "CREATE DATABASE cli_sync"
    )
    name, offset = mariadb.master_status()
    mariadb.sql(
        "CREATE TABLE cli_sync.t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO cli_sync.t VALUES (1,'a'),(2,'b')"
    )
    outputs = []
    done = rplctl(
        tmp_path, "change-master", "--master-host", "127.0.0.1", "--master-port", str(mariadb.port),
        "--master-user", "cli", "--master-log-file", name, "--master-log-pos", str(offset), "--password-stdin",
        stdin=CANARY + "\n",
    )  # fmt: skip
    outputs.append(done)
    assert done.returncode == 0, done.stderr
    done = rplctl(tmp_path, "start", "--until-synced", "--max-time", "240")
    outputs.append(done)
    assert done.returncode == 0, done.stderr
    import sqlite3

    with sqlite3.connect(tmp_path / "target.db") as target:
        assert target.execute('SELECT * FROM "cli_sync__t" ORDER BY id').fetchall() == [(1, "a"), (2, "b")]
    target.close()
    outputs.append(rplctl(tmp_path, "start", "--receiver"))
    time.sleep(1)
    assert everything_in_proc(CANARY.encode()) == []
    outputs += [rplctl(tmp_path, *line.split()) for line in ("show-status -v --json", "doctor", "stop", "check")]
    assert not any(CANARY in done.stdout + done.stderr for done in outputs)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


def test_doctor_judges_a_live_source(mariadb: MariadbServer, tmp_path: Path) -> None:
    mariadb.sql("CREATE USER IF NOT EXISTS clidoc@'%' IDENTIFIED BY 'p'; GRANT REPLICATION SLAVE ON *.* TO clidoc@'%'")
    rplctl(
        tmp_path, "change-master", "--master-host", "127.0.0.1", "--master-port", str(mariadb.port), "--master-user",
        "clidoc", "--password-stdin", stdin="p\n",
    )  # fmt: skip
    done = rplctl(tmp_path, "doctor")
    assert "channel '' source\tOK\t127.0.0.1" in done.stdout, done.stdout
    done = rplctl(tmp_path, "start", "--until-synced")
    assert done.returncode == 6 and "GRANT REPLICATION CLIENT" in done.stderr


@pytest.mark.long("test_doctor_judges_a_live_source asks the same connections.")
def test_doctor_compares_the_system_time_zones_of_source_and_target(
    mariadb: MariadbServer,
    mariadb_factory: Callable[..., MariadbServer],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A statement of a session in the zone SYSTEM is executed in the source's."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    target = mariadb_factory()
    monkeypatch.delenv("TZ")
    rplctl(
        tmp_path, "change-master", "--master-host", "127.0.0.1", "--master-port", str(mariadb.port), "--master-user",
        "rpl", "--password-stdin", stdin="rpl\n",
    )  # fmt: skip

    def compared(server: MariadbServer) -> tuple[str, str]:
        found = {finding.Check: finding for finding in doctor(Config(tmp_path, target=server.url()), [""])}
        zones = found["channel '' source time zone"]
        return zones.Result, zones.Detail

    assert compared(mariadb) == (OK, "SYSTEM is the same time zone on source and target")
    assert compared(target) == (OK, "SYSTEM differs: statements that depend on it are executed in the zone '+00:00'")
    berlin = Config(tmp_path, target=mariadb.url(), source_time_zone="Europe/Berlin")
    zones = next(finding for finding in doctor(berlin, [""]) if finding.Check == "channel '' source time zone")
    assert zones.Result == WARN and "mariadb-tzinfo-to-sql" in zones.Hint


@pytest.mark.long(
    "tests/receiver/test_network.py::test_same_gtids_of_other_transactions_are_never_read_on_from stays in make test."
)
def test_check_and_doctor_say_that_a_source_read_by_gtid_has_begun_its_log_anew(
    mariadb_factory: Callable[..., MariadbServer], replica: Replica
) -> None:
    source = mariadb_factory()
    source.sql("CREATE DATABASE anew; CREATE TABLE anew.t (a INT); INSERT INTO anew.t VALUES (1)")
    replica.set_up(source, change=("--master-use-gtid", "slave_pos"))
    replica.run("start", "--until-synced")
    assert "the source lost events" not in replica.run("check", "--online", expect=None).stdout
    source.sql("RESET MASTER; INSERT INTO anew.t VALUES (2)")
    assert "the source lost events" in replica.run("check", "--online", expect=None).stdout
    assert "the source lost events" in replica.run("doctor", expect=None).stdout
