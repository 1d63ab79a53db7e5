"""A transaction whose rows ran partly with foreign_key_checks and partly without gives what it gave on the source."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pymysql
import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.servers import MariadbServer, PostgresqlServer

SQL = """
DROP DATABASE IF EXISTS {0};
CREATE DATABASE {0};
USE {0};
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE
  ON UPDATE CASCADE);
CREATE TABLE grandchild (id INT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES child (id) ON DELETE SET NULL);
CREATE TABLE journal (id INT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO parent VALUES (1,1),(2,2),(3,3),(4,4),(5,5),(6,6),(7,7),(8,8),(9,9);
INSERT INTO child VALUES (10,1),(20,2),(30,3),(40,4),(50,5),(60,6),(71,7),(80,8),(90,9);
INSERT INTO grandchild VALUES (71,71),(80,80),(90,90),(100,10),(200,20),(300,30),(400,40),(500,50),(600,60);
BEGIN;
DELETE FROM parent WHERE id=1;
SET foreign_key_checks=0;
DELETE FROM parent WHERE id=2;
INSERT INTO child VALUES (99,999);
SET foreign_key_checks=1;
UPDATE parent SET id=33 WHERE id=3;
SET foreign_key_checks=0;
UPDATE parent SET id=44 WHERE id=4;
SET foreign_key_checks=1;
COMMIT;
BEGIN;
SAVEPOINT here;
DELETE FROM parent WHERE id=7;
INSERT INTO journal VALUES (1);
ROLLBACK TO here;
SET foreign_key_checks=0;
DELETE FROM parent WHERE id=8;
SET foreign_key_checks=1;
DELETE FROM parent WHERE id=9;
COMMIT;
XA START '{0}';
SET foreign_key_checks=0;
DELETE FROM parent WHERE id=5;
SET foreign_key_checks=1;
DELETE FROM parent WHERE id=6;
XA END '{0}';
XA PREPARE '{0}';
XA COMMIT '{0}';
INSERT INTO child VALUES (70,33);
DELETE FROM parent WHERE id=33
"""
TABLES = ("parent", "child", "grandchild")
GENERATED = """
DROP DATABASE IF EXISTS {0};
CREATE DATABASE {0};
USE {0};
SET binlog_row_image=MINIMAL;
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, pid INT, j JSON, g INT AS (pid * 2 - 1) VIRTUAL, UNIQUE KEY (pid),
  FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE TABLE grandchild (n INT, cid INT, j JSON, g INT AS (cid) VIRTUAL, h INT AS (n) VIRTUAL,
  FOREIGN KEY (cid) REFERENCES child (pid) ON DELETE CASCADE ON UPDATE CASCADE);
INSERT INTO parent VALUES (1,1),(2,2),(3,3),(4,4);
INSERT INTO child (id, pid, j) VALUES (10,1,'[1]'),(20,2,'[2]'),(30,3,NULL);
INSERT INTO grandchild (n, cid, j) VALUES (1,1,'[1]'),(2,2,'[2]'),(3,3,'[3]'),(3,3,'[3]');
UPDATE parent SET id=11, n=n+1 WHERE id=1;
UPDATE grandchild SET j='[11]' WHERE cid=11;
BEGIN;
UPDATE parent SET id=id+20 WHERE id IN (2, 3);
UPDATE grandchild SET j='[22]' WHERE n=2;
DELETE FROM grandchild WHERE n=3 LIMIT 1;
DELETE FROM parent WHERE id=23;
COMMIT;
UPDATE child SET j='[]' WHERE id=30;
UPDATE parent SET n=99
"""

PREPARED = """
DROP DATABASE IF EXISTS {0};
CREATE DATABASE {0};
USE {0};
CREATE TABLE parent (id INT PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE grandchild (id INT PRIMARY KEY, cid INT, FOREIGN KEY (cid) REFERENCES child (id) ON UPDATE CASCADE
  ON DELETE CASCADE);
CREATE TABLE fired (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id));
{1}
INSERT INTO parent VALUES (1),(2),(3),(4);
INSERT INTO child VALUES (30,3),(40,3),(50,3);
INSERT INTO grandchild VALUES (300,30),(400,40),(500,50);
INSERT INTO fired VALUES (1,3);
XA START '{0}';
INSERT INTO child VALUES (10,1);
INSERT INTO fired VALUES (2,2);
UPDATE grandchild SET cid=50 WHERE id=300;
UPDATE fired SET pid=4 WHERE id=1;
UPDATE child SET id=41 WHERE id=40;
DELETE FROM child WHERE id=30;
XA END '{0}';
XA PREPARE '{0}';
"""


@pytest.fixture
def target_url(
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> str:
    if request.param in ("sqlite", "duckdb"):
        return f"{request.param}:///{tmp_path / 'target.db'}"
    if request.param == "postgresql":
        postgresql: PostgresqlServer = request.getfixturevalue("postgresql")
        return new_database(postgresql)
    factory: Callable[..., MariadbServer] = request.getfixturevalue("mariadb_factory")
    return factory().url()


@pytest.mark.long("Two kinds of target stay in make test.", keeps=r"sqlite|postgresql")
@pytest.mark.parametrize("target_url", ["sqlite", "duckdb", "postgresql", "mariadb"], indirect=True)
def test_the_target_has_what_the_source_has(mariadb: MariadbServer, target_url: str, tmp_path: Path) -> None:
    name = f"mixed_{target_url.split(':')[0].split('+')[0]}"
    mariadb.sql("FLUSH BINARY LOGS")
    mariadb.sql(SQL.format(name))
    mariadb.sql("FLUSH BINARY LOGS")
    groups = groups_of(mariadb.binlog_files[-2])
    instance = Instance(tmp_path / "replica", groups, target=target_url)
    instance.apply(groups)
    for table in TABLES:
        expected = sorted(mariadb.rows(name, table), key=repr)
        there = f"{name}__{table}" if target_url.startswith("sqlite") else f"{name}.{table}"
        assert sorted(instance.query(f"SELECT * FROM {there}"), key=repr) == expected
    assert instance.query(f"SELECT * FROM {there} WHERE cid IS NOT NULL ORDER BY id") == [
        (71, 71), (80, 80), (200, 20), (400, 40), (500, 50)
    ]  # fmt: skip
    instance.target.close()


@pytest.mark.long("SQLite stays in make test.", keeps=r"^sqlite")
@pytest.mark.parametrize("target_url", ["sqlite", "duckdb", "postgresql", "mariadb"], indirect=True)
def test_rows_whose_parents_went_while_they_were_prepared_are_applied(
    mariadb: MariadbServer, target_url: str, tmp_path: Path
) -> None:
    """As on a MariaDB replica: XA PREPARE ends the locks on parents, and XA COMMIT does not look for them again."""
    name = f"prepared_{target_url.split(':')[0].split('+')[0]}"
    mariadb.sql("FLUSH BINARY LOGS")
    trigger = "CREATE TRIGGER fires AFTER INSERT ON fired FOR EACH ROW SET @fired=1;"  # there the server applies rows
    mariadb.sql(PREPARED.format(name, trigger if name.endswith("mysql") else ""))  # its connection ends
    mariadb.sql(f"SET foreign_key_checks=0; DELETE FROM {name}.parent WHERE id IN (1, 2, 4)")
    deadline = time.monotonic() + 600
    while True:  # 1397 until the connection that prepared it is gone
        try:
            mariadb.sql(f"XA COMMIT '{name}'")
            break
        except pymysql.Error as error:
            if error.args[0] != 1397 or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    mariadb.sql(f"INSERT INTO {name}.child VALUES (80,3)")
    groups = groups_of(mariadb.binlog_files[-1])
    instance = Instance(tmp_path / "replica", groups, target=target_url)
    instance.apply(groups)
    for table in ("parent", "child", "grandchild", "fired"):
        there = f"{name}__{table}" if target_url.startswith("sqlite") else f"{name}.{table}"
        assert sorted(instance.query(f"SELECT * FROM {there}")) == sorted(mariadb.rows(name, table))
    assert (10, 1) in instance.query(f"SELECT * FROM {there.replace('fired', 'child')}")
    instance.target.close()


@pytest.mark.long("SQLite stays in make test.", keeps=r"^sqlite")
@pytest.mark.parametrize("target_url", ["sqlite", "duckdb", "postgresql"], indirect=True)
def test_generated_columns_follow_what_foreign_keys_change(
    mariadb: MariadbServer, target_url: str, tmp_path: Path
) -> None:
    """Virtual columns over a foreign key's: MariaDB logs nothing of them where the key acts."""
    name = f"generated_{target_url.split(':')[0].split('+')[0]}"
    mariadb.sql("FLUSH BINARY LOGS")
    mariadb.sql(GENERATED.format(name))
    groups = groups_of(mariadb.binlog_files[-1])
    instance = Instance(tmp_path / "replica", groups, target=target_url)
    instance.apply(groups)
    for table, columns in {"parent": "id, n", "child": "id, pid, g", "grandchild": "n, cid, g, h"}.items():
        expected = [
            tuple(None if value is None else int(value) for value in row)
            for row in mariadb.sql(f"SELECT {columns} FROM {name}.{table}")
        ]
        there = f"{name}__{table}" if target_url.startswith("sqlite") else f"{name}.{table}"
        assert sorted(instance.query(f"SELECT {columns} FROM {there}"), key=repr) == sorted(expected, key=repr)
    instance.target.close()


WITHOUT_KEY = """
DROP DATABASE IF EXISTS {0};
CREATE DATABASE {0};
USE {0};
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE plain (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES parent (id));
INSERT INTO parent VALUES (1,1),(2,2),(3,3),(4,4);
INSERT INTO plain VALUES (1,1);
ALTER TABLE parent ADD KEY (id), DROP PRIMARY KEY, ADD PRIMARY KEY (n);
INSERT INTO parent VALUES (5,5);
INSERT INTO plain VALUES (5,5);
DELETE FROM parent WHERE n=4;
INSERT INTO child VALUES (30,3);
UPDATE parent SET n=22 WHERE n=2;
DELETE FROM parent WHERE n=3;
"""


@pytest.mark.long("SQLite stays in make test.", keeps=r"^sqlite")
@pytest.mark.parametrize("target_url", ["sqlite", "duckdb", "postgresql"], indirect=True)
def test_a_foreign_key_to_columns_that_are_no_key_any_more_stops_only_what_it_would_change(
    mariadb: MariadbServer, target_url: str, tmp_path: Path
) -> None:
    """InnoDB takes any index for the parent's, and deletes the child; another target has no such foreign key."""
    name = f"without_key_{target_url.split(':')[0].split('+')[0]}"
    mariadb.sql("FLUSH BINARY LOGS")
    mariadb.sql(WITHOUT_KEY.format(name))
    groups = groups_of(mariadb.binlog_files[-1])
    instance = Instance(tmp_path / "replica", groups, target=target_url)
    with pytest.raises(RplError) as caught:
        instance.apply(groups)
    assert (caught.value.errno, "not a unique key" in caught.value.message) == (1451, True), caught.value.message
    assert "rplctl skip" in caught.value.hint
    rows = {"parent": [(1, 1), (2, 22), (3, 3), (5, 5)], "child": [(30, 3)], "plain": [(1, 1), (5, 5)]}
    for table, expected in rows.items():
        there = f"{name}__{table}" if target_url.startswith("sqlite") else f"{name}.{table}"
        assert sorted(instance.query(f"SELECT * FROM {there}")) == expected
    instance.target.close()


def test_a_generated_column_that_only_the_source_can_compute_stops_what_a_foreign_key_changes(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    tables = "CREATE TABLE parent (id INT PRIMARY KEY, n INT); CREATE TABLE child (id INT PRIMARY KEY, pid INT, "
    tables += "g CHAR(9) AS (CONCAT('no ', pid)), FOREIGN KEY (pid) REFERENCES parent (id) ON UPDATE CASCADE)"
    mariadb.sql("FLUSH BINARY LOGS")
    mariadb.sql(f"DROP DATABASE IF EXISTS made; CREATE DATABASE made; USE made; {tables}")
    mariadb.sql("INSERT INTO made.parent VALUES (1,1); UPDATE made.parent SET id=2; UPDATE made.parent SET n=3")
    mariadb.sql("INSERT INTO made.child (id, pid) VALUES (5,2); UPDATE made.parent SET n=4")
    groups = groups_of(mariadb.binlog_files[-1])
    mariadb.sql("UPDATE made.parent SET id=7")
    more = groups_of(mariadb.binlog_files[-1])
    instance = Instance(tmp_path / "replica", groups)
    instance.apply(groups)
    assert instance.query("SELECT id, pid, g FROM made__child") == [(5, 2, "no 2")]
    with pytest.raises(RplError, match="generated column 'g'") as raised:
        instance.apply_from(more, len(groups.scan))
    assert raised.value.errno == 1364 and raised.value.position
    assert instance.query("SELECT id, n FROM made__parent") == [(2, 4)]
    instance.target.close()


BY_COLLATION = """
DROP DATABASE IF EXISTS {0};
CREATE DATABASE {0} CHARACTER SET utf8mb4;
USE {0};
CREATE TABLE parent (code VARCHAR(10) PRIMARY KEY);
CREATE TABLE child (id INT PRIMARY KEY, code VARCHAR(10), FOREIGN KEY (code) REFERENCES parent (code));
CREATE TABLE price (id INT, begins DATE, ends DATE, PERIOD FOR p (begins, ends), PRIMARY KEY (id, p WITHOUT OVERLAPS));
INSERT INTO parent VALUES ('ABC');
INSERT INTO child VALUES (1, 'abc'), (2, 'ABC ');
INSERT INTO price VALUES (1, '2024-01-01', '2024-02-01'), (1, '2024-02-01', '2024-03-01');
UPDATE price SET ends='2024-04-01' WHERE begins='2024-02-01'
"""


@pytest.mark.long("SQLite and PostgreSQL stay in make test.", keeps=r"sqlite|postgresql")
@pytest.mark.parametrize("target_url", ["sqlite", "duckdb", "postgresql"], indirect=True)
def test_keys_that_only_the_source_can_judge_refuse_nothing(
    mariadb: MariadbServer, target_url: str, tmp_path: Path
) -> None:
    """A child that a collation takes for its parent's, and a key without overlaps, which is one of the columns here."""
    name = f"collation_{target_url.split(':')[0].split('+')[0]}"
    mariadb.sql("FLUSH BINARY LOGS")
    mariadb.sql(BY_COLLATION.format(name))
    groups = groups_of(mariadb.binlog_files[-1])
    instance = Instance(tmp_path / "replica", groups, target=target_url)
    instance.apply(groups)
    for table in ("parent", "child", "price"):
        there = f"{name}__{table}" if target_url.startswith("sqlite") else f"{name}.{table}"
        expected = [tuple(map(str, row)) for row in mariadb.rows(name, table)]
        assert sorted(tuple(map(str, row)) for row in instance.query(f"SELECT * FROM {there}")) == sorted(expected)
    instance.target.close()
