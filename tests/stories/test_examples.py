"""What README.md and rplctl(1) tell a newcomer to type is typed, in their order, with each vendor.

Only hosts, accounts and files are put in. The rows must be in the target, and what is printed must be what is promised.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.kit.examples import Example, examples
from tests.kit.postgresql_state import connect, new_database
from tests.kit.private_server import free_port
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PASSWORD = "repl-pw"
ROWS = [(1, "tea"), (2, "cake")]


def shown(page: str, section: str, first: str = "") -> list[Example]:
    """The lines of a page's section; of the block that begins with some words."""
    found = [example for example in examples() if example.page == page and section in example.section]
    blocks = {example.block for example in found if shlex.join(example.words).startswith(first)}
    return [example for example in found if not first or example.block == min(blocks)]


def type_them(lines: Sequence[Example], replica: Replica, put: Mapping[str, str] = {}) -> list[str]:
    """Each line in its turn; the verbs that were run. A copy is waited for, as its user would."""
    verbs = []
    for line in lines:
        words = [put.get(word, word) for word in line.words[1:]]
        password = ""
        if "--ask-password" in words:
            words[words.index("--ask-password")] = "--password-stdin"  # nobody types here
            password = PASSWORD
        if "--master-host" in words:
            words += ["--master-port", put["port"]]
        replica.run(*words, password=password, expect=None if words[0] == "doctor" else 0)  # 1 is a warning
        verbs.append(next(word for word in words if word != "-q"))
        if verbs[-1] == "clone" and "--dry-run" not in words:
            replica.run("wait", "--state", "synced", "--timeout", "120")
    return verbs


def prepare(source: MariadbServer, grants: str) -> dict[str, str]:
    """What is put in for the source's host."""
    account = f"CREATE USER repl@'%' IDENTIFIED BY '{PASSWORD}'; GRANT {grants} ON *.* TO repl@'%'"
    source.sql(account)  # in the logs, and passed over where the target has no accounts
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, what VARCHAR(20))")
    source.sql("INSERT INTO shop.orders VALUES (1, 'tea'), (2, 'cake')")
    return {"src": source.host, "db1": source.host, "port": str(source.port)}


def secret(folder: Path, password: str) -> str:
    path = folder / f"{password}.secret"
    path.write_text(f"{password}\n")
    path.chmod(0o600)
    return str(path)


def orders(replica: Replica) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(replica.datadir / "target.db")) as database:
        return database.execute("SELECT id, what FROM shop__orders ORDER BY id").fetchall()


@contextmanager
def instance(folder: Path) -> Iterator[Replica]:
    """Yield an instance with the defaults, as readers of the documents have it: Spark decodes every row."""
    replica = Replica(folder)
    try:
        yield replica
    finally:
        replica.close()


@pytest.mark.parametrize("vendor", ["MariaDB", pytest.param("MySQL", marks=pytest.mark.torture)])
def test_the_lines_of_the_readme_work_as_they_stand(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    mysql_factory: Callable[..., MysqlServer],
    vendor: str,
) -> None:
    source = mariadb_factory() if vendor == "MariaDB" else mysql_factory()
    client = "BINLOG MONITOR" if vendor == "MariaDB" else "REPLICATION CLIENT"
    put = prepare(source, f"SELECT, REPLICATION SLAVE, {client}") | {"/backup/today": str(tmp_path / "backup")}
    metrics = tmp_path / "rplctl.prom"
    with instance(tmp_path) as replica:
        begin = shown("README.md", "Quick start: MariaDB")
        if vendor == "MySQL":
            (own,) = shown("README.md", "Quick start: MySQL")
            begin = [own if "change-master" in line.words else line for line in begin]
        assert type_them(begin, replica, put) == ["init", "change-master", "clone", "clone"]
        assert type_them(shown("README.md", "Daily work"), replica, put) == ["show-status", "verify", "backup"]
        assert (tmp_path / "backup").is_dir() and orders(replica) == ROWS
        replica.run("stop")
        source.sql("INSERT INTO shop.orders VALUES (3, 'salt')")
        by_itself = shown("README.md", "Unattended")
        verbs = type_them(by_itself, replica, put | {"/var/lib/node_exporter/rplctl.prom": str(metrics)})
        assert verbs == ["start", "check", "verify", "metrics"]
        assert orders(replica) == [*ROWS, (3, "salt")]
        assert "mysql_slave_status_slave_sql_running" in metrics.read_text()


@pytest.mark.long("test_the_lines_of_the_readme_work_as_they_stand types most of these lines.")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_quick_start_and_the_pages_after_it_work_as_they_stand(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    mysql_factory: Callable[..., MysqlServer],
    vendor: str,
) -> None:
    """From docs/: a quick start, then what operations.md and troubleshooting.md say to type on a healthy replica."""
    source = mariadb_factory() if vendor == "mariadb" else mysql_factory()
    grants = {"mariadb": "BINLOG MONITOR, BINLOG ADMIN", "mysql": "REPLICATION CLIENT"}[vendor]
    put = prepare(source, f"SELECT, REPLICATION SLAVE, {grants}") | {"/backup/today": str(tmp_path / "backup")}
    page = f"quickstart-{vendor}.md"
    with instance(tmp_path) as replica:
        type_them(shown(page, "2. Create"), replica, put)
        assert type_them(shown(page, "3. Check"), replica, put) == ["wait", "show-status", "verify"]
        assert orders(replica) == ROWS
        if vendor == "mariadb":
            assert type_them(shown("operations.md", "Move the positions"), replica, put)[-1] == "start"
            type_them(shown("operations.md", "Back up", "rplctl backup"), replica, put)
            looks = type_them(shown("troubleshooting.md", "", "rplctl show-status --brief"), replica)
            assert looks == ["show-status", "check", "doctor", "history"]
            type_them(shown("troubleshooting.md", "applier", "rplctl clone"), replica)
            assert orders(replica) == ROWS


def test_the_readmes_copy_into_postgresql_works_as_it_stands(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], postgresql: PostgresqlServer
) -> None:
    put = prepare(mariadb_factory(), "SELECT, REPLICATION SLAVE, BINLOG MONITOR")
    url = new_database(postgresql)
    put |= {"postgresql://app@warehouse/replica": re.sub(r"(//\w+):\w+@", r"\1@", url)}
    put |= {"target.secret": secret(tmp_path, "rpl"), "repl.secret": secret(tmp_path, PASSWORD)}
    with instance(tmp_path) as replica:
        type_them(shown("README.md", "Targets"), replica, put)
        with closing(connect(url)) as target:
            assert target.execute("SELECT id, what FROM shop.orders ORDER BY id").fetchall() == ROWS


def test_the_manual_pages_dump_into_mariadb_and_its_lines_for_scripts_work(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """INITIAL COPY into a server, then EXAMPLES: replicate a server into MariaDB, cron, a script, Prometheus."""
    source, target = mariadb_factory(), mariadb_factory()
    put = prepare(source, "REPLICATION SLAVE, BINLOG MONITOR")
    page, copy = "rplctl.1", shown("rplctl.1", "INITIAL COPY", "mariadb-dump")
    for program in copy[:2]:  # each vendor's own, with the account that it has in its option file
        server = source if program.words[0] == "mariadb-dump" else target
        account = f"--no-defaults --user=rpl --password=rpl --socket={server.socket}"
        words = shlex.join(program.words).replace("'>'", ">").replace("'<'", "<").replace(" --host db2", "")
        subprocess.run(["sh", "-c", words.replace(" ", f" {account} ", 1)], cwd=tmp_path, check=True)
    found = re.search(r"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)", (tmp_path / "shop.sql").read_text())
    assert found is not None
    put |= {"binlog.000003": found[1], "1170": found[2]}
    put |= {"mariadb+pymysql://app@db2/": f"mariadb+pymysql://rpl@{target.host}:{target.port}/"}
    put |= {"target.secret": secret(tmp_path, "rpl"), "repl.secret": secret(tmp_path, PASSWORD)}
    source.sql("INSERT INTO shop.orders VALUES (3, 'salt')")
    name, position = source.master_status()
    put |= {"binlog.000003:4711": f"{name}:{position}", "FILE": name, "POS": str(position)}
    with instance(tmp_path) as replica:
        type_them(shown(page, "EXAMPLES", "rplctl init --target mariadb"), replica, put)
        type_them(shown(page, "EXAMPLES", "rplctl show-status --field"), replica, put)
        assert sorted(target.rows("shop", "orders")) == [*ROWS, (3, "salt")]
        replica.run("stop")
        type_them([line for line in copy if line.words[0] == "rplctl"], replica, put)
        replica.run("stop")
        type_them(shown(page, "EXAMPLES", "rplctl -q start"), replica)
        metrics, serve = shown(page, "EXAMPLES", "rplctl -q metrics")
        type_them([metrics], replica, {metrics.words[-1]: str(tmp_path / "rplctl.prom")})
        _ask_what_is_served(serve, replica)


def _ask_what_is_served(line: Example, replica: Replica) -> None:
    address = f"127.0.0.1:{free_port()}"
    words = [address if word == "127.0.0.1:9104" else word for word in line.words[1:]]
    command = [sys.executable, "-m", "rplctl", "--datadir", str(replica.datadir), *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as server:
        try:
            wait_until(lambda: _answers(f"http://{address}/health/live"), 60)
            with urllib.request.urlopen(f"http://{address}/status.json", timeout=30) as answer:
                assert json.load(answer)["channels"]
        finally:
            server.terminate()
            server.communicate(timeout=60)


def _answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        time.sleep(0.1)
        return False
    return True


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed (apt-get install sqlite3)")
def test_the_manual_pages_dump_with_load_schema_works(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """INITIAL COPY into another target: load-schema, the rows by its own program, then from the dump's position."""
    source = mariadb_factory()
    put = prepare(source, "REPLICATION SLAVE, BINLOG MONITOR")
    name, position = source.master_status()
    put |= {"FILE": name, "POS": str(position), "shop.sql": str(tmp_path / "shop.sql")}
    definition = source.sql("SHOW CREATE TABLE shop.orders")[0][1]
    (tmp_path / "shop.sql").write_text(f"CREATE DATABASE shop; USE shop; {definition};")
    source.sql("INSERT INTO shop.orders VALUES (3, 'salt')")
    own = next(line for line in shown("rplctl.1", "INITIAL COPY") if line.words[0] == "sqlite3")
    with instance(tmp_path) as replica:
        replica.run("init")
        replica.change_master(source)
        (replica.datadir / "orders.csv").write_text("1,tea\n2,cake\n")
        for line in [line for line in shown("rplctl.1", "INITIAL COPY") if line.block == own.block]:
            if line == own:
                subprocess.run(own.words, cwd=replica.datadir, check=True)
            else:
                type_them([line], replica, put)
        replica.wait_synced(source)
        assert orders(replica) == [*ROWS, (3, "salt")]
