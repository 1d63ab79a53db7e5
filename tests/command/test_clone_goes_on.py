"""A copy whose reading end was killed goes on behind the last chunk that was read, whatever was written meanwhile."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from rplctl.clone.folder import Part
from tests.command.test_clone import Compare, compare, only, replica, wait_cloned
from tests.command.test_clone_again import on
from tests.kit.load import working
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, MysqlServer
from tests.schema.test_bounds import MODE, Keys, insert, keys_of

__all__ = ["compare", "replica"]
pytestmark = [
    pytest.mark.long("A copy that is killed is rare; tests/command/test_clone.py copies in make test."),
    pytest.mark.slow,
    pytest.mark.mariadb,
]
ROWS = 60_000
BIG = (1 << 64) - ROWS  # SQLite has no such integers
TABLE = (
    "CREATE TABLE t (w VARCHAR(20) COLLATE utf8mb4_general_ci, id BIGINT UNSIGNED, u INT NULL, v VARCHAR(1100),"
    " PRIMARY KEY (w, id), UNIQUE (u))"
)

CHILD = "CREATE TABLE kid (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES k0 (a))"


def fill(source: MariadbServer) -> None:
    """Some 70 MB: six chunks; a table of numbers, and one of each kind of key, which are read before."""
    numbers = "SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d, 0 FROM d a, d b, d c, d e, d f"
    source.sql(
        f"DROP DATABASE IF EXISTS afar; CREATE DATABASE afar; USE afar; {TABLE};"
        "CREATE TABLE n (id INT PRIMARY KEY, v INT);"
        "CREATE TABLE d (d INT PRIMARY KEY); INSERT INTO d VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);"
        f"INSERT INTO n {numbers} WHERE f.d < {ROWS // 10000}; DROP TABLE d;"
        f"INSERT INTO t SELECT CONCAT('é', id % 97), {BIG} + id, id, RPAD(id, 1088, HEX(id * 7919)) FROM n;"
        "ANALYZE TABLE t"
    )
    keys = keys_of(source)
    made = [f"CREATE TABLE k{n} ({what}, v INT DEFAULT 0)" for n, what in enumerate(keys)]
    now = [insert(f"k{n}", what, rows) for n, (what, (rows, _)) in enumerate(keys.items())]
    source.sql(
        "; ".join([MODE, "DROP DATABASE IF EXISTS a_key", "CREATE DATABASE a_key", "USE a_key", *made, CHILD, *now])
    )


def write(chance: random.Random, keys: Keys, cursor: Any) -> None:
    """Rows that move from what is read to what is not, and back; that come, go, and trade their unique value."""
    a, b = chance.sample(range(ROWS), 2)
    number, (what, (_, later)) = chance.choice([*enumerate(keys.items())])
    cursor.execute(f"SET SESSION binlog_row_image={chance.choice(('FULL', 'MINIMAL'))}")
    for statement in chance.choice(
        [
            ["BEGIN", f"UPDATE t SET u = NULL WHERE id = {BIG + a} AND w = CONCAT('é', {a} % 97)",
             f"UPDATE t SET u = {a} WHERE w = CONCAT('É', {b} % 97) AND id = {BIG + b}", "COMMIT"],
            [f"UPDATE t SET w = CONCAT('É', {b} % 97) WHERE w = CONCAT('é', {a} % 97) AND id = {BIG + a}"],
            [f"DELETE FROM t WHERE w = CONCAT('é', {a} % 97) AND id = {BIG + a}"],
            [f"REPLACE INTO t VALUES (CONCAT('e', {a} % 97), {BIG + b}, NULL, 'new')"],
            [f"UPDATE n SET v = v + 1, id = -id WHERE id = {a}", f"DELETE FROM n WHERE id = {b}"],
            [f"DELETE FROM a_key.k{number} ORDER BY RAND() LIMIT 1", f"UPDATE a_key.k{number} SET v = v + 1 LIMIT 1",
             insert(f"a_key.k{number}", what, later).replace("INSERT", "INSERT IGNORE")],
            ["DELETE FROM a_key.kid ORDER BY RAND() LIMIT 1",
             "INSERT IGNORE INTO a_key.kid SELECT a FROM a_key.k0 ORDER BY RAND() LIMIT 2"],
        ]
    ):  # fmt: skip
        cursor.execute(statement)


def is_read(replica: Replica, chunks: int) -> bool:
    """That many chunks of the last table, and it has more."""
    parts: list[Part] = []
    for path in replica.channel.clone_folder.glob("*/read.json"):
        with suppress(FileNotFoundError):  # the other end takes it away
            parts += [] if (path.parent / "complete.json").exists() else [Part(*json.loads(path.read_text())[-1])]
    return any(part.count >= chunks and part.upto is not None for part in parts)


def goes_on(source: MariadbServer, replica: Replica) -> list[str]:
    """Killed at either end, and when the table is altered meanwhile; what is said of it."""
    only(replica, "afar,a_key")
    log = replica.channel.log_path("receiver")

    def said() -> list[str]:
        return re.findall(r"is continued: (.*)", log.read_text())

    def begun() -> int:
        """How many snapshots were begun: each of them says before whether it continues another one."""
        return len(re.findall(r"table group \d+ at ", log.read_text()))

    works = [partial(write, random.Random(number), keys_of(source)) for number in range(2)]
    with working(source, "afar", works, harmless=(1213, 1062, 1205, 1020, 1451), pause_s=0.15):
        replica.run("clone", "--max-rate", "15")
        for number, roles in enumerate((["receiver"], ["receiver", "applier"], ["applier", "receiver"]), 1):
            while len(said()) < number:  # a snapshot that was killed before its first chunk is begun again
                wait_until(lambda number=number: is_read(replica, 1 + number), 120)  # type: ignore[misc]
                for role in roles:
                    replica.kill(role)
                before = begun()
                replica.run("start")
                wait_until(lambda before=before: begun() > before)  # type: ignore[misc]
        replica.run("clone", "--max-rate", "0")
        wait_cloned(replica)
    replica.wait_synced(source, 120)
    return said()


@on(suite="sqlite")
def test_it_goes_on_behind_the_last_chunk_that_was_read(
    mariadb: MariadbServer, replica: Replica, compare: Compare, request: pytest.FixtureRequest
) -> None:
    fill(mariadb)
    if request.node.callspec.params["compare"] == "postgresql":  # has no such date
        number = [*keys_of(mariadb)].index("a DATE PRIMARY KEY")
        mariadb.sql(f"DELETE FROM a_key.k{number} WHERE a = '2024-00-07'")
    replica.change_master(mariadb)
    found = goes_on(mariadb, replica)
    counts = [int(re.findall(r"afar\.t after (\d+) chunks", text)[0]) for text in found]
    assert len(counts) == 3 and counts[0] >= 1 and counts == sorted(counts)
    for name in ("kid", *(f"k{number}" for number in range(len(keys_of(mariadb))))):
        assert f"a_key.{name} after" in found[-1], name
    replica.run("verify")
    mariadb.sql("USE afar; UPDATE t SET v = 'last'; DELETE FROM n; ALTER TABLE t ADD z INT DEFAULT 3")
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "afar")
    assert replica.status()["Passed_Over_Errors"] == 0


@pytest.mark.torture
@pytest.mark.mysql
def test_from_a_mysql_with_gtids_it_goes_on_too(mysql: MysqlServer, replica: Replica) -> None:
    fill(mysql)
    replica.run("init")
    replica.change_master(mysql, "--master-auto-position", "1", "--get-master-public-key", "1")
    assert goes_on(mysql, replica)
    replica.run("verify")
    assert replica.status()["Passed_Over_Errors"] == 0
