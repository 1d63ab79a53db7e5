"""What `clone` says before it begins: what is special of each table, and the rights that are missing, to be pasted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl.command.cloning.choice import Choice
from rplctl.errors import UsageError
from tests.cli.terminal import on_terminal
from tests.kit.postgresql_state import new_database
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, PostgresqlServer

ODD = "od_d"
TABLES = (
    "CREATE TABLE seen (id INT PRIMARY KEY, v VARCHAR(10))",
    "CREATE TABLE written (id INT PRIMARY KEY)",
    "CREATE TABLE hidden (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES seen (id) ON DELETE CASCADE)",
    "CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM",
    "CREATE TABLE keyless (a INT)",
    "CREATE TABLE versioned (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
    "CREATE SEQUENCE numbers",
)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


@pytest.mark.long("test_the_dry_run_names_the_grant_that_foreign_keys_need stays in make test.")
@pytest.mark.slow
@pytest.mark.mariadb
def test_rights_that_are_missing_are_told_as_statements_and_nothing_is_left_out(
    mariadb: MariadbServer, replica: Replica
) -> None:
    mariadb.sql(f"DROP DATABASE IF EXISTS {ODD}; CREATE DATABASE {ODD}; USE {ODD}; {';'.join(TABLES)}")
    mariadb.sql("DROP USER IF EXISTS few@'%'; CREATE USER few@'%' IDENTIFIED BY 'rpl'")
    mariadb.sql(f"GRANT SELECT ON {ODD}.seen TO few@'%'; GRANT INSERT ON {ODD}.written TO few@'%'")
    replica.run("init")
    replica.change_master(mariadb)
    replica.run("change-master", "--master-user", "few")

    every = asked(replica, expect=6)
    assert [row["Missing_Grant"] for row in every if row["Missing_Grant"]] == [
        "GRANT SELECT ON *.* TO 'few'@'%';",
        "GRANT REPLICATION SLAVE ON *.* TO 'few'@'%';",
        "GRANT REPLICATION CLIENT ON *.* TO 'few'@'%';",
    ]
    only_named = asked(replica, "--tables", f"{ODD}.hidden,{ODD}.written,{ODD}.seen", expect=6)
    assert [row["Missing_Grant"] for row in only_named][:2] == [
        f"GRANT SELECT ON `{ODD}`.`hidden` TO 'few'@'%';",
        f"GRANT SELECT ON `{ODD}`.`written` TO 'few'@'%';",
    ]
    replica.run("change-filter", "--replicate-do-db", ODD)
    listed = asked(replica, expect=6)
    assert [row["Table_name"] for row in listed] == ["*", "*", "*", "seen"]
    done = replica.run("clone", expect=6)
    assert all(row["Missing_Grant"] in done.stderr for row in listed) and "ERROR 1142" in done.stderr
    screen = on_terminal(replica.datadir, "clone", "--dry-run", columns=120).out
    assert "\nGRANT SELECT ON `od\\_d`.* TO 'few'@'%';\n" in screen.replace("\\\\", "\\"), screen

    for row in listed[:-1]:
        mariadb.sql(row["Missing_Grant"])
    listed = asked(replica, expect=0)
    assert {row["Table_name"]: row["Note"] for row in listed} == {
        "seen": f"one snapshot with {ODD}.hidden",
        "written": "",
        "hidden": f"one snapshot with {ODD}.seen",
        "old": "MyISAM: has no snapshots, so writes to it wait while it is read",
        "keyless": "no key: one chunk",
        "versioned": "without its history",
        "numbers": "sequence: its next event sets its value",
    }
    mariadb.sql(f"USE {ODD}; INSERT INTO keyless SELECT seq FROM seq_1_to_1000")
    mariadb.sql(f"ANALYZE TABLE {ODD}.keyless")
    done = replica.run("clone", "--dry-run")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0][-2:] == ["Seconds", "Missing_Grant"] and len({len(line) for line in lines}) == 1
    assert "Note: 6 tables, 1.0 k rows, " in done.stderr
    assert_what_cannot_be_meant_is_refused(replica)
    mariadb.sql(f"CREATE TABLE {ODD}.SEEN (id INT PRIMARY KEY)")
    said = replica.run("clone", expect=2).stderr
    assert f"{ODD}.SEEN, {ODD}.seen are the same table for the target" in said and "--replicate-ignore-table" in said
    mariadb.sql(f"DROP DATABASE {ODD}; DROP USER few@'%'")


def asked(replica: Replica, *more: str, expect: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads(replica.run("clone", "--dry-run", "--json", *more, expect=expect).stdout)
    return found


def assert_what_cannot_be_meant_is_refused(replica: Replica) -> None:
    for words, code, said in (
        (f"--tables {ODD}.none", 6, "ERROR 1146"),
        ("--tables other.t", 2, "filters exclude other.t"),
        ("--databases other", 6, "SELECT on other.*"),
        (f"--tables {ODD}.seen", 2, f"replicates {ODD}.hidden"),
    ):
        done = replica.run("clone", *words.split(), expect=code)
        assert said in done.stderr and "hint: " in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.mariadb
def test_the_dry_run_names_the_grant_that_foreign_keys_need(
    mariadb: MariadbServer, postgresql: PostgresqlServer, replica: Replica
) -> None:
    mariadb.sql(
        "DROP DATABASE IF EXISTS kin; CREATE DATABASE kin; USE kin; CREATE TABLE parent (id INT PRIMARY KEY);"
        "CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES parent (id))"
    )
    url = new_database(postgresql)
    name = url.rpartition("/")[2]
    postgresql.sql('DROP ROLE IF EXISTS "plain-one"; CREATE ROLE "plain-one" LOGIN PASSWORD \'n\'')
    postgresql.sql(f'GRANT CREATE, TEMPORARY ON DATABASE {name} TO "plain-one"')
    target = url.replace("rpl:rpl@", "plain-one@")
    replica.run("init", "--target", target, "--target-password-stdin", password="n")
    replica.change_master(mariadb)
    replica.run("change-filter", "--replicate-do-db", "kin")
    grant = re.search(r"\(error 1452\); run: (.+)", replica.run("clone", "--dry-run").stderr)
    assert grant is not None and grant[1] == 'GRANT SET ON PARAMETER session_replication_role TO "plain-one"'
    postgresql.sql(grant[1])
    assert "1452" not in replica.run("clone", "--dry-run").stderr
    postgresql.sql('REVOKE SET ON PARAMETER session_replication_role FROM "plain-one"')


def test_names_are_lists_of_tables() -> None:
    assert Choice.of("a,b", "c.d.e", replace=True) == Choice(("a", "b"), (("c", "d.e"),), True)
    for tables, replace in (("t", False), (".t", False), ("d.", True)):
        with pytest.raises(UsageError):
            Choice.of("", tables, replace=replace)
