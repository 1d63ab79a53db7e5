"""Tables that existed before the channel: models read from the live source fit every type its log then brings.

Left out: ENUM and SET members beyond utf8mb3, which servers print as `?` in SHOW CREATE TABLE. They need
binlog_row_metadata=FULL.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rplctl.commit.seed import load_catalog
from rplctl.schema.source_catalog import read_catalog
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.fidelity_scenario import all_types
from tests.neutral_state import differences
from tests.record_fidelity import open_session, run, state_of
from tests.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow
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
