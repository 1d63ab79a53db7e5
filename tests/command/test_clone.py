"""`rplctl clone`: a living source becomes a strict replica with one command, whatever is killed meanwhile."""

from __future__ import annotations

import json
import random
import shlex
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.show_clone import show_clone
from rplctl.config import load_config
from tests.cli.test_json_page import PAGE
from tests.kit.load import working
from tests.kit.neutral_state import state_of
from tests.kit.postgresql_state import connect, differences, new_database
from tests.kit.replica import Replica, assert_same_tables, new_log, purge_logs
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
TABLES = (
    "CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(200) NOT NULL, n DECIMAL(12,3), KEY (n))",
    "CREATE TABLE swaps (id INT PRIMARY KEY, u INT NULL, v BIGINT, UNIQUE (u))",
    "CREATE TABLE words (w VARCHAR(40) COLLATE utf8mb4_general_ci, k INT, v DATETIME(3), PRIMARY KEY (w, k))",
    "CREATE TABLE keyless (a INT, b VARCHAR(20))",
    "CREATE TABLE `of-te` (id INT PRIMARY KEY, `a%s` INT AS (id + 1) STORED, e ENUM('ä','b'))",
    "CREATE TABLE parent (id INT PRIMARY KEY)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE TABLE self (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES self (id) ON DELETE CASCADE)",
    "CREATE TABLE empty (id INT PRIMARY KEY)",
    "CREATE TABLE parts (id INT, v INT, PRIMARY KEY (id, v)) PARTITION BY HASH (v) PARTITIONS 3",
    "CREATE TABLE rests (id INT PRIMARY KEY, v VARCHAR(20)) ENGINE=MyISAM",
    "CREATE TABLE calm (v VARCHAR(20)) ENGINE=Aria",
    "CREATE TABLE remembered (id INT PRIMARY KEY) ENGINE=MEMORY",
    "CREATE SEQUENCE numbers",
)


def fill(source: MariadbServer, name: str, rows: int = 3000) -> None:
    source.sql(
        f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name} CHARACTER SET latin1; USE {name};"
        + ";".join(TABLES)
        + f"; INSERT INTO plain SELECT seq, REPEAT('x', seq % 200), seq / 7 FROM seq_1_to_{rows};"
        f"INSERT INTO swaps SELECT seq, seq, seq FROM seq_1_to_{rows};"
        f"INSERT INTO words SELECT CONCAT('w', seq % 97), seq, '2024-01-01' + INTERVAL seq SECOND FROM seq_1_to_{rows};"
        f"INSERT INTO keyless SELECT seq % 10, 'same' FROM seq_1_to_100;"
        f"INSERT INTO rests SELECT seq, seq FROM seq_1_to_{rows}; INSERT INTO calm SELECT 'same' FROM seq_1_to_{rows};"
        "INSERT INTO remembered SELECT seq FROM seq_1_to_50;"
        f"INSERT INTO parts SELECT seq, seq % 7 FROM seq_1_to_{rows};"
        f"INSERT INTO `of-te` (id, e) SELECT seq, 1 + seq % 2 FROM seq_1_to_50;"
        f"INSERT INTO parent SELECT seq FROM seq_1_to_400;"
        "INSERT INTO child SELECT seq, seq % 400 + 1 FROM seq_1_to_900;"
        "INSERT INTO self SELECT seq, NULL FROM seq_1_to_50; INSERT INTO self SELECT seq, seq - 50 FROM seq_51_to_300"
    )


def only(replica: Replica, database: str) -> None:
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "{database}"\n{options.read_text()}')


def change(chance: random.Random) -> list[str]:
    """One transaction: key moves, unique swaps, cascades, deletes."""
    a, b = chance.sample(range(1, 400), 2)
    return chance.choice(
        [
            [f"UPDATE plain SET v = '{a}' WHERE id = {b}", f"DELETE FROM plain WHERE id = {a}"],
            [f"REPLACE INTO plain VALUES ({a}, 'again', NEXTVAL(numbers))"],
            [f"UPDATE swaps SET u = NULL WHERE id = {a}", f"UPDATE swaps SET u = {a} + 10000 WHERE id = {b}",
             f"UPDATE swaps SET u = {b} WHERE id = {a} AND {a} NOT IN (SELECT u FROM (SELECT u FROM swaps) s)"],
            [f"UPDATE IGNORE words SET w = CONCAT('W', {b} % 97) WHERE k = {a}"],
            [f"UPDATE IGNORE parts SET v = v + 1 WHERE id = {a}", f"DELETE FROM parts WHERE id = {b}"],
            [f"INSERT INTO keyless VALUES ({a % 10}, 'same')", f"DELETE FROM keyless WHERE a = {b % 10} LIMIT 1"],
            [f"DELETE FROM parent WHERE id = {a}", f"INSERT IGNORE INTO parent VALUES ({b})",
             f"REPLACE INTO child SELECT {b}, id FROM parent ORDER BY id LIMIT 1"],
            [f"DELETE FROM self WHERE id = {a % 300}", f"INSERT IGNORE INTO self VALUES ({b}, NULL)"],
        ]
    )  # fmt: skip


def writing(source: MariadbServer, name: str, seed: int, pause_s: float = 0.002) -> AbstractContextManager[None]:
    works = [partial(write, random.Random(seed * 10 + number)) for number in range(3)]
    return working(source, name, works, harmless=(1213, 1062, 1452, 1205, 1020), pause_s=pause_s)


def write(chance: random.Random, cursor: Any) -> None:
    cursor.execute("BEGIN")
    for statement in change(chance):
        cursor.execute(statement)
    cursor.execute("COMMIT")


def wait_cloned(replica: Replica, timeout_s: float = 300) -> list[dict[str, object]]:
    deadline = time.monotonic() + timeout_s
    rows: list[dict[str, object]] = []
    while not rows or any(row["State"] != "done" for row in rows):
        assert time.monotonic() < deadline and replica.pid("applier"), f"{rows}{replica.logs()}"
        time.sleep(0.2)
        rows = json.loads(replica.run("show-clone", "--json").stdout)
    return rows


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


Compare = Callable[[MariadbServer, str], None]


@pytest.fixture(params=["sqlite", "mariadb", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def compare(request: pytest.FixtureRequest, replica: Replica, tmp_path: Path) -> Iterator[Compare]:
    """An instance of that kind of target is made; what is given compares every value."""
    if request.param == "sqlite":
        replica.run("init")
        yield lambda source, name: assert_same_tables(source, replica, name)
    elif request.param == "mariadb":
        target = request.getfixturevalue("mariadb_factory")("--skip-log-bin", "--skip-log-slave-updates")
        tables = ("--master-info-repository", "table", "--relay-log-info-repository", "table")
        replica.run("init", *replica.into(target), *tables)
        yield lambda source, name: same_dumps(source.dump(name), target.dump(name))
        target.sql("DROP DATABASE IF EXISTS living")
    else:
        url = new_database(request.getfixturevalue("postgresql"))
        password = tmp_path / "password"
        password.write_text("rpl\n")
        password.chmod(0o600)
        shown = url.replace("rpl:rpl@", "rpl@").replace("+psycopg", "")
        replica.run("init", "--target", shown, "--target-password-file", str(password))

        def same(source: MariadbServer, name: str) -> None:
            with connect(url) as connection:
                assert differences(connection, "".join(state_of(source, [name]))) == []

        yield same


def same_dumps(wanted: object, found: object) -> None:
    assert wanted == found


@pytest.mark.long("The case of SQLite stays; the others repeat it on servers.", keeps=r"sqlite")
def test_a_living_source_is_copied_and_followed_strictly(
    mariadb: MariadbServer, replica: Replica, compare: Compare, request: pytest.FixtureRequest
) -> None:
    fill(mariadb, "living")
    purge_logs(mariadb, new_log(mariadb))
    by_gtid = request.node.callspec.params["compare"] == "mariadb"
    replica.change_master(mariadb, *["--master-use-gtid", "slave_pos"][: 2 * by_gtid])
    only(replica, "living")
    listed = json.loads(replica.run("clone", "--dry-run", "--json").stdout)
    assert {row["Table_name"] for row in listed} == {*mariadb.tables("living"), "numbers"}
    assert list(listed[0]) == [
        "Database_name",
        "Table_name",
        "Row_count",
        "Byte_count",
        "Note",
        "Seconds",
        "Missing_Grant",
    ]
    copied_beside_writers(mariadb, replica)
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "living")
    mariadb.sql("USE living; DELETE FROM self; ALTER TABLE plain ADD z INT DEFAULT 3; INSERT INTO empty VALUES (1)")
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "living")
    assert json.loads(replica.run("clone", "--json").stdout)[0]["Tables"] == 0
    assert "table_missing" not in replica.run("check", expect=None).stdout  # a sequence is none
    assert replica.status()["Passed_Over_Errors"] == 0


def copied_beside_writers(mariadb: MariadbServer, replica: Replica) -> None:
    """And beside a transaction that is prepared before its table is copied, and committed after that."""
    with writing(mariadb, "living", 1), closing(mariadb.connect("living")) as xa, xa.cursor() as cursor:
        assert list(json.loads(replica.run("clone", "--json").stdout)[0]) == PAGE["clone"]
        for statement in ("XA START 'x'", "INSERT INTO plain VALUES (90001, 'xa', 1)", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)
        rows = wait_cloned(replica)
        cursor.execute("XA COMMIT 'x'")
    assert list(rows[0]) == PAGE["show-clone"]


@pytest.mark.long("tests/stories/test_beside_native.py has the same rows as events.")
@pytest.mark.parametrize(
    ("vendor", "more"),
    [
        pytest.param("mariadb", (), id="mariadb"),
        pytest.param("mysql", ("--get-master-public-key", "1"), id="mysql", marks=pytest.mark.mysql),
    ],
)
def test_a_copy_does_not_judge_what_the_source_stored(
    vendor: str, more: tuple[str, ...], replica: Replica, request: pytest.FixtureRequest
) -> None:
    """FLOAT(10,5) that holds 100000; a VIRTUAL column that strict mode cannot compute; a table without a key."""
    source: MariadbServer = request.getfixturevalue(vendor)
    target: MariadbServer = request.getfixturevalue(f"{vendor}_factory")()
    rows = ", ".join(f"({number}, 7)" for number in range(10, 310))  # many enough for a bulk load
    source.sql(
        "SET sql_mode=''; DROP DATABASE IF EXISTS edges; CREATE DATABASE edges; USE edges;"
        "CREATE TABLE f (id INT PRIMARY KEY, x FLOAT(10,5)); INSERT INTO f VALUES (1, 100000), (2, 7), (3, 99999);"
        f"INSERT INTO f VALUES {rows}; CREATE TABLE h (id INT, x FLOAT(10,5)); INSERT INTO h SELECT * FROM f;"
        "CREATE TABLE u (x FLOAT(10,5)); INSERT INTO u VALUES (100000), (100000), (7);"
        "CREATE TABLE g (id INT PRIMARY KEY, v VARCHAR(20), n INT AS (v) VIRTUAL, d DATE AS (v) VIRTUAL, KEY (n));"
        "INSERT INTO g (id, v) VALUES (1, 'abc'), (2, '2024-01-01'), (3, '99999999999')"
    )
    if vendor == "mariadb":  # stores '0000' and '2000', and prints 00 for both
        source.sql("USE edges; CREATE TABLE y (a YEAR(2) PRIMARY KEY, n INT); INSERT INTO y VALUES (0, 1), (77, 2)")
    replica.run("init", *replica.into(target))
    replica.change_master(source, *more)
    only(replica, "edges")
    replica.run("clone", "--databases", "edges")
    wait_cloned(replica)
    if vendor == "mariadb":
        source.sql("UPDATE edges.y SET n=n+1")
    replica.wait_synced(source, 120)
    assert source.dump("edges") == target.dump("edges")


@pytest.mark.long("test_a_living_source_is_copied_and_followed_strictly copies a database; this one types a hint.")
def test_one_database_of_several_is_copied_as_the_hint_says(mariadb: MariadbServer, replica: Replica) -> None:
    """And its view, triggers and routines are named before the copy, counted after it, and stop nothing."""
    mariadb.sql("DROP DATABASE IF EXISTS onesided; CREATE DATABASE onesided; CREATE TABLE onesided.t (id INT)")
    mariadb.sql(
        "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, v INT);"
        "CREATE TRIGGER one BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 1; CREATE VIEW v AS SELECT id FROM t;"
        "CREATE TRIGGER two BEFORE UPDATE ON t FOR EACH ROW SET NEW.v = 2; CREATE PROCEDURE p() SELECT 1;"
        "CREATE EVENT e ON SCHEDULE AT '2037-01-01' DO DELETE FROM t; INSERT INTO t VALUES (7, 0)"
    )
    replica.run("init")
    replica.change_master(mariadb)
    refused = replica.run("clone", "--databases", "shop", expect=2)
    hint = refused.stderr.rpartition("run: ")[2].strip()
    change, _, clone = hint.partition(" && ")
    replica.run(*shlex.split(change)[1:])
    listed = replica.run(*shlex.split(clone)[1:], "--dry-run").stderr
    for words in ("1 event: shop.e", "1 procedure: shop.p", "2 triggers: shop.one, shop.two", "1 view: shop.v"):
        assert f"clone does not copy {words}\n" in listed
    replica.run(*shlex.split(clone)[1:])
    wait_cloned(replica)
    mariadb.sql("USE shop; CREATE TRIGGER three AFTER DELETE ON t FOR EACH ROW SET @a = 1; DROP VIEW v")
    mariadb.sql("INSERT INTO shop.t VALUES (8, 0)")
    replica.wait_synced(mariadb, 120)
    with closing(sqlite3.connect(replica.datadir / "target.db")) as target:
        assert target.execute("SELECT id, v FROM shop__t ORDER BY id").fetchall() == [(7, 1), (8, 1)]
    assert "not carried out: 3 triggers, 1 event, 1 procedure" in replica.run("check", "-v", expect=None).stdout
    history = replica.run("history", "--json").stdout
    assert "not carried out: 2 triggers, 1 event, 1 procedure, 1 view" in history and "not-carried-out" in history


def test_what_cannot_be_copied_is_refused_and_why(mariadb: MariadbServer, replica: Replica) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS odd; CREATE DATABASE odd")
    mariadb.sql("CREATE TABLE odd.m (id INT NOT NULL) ENGINE=CSV")
    replica.run("init")
    replica.change_master(mariadb)
    only(replica, "odd")
    assert show_clone(load_config(replica.datadir, ""), "") == []
    assert "odd.m" in replica.run("clone", expect=6).stderr
    mariadb.sql("DROP TABLE odd.m; CREATE TABLE odd.t (id INT PRIMARY KEY)")
    replica.run("load-schema", "--from-source")
    assert "odd.t" in replica.run("clone", expect=2).stderr
    mariadb.sql("DROP DATABASE odd")
