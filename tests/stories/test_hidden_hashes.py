"""MariaDB logs a hidden column of hashes for some unique keys: rows of such tables are applied, and equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.servers import MariadbServer
from tests.stories.test_ddl_over_rows import Outcome

pytestmark = pytest.mark.slow

TABLES = (
    "CREATE TABLE a (id INT PRIMARY KEY, t TEXT UNIQUE)",
    "CREATE TABLE b (id INT, j INT, t BLOB, UNIQUE (id) USING HASH, UNIQUE (j), UNIQUE (t))",
    "CREATE TABLE c (id INT PRIMARY KEY, t TEXT UNIQUE) WITH SYSTEM VERSIONING",
    "CREATE TABLE d (id INT PRIMARY KEY, v VARCHAR(3000) CHARACTER SET utf8mb4 UNIQUE)",
    "INSERT INTO a VALUES (1, 'x'), (2, NULL), (3, 'y')",
    "INSERT INTO b VALUES (1, 2, 'y'), (NULL, 3, NULL)",
    "INSERT INTO c VALUES (1, 'c')\0UPDATE c SET t='z'",
    "INSERT INTO d VALUES (1, 'd')",
    "ALTER TABLE a ADD n INT DEFAULT 3\0UPDATE a SET t='q' WHERE id=1",
    "SET binlog_row_image=MINIMAL\0UPDATE a SET t='r' WHERE id=1\0DELETE FROM a WHERE id=2",
    "UPDATE b SET t='n' WHERE id=1",
    "DELETE FROM b WHERE j=3",
)


@pytest.mark.long("Names of columns change nothing but the test; other targets repeat it.", keeps="sqlite-MINIMAL")
@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_rows_with_a_hidden_hash_are_applied(mariadb: MariadbServer, kind: str, metadata: str, tmp_path: Path) -> None:
    url = "" if kind == "sqlite" else kind
    before = mariadb.sql("SELECT @@GLOBAL.binlog_row_metadata")[0][0]
    mariadb.sql(f"SET GLOBAL binlog_row_metadata={metadata}")
    try:
        assert Outcome(mariadb, url, tmp_path).of(*TABLES) == "equal"
    finally:
        mariadb.sql(f"SET GLOBAL binlog_row_metadata={before}")
