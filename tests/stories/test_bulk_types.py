"""Many rows of each column type go the bulk way into a server of the source's own kind, and arrive as they were.

Values equal alone would not tell: what the bulk way cannot take goes row by row, and is slow without a word.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance, transactions_in_order
from tests.conftest import Factory
from tests.kit.servers import MariadbServer

ROWS = 400  # each value of a type, again and again
COMMON = {
    "TINYINT": ["-128", "127"],
    "BIGINT UNSIGNED": ["0", "18446744073709551615"],
    "DECIMAL(65,30)": ["-12345678901234567890123456789012345.000000000000000000000000000001", "0.5"],
    "FLOAT": ["-1.5e-30", "3.4e38"],
    "DOUBLE": ["1.7976931348623157e308", "-0.1"],
    "BIT(1)": ["0", "1"],
    "BIT(64)": ["b'1'", "18446744073709551615"],
    "YEAR": ["0", "2155"],
    "DATE": ["'0000-00-00'", "'9999-12-31'"],
    "TIME(6)": ["'-838:59:59'", "'00:00:00.000001'"],
    "DATETIME(6)": ["'0000-00-00'", "'9999-12-31 23:59:59.999999'"],
    "TIMESTAMP(3) NULL": ["'1970-01-02 00:00:01.001'", "'2038-01-01'"],
    "CHAR(4) CHARACTER SET latin1": ["_latin1 X'E9'", "''"],
    "VARCHAR(300) CHARACTER SET utf8mb4": ["CONCAT('\\t\\n\\r\\0', CHAR(92), REPEAT('é', 290))", "'\\\\N'"],
    "VARCHAR(30) CHARACTER SET ucs2": ["_ucs2 X'0041D55C'", "'b'"],
    "TEXT CHARACTER SET sjis": ["_sjis X'955C'", "'b'"],
    "MEDIUMTEXT": ["REPEAT('0123456789', 700)", "''"],
    "BINARY(4)": ["X'00'", "X'0A090D5C'"],
    "VARBINARY(300)": ["REPEAT(X'FF', 251)", "''"],
    "BLOB": ["X'000A0D095C1A'", "REPEAT(X'00', 6000)"],
    "ENUM('a','','é')": ["'a'", "'é'"],
    "SET('x','y','z')": ["''", "'x,z'"],
    "JSON": ['\'{"a": [1, null, "é\\\\\\\\"]}\'', "'[]'"],
    "GEOMETRY": ["POINT(1, 2)", "ST_GeomFromText('LINESTRING(0 0, 1 1)')"],
}
MARIADB = {
    "INET4": ["'1.2.3.4'", "'255.255.255.255'"],
    "INET6": ["'::1'", "'2001:db8::ff00:42:8329'"],
    "UUID": ["'12345678-9abc-def0-8123-456789abcdef'", "'ffffffff-ffff-1fff-bfff-ffffffffffff'"],
    "VARCHAR(300) COMPRESSED": ["REPEAT('a', 290)", "''"],
}
VECTOR = {
    "mariadb_118": {"VECTOR(3)": ["VEC_FromText('[1,2,3]')", "VEC_FromText('[0,-1,0.5]')"]},
    "mysql": {"VECTOR(3)": ["TO_VECTOR('[1,2,3]')", "TO_VECTOR('[0,-1,0.5]')"]},
}
SERVERS = [
    pytest.param("mariadb", marks=pytest.mark.mariadb),
    pytest.param("mariadb_118", marks=pytest.mark.mariadb),
    pytest.param("mysql", marks=pytest.mark.mysql),
]
pytestmark = [
    pytest.mark.long(
        "tests/target/mysql/test_target.py::test_values_arrive_exactly_in_bulk_and_singly_and_are_found_again holds it "
        "by type."
    ),
    pytest.mark.slow,
]


@pytest.mark.parametrize("kind", SERVERS)
def test_many_rows_of_each_type_go_in_bulk_and_arrive_as_they_were(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factory: Factory[MariadbServer] = request.getfixturevalue(f"{kind}_factory")
    source, target = factory(), factory()
    types = COMMON | (MARIADB if kind != "mysql" else {}) | VECTOR.get(kind, {})
    tables = {f"t{number}": (declared, values) for number, (declared, values) in enumerate(types.items())}
    numbers = ",".join(f"({number})" for number in range(ROWS))
    script = [f"CREATE TABLE n (id INT PRIMARY KEY); INSERT INTO n VALUES {numbers}"]
    for table, (declared, (one, other)) in tables.items():
        script.append(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {declared}, w {declared})")
        value = f"IF(id % 3, IF(id % 3 = 1, {one}, {other}), NULL)"
        script.append(f"INSERT INTO {table} SELECT id, {value}, {one} FROM n")
        script.append(f"UPDATE {table} SET w={other} WHERE id < {ROWS - 50}")
    source.sql("CREATE DATABASE d")
    source.sql("SET sql_mode=''; " + ";".join(script), "d")
    in_order = transactions_in_order(monkeypatch)
    target.sql("CREATE DATABASE rplctl")
    log = groups_of(source.binlog_files[-1])
    instance = Instance(tmp_path, log, target=target.url())
    instance.apply(log)
    instance.target.close()
    assert not in_order
    for table in tables:
        sums = [server.sql(f"CHECKSUM TABLE d.{table}") for server in (source, target)]
        assert sums[0] == sums[1], tables[table]
