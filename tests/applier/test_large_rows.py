"""Rows of some megabytes: no packet of the target's limits them, and no error shows them whole.

The same log of a real source into each kind of target; `pytest -m huge` (tests/test_huge.py) has the sizes of the
promise and their memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.binlog import fields
from rplctl.errors import TargetError
from rplctl.target import postgresql_values, sqlite_large
from rplctl.target.base import ChangeKind, RowChange, RowSet
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.postgresql_state import new_database
from tests.servers import MariadbServer, PostgresqlServer

pytestmark = [pytest.mark.mariadb, pytest.mark.postgresql]
MB = 1 << 20
TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB, b LONGTEXT CHARACTER SET utf8mb4, n INT UNIQUE)"
STATEMENTS = f"""
INSERT INTO t VALUES (1, REPEAT(CHAR(0), {3 * MB}), 'small', 1), (2, REPEAT('\\'\\\\\\n\\t', {MB}), NULL, 2);
INSERT INTO t VALUES (3, 'x', REPEAT('ä🦄', {MB // 2}), 3), (4, REPEAT('d', {2 * MB}), NULL, 4), (5, 'y', 'z', 5);
FLUSH BINARY LOGS;
UPDATE t SET a=REPEAT(CHAR(255, 0, 9), {MB}), n=9 WHERE id=5;
UPDATE t SET n=10 WHERE id=1;
UPDATE t SET id=6 WHERE id=2;
DELETE FROM t WHERE id=4;
CREATE TABLE k (n INT, a LONGBLOB, b LONGTEXT CHARACTER SET utf8mb4);
INSERT INTO k VALUES (1, REPEAT('x\\0', {2 * MB}), NULL), (2, REPEAT('y', {2 * MB}), REPEAT('ö', {MB})), (3, NULL, 'b');
UPDATE k SET a=REPEAT(CHAR(255, 0, 9), {MB}), b=REPEAT('🦄', {MB // 2}) WHERE n IN (1, 3);
DELETE FROM k WHERE n=2
"""
Apply = Callable[[str], Instance]


@pytest.fixture
def apply(tmp_path: Path, mariadb: MariadbServer) -> Apply:
    """The log, applied to a target of this URL."""
    mariadb.sql("DROP DATABASE IF EXISTS large; DROP DATABASE IF EXISTS large_copy; RESET MASTER")
    mariadb.sql("SET sql_log_bin=0; CREATE DATABASE large_copy")
    mariadb.sql(f"CREATE DATABASE IF NOT EXISTS large; USE large; {TABLE}; {STATEMENTS}")
    logs = [groups_of(path) for path in mariadb.binlog_files]

    def made(url: str) -> Instance:
        options = {}
        if url.startswith("mysql"):  # DDL keeps its own names, as on mysqld; what has no key is sent in statements
            options = {"replicate_rewrite_db": "large->large_copy", "replicate_ignore_table": "large_copy.k,large.k"}
        instance = Instance(tmp_path / "replica", logs[0], target=url, **options)
        for log in logs:
            instance.apply(log)
        return instance

    return made


def digests(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    def shown(value: object) -> object:
        raw = value.encode() if isinstance(value, str) else value
        return hashlib.md5(raw).hexdigest() if isinstance(raw, bytes) else value

    return sorted(tuple(map(shown, row)) for row in rows)


@pytest.mark.parametrize(
    ("kind", "in_pieces"),
    [("sqlite", False), ("sqlite", True), ("postgresql", False), ("postgresql", True), ("mariadb", True)],
)
def test_rows_above_the_targets_packet_arrive_whole(
    kind: str,
    in_pieces: bool,
    apply: Apply,
    mariadb: MariadbServer,
    postgresql: PostgresqlServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if in_pieces:
        monkeypatch.setattr(sqlite_large, "MOST_BOUND", MB)
        monkeypatch.setattr(postgresql_values, "LARGEST_PARAMETER", MB)
        monkeypatch.setattr(fields, "PIECE_BYTES", MB)
    (most,) = mariadb.sql("SELECT @@max_allowed_packet")[0]
    url = {"sqlite": "", "postgresql": new_database(postgresql), "mariadb": mariadb.url()}[kind]
    mariadb.sql(f"SET GLOBAL max_allowed_packet={MB}; CREATE DATABASE IF NOT EXISTS rplctl")
    try:
        instance = apply(url)
        table = {"sqlite": "large__t", "postgresql": "large.t", "mariadb": "large_copy.t"}[kind]
        expected = mariadb.sql("SELECT id, MD5(a), MD5(b), n FROM large.t")
        if kind == "mariadb":  # it sends no more than its packet either
            found = [tuple(row) for row in mariadb.sql(f"SELECT id, MD5(a), MD5(b), n FROM {table}")]
        else:
            found = digests(instance.query(f"SELECT id, a, b, n FROM {table}"))
            keyless = digests(instance.query(f"SELECT n, a, b FROM {table[:-1]}k"))
            assert keyless == [tuple(row) for row in mariadb.sql("SELECT n, MD5(a), MD5(b) FROM large.k ORDER BY n")]
        assert found == sorted(tuple(row) for row in expected)
        if kind == "postgresql":
            assert instance.query("SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]
        instance.target.close()
    finally:
        mariadb.sql(f"SET GLOBAL max_allowed_packet={most}")


def test_an_error_about_a_large_row_shows_its_beginning(apply: Apply) -> None:
    instance = apply("")
    model = instance.applier.catalog.tables["large", "t"]
    image = RowSet((0, 1, 2, 3), [(1, bytes(3 * MB), "x" * MB, 10)])
    instance.execute("UPDATE large__t SET id=77 WHERE id=1")
    instance.target.begin(foreign_keys=True)
    with pytest.raises(TargetError) as caught:
        instance.target.apply_change(RowChange(ChangeKind.DELETE, image, None), model)
    keyless = model.__class__(model.database, model.name, model.columns)
    with pytest.raises(TargetError) as whole:
        instance.target.apply_change(RowChange(ChangeKind.DELETE, image, None), keyless)
    instance.target.rollback()
    assert caught.value.position == "id=1"
    assert whole.value.position.startswith("id=1, a=b'\\x00\\x00") and len(whole.value.position) < 500
    instance.target.close()
