"""A table's rows from before the channel's position: how they come (INITIAL COPY in rplctl(1)), and that an empty table
in their place is never hidden (issue G 18).
"""

from __future__ import annotations

import csv
import re
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

pytestmark = pytest.mark.slow
PLACE = re.compile(r"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)")


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    return Replica(tmp_path, spark=False)


def fill(source: MariadbServer, name: str) -> None:
    source.sql(
        f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; USE {name};"
        "CREATE TABLE orders (id INT PRIMARY KEY, what VARCHAR(20)); CREATE TABLE none (id INT PRIMARY KEY);"
        "INSERT INTO orders VALUES (1, 'before'), (2, 'before')"
    )


def go_on(source: MariadbServer, name: str) -> None:
    source.sql(f"USE {name}; UPDATE orders SET what='after' WHERE id=1; INSERT INTO orders VALUES (3, 'after')")


def dump(source: MariadbServer, name: str, path: Path) -> tuple[str, str]:
    """As the manual page has it; file and position."""
    command = ["mariadb-dump", f"--socket={source.socket}", "--user=rpl", "--password=rpl", "--single-transaction"]
    text = subprocess.run(
        [*command, "--master-data=2", "--databases", name], check=True, capture_output=True, text=True
    ).stdout
    path.write_text(text)
    found = PLACE.search(text)
    assert found is not None
    return found[1], found[2]


def only(replica: Replica, database: str) -> None:
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "{database}"\n{options.read_text()}')


@pytest.mark.long("tests/stories/test_examples.py types this dump from the manual page.")
def test_a_dump_with_its_position_loaded_into_a_server_and_the_channel_begun_there(
    mariadb: MariadbServer, mariadb_factory: Callable[..., MariadbServer], replica: Replica, tmp_path: Path
) -> None:
    target = mariadb_factory("--skip-log-bin", "--skip-log-slave-updates")
    fill(mariadb, "copied")
    at = dump(mariadb, "copied", tmp_path / "dump.sql")
    go_on(mariadb, "copied")
    command = ["mariadb", f"--socket={target.socket}", "--user=rpl", "--password=rpl"]
    subprocess.run(command, check=True, input=(tmp_path / "dump.sql").read_bytes())
    try:
        replica.run("init", *replica.into(target))
        replica.change_master(mariadb, "--master-log-file", at[0], "--master-log-pos", at[1])
        replica.run("start")
        replica.wait_synced(mariadb)
        assert mariadb.dump("copied") == target.dump("copied")
    finally:
        replica.close()


def test_load_schema_says_what_it_made_empty_and_check_does_until_the_rows_are_there(
    mariadb: MariadbServer, replica: Replica, tmp_path: Path
) -> None:
    """The recipe for other targets; a table that is empty on the source needs no copy."""
    fill(mariadb, "emptied")
    at = dump(mariadb, "emptied", tmp_path / "dump.sql")
    with (tmp_path / "orders.csv").open("w") as file:
        csv.writer(file).writerows(mariadb.sql("SELECT id, what FROM emptied.orders"))
    go_on(mariadb, "emptied")
    try:
        replica.run("init")
        replica.change_master(mariadb, "--master-log-file", at[0], "--master-log-pos", at[1])
        only(replica, "emptied")
        from_file = replica.run("load-schema", str(tmp_path / "dump.sql"), "--channel", "")
        assert "2 tables created empty" in from_file.stderr and "emptied.orders" in from_file.stderr
        assert "rows_never_copied" in replica.run("check", "--offline", expect=1).stdout
        assert (
            "load-schema did not create this table empty"
            in replica.run("load-schema", "--rows-loaded", "emptied.x", expect=2).stderr
        )
        replica.run("load-schema", "--rows-loaded", "emptied.none")
        found = replica.run("check", "--offline", expect=1).stdout
        assert "emptied.orders" in found and "emptied.none" not in found and "--rows-loaded" in found
        replica.run("start")
        stopped = replica.run("wait", "--pos", ":".join(map(str, mariadb.master_status())), expect=3).stderr
        assert "1032" in stopped and "rplctl repair" in stopped, "told at once, with its way out"
        replica.run("stop")
        with (
            closing(sqlite3.connect(replica.datadir / "target.db")) as target,
            (tmp_path / "orders.csv").open() as rows,
        ):
            target.executemany("INSERT INTO emptied__orders VALUES (?, ?)", csv.reader(rows))
            target.execute("UPDATE emptied__orders SET what = '' WHERE id = 2")
            target.commit()
        replica.run("start")
        replica.wait_synced(mariadb)
        replica.run("verify", expect=1)
        assert "rows_never_copied" in replica.run("check", "--offline", expect=None).stdout, "a row of it differs"
        replica.run("repair")
        replica.run("verify")
        assert replica.query("SELECT id, what FROM emptied__orders ORDER BY id") == [
            (1, "after"), (2, "before"), (3, "after"),
        ]  # fmt: skip
        assert "rows_never_copied" not in replica.run("check", "--offline", expect=None).stdout
    finally:
        replica.close()


@pytest.mark.long("test_load_schema_says_what_it_made_empty_and_check_does_until_the_rows_are_there holds the words.")
def test_from_the_source_only_tables_with_rows_are_told_of_and_a_drop_there_ends_it(
    mariadb: MariadbServer, replica: Replica
) -> None:
    fill(mariadb, "asked")
    name, position = mariadb.master_status()
    try:
        replica.run("init")
        replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
        only(replica, "asked")
        done = replica.run("load-schema", "--from-source")
        assert (
            "1 table created empty" in done.stderr and "asked.orders" in done.stderr and "asked.none" not in done.stderr
        )
        mariadb.sql("USE asked; ALTER TABLE orders ADD more INT; DROP TABLE none")
        replica.run("start")
        replica.wait_synced(mariadb)
        assert "asked.orders" in replica.run("check", "--offline", expect=1).stdout, "an ALTER brings no rows"
        mariadb.sql("USE asked; DROP TABLE orders")
        replica.wait_synced(mariadb)
        replica.run("stop")
        assert "rows_never_copied" not in replica.run("check", "--offline", expect=None).stdout
    finally:
        replica.close()
