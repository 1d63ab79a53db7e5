"""MySQL into MariaDB and the reverse: documents that are a type here and text there, and what the other lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer, MysqlServer

LONG = pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")

pytestmark = pytest.mark.slow

DOCUMENTS = """
CREATE TABLE t (id INT PRIMARY KEY, j JSON, k JSON NOT NULL, n INT);
INSERT INTO t VALUES (1, '{"a": [1, 2.5, "ü🦄", null], "b": {"c": true}}', '[]', 1), (2, NULL, '"x"', 2);
INSERT INTO t VALUES (3, '1', '{}', 3);
UPDATE t SET j=JSON_SET(j, '$.a[1]', 9) WHERE id=1;
UPDATE t SET id=9 WHERE id=1;
DELETE FROM t WHERE id=3;
INSERT INTO t SELECT 100+id, j, k, n FROM t
"""
ONLY_MYSQL = """;
UPDATE t SET k=JSON_ARRAY(CAST('1.50' AS DECIMAL(5,2)), CAST('2024-01-02' AS DATE)) WHERE id=2;
SET binlog_row_value_options='PARTIAL_JSON', binlog_row_image=MINIMAL;
UPDATE t SET j=JSON_REMOVE(JSON_SET(j, '$.a[0]', 'changed'), '$.b') WHERE id=9
"""


def applied(
    folder: Path, source: MariadbServer, target: MariadbServer, statements: str, bulk_rows: int, url: str = ""
) -> Instance:
    """`statements`, run in a new database `crossed` of the source, applied to the target."""
    for server in (source, target):
        server.sql("DROP DATABASE IF EXISTS crossed; DROP DATABASE IF EXISTS rplctl")
    target.sql("CREATE DATABASE rplctl")
    source.sql("FLUSH BINARY LOGS; CREATE DATABASE crossed CHARACTER SET utf8mb4")
    source.sql(statements, "crossed")
    log = groups_of(source.binlog_files[-1])
    instance = Instance(folder, log, target=url or target.url())
    instance.target.bulk_rows = bulk_rows
    instance.applier = instance.reopen()
    try:
        instance.apply(log)
    finally:
        instance.target.close()
    return instance


@LONG
@pytest.mark.parametrize("bulk_rows", [0, 1])
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_documents_arrive_as_the_text_that_the_source_prints(
    kind: str, bulk_rows: int, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    applied(tmp_path, source, target, DOCUMENTS + (ONLY_MYSQL if kind == "mysql" else ""), bulk_rows)
    shown = "SELECT id, CAST(j AS CHAR), CAST(k AS CHAR), n FROM crossed.t ORDER BY id"
    assert target.sql(shown) == source.sql(shown)
    assert len(target.sql(shown)) == 4


@pytest.mark.long("The target MySQL stays.", keeps=r"^mariadb")
@pytest.mark.parametrize("bulk_rows", [0, 1])
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_sets_that_are_the_same_floating_point_number_are_different_rows(
    kind: str, bulk_rows: int, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    """In MySQL, a SET in arithmetic is a DOUBLE."""
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    members = ", ".join(f"'m{number}'" for number in range(64))
    statements = "".join(
        f"CREATE TABLE {table} (s SET({members}) {key}); INSERT INTO {table} VALUES ('m0,m63'), ('m63'), ('m1,m63');"
        f"CREATE TABLE after_{table} (a INT);"  # so that the rows are committed before they change
        f"DELETE FROM {table} WHERE s='m63'; UPDATE {table} SET s='m2,m63' WHERE s='m1,m63';"
        for table, key in (("keyed", "PRIMARY KEY"), ("keyless", ""))
    )
    applied(tmp_path, source, target, statements, bulk_rows)
    for table in ("keyed", "keyless"):
        assert target.sql(f"SELECT * FROM crossed.{table} ORDER BY CAST(s AS UNSIGNED)") == [("m0,m63",), ("m2,m63",)]


@LONG
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_rows_are_found_by_the_64th_member_of_a_set(
    kind: str, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    """Servers compare a SET as a signed number."""
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    members = ", ".join(f"'m{number}'" for number in range(64))
    statements = "".join(
        f"CREATE TABLE {table} (s SET({members}) {key}, n INT); INSERT INTO {table} VALUES ('m63,m1', 1), ('m63', 2);"
        f"CREATE TABLE after_{table} (a INT);"
        f"UPDATE {table} SET n=3 WHERE n=1; DELETE FROM {table} WHERE n=2;"
        for table, key in (("keyed", "PRIMARY KEY"), ("keyless", ""))
    )
    applied(tmp_path, source, target, statements, 0)
    for table in ("keyed", "keyless"):
        assert target.sql(f"SELECT * FROM crossed.{table}") == [("m1,m63", 3)]


FRACTIONS = """
CREATE TABLE t (id INT PRIMARY KEY, a DATETIME(6), b TIME(6), c TIMESTAMP(6) NULL, d DATETIME(6));
INSERT INTO t VALUES (1, '2024-12-31 23:59:59.999999', '-10:00:00.55', '2024-01-01 00:00:00.5', '{}');
ALTER TABLE t MODIFY a DATETIME; ALTER TABLE t MODIFY b TIME(1); ALTER TABLE t MODIFY c TIMESTAMP NULL;
ALTER TABLE t MODIFY d DATE
"""


@LONG
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_fractions_of_a_second_become_fewer_by_the_sources_rule(
    kind: str, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    """MySQL rounds, MariaDB cuts; to a DATE MariaDB cuts whatever it was told, so there the channel stops."""
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    shown = "SELECT a, b, c, d FROM crossed.t"
    applied(tmp_path / "low", source, target, FRACTIONS.format("2024-12-31 23:59:59.499999"), 0)
    assert target.sql(shown) == source.sql(shown) != []
    high = FRACTIONS.format("2024-12-31 23:59:59.5")
    if kind == "mariadb":
        applied(tmp_path / "high", source, target, high, 0)
        assert target.sql(shown) == source.sql(shown)
        high = f"SET sql_mode='TIME_ROUND_FRACTIONAL'; {high}"
    with pytest.raises(RplError, match="column 'd': MySQL rounds the times") as caught:
        applied(tmp_path / "stop", source, target, high, 0)
    assert caught.value.errno == 1846


@LONG
def test_a_type_that_the_other_lacks_stops_with_its_servers_words(
    mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    with pytest.raises(RplError, match=r"INET6.*CREATE TABLE t") as caught:
        applied(tmp_path, mariadb, mysql, "CREATE TABLE t (id INET6 PRIMARY KEY)", 0)
    assert caught.value.errno == 1064 and caught.value.position


@pytest.mark.long("One value stays in make test.", keeps=r"^FLOAT")
@pytest.mark.parametrize(
    ("old", "value", "new"), [("FLOAT", "1e30", "BIGINT"), ("BIT(64)", "18446744073709551615", "DOUBLE")]
)
def test_values_that_the_vendors_convert_differently_stop_the_channel(
    old: str, value: str, new: str, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    table = f"CREATE TABLE t (id INT PRIMARY KEY, v {old})"
    modify = f"SET sql_mode=''; ALTER TABLE t MODIFY v {new}"
    applied(tmp_path / "nothing", mysql, mariadb, f"{table}; INSERT INTO t VALUES (1, NULL); {modify}", 0)
    with pytest.raises(RplError, match="column 'v': MariaDB and MySQL convert some values") as caught:
        applied(tmp_path / "value", mysql, mariadb, f"{table}; INSERT INTO t VALUES (1, {value}); {modify}", 0)
    assert caught.value.errno == 1846 and caught.value.position


@LONG
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_null_for_which_the_vendors_store_another_default_stops(
    kind: str, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    table = "CREATE TABLE t (id INT PRIMARY KEY, v INT DEFAULT {}); INSERT INTO t VALUES (1, NULL), (2, 3);"
    modify = "SET sql_mode=''; ALTER TABLE t MODIFY v INT NOT NULL"
    applied(tmp_path / "zero", source, target, table.format(0) + modify, 0)
    assert target.sql("SELECT v FROM crossed.t ORDER BY id") == [(0,), (3,)]
    with pytest.raises(RplError, match="column 'v': MariaDB may replace NULL by the old default") as caught:
        applied(tmp_path / "seven", source, target, table.format(7) + modify, 0)
    assert caught.value.errno == 1846 and caught.value.position
