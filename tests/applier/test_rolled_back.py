"""A transaction that the source logged with a ROLLBACK leaves nothing, whatever stands around it in a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.applier.feed.plan import BatchKind, plan_batches
from rplctl.event.scan import GroupKind
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.replica import new_log
from tests.kit.servers import MariadbServer

SQL = """
DROP DATABASE IF EXISTS rolled_back;
CREATE DATABASE rolled_back;
USE rolled_back;
CREATE TABLE t (id INT PRIMARY KEY, v INT);
CREATE TABLE journal (id INT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO t VALUES (1,1);
BEGIN;
SAVEPOINT here;
INSERT INTO t VALUES (2,2);
INSERT INTO journal VALUES (1);
DELETE FROM t WHERE id=1;
ROLLBACK TO here;
COMMIT;
INSERT INTO t VALUES (3,3)
"""


def test_rows_of_a_logged_rollback_are_not_applied_with_their_neighbours(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    log = new_log(mariadb)
    mariadb.sql(SQL)
    mariadb.sql("FLUSH BINARY LOGS")
    groups = groups_of(mariadb.data / log)
    (rolled_back,) = (n for n, kind in enumerate(groups.scan.kind) if kind == GroupKind.ROLLED_BACK)
    assert GroupKind.ROWS in groups.scan.kind[rolled_back + 1 :]
    batches = [b for b in plan_batches(groups, len(groups.scan)) if b.first <= rolled_back < b.last]
    assert [(b.kind, b.last - b.first) for b in batches] == [(BatchKind.SKIP, 1)]
    instance = Instance(tmp_path / "replica", groups)
    instance.apply(groups)
    assert instance.query("SELECT * FROM rolled_back__t ORDER BY id") == [(1, 1), (3, 3)]
    assert instance.query("SELECT * FROM rolled_back__journal") == [(1,)]
    instance.target.close()


@pytest.mark.long("tests/applier/apply/test_savepoint_groups.py goes back to savepoints in make test.")
@pytest.mark.parametrize("url", ["", "duckdb:///{}/target.duckdb"])
def test_what_went_back_to_a_savepoint_leaves_nothing(mariadb: MariadbServer, tmp_path: Path, url: str) -> None:
    """Also where the target has no savepoints (`decode.undone`)."""
    log = new_log(mariadb)
    mariadb.sql(SQL)
    mariadb.sql(
        "USE rolled_back; BEGIN; INSERT INTO t VALUES (4,4); SAVEPOINT a; UPDATE t SET v=9; SAVEPOINT b;"
        " CREATE TEMPORARY TABLE tmp (id INT); INSERT INTO journal VALUES (2); DELETE FROM t; ROLLBACK TO b;"
        " INSERT INTO t VALUES (5,5); ROLLBACK TO a; INSERT INTO t VALUES (6,6); COMMIT"
    )
    mariadb.sql("FLUSH BINARY LOGS")
    groups = groups_of(mariadb.data / log)
    instance = Instance(tmp_path / "replica", groups, target=url.format(tmp_path))
    instance.apply(groups)
    where = "rolled_back.t" if url else "rolled_back__t"
    there = [tuple(map(int, row)) for row in mariadb.sql("SELECT * FROM rolled_back.t ORDER BY id")]
    assert instance.query(f"SELECT * FROM {where} ORDER BY id") == there
    instance.target.close()
