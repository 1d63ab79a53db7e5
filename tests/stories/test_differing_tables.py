"""Tables that are not quite the source's, beside a real MariaDB replica: more columns at the end, fewer, other names.

The same backlog on a server that replicates by itself (CHANGE MASTER) and through rplctl, row by row and in bulk: the
same tables afterwards, or the same error. (Manual: "Replication with More Columns on Source or Replica"; design D2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer

pytestmark = pytest.mark.slow

KEYED = "id INT PRIMARY KEY, v INT, w VARCHAR(20)"
# table → columns on the source, what differs on the replica
TABLES = {
    "with_default": (KEYED, "ADD extra INT DEFAULT 7, ADD note VARCHAR(10) NOT NULL DEFAULT 'n'"),
    "with_null": (KEYED, "ADD extra INT, ADD t TEXT"),
    "no_default": (KEYED, "ADD extra INT NOT NULL, ADD s CHAR(5) NOT NULL, ADD e ENUM('a','b') NOT NULL, "
                   "ADD d DATE NOT NULL, ADD f DECIMAL(5,2) NOT NULL, ADD x BLOB NOT NULL"),
    "on_update": (KEYED, "ADD extra INT DEFAULT 1, ADD ts TIMESTAMP(6) NULL DEFAULT '2000-01-01' "
                  "ON UPDATE CURRENT_TIMESTAMP(6), ADD dt DATETIME NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"),
    "computed": (KEYED, "ADD g INT AS (v*2) STORED, ADD extra INT DEFAULT 3"),
    "own_unique": (KEYED, "ADD extra INT DEFAULT NULL UNIQUE"),
    "swapped": ("id INT PRIMARY KEY, v INT UNIQUE, w VARCHAR(20)", "ADD extra INT DEFAULT 2"),
    "parent": (KEYED, "ADD extra INT DEFAULT 2"),
    "fewer": ("id INT PRIMARY KEY, v INT, w VARCHAR(20), b BLOB, j ENUM('p','q')", "DROP w, DROP b, DROP j"),
    "fewer_json": ("id INT PRIMARY KEY, v INT, w VARCHAR(20), j JSON", "DROP j"),
    "key_is_gone": ("a INT, v INT, w VARCHAR(20), id INT PRIMARY KEY", "DROP id"),
    "keyless": ("id INT, v INT, w VARCHAR(20)", "ADD extra INT DEFAULT 7"),
    "keyless_fewer": ("id INT, v INT, w VARCHAR(20)", "DROP w"),
    "renamed": (KEYED, "CHANGE v other INT, ADD extra INT DEFAULT 7"),
}  # fmt: skip
ROWS = 60  # of each table; a backlog of BULK changes at once is loaded, not sent row by row
BULK = 400


def filled(name: str, first: int, count: int) -> str:
    columns = TABLES[name][0].split(", ")
    cells = ["seq", "seq * 10", "CONCAT('w', seq)", "'[1]'" if "JSON" in columns[-1] else "seq", "'p'"]
    return f"INSERT INTO {name} SELECT {', '.join(cells[: len(columns)])} FROM seq_{first}_to_{first + count - 1}"


def changes(name: str, image: str) -> Iterator[str]:
    key = TABLES[name][0].split()[0]
    fresh = 1000 if image == "FULL" else 5000
    yield f"SET binlog_row_image={image}"
    yield filled(name, fresh, 3)
    yield f"UPDATE {name} SET v=v+1 WHERE {key} IN (1, 2, {fresh})"
    yield f"UPDATE {name} SET {key}=700 WHERE {key}=3"
    yield f"DELETE FROM {name} WHERE {key}=4"
    yield f"BEGIN; DELETE FROM {name} WHERE {key}=5; {filled(name, 5, 1)}; COMMIT"
    yield f"BEGIN; UPDATE {name} SET {key}=800 WHERE {key}=6; UPDATE {name} SET v=0 WHERE {key}=800; COMMIT"
    yield f"BEGIN; {filled(name, fresh + 10, 1)}; DELETE FROM {name} WHERE {key}={fresh + 10}; COMMIT"
    if name == "swapped":
        yield "BEGIN; UPDATE swapped SET v=-1 WHERE id=7; UPDATE swapped SET v=70 WHERE id=8; COMMIT"
        yield "UPDATE swapped SET v=80 WHERE id=7"


def many(name: str) -> str:
    key = TABLES[name][0].split()[0]
    if name == "swapped":  # every row takes what another one has
        return f"UPDATE {name} SET v=v+10 WHERE {key} >= 2000 ORDER BY {key} DESC"
    return f"UPDATE {name} SET v=-v-1 WHERE {key} >= 2000"


@dataclass
class Beside:
    source: MariadbServer
    server: MariadbServer  # replicates by itself
    target: MariadbServer
    instance: Instance

    def play(self, statements: Iterator[str]) -> list[tuple[int, str]]:
        """One binary log of them, applied by both; the errors both end with."""
        self.source.sql("FLUSH BINARY LOGS")
        with closing(self.source.connect("d")) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
                while cursor.nextset():
                    pass
        return [self._server_error(), self._own_error()]

    def _server_error(self) -> tuple[int, str]:
        self.server.sql("START SLAVE")
        wait_until(lambda: self._status()["Last_SQL_Errno"] or self._at() == self.source.master_status())
        self.server.sql("STOP SLAVE")
        status = self._status()
        return status["Last_SQL_Errno"], status["Last_SQL_Error"]

    def _at(self) -> tuple[str, int]:
        status = self._status()
        return status["Relay_Master_Log_File"], status["Exec_Master_Log_Pos"]

    def _status(self) -> dict[str, Any]:
        with closing(self.server.connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            row = cursor.fetchone()
            assert row is not None and cursor.description is not None
            return dict(zip((column[0] for column in cursor.description), row, strict=True))

    def _own_error(self) -> tuple[int, str]:
        try:
            self.instance.apply(groups_of(self.source.binlog_files[-1]))
        except RplError as error:
            return error.errno, error.message
        return 0, ""

    def pass_over(self) -> None:
        name, position = self.source.master_status()
        self.server.sql(f"CHANGE MASTER TO MASTER_LOG_FILE='{name}', MASTER_LOG_POS={position}")

    def loads(self) -> int:
        """Statements for many rows that the target has executed: LOAD DATA, prepared ones."""
        counts = self.target.sql("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_load', 'Com_stmt_execute')")
        return sum(int(count) for _, count in counts)

    def on_both(self, sql: str) -> None:
        self.server.sql(f"SET sql_log_bin=0; {sql}")
        self.target.sql(sql)

    def differing(self) -> list[str]:
        both = ((name, self.server.rows("d", name), self.target.rows("d", name)) for name in TABLES)
        return [f"{name}: {a} / {b}" for name, a, b in both if sorted(a, key=repr) != sorted(b, key=repr)]


@pytest.fixture(scope="module")
def beside(mariadb_factory: Callable[..., MariadbServer], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    source, server, target = (mariadb_factory() for _ in range(3))
    target.sql("CREATE DATABASE rplctl")
    server.sql(
        f"CHANGE MASTER TO MASTER_CONNECT_RETRY=1, "
        f"MASTER_HOST='{source.host}', MASTER_PORT={source.port}, MASTER_USER='rpl',"
        " MASTER_PASSWORD='rpl', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4"
    )
    source.sql("CREATE DATABASE d")
    folder = tmp_path_factory.mktemp("differing")
    instance = Instance(folder, groups_of(source.binlog_files[-1]), target=target.url())
    made = Beside(source, server, target, instance)
    made.instance.apply(groups_of(source.binlog_files[-1]))
    creates = (f"CREATE TABLE {name} ({columns})" for name, (columns, _) in TABLES.items())
    child = "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id))"
    fills = (filled(name, 1, ROWS) for name in TABLES)
    assert made.play(iter([*creates, child, *fills])) == [(0, ""), (0, "")]
    for name, (_, difference) in TABLES.items():
        made.on_both(f"ALTER TABLE d.{name} {difference}")
        if " extra " in difference and name != "keyless":  # there MariaDB's own replica finds only defaults
            made.on_both(f"UPDATE d.{name} SET extra={TABLES[name][0].split()[0]} + 10000")
    made.on_both("UPDATE d.on_update SET ts='2010-01-01', dt='2011-01-01'")
    # a channel that comes to tables as they are now
    made.instance.applier = made.instance.reopen()
    assert made.differing() == []
    yield made
    instance.target.close()


@pytest.mark.long("MINIMAL images, which say least, stay in make test.", keeps=r"^MINIMAL$")
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_columns_that_only_one_side_has_are_what_a_replica_makes_of_them(beside: Beside, image: str) -> None:
    names = [name for name in TABLES if (name, image) != ("key_is_gone", "MINIMAL")]
    statements = [text for name in names for text in changes(name, image)]
    assert beside.play(iter(statements)) == [(0, ""), (0, "")]
    assert beside.differing() == []


@pytest.mark.long("test_columns_that_only_one_side_has_are_what_a_replica_makes_of_them holds the columns.")
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_a_row_that_moves_keeps_them_and_one_that_comes_again_does_not(beside: Beside, image: str) -> None:
    """Net changes of a batch that nothing else makes go in order."""
    row, far = (11, 7100) if image == "FULL" else (12, 7200)
    setting = f"SET binlog_row_image={image}"
    moved = [f"UPDATE with_default SET id={far} WHERE id={row}", f"UPDATE with_default SET v=1 WHERE id={far}"]
    again = [f"DELETE FROM with_default WHERE id={far}", f"INSERT INTO with_default VALUES ({far}, 5, 'again')"]
    assert beside.play(iter([setting, *moved])) == [(0, ""), (0, "")]
    assert beside.target.sql(f"SELECT v, extra FROM d.with_default WHERE id={far}") == [(1, row + 10000)]
    assert beside.differing() == []
    assert beside.play(iter([setting, *again])) == [(0, ""), (0, "")]
    assert beside.target.sql(f"SELECT v, extra FROM d.with_default WHERE id={far}") == [(5, 7)]
    assert beside.differing() == []


@pytest.mark.long("test_columns_that_only_one_side_has_are_what_a_replica_makes_of_them holds the columns.")
def test_many_rows_leave_the_replicas_own_columns_alone(beside: Beside) -> None:
    names = [name for name in TABLES if "keyless" not in name and name != "key_is_gone"]
    loaded = beside.loads()
    assert beside.play(filled(name, 2000, BULK) for name in names) == [(0, ""), (0, "")]
    assert beside.loads() - loaded == len(names)
    extra = [name for name in names if " extra " in TABLES[name][1]]
    for name in extra:
        beside.on_both(f"UPDATE d.{name} SET extra=id + 30000")
    beside.on_both("UPDATE d.on_update SET ts='2012-01-01', dt='2013-01-01'")
    loaded = beside.loads()
    names.remove("swapped")  # makes the whole batch go in order
    assert beside.play(map(many, names)) == [(0, ""), (0, "")]
    assert beside.loads() - loaded == len(names)
    assert beside.play(iter([many("swapped")])) == [(0, ""), (0, "")]
    assert beside.differing() == []
    gone = (
        f"DELETE FROM {name} WHERE {TABLES[name][0].split()[0]} BETWEEN 2000 AND {2000 + BULK - 50}" for name in names
    )
    assert beside.play(gone) == [(0, ""), (0, "")]
    assert beside.differing() == []


def test_the_replicas_own_values_and_keys_do_not_hide_a_row_from_the_source(beside: Beside) -> None:
    """As MySQL's replica finds it; MariaDB's stops with 1032."""
    creates = ["CREATE TABLE logged (a INT, b TEXT)", "INSERT INTO logged VALUES (1, 'x'), (2, 'y'), (2, 'y')"]
    assert beside.play(iter(creates)) == [(0, ""), (0, "")]
    beside.target.sql("ALTER TABLE d.logged ADD id BIGINT AUTO_INCREMENT PRIMARY KEY, ADD note TEXT DEFAULT 'none'")
    beside.target.sql("UPDATE d.logged SET note='mine'")
    changed = [
        "UPDATE logged SET b='z' WHERE a=1",
        "DELETE FROM logged WHERE a=2 LIMIT 1",
        "INSERT INTO logged VALUES (3, NULL)",
    ]
    assert beside.play(iter(changed))[1] == (0, "")
    rows = beside.target.sql("SELECT a, b, note FROM d.logged ORDER BY id")
    assert rows == [(1, "z", "mine"), (2, "y", "mine"), (3, None, "none")]
    beside.pass_over()


@pytest.mark.long("The invalid value of an ENUM is rare.")
@pytest.mark.parametrize("bad", [1, BULK])
def test_enums_invalid_value_arrives_as_it_is_however_many_rows_have_it(beside: Beside, bad: int) -> None:
    """LOAD DATA warns of it, so such a batch goes in order; strict mode rests for these rows only."""
    statements = [
        "SET sql_mode=''",
        "CREATE OR REPLACE TABLE invalid (id INT PRIMARY KEY, e ENUM('a','','c'), f ENUM('x') NOT NULL, v VARCHAR(9))",
        f"INSERT INTO invalid SELECT seq, IF(seq <= {bad}, 'none', 'c'), 'no', seq FROM seq_1_to_{BULK}",
        "UPDATE invalid SET e=IF(id % 2, '', 'wrong'), v='changed' WHERE id > 100",
        "DELETE FROM invalid WHERE id=7",
        "UPDATE invalid SET id=-id WHERE id > 390",
    ]
    assert beside.play(iter(statements)) == [(0, ""), (0, "")]
    exact = "SELECT id, e+0, f+0, v FROM d.invalid ORDER BY id"
    assert beside.target.sql(exact) == beside.source.sql(exact) == beside.server.sql(exact)
    assert {row[1] for row in beside.target.sql(exact)} == ({0, 2, 3} if bad == 1 else {0, 2})


@pytest.mark.parametrize(
    "difference",
    ["ADD x VARCHAR(10) AFTER id", "MODIFY v BIGINT", "MODIFY w INT", "MODIFY v VARCHAR(20)"],
)
def test_columns_that_cannot_be_matched_stop_with_the_number_a_replica_stops_with(
    beside: Beside, difference: str
) -> None:
    assert beside.play(iter([f"CREATE OR REPLACE TABLE misfit ({KEYED})"])) == [(0, ""), (0, "")]
    beside.on_both(f"ALTER TABLE d.misfit {difference}")
    server, own = beside.play(iter(["INSERT INTO misfit VALUES (1, 2, 'w')"]))
    beside.pass_over()
    assert server[0] == own[0] == 1677
    assert beside.server.rows("d", "misfit") == beside.target.rows("d", "misfit") == []


@pytest.mark.parametrize(
    "difference",
    ["MODIFY d DECIMAL(10,2)", "MODIFY m DATETIME", "MODIFY t TIME", "MODIFY s TIMESTAMP NULL",
     "MODIFY w CHAR(20)", "MODIFY w BINARY(20)"],
)  # fmt: skip
@pytest.mark.parametrize("count", [1, BULK])
def test_columns_of_which_the_target_would_lose_digits_or_blanks_stop_as_a_replica_does(
    beside: Beside, difference: str, count: int
) -> None:
    """A server in strict mode stores such values with a note only."""
    columns = "id INT PRIMARY KEY, d DECIMAL(10,5), m DATETIME(6), t TIME(3), s TIMESTAMP(1) NULL, w VARCHAR(20)"
    assert beside.play(iter([f"CREATE OR REPLACE TABLE narrow ({columns})"])) == [(0, ""), (0, "")]
    beside.on_both(f"ALTER TABLE d.narrow {difference}")
    row = "seq, 1.23456, '2024-12-31 23:59:59.999999', '10:00:00.555', '2024-01-01 00:00:00.5', 'abc   '"
    server, own = beside.play(iter([f"INSERT INTO narrow SELECT {row} FROM seq_1_to_{count}"]))
    beside.pass_over()
    assert server[0] == own[0] == 1677
    assert beside.server.rows("d", "narrow") == beside.target.rows("d", "narrow") == []


def test_an_image_of_nothing_that_the_target_has_finds_no_row(beside: Beside) -> None:
    """A MINIMAL image of a key that is gone on the replica."""
    failed = beside.play(iter(["SET binlog_row_image=MINIMAL", "DELETE FROM key_is_gone WHERE id=10"]))
    beside.pass_over()
    assert [number for number, _ in failed] == [1032, 1032]
    assert beside.differing() == []


def test_columns_in_another_order_stop_where_names_are_logged(beside: Beside) -> None:
    """A replica of the servers' own would put each into the other."""
    assert beside.play(iter(["CREATE TABLE turned (id INT PRIMARY KEY, a INT, b INT)"])) == [(0, ""), (0, "")]
    beside.on_both("ALTER TABLE d.turned MODIFY b INT AFTER id")
    server, own = beside.play(iter(["INSERT INTO turned VALUES (1, 2, 3)"]))
    assert server[0] == 0
    assert own[0] == 1677 and "(id, a, b)" in own[1] and "(id, b, a)" in own[1]
