"""DDL of one vendor on a server of the other: each form ends with equal rows, in the target's words."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pymysql
import pytest

from rplctl.errors import RplError
from rplctl.sql_text import proven_statement
from rplctl.target import open_target, statement_target
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer, MysqlServer
from tests.stories.test_cross_vendor import applied

pytestmark = pytest.mark.slow

T = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT); INSERT INTO t VALUES (1, 'x', 5), (2, 'Y', 7)"
MORE = "INSERT INTO t (id, a, b) VALUES (3, 'z', 9); UPDATE t SET b=b+1"
# of MySQL: name of the form → its statements; each ends with rows that follow
ONLY_MYSQL = {
    "a check that is dropped by its name": f"{T}; ALTER TABLE t ADD CONSTRAINT c CHECK (b>0);"
    "ALTER TABLE t DROP CHECK c",
    "checks without names": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) CHECK (a<>''), b INT, CHECK (b>0));"
    "ALTER TABLE t ADD d INT CHECK (d>1), ADD CHECK (d<9); ALTER TABLE t DROP CHECK t_chk_1, DROP CONSTRAINT t_chk_3;"
    "ALTER TABLE t DROP CHECK t_chk_4; ALTER TABLE t ADD CHECK (b<99); ALTER TABLE t DROP CHECK t_chk_3",
    "a check of a table that got another name": "CREATE TABLE s (id INT PRIMARY KEY, a VARCHAR(20), b INT,"
    "CHECK (b>0)); RENAME TABLE s TO t; ALTER TABLE t DROP CHECK t_chk_1",
    "a check that is not enforced": f"{T}; ALTER TABLE t ADD CONSTRAINT c CHECK (b>6) NOT ENFORCED, ADD d INT;"
    "ALTER TABLE t ALTER CHECK c NOT ENFORCED; ALTER TABLE t DROP CHECK c",
    "an index over an expression": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, KEY f ((LOWER(a))));"
    "ALTER TABLE t ADD UNIQUE g ((b+1)), ADD d INT; CREATE INDEX h ON t (b, (b*2)); ALTER TABLE t RENAME INDEX f TO f2;"
    "ALTER TABLE t DROP INDEX g, DROP KEY f2; DROP INDEX h ON t",
    "a parser (Wagtail)": f"{T}; ALTER TABLE t ADD FULLTEXT KEY f (a) WITH PARSER ngram;"
    "CREATE FULLTEXT INDEX g ON t (a) WITH PARSER ngram; DROP INDEX f ON t",
    "an invisible index": f"{T}; CREATE INDEX i ON t (b) INVISIBLE; ALTER TABLE t ALTER INDEX i VISIBLE;"
    "ALTER TABLE t ADD KEY j (a) INVISIBLE, ALTER INDEX i INVISIBLE",
    "an invisible column": f"SET sql_mode=''; {T}; ALTER TABLE t ADD d INT NOT NULL INVISIBLE, ADD e INT INVISIBLE;"
    "ALTER TABLE t ADD f INT VISIBLE;"
    "ALTER TABLE t ALTER COLUMN b SET INVISIBLE; ALTER TABLE t ALTER COLUMN b SET VISIBLE",
    "collations": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb4_0900_as_cs UNIQUE, b INT) "
    "DEFAULT CHARSET=utf8mb4; INSERT INTO t VALUES (11, 'a', 1), (12, 'A', 1), (13, 'a ', 1);"
    "ALTER TABLE t ADD d VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_es_0900_ai_ci;"
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin",
    "texts that differ by a space at the end": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) UNIQUE, b INT) "
    "CHARSET=utf8mb4; INSERT INTO t VALUES (11, 'a', 1), (12, 'a ', 1)",
    "a spatial reference system": f"{T}; ALTER TABLE t ADD g POINT SRID 4326, ADD h GEOMCOLLECTION;"
    "UPDATE t SET g=ST_SRID(POINT(1, 2), 4326)",
    "names that the target reserves": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, offset INT DEFAULT 4,"
    "CHECK (offset > 1)); ALTER TABLE t ADD returning INT, ADD KEY portion (offset); ALTER TABLE t DROP COLUMN offset",
    "a generated column": f"{T}; ALTER TABLE t ADD d INT GENERATED ALWAYS AS (b+1) STORED NOT NULL, "
    "ADD e INT AS (b*2) VIRTUAL NULL COMMENT 'x'",
    "members of documents": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, j JSON, k VARCHAR(9) "
    "AS (j->>'$.a'), l INT AS (JSON_EXTRACT(t.j, '$.b')) STORED, m VARCHAR(9) AS (`j`->\"$.a\") STORED);"
    'INSERT INTO t (id, j) VALUES (11, \'{"a": "x", "b": 2}\')',
    "functions that the target lacks": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, "
    "u BINARY(16) DEFAULT (UUID_TO_BIN(UUID())), CHECK (REGEXP_LIKE(a, '.')), v INT AS (REGEXP_LIKE(a, 'z')) STORED)",
    "algorithms and locks": f"{T}; ALTER TABLE t MODIFY b BIGINT, ALGORITHM=COPY; ALTER TABLE t ADD d INT, "
    "ALGORITHM=INSTANT; CREATE INDEX i ON t (b) ALGORITHM=INPLACE LOCK=NONE",
    "options of storage": "CREATE TABLE t (id INT PRIMARY KEY COLUMN_FORMAT FIXED STORAGE DISK, a VARCHAR(20) "
    "STORAGE MEMORY, b INT, KEY i (b)) ENGINE=InnoDB AUTOEXTEND_SIZE=4M;"
    "ALTER TABLE t COMPRESSION='none'; ANALYZE TABLE t UPDATE HISTOGRAM ON b",
    "databases": f"ALTER DATABASE crossed COLLATE utf8mb4_0900_as_cs ENCRYPTION='N'; {T}",
    "a check that is named as its column (MLflow)": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, "
    "status VARCHAR(20), CONSTRAINT status CHECK (status IN ('SCHEDULED', 'RUNNING'))); ALTER TABLE t ADD CHECK "
    "(status IN ('SCHEDULED', 'RUNNING', 'KILLED')); ALTER TABLE t DROP CHECK status",
    "a column with a check (django-oscar)": f"{T}; ALTER TABLE `t` ADD COLUMN `num_allocated` integer UNSIGNED NULL "
    "CHECK (`num_allocated` >= 0)",
    "a sequence of clauses in one statement": f"{T}; ALTER TABLE t ADD (d INT CHECK (d>1), e INT), ADD KEY k (e), "
    "DROP PRIMARY KEY, ADD PRIMARY KEY (id, b), ENGINE=InnoDB, COMMENT='x', ALGORITHM=COPY",
}
ONLY_MARIADB = {
    "IF EXISTS in clauses": f"{T}; ALTER TABLE t ADD COLUMN IF NOT EXISTS d INT, DROP COLUMN IF EXISTS zz;"
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS d INT; CREATE INDEX IF NOT EXISTS i ON t (b); CREATE INDEX IF NOT EXISTS i "
    "ON t (b); ALTER TABLE t DROP INDEX IF EXISTS i, DROP CONSTRAINT IF EXISTS zz; ALTER TABLE IF EXISTS zz ADD a INT;"
    "DROP INDEX IF EXISTS i ON t; ALTER TABLE t MODIFY IF EXISTS b BIGINT, MODIFY COLUMN IF EXISTS zz INT",
    "a table that is replaced": f"{T}; CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT)",
    "defaults": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) DEFAULT uuid(), b INT, c TEXT NOT NULL DEFAULT '', "
    "d DATE DEFAULT curdate(), e DATETIME DEFAULT current_timestamp())",
    "an ignored index": f"{T}; ALTER TABLE t ADD KEY i (b) IGNORED; ALTER TABLE t ALTER INDEX i NOT IGNORED",
    "options of storage": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) COMPRESSED, b INT, "
    "c INT AS (b+1) PERSISTENT) ENGINE=Aria PAGE_CHECKSUM=1 TRANSACTIONAL=1; ALTER TABLE t NOWAIT ADD d INT",
    "names that the target reserves": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT, rank INT, groups INT);"
    "ALTER TABLE t ADD KEY lead (rank)",
    "collations": f"{T}; ALTER TABLE t ADD d VARCHAR(9) COLLATE uca1400_as_cs, "
    "ADD e VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_spanish_ai_ci",
    "checks without names": "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT CHECK (b>0), CHECK (id>0));"
    "CREATE TABLE u (id INT PRIMARY KEY, CHECK (id>0)); ALTER TABLE t DROP CONSTRAINT CONSTRAINT_1",
    "a statement with a setting": f"{T}; SET STATEMENT max_statement_time=60 FOR ALTER ONLINE TABLE t ADD d INT",
}


def ends_equal(folder: Path, source: MariadbServer, target: MariadbServer, forms: dict[str, str]) -> None:
    """Each form, in a database of its own, ends with the source's rows."""
    wrong = {}
    for number, (name, statements) in enumerate(forms.items()):
        try:
            applied(folder / str(number), source, target, f"{statements}; {MORE}", 0)
            columns = source.sql("SHOW COLUMNS FROM crossed.t")
            shown = ", ".join(f"HEX(`{column}`)" for column, *_ in columns)
            rows = f"SELECT {shown} FROM crossed.t ORDER BY id"
            if not (wanted := source.sql(rows)) or target.sql(rows) != wanted:
                wrong[name] = f"{target.sql(rows)}, not {wanted}"
        except (RplError, pymysql.Error) as error:
            wrong[name] = str(error)
    assert wrong == {}


def test_forms_of_mysql_end_equal_on_mariadb(mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path) -> None:
    ends_equal(tmp_path, mysql, mariadb, ONLY_MYSQL)


@pytest.mark.long("test_forms_of_mysql_end_equal_on_mariadb edits statements in the same way.")
def test_forms_of_mariadb_end_equal_on_mysql(mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path) -> None:
    ends_equal(tmp_path, mariadb, mysql, ONLY_MARIADB)


def history_of(instance: Instance) -> str:
    """What `rplctl history` has to show, as text."""
    return "".join(path.read_text() for path in instance.config.datadir.rglob("*history*") if path.is_file())


def test_what_the_target_gets_is_said_and_what_it_does_not_get_stays_in_the_history(
    mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    statements = (
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) CHECK (a<>''), KEY f ((LOWER(a))), KEY i (a) INVISIBLE,"
        "FULLTEXT KEY p (a) WITH PARSER ngram); CREATE VIEW v AS SELECT a MEMBER OF('[1]') m FROM t; DROP VIEW v;"
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET @x = NEW.a MEMBER OF('[1]'); DROP TRIGGER r"
    )
    instance = applied(tmp_path, mysql, mariadb, statements, 0)
    printed = str(mariadb.sql("SHOW CREATE TABLE crossed.t")[0][1])
    assert "CONSTRAINT `t_chk_1` CHECK (`a` <> '')" in printed
    assert "KEY `i` (`a`) IGNORED" in printed and "FULLTEXT KEY `p` (`a`)" in printed and "KEY `f`" not in printed
    history = history_of(instance)
    for part in ("KEY f ((LOWER(a)))", "WITH PARSER ngram", "VIEW `v` AS", "DROP VIEW v", "TRIGGER r"):
        assert part in history


def test_a_table_with_an_index_over_an_expression_is_copied_without_it(
    mariadb: MariadbServer, mysql: MysqlServer, caplog: pytest.LogCaptureFixture
) -> None:
    for server in (mariadb, mysql):
        server.sql("DROP DATABASE IF EXISTS printed; CREATE DATABASE printed")
    mysql.sql(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb4_0900_as_cs, j JSON, offset INT INVISIBLE, "
        "g INT AS (j->'$.x') STORED, KEY f ((LOWER(a))), UNIQUE u ((id + 1)), KEY i (a) INVISIBLE, "
        "CHECK (a <> _latin1'x'))",
        "printed",
    )
    text = str(mysql.sql("SHOW CREATE TABLE t", "printed")[0][1])
    with closing(open_target(mariadb.url())) as target:
        server_target = statement_target(target)
        assert server_target is not None
        server_target.make_tables([proven_statement("USE printed"), proven_statement(text)])
    printed = str(mariadb.sql("SHOW CREATE TABLE t", "printed")[0][1])
    assert [row[0] for row in mariadb.sql("SHOW COLUMNS FROM t", "printed")] == ["id", "a", "j", "offset", "g"]
    assert "KEY `i`" in printed and "`f`" not in printed and "`u`" not in printed
    assert "KEY `f`" in caplog.text and "KEY `u`" in caplog.text
