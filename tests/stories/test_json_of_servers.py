"""JSON documents between servers: what the target's server makes of a document's text is the document of the source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from rplctl.errors import RplError
from tests.conftest import servers_of
from tests.kit.servers import MariadbServer, Mysql84Server, MysqlServer
from tests.stories.test_cross_vendor import applied

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


@pytest.fixture(scope="module")
def older_mysql() -> Iterator[MysqlServer]:
    servers = servers_of(Mysql84Server)
    yield next(servers)()
    next(servers, None)


DOUBLES = {
    "sum": "JSON_OBJECT('a', 0.1e0 + 0.2e0)",
    "long": """'{"a": 9088544342.689998}'""",
    "large": "JSON_OBJECT('a', 1.7976931348623157e308, 'b', 123456789012345e-40)",
    "short": "JSON_OBJECT('key of 11', 2.5, 'n', 12345678901234567890)",
}


@pytest.mark.parametrize("bulk_rows", [0, 1])
@pytest.mark.parametrize("document", DOUBLES.values(), ids=DOUBLES)
def test_doubles_keep_each_bit(
    document: str, bulk_rows: int, mysql: MysqlServer, older_mysql: MysqlServer, tmp_path: Path
) -> None:
    """The parser of MySQL 8.0 and 8.4 reads 9088544342.689999 as 9088544342.69."""
    statements = f"""CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, {document}), (2, '1');
        CREATE TABLE bare (j JSON); INSERT INTO bare SELECT j FROM t; UPDATE t SET j = {document} WHERE id = 2"""
    applied(tmp_path, mysql, older_mysql, statements, bulk_rows)
    for table in ("t", "bare"):
        query = f"SELECT HEX(CAST(j AS CHAR)) FROM crossed.{table} ORDER BY 1"
        assert older_mysql.sql(query) == mysql.sql(query)


@pytest.mark.mariadb
@pytest.mark.parametrize("bulk_rows", [0, 1])
def test_a_mariadb_server_that_logs_no_charset_sends_documents(
    bulk_rows: int, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    """binlog_row_metadata=NO_LOG is MariaDB's default."""
    statements = """SET GLOBAL binlog_row_metadata=NO_LOG;
        CREATE TABLE t (id INT PRIMARY KEY, j JSON, n INT); CREATE TABLE bare (j JSON, n INT);
        INSERT INTO t VALUES (1, '{"a": "ü"}', 1), (2, '[1]', 1); UPDATE t SET n = 2 WHERE id = 1;
        INSERT INTO bare SELECT j, n FROM t; INSERT INTO bare VALUES ('{"b":1}', 3), ('{"b":2}', 3);
        UPDATE bare SET n = 4 WHERE j LIKE '%b":1%'; DELETE FROM bare WHERE j LIKE '%b":2%';
        SET GLOBAL binlog_row_metadata=FULL"""
    applied(tmp_path, mariadb, mysql, statements, bulk_rows)
    shown = "SELECT REPLACE(CAST(j AS CHAR), ' ', ''), n FROM crossed.{} ORDER BY 1, 2"
    for table in ("t", "bare"):
        assert mysql.sql(shown.format(table)) == mariadb.sql(shown.format(table))


@pytest.mark.mariadb
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_row_without_a_key_is_found_by_each_letter_of_its_document(
    kind: str, mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    words = ("x", "X", "é", "e", "e ")
    values = ", ".join(f"""('{{"a": "{word}"}}', 0)""" for word in words)
    text = "CONVERT(doc USING utf8mb4) COLLATE utf8mb4_bin"
    statements = f"""CREATE TABLE t (doc JSON, n INT); INSERT INTO t VALUES {values}; CREATE TABLE rest (n INT);
        DELETE FROM t WHERE {text} LIKE '%"X"%'; UPDATE t SET n = 1 WHERE {text} LIKE '%"e"%';
        UPDATE t SET n = 2 WHERE {text} LIKE '%"e "%'"""
    applied(tmp_path, source, target, statements, 0)
    query = "SELECT HEX(CONVERT(doc USING utf8mb4)), n FROM crossed.t ORDER BY 1"
    assert target.sql(query) == source.sql(query)


def test_without_the_privilege_a_document_that_a_text_would_change_stops_the_channel(
    mysql: MysqlServer, older_mysql: MysqlServer, tmp_path: Path
) -> None:
    older_mysql.sql(
        "CREATE USER low IDENTIFIED BY 'rpl'; GRANT ALL ON crossed.* TO low; GRANT ALL ON rplctl.* TO low;"
        "GRANT SESSION_VARIABLES_ADMIN ON *.* TO low"
    )
    pymysql.connect(unix_socket=str(older_mysql.socket), user="low", password="rpl").close()  # remembered by MySQL
    url = older_mysql.url().replace("rpl:", "low:")
    plain = "CREATE TABLE t (id INT PRIMARY KEY, j JSON); INSERT INTO t VALUES (1, '[1.5]'); DO 0"
    applied(tmp_path / "plain", mysql, older_mysql, plain, 0, url)
    assert older_mysql.sql("SELECT id, CAST(j AS CHAR) FROM crossed.t") == [(1, "[1.5]")]
    typed = f"{plain}; INSERT INTO t VALUES (2, JSON_ARRAY(CAST('1.50' AS DECIMAL(5,2))))"
    for bulk_rows in (0, 1):
        with pytest.raises(RplError) as error:
            applied(tmp_path / f"typed{bulk_rows}", mysql, older_mysql, typed, bulk_rows, url)
        assert error.value.errno == 1227 and "REPLICATION_APPLIER" in error.value.message
        assert older_mysql.sql("SELECT COUNT(*) FROM crossed.t WHERE id = 2") == [(0,)]
