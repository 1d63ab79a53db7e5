"""The hint for a date that PostgreSQL or DuckDB cannot store: after it, the rows that were there are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
ROWS = """
CREATE TABLE log (at DATETIME(3), whole DATETIME, day DATE, msg VARCHAR(9));
INSERT INTO log VALUES ('2024-01-01 10:00:00.500', '2024-01-01 10:00:00', '2024-01-01', 'a'),
  ('2024-01-01 10:00:00', NULL, NULL, 'b'), (NULL, '2024-01-01 10:00:01', '2024-01-02', 'c');
CREATE TABLE committed (a INT);
SET sql_mode='';
INSERT INTO log VALUES ('2024-00-07', '2024-01-00 01:00:00', '2024-02-30', 'd');
INSERT INTO log VALUES ('2024-00-07', NULL, '2024-01-00', 'e');
DELETE FROM log WHERE msg IN ('a', 'b');
UPDATE log SET msg='changed' WHERE msg='c'
"""


@pytest.mark.parametrize("kind", ["postgresql", "duckdb"])
def test_rows_are_found_after_a_column_of_dates_became_text(
    kind: str, mariadb: MariadbServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"duckdb:///{tmp_path / 'target.duckdb'}"
    if kind == "postgresql":
        url = new_database(request.getfixturevalue("postgresql"))
    mariadb.sql("DROP DATABASE IF EXISTS odd; FLUSH BINARY LOGS; CREATE DATABASE odd")
    mariadb.sql(ROWS, "odd")
    groups = groups_of(mariadb.binlog_files[-1])
    instance = Instance(tmp_path, groups, target=url)
    done = set[str]()
    try:
        first = 0
        while first < len(groups.scan):
            try:
                instance.apply_from(groups, first)
                break
            except RplError as error:
                assert error.errno == 1292, error
                found = re.search(r"on the target: (ALTER TABLE .*)$", error.hint, re.MULTILINE)
                assert found is not None and found[1] not in done
                done.add(found[1])
                instance.execute(found[1])
                instance.target.reconnect()  # as at a new start
                applied = instance.applier.info.exec_position
                ends = (groups.scan.source_position(i) for i in range(len(groups.scan)))
                first = next(i for i, end in enumerate(ends) if applied.is_before(end))
        rows = instance.query('SELECT msg, "at", whole FROM odd.log ORDER BY msg')
    finally:
        instance.target.close()
    assert [row[0] for row in rows] == ["changed", "d", "e"] and len(done) == 3
    assert [str(row[2]) for row in rows[:2]] == ["2024-01-01 10:00:01", "2024-01-00 01:00:00"]
