"""A value that is converted or computed here is the one that a real server stored, over the product of types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

import pymysql
import pytest

from rplctl.schema.computed_value import Operand, computed_value
from rplctl.schema.context import (
    PAD_CHAR_TO_FULL_LENGTH,
    STRICT_TRANS_TABLES,
    TIME_ROUND_FRACTIONAL,
    TIME_TRUNCATE_FRACTIONAL,
    DdlContext,
)
from rplctl.schema.converted_value import converted_value, stored_labels
from rplctl.schema.model import TEMPORAL_TYPES, Column
from rplctl.schema.value import NotComputable, Value
from tests.kit.edge_values import NEW, OLD, column_of, shown, value_of
from tests.kit.servers import MariadbServer, MysqlServer

AT_ONCE = 12  # columns of one table: 60 columns of VARCHAR(300) would be larger than a row may be
MODES = {
    "": 0,
    "STRICT_TRANS_TABLES": STRICT_TRANS_TABLES,
    "PAD_CHAR_TO_FULL_LENGTH": PAD_CHAR_TO_FULL_LENGTH,
    "TIME_ROUND_FRACTIONAL": TIME_ROUND_FRACTIONAL,
    "TIME_TRUNCATE_FRACTIONAL": TIME_TRUNCATE_FRACTIONAL,
}
EXPRESSIONS = [
    ("INT", "c + 1"), ("BIGINT", "c * 2 - c"), ("INT", "COALESCE(c, 0)"), ("INT", "c IS NULL"), ("INT", "YEAR(c)"),
    ("DATE", "DATE(c)"), ("INT", "LENGTH(c)"), ("INT", "CHAR_LENGTH(c)"), ("VARCHAR(99)", "UPPER(c)"),
    ("VARCHAR(99)", "LOWER(c)"), ("TEXT", "LEFT(c, 2)"), ("VARCHAR(99)", "IFNULL(c, 'none')"), ("CHAR(32)", "MD5(c)"),
    ("VARCHAR(99)", "TRIM(c)"), ("VARCHAR(99)", "SUBSTRING(c, 2, 3)"), ("VARCHAR(99)", "CONCAT(c, '-', c)"),
    ("VARCHAR(99)", "CONCAT_WS(',', c, c)"), ("VARCHAR(5)", "CONCAT(c, '-', c)"),
    ("VARCHAR(99) CHARACTER SET latin1", "CONCAT(c, '-', c)"),
]  # fmt: skip


@dataclass
class Source:
    """A connection that makes tables of edge values and asks for what the server stored."""

    cursor: pymysql.cursors.Cursor
    context: DdlContext

    def run(self, sql: str) -> bool:
        try:
            self.cursor.execute(sql)
        except pymysql.Error:
            return False
        return True

    def table(self, name: str, columns: list[str], old: str, values: list[str]) -> None:
        """Create a table with each value in all columns; a value that the server refuses is left out."""
        self.run(f"DROP TABLE IF EXISTS {name}")
        listed = ", ".join(f"{column} {old}" for column in columns)
        assert self.run(f"CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, {listed}) CHARACTER SET utf8mb4")
        names = ", ".join(columns)
        for value in [*values, "NULL"]:
            self.run(f"INSERT IGNORE INTO {name} ({names}) VALUES ({', '.join([value] * len(columns))})")

    def cells(self, name: str, types: dict[str, str]) -> dict[int, tuple[Value, ...]]:
        """Return the rows of a table: id → a value of each column, with a TIMESTAMP in UTC."""
        columns = {column: column_of(kind, self.context) for column, kind in types.items()}
        self.run("SET time_zone='+00:00'")
        listed = ", ".join(shown(kind, column) for column, kind in columns.items())
        self.cursor.execute(f"SELECT id, {listed} FROM {name}")
        rows = self.cursor.fetchall()
        self.run("SET time_zone='+02:00'")
        kinds = list(columns.values())
        return {row[0]: tuple(map(value_of, kinds, row[1:])) for row in rows}


@contextmanager
def connected(server: MariadbServer | MysqlServer, mode: str) -> Iterator[Source]:
    server.sql("DROP DATABASE IF EXISTS edges; CREATE DATABASE edges CHARACTER SET utf8mb4")
    context = DdlContext(sql_mode=MODES[mode], server_version=server.version, timestamp=1700000000,
                         microseconds=250000, time_zone="+02:00")  # fmt: skip
    with closing(server.connect("edges")) as connection, connection.cursor() as cursor:
        cursor.execute("SET NAMES utf8mb4, timestamp=1700000000.25, time_zone='+02:00', sql_mode=''")
        yield Source(cursor, context)
    server.sql("DROP DATABASE edges")


@pytest.mark.long("Both vendors without strict mode stay; the other modes change few rules.", keeps=r"-\]|mysql-$|b-$")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_converted_value_is_the_servers(request: pytest.FixtureRequest, vendor: str, mode: str) -> None:
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    if mode.startswith("TIME") and (mode == "TIME_ROUND_FRACTIONAL") is (vendor == "mysql"):
        pytest.skip("the other vendor has this mode")
    computed = unknown = 0
    with connected(server, mode) as source:
        for old, values in OLD.items():
            before = column_of(old, source.context)
            if mode.startswith("TIME") and before.type not in TEMPORAL_TYPES:
                continue
            if mode.startswith("PAD") and before.type != "char":
                continue
            kept = values
            for first in range(0, len(NEW), AT_ONCE):
                types = {f"c{first + i}": kind for i, kind in enumerate(NEW[first : first + AT_ONCE])}
                for group in [types] if mode != "STRICT_TRANS_TABLES" else [{c: k} for c, k in types.items()]:
                    if mode == "STRICT_TRANS_TABLES":
                        kept = accepted(source, old, values, *group.values())
                    changed = converted(source, mode, old, kept, group)
                    for cells_before, cells_after in changed:
                        for kind, was, now in zip(group.values(), cells_before, cells_after, strict=True):
                            try:
                                found = converted_value(before, column_of(kind, source.context), was, source.context)
                            except NotComputable:
                                unknown += 1
                                continue
                            assert (found, type(found)) == (now, type(now)), (old, kind, was, found, now)
                            computed += 1
    assert computed > (0 if mode else 3 * unknown)


def accepted(source: Source, old: str, values: list[str], kind: str) -> list[str]:
    """Return the values that a strict server converts: those without a warning when it is not strict."""
    source.table("t", ["c"], old, values)
    source.run(f"ALTER TABLE t MODIFY c {kind}")
    source.cursor.execute("SHOW WARNINGS")
    text = "\n".join(str(row[2]) for row in source.cursor.fetchall())
    refused = {int(number) for number in re.findall(r"at row (\d+)", text)}
    return [value for number, value in enumerate(values, 1) if number not in refused]


def converted(
    source: Source, mode: str, old: str, values: list[str], types: dict[str, str]
) -> list[tuple[tuple[Value, ...], tuple[Value, ...]]]:
    """Return the cells of each row before and after the columns were changed; [] if the server refuses it."""
    source.table("t", list(types), old, values)
    before = source.cells("t", dict.fromkeys(types, old))
    source.run(f"SET sql_mode='{mode}'")
    is_done = source.run("ALTER TABLE t " + ", ".join(f"MODIFY {column} {kind}" for column, kind in types.items()))
    source.run("SET sql_mode=''")
    after = source.cells("t", types) if is_done else {}
    return [(before[number], cells) for number, cells in after.items()]


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_computed_value_is_the_servers(request: pytest.FixtureRequest, vendor: str) -> None:
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    computed = 0
    with connected(server, "") as source:
        for old, values in OLD.items():
            source.table("t", ["c"], old, values)
            types, operand = {"c": old}, column_of(old, source.context)
            for number, (kind, expression) in enumerate(EXPRESSIONS):
                if source.run(f"ALTER TABLE t ADD g{number} {kind} GENERATED ALWAYS AS ({expression}) STORED"):
                    types[f"g{number}"] = kind
            for cells in source.cells("t", types).values():
                for name, cell in zip(list(types)[1:], cells[1:], strict=True):
                    kind, expression = EXPRESSIONS[int(name[1:])]
                    column = replace(column_of(kind, source.context), stored=True)
                    with suppress(NotComputable):
                        row = {"c": Operand(operand, cells[0])}
                        found = computed_value(column, expression, row, source.context)
                        assert (found, type(found)) == (cell, type(cell)), (old, expression, cells[0], found, cell)
                        computed += 1
    assert computed > 10_000


LETTERS = [chr(code) for code in range(0xA0, 0x10000) if not 0xD800 <= code < 0xE000]


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_label_keeps_the_letters_that_the_servers_character_set_has(
    request: pytest.FixtureRequest, vendor: str
) -> None:
    """Of every character set that rplctl can encode; labels of the others stay as the statement has them."""
    server: MariadbServer | MysqlServer = request.getfixturevalue(vendor)
    known = set()
    for (charset,) in server.sql("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS"):
        if charset == "binary":
            continue
        column = Column(name="e", type="enum", charset=charset, labels=("".join(LETTERS),))
        (label,) = stored_labels(column).labels
        blocks = ["".join(LETTERS[at : at + 8000]) for at in range(0, len(LETTERS), 8000)]
        asked = ", ".join(f"CONVERT(CONVERT(_utf8mb4'{block}' USING {charset}) USING utf8mb4)" for block in blocks)
        if "".join(server.sql(f"SELECT {asked}")[0]) == label:
            known.add(charset)
        else:
            assert label == "".join(LETTERS), charset
    assert {"ascii", "latin1", "gbk", "utf8mb3", "ucs2", "cp1256", "greek", "cp1251", "swe7"} <= known
    assert len(known) > 30
