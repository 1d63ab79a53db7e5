"""`on_uncomputable_ddl=recopy`: DDL whose values only the source knows copies its tables again and stops no channel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable

import pytest

from tests.kit.postgresql_state import new_database
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer

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


def postgresql_options(replica: Replica, server: PostgresqlServer) -> tuple[str, ...]:
    password = replica.datadir.parent / "password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    url = new_database(server).replace("rpl:rpl@", "rpl@").replace("+psycopg", "")
    return "--target", url, "--target-password-file", str(password)


def test_children_whose_rows_this_applier_has_not_seen_are_copied_with_their_parent(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    """A server does not log the effects of CASCADE. The new applier of a server target knows no table yet."""
    source, target = mariadb_factory(), mariadb_factory()
    begun(replica, source, *replica.into(target), "--on-uncomputable-ddl", "recopy")
    replica.run("stop", "--applier")
    source.sql(f"{UNCOMPUTABLE[0]}; DELETE FROM parent WHERE k = 1; INSERT INTO parent VALUES (4, 'four', 'u')", "anew")
    source.sql("INSERT INTO child VALUES (40, 4)", "anew")
    replica.run("start", "--applier")
    replica.wait_synced(source)
    wait_copied(replica)
    replica.run("verify")
    assert target.sql("SELECT id FROM anew.child ORDER BY id") == [(20,), (40,)]


@pytest.mark.long("The target SQLite stays.", keeps="sqlite")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_table_is_copied_again_after_a_swap_that_kept_the_old_table(
    replica: Replica, mariadb_factory: Callable[..., MariadbServer], kind: str, request: pytest.FixtureRequest
) -> None:
    """A renamed table keeps the names of its indexes, which are those of its old name."""
    source = mariadb_factory()
    init = () if kind == "sqlite" else postgresql_options(replica, request.getfixturevalue("postgresql"))
    begun(replica, source, *init)
    source.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT, u INT, KEY i (v), UNIQUE KEY w (u))", "anew")
    source.sql("CREATE TABLE t2 LIKE t; RENAME TABLE t TO t_old, t2 TO t; INSERT INTO t VALUES (1, 2, 3)", "anew")
    source.sql("INSERT INTO t_old VALUES (4, 5, 6)", "anew")
    replica.wait_synced(source)
    replica.run("stop", "--receiver")
    replica.run("clone", "--tables", "anew.t", "--replace", "--yes")
    replica.run("start", "--receiver", expect=None)
    wait_copied(replica)
    source.sql("ALTER TABLE t DROP KEY i, ADD KEY i (v, u); ALTER TABLE t_old DROP KEY i; DROP TABLE t_old", "anew")
    replica.wait_synced(source)
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
        init = postgresql_options(replica, request.getfixturevalue("postgresql"))
    source = mariadb_factory()
    begun(replica, source, *init, "--on-uncomputable-ddl", "recopy")
    assert_goes_on_equal(replica, source)
