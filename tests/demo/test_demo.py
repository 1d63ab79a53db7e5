"""The recorded source is complete, small, and really leads to the state it claims."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rplctl.demo import BINLOG_FOLDER, source_state
from tests.kit.servers import MariadbServer
from tests.tools.record_demo import DATABASE, MOST_BYTES, table_state


def test_index_names_exactly_the_recorded_files() -> None:
    named = [Path(line).name for line in (BINLOG_FOLDER / "binlog.index").read_text().splitlines()]
    assert named == sorted(path.name for path in BINLOG_FOLDER.glob("binlog.0*"))
    state = source_state()
    assert (named[0], named[-1]) == (state.first_log, state.end_log)
    assert (BINLOG_FOLDER / state.end_log).stat().st_size == state.end_position


def test_recording_is_small_enough_for_package_data() -> None:
    assert sum(path.stat().st_size for path in BINLOG_FOLDER.iterdir()) <= MOST_BYTES


def test_four_tables_are_described() -> None:
    tables = source_state().tables
    assert [table.name for table in tables] == ["customers", "order_items", "orders", "products"]
    assert all(table.database == DATABASE and table.rows > 20 and len(table.sha256) == 64 for table in tables)
    assert tables[3].columns[4] == "discontinued", "the ALTER in the middle put it after price"


@pytest.mark.mariadb
def test_replaying_the_recording_with_the_vendors_tools_reaches_the_recorded_state() -> None:
    with MariadbServer(["--skip-log-bin"]) as server:
        text = subprocess.run(
            ["mariadb-binlog", "--no-defaults", *sorted(BINLOG_FOLDER.glob("binlog.0*"))],
            capture_output=True,
            check=True,
        )
        client = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-urpl", "-prpl"]
        subprocess.run(client, input=text.stdout, check=True, capture_output=True)
        assert tuple(table_state(server, name) for name in server.tables(DATABASE)) == source_state().tables
