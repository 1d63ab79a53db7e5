"""`on_uncomputable_ddl=recopy`: DDL whose values only the source knows copies its tables again and stops no channel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable

import pytest

from tests.kit.postgresql_state import new_database
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
SCHEMA = """DROP DATABASE IF EXISTS anew; CREATE DATABASE anew; USE anew;
CREATE TABLE parent (k INT PRIMARY KEY, v VARCHAR(20));
CREATE TABLE child (id INT PRIMARY KEY, k INT, FOREIGN KEY (k) REFERENCES parent (k) ON DELETE CASCADE);
CREATE TABLE alone (a INT, b VARCHAR(20));
INSERT INTO parent VALUES (1, 'one'), (2, 'two'), (3, 'three'); INSERT INTO child VALUES (10, 1), (20, 2);
INSERT INTO alone VALUES (3, 'c'), (1, 'a'), (2, 'b'), (2, 'b')"""
UNCOMPUTABLE = (
    "ALTER TABLE parent ADD u VARCHAR(40) DEFAULT (UUID())",
    "ALTER TABLE alone ADD n INT AUTO_INCREMENT, ADD PRIMARY KEY (n)",
)
BEHIND = (  # by the columns that the statements before have made
    "UPDATE parent SET u = 'known' WHERE k = 2; DELETE FROM parent WHERE k = 1",
    "INSERT INTO alone (a, b) VALUES (9, 'z'); DELETE FROM alone WHERE n = 2",
    "RENAME TABLE alone TO renamed",
)


def begun(replica: Replica, source: MariadbServer, *init: str) -> None:
    source.sql(SCHEMA)
    replica.run("init", *init)
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "anew"\n{options.read_text()}')
    replica.change_master(source)
    replica.run("start")
    replica.wait_synced(source)


def wait_copied(replica: Replica, timeout_s: float = 300) -> None:
    deadline = time.monotonic() + timeout_s
    rows: list[dict[str, object]] = []
    while not rows or any(row["State"] != "done" for row in rows):
        assert time.monotonic() < deadline and replica.pid("applier"), f"{rows}{replica.logs()}"
        time.sleep(0.2)
        rows = json.loads(replica.run("show-clone", "--json").stdout)


def assert_goes_on_equal(
    replica: Replica, source: MariadbServer, statements: Iterable[str] = (*UNCOMPUTABLE, *BEHIND)
) -> None:
    """Statements that cannot be computed, and what the source changes behind them."""
    for text in statements:
        source.sql(text, "anew")
    replica.wait_synced(source)
    assert replica.status()["Slave_SQL_Running"] == "Yes"
    wait_copied(replica)
    replica.run("verify")
    assert "copied again from the source" in replica.run("history").stdout


@pytest.mark.long("test_the_hint_of_the_stop_leads_to_a_verified_copy copies a table again.")
def test_a_channel_goes_on_and_its_tables_are_copied_again(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """Also those that foreign keys link with them."""
    source = mariadb_factory()
    begun(replica, source, "--on-uncomputable-ddl", "recopy")
    assert_goes_on_equal(replica, source)


def test_the_hint_of_the_stop_leads_to_a_verified_copy(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source = mariadb_factory()
    begun(replica, source)
    source.sql(UNCOMPUTABLE[0], "anew")
    wait_until(lambda: replica.status()["Last_SQL_Errno"] == 1846)
    hint = replica.status()["Last_SQL_Hint"]
    assert "rplctl init --on-uncomputable-ddl recopy; rplctl start" in hint
    replica.run("init", "--on-uncomputable-ddl", "recopy")
    replica.run("start")
    for text in (UNCOMPUTABLE[1], *BEHIND):
        source.sql(text, "anew")
    replica.wait_synced(source)
    wait_copied(replica)
    replica.run("verify")


@pytest.mark.long
@pytest.mark.parametrize("point", ["crash_commit_after", "crash_clone_after_begin", "crash_clone_before_end"])
def test_a_kill_at_any_step_loses_neither_the_statement_nor_a_row(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer], point: str
) -> None:
    source = mariadb_factory()
    begun(replica, source, "--on-uncomputable-ddl", "recopy")
    replica.run("stop", "--applier")
    for text in UNCOMPUTABLE:
        source.sql(text, "anew")
    replica.run("start", "--applier", environment={"RPLCTL_FAILPOINTS": point}, expect=None)
    wait_until(lambda: replica.status()["Slave_SQL_Running"] == "No")
    replica.run("start", expect=None)
    assert_goes_on_equal(replica, source, BEHIND)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["mariadb", "postgresql"])
def test_every_kind_of_target_copies_again(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer], kind: str, request: pytest.FixtureRequest
) -> None:
    """SQLite's is above."""
    if kind == "mariadb":
        init = replica.into(mariadb_factory())
    else:
        password = replica.datadir.parent / "password"
        password.write_text("rpl\n")
        password.chmod(0o600)
        url = new_database(request.getfixturevalue("postgresql")).replace("rpl:rpl@", "rpl@").replace("+psycopg", "")
        init = "--target", url, "--target-password-file", str(password)
    source = mariadb_factory()
    begun(replica, source, *init, "--on-uncomputable-ddl", "recopy")
    assert_goes_on_equal(replica, source)
