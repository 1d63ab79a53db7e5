"""Chunks on real servers: whatever the key, each row lies in one chunk, those that come later too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.result_set.columns import SESSION
from rplctl.schema.bounds import Chunk, chunk_key, chunks, condition
from rplctl.schema.source_catalog import read_catalog
from rplctl.source.survey import Ask, survey
from rplctl.sql_text import Sql, written
from tests.kit.servers import MariadbServer

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)

# ruff: noqa: E501
KEYS = {  # definition → rows at once, rows that come later
    "a INT PRIMARY KEY": ("(-5),(0),(1),(2),(7),(100),(2147483647)", "(-2147483648),(3),(101)"),
    "a BIGINT UNSIGNED PRIMARY KEY": ("(0),(9223372036854775807),(9223372036854775809),(18446744073709551615)", "(5)"),
    "a DECIMAL(30,10) PRIMARY KEY": ("(-1.5),(0.0000000001),(0.0000000002),(99999999999999999999.0000000001)", "(1)"),
    "a FLOAT PRIMARY KEY": ("(0.1),(0.2),(-3.4e38),(1.17e-38),(16777216)", "(0.15)"),
    "a DOUBLE PRIMARY KEY": ("(0.1),(0.2),(1e300),(-1e-300)", "(0.3)"),
    "a VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY": ("('a'),('B'),('é1'),('E2'),('ß'),('🦄'),('x''\\\\y')", "('A2')"),
    "a VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY": ("('a'),('É'),('z'),('ü'),('')", "('e2'),('ß')"),
    "a CHAR(9) CHARACTER SET ucs2 PRIMARY KEY": ("('a'),('Ω'),('z')", "('b')"),
    "a VARCHAR(9) CHARACTER SET sjis PRIMARY KEY": ("('日本'),('ｱ'),('z')", "('本')"),
    "a BINARY(3) PRIMARY KEY": ("(x'00'),(x'0001'),(x'ff'),(x'41')", "(x'42')"),
    "a VARBINARY(9) PRIMARY KEY": ("(x''),(x'00'),(x'0000'),(x'ff')", "(x'01')"),
    "a DATE PRIMARY KEY": ("('0000-00-00'),('2024-00-07'),('2024-02-29'),('9999-12-31')", "('2024-01-01')"),
    "a DATETIME(6) PRIMARY KEY": ("('2024-02-29 01:02:03.000001'),('2024-02-29 01:02:03.000002'),(0)", "('2025-01-01')"),
    "a TIMESTAMP(3) PRIMARY KEY": ("('2024-10-27 00:30:00.001'),('2024-10-27 01:30:00.001'),('1970-01-01 00:00:01')", "(0)"),
    "a TIME(1) PRIMARY KEY": ("('-838:59:59'),('00:00:00.5'),('-00:00:00.5'),('838:59:59')", "('0')"),
    "a YEAR PRIMARY KEY": ("(0),(1901),(2000),(2155)", "(1999)"),
    "a ENUM('z','b','','a') PRIMARY KEY": ("('a'),('b'),('z')", "('')"),
    "a SET('z','b','a') PRIMARY KEY": ("('a'),('b'),('z,a'),('')", "('z')"),
    "a BIT(64) PRIMARY KEY": ("(0),(1),(18446744073709551615),(b'1000')", "(7)"),
    "a INT, b VARCHAR(9) COLLATE utf8mb4_general_ci, PRIMARY KEY (a, b)": (
        "(1,'a'),(1,'B'),(1,'c'),(2,'A'),(2,'b'),(3,'')", "(1,'bb'),(2,'c'),(0,'z')",
    ),
    "a INT, b INT, c INT, PRIMARY KEY (c, a, b)": ("(1,1,1),(1,2,1),(2,1,1),(2,2,1),(1,1,2)", "(1,3,1),(9,9,0)"),
    "a VARCHAR(20), PRIMARY KEY (a(3))": ("('abc1'),('abd0'),('ab'),('b')", "('zzz')"),
    "a INT NOT NULL, b INT, UNIQUE (b), UNIQUE (a)": ("(3,NULL),(1,NULL),(2,7)", "(9,NULL)"),
}  # fmt: skip
Keys = Mapping[str, tuple[str, str]]
MODE = "SET sql_mode='ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
MARIADB_KEYS = {
    "a INET6 PRIMARY KEY": ("('::'),('::1'),('ffff::'),('::ffff:1.2.3.4')", "('1::')"),
    "a UUID PRIMARY KEY": (
        "('123e4567-e89b-12d3-a456-426655440000'),('00000000-0000-0000-0000-000000000000'),"
        "('923e4567-e89b-42d3-a456-426655440001')", "('11111111-1111-1111-1111-111111111111')",
    ),
}  # fmt: skip


@pytest.fixture(
    params=[pytest.param("mariadb", marks=pytest.mark.mariadb), pytest.param("mysql", marks=pytest.mark.mysql)]
)
def server(request: pytest.FixtureRequest) -> MariadbServer:
    found: MariadbServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def query(server: MariadbServer, tmp_path: Path) -> Iterator[Ask]:
    info = MasterInfo(host=server.host, port=server.port, user_name="rpl", get_public_key=True)
    with survey(info, "rpl", Config(tmp_path)) as ask:
        ask(Sql(SESSION.partition(", SESSION character_set_results")[0]))
        yield ask


def keys_of(server: MariadbServer) -> Keys:
    return {**KEYS, **(MARIADB_KEYS if server.kind == "mariadb" else {})}


def insert(table: str, what: str, rows: str) -> str:
    """`what`: its columns, as in KEYS."""
    columns = ", ".join(re.findall(r"\b([abc]) [A-Z]", what))
    return f"INSERT INTO {table} ({columns}) VALUES {rows}"


def make(server: MariadbServer, statements: list[str]) -> None:
    begin = [MODE, "DROP DATABASE IF EXISTS k", "CREATE DATABASE k", "USE k"]
    server.sql(";\n".join([*begin, *statements]))


@LONG
@pytest.mark.slow
def test_each_row_lies_in_one_chunk_whatever_the_key(server: MariadbServer, query: Ask) -> None:
    keys = keys_of(server)
    make(server, [s for n, (what, (now, _)) in enumerate(keys.items())
                  for s in (f"CREATE TABLE t{n} ({what})", f"INSERT INTO t{n} VALUES {now}")])  # fmt: skip
    catalog = read_catalog(query, ["k"])
    cut: dict[int, list[list[Chunk]]] = {}
    for number in range(len(keys)):
        model = catalog.tables["k", f"t{number}"]
        cut[number] = [list(chunks(query, model, rows)) for rows in (1, 2, 3)]
        for rows, found in zip((1, 2, 3), cut[number], strict=True):
            counts = [counted(query, number, model, chunk) for chunk in found]
            assert all(count == rows for count in counts[:-1]), (list(keys)[number], rows, counts, found)
            assert counts[-1] < rows and sum(counts) == total(query, number)
    server.sql(
        f"{MODE}; USE k; " + "; ".join(f"INSERT INTO t{n} VALUES {later}" for n, (_, later) in enumerate(keys.values()))
    )
    for number, ways in cut.items():
        model = catalog.tables["k", f"t{number}"]
        for found in ways:
            assert sum(counted(query, number, model, chunk) for chunk in found) == total(query, number)


def counted(query: Ask, number: int, model: object, chunk: Chunk) -> int:
    key = chunk_key(model)  # type: ignore[arg-type]
    return int(query(written("SELECT COUNT(*) FROM k.t{}{}", number, condition(key, chunk)))[0][0])


def total(query: Ask, number: int) -> int:
    return int(query(written("SELECT COUNT(*) FROM k.t{}", number))[0][0])


@LONG
@pytest.mark.slow
def test_tables_of_no_row_of_one_and_without_a_key(server: MariadbServer, query: Ask) -> None:
    make(server, ["CREATE TABLE t0 (a INT PRIMARY KEY)", "CREATE TABLE t1 (a INT PRIMARY KEY)",
                  "INSERT INTO t1 VALUES (5)", "CREATE TABLE t2 (a INT, UNIQUE (a))", "INSERT INTO t2 VALUES (1), (2)"])  # fmt: skip
    tables = read_catalog(query, ["k"]).tables
    assert list(chunks(query, tables["k", "t0"], 10)) == [Chunk(None, None)]
    assert list(chunks(query, tables["k", "t1"], 10)) == [Chunk(None, None)]
    assert list(chunks(query, tables["k", "t1"], 1)) == [Chunk(None, ("5",)), Chunk(("5",), None)]
    assert chunk_key(tables["k", "t2"]) == ()
    assert list(chunks(query, tables["k", "t2"], 1)) == [Chunk(None, None)]


@LONG
@pytest.mark.slow
def test_bounds_are_read_from_the_index_alone(server: MariadbServer, query: Ask) -> None:
    many = ", ".join(f"({n // 50}, {n}, REPEAT('x', 200))" for n in range(3000))
    make(
        server, ["CREATE TABLE t0 (a INT, b INT, c VARCHAR(200), PRIMARY KEY (a, b))", f"INSERT INTO t0 VALUES {many}"]
    )
    model = read_catalog(query, ["k"]).tables["k", "t0"]
    query(written("FLUSH STATUS"))
    found = list(chunks(query, model, 100))
    read = {str(name): int(value) for name, value in query(written("SHOW SESSION STATUS LIKE 'Handler_read%'"))}
    assert len(found) == 31
    assert sum(read.values()) < 3000 * 1.2
    assert int(query(written("SHOW SESSION STATUS LIKE 'Sort_rows'"))[0][1]) == 0
