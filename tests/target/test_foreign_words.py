"""What another user of a target, or a name of the source, holds is never executed there."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rplctl.errors import RplError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import Column, TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.sql_text import proven_statement, with_parameter, written
from rplctl.target import open_engine, open_target
from rplctl.target.mysql import two_phase as mysql_two_phase
from rplctl.target.mysql.values import comparand, literal
from rplctl.target.postgresql import two_phase as postgresql_two_phase
from rplctl.target.sqlite.compared import COMPARED
from rplctl.target.sqlite.driver import driver_of
from tests.kit.postgresql_state import connect, new_database
from tests.kit.servers import MariadbServer, PostgresqlServer

PREFIX = "rplctl:0123456789ab:0123456789ab:"
EVIL = f"{PREFIX}'; CREATE DATABASE evil; -- "
NAME = "a$rplctl$; DROP SCHEMA other CASCADE; --"
COLUMNS = "(id INT PRIMARY KEY, p INT)"


@pytest.mark.mariadb
def test_a_prepared_transaction_whose_name_begins_like_ours_is_left_alone(mariadb: MariadbServer) -> None:
    hexed = EVIL.encode().hex()
    engine = open_engine(mariadb.url())
    with mariadb.connect() as other, other.cursor() as cursor:
        for verb in ("START", "END", "PREPARE"):
            cursor.execute(f"XA {verb} x'{hexed}'")
        assert EVIL in str(mariadb.sql("XA RECOVER"))
        assert mysql_two_phase.prepared_xids(engine, PREFIX) == []
        with pytest.raises(RplError, match="cannot execute a text"):
            mysql_two_phase.end_prepared(engine, "ROLLBACK", EVIL)
        cursor.execute(f"XA ROLLBACK x'{hexed}'")
    engine.dispose()


@pytest.mark.postgresql
def test_a_prepared_transaction_of_another_user_of_postgresql_is_left_alone(postgresql: PostgresqlServer) -> None:
    url, quoted = new_database(postgresql), EVIL.replace("'", "''")
    engine = open_engine(url)
    with connect(url) as connection:
        connection.execute("BEGIN")
        connection.execute(f"PREPARE TRANSACTION '{quoted}'".encode())
        assert postgresql_two_phase.prepared_xids(engine, PREFIX) == []
        connection.execute(f"ROLLBACK PREPARED '{quoted}'".encode())
    with pytest.raises(RplError, match="cannot execute a text"):
        postgresql_two_phase.end_prepared(engine, "ROLLBACK", EVIL)
    engine.dispose()


@pytest.mark.postgresql
def test_a_name_of_the_source_does_not_end_a_block(postgresql: PostgresqlServer) -> None:
    url, catalog = new_database(postgresql), Catalog()
    with connect(url) as connection:
        connection.execute("CREATE SCHEMA other")
        with closing(open_target(url)) as target:
            for sql in (
                f"CREATE DATABASE `{NAME}`",
                f"CREATE TABLE `{NAME}`.`{NAME}` {COLUMNS}",
                f"CREATE TABLE `{NAME}`.c (id INT, FOREIGN KEY (id) REFERENCES `{NAME}` (id))",
                f"ALTER TABLE `{NAME}`.`{NAME}` DROP PRIMARY KEY, ADD PRIMARY KEY (p)",
            ):
                plan = plan_ddl(sql, NAME, DdlContext(), catalog)
                target.begin(foreign_keys=False)
                target.execute_ddl(plan, catalog)
                target.commit()
                catalog = catalog.after(plan)
        found = {name for (name,) in connection.execute("SELECT nspname FROM pg_namespace").fetchall()}
    assert {"other", NAME} <= found


def test_a_declared_type_of_a_sqlite_table_is_not_executed(tmp_path: Path) -> None:
    """A stage has the types of the target's table, which is not always ours."""
    columns = (
        Column(name="id", type="int"),
        Column(name="v", type="varchar", length=9),
        Column(name="n", type="bigint", unsigned=True),
    )
    with closing(open_target(f"sqlite:///{tmp_path}/t.db")) as target:
        driver = driver_of(target.connection)
        driver.execute(proven_statement('CREATE TABLE d__t (id INT, v "TEXT, evil TEXT CHECK (0)", n)'))
        COMPARED(target).make_stage(TableModel(database="d", name="t", columns=columns), columns)
        staged = driver.execute(written("PRAGMA temp.table_info(rplctl__verify)")).fetchall()
        assert [name for _, name, *_ in staged] == ["id", "v", "n"]
        driver.execute(written("INSERT INTO rplctl__verify VALUES (1, 2, '3')"))
        types = written("SELECT typeof(id), typeof(v), typeof(n) FROM rplctl__verify")
        assert driver.execute(types).fetchone() == ("integer", "text", "text")


def test_a_column_named_as_a_parameter_is_no_parameter() -> None:
    """The large value of another column takes the place of its parameter alone."""
    sqlite = written('UPDATE "t" SET "a?1"=?1, "b"=?10 WHERE c = \'?1\'')
    assert with_parameter(sqlite, "?1", written("x")) == 'UPDATE "t" SET "a?1"=x, "b"=?10 WHERE c = \'?1\''
    postgresql = written('UPDATE "t" SET "%%(c0)s" = %(c0)s')
    assert with_parameter(postgresql, "%(c0)s", written("x")) == 'UPDATE "t" SET "%%(c0)s" = x'


def test_a_decimal_and_a_charset_are_no_sql() -> None:
    with pytest.raises(RplError, match="cannot execute a text"):
        literal("1) OR 1", Column(name="n", type="decimal", length=9, scale=2))
    with pytest.raises(RplError, match="cannot execute a text"):
        comparand(b"a", Column(name="t", type="varchar", length=9, charset="latin1 x'', "))


def test_numbers_of_a_stored_model_are_numbers() -> None:
    text = TableModel(database="d", name="t", columns=(Column(name="n", type="decimal", length=9, scale=2),)).to_json()
    assert TableModel.from_json(text).columns[0].length == 9
    for before, evil in (('"length":9', '"length":"9)); DROP TABLE x; --"'), ('"scale":2', '"scale":[1]')):
        assert before in text
        with pytest.raises(RplError, match="damaged"):
            TableModel.from_json(text.replace(before, evil))
