"""With spark = always, tasks of Spark decode every row: of a backlog, of a trickle, and after the kill of a task.

With spark = auto, they decode large batches.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from deltalake import DeltaTable

from tests.applier.test_killed_parts import JAVA, children_of, tasks_of
from tests.kit.private_server import free_port
from tests.kit.replica import Replica, run_here, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]
BACKLOG, TRICKLE = 3000, 20


@pytest.fixture
def replica(tmp_path: Path, mariadb: MariadbServer) -> Iterator[Replica]:
    mariadb.sql("DROP DATABASE IF EXISTS spark; CREATE DATABASE spark")
    replica = Replica(tmp_path)
    yield replica
    replica.close()


def by_whom(status: dict[str, Any]) -> tuple[int, int, int]:
    return status["Row_Changes_Applied"], status["Rows_By_Spark"], status["Rows_By_Driver"]


def counted_by_spark(replica: Replica) -> tuple[int, ...]:
    """Rows, ranges and bytes by the accumulators, and by the answers, from the log after the end of the job."""
    replica.run("stop")
    counts = r"(\d+) rows in (\d+) ranges of (\d+) bytes"
    pattern = f"tasks counted {counts}; the driver has verified {counts}"
    return tuple(map(int, re.findall(pattern, replica.logs())[-1]))


def tasks(replica: Replica) -> list[int]:
    """Processes that take ranges."""
    applier = replica.pid("applier")
    assert applier is not None
    return tasks_of(applier)


def test_tasks_of_one_job_decode_all_rows_of_a_backlog_and_of_a_trickle(
    replica: Replica, mariadb: MariadbServer
) -> None:
    replica.run("init")
    log_name, position = mariadb.master_status()
    replica.change_master(mariadb, "--master-log-file", log_name, "--master-log-pos", str(position))
    mariadb.sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, note VARCHAR(60))", "spark")
    mariadb.sql(f"INSERT INTO t (n, note) SELECT seq, REPEAT('x', seq % 60) FROM seq_1_to_{BACKLOG}", "spark")
    replica.run("start")
    replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (BACKLOG, BACKLOG, 0))
    status = replica.status()
    assert status["Spark_Workers"] == len(tasks(replica)) == os.cpu_count()
    assert status["Spark_Job"] == "rplctl pool of channel ''"
    assert status["Jobs_Without_Spark"] == 0
    for number in range(TRICKLE):
        mariadb.sql(f"UPDATE t SET n = -{number} WHERE id = {number + 1}", "spark")
        if number == TRICKLE // 2:
            os.kill(tasks(replica)[0], signal.SIGKILL)
        replica.wait_synced(mariadb)
    before, rows, deadline = tasks(replica), BACKLOG + TRICKLE, time.monotonic() + 240
    replica.run("crash-test", "--arm", "crash_task_with_range=kill")
    while not set(before) - set(tasks(replica)):  # the workers read the order now and then
        rows += 1
        assert time.monotonic() < deadline, "no worker was killed with its range"
        mariadb.sql(f"UPDATE t SET note = 'extra {rows}' WHERE id = 1", "spark")
        replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (rows, rows, 0))
    assert replica.query("SELECT COUNT(*), SUM(n < 0) FROM spark__t") == [(BACKLOG, TRICKLE - 1)]
    assert replica.status()["Last_Error"] == ""
    (java,) = children_of(replica.pid("applier") or 0, JAVA)
    os.kill(java, signal.SIGKILL)
    wait_until(lambda: f"(pid {java}) was killed by signal 9" in replica.status()["Last_Error"])
    wait_until(lambda: replica.pid("applier") is None)


def test_with_auto_the_applier_decodes_small_batches_and_spark_large_ones(
    replica: Replica, mariadb: MariadbServer
) -> None:
    replica.run("init", "--spark", "auto")
    log_name, position = mariadb.master_status()
    replica.change_master(mariadb, "--master-log-file", log_name, "--master-log-pos", str(position))
    mariadb.sql(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT); INSERT INTO t (note) VALUES ('a')", "spark"
    )
    replica.run("start")
    replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (1, 0, 1))
    assert not children_of(replica.pid("applier") or 0, JAVA)
    large = f"INSERT INTO t (note) SELECT REPEAT('x', 2000) FROM seq_1_to_{BACKLOG}"  # 6 MB, and one batch
    mariadb.sql(large, "spark")
    wait_until(lambda: replica.status()["Spark_Workers"])  # Spark starts beside the first large batch
    mariadb.sql(large, "spark")
    replica.wait_synced(mariadb)
    rows = 1 + 2 * BACKLOG
    wait_until(lambda: by_whom(replica.status()) == (rows, BACKLOG, 1 + BACKLOG))
    assert replica.query("SELECT COUNT(*), SUM(LENGTH(note)) FROM spark__t") == [(rows, 2000 * (rows - 1) + 1)]


def connected(applier: int) -> int:
    """Count the sockets of the applier's pool: the one that listens, and one for each worker that it serves."""
    return len(re.findall(rf"/proc/{applier}/fd/\d+/pool.sock", Path("/proc/net/unix").read_text()))


@pytest.mark.long(
    "tests/applier/spark/test_pool.py::test_a_task_that_freezes_loses_its_range_to_another stays in make test."
)
def test_what_a_frozen_worker_answers_late_is_not_used(replica: Replica, mariadb: MariadbServer) -> None:
    """All workers are stopped for longer than a task may do nothing. The second time, the applier is killed, too."""
    replica.run("init")
    log_name, position = mariadb.master_status()
    replica.change_master(mariadb, "--master-log-file", log_name, "--master-log-pos", str(position))
    mariadb.sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT)", "spark")
    replica.run("start")
    rows = 0
    for is_killed in (False, True):
        replica.wait_synced(mariadb)
        applier, frozen = replica.pid("applier") or 0, tasks(replica)
        wait_until(lambda: connected(applier) == len(frozen) + 1)  # noqa: B023 - a task that was frozen connects again
        for task in frozen:
            os.kill(task, signal.SIGSTOP)
        mariadb.sql(f"INSERT INTO t (note) SELECT REPEAT('x', 1000) FROM seq_1_to_{BACKLOG}", "spark")  # a spool file
        rows += BACKLOG
        if is_killed:
            wait_until(lambda: connected(applier) == len(frozen) + 1)  # noqa: B023
            replica.kill("applier")
            replica.run("start", "--applier")
            replica.wait_synced(mariadb)
        else:
            wait_until(lambda: connected(applier) == 1)  # noqa: B023
        for task in frozen:
            with suppress(ProcessLookupError):  # a killed applier's: the kernel ends a stopped process without a parent
                os.kill(task, signal.SIGCONT)
        if is_killed:
            wait_until(lambda: not any(Path("/proc", str(task)).exists() for task in frozen))  # noqa: B023
    replica.wait_synced(mariadb)
    assert replica.query("SELECT COUNT(*), SUM(LENGTH(note)) FROM spark__t") == [(rows, 1000 * rows)]
    status = replica.status()
    assert (status["Last_Error"], status["Rows_By_Driver"]) == ("", 0)
    wait_until(lambda: not list(replica.channel.spool_folder.glob("*")))


@pytest.mark.long(
    "tests/command/test_clone.py::test_a_living_source_is_copied_and_followed_strictly stays in make test."
)
def test_tasks_decode_all_rows_of_a_clone_and_of_what_follows_it(replica: Replica, mariadb: MariadbServer) -> None:
    """Rows of a parent whose foreign keys cascade are applied in order."""
    mariadb.sql(
        "CREATE TABLE parent (id INT PRIMARY KEY); INSERT INTO parent VALUES (1), (2), (3);"
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);"
        "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3), (4, 3);"
        "CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(9, 2), note TEXT); CREATE TABLE bare (n INT);"
        f"INSERT INTO t SELECT seq, seq / 7, REPEAT('x', seq % 60) FROM seq_1_to_{BACKLOG};"
        "INSERT INTO bare SELECT seq % 10 FROM seq_1_to_100",
        "spark",
    )
    replica.run("init")
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "spark"\n{options.read_text()}')
    replica.change_master(mariadb)
    replica.run("clone", "--databases", "spark", "--yes")
    wait_until(lambda: "done" in replica.run("show-clone").stdout and replica.status()["Clone_Tables"] == 0)
    copied = BACKLOG + 100 + 3 + 4
    wait_until(lambda: by_whom(replica.status()) == (0, copied, 0))
    mariadb.sql("UPDATE t SET n = -1 WHERE id <= 3", "spark")
    replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (3, copied + 3, 0))
    mariadb.sql("DELETE FROM parent WHERE id > 1; INSERT INTO parent VALUES (4)", "spark")
    replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (6, copied + 6, 0))
    assert replica.query("SELECT id FROM spark__child") == [(1,)]
    assert replica.query("SELECT COUNT(*), SUM(n = '-1.00') FROM spark__t") == [(BACKLOG, 3)]
    assert replica.query("SELECT COUNT(*), SUM(n) FROM spark__bare") == [(100, 450)]
    rows, ranges, size, *verified = counted_by_spark(replica)
    assert [rows, ranges, size] == verified
    assert rows == copied + 6 + 3  # the parent's rows were decoded as net changes first, which does not fit


def test_tasks_decode_and_write_all_rows_of_a_lake(replica: Replica, mariadb: MariadbServer) -> None:
    log_name, position = mariadb.master_status()
    lake = replica.datadir.parent / "lake"
    replica.run("init", "--target", f"delta+file://{lake}")
    replica.change_master(mariadb, "--master-log-file", log_name, "--master-log-pos", str(position))
    mariadb.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "spark")
    mariadb.sql("INSERT INTO t SELECT seq, seq FROM seq_1_to_500; UPDATE t SET n = -1 WHERE id <= 20", "spark")
    replica.run("start")
    replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (520, 520, 0))
    ops = Counter(DeltaTable(str(lake / "spark" / "t")).to_pyarrow_table()["op"].to_pylist())
    assert (ops["insert"], ops["update"]) == (500, 20)
    rows, ranges, size, *verified = counted_by_spark(replica)
    assert [rows, ranges, size] == verified and rows == 520


def shown_by_ui(port: int) -> list[dict[str, Any]]:
    """Return the jobs that Spark's UI lists."""
    applications = f"http://127.0.0.1:{port}/api/v1/applications"
    with urlopen(applications) as answer:
        (application,) = json.load(answer)
    with urlopen(f"{applications}/{application['id']}/jobs") as answer:
        jobs: list[dict[str, Any]] = json.load(answer)
    return jobs


@pytest.mark.long(
    "Few operators set it; test_tasks_decode_and_write_all_rows_of_a_lake compares accumulators in make test."
)
def test_the_event_log_and_the_ui_of_spark_show_the_job_with_its_tasks(
    replica: Replica, mariadb: MariadbServer
) -> None:
    log_name, position = mariadb.master_status()
    folder, port = replica.datadir.parent / "events", free_port()
    folder.mkdir()
    log = {"enabled": "true", "dir": folder.as_uri(), "compress": "false", "rolling.enabled": "false"}
    conf = [f"spark.eventLog.{name}={value}" for name, value in log.items()]
    replica.run("init", "--spark-conf", ",".join([*conf, "spark.ui.enabled=true", f"spark.ui.port={port}"]))
    replica.change_master(mariadb, "--master-log-file", log_name, "--master-log-pos", str(position))
    mariadb.sql("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t SELECT seq FROM seq_1_to_500", "spark")
    replica.run("start")
    replica.wait_synced(mariadb)
    wait_until(lambda: by_whom(replica.status()) == (500, 500, 0))
    name, workers = replica.status()["Spark_Job"], replica.status()["Spark_Workers"]
    wait_until(lambda: [job["numActiveTasks"] for job in shown_by_ui(port)] == [workers])
    (job,) = shown_by_ui(port)
    assert (job["jobGroup"], job["status"], job["numActiveTasks"]) == (name, "RUNNING", workers)
    rows, ranges, size, *verified = counted_by_spark(replica)
    assert [rows, ranges, size] == verified and rows == 500
    (file,) = folder.glob("*.inprogress")  # Spark was killed after it had written the file
    events = [json.loads(line) for line in file.read_text().splitlines()]
    (begun,) = (event for event in events if event["Event"] == "SparkListenerJobStart")
    assert begun["Properties"]["spark.jobGroup.id"] == begun["Properties"]["spark.job.description"] == name
    ended = [event["Task End Reason"]["Reason"] for event in events if event["Event"] == "SparkListenerTaskEnd"]
    assert ended == ["Success"] * workers
    assert [event["Job Result"] for event in events if event["Event"] == "SparkListenerJobEnd"] == [
        {"Result": "JobSucceeded"}
    ]


@pytest.mark.long("test_tasks_of_one_job_decode_all_rows_of_a_backlog_and_of_a_trickle counts the same rows.")
def test_the_demo_leaves_no_row_to_the_driver(tmp_path: Path) -> None:
    folder = str(tmp_path / "demo")
    assert run_here(["demo", folder]).returncode == 0
    (status,) = json.loads(run_here(["--datadir", folder, "show-status", "--json"]).stdout)
    assert status["Row_Changes_Applied"] == status["Rows_By_Spark"] > 1000
