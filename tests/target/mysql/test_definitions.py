"""Definitions as servers give them: what changes a table is seen in them, and what does not is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rplctl.schema.affected import ACCOUNTS, DATABASE, TABLE, ServerObject
from rplctl.target import open_target
from rplctl.target.base import Definition
from rplctl.target.mysql.target import MysqlTarget
from tests.kit.servers import MariadbServer, MysqlServer

NAME = "definitions"
ODD = "odd ü-`name"


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[MariadbServer | MysqlServer]:
    found = request.getfixturevalue(request.param)
    found.sql(f"DROP DATABASE IF EXISTS {NAME}; CREATE DATABASE {NAME}")
    yield found
    found.sql(f"DROP DATABASE IF EXISTS {NAME}")


@pytest.fixture
def target(server: MariadbServer) -> Iterator[MysqlTarget]:
    opened = open_target(server.url())
    assert isinstance(opened, MysqlTarget)
    yield opened
    opened.close()


def of(target: MysqlTarget, name: str) -> Definition | None:
    found = ServerObject(TABLE, NAME, name)
    return target.definitions([found], identity=True)[found]


def identity(target: MysqlTarget, name: str) -> str:
    definition = of(target, name)
    assert definition is not None and definition.identity
    return definition.identity


@pytest.mark.long("MariaDB stays in make test.", keeps=r"mariadb")
def test_what_changes_places_is_told_by_its_identity(server: MariadbServer, target: MysqlTarget) -> None:
    server.sql("CREATE TABLE t (a INT); CREATE TABLE `odd ü-``name` (a INT)", NAME)
    before = [identity(target, name) for name in ("t", ODD)]
    server.sql("RENAME TABLE t TO x, `odd ü-``name` TO t, x TO `odd ü-``name`", NAME)
    assert [identity(target, name) for name in (ODD, "t")] == before
    server.sql("CREATE TABLE p (a INT) PARTITION BY HASH (a) PARTITIONS 2", NAME)
    both = [identity(target, name) for name in ("p", "t")]
    server.sql("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE t", NAME)
    after = [identity(target, name) for name in ("p", "t")]
    assert not set(both) & set(after)


@pytest.mark.mysql
def test_an_instant_alter_of_mysql_is_told_within_the_same_second(mysql: MysqlServer) -> None:
    mysql.sql(f"DROP DATABASE IF EXISTS {NAME}; CREATE DATABASE {NAME}; CREATE TABLE {NAME}.t (a INT, b INT)")
    target = open_target(mysql.url())
    assert isinstance(target, MysqlTarget)
    before = identity(target, "t")
    mysql.sql("ALTER TABLE t DROP COLUMN b, RENAME COLUMN a TO b, ADD COLUMN a INT FIRST, ALGORITHM=INSTANT", NAME)
    assert identity(target, "t") != before
    target.close()
    mysql.sql(f"DROP DATABASE {NAME}")


def test_rows_of_a_table_without_transactions_are_told_as_they_are_now(
    server: MariadbServer, target: MysqlTarget
) -> None:
    """MySQL keeps for a day what somebody was told by information_schema of a table's rows."""
    server.sql("CREATE TABLE m (a INT) ENGINE=MyISAM; INSERT INTO m VALUES (1)", NAME)
    server.sql(f"SELECT TABLE_ROWS, UPDATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{NAME}'")
    before = target.row_states([(NAME, "m")])
    server.sql("INSERT INTO m VALUES (2)", NAME)
    assert target.row_states([(NAME, "m")]) != before


def test_what_a_statement_may_change_without_naming_it(server: MariadbServer, target: MysqlTarget) -> None:
    server.sql("CREATE TABLE i (a INT); CREATE TABLE m (a INT) ENGINE=MyISAM; CREATE TABLE g (a INT)", NAME)
    server.sql("CREATE TRIGGER fired AFTER INSERT ON g FOR EACH ROW SET @a = 1", NAME)
    server.sql("SET GLOBAL log_bin_trust_function_creators=1; CREATE FUNCTION called() RETURNS INT RETURN 5", NAME)
    named = {name: target.table_model(NAME, name) for name in ("i", "g")}
    i, g = named["i"], named["g"]
    assert i is not None and g is not None
    every = {name for name in target.other_nontransactional([], b"") if name[0] == NAME}
    assert every == {(NAME, "m")}
    assert target.other_nontransactional([i], b"INSERT INTO i VALUES (1)") == frozenset()
    assert every <= target.other_nontransactional([g], b"INSERT INTO g VALUES (1)")
    assert every <= target.other_nontransactional([i], b"INSERT INTO i VALUES (CALLED())")


def test_rows_change_no_definition_and_a_new_name_not_its_text(server: MariadbServer, target: MysqlTarget) -> None:
    server.sql("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)", NAME)
    before = of(target, "t")
    server.sql("INSERT INTO t VALUES (), (), ()", NAME)
    assert before is not None and before[:2] == (of(target, "t") or ())[:2]
    server.sql("RENAME TABLE t TO u", NAME)
    assert of(target, "t") is None and before[:2] == (of(target, "u") or ())[:2]
    server.sql("ALTER TABLE u ADD INDEX (a)", NAME)
    assert before.text != (of(target, "u") or before).text


def test_an_engine_without_numbers_has_the_time_of_its_making(server: MariadbServer, target: MysqlTarget) -> None:
    server.sql("CREATE TABLE m (a INT) ENGINE=MyISAM", NAME)
    assert identity(target, "m").startswith("made 2")


def test_what_is_absent_is_none_whatever_it_is(target: MysqlTarget) -> None:
    kinds = ("TABLE", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT")
    objects = [ServerObject(kind, NAME, "nothing") for kind in kinds] + [ServerObject(DATABASE, "", "nothing")]
    assert set(target.definitions(objects, identity=False).values()) == {None}


@pytest.mark.mariadb
def test_what_the_account_may_not_see_is_no_error(mariadb: MariadbServer) -> None:
    mariadb.sql(f"DROP DATABASE IF EXISTS {NAME}; CREATE DATABASE {NAME}; CREATE VIEW {NAME}.v AS SELECT 1")
    mariadb.sql(f"CREATE USER IF NOT EXISTS few_rights IDENTIFIED BY 'rpl'; GRANT SELECT ON {NAME}.* TO few_rights")
    target = open_target(mariadb.url().replace("rpl:", "few_rights:"))
    assert isinstance(target, MysqlTarget)
    hidden = [ServerObject(TABLE, NAME, "v"), ServerObject(ACCOUNTS, "", "")]
    try:
        assert [found and found.text for found in target.definitions(hidden, identity=True).values()] == ["?", "?"]
    finally:
        target.close()
        mariadb.sql(f"DROP USER few_rights; DROP DATABASE {NAME}")


def test_accounts_are_one_object(server: MariadbServer, target: MysqlTarget) -> None:
    found = ServerObject(ACCOUNTS, "", "")
    before = target.definitions([found], identity=False)
    assert target.definitions([found], identity=False) == before
    server.sql("CREATE USER definitions_user")
    assert target.definitions([found], identity=False) != before
    server.sql("DROP USER definitions_user")
    assert target.definitions([found], identity=False) == before
