"""Rows of some megabytes: no packet of the target's limits them, and no error shows them whole.

The same log of a real source into each kind of target; `pytest -m huge` (tests/stories/test_huge.py) has the sizes of
the promise and their memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from rplctl.errors import TargetError
from rplctl.event import fields
from rplctl.schema.model import TableModel
from rplctl.target.base import ChangeKind, RowChange, RowSet
from rplctl.target.postgresql import values as postgresql_values
from rplctl.target.sqlite import large as sqlite_large
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.servers import MariadbServer

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
DELETE FROM k WHERE n=2;
INSERT INTO k VALUES (4, 's', REPEAT('z ', {MB})), (4, 's', REPEAT('Z ', {MB})), (4, 's', '');
INSERT INTO k SELECT * FROM k WHERE n=4;
UPDATE k SET n=5 WHERE n=4 AND LENGTH(b)>9 LIMIT 1;
DELETE FROM k WHERE n=4 AND LENGTH(b)>9 LIMIT 1;
UPDATE k SET n=6 WHERE n=4 AND LENGTH(b)=0 LIMIT 1;
FLUSH BINARY LOGS;
SET binlog_row_image=MINIMAL;
UPDATE t SET a=REPEAT('m', {3 * MB}) WHERE id=3;
INSERT INTO t (id, a) VALUES (7, REPEAT('i', {2 * MB}));
UPDATE k SET b='m' WHERE n=5;
INSERT INTO k (a) VALUES (REPEAT('j', {2 * MB}))
"""
Apply = Callable[[str], Instance]


@pytest.fixture
def apply(tmp_path: Path, mariadb: MariadbServer) -> Apply:
    """The log, applied to a target of this URL."""
    mariadb.sql("DROP DATABASE IF EXISTS large; DROP DATABASE IF EXISTS large_copy; RESET MASTER")
    mariadb.sql(f"CREATE DATABASE IF NOT EXISTS large; USE large; {TABLE}; {STATEMENTS}")
    logs = [groups_of(path) for path in mariadb.binlog_files]

    def made(url: str) -> Instance:
        options = {}
        if url.startswith("mysql"):  # DDL keeps its own names, as on mysqld
            options = {"replicate_rewrite_db": "large->large_copy"}
        instance = Instance(tmp_path / "replica", logs[0], target=url, **options)
        for log in logs:
            instance.apply(log)
        return instance

    return made


def digests(rows: Iterable[Sequence[object]]) -> list[tuple[object, ...]]:
    def shown(value: object) -> object:
        raw = value.encode() if isinstance(value, str) else value
        return hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes) else value

    return sorted((tuple(map(shown, row)) for row in rows), key=repr)


@pytest.mark.long("tests/target/mysql/test_large.py sends large rows in make test.")
@pytest.mark.parametrize(
    ("kind", "in_pieces"),
    [
        *(("sqlite", False), ("sqlite", True), ("postgresql", False), ("postgresql", True), ("mariadb", True)),
        pytest.param("mysql", True, marks=[pytest.mark.mysql, pytest.mark.slow]),
    ],
)
def test_rows_above_the_targets_packet_arrive_whole(
    kind: str,
    in_pieces: bool,
    apply: Apply,
    mariadb: MariadbServer,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if in_pieces:
        monkeypatch.setattr(sqlite_large, "MOST_BOUND", MB)
        monkeypatch.setattr(postgresql_values, "LARGEST_PARAMETER", MB)
        monkeypatch.setattr(fields, "PIECE_BYTES", MB)
    tables = {"sqlite": "large__{}", "postgresql": "large.{}"}.get(kind, "large_copy.{}")
    all_rows = ["SELECT id, a, b, n FROM " + tables.format("t"), "SELECT n, a, b FROM " + tables.format("k")]
    expected = [digests(mariadb.sql(sql.replace(tables.format(""), "large."))) for sql in all_rows]
    if kind in ("sqlite", "postgresql"):
        instance = apply(new_database(request.getfixturevalue(kind)) if kind == "postgresql" else "")
        assert [digests(instance.query(sql)) for sql in all_rows] == expected
        if kind == "postgresql":
            assert instance.query("SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]
    else:
        server: MariadbServer = request.getfixturevalue(kind)
        (most,) = server.sql("SELECT @@max_allowed_packet")[0]
        server.sql("SET sql_log_bin=0; CREATE DATABASE IF NOT EXISTS rplctl; CREATE DATABASE IF NOT EXISTS large_copy")
        server.sql(f"SET GLOBAL max_allowed_packet={MB}")
        try:
            instance = apply(server.url())
        finally:
            server.sql(f"SET GLOBAL max_allowed_packet={most}")
        assert [digests(server.sql(sql)) for sql in all_rows] == expected
        server.sql("SET sql_log_bin=0; DROP DATABASE large_copy")
    instance.target.close()


@pytest.mark.long("An error at a row of megabytes is rare; what errors show is held by tests/test_mask.py.")
def test_an_error_about_a_large_row_shows_its_beginning(apply: Apply) -> None:
    instance = apply("")
    model = instance.applier.catalog.tables["large", "t"]
    image = RowSet((0, 1, 2, 3), [(1, bytes(3 * MB), "x" * MB, 10)])
    instance.execute("UPDATE large__t SET id=77 WHERE id=1")
    instance.target.begin(foreign_keys=True)
    with pytest.raises(TargetError) as caught:
        instance.target.apply_change(RowChange(kind=ChangeKind.DELETE, before=image, after=None), model)
    keyless = TableModel(database=model.database, name=model.name, columns=model.columns)
    with pytest.raises(TargetError) as whole:
        instance.target.apply_change(RowChange(kind=ChangeKind.DELETE, before=image, after=None), keyless)
    instance.target.rollback()
    assert caught.value.position == "id=1"
    assert whole.value.position.startswith("id=1, a=b'\\x00\\x00") and len(whole.value.position) < 500
    instance.target.close()
