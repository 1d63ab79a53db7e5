"""`backup` with a target that is a server: its dump is the operator's, and both together go on (WL#9452 F-4).

The dump is taken with the server's own tool, once after and once before rplctl's part, as the manual says: under
`lock-instance`, and where positions are in files under `lock-tables`. It goes into an empty server, the rest into an
empty folder; then nothing is missing and nothing is there twice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command.test_backup import LAYOUTS, SCHEMA, Load
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer

pytestmark = [
    pytest.mark.long("tests/stories/test_examples.py::test_the_lines_of_the_readme_work_as_they_stand takes a backup."),
    pytest.mark.slow,
    pytest.mark.mariadb,
    pytest.mark.timeout(900),
]
Server = MariadbServer | PostgresqlServer
ORDERS = {"rplctl-first": "{backup} && {dump}", "dump-first": "{dump} && {backup}"}


@pytest.fixture(scope="module")
def targets(
    mariadb_factory: Callable[..., MariadbServer], postgresql_factory: Callable[..., PostgresqlServer]
) -> dict[str, Callable[[], Server]]:
    return {"mariadb": mariadb_factory, "postgresql": postgresql_factory}


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[list[Replica]]:
    made = [Replica(tmp_path / name, spark=False) for name in ("original", "copy")]
    yield made
    for replica in made:
        replica.close()


def tools(server: Server, database: str) -> tuple[str, list[str]]:
    """(command that writes a dump of the data and rplctl's own tables to stdout, command that reads one)."""
    if isinstance(server, PostgresqlServer):
        where = f"-h {server.host} -p {server.port} -U rpl"
        return f"pg_dump {where} postgres", f"psql -q -v ON_ERROR_STOP=1 {where} postgres".split()
    where = f"--no-defaults -h {server.host} -P {server.port} -u rpl"
    dump = f"mariadb-dump {where} --single-transaction --databases {database} rplctl"
    return dump, f"mariadb {where}".split()


def sums(server: Server, database: str) -> list[tuple[str, ...]]:
    """Of account, and all of history: a transfer that is missing or there twice shows in each."""
    found = server.sql(f"SELECT sum(balance), count(*) FROM {database}.account")
    found += server.sql(f"SELECT count(*), sum(amount), max(id), count(DISTINCT id) FROM {database}.history")
    return [tuple(str(value) for value in row) for row in found]


def target_of(server: Server, folder: Path) -> list[str]:
    password = folder / "target-password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    path = "postgres" if server.kind == "postgresql" else ""
    url = f"{'mysql' if server.kind == 'mariadb' else server.kind}://rpl@{server.host}:{server.port}/{path}"
    return ["--target", url, "--target-password-file", str(password)]


def clear(server: Server, database: str) -> None:
    for name in (database, "rplctl"):
        is_schema = server.kind == "postgresql"
        server.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE" if is_schema else f"DROP DATABASE IF EXISTS {name}")


def backup_with_dump(
    source: MariadbServer, replicas: list[Replica], servers: list[Server], layout: str, order: str, moments: int
) -> None:
    original, copy = replicas
    first, second = servers
    database = f"sdump_{layout}_{moments}_{first.kind}".replace("-", "_")
    environment = {"MYSQL_PWD": "rpl", "PGPASSWORD": "rpl"}
    for replica in replicas:
        replica.datadir.parent.mkdir(exist_ok=True)
    source.sql(f"DROP DATABASE IF EXISTS {database}")
    for server in servers:
        clear(server, database)
    original.run("init", *target_of(first, original.datadir.parent), *LAYOUTS[layout])
    name, position = source.master_status()
    original.change_master(source, "--master-log-file", name, "--master-log-pos", str(position))
    options = original.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "{database}"\nmax_relay_log_size = 65536\n{options.read_text()}')
    source.sql(SCHEMA.format(db=database))
    original.run("start")
    with Load(source, database) as load:
        wait_until(lambda: load.count > 20)
        wait_until(lambda: database in str(first.sql("SELECT schema_name FROM information_schema.schemata")))
        wait_until(lambda: "history" in first.tables(database))
        for number in range(moments):
            dump, _ = tools(first, database)
            folder = original.datadir.parent / f"moment{number}"
            ours = f"{sys.executable} -m rplctl --datadir {original.datadir} backup {folder}"
            script = ORDERS[order].format(backup=ours, dump=f"{dump} > {folder}.sql")
            lock = "lock-instance" if layout == "table" else "lock-tables"
            original.run(lock, "--", "sh", "-c", script, environment=environment)
    for number in range(moments):
        folder = original.datadir.parent / f"moment{number}"
        _, read = tools(second, database)
        clear(second, database)
        with open(f"{folder}.sql", "rb") as file:
            subprocess.run(read, stdin=file, check=True, env={**os.environ, **environment}, timeout=300)
        shutil.rmtree(copy.datadir, ignore_errors=True)
        copy.run("restore", str(folder))
        moved = copy.datadir / "rplctl.toml"
        moved.write_text(moved.read_text().replace(f":{first.port}/", f":{second.port}/"))
        copy.run("start", "--until-synced", "--max-time", "280")
        assert sums(second, database) == sums(source, database)
    original.run("stop")


def test_a_dump_of_a_server_and_a_backup_go_on_together(
    mariadb: MariadbServer, targets: dict[str, Callable[[], Server]], replicas: list[Replica]
) -> None:
    """MasterInfo in the dump, which is the later one: it knows of more than the relay logs of the backup hold."""
    backup_with_dump(mariadb, replicas, [targets["mariadb"]() for _ in range(2)], "mixed", "rplctl-first", 1)


@pytest.mark.torture
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["mariadb", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_dumps_and_backups_go_on_together_in_either_order(
    mariadb: MariadbServer,
    targets: dict[str, Callable[[], Server]],
    replicas: list[Replica],
    kind: str,
    layout: str,
    order: str,
) -> None:
    backup_with_dump(mariadb, replicas, [targets[kind]() for _ in range(2)], layout, order, 2)
