"""Drivers and tools that are not written in Python ask the front as they ask a replica."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.user import add_user
from rplctl.config import load_config
from rplctl.demo import BINLOG_FOLDER
from rplctl.front.server import MysqlServer
from tests.cli.program import Program
from tests.command.test_serve import self_signed
from tests.front.test_front import PASSWORD, ask, datadir, served
from tests.kit.client_programs import (
    DATA,
    MARIADB_JAVA,
    MONITORING_PLUGINS,
    MYSQLD_EXPORTER,
    PERCONA_TOOLKIT,
    node_modules,
    program,
    unpacked,
)
from tests.kit.private_server import free_port, release_port
from tests.kit.programs import required_program
from tests.kit.replica import wait_until

__all__ = ["datadir"]
TIMEOUT_S = 120
STATUS = [60, "127.0.0.1", 1, None]  # columns, host and port of the source, seconds behind


def output_of(command: list[str], environment: dict[str, str] | None = None) -> tuple[int, str]:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """The key and the certificate of a server; ca.pem beside it has the certificate alone."""
    path = tmp_path / "server.pem"
    path.write_bytes(self_signed())
    text = path.read_text()
    (tmp_path / "ca.pem").write_text(text[text.index("-----BEGIN CERTIFICATE") :])
    return path


@pytest.mark.long(
    "Another driver; tests/front/test_front.py::test_prepared_statements_take_and_give_typed_values stays."
)
@pytest.mark.parametrize("user", ["monitor", "old"])
@pytest.mark.parametrize("with_tls", [False, True])
def test_mysql2_of_node_asks_and_prepares(datadir: Path, certificate: Path, user: str, with_tls: bool) -> None:
    node, modules = required_program("node", "nodejs"), node_modules()
    environment = {**os.environ, "NODE_PATH": str(modules), "NODE_NO_WARNINGS": "1", "TZ": "UTC"}
    ca = [str(certificate.with_name("ca.pem"))] if with_tls else []
    with served(datadir, tls_cert=certificate if with_tls else None) as server:

        def answers(password: str) -> dict[str, Any]:
            command = [node, str(DATA / "mysql2.js"), str(server.port), user, password, *ca]
            return dict(json.loads(line) for line in output_of(command, environment)[1].splitlines())

        assert answers("wrong") == {"connect": {"errno": 1045, "sqlState": "28000"}}
        assert answers(PASSWORD) == {
            "connect": "ok",
            "status": STATUS,
            "prepared status": STATUS,
            "parameters": [{"n": 5, "t": "a'\\bx", "nothing": None, "d": "2026-11-30 09:05:06"}],
            "twice": [[{"port": 1}], []],
            "error": {"errno": 1064, "sqlState": "42000"},
            "prepared error": {"errno": 1146, "sqlState": "42S02"},
            "change user": f"{user}@127.0.0.1",
            "pool": [1, 2, 3, 4],
        }


@pytest.mark.long(
    "Another driver; tests/front/test_front.py::test_prepared_statements_take_and_give_typed_values stays."
)
@pytest.mark.parametrize("options", ["", "useServerPrepStmts=true", "useServerPrepStmts=true&useSsl=true"])
def test_the_jdbc_driver_of_mariadb_asks_and_prepares(datadir: Path, certificate: Path, options: str) -> None:
    required_program("javac", "default-jdk-headless")  # java compiles the program itself, with the same compiler
    java = required_program("java", "default-jdk-headless")
    driver = unpacked(MARIADB_JAVA) / "usr/share/java/mariadb-java-client.jar"
    with_tls = "useSsl" in options
    options += f"&serverSslCert={certificate.with_name('ca.pem')}" if with_tls else "&allowPublicKeyRetrieval=true"
    with served(datadir, tls_cert=certificate if with_tls else None) as server:
        url = f"jdbc:mariadb://127.0.0.1:{server.port}/?{options}"
        command = [java, "-cp", str(driver), str(DATA / "Front.java"), url, "monitor"]
        assert output_of([*command, PASSWORD])[1].splitlines() == [
            "connect ok, valid true",
            "status 60 127.0.0.1 1 null",
            "prepared 60 127.0.0.1 1 null",
            "parameters 5 a'\\bx null",
            "parameters 6 a'\\bx null",
            "catalogs 3",
            "tables 2",
            "error 1064 42000",
        ]
        assert output_of([*command, "wrong"])[1].splitlines() == ["failed 1045 28000"]


@contextmanager
def exporter(folder: Path, server: MysqlServer, *collectors: str) -> Iterator[str]:
    """The address of mysqld_exporter's metrics."""
    command, environment = program(MYSQLD_EXPORTER, "usr/bin/prometheus-mysqld-exporter")
    options = folder / "my.cnf"
    options.write_text(f"[client]\nuser=monitor\npassword={PASSWORD}\nhost=127.0.0.1\nport={server.port}\n")
    port = free_port()
    address = f"127.0.0.1:{port}"
    arguments = [f"--config.my-cnf={options}", f"--web.listen-address={address}", *collectors]
    with (folder / "exporter.log").open("wb") as log:
        process = subprocess.Popen([*command, *arguments], env=environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: is_open(port), TIMEOUT_S)
        yield f"http://{address}/metrics"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(TIMEOUT_S)
        release_port(port)


def is_open(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


def series(text: str) -> dict[str, float]:
    """The metrics of SHOW SLAVE STATUS by their names, without labels."""
    found = re.findall(r"^(mysql_slave_status_\w+)\{.*\} (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


@pytest.mark.long("An exporter of others; tests/front/test_tables.py::test_statements_of_tools_are_answered stays.")
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_mysqld_exporter_has_the_series_that_metrics_prints(
    datadir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], flavor: str
) -> None:
    collectors = ("--collect.slave_status", "--collect.slave_hosts", "--collect.info_schema.processlist",
                  "--collect.perf_schema.replication_applier_status_by_worker")  # fmt: skip
    ours = Program(datadir, capsys)("metrics")
    assert ours.code == 0
    with served(datadir, flavor=flavor) as server, exporter(tmp_path, server, *collectors) as address:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            text = answer.read().decode()
    assert "\nmysql_up 1\n" in text
    log = (tmp_path / "exporter.log").read_text()
    assert "level=error" not in log, log
    theirs, own = series(text), series(ours.out)
    assert {name: own.get(name) for name in theirs if name in own} == {
        name: value for name, value in theirs.items() if name in own
    }
    of_mysql = {"mysql_slave_status_auto_position", "mysql_slave_status_master_retry_count"}
    assert own.keys() - theirs.keys() == (of_mysql if flavor == "mariadb" else set())


@pytest.fixture
def running(tmp_path: Path, capsys: pytest.CaptureFixture[str], children_forked: None) -> Iterator[Path]:
    """An instance whose channel reads a folder of logs and applies them."""
    made = Program(tmp_path / "running", capsys)
    assert made("init", "--spark", "auto").code == 0
    assert made("change-master", "--master-binlog-dir", os.fspath(BINLOG_FOLDER)).code == 0
    add_user(load_config(made.datadir, ""), "monitor", "reader", PASSWORD, native=True)
    add_user(load_config(made.datadir, ""), "dba", "admin", PASSWORD, native=True)
    assert made("start").code == 0
    yield made.datadir
    assert made("stop").code == 0


def threads(server: MysqlServer) -> tuple[str, str]:
    names, rows = ask(server, "dba", "SHOW REPLICA STATUS")
    row = dict(zip(names, rows[0], strict=True))
    prefix = "Slave" if server.front.is_mariadb else "Replica"
    return row[f"{prefix}_IO_Running"], row[f"{prefix}_SQL_Running"]


def seconds_behind(server: MysqlServer) -> object:
    names, rows = ask(server, "dba", "SHOW REPLICA STATUS")
    return next(value for name, value in zip(names, rows[0], strict=True) if name.startswith("Seconds_Behind"))


@pytest.mark.long("A plugin of others; tests/front/test_front.py::test_values_are_those_of_show_status stays.")
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_check_mysql_warns_of_a_channel_that_does_not_run(datadir: Path, running: Path, flavor: str) -> None:
    command, environment = program(MONITORING_PLUGINS, "usr/lib/nagios/plugins/check_mysql")

    def checked(server: MysqlServer, *options: str) -> tuple[int, str]:
        login = ["-H", "127.0.0.1", "-P", str(server.port), "-u", "monitor", "-p", PASSWORD]
        return output_of([*command, *login, *options], environment)

    with served(datadir, flavor=flavor) as server:
        code, text = checked(server, "-S")
        assert (code, text[:30]) == (2, "Slave IO: No Slave SQL: No Sec")
        code, text = checked(server)
        assert code == 0 and text.startswith("Uptime: "), text
        code, text = checked(server, "-p", "wrong")
        assert code == 2 and "Access denied" in text
    with served(running, flavor=flavor) as server:
        # check_mysql crashes where Seconds_Behind is NULL, as it is until the first connection
        wait_until(lambda: threads(server) == ("Yes", "Yes") and seconds_behind(server) is not None)
        code, text = checked(server, "-S")
        assert code == 0 and "Slave IO: Yes Slave SQL: Yes Seconds Behind Master: " in text, text


@pytest.mark.long("A plugin of others; tests/front/test_tables.py::test_statements_of_tools_are_answered stays.")
def test_check_mysql_query_reads_a_table(datadir: Path) -> None:
    command, environment = program(MONITORING_PLUGINS, "usr/lib/nagios/plugins/check_mysql_query")
    sql = "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration"
    with served(datadir) as server:
        login = ["-H", "127.0.0.1", "-P", str(server.port), "-u", "monitor", "-p", PASSWORD]
        code, text = output_of([*command, *login, "-q", sql, "-w", "1:1"], environment)
    assert code == 0 and "returned 1.000000" in text, text


@pytest.mark.long("Tools of others; tests/front/test_tables.py::test_statements_of_tools_are_answered stays.")
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_tools_of_percona_find_and_delay_a_replica(running: Path, flavor: str) -> None:
    with served(running, flavor=flavor) as server:
        wait_until(lambda: threads(server) == ("Yes", "Yes") and seconds_behind(server) in (0, "0"))
        place = f"h=127.0.0.1,P={server.port},u=dba,p={PASSWORD}"

        def run(tool: str, *options: str) -> tuple[int, str]:
            command, environment = program(PERCONA_TOOLKIT, f"usr/bin/{tool}", perl=True)
            return output_of([*command, *options], environment)

        code, text = run("pt-slave-find", place)
        assert code == 0 and "Is a slave, has 0 slaves connected, is read_only" in text, text
        assert f"Version         {server.front.version}" in text and "0 seconds behind, running, no errors" in text, (
            text
        )
        code, text = run("pt-slave-delay", "--run-time", "3", "--interval", "1", "--delay", "1", place)
        assert code == 0 and "slave running" in text, text
        code, text = run("pt-heartbeat", "--check", "--master-server-id", "1", "--database", "heartbeat", place)
        assert code != 0 and re.search(r"heartbeat' (doesn't exist|.*Unknown)|Unknown database 'heartbeat'", text), text
