"""Foreign text (design D27): what a user of the source writes is on the target what it was on the source.

The attackers are a user of an honest source who may do little, and a source that writes any event. In each trial there
is a database `other` and no user `evil`; both must be so afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import COMMAND

from rplctl.errors import RplError
from rplctl.event.format_description import build_format_description
from rplctl.event.query import ExecuteLoadQuery, Query, QueryContext
from rplctl.schema.context import NO_BACKSLASH_ESCAPES
from rplctl.sql_text import written
from rplctl.target import open_target
from rplctl.target.base import SourceStatement
from rplctl.target.mysql.connection import LoadingConnection
from rplctl.target.mysql.target import MysqlTarget
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.event.logs import positioned, query
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow

MORE = "DROP DATABASE other; CREATE USER evil; GRANT ALL ON *.* TO evil"
GBK, SJIS = 28, 13  # collation ids
# a user with CREATE, DROP and INSERT on shop.*; what one vendor executes the other reads past
OF_MYSQL = [
    f"CREATE TABLE shop.x1 (id INT) /*M!100000 comment='*/ comment='*/ ; {MORE}; -- '",
    f"CREATE TABLE shop.x2 (id INT) /*M! comment='*/ comment='*/ ; {MORE}; -- '",
    f"CREATE TABLE shop.x3 (id INT) /*!50700 comment='*/ ; {MORE} -- ' */",
    f"CREATE TABLE shop.x4 (id INT) /*!80000 comment='/* */ */ ; {MORE} -- ' */",
    "CREATE TABLE shop.x5 (id INT /*M!100000 , id2 INT */ /*!80000 , id3 INT */)",
    "CREATE TABLE shop.x6 (id INT)",
    "DROP TABLE shop.x6 /*M!100000 , other.kept */",
    "CREATE TABLE shop.x7 (id INT) /*! /*M!100000 comment='*/ comment='*/ ; DROP DATABASE other; -- ' */",
    "RENAME TABLE shop.x5 TO /*M!100000 shop.y, other.kept TO */ shop.x8",
]
OF_MARIADB = [
    f"CREATE TABLE shop.x1 (id INT) /*M!100000 comment='*/ ; {MORE} -- ' */",
    f"CREATE TABLE shop.x2 (id INT) /*!100000 comment='*/ ; {MORE} -- ' */",
    "CREATE TABLE shop.x3 (id INT)",
    "DROP TABLE shop.x3 /*!50700 , other.kept */",
    "CREATE TABLE shop.x4 (id INT /*!080000 , b INT */ /*M!101000 , c INT */)",
    "CREATE TABLE shop.x5 (id INT) /*M! /*!80000 comment='*/ comment='*/ ; DROP DATABASE other; -- ' */",
]


def prepared(*servers: MariadbServer) -> None:
    for server in servers:
        server.sql("DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS other; DROP DATABASE IF EXISTS rplctl")
        server.sql("DROP USER IF EXISTS evil; DROP USER IF EXISTS low; CREATE DATABASE rplctl")
        server.sql("CREATE DATABASE shop; CREATE DATABASE other; CREATE TABLE other.kept (a INT)")


def assert_untouched(server: MariadbServer) -> None:
    assert server.tables("other") == ["kept"]
    assert server.sql("SELECT COUNT(*) FROM mysql.user WHERE user='evil'") == [(0,)]


def definitions(server: MariadbServer) -> dict[str, tuple[list[tuple[object, ...]], object]]:
    columns = (
        "SELECT column_name FROM information_schema.columns WHERE table_schema='shop' AND table_name='{}' ORDER BY 1"
    )
    comment = "SELECT table_comment FROM information_schema.tables WHERE table_schema='shop' AND table_name='{}'"
    return {
        name: (server.sql(columns.format(name)), server.sql(comment.format(name))) for name in server.tables("shop")
    }


def write_as_low(server: MariadbServer, statements: Sequence[str]) -> Path:
    """By a user who may do little. The log that has them."""
    server.sql("CREATE USER low IDENTIFIED BY 'low'; GRANT CREATE, DROP, ALTER, INSERT ON shop.* TO low")
    server.sql("FLUSH BINARY LOGS")
    account = pymysql.connect(
        unix_socket=str(server.socket), user="low", password="low", ssl_disabled=True, autocommit=True
    )
    with closing(account) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    return server.binlog_files[-1]


@pytest.mark.long("One filter of each vendor stays.", keeps=r"filters0$")
@pytest.mark.parametrize("filters", [{}, {"replicate_do_db": "shop"}, {"replicate_wild_do_table": "shop.%"}])
@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_user_of_the_source_does_on_the_target_what_he_did_on_the_source(
    kind: str, filters: dict[str, str], mariadb: MariadbServer, mysql: MysqlServer, tmp_path: Path
) -> None:
    source, target = (mysql, mariadb) if kind == "mysql" else (mariadb, mysql)
    prepared(source, target)
    log = groups_of(write_as_low(source, OF_MYSQL if kind == "mysql" else OF_MARIADB))
    instance = Instance(tmp_path, log, target=target.url(), **filters)
    try:
        instance.apply(log)
    finally:
        instance.target.close()
    assert_untouched(source)
    assert_untouched(target)
    assert definitions(target) == definitions(source) != {}


ROGUE = [  # of each is known what a native replica says: an error of syntax
    "CREATE TABLE shop.x (a INT); {}",
    "CREATE TABLE shop.x (a INT) /* c */; {}",
    "CREATE TABLE shop.x (a INT);;; {}",
    "/*!50000 CREATE TABLE shop.x (a INT) */; {}",
    "CREATE TABLE shop.x (a INT) /*!50000 ; {} */",
    "/*!50000 CREATE TABLE shop.x (a INT); {} */",
    "/*!50000 CREATE TABLE shop.x (a INT) /*!50000 */; {} */",
    "CREATE TABLE shop.x (a INT) /*!99999 /* */ */; {}",
    "DELIMITER //\n{}//",
    "CREATE TABLE shop.x (a INT COMMENT 'x); {}; -- ",
    "CREATE TABLE shop.x (a INT /* ); {}",
    "CREATE TABLE shop.x (a INT /*!50000 ); {}",
    "CREATE TABLE shop.`x; {}",
    "CREATE TABLE shop.x (a INT)\0; {}",
    "-- x\n; {}",
    "--; {}",
    "DO 1 --\n; {}",
    "SET @a=1; {}",
    "BEGIN; {}",
    "COMMIT; {}",
    "SELECT 1; {}",
    "INSERT INTO shop.t VALUES (1); {}",
    "DROP TABLE IF EXISTS shop.x; {}",
    "DROP TABLE shop.x; {}",
    "ALTER TABLE shop.t EXCHANGE PARTITION p WITH TABLE shop.u; {}",
    "CREATE PROCEDURE shop.p() SELECT 1; {}",
    "CREATE PROCEDURE shop.p() BEGIN END; {}",
    "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO SELECT 1; {}",
    "CREATE TABLE shop.x (a INT) START TRANSACTION; {}",
    "LOAD DATA INFILE 'f' INTO TABLE shop.t; {}",
    r"SELECT '\\'; {}; -- '",
]


@pytest.fixture(params=["mariadb", "mysql"])
def target(request: pytest.FixtureRequest) -> Iterator[tuple[MysqlTarget, MariadbServer]]:
    server: MariadbServer = request.getfixturevalue(request.param)
    prepared(server)
    server.sql("CREATE TABLE shop.t (a INT PRIMARY KEY)")
    opened = open_target(server.url())
    assert isinstance(opened, MysqlTarget)
    yield opened, server
    opened.close()


def driver_of(target: MysqlTarget) -> LoadingConnection:
    driver = target.connection.connection.driver_connection
    assert isinstance(driver, LoadingConnection)
    return driver


def executed(target: MysqlTarget, sql: bytes, version: str, **context: int) -> int:
    """The error's number, or 0. The connection has just taken several statements, which were ours."""
    session = replace(QueryContext(flags2=0, sql_mode=0), **context)  # type: ignore[arg-type]
    text: Query | ExecuteLoadQuery = Query(
        timestamp=1,
        thread_id=7,
        execution_time=0,
        error_code=0,
        database="shop",
        sql_bytes=sql,
        context=session,
        uses_temporary_tables=False,
        suppress_use=False,
    )
    if sql.startswith(b"LOAD"):
        assert isinstance(text, Query)
        text = ExecuteLoadQuery(
            query=text,
            file_id=1,
            name_start=sql.index(b"INFILE"),
            name_end=sql.index(b" INTO") + 5,
            duplicate_handling=0,
        )
    target.begin(foreign_keys=True)
    driver_of(target).take_several(wanted=True)
    try:
        target.run_statement(SourceStatement(text, (), (b"1\n",) if sql.startswith(b"LOAD") else (), version))
    except RplError as error:
        return error.errno
    finally:
        target.rollback()
    return 0


@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_an_event_of_any_source_is_one_statement(vendor: str, target: tuple[MysqlTarget, MariadbServer]) -> None:
    into, server = target
    version = "10.11.6-MariaDB" if vendor == "mariadb" else "9.1.0"
    found = {form: executed(into, form.format(MORE).encode(), version) for form in ROGUE}
    assert {form: errno for form, errno in found.items() if errno != 1064} == {}
    assert_untouched(server)
    for mode, collation, raw in (
        (NO_BACKSLASH_ESCAPES, 45, rb"SELECT '\'; %s; -- '"),
        (0, GBK, b"SELECT '\x81\x5c'; %s; -- '"),
        (0, SJIS, b"SELECT /*!50000 '\x83\x5c'; %s; -- ' \n*/"),
        (0, SJIS, b"SELECT 1 AS \x83\x60; %s; -- `"),
    ):
        assert executed(into, raw % MORE.encode(), version, sql_mode=mode, client_collation=collation) == 1064, raw
    assert_untouched(server)


def test_rows_take_several_statements_again_after_one_of_the_source(
    target: tuple[MysqlTarget, MariadbServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked where the kind of text changes, and nowhere else."""
    into, _ = target
    into.begin(foreign_keys=True)
    driver, sent = driver_of(into), list[int]()

    def counted(command: int, sql: bytes, execute: Callable[[int, bytes], None] = driver._execute_command) -> None:
        sent.append(command)
        execute(command, sql)

    monkeypatch.setattr(driver, "_execute_command", counted)
    for wanted in (True, True, False, False, True):
        driver.take_several(wanted=wanted)
    assert sent == [COMMAND.COM_SET_OPTION] * 3
    with driver.cursor() as cursor:
        cursor.execute(written("SELECT 1; SELECT 2"))
        assert cursor.nextset() and not cursor.nextset()
    into.rollback()


def test_what_a_filter_cannot_judge_stops_with_its_position(mariadb: MariadbServer, tmp_path: Path) -> None:
    """A rogue source's log, whole: the statement is one, and it would drop what the filter keeps out."""
    prepared(mariadb)
    description = build_format_description(1, 0, 1, "10.11.6-MariaDB", relay_log=False)
    for number, sql in enumerate(
        ["BEGIN NOT ATOMIC DROP DATABASE other; END", "EXECUTE IMMEDIATE 'DROP DATABASE other'"]
    ):
        parts = positioned([description, query(sql, database=b"shop")])
        path = tmp_path / f"binlog.00000{number + 1}"
        path.write_bytes(b"\xfebin" + parts)
        log = groups_of(path)
        instance = Instance(tmp_path / str(number), log, target=mariadb.url(), replicate_do_db="shop")
        with pytest.raises(RplError, match="the statement changes are unknown") as caught:
            instance.apply(log)
        instance.target.close()
        assert (caught.value.errno, caught.value.position) == (1064, str(4 + len(parts)))
        with suppress(RplError):
            mariadb.sql("DROP DATABASE rplctl; CREATE DATABASE rplctl")
    assert_untouched(mariadb)
