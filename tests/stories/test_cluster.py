"""On a standalone cluster whose workers do not see our files: logs, a live load, lost workers, a lost master."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rplctl
from rplctl.applier.spark.java import find_java
from tests.kit.load import Load
from tests.kit.private_server import HOST, PASSWORD, USER, free_port
from tests.kit.recorded_state import differences, unpacked_log
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.spark_query import query
from tests.kit.standalone_cluster import StandaloneCluster, can_hide_folders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.mariadb,
    pytest.mark.skipif(not can_hide_folders(), reason="this user may not make mount namespaces"),
]
SCHEMA = """
DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, v TEXT);
CREATE TABLE counter (n INT); INSERT INTO counter VALUES (1);
CREATE TABLE big (id INT PRIMARY KEY, v LONGTEXT);
"""
RECORDED = "ma1011-torture-row"
WRITE = (
    "INSERT INTO t (n, v) SELECT n, REPEAT('x', 3000) FROM counter; UPDATE counter SET n = n + 1",
    "UPDATE t SET v = CONCAT('seen ', id) WHERE id = (SELECT n - 5 FROM counter); DELETE FROM t WHERE id % 10 = 3",
)


@pytest.fixture(scope="module")
def one_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    made = StandaloneCluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def cluster(one_cluster: StandaloneCluster, replica: Replica) -> Iterator[StandaloneCluster]:
    """The module's, without a worker."""
    one_cluster.start_master()
    yield one_cluster
    replica.close()
    one_cluster.kill_workers()


def state(replica: Replica) -> str:
    return str(replica.status()["Slave_SQL_Running_State"])


def assert_secret_is_kept(cluster: StandaloneCluster, replica: Replica) -> None:
    """In no argument and no environment of a process of the applier's."""
    session = str(os.getsid(replica.pid("applier") or 0))
    found = subprocess.run(["pgrep", "-s", session], capture_output=True, text=True).stdout.split()
    read = 0
    for pid in found:
        for name in ("cmdline", "environ"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a short one, ended meanwhile
                assert cluster.secret_file.read_bytes() not in Path(f"/proc/{pid}/{name}").read_bytes()
                read += 1
    assert read > 2  # the applier and its JVM at least


@pytest.mark.long("A standalone cluster is rare; tests/applier/spark/test_carried.py holds what its tasks are sent.")
def test_workers_that_see_no_file_of_ours_apply_a_log_and_a_live_load_though_all_are_lost(
    cluster: StandaloneCluster, source: MariadbServer, replica: Replica
) -> None:
    replica.set_up(source)
    source.sql("INSERT INTO big SELECT seq, REPEAT(MD5(seq), 4000) FROM seq_1_to_100", "shop")  # 13 MB
    workers = cluster.start_workers(2, [replica.datadir])
    assert not os.listdir(f"/proc/{workers[0].pid}/root{replica.datadir}")
    replica.run("start", *cluster.start_options)
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")
    assert_secret_is_kept(cluster, replica)
    load = Load(source, WRITE, pause_s=0.02, database="shop")
    wait_until(lambda: replica.query("SELECT n > 5 FROM shop__counter") == [(1,)])
    cluster.kill(workers[0])
    (seen,) = replica.query("SELECT n FROM shop__counter")[0]
    wait_until(lambda: replica.query(f"SELECT n > {seen + 10} FROM shop__counter") == [(1,)])
    cluster.kill(workers[1])
    wait_until(lambda: state(replica) == "Waiting for executors: 0 of 1")
    told = json.loads(replica.run("check", "--json", expect=None).stdout)
    assert "Waiting for executors" in json.dumps(told)
    cluster.start_worker([replica.datadir])
    wait_until(lambda: "Waiting for executors" not in state(replica))
    load.finish()
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")
    replica.run("stop")


@pytest.mark.torture
def test_workers_that_see_no_file_of_ours_apply_a_recorded_log_though_one_is_lost_in_the_middle(
    cluster: StandaloneCluster, mariadb_factory: Callable[..., MariadbServer], replica: Replica, tmp_path: Path
) -> None:
    target, archive, conf = mariadb_factory(), tmp_path / "archive", tmp_path / "conf"
    archive.mkdir()
    unpacked_log(RECORDED, archive)
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.executor.memory 480m\n")
    replica.run("init", *replica.into(target))
    replica.run("change-master", "--master-binlog-dir", str(archive))
    workers = cluster.start_workers(2, [replica.datadir, archive])
    words = list(cluster.start_options)
    at = next(number for number, word in enumerate(words) if word.startswith("spark.executor.memory="))
    del words[at - 1 : at + 1]
    replica.run("start", *words, environment={"SPARK_CONF_DIR": str(conf)})
    wait_until(lambda: replica.status()["Exec_Master_Log_Pos"] > 10_000, timeout_s=120)
    arguments = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in cluster.executors(workers[0])]
    assert any(b"-Xmx480M" in words for words in arguments), "spark-defaults.conf of SPARK_CONF_DIR"
    assert replica.status()["Exec_Master_Log_Pos"] < (archive / "mysql-bin.000001").stat().st_size
    cluster.kill(workers[0])
    replica.run("wait", "--state", "synced", "--timeout", "300")
    assert differences(RECORDED, target) == []
    replica.run("stop")


@pytest.mark.torture
def test_workers_that_see_the_archive_read_it_and_no_bytes_of_it_travel(
    cluster: StandaloneCluster, source: MariadbServer, replica: Replica, tmp_path: Path
) -> None:
    source.sql("INSERT INTO big SELECT seq, REPEAT(MD5(seq), 4000) FROM seq_1_to_100", "shop")
    archive = tmp_path / "archive"
    archive.mkdir()
    for log in source.binlog_files:
        shutil.copy(log, archive)
    replica.run("init")
    replica.run("change-master", "--master-binlog-dir", str(archive))
    cluster.start_worker([replica.datadir])
    replica.run("start", "--until-synced", *cluster.start_options)
    assert_same_tables(source, replica, "shop")
    assert f"executors read {archive}" in replica.logs() and "the relay log's bytes are sent" not in replica.logs()


def password_file(folder: Path) -> Path:
    file = folder / "password"
    file.touch(0o600)
    file.write_text(PASSWORD)
    return file


@pytest.mark.torture
def test_workers_that_see_the_logs_answer_queries_on_them(
    cluster: StandaloneCluster, source: MariadbServer, tmp_path: Path
) -> None:
    source.sql("INSERT INTO big SELECT seq, REPEAT(MD5(seq), 4000) FROM seq_1_to_100", "shop")
    cluster.start_worker()
    code = f"""
log = spark.read.format("binlog").option("table", "shop.big")
live = log.option("spool", "{tmp_path}").option("password_file", "{password_file(tmp_path)}")
for changes in log.load("{source.data}"), live.load("mysql://{USER}@{HOST}:{source.port}"):
    tell([changes.where("after IS NOT NULL").count(), spark.sparkContext.master])
"""
    assert query(code, tmp_path / "query", cluster.properties) == [[100, cluster.url]] * 2


@pytest.mark.torture
def test_a_query_whose_workers_do_not_see_the_logs_is_told_what_they_have_to_see(
    cluster: StandaloneCluster, source: MariadbServer, tmp_path: Path
) -> None:
    archive, spool = tmp_path / "archive", tmp_path / "spool"
    archive.mkdir()
    spool.mkdir()
    for log in source.binlog_files:
        shutil.copy(log, archive)
    cluster.start_worker([archive, spool])
    code = f"""
log = spark.read.format("binlog").option("table", "shop.counter")
live = log.option("spool", "{spool}").option("password_file", "{password_file(tmp_path)}")
for changes in log.load("{archive}"), live.load("mysql://{USER}@{HOST}:{source.port}"):
    try:
        tell(["read", changes.count()])
    except Exception as error:
        tell(["refused", str(error)])
"""
    told = query(code, tmp_path / "query", cluster.properties)
    for (outcome, text), folder in zip(told, (archive, spool), strict=True):
        assert outcome == "refused"
        assert f"{folder}/" in text and "No such file" in text
        assert "make the logs available under this path on every executor" in text
        assert "option carry=true" in text
    sent = query(code.replace(".format(", '.option("carry", "true").format('), tmp_path / "sent", cluster.properties)
    counts = query(code, tmp_path / "here", {})
    assert sent == counts and [outcome for outcome, _ in sent] == ["read", "read"] and sent[0][1] > 0


@pytest.mark.torture
def test_a_worker_without_rplctl_is_told_as_such(
    cluster: StandaloneCluster, source: MariadbServer, replica: Replica
) -> None:
    replica.set_up(source)
    cluster.start_worker([replica.datadir, Path(rplctl.__file__).parent])
    replica.run("start", *cluster.start_options)
    wait_until(lambda: replica.status()["Last_SQL_Error"], timeout_s=120)
    told = replica.status()
    assert "an executor has no rplctl to work with" in told["Last_SQL_Error"]
    assert "man 7 rplctl-cluster" in told["Last_SQL_Hint"]
    assert replica.pid("applier") is None
    assert replica.query("SELECT name FROM sqlite_master WHERE name = 'shop__t'") == []


@pytest.mark.torture
@pytest.mark.parametrize(
    ("factory", "option"),
    [("mysql_factory", "--binlog-transaction-compression=ON"), ("mariadb_factory", "--log-bin-compress=ON")],
)
def test_compressed_transactions_and_what_a_large_one_unfolds_to_travel(
    cluster: StandaloneCluster, request: pytest.FixtureRequest, replica: Replica, monkeypatch: pytest.MonkeyPatch,
    factory: str, option: str,
) -> None:  # fmt: skip
    """MySQL's payloads, MariaDB's compressed rows and queries. 13 MB of one transaction, 4 MB of them at a time, lie in
    no relay log: what they unfold to is a file of the applier's own."""
    monkeypatch.setenv("RPLCTL_MAX_BATCH_BYTES", str(4 << 20))
    source: MariadbServer = request.getfixturevalue(factory)(option)
    source.sql(f"{SCHEMA} INSERT INTO big VALUES (1, '')")
    for power in range(9):
        source.sql(f"INSERT INTO big SELECT id + {1 << power}, '' FROM big", "shop")
    source.sql("UPDATE big SET v = REPEAT(SHA2(id, 256), 400)", "shop")
    replica.set_up(source)
    cluster.start_workers(2, [replica.datadir])
    replica.run("start", *cluster.start_options)
    replica.wait_synced(source)
    load = Load(source, WRITE, pause_s=0.02, database="shop")
    seen = replica.query("SELECT n FROM shop__counter")[0][0]
    wait_until(lambda: replica.query(f"SELECT n > {seen + 10} FROM shop__counter") == [(1,)])
    load.finish()
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")
    assert "the relay log's bytes are sent" in replica.logs()
    replica.run("stop")


@pytest.mark.torture
def test_jobs_that_travel_fit_into_the_memory_of_the_applier_and_of_an_executor(
    cluster: StandaloneCluster, mariadb_factory: Callable[..., MariadbServer], replica: Replica
) -> None:
    """600 MB behind, of which rows of few keys are changed again and again: decoded in jobs as large as they may be."""
    source, target = mariadb_factory("--max-binlog-size=1G"), mariadb_factory()
    source.sql(SCHEMA)
    source.sql("INSERT INTO big SELECT seq, REPEAT(MD5(seq), 400) FROM seq_1_to_1000", "shop")
    for round in range(24):
        source.sql(f"UPDATE big SET v = CONCAT('{round}', SUBSTR(v, 2))", "shop")
    replica.set_up(source, *replica.into(target))
    cluster.start_worker([replica.datadir])
    replica.run("start", "--receiver")
    end = source.master_status()[1]
    assert end > 600_000_000
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == end)
    replica.run("start", *cluster.start_options)
    replica.wait_synced(source)
    assert source.sql("CHECKSUM TABLE big", "shop") == target.sql("CHECKSUM TABLE big", "shop")
    assert "the relay log's bytes are sent" in replica.logs() and "memory" not in replica.logs()


@pytest.mark.torture
def test_a_master_that_is_lost_and_begun_anew_is_found_again(
    cluster: StandaloneCluster, source: MariadbServer, replica: Replica
) -> None:
    replica.set_up(source)
    worker = cluster.start_worker([replica.datadir])
    replica.run("start", *cluster.start_options)
    replica.wait_synced(source)
    assert cluster.master is not None
    cluster.kill(cluster.master)
    cluster.kill(worker)
    source.sql("INSERT INTO t (n, v) VALUES (1, 'while the cluster is away')", "shop")
    wait_until(lambda: state(replica).startswith("Waiting for executors"))
    cluster.start_master()
    cluster.start_worker([replica.datadir])
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")


@pytest.mark.torture
def test_workers_that_see_our_files_read_them(
    cluster: StandaloneCluster, source: MariadbServer, replica: Replica
) -> None:
    replica.set_up(source)
    source.sql("INSERT INTO big SELECT seq, REPEAT(MD5(seq), 4000) FROM seq_1_to_100", "shop")
    cluster.start_worker()
    replica.run("start", *cluster.start_options)
    replica.wait_synced(source)
    assert_same_tables(source, replica, "shop")


@pytest.mark.long("A cluster of workers is rare, and what it needs is read from the options.")
def test_a_cluster_without_a_secret_is_refused_before_anything_is_started(
    source: MariadbServer, replica: Replica
) -> None:
    replica.set_up(source)
    refused = replica.run("start", "--spark-master", "spark://127.0.0.1:1", expect=78)
    assert "spark.authenticate.secret=file:PATH" in refused.stderr and "--insecure-cluster" in refused.stderr
    assert replica.pid("receiver") is None
    refused = replica.run("start", "--spark-conf", "spark.master=local", expect=78)
    assert "spark.master is set by rplctl" in refused.stderr
    replica.run("start", "--spark-conf", "spark.driver.memory=100m", expect=None)
    wait_until(lambda: replica.status()["Last_SQL_Error"], timeout_s=120)
    told = replica.status()["Last_SQL_Error"] + replica.status()["Last_SQL_Hint"]
    assert "Spark did not start" in told and "spark.driver.memory" in told and "unexpectedly" not in told


@pytest.mark.torture
def test_the_commands_of_the_manual_page_make_a_cluster_that_applies(
    source: MariadbServer, replica: Replica, tmp_path: Path
) -> None:
    replica.set_up(source)
    page = (Path(__file__).parents[2] / "man/rplctl-cluster.7").read_text()
    secret, daemons, channel, options = (
        block.partition(".EE")[0].replace("\\-", "-").replace("\\\\", "\\") for block in page.split(".EX\n")[1:5]
    )
    port = str(free_port())
    assert "spark_master" in options
    real = {"/etc/rplctl": str(tmp_path), "cluster1": HOST, "7077": port, "=db2": f"={HOST}"}
    script = f"set -e\ncd {tmp_path}\n{secret}\n{daemons}\nwait"
    for shown, name in real.items():
        script, channel = script.replace(shown, name), channel.replace(shown, name)
    java = find_java("", tmp_path / "java").home
    folder = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "JAVA_HOME": str(java),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SPARK_NO_DAEMONIZE": "1",
    }
    environment |= {"SPARK_LOCAL_IP": HOST, "SPARK_WORKER_WEBUI_PORT": "0", "SPARK_MASTER_WEBUI_PORT": "0"}
    bash = ["bash", "-c", script]
    with (tmp_path / "daemons.log").open("wb") as log:
        running = subprocess.Popen(bash, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        told = subprocess.run(["bash", "-ec", channel], env={**environment, "RPLCTL_DATADIR": str(replica.datadir)},
                              capture_output=True, text=True)  # fmt: skip
        assert told.returncode == 0 and "Slave_SQL_Running_State" in told.stdout, told.stderr
        replica.wait_synced(source)
        assert_same_tables(source, replica, "shop")
        replica.run("stop")
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
