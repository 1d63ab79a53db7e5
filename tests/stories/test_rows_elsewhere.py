"""Tables whose engine keeps their rows in other places: they are left out by name, and no row is lost in silence."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import inspect

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.postgresql_state import new_database
from tests.kit.servers import MariadbServer

pytestmark = pytest.mark.slow

MERGE = (
    "CREATE TABLE a (v INT, KEY (v)) ENGINE=MyISAM; CREATE TABLE b LIKE a; CREATE TABLE t LIKE a;"
    "CREATE TABLE m (v INT, KEY (v)) ENGINE=MERGE UNION=(a, b) INSERT_METHOD=LAST; INSERT INTO b VALUES (1);"
)
STOPS = {
    "INSERT INTO m VALUES (2)": (
        er.NOT_SUPPORTED_YET,
        "cannot apply row events through MERGE table 'elsewhere.m': the rows belong to its underlying tables",
    ),
    "UPDATE m SET v=9": (
        er.NOT_SUPPORTED_YET,
        "cannot apply row events through MERGE table 'elsewhere.m': the rows belong to its underlying tables",
    ),
    "TRUNCATE m": (
        er.NOT_SUPPORTED_YET,
        "cannot apply TRUNCATE TABLE through MERGE table 'elsewhere.m': the rows belong to its underlying tables",
    ),
    "ALTER TABLE t ENGINE=MRG_MyISAM UNION=(a, b) INSERT_METHOD=LAST": (
        er.NOT_SUPPORTED_YET,
        "cannot apply the new rows of ALTER TABLE through MERGE table 'elsewhere.t': the rows belong to its underlying "
        "tables",
    ),
    "ALTER TABLE m ENGINE=MyISAM": (
        er.ALTER_OPERATION_NOT_SUPPORTED_REASON,
        "ALTER TABLE elsewhere.m: its rows come from elsewhere (MERGE)",
    ),
}


@pytest.mark.long("The case of MariaDB into SQLite holds the promise; others repeat it.", keeps="sqlite-mariadb")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "duckdb"])
def test_a_merge_table_is_left_out_by_name_and_stops_the_channel_where_it_changes_other_tables(
    request: pytest.FixtureRequest, vendor: str, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source: MariadbServer = request.getfixturevalue(vendor)
    for number, (statement, (errno, text)) in enumerate(STOPS.items()):
        source.sql("DROP DATABASE IF EXISTS elsewhere; CREATE DATABASE elsewhere; FLUSH BINARY LOGS")
        path = source.binlog_files[-1]
        source.sql(MERGE + "RENAME TABLE m TO n; RENAME TABLE n TO m", "elsewhere")
        source.sql(statement, "elsewhere")
        url = {"sqlite": "", "duckdb": f"duckdb:///{tmp_path}/{number}.duckdb"}.get(kind)
        target = new_database(request.getfixturevalue("postgresql")) if url is None else url
        log = groups_of(path)
        instance = Instance(tmp_path / str(number), log, **({"target": target} if target else {}))
        with pytest.raises(RplError) as caught:
            instance.apply(log)
        assert caught.value.errno == errno
        assert caught.value.message.startswith(text)
        assert "Table 'elsewhere.m' is not replicated: the engine MERGE stores its rows elsewhere" in caplog.messages
        prefix, schema = ("elsewhere__", None) if kind == "sqlite" else ("", "elsewhere")
        there = {
            name
            for name in inspect(instance.target.engine).get_table_names(schema)
            if not name.startswith(("rplctl", "slave"))
        }
        assert there == {f"{prefix}{name}" for name in "abt"}
        instance.target.close()
