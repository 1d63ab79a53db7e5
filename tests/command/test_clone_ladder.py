"""`rplctl clone` by GTID, from sources that do not say what a snapshot shows, and under what schema tools do."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from tests.command.test_clone import only, wait_cloned
from tests.kit.load import Work, working
from tests.kit.private_server import ServerUnavailable
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import (
    Mariadb105Server,
    Mariadb118Server,
    MariadbServer,
    Mysql57Server,
    Mysql80Server,
    Mysql84Server,
    MysqlServer,
)

LONG = pytest.mark.long("test_a_mysql_source_is_copied_by_gtid holds the usual way.")

pytestmark = [pytest.mark.slow]
TABLES = (
    "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(200) NOT NULL, n DECIMAL(12,3), KEY (n))",
    "CREATE TABLE swaps (id INT PRIMARY KEY, u INT NULL, v BIGINT, UNIQUE (u))",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE keyless (a INT, b VARCHAR(20))",
    "CREATE TABLE tool (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE doomed (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE bare (id INT PRIMARY KEY)",
    "CREATE TABLE rests (id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
)
Compare = Callable[[MariadbServer, Replica, str], None]
SCHEMA_CHANGE = "pt-online-schema-change"
HARMLESS = (1213, 1062, 1452, 1205, 1020, 1146, 1412)


def fill(source: MariadbServer, name: str, rows: int) -> None:
    numbers = "(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 1 AS seq FROM d a, d b, d c, d e) s"
    source.sql(
        f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; USE {name};"
        "CREATE TABLE d (d INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);"
        + ";".join(TABLES)
        + f"; INSERT INTO plain SELECT seq, REPEAT('x', seq % 200), seq / 7 FROM {numbers} WHERE seq <= {rows};"
        f"INSERT INTO swaps SELECT seq, seq, seq FROM {numbers} WHERE seq <= {rows};"
        f"INSERT INTO keyless SELECT seq % 10, 'same' FROM {numbers} WHERE seq <= 100;"
        f"INSERT INTO tool SELECT seq, seq FROM {numbers} WHERE seq <= 900;"
        f"INSERT INTO doomed SELECT seq, seq FROM {numbers} WHERE seq <= 900;"
        f"INSERT INTO rests SELECT seq, seq FROM {numbers} WHERE seq <= 900;"
        f"INSERT INTO parent SELECT seq FROM {numbers} WHERE seq <= 400;"
        f"INSERT INTO child SELECT seq, seq % 400 + 1 FROM {numbers} WHERE seq <= 900"
    )


def change(chance: random.Random) -> list[str]:
    a, b = chance.sample(range(1, 400), 2)
    return chance.choice(
        [
            [f"UPDATE plain SET v = '{a}' WHERE id = {b}", f"DELETE FROM plain WHERE id = {a}"],
            [f"REPLACE INTO plain VALUES ({a}, 'again', {b})"],
            [f"UPDATE swaps SET u = NULL WHERE id = {a}", f"UPDATE swaps SET u = {a} + 10000 WHERE id = {b}"],
            [f"INSERT INTO keyless VALUES ({a % 10}, 'same')", f"DELETE FROM keyless WHERE a = {b % 10} LIMIT 1"],
            [f"DELETE FROM parent WHERE id = {a}", f"INSERT IGNORE INTO parent VALUES ({b})",
             f"REPLACE INTO child SELECT {b}, id FROM parent ORDER BY id LIMIT 1"],
            [f"UPDATE tool SET v = v + 1 WHERE id = {a}"],
        ]
    )  # fmt: skip


def beside(source: MariadbServer, name: str, *works: Work) -> AbstractContextManager[None]:
    return working(source, name, works, harmless=HARMLESS)


def writer(seed: int, rest_s: float = 0) -> Work:
    """`rest_s` after each transaction: what is written while a slow target gets its copy is to be applied there."""
    chance = random.Random(seed)

    def work(cursor: Any) -> None:
        cursor.execute("BEGIN")
        for statement in change(chance):
            cursor.execute(statement)
        cursor.execute("COMMIT")
        time.sleep(rest_s)

    return work


def schema_tool(cursor: Any) -> None:
    """As gh-ost does it: a table like the other, its rows, the swap; and a table that is emptied, altered, dropped."""
    cursor.execute("CREATE TABLE _tool_gho LIKE tool")
    cursor.execute("INSERT INTO _tool_gho SELECT * FROM tool FOR UPDATE")
    cursor.execute("RENAME TABLE tool TO _tool_del, _tool_gho TO tool")
    cursor.execute("DROP TABLE _tool_del")
    cursor.execute("TRUNCATE doomed")
    cursor.execute("ALTER TABLE doomed ADD z INT DEFAULT 3")
    cursor.execute("INSERT INTO doomed SELECT id, v, v FROM tool")
    cursor.execute("ALTER TABLE doomed DROP z")
    cursor.execute("ALTER TABLE doomed RENAME TO renamed")
    cursor.execute("DROP TABLE renamed")
    cursor.execute("CREATE TABLE doomed (id INT PRIMARY KEY, v INT)")
    time.sleep(0.3)


def copied(
    source: MariadbServer,
    replica: Replica,
    name: str,
    *,
    seconds: float = 300,
    same: Compare = assert_same_tables,
    options: Sequence[str] = (),
    rest_s: float = 0.01,
) -> None:
    """Beside writers, a schema tool, and a transaction that is prepared before its table is copied."""
    statements = ("XA START 'x'", "INSERT INTO plain VALUES (90001, 'xa', 1)", "XA END 'x'", "XA PREPARE 'x'")
    with (
        beside(source, name, *(writer(seed, rest_s) for seed in (1, 2, 3))),
        closing(source.connect(name)) as xa,
        xa.cursor() as cursor,
    ):
        replica.run("clone", *options)
        for statement in statements:
            cursor.execute(statement)
        with beside(source, name, schema_tool):
            time.sleep(2)
        wait_cloned(replica, seconds)
        cursor.execute("XA COMMIT 'x'")
    replica.wait_synced(source, 120)
    same(source, replica, name)
    source.sql(f"USE {name}; DELETE FROM parent; ALTER TABLE plain ADD z INT DEFAULT 3; INSERT INTO bare VALUES (1)")
    replica.wait_synced(source, 120)
    same(source, replica, name)
    assert replica.status()["Passed_Over_Errors"] == 0


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    made.run("init")
    yield made
    made.close()


def test_a_mysql_source_is_copied_by_gtid(mysql: MysqlServer, replica: Replica) -> None:
    fill(mysql, "living9", 3000)
    replica.change_master(mysql, "--master-auto-position", "1", "--get-master-public-key", "1")
    only(replica, "living9")
    copied(mysql, replica, "living9", rest_s=0.05)  # so that the copy ends on a machine that has other work, too
    assert replica.status()["Auto_Position"] == 1


OLDER = [Mariadb105Server, Mariadb118Server, Mysql57Server, Mysql80Server, Mysql84Server]


@LONG
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind is Mysql80Server else pytest.mark.torture) for kind in OLDER],
    ids=lambda kind: kind.__name__,
)
def test_a_source_of_the_releases_in_use_is_copied_by_gtid(kind: type[MariadbServer], replica: Replica) -> None:
    try:
        source = kind()
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    by_gtid = {
        "mariadb": ("--master-use-gtid", "slave_pos"),
        "mysql": ("--master-auto-position", "1", "--get-master-public-key", "1"),
    }[source.kind]
    with source:
        fill(source, "living", 3000)
        replica.change_master(source, *by_gtid)
        only(replica, "living")
        copied(source, replica, "living")


@pytest.mark.torture
def test_a_mariadb_source_is_copied_by_gtid(mariadb: MariadbServer, replica: Replica) -> None:
    fill(mariadb, "living10", 3000)
    replica.change_master(mariadb, "--master-use-gtid", "slave_pos")
    only(replica, "living10")
    copied(mariadb, replica, "living10")
    assert replica.status()["Using_Gtid"] == "Slave_Pos"


@pytest.mark.torture
def test_a_mysql_source_is_copied_by_position(mysql: MysqlServer, replica: Replica) -> None:
    fill(mysql, "living9", 3000)
    replica.change_master(mysql, "--get-master-public-key", "1")
    only(replica, "living9")
    copied(mysql, replica, "living9", rest_s=0.05)  # so that the copy ends on a machine that has other work, too


@pytest.mark.torture
@pytest.mark.skipif(shutil.which(SCHEMA_CHANGE) is None, reason=f"no {SCHEMA_CHANGE} (apt-get install percona-toolkit)")
@pytest.mark.parametrize("vendor", ["MariaDB", "MySQL"])
def test_a_table_that_percona_s_tool_alters_meanwhile_is_copied(
    mariadb: MariadbServer, mysql: MysqlServer, replica: Replica, vendor: str
) -> None:
    source = mariadb if vendor == "MariaDB" else mysql
    fill(source, "altered", 3000)
    replica.change_master(source, "--get-master-public-key", "1")
    only(replica, "altered")
    options = replica.datadir / "rplctl.toml"  # the tool's triggers; what they do comes as rows
    options.write_text(f'on_unsupported_ddl = "skip"\n{options.read_text()}')

    def alter(change: str) -> None:
        where = f"h={source.host},P={source.port},u=rpl,p=rpl,D=altered,t=swaps"
        command = [SCHEMA_CHANGE, "--alter", change, where, "--execute", "--recursion-method=none", "--chunk-size=200"]
        subprocess.run([*command, "--set-vars=lock_wait_timeout=60"], check=True, capture_output=True, timeout=200)

    with beside(source, "altered", writer(1), writer(2)):
        alter("ADD y INT DEFAULT 1")
        replica.run("clone", "--max-rate", "0.1")
        alter("ADD z INT DEFAULT 3")
        alter("DROP y")
        replica.run("clone", "--max-rate", "0")
        alter("MODIFY v DECIMAL(20)")
        wait_cloned(replica)
        alter("DROP z")
    replica.wait_synced(source, 120)
    assert_same_tables(source, replica, "altered")


@LONG
@pytest.mark.timeout(900)
def test_without_gtids_mysql_s_tables_are_copied_into_mysql_while_their_writers_never_pause(
    mysql_factory: Callable[..., MysqlServer], mysql: MysqlServer, tmp_path: Path
) -> None:
    source = mysql_factory("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
    fill(source, "living8", 3000)
    mysql.sql("DROP DATABASE IF EXISTS rplctl")  # another test's
    replica = Replica(tmp_path, spark=False)

    def same(source: MariadbServer, _: Replica, name: str) -> None:
        assert source.dump(name) == mysql.dump(name)

    try:
        replica.run("init", *replica.into(mysql))
        replica.change_master(source, "--get-master-public-key", "1")
        only(replica, "living8")
        copied(source, replica, "living8", same=same, rest_s=0.02)
        assert replica.status()["Auto_Position"] == 0
    finally:
        replica.close()
        mysql.sql("DROP DATABASE IF EXISTS living8; DROP DATABASE IF EXISTS rplctl")


@pytest.mark.torture
def test_where_nothing_orders_what_is_seen_tables_are_copied_when_their_writers_pause(
    mysql_factory: Callable[..., MysqlServer], replica: Replica
) -> None:
    source = mysql_factory("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--binlog-order-commits=OFF")
    fill(source, "living9", 3000)
    replica.change_master(source, "--get-master-public-key", "1")
    only(replica, "living9")
    with beside(source, "living9", lambda cursor: cursor.execute("UPDATE tool SET v = v + 1")):
        replica.run("clone")
        log = replica.channel.log_path("receiver")
        wait_until(lambda: "living9.tool: changed during the reading" in log.read_text(), 60)
    wait_cloned(replica)
    replica.wait_synced(source, 120)
    assert_same_tables(source, replica, "living9")
