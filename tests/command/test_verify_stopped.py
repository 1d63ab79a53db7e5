"""`rplctl verify` of a channel that no thread serves: it is brought up to date; to compare nothing is no success."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rplctl.own_tables.clones import ClonedTable, CopyState, add_clones
from rplctl.status import read_status
from rplctl.target import open_engine
from tests.command.test_dry_run import contents
from tests.kit.load import working
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = """DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE t (id INT PRIMARY KEY, v INT);
CREATE TABLE u (id INT PRIMARY KEY, v INT); INSERT INTO t SELECT seq, seq FROM seq_1_to_200"""
IDS = 100


def set_up(replica: Replica, source: MariadbServer, *init: str) -> None:
    replica.run("init", *init)
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "shop"\n{options.read_text()}')
    replica.change_master(source)


def write(cursor: Any) -> None:
    cursor.execute(f"UPDATE t SET v = v + 1 WHERE id <= {IDS} ORDER BY RAND() LIMIT 2")


def verified(replica: Replica, *options: str, expect: int = 0) -> dict[str, dict[str, Any]]:
    return {
        row["Table_name"]: row for row in json.loads(replica.run("verify", "--json", *options, expect=expect).stdout)
    }


@contextmanager
def cron(replica: Replica) -> Iterator[None]:
    """The first line of the README's crontab, again and again."""
    ended, failed = threading.Event(), list[str]()

    def run() -> None:
        while not ended.is_set():
            done = replica.run("-q", "start", "--until-synced", "--max-time", "50", expect=None)
            if done.returncode not in (0, 75):  # another command has the channel for a moment
                failed.append(done.stderr)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    assert not failed, failed


@pytest.mark.long("The case alone stays in make test.", keeps="alone")
@pytest.mark.parametrize("beside", ["alone", "beside writers and cron"])
def test_the_crontab_of_the_readme_verifies_and_repairs(replica: Replica, source: MariadbServer, beside: str) -> None:
    """Also beside writers and runs of cron, which begin and end as they like; what ran is stopped."""
    set_up(replica, source)
    replica.run("-q", "start", "--until-synced", "--max-time", "50")
    source.sql("INSERT INTO t SELECT seq, seq FROM seq_201_to_400", "shop")
    done = replica.run("verify")
    assert "Compared 2 tables and 400 rows." in done.stderr
    assert (replica.pid("receiver"), replica.pid("applier")) == (None, None)
    with closing(sqlite3.connect(replica.datadir / "target.db")) as connection, connection:
        connection.execute("UPDATE shop__t SET v = 0 WHERE id = 300")
    with ExitStack() as busy:
        if beside != "alone":
            busy.enter_context(working(source, "shop", [write], harmless=(), pause_s=0.005))
            busy.enter_context(cron(replica))
        assert verified(replica, expect=1)["t"]["Different"] == 1
    replica.run("repair")
    replica.run("-q", "verify")
    assert (replica.pid("receiver"), replica.pid("applier")) == (None, None)
    assert replica.run("check").stdout.startswith("RPLCTL OK"), "the channel still runs from cron"


@pytest.mark.long("tests/command/test_dry_run.py holds dry runs in make test.")
def test_a_dry_run_of_repair_starts_nothing_and_changes_no_file(replica: Replica, source: MariadbServer) -> None:
    """Of a stopped channel: the rows are compared where the target stands, if the relay log has all that came since."""
    set_up(replica, source)
    replica.run("-q", "start", "--until-synced", "--max-time", "50")
    with closing(sqlite3.connect(replica.datadir / "target.db")) as connection, connection:
        connection.execute("UPDATE shop__t SET v = 0 WHERE id = 150")
    verified(replica, expect=1)
    before = contents(replica.datadir)
    (row,) = json.loads(replica.run("repair", "--dry-run", "--json").stdout)
    assert (row["Updated"], len(row["Statements"])) == (1, 1)
    assert contents(replica.datadir) == before
    source.sql("UPDATE t SET v = v + 1 WHERE id = 9", "shop")
    refused = replica.run("repair", "--dry-run", expect=3)
    assert "no receiver runs" in refused.stderr and "rplctl start --receiver" in refused.stderr
    assert contents(replica.datadir) == before
    replica.run("start", "--receiver")
    (row,) = json.loads(replica.run("repair", "--dry-run", "--json").stdout)
    assert row["Updated"] == 1 and replica.pid("applier") is None
    replica.run("stop")


@pytest.mark.long(
    "test_the_crontab_of_the_readme_verifies_and_repairs compares a stopped channel; the counts are rows of one table.",
)
def test_a_comparison_of_nothing_is_no_success(replica: Replica, source: MariadbServer) -> None:
    """And is no verification: neither that nor one of a part refreshes the age that check reads."""
    set_up(replica, source)
    replica.run("start")
    replica.wait_synced(source)
    old = ("check", "--max-verify-age", "1d", "-v")
    for options in (["--databases", "shpo"], ["--tables", "shop.x"]):
        failed = replica.run("-q", "verify", *options, expect=None)
        assert failed.returncode == (1 if "shpo" in options else 6)
        assert "source has no replicated table" in failed.stderr
    replica.run("verify", "--tables", "shop.t")
    assert "verify_old" in replica.run(*old, expect=1).stdout
    replica.run("verify")
    assert "verify_old" not in replica.run(*old, expect=None).stdout
    engine = open_engine(f"sqlite:///{replica.datadir / 'target.db'}")
    replica.run("stop")
    with engine.begin() as connection:
        add_clones(
            connection,
            "",
            [
                ClonedTable(
                    Database_name="shop", Table_name="u", Source_database="shop", Family=1, State=CopyState.LEFT_OUT
                )
            ],
        )
    engine.dispose()
    replica.channel.verify_report_path.unlink()
    found = verified(replica, expect=1)
    assert (found["t"]["Equal"], found["u"]["Note"]) == (
        200,
        "the copy of the table was cancelled: rplctl clone copies it",
    )
    assert "verify_old" in replica.run(*old, expect=None).stdout
    source.sql("DROP DATABASE shop")
    assert "nothing was compared" not in replica.run("verify", expect=1).stderr


@pytest.mark.long("tests/stories/test_duckdb.py verifies and repairs such a file while its source rests")
def test_a_duckdb_target_is_verified_while_its_source_is_written_to(
    replica: Replica, source: MariadbServer, tmp_path: Path
) -> None:
    """The applier is kept out meanwhile; one that was started to stay is named, with the commands that work."""
    target = tmp_path / "shop.duckdb"
    set_up(replica, source, "--target", f"duckdb:///{target}")
    replica.run("start")
    with working(source, "shop", [write], harmless=(), pause_s=0.005):
        wait_until(lambda: read_status(replica.channel.status_path("applier")).has_applied)
        refused = replica.run("verify", expect=7)
        (hint,) = [line for line in refused.stderr.splitlines() if "rplctl stop; rplctl verify; rplctl start" in line]
        replica.run("stop")
        found = verified(replica)
        assert found["t"]["Equal"] >= 200 - IDS
        with duckdb.connect() as other:
            other.execute(f"ATTACH '{target}' AS replica")
            other.execute("UPDATE replica.shop.t SET v = 0 WHERE id = 150")
        assert verified(replica, expect=1)["t"]["Different"] == 1
        replica.run("repair")
        verified(replica)
    replica.run("start")
    replica.wait_synced(source)
    replica.run("wait", "--state", "synced", "--timeout", "30")
    assert hint


def test_an_unfinished_comparison_with_another_server_is_not_resumed(replica: Replica, source: MariadbServer) -> None:
    set_up(replica, source)
    progress = replica.channel.verify_folder / "progress.json"
    replica.run("start", "--until-synced")
    replica.run("verify", "--report", str(replica.datadir), expect=None)  # all tables are done, but no report
    left = progress.read_text()
    resumed = "2 tables were compared before the interruption"
    assert resumed in replica.run("verify").stderr

    with closing(sqlite3.connect(replica.datadir / "target.db")) as target:
        target.execute("DELETE FROM shop__t WHERE id = 7")
        target.commit()
    progress.parent.mkdir(mode=0o700, exist_ok=True)
    stored = json.loads(left)
    stored["header"]["server_id"] += 1
    progress.write_text(json.dumps(stored))
    again = replica.run("verify", expect=1)
    assert resumed not in again.stderr and "199 equal, 1 differ" in again.stderr


def test_a_key_that_the_source_cannot_have_or_writes_in_two_ways_ends_no_comparison(
    replica: Replica, source: MariadbServer
) -> None:
    """Another program wrote these keys to the target: no number, no latin1 text. cp932 has two codes for U+2252."""
    set_up(replica, source)
    source.sql(
        "CREATE TABLE latin (k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY, v INT);"
        "CREATE TABLE japan (k VARCHAR(9) CHARACTER SET cp932 COLLATE cp932_bin PRIMARY KEY, v INT);"
        "INSERT INTO latin VALUES ('é', 1); INSERT INTO japan VALUES (x'8790', 1), ('a', 1)",
        "shop",
    )
    replica.run("start", "--until-synced")
    with closing(sqlite3.connect(replica.datadir / "target.db")) as target:
        for statement in (
            "INSERT INTO shop__t VALUES ('abc', 1), (1.5, 1)",
            "INSERT INTO shop__latin VALUES ('☺', 1)",
            "UPDATE shop__latin SET v = 2 WHERE k = 'é'",
            "UPDATE shop__japan SET v = 2 WHERE k = '≒'",
        ):
            target.execute(statement)
        target.commit()
    found = verified(replica, expect=1)
    counts = {name: (row["Missing"], row["Extra"], row["Different"]) for name, row in found.items()}
    assert counts == {"t": (0, 2, 0), "u": (0, 0, 0), "latin": (0, 1, 1), "japan": (0, 0, 1)}
    replica.run("repair", expect=1)
    counts = {
        name: (row["Missing"], row["Extra"], row["Different"]) for name, row in verified(replica, expect=1).items()
    }
    assert counts == {"t": (0, 2, 0), "u": (0, 0, 0), "latin": (0, 0, 0), "japan": (0, 0, 0)}


def test_keys_that_a_collation_or_another_type_makes_alike_are_counted_once(
    replica: Replica, source: MariadbServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    target = mariadb_factory()
    set_up(replica, source, *replica.into(target))
    source.sql(
        "CREATE TABLE words (k VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, v INT);"
        "INSERT INTO words SELECT CONCAT('k', seq), seq FROM seq_1_to_2000;"
        "CREATE TABLE moments (k DATETIME PRIMARY KEY, v INT);"
        "INSERT INTO moments SELECT '2024-01-01' + INTERVAL seq MINUTE, seq FROM seq_1_to_400",
        "shop",
    )
    replica.run("start", "--until-synced")
    target.sql("UPDATE shop.words SET k = UPPER(k) LIMIT 150; ALTER TABLE shop.moments MODIFY k DATETIME(6) NOT NULL")
    found = verified(replica, expect=1)
    assert (found["words"]["Missing"], found["words"]["Extra"], found["words"]["Different"]) == (150, 150, 0)
    assert "another type" in str(found["moments"])
    replica.run("repair", expect=None)
    assert verified(replica, expect=1)["words"]["Equal"] == 2000
    assert target.sql("SELECT COUNT(*) FROM shop.moments") == [(400,)]
