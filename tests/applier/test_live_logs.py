"""Logs of live servers that random tables, rows and ALTERs found to be applied wrongly once; each with its reason."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.neutral_state import differences, state_of
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow


def logged(source: MariadbServer, statements: str) -> Path:
    """The binary log of the statements, run in a new database `live`."""
    source.sql("DROP DATABASE IF EXISTS live; CREATE DATABASE live CHARACTER SET utf8mb4; FLUSH BINARY LOGS")
    path = source.binlog_files[-1]
    source.sql(statements, "live")
    return path


def differing(source: MariadbServer, folder: Path, path: Path) -> list[str]:
    """What differs on a new SQLite target."""
    log = groups_of(path)
    instance = Instance(folder, log)
    try:
        instance.apply(log)
    finally:
        instance.target.close()
    with closing(sqlite3.connect(folder / "target.db")) as target:
        return differences(target, "".join(state_of(source, ["live"])))


def carried_over(server: MariadbServer, folder: Path, *paths: Path, between: str = "DO 1") -> None:
    """Apply the logs on the server that wrote them, as database `copy`; `between` them a statement."""
    logs = [groups_of(Path(shutil.copy(path, folder / path.name))) for path in paths]  # the server goes on logging
    server.sql("DROP DATABASE IF EXISTS copy; DROP DATABASE IF EXISTS rplctl")
    server.sql("CREATE DATABASE rplctl; CREATE DATABASE copy CHARACTER SET utf8mb4")
    instance = Instance(folder, logs[0], target=server.url(), replicate_rewrite_db="live->copy")
    try:
        instance.apply(logs[0])
        server.sql(between)
        for log in logs[1:]:
            instance.apply(log)
    finally:
        instance.target.close()
        server.sql("DROP DATABASE rplctl")


def test_rows_that_an_alter_gave_no_geometry_can_be_changed(mariadb: MariadbServer, tmp_path: Path) -> None:
    """They hold '', which no statement can write."""
    path = logged(
        mariadb,
        "CREATE TABLE k (id INT PRIMARY KEY, n INT); CREATE TABLE t (id INT, n INT);"
        "INSERT INTO k VALUES (1, 1), (2, 2); INSERT INTO t VALUES (1, 1), (2, 2); SET sql_mode='';"
        "ALTER TABLE k ADD g GEOMETRY NOT NULL; ALTER TABLE t ADD g POINT NOT NULL; UPDATE k SET n=9; UPDATE t SET n=9;"
        "UPDATE k SET g=POINT(1, 1) WHERE id=2; DELETE FROM t WHERE id=1",
    )
    carried_over(mariadb, tmp_path, path)
    for table in ("k", "t"):
        shown = f"SELECT id, n, HEX(g) FROM {{}}.{table} ORDER BY id"
        assert mariadb.sql(shown.format("copy")) == mariadb.sql(shown.format("live"))
        assert mariadb.sql(f"SELECT COUNT(*) FROM copy.{table} WHERE g=''") == [(1,)]


def test_rows_of_a_table_without_transactions_are_written_once_when_a_group_behind_them_fails(
    mysql: MysqlServer, tmp_path: Path
) -> None:
    """Their batch is no bulk (a JSON diff); in order, it fails at the row that the target lacks."""
    first = logged(
        mysql,
        "CREATE TABLE m (v INT) ENGINE=MyISAM; CREATE TABLE t (id INT PRIMARY KEY, j JSON);"
        """INSERT INTO t VALUES (1, '{"a": 1, "b": "long enough"}'), (2, '{"a": 1, "b": "long enough"}');"""
        "FLUSH BINARY LOGS",
    )
    second = mysql.binlog_files[-1]
    mysql.sql(
        "SET binlog_row_value_options=PARTIAL_JSON, binlog_row_image=MINIMAL; INSERT INTO m VALUES (1);"
        "UPDATE t SET j=JSON_SET(j, '$.a', 2) WHERE id=1; UPDATE t SET j=JSON_SET(j, '$.a', 2) WHERE id=2",
        "live",
    )
    with pytest.raises(RplError) as caught:
        carried_over(mysql, tmp_path, first, second, between="DELETE FROM copy.t WHERE id=2")
    assert caught.value.errno == 1032
    assert mysql.sql("SELECT v FROM copy.m") == [(1,)]
    assert mysql.sql("SELECT CAST(j->'$.a' AS SIGNED) FROM copy.t") == [(2,)]


def test_rows_alike_but_for_their_documents_are_told_apart_where_there_is_no_key(
    mysql: MysqlServer, tmp_path: Path
) -> None:
    """In order, rows with JSON go to the server as events; a MySQL replica takes one for another or finds none."""
    path = logged(
        mysql,
        "CREATE TABLE k (c INT, n INT, j JSON, g POINT, UNIQUE KEY (c)); CREATE TABLE t (c INT, j JSON);"
        "INSERT INTO k VALUES (3, 1, '[1]', POINT(1, 1)); INSERT INTO t VALUES (NULL, '[1]'), (NULL, '[2]'), (1, NULL);"
        "SET binlog_row_value_options=PARTIAL_JSON;"
        "BEGIN; REPLACE INTO k VALUES (3, 2, '[2]', POINT(2, 2)), (3, 3, '[3]', NULL), (3, 3, '[4]', POINT(4, 4));"
        "SAVEPOINT s; UPDATE t SET j=JSON_REPLACE(j, '$[0]', 3 - j->'$[0]'); ROLLBACK TO s;"
        "UPDATE t SET j=JSON_REPLACE(j, '$[0]', 3 - j->'$[0]'); DELETE FROM t WHERE j->'$[0]'=1; COMMIT",
    )
    carried_over(mysql, tmp_path, path)
    assert mysql.sql("SELECT n, j, ST_AsText(g) FROM copy.k") == [(3, "[4]", "POINT(4 4)")]
    assert mysql.sql("SELECT c, j FROM copy.t ORDER BY c") == [(None, "[2.0]"), (1, None)]


def test_alter_ignore_is_as_without_strict_mode_and_stops_where_it_removed_rows(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    strict = "SET sql_mode='STRICT_ALL_TABLES'; CREATE TABLE t (id INT, v VARCHAR(9) CHARACTER SET utf8mb4);"
    fits = strict + "INSERT INTO t VALUES (1, NULL), (2, 'abc'); ALTER IGNORE TABLE t MODIFY v VARCHAR(2) NOT NULL;"
    path = logged(mariadb, fits + "ALTER IGNORE TABLE t ADD UNIQUE (id); INSERT INTO t VALUES (3, 'c')")
    assert mariadb.sql("SELECT v FROM live.t ORDER BY id") == [("",), ("ab",), ("c",)]
    assert differing(mariadb, tmp_path / "fits", path) == []
    lost = (
        strict
        + "INSERT INTO t VALUES (1, 'é'), (2, '日'); ALTER IGNORE TABLE t MODIFY v VARCHAR(9) CHARACTER SET latin1"
    )
    path = logged(mariadb, lost)
    assert mariadb.sql("SELECT v FROM live.t ORDER BY id") == [("é",), ("?",)]
    assert differing(mariadb, tmp_path / "lost", path) == []
    path = logged(mariadb, strict + "INSERT INTO t VALUES (1, 'a'), (1, 'b'); ALTER IGNORE TABLE t ADD UNIQUE (id)")
    with pytest.raises(RplError, match="ALTER IGNORE TABLE removed rows") as caught:
        differing(mariadb, tmp_path / "removed", path)
    assert caught.value.errno == 1062 and "rplctl skip" in caught.value.hint


@pytest.mark.long("One such default stays.", keeps=r"RAND")
@pytest.mark.parametrize(
    "added", ["c BIGINT DEFAULT (NEXTVAL(s))", "c DOUBLE DEFAULT (RAND()), ADD d INT", "c INT AUTO_INCREMENT UNIQUE"]
)
def test_a_column_whose_values_only_the_source_knows_stops_where_there_are_rows(
    mariadb: MariadbServer, tmp_path: Path, added: str
) -> None:
    """A MariaDB replica goes on with other values than the source's."""
    create = "CREATE SEQUENCE s; CREATE TABLE {} (v INT); INSERT INTO {} VALUES (3), (1); {} ALTER TABLE {} ADD "
    path = logged(mariadb, create.format("t", "t", "DELETE FROM t;", "t") + added)
    carried_over(mariadb, tmp_path, path)
    path = logged(mariadb, create.format("t", "t", "", "t") + added)
    with pytest.raises(RplError, match="column 'c': existing rows .* only the source knows") as caught:
        carried_over(mariadb, tmp_path, path)
    assert caught.value.errno == 1846 and "rplctl skip" in caught.value.hint
    assert mariadb.sql("SELECT * FROM copy.t ORDER BY 1") == [(1,), (3,)]


@pytest.mark.parametrize("fails", [False, True])
def test_the_first_half_of_an_alter_is_not_executed_where_rows_before_it_go_in_order(
    mariadb: MariadbServer, tmp_path: Path, *, fails: bool
) -> None:
    """MariaDB logs START ALTER before it knows how the ALTER ends: with COMMIT ALTER or ROLLBACK ALTER. The rows before
    it cascade, so their batch is no bulk.
    """
    more = "INSERT INTO t VALUES (7, 1), (7, 2);" if fails else ""
    alter = "ALTER TABLE t ADD UNIQUE KEY (p)" if fails else "ALTER TABLE t ADD c INT DEFAULT 3 FIRST"
    path = logged(
        mariadb,
        "CREATE TABLE parent (id INT PRIMARY KEY);"
        "CREATE TABLE t (p INT, n INT, KEY (p), FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);"
        f"INSERT INTO parent VALUES (1), (2), (7); INSERT INTO t VALUES (1, 1), (2, 2); {more}"
        "DELETE FROM parent WHERE id=2",
    )
    with closing(mariadb.connect("live")) as session, session.cursor() as cursor:
        cursor.execute("SET binlog_alter_two_phase=1")
        try:
            cursor.execute(alter)
        except mariadb.errors as error:
            assert fails and error.args[0] == 1062
        cursor.execute("INSERT INTO t (p, n) VALUES (7, 3), (7, 4)")
    assert b"ALTER TABLE t ADD" in path.read_bytes()
    assert differing(mariadb, tmp_path, path) == []
