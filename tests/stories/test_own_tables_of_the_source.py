"""A source that is itself the target of an rplctl: what that one keeps in its `rplctl` database is nobody else's.

MariaDB → rplctl → MariaDB → rplctl → MariaDB: the middle one logs the positions that are committed with its rows, and
how our tables were made and altered. As mysqld never logs its own repository tables, a channel leaves them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rplctl.decode.row_stream import read_run
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow
OWN = "SELECT * FROM rplctl.slave_relay_log_info"


@pytest.fixture
def applied() -> Iterator[Callable[..., Instance]]:
    """`applied(folder, source, target)` → an instance that has all of the source's logs in the target."""
    made: list[Instance] = []

    def apply(folder: Path, source: MariadbServer, target: str, **options: Any) -> Instance:
        source.sql("FLUSH BINARY LOGS")
        logs = [groups_of(path) for path in source.binlog_files[:-1]]
        instance = Instance(folder, logs[0], target=target, **options)
        made.append(instance)
        for log in logs:
            instance.apply(log)
        return instance

    yield apply
    for instance in made:
        instance.target.close()


def fill(source: MariadbServer) -> None:
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))")
    numbers = ",".join(f"({number}, 'first')" for number in range(1, 501))
    source.sql(f"INSERT INTO d.t VALUES {numbers}")
    source.sql("FLUSH BINARY LOGS; UPDATE d.t SET v='second' WHERE id > 100; DELETE FROM d.t WHERE id > 450")


@pytest.mark.long("A channel that follows another instance of rplctl into the same target is rare.")
def test_positions_of_the_first_channel_never_reach_the_tables_of_the_second(
    applied: Callable[..., Instance], mariadb_factory: Callable[..., MariadbServer], tmp_path: Path
) -> None:
    source, middle, last = (mariadb_factory() for _ in range(3))
    fill(source)
    middle.sql("CREATE DATABASE rplctl")
    last.sql("CREATE DATABASE rplctl")
    applied(tmp_path / "first", source, middle.url())
    events = [row for path in middle.binlog_files for row in middle.sql(f"SHOW BINLOG EVENTS IN '{path.name}'")]
    assert {row[2] for row in events if "rplctl.slave_relay_log_info" in row[5]} >= {"Query", "Table_map"}
    second = applied(tmp_path / "second", middle, last.url())
    assert last.rows("d", "t") == source.rows("d", "t") and len(last.rows("d", "t")) == 450
    (row,) = last.sql(OWN)
    assert row != middle.sql(OWN)[0]
    assert (middle.binlog_files[-1].name, second.applier.info.exec_position.log_pos) == (row[3], row[4])
    assert last.tables("rplctl") == middle.tables("rplctl")


@pytest.mark.long("A source that is the target of another rplctl is rare.")
@pytest.mark.parametrize("compressed", ["OFF", "ON"])
def test_mysqls_log_of_its_rplctl_database_leaves_no_table_in_sqlite_nor_in_the_log_of_applied_transactions(
    applied: Callable[..., Instance], mysql_factory: Callable[..., MysqlServer], tmp_path: Path, compressed: str
) -> None:
    source, middle = mysql_factory(), mysql_factory(f"--binlog-transaction-compression={compressed}")
    fill(source)
    middle.sql("CREATE DATABASE rplctl")
    applied(tmp_path / "first", source, middle.url())
    second = applied(tmp_path / "second", middle, "", log_bin="applied")
    assert second.query("SELECT count(*), min(id), max(id) FROM d__t") == [(450, 1, 450)]
    assert second.query("SELECT name FROM sqlite_master WHERE name LIKE 'rplctl\\_\\_%' ESCAPE '\\'") == []
    written = b"".join(map(plain, sorted((tmp_path / "second").glob("applied.0*"))))
    assert b"second" in written and b"slave_relay_log_info" not in written


def plain(log: Path) -> bytes:
    """Its events, compressed transactions unfolded."""
    groups = groups_of(log)
    assert groups.format_description is not None
    run = read_run(groups.data, 4, len(groups.data), groups.format_description)
    return b"".join(run.event(number) for number in range(len(run.types)))
