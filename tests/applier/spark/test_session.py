"""Spark starts where `pip install` is all there is, listens on nothing but loopback, and keeps its files private."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from pathlib import Path
from pickle import PicklingError

import pytest
from pyspark.serializers import CloudPickleSerializer

from rplctl.applier.spark.session import keep_quiet, spark_settings
from rplctl.config import Config

JOB = """
import json, os, sys
from pathlib import Path
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.session import open_session
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import Catalog

folder = Path(sys.argv[1])
context = open_session(Config(datadir=folder), "", Channel("", folder).run_folder)
result = context.parallelize(range(8), 4).map(lambda value: value * value).collect()
for _ in "ab":  # of two channels
    pipeline = Pipeline(lambda: context)
    pipeline.begin()
jobs = len(context.statusTracker().getJobIdsForGroup())

sent = []
context.broadcast = lambda value, send=context.broadcast: sent.append(len(value.tables)) or send(value)
def table(number, *columns):
    found = tuple(Column(name=name, type="int") for name in columns)
    return {("d", f"t{number}"): TableModel(database="d", name=f"t{number}", columns=found)}
many = Catalog({name: model for number in range(400) for name, model in table(number, "a").items()})
altered = many.changed({**table(7, "a", "b"), ("d", "t8"): None, **table(400, "c")}, {})
tasks = []
more = altered.changed(table(9, "z"), {})
for catalog in (many, altered, more, many, more.changed(table(10, "z"), {})):
    found = pipeline.run([0, 1], catalog, lambda _, shown: dict(shown.tables))
    tasks.append(found == [dict(catalog.tables)] * 2)

# /proc/net lists the sockets of the whole machine: keep those of the JVM, by inode
def command_of(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # ended meanwhile
        return b""
jvm = next(int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal() and p.name != str(os.getpid())
           and b"org.apache.spark" in command_of(p) and str(folder).encode() in command_of(p))
def link(path):
    try:
        return os.readlink(path)
    except FileNotFoundError:  # closed meanwhile
        return ""
inodes = {link(f)[8:-1] for f in Path(f"/proc/{jvm}/fd").iterdir() if link(f).startswith("socket:[")}
tables = [Path(f"/proc/{jvm}/net/{name}") for name in ("tcp", "tcp6")]
addresses = {line.split()[1].rpartition(":")[0] for table in tables if table.exists()
             for line in table.read_text().splitlines()[1:]
             if line.split()[3] == "0A" and line.split()[9] in inodes}
spark_folder = folder / "run/@/spark"
print(json.dumps({"result": result, "jobs": jobs, "sent": sent, "tasks": tasks, "addresses": sorted(addresses),
                  "mode": oct(spark_folder.stat().st_mode & 0o777), "java": os.environ["JAVA_HOME"],
                  "files": sorted(p.name[:6] for p in spark_folder.iterdir()),
                  "heap": context._jvm.java.lang.Runtime.getRuntime().totalMemory() >> 20,
                  "testing": "pyspark.testing" in sys.modules,
                  "cleans": context._jsc.sc().cleaner().isDefined(),
                  "counters": [str(path) for path in Path("/tmp").glob(f"hsperfdata_*/{jvm}")],
                  "unix": any(p.is_socket() for p in spark_folder.iterdir())}))
context.stop()
"""
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def run_job(folder: Path, environment: dict[str, str]) -> dict[str, object]:
    command = [sys.executable, "-c", JOB, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.long("A machine without Java is rare where tests run; other tests start Spark.")
@pytest.mark.spark
def test_a_job_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    bin_folder = tmp_path / "bin"  # what Spark's start script needs, and no java
    bin_folder.mkdir()
    for program in ("bash", "dirname", "ps", "uname"):
        (bin_folder / program).symlink_to(f"/bin/{program}")
    instance = tmp_path / ("of a long name, " * 8)
    found = run_job(instance, {"PATH": str(bin_folder)})
    assert found["result"] == [0, 1, 4, 9, 16, 25, 36, 49]
    assert found["jobs"] == 2, "channels that share a Spark begin with one job of it"
    assert found["tasks"] == [True] * 5, "a task sees the catalog of its job"
    assert found["sent"] == [400, 400], "where a hundredth of the tables has changed, all are not sent again"
    assert found["java"] == str(instance / "run/@/java")
    heap = found["heap"]
    assert isinstance(heap, int) and heap < 128, "MB, whatever the machine has: it fills before its garbage is let go"
    assert found["mode"] == "0o700"
    assert not found["testing"], "PySpark's tests, which load pandas where it is installed, are loaded"
    assert not found["cleans"], "Spark's cleaner wakes ten times a second, and one job leaves nothing to clean up"
    assert not found["counters"], "the JVM keeps counters in /tmp, and wakes 20 times a second for them"
    assert found["unix"], "workers are not spoken to by TCP, though the folder's name is too long for a socket's"
    files = found["files"]
    assert isinstance(files, list)
    assert {"blockm", "log4j2", "spark-", "liblz4"} <= set(files), "the JVM's temporary files are here too"
    addresses = found["addresses"]
    assert isinstance(addresses, list)
    assert addresses, "the JVM listens somewhere"
    assert set(addresses) <= LOOPBACK


def test_settings_hold_no_secret_and_no_target(tmp_path: Path) -> None:
    config = Config(datadir=tmp_path, target="mysql+pymysql://rpl:pa55@db/shop")
    text = json.dumps(spark_settings(config, tmp_path, "crm"))
    assert "pa55" not in text
    assert "pymysql" not in text
    assert "rplctl applier 'crm'" in text


def test_java_keeps_no_counters_in_a_folder_of_all_users(tmp_path: Path) -> None:
    settings = spark_settings(Config(datadir=tmp_path), tmp_path, "crm")
    assert "-XX:-UsePerfData" in settings["spark.driver.extraJavaOptions"].split()


def test_sparks_cleaner_runs_only_where_each_batch_is_a_job(tmp_path: Path) -> None:
    def cleans(**options: str) -> bool:
        config = Config(datadir=tmp_path, insecure_cluster=True, **options)  # type: ignore[arg-type]
        return spark_settings(config, tmp_path, "crm").get("spark.cleaner.referenceTracking") != "false"

    assert not cleans()
    assert cleans(spark="auto") and cleans(spark_master="spark://boss:7077")


def test_no_task_runs_twice_at_once_and_one_that_died_runs_again(tmp_path: Path) -> None:
    settings = spark_settings(Config(datadir=tmp_path), tmp_path, "crm")
    assert settings["spark.speculation"] == "false"
    assert int(settings["spark.task.maxFailures"]) > 1 and settings["spark.master"].endswith(",4]")


def test_a_cluster_master_is_passed_on_and_not_tied_to_loopback(tmp_path: Path) -> None:
    config = Config(datadir=tmp_path, spark_master="spark://boss:7077", insecure_cluster=True)
    settings = spark_settings(config, tmp_path, "")
    assert settings["spark.master"] == "spark://boss:7077"
    assert "spark.driver.host" not in settings
    local = spark_settings(Config(datadir=tmp_path), tmp_path, "")
    assert local["spark.master"].startswith("local[")
    assert (local["spark.driver.host"], local["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")


def test_importing_the_module_does_not_import_pyspark() -> None:
    code = "import sys, rplctl.applier.spark; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_process_that_begins_many_contexts_keeps_one_filter() -> None:
    keep_quiet()
    before = len(logging.getLogger().filters)
    keep_quiet()
    assert len(logging.getLogger().filters) == before


def test_what_cannot_be_pickled_is_raised_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """STOP ends the JVM while a job is being sent to it: no traceback in the operator's log."""
    keep_quiet()
    with pytest.raises(PicklingError):
        CloudPickleSerializer().dumps(threading.Lock())  # type: ignore[no-untyped-call]
    assert capsys.readouterr().err == ""
