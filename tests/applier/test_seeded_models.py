"""Tables that existed before the channel: models read from the live source fit every type its log then brings.

And everything else a log holds: through the whole fidelity scenario the model that our own DDL made is thrown
away after each statement of DDL, and what the source says of its tables, asked or dumped, takes its place.

Left out: ENUM and SET members beyond utf8mb3, which servers print as `?` in SHOW CREATE TABLE. They need
binlog_row_metadata=FULL.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from rplctl.own_tables.initial_models import load_catalog
from rplctl.schema import dump
from rplctl.schema.plan import Catalog
from rplctl.schema.source_catalog import read_catalog
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.fidelity_scenario import MARIADB_ONLY, MYSQL_ONLY, SCENARIO, Session, all_types, open_session, run
from tests.kit.neutral_state import differences, state_of
from tests.kit.private_server import HOST, PASSWORD, USER
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = [
    pytest.mark.long(
        "tests/schema/test_source_catalog.py holds how models come from a source; the whole scenarios are long."
    ),
    pytest.mark.slow,
]
SCHEMA = "DROP DATABASE IF EXISTS seeded;\nCREATE DATABASE seeded CHARACTER SET utf8mb4;\nUSE seeded"


def check(server: MariadbServer, folder: Path, session_options: str, part: int) -> None:
    """Half of the types: the other half is the other vendor's."""
    types = [text for text in all_types(server.kind).split("CREATE TABLE ")[1:] if "🦄" not in text.split("INSERT")[0]]
    statements = "".join(f"CREATE TABLE {text}" for text in types[part::2]).removesuffix(";\n").split(";\n")
    creates = [text for text in statements if text.startswith("CREATE TABLE")]
    changes = [text for text in statements if not text.startswith("CREATE TABLE")]
    assert len(changes) > 5 * len(creates) > 150
    with closing(open_session(server)) as session:
        run(session, ";\n".join([SCHEMA, *creates, "FLUSH BINARY LOGS"]))
        with session.cursor() as cursor:

            def query(sql: str) -> list[tuple[object, ...]]:
                cursor.execute(sql)
                return list(cursor.fetchall())

            catalog = read_catalog(query, ["seeded"])
        run(session, ";\n".join(["SET sql_mode=''", session_options, *changes, "FLUSH BINARY LOGS"]))
    groups = groups_of(server.binlog_files[-2])
    instance = Instance(folder / "replica", groups)
    assert len(load_catalog(instance.target, "", groups.start_source, catalog)) == len(creates)
    instance.applier = instance.reopen()
    assert instance.apply(groups) > len(changes)
    with closing(sqlite3.connect(instance.config.datadir / "target.db")) as target:
        assert differences(target, "".join(state_of(server, ["seeded"]))) == []
    instance.target.close()


def test_a_mariadb_that_logs_no_metadata_and_minimal_images(mariadb: MariadbServer, tmp_path: Path) -> None:
    mariadb.sql("SET GLOBAL binlog_row_metadata=NO_LOG")
    try:
        check(mariadb, tmp_path, "SET binlog_row_image=MINIMAL", 0)
    finally:
        mariadb.sql("SET GLOBAL binlog_row_metadata=FULL")


def test_a_mysql_that_logs_minimal_metadata_and_json_diffs(mysql: MysqlServer, tmp_path: Path) -> None:
    mysql.sql("SET GLOBAL binlog_row_metadata=MINIMAL")
    try:
        check(mysql, tmp_path, "SET binlog_row_value_options=PARTIAL_JSON", 1)
    finally:
        mysql.sql("SET GLOBAL binlog_row_metadata=FULL")


_DDL = re.compile(r"(CREATE|ALTER|DROP|RENAME|TRUNCATE)\b")


class Reseeded:
    """A replica in SQLite whose models are the source's own description after each DDL."""

    def __init__(self, server: MariadbServer, folder: Path, describe: Callable[[], Catalog]) -> None:
        self._server = server
        self._describe = describe
        server.sql("FLUSH BINARY LOGS")
        self.instance = Instance(folder / "replica", groups_of(server.binlog_files[-1]))
        self.described = 0

    def catch_up(self) -> None:
        self._server.sql("FLUSH BINARY LOGS")
        self.instance.apply(groups_of(self._server.binlog_files[-2]))

    def reseed(self) -> None:
        self.catch_up()
        catalog = self._describe()
        at = self.instance.applier.info.exec_position
        assert load_catalog(self.instance.target, "", at, catalog) == []  # the tables are there, with these columns
        self.instance.applier = self.instance.reopen()
        self.described += 1


def play(first: Session, second: Session, text: str, after_ddl: Callable[[], None]) -> None:
    """As `record_fidelity.play`; the first session's paragraphs are cut behind each DDL."""
    for paragraph in text.split("\n\n"):
        said = paragraph.strip()
        session = second if said.startswith("@2\n") else first
        for statement in said.removeprefix("@2\n").split(";\n"):
            run(session, statement)
            if _DDL.match(statement.strip()):
                after_ddl()


def scenario_from_seeds(
    server: MariadbServer, folder: Path, own: str, setting: str, describe: Callable[[], Catalog]
) -> None:
    run(open_session(server), "DROP DATABASE IF EXISTS seeded")
    replica = Reseeded(server, folder, describe)
    with closing(open_session(server)) as first, closing(open_session(server)) as second:
        run(first, "CREATE DATABASE seeded CHARACTER SET utf8mb4")
        for session in (first, second):
            run(session, f"USE seeded;\n{setting}")
        play(first, second, SCENARIO.strip(), replica.reseed)
        play(first, second, own.strip(), replica.reseed)
    replica.catch_up()
    assert replica.described > 25
    with closing(sqlite3.connect(replica.instance.config.datadir / "target.db")) as target:
        assert differences(target, "".join(state_of(server, ["seeded"]))) == []
    replica.instance.target.close()


def asked(server: MariadbServer) -> Catalog:
    with closing(open_session(server)) as session, session.cursor() as cursor:

        def query(sql: str) -> list[tuple[object, ...]]:
            cursor.execute(sql)
            return list(cursor.fetchall())

        return read_catalog(query, ["seeded"])


def dumped(server: MariadbServer, program: list[str]) -> Catalog:
    options = ["--no-data", "--skip-lock-tables", "--databases", "seeded", f"-u{USER}", f"-p{PASSWORD}"]
    command = [*program, *options, f"-h{HOST}", f"-P{server.port}"]
    return dump.load_catalog(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_the_whole_scenario_of_mariadb_without_metadata_by_models_from_its_dump(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    mariadb.sql("SET GLOBAL binlog_row_metadata=NO_LOG")
    try:
        dump_of = partial(dumped, mariadb, ["mariadb-dump"])
        scenario_from_seeds(mariadb, tmp_path, MARIADB_ONLY, "SET binlog_row_image=FULL", dump_of)
        both = (dump_of(), asked(mariadb))
        one, other = ({n: m for n, m in found.tables.items() if not m.is_sequence} for found in both)
        assert one == other and len(one) > 20
    finally:
        mariadb.sql("SET GLOBAL binlog_row_metadata=FULL")


def test_the_whole_scenario_of_mysql_with_minimal_images_by_models_from_the_server(
    mysql: MysqlServer, tmp_path: Path
) -> None:
    mysql.sql("SET GLOBAL binlog_row_metadata=MINIMAL")
    setting = "SET binlog_row_image=MINIMAL;\nSET binlog_row_value_options=PARTIAL_JSON"
    try:
        scenario_from_seeds(mysql, tmp_path, MYSQL_ONLY, setting, lambda: asked(mysql))
    finally:
        mysql.sql("SET GLOBAL binlog_row_metadata=FULL")
