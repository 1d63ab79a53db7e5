"""Deletes a given number of copies of each row from a SQLite table without a key, in one pass over the table.

The rows to delete are loaded into a temporary table, with the number of copies in the column `rplctl_copies`. An index
of the temporary table finds the equal row for each row of the target's table. The first `rplctl_copies` rows that are
equal are deleted. If the target's table has a selective index, this index finds the copies of each temporary row.

Invariant: a row is deleted only if each column IS the source's value. `SqliteTarget._where` finds single rows with the
same comparison. The total number of deleted rows must be the expected number. No row is deleted twice, so an equal
total proves that each row had enough copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from rplctl.schema.model import TableModel
from rplctl.sql_text import PARAMETER, Sql, joined, written
from rplctl.target.base import CountMismatch, Row
from rplctl.target.ddl_parts import is_indexed, quote
from rplctl.target.sqlite.ddl import table
from rplctl.target.sqlite.ddl_type import row_number
from rplctl.target.sqlite.driver import SqliteDriver

_STAGE = written("temp.rplctl_bag")
MOST_INDEXED = 16  # the limit for columns in the index of the temporary table
_MOST_ALIKE, _SAMPLE = 100, 5  # an index is not selective if one of 5 sampled values finds 100 rows
_OTHERS = written("""
SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
UNION ALL SELECT 1 WHERE (SELECT count(*) FROM pragma_table_xinfo(?1)) <> ?2
""")


def is_all_there_is(driver: SqliteDriver, name: str, columns: int) -> bool:
    """True if the table has exactly this number of columns, and no trigger.

    If so, nothing is lost if a row of the table is deleted and inserted again.
    """
    return driver.execute(_OTHERS, (name, columns)).fetchone() is None


def remove_copies(driver: SqliteDriver, model: TableModel, rows: Sequence[Row]) -> None:
    """Delete copies of rows from the table of `model`, which has no key.

    In `rows`, the values of each row are followed by the number of its copies to delete. Raises CountMismatch if the
    table has fewer copies.
    """
    expected = sum(cast(int, row[-1]) for row in rows)
    with _staged(driver, model, rows):
        row = row_number(model.columns)
        pair = ("s", "t") if _has_telling_index(driver, model, rows) else ("t", "s")
        tables = {"s": written("{} AS s", _STAGE), "t": written("{} AS t", table(model))}
        found = written(
            "SELECT t.{} AS r, s.rplctl_copies AS n, row_number() OVER (PARTITION BY s.{}) AS k FROM "
            "{} CROSS JOIN {} ON {}",
            row,
            row,
            tables[pair[0]],
            tables[pair[1]],
            _same(model),
        )
        gone = driver.execute(
            written("DELETE FROM {} WHERE {} IN (SELECT r FROM ({}) WHERE k <= n)", table(model), row, found)
        )
    if gone.rowcount != expected:
        raise CountMismatch(f"{gone.rowcount} copies to delete, expected {expected}")


@contextmanager
def _staged(driver: SqliteDriver, model: TableModel, rows: Sequence[Row]) -> Iterator[None]:
    names = joined(", ", (quote(column.name) for column in model.columns))
    driver.execute(
        written("CREATE TEMP TABLE rplctl_bag AS SELECT {}, 0 AS rplctl_copies FROM {} WHERE 0", names, table(model))
    )
    marks = joined(", ", [PARAMETER] * (len(model.columns) + 1))
    driver.executemany(written("INSERT INTO {} VALUES ({})", _STAGE, marks), rows)
    indexed = joined(", ", (quote(column.name) for column in model.columns[:MOST_INDEXED]))
    driver.execute(written("CREATE INDEX temp.rplctl_bag_rows ON rplctl_bag ({})", indexed))
    yield
    driver.execute(written("DROP TABLE {}", _STAGE))


def _same(model: TableModel) -> Sql:
    terms = [written("t.{} IS s.{}", name, name) for name in (quote(column.name) for column in model.columns)]
    # in brackets, because SQLite limits the depth of an expression to 1,000
    return joined(" AND ", (written("({})", joined(" AND ", terms[at : at + 100])) for at in range(0, len(terms), 100)))


def _has_telling_index(driver: SqliteDriver, model: TableModel, rows: Sequence[Row]) -> bool:
    places = {column.name: number for number, column in enumerate(model.columns)}
    firsts = {key.parts[0].column for key in model.keys if is_indexed(key)}
    return any(_tells(driver, model, name, [row[places[name]] for row in rows[:_SAMPLE]]) for name in firsts)


def _tells(driver: SqliteDriver, model: TableModel, column: str, values: Sequence[object]) -> bool:
    alike = written("SELECT 1 FROM {} WHERE {} IS ? LIMIT {}", table(model), quote(column), _MOST_ALIKE)
    return all(len(driver.execute(alike, (value,)).fetchall()) < _MOST_ALIKE for value in values)
