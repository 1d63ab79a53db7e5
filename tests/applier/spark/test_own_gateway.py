"""Java is started as Spark's own launcher would start it, where the operator has configured nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from rplctl.applier.spark.java import find_java
from rplctl.applier.spark.own_gateway import (
    JAVA_OPTIONS,
    JavaEnded,
    class_path,
    connect,
    direct_command,
    is_configured,
    kill_started,
    start_java,
)
from tests.kit.replica import wait_until

LAUNCHER = "org.apache.spark.launcher.Main"
SUBMIT = "org.apache.spark.deploy.SparkSubmit"
NEEDLESS = {  # of MLlib, of Kerberos, of Hive; and the first is a warning at each start from Java 24 on
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dderby.connection.requireAuthentication=false",
}


def test_the_command_is_the_one_that_the_launcher_of_spark_works_out(tmp_path: Path) -> None:
    home = str(Path(pyspark.__file__).parent)
    java = find_java("", tmp_path / "java")
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_SCALA_VERSION": "2.13", "JAVA_HOME": str(java.runtime)}
    command = [str(java.runtime / "bin" / "java"), "-cp", f"{home}/jars/*", LAUNCHER, SUBMIT, "pyspark-shell"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=True).stdout
    words = said.split("\0")
    launchers = words[words.index("-cp") : words.index(SUBMIT)]
    _, *ours, _ = direct_command(java, "")
    jars, theirs = {*ours[1].split(":")}, {str(jar) for jar in Path(home, "jars").glob("*.jar")}
    assert [ours[0], f"{home}/conf"] == [launchers[0], ours[1].partition(":")[0]]
    assert f"{home}/jars/*" in launchers[1].split(":") and jars - {f"{home}/conf"} < theirs
    assert set(ours[2:]) == set(launchers[2:]) - NEEDLESS


def test_the_class_path_of_a_direct_start_has_spark_and_neither_sql_nor_hive() -> None:
    names = {Path(place).name.partition("_")[0] for place in class_path().split(":")}
    assert {"spark-core", "spark-network-common", "spark-kvstore", "spark-unsafe"} <= names
    assert not any(name.startswith(("spark-sql", "spark-hive", "hive-", "spark-kubernetes")) for name in names)


def test_what_the_operator_has_configured_is_left_to_the_script_of_spark() -> None:
    assert not is_configured({"PATH": "/bin", "SPARK_LOCAL_IP": "127.0.0.1"})
    assert is_configured({"SPARK_CONF_DIR": "/etc/spark"}) and is_configured({"HADOOP_CONF_DIR": "/etc/hadoop"})


@pytest.mark.slow
@pytest.mark.spark
def test_a_java_that_cannot_write_its_port_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its main thread ends with the error of the disk, and its gateway lives on: nobody would ever get the port."""
    monkeypatch.setattr("rplctl.applier.spark.own_gateway.LONGEST_START_S", 5.0)
    java = find_java("", tmp_path / "java")
    started = start_java(java, {JAVA_OPTIONS: ""}, tmp_path / "removed" / "spark", is_direct=True)
    try:
        with pytest.raises(JavaEnded, match="did not write .* within 5 s"):
            connect(started)
        assert started.process.poll() is None, "it lives: the caller kills it"
    finally:
        kill_started()
        started.process.wait()
        started.process.stdin.close()  # type: ignore[union-attr]


ENDS_AT_ONCE = """
import os, sys, threading
from pathlib import Path
from rplctl.applier.spark.java import find_java
from rplctl.applier.spark.own_gateway import JAVA_OPTIONS, start_java
threading.Thread(target=threading.Event().wait, daemon=True).start()  # as the one that keeps an applier's log small
folder = Path(sys.argv[1])
started = start_java(find_java("", folder / "java"), {JAVA_OPTIONS: ""}, folder / "removed" / "spark", is_direct=True)
print(started.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_java_that_cannot_write_its_port_ends_with_a_killed_applier(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", ENDS_AT_ONCE, tmp_path], capture_output=True, text=True, timeout=280)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until(lambda: not Path("/proc", done.stdout.strip()).exists())
