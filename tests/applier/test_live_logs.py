"""Logs of live servers that random tables, rows and ALTERs found to be applied wrongly once; each with its reason."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.neutral_state import differences
from tests.record_fidelity import state_of
from tests.servers import MariadbServer

pytestmark = pytest.mark.slow


def logged(source: MariadbServer, statements: str) -> Path:
    """The binary log of the statements, run in a new database `live`."""
    source.sql("DROP DATABASE IF EXISTS live; FLUSH BINARY LOGS; CREATE DATABASE live CHARACTER SET utf8mb4")
    source.sql(statements, "live")
    return source.binlog_files[-1]


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
