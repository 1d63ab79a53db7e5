"""Names and rules that servers give to keys and columns by themselves: the target has the same, or the applier stops.

Each case once gave other rows than on the source, or a stop at each start.
"""

from __future__ import annotations

import pytest

from tests.stories.test_ddl_over_rows import KINDS, LONG, VENDORS, Outcome, ddl, outcomes, source

__all__ = ["ddl", "source"]  # fixtures

pytestmark = pytest.mark.slow
PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"
CHILD = "CREATE TABLE c (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE)"
ROWS = "INSERT INTO p VALUES (1),(2);INSERT INTO t VALUES (1,1),(2,2)"
LAX = "SET SESSION sql_mode=''\0"
OLD_DEFAULTS = f"SET SESSION explicit_defaults_for_timestamp=OFF\0{LAX}"

BOTH = {
    "a generated name follows its table": f"{PARENT};{CHILD};RENAME TABLE c TO t;{ROWS};"
    "ALTER TABLE t DROP FOREIGN KEY t_ibfk_1;DELETE FROM p WHERE id=1",
    "an engine without foreign keys": "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=MyISAM;"
    "CREATE TABLE t (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE) "
    f"ENGINE=MyISAM;{ROWS};INSERT INTO t VALUES (3,77);DELETE FROM p WHERE id=1",
    "a column that is SERIAL": "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (10),(20);"
    "ALTER TABLE t ADD n BIGINT UNSIGNED SERIAL DEFAULT VALUE",
    "labels that differ in case": "CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b','x') COLLATE utf8mb4_bin);"
    f"INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'x');{LAX}ALTER TABLE t MODIFY e ENUM('x','B','A','y') "
    "COLLATE utf8mb4_bin",
    "a TIMESTAMP with ON UPDATE": "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);"
    f"{OLD_DEFAULTS}ALTER TABLE t ADD u TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
    "a TIMESTAMP after one with NULL": "CREATE TABLE t (id INT PRIMARY KEY);INSERT INTO t VALUES (1);"
    f"{OLD_DEFAULTS}ALTER TABLE t ADD a TIMESTAMP NULL, ADD b TIMESTAMP",
    "a table that moves to the default database": "DROP DATABASE IF EXISTS ddl_other;CREATE DATABASE ddl_other;"
    "CREATE TABLE ddl_other.x (id INT PRIMARY KEY);INSERT INTO ddl_other.x VALUES (1);"
    "ALTER TABLE ddl_other.x RENAME TO t;INSERT INTO t VALUES (2);DROP DATABASE ddl_other",
}
OF_MARIADB = {
    "a name after FOREIGN KEY": f"{PARENT};CREATE TABLE t (id INT PRIMARY KEY, pid INT, "
    f"FOREIGN KEY mine (pid) REFERENCES p (id) ON DELETE CASCADE);{ROWS};ALTER TABLE t DROP FOREIGN KEY mine;"
    "DELETE FROM p WHERE id=1",
    "a foreign key that exists": f"{PARENT};CREATE TABLE t (id INT PRIMARY KEY, pid INT, "
    f"CONSTRAINT mine FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE);{ROWS};ALTER TABLE t ADD CONSTRAINT mine "
    "FOREIGN KEY IF NOT EXISTS (pid) REFERENCES p (id) ON DELETE SET NULL;DELETE FROM p WHERE id=1",
    "a key of a table with versions": "CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING;"
    "INSERT INTO t VALUES (1,1),(2,2);UPDATE t SET id=id+10;SET SESSION system_versioning_alter_history=KEEP\0"
    "ALTER TABLE t ADD UNIQUE KEY ua (a);UPDATE t SET id=id+10;UPDATE t SET id=id+10",
    "a version that refers to a row that is gone": f"{PARENT};CREATE TABLE t (id INT PRIMARY KEY, pid INT, "
    f"FOREIGN KEY (pid) REFERENCES p (id)) WITH SYSTEM VERSIONING;{ROWS};DELETE FROM t WHERE id=1;"
    "DELETE FROM p WHERE id=1",
    "an action without a row of a table with versions": f"{PARENT};CREATE TABLE t (id INT PRIMARY KEY, pid INT, "
    f"FOREIGN KEY (pid) REFERENCES p (id) ON DELETE CASCADE) WITH SYSTEM VERSIONING;{ROWS};INSERT INTO p VALUES (3);"
    "DELETE FROM t WHERE id=1;DELETE FROM p WHERE id<>2",
    "a column that an expression reads": "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT AS (a + 1) STORED);"
    "INSERT INTO t (id, a) VALUES (1,10),(2,20);ALTER TABLE t CHANGE a b INT, ADD a INT NOT NULL DEFAULT 100",
}
OF_MYSQL = {
    "columns that swap their names": "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, g INT AS (a * 10) STORED);"
    "INSERT INTO t (id, a, b) VALUES (1,1,2),(2,3,4);"
    "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, MODIFY g INT AS (a * 10) STORED",
}
STOPPED = {  # MariaDB has no NOT NULL for computed columns
    "NULL in a computed column": "CREATE TABLE t (id INT PRIMARY KEY, a INT);INSERT INTO t VALUES (1,5),(2,NULL);"
    f"{LAX}ALTER TABLE t ADD g INT AS (a + 1) STORED NOT NULL",
    "NULL in a computed default": "CREATE TABLE t (id INT PRIMARY KEY, a INT);INSERT INTO t VALUES (1,5),(2,NULL);"
    f"{LAX}ALTER TABLE t ADD c INT NOT NULL DEFAULT (a)",
}


@LONG
@VENDORS
@KINDS
def test_names_and_rules_of_the_server_give_the_sources_rows(
    ddl: Outcome, vendor: str, request: pytest.FixtureRequest
) -> None:
    cases = {**BOTH, **(OF_MARIADB if vendor == "mariadb" else OF_MYSQL)}
    assert outcomes(ddl, request, cases) == dict.fromkeys(cases, "equal")
    stopped = STOPPED if vendor == "mysql" else {"NULL in a computed default": STOPPED["NULL in a computed default"]}
    assert outcomes(ddl, request, stopped) == dict.fromkeys(stopped, "stopped")
