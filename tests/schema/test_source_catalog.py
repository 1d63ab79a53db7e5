"""Models read from a server: scripted answers here, the real ones in the tests marked for their server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rplctl import mysql_errors as er
from rplctl.command.load_schema import read_dump
from rplctl.config import Config
from rplctl.errors import RplError, SourceError
from rplctl.info import MasterInfo
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.source_catalog import read_catalog
from rplctl.source.survey import survey
from rplctl.target import open_target
from rplctl.target.mysql.target import MysqlTarget
from tests.kit.private_server import PASSWORD, USER
from tests.kit.servers import MariadbServer, MysqlServer
from tests.schema.models import bare
from tests.schema.recorded_ddl import recorded


class ScriptedSource:
    """Answers by the start of the statement."""

    def __init__(self, answers: dict[str, list[tuple[Any, ...]]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def __call__(self, sql: str) -> Sequence[tuple[Any, ...]]:
        self.asked.append(sql)
        return next((rows for start, rows in self.answers.items() if sql.startswith(start)), [])


def source() -> ScriptedSource:
    return ScriptedSource(
        {
            "SELECT @@version": [("10.11.19-MariaDB",)],
            "SHOW DATABASES": [("information_schema",), ("d",), ("mysql",), ("rplctl",)],
            "SELECT schema_name": [("d", "utf8", "utf8_general_ci"), ("mysql", "utf8mb4", "x")],
            "SHOW FULL TABLES FROM `d`": [
                ("t`1", "BASE TABLE"),
                ("v", "VIEW"),
                ("s", "SEQUENCE"),
                ("h", "SYSTEM VERSIONED"),
            ],
            "SHOW CREATE TABLE `d`.`t``1`": [
                ("t`1", "CREATE TABLE `t``1` (\n  `a` varchar(9) DEFAULT NULL\n) ENGINE=InnoDB")
            ],
            "SHOW CREATE TABLE `d`.`s`": [
                ("s", "CREATE TABLE `s` (`next_not_cached_value` bigint(21)) ENGINE=InnoDB SEQUENCE=1")
            ],
            "SHOW CREATE TABLE `d`.`h`": [
                ("h", "CREATE TABLE `h` (\n `a` int(11)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING")
            ],
        }
    )


def test_every_base_table_is_read_and_no_view_or_system_database() -> None:
    query = source()
    catalog = read_catalog(query)
    assert list(catalog.tables) == [("d", "t`1"), ("d", "s"), ("d", "h")]
    assert catalog.databases["d"].charset == "utf8mb3"
    assert catalog.tables["d", "t`1"].columns[0].charset == "utf8mb3"
    assert catalog.tables["d", "s"].is_sequence
    assert [column.name for column in catalog.tables["d", "h"].columns] == ["a", "row_start", "row_end"]
    assert query.asked[0].startswith("SET SESSION sql_mode=''")


def test_what_goes_between_two_questions_is_left_out_but_not_a_database_that_was_named() -> None:
    asked = source()

    def query(sql: str) -> Sequence[tuple[Any, ...]]:
        if "`s`" in sql or "FROM `gone`" in sql:
            raise SourceError(sql, errno=er.BAD_DB_ERROR if "gone" in sql else er.NO_SUCH_TABLE)
        return [("gone",), ("d",)] if sql == "SHOW DATABASES" else asked(sql)

    assert list(read_catalog(query).tables) == [("d", "t`1"), ("d", "h")]
    with pytest.raises(SourceError, match="gone"):
        read_catalog(query, ["gone"])


def test_a_definition_that_is_not_understood_names_its_table_to_exclude_and_nothing_to_skip() -> None:
    asked = source()
    asked.answers["SHOW CREATE TABLE `d`.`h`"] = [("h", "CREATE TABLE `h` (`a` int); DROP DATABASE other")]
    with pytest.raises(RplError) as caught:
        read_catalog(asked)
    assert "rplctl change-filter --replicate-ignore-table d.h" in caught.value.hint and "skip" not in caught.value.hint


def text_rows(server: MariadbServer, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in server.sql(sql)]


def check_real_server(server: MariadbServer, ddl: str) -> None:
    """The models a live server gives are those its own statements gave."""
    replayed, names = Catalog(), set()
    for number, (sql, database, context) in enumerate(recorded(ddl)):
        if not database.startswith("tt_types") or number > 40:
            continue
        if not sql.startswith("CREATE DATABASE"):
            server.sql(sql, database)
        else:
            server.sql(sql)
        names.add(database)
        replayed = replayed.after(plan_ddl(sql, database, context, replayed))
    live = read_catalog(lambda sql: text_rows(server, sql), sorted(names))
    assert len(live.tables) > 15
    assert live.tables.keys() == replayed.tables.keys()
    for name, model in replayed.tables.items():
        assert [bare(c) for c in live.tables[name].columns] == [bare(c) for c in model.columns], name


def test_a_real_mariadb_gives_the_models_of_its_statements(mariadb: MariadbServer) -> None:
    check_real_server(mariadb, "ddl_mariadb.sql")


def test_a_real_mysql_gives_the_models_of_its_statements(mysql: MysqlServer) -> None:
    check_real_server(mysql, "ddl_mysql.sql")


def test_a_default_that_mariadb_prints_as_raw_bytes_hides_no_table(mariadb: MariadbServer, tmp_path: Path) -> None:
    """Of a BINARY column; neither from a target's tables, nor from the source's, nor from its dump."""
    mariadb.sql("DROP DATABASE IF EXISTS raw; CREATE DATABASE raw; CREATE TABLE raw.t (é BINARY(2) DEFAULT X'EB27')")
    target = open_target(mariadb.url())
    assert isinstance(target, MysqlTarget)
    info = MasterInfo(host=mariadb.host, port=mariadb.port, user_name=USER)
    with survey(info, PASSWORD, Config(datadir=tmp_path)) as query:
        live = read_catalog(query, ["raw"]).tables["raw", "t"]
    dump = tmp_path / "dump.sql"
    dump.write_bytes("USE raw; CREATE TABLE t (é BINARY(2) DEFAULT '".encode() + b"\xeb''');")
    models = [target.table_model("raw", "t"), live, read_dump(dump).tables["raw", "t"]]
    assert [[column.name for column in model.columns] for model in models if model] == [["é"]] * 3
    target.close()
