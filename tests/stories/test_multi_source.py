"""Three real sources, two MariaDB and one MySQL, write into one target at once (WL#2775).

One is killed and its channel failed over by GTID, one channel's relay log is damaged; the others never stop, all end
with what their source has, and what is wrong with one is told beside what is right with the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.command.show_status import SlaveStatus, show_status
from rplctl.config import load_config
from rplctl.relay_log.index import RelayLogIndex
from tests.kit.load import Load
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

pytestmark = [
    pytest.mark.long("tests/command/test_serve.py has several channels in make test."),
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

Sources = dict[str, MariadbServer]
TABLE = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, note VARCHAR(60) CHARACTER SET utf8mb4, "
    "price DECIMAL(10,2), at DATETIME)"
)
WRITE = (
    "BEGIN; UPDATE counter SET n=n+1; INSERT INTO t (n, note, price, at) SELECT n, REPEAT('äx', n % 20), n / 7, "
    "'2024-02-29 12:00:00' FROM counter; UPDATE t SET note='seen' WHERE id=(SELECT n-3 FROM counter); COMMIT"
)


class Instance:
    """Channels a, b and m of one instance folder."""

    def __init__(self, folder: Path, *, spark: bool) -> None:
        self.of = {name: Replica(folder, name, spark=spark) for name in "abm"}
        self.datadir = self.of["a"].datadir
        self.has_server = False  # as target: then each look is a process of its own, which leaves no connection behind

    def __call__(self, line: str, **options: Any) -> str:
        return self.of["a"].run(*line.split(), **options).stdout

    def status(self, name: str) -> SlaveStatus | SimpleNamespace:
        if self.has_server:
            return SimpleNamespace(**json.loads(self(f"show-status --json --channel {name}"))[0])
        return show_status(load_config(self.datadir, name), name)

    def pids(self, *threads: tuple[str, str]) -> list[int | None]:
        return [self.of[name].pid(role) for name, role in threads]

    def wait_for_progress(self, *names: str) -> None:
        before = {name: self.status(name).Executed_Gtid_Set for name in names}
        wait_until(lambda: all(self.status(name).Executed_Gtid_Set != before[name] for name in names), 180, 0.2)

    def logs(self) -> str:
        return "".join(replica.logs() for replica in self.of.values())


@pytest.fixture
def instance(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Instance]:
    """With Spark in the long versions only."""
    made = Instance(tmp_path, spark=request.node.get_closest_marker("torture") is not None)
    yield made
    for replica in made.of.values():
        replica.close()


@pytest.fixture(scope="module")
def servers(
    mariadb_factory: Callable[..., MariadbServer], mysql_factory: Callable[..., MysqlServer]
) -> Callable[[], tuple[Sources, MariadbServer]]:
    """Fresh databases on three sources, and a replica of the first one."""
    first, standby, second, third = mariadb_factory(), mariadb_factory(), mariadb_factory(), mysql_factory()

    def fresh() -> tuple[Sources, MariadbServer]:
        if not first.is_running:
            first.start()
        for server in (standby, first, second):
            server.sql(
                "STOP SLAVE; DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS b; RESET MASTER; RESET SLAVE ALL"
            )
            server.sql("SET GLOBAL gtid_slave_pos=''")
        third.sql("DROP DATABASE IF EXISTS m; RESET BINARY LOGS AND GTIDS")
        standby.sql(
            f"FLUSH BINARY LOGS; FLUSH BINARY LOGS; CHANGE MASTER TO MASTER_CONNECT_RETRY=1, "
            f"MASTER_HOST='{first.host}', "
            f"MASTER_PORT={first.port}, MASTER_USER='rpl', MASTER_PASSWORD='rpl', MASTER_USE_GTID=slave_pos; "
            "START SLAVE"
        )
        sources = {"a": first, "b": second, "m": third}
        for name, server in sources.items():
            server.sql(
                f"CREATE DATABASE {name}; USE {name}; {TABLE}; CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT)"
            )
            server.sql(f"INSERT INTO {name}.counter VALUES (1, 0)")
        return sources, standby

    return fresh


def gtids_of(server: MariadbServer) -> str:
    variable = "gtid_executed" if server.kind == "mysql" else "gtid_binlog_pos"
    return str(server.sql(f"SELECT @@GLOBAL.{variable}")[0][0]).replace("\n", "")


def set_up(instance: Instance, sources: Sources, url: str, password: Path) -> None:
    """Mixed repositories: a FILE, b TABLE, m each one."""
    instance.has_server = bool(url)
    instance("init" + (f" --target {url} --target-password-file {password}" if url else ""))
    how = {"a": "--master-use-gtid slave_pos", "b": "", "m": "--master-auto-position 1 --master-ssl 1"}
    for name, server in sources.items():
        instance.of[name].change_master(server, "--channel", name, *how[name].split())
    instance("switch-repo --to table --channel b")
    instance("switch-repo --to table --repository relay-log-info --channel m")
    kinds = {name: instance.status(name) for name in "abm"}
    assert [kinds[name].Relay_Log_Info_Repository.split()[0] for name in "abm"] == ["FILE", "TABLE", "TABLE"]


def run_three_sources(
    instance: Instance, sources: Sources, standby: MariadbServer, rows_of: Callable[[str, str], list[Any]]
) -> None:
    instance("start --all")
    loads = {name: Load(server, [WRITE], pause_s=0.03, database=name) for name, server in sources.items()}
    try:
        instance.wait_for_progress("a", "b", "m")
        steady = (("m", "receiver"), ("m", "applier"), ("a", "applier"))
        pids = instance.pids(*steady)

        loads["a"].finish()
        wait_until(lambda: gtids_of(standby) == gtids_of(sources["a"]))
        sources["a"].kill()
        wait_until(lambda: instance.status("a").Last_IO_Errno)
        instance.wait_for_progress("b", "m")
        told = {line["Channel_Name"]: line for line in json.loads(instance("show-channels --json"))}
        assert [bool(told[name]["Last_Error"]) for name in "abm"] == [True, False, False]
        fail_over(instance, standby)
        loads["a"] = Load(standby, [WRITE], pause_s=0.03, database="a")
        instance.wait_for_progress("a", "b", "m")

        damage(instance)
        told = {line["Channel_Name"]: line for line in json.loads(instance("show-channels --json"))}
        assert [told[name]["Slave_SQL_Running"] for name in "abm"] == ["Yes", "No", "Yes"]
        assert told["b"]["Last_Error"] and not told["m"]["Last_Error"]
        assert "recover --channel b --refetch" in instance.status("b").Last_SQL_Hint
        assert len(json.loads(instance("show-status --json"))) == 3
        verdict = instance("check", expect=2)
        assert "'b' io Yes, sql No: " in verdict
        assert re.search(r"'m' \d+ s behind", verdict)
        assert "channel 'b' CRITICAL relay_log_damaged" in instance("check --offline", expect=2)
        instance.wait_for_progress("a", "m")
        instance("stop --channel b")
        instance("recover --refetch --channel b")
        instance("start --channel b")
        instance.wait_for_progress("a", "b", "m")
        assert instance.pids(*steady) == pids, "a channel that nothing was wrong with was stopped"
    finally:
        for load in loads.values():
            load.finish()
    for name, server in {**sources, "a": standby}.items():
        wait_until(lambda name=name, server=server: at_end(instance, name, server))  # type: ignore[misc]
        for table in ("counter", "t"):
            expected = sorted(tuple(map(text, row)) for row in server.rows(name, table))
            assert len(expected) > (20 if table == "t" else 0)
            assert sorted(tuple(map(text, row)) for row in rows_of(name, table)) == expected, f"{name}.{table}"
    instance("stop --all")


def text(value: Any) -> str:
    return "NULL" if value is None else str(value)


def at_end(instance: Instance, name: str, server: MariadbServer) -> bool:
    status = instance.status(name)
    assert status.Slave_SQL_Running == "Yes", f"{status}{instance.logs()}"
    return status.Executed_Gtid_Set == gtids_of(server)


def fail_over(instance: Instance, standby: MariadbServer) -> None:
    """The applier goes on meanwhile."""
    instance("stop --receiver --channel a")
    instance.of["a"].change_master(standby, "--channel", "a")
    instance("start --receiver --channel a")


def damage(instance: Instance) -> None:
    """One bit of what channel b has received, in a finished relay log, and not yet applied."""
    channel = instance.of["b"].channel
    instance("stop --applier --channel b")
    at = instance.status("b")
    path = RelayLogIndex(channel).path(at.Relay_Log_File)
    wait_until(lambda: path.stat().st_size > at.Relay_Log_Pos + 20_000)
    instance("flush-relay-logs --channel b")
    wait_until(lambda: RelayLogIndex(channel).names()[-1] != at.Relay_Log_File)
    with path.open("r+b") as file:
        file.seek(at.Relay_Log_Pos + 10_000)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0x10]))
    instance("start --applier --channel b", expect=None)
    wait_until(lambda: instance.of["b"].pid("applier") is None)
    status = instance.status("b")
    assert status.Last_SQL_Errno in (1594, 1743)  # in a header, or in what the checksum alone protects
    assert "rplctl recover --channel b --refetch" in status.Last_SQL_Hint


def test_three_sources_into_one_sqlite(
    instance: Instance, servers: Callable[[], tuple[Sources, MariadbServer]], tmp_path: Path
) -> None:
    sources, standby = servers()
    set_up(instance, sources, "", tmp_path / "none")

    def rows_of(database: str, table: str) -> list[Any]:
        return instance.of["a"].query(f'SELECT * FROM "{database}__{table}"')

    run_three_sources(instance, sources, standby, rows_of)


@pytest.mark.torture
def test_three_sources_into_one_mariadb(
    instance: Instance,
    servers: Callable[[], tuple[Sources, MariadbServer]],
    mariadb_factory: Callable[..., MariadbServer],
    tmp_path: Path,
) -> None:
    sources, standby = servers()
    target = mariadb_factory()
    set_up(instance, sources, f"mysql://rpl@{target.host}:{target.port}/", password_file(tmp_path))
    run_three_sources(instance, sources, standby, target.rows)


@pytest.mark.torture
def test_three_sources_into_one_postgresql(
    instance: Instance,
    servers: Callable[[], tuple[Sources, MariadbServer]],
    postgresql_factory: Callable[..., PostgresqlServer],
    tmp_path: Path,
) -> None:
    sources, standby = servers()
    target = postgresql_factory()
    url = f"postgresql://rpl@{target.host}:{target.port}/postgres"
    set_up(instance, sources, url, password_file(tmp_path))
    run_three_sources(instance, sources, standby, target.rows)


def password_file(folder: Path) -> Path:
    path = folder / "password"
    path.write_text("rpl\n")
    path.chmod(0o600)
    return path
