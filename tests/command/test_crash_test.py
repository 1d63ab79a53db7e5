"""`crash-test` itself: it walks in seconds, on every kind of target, and what is wrong shows as FAIL."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from rplctl.command import crash_run, crash_test
from rplctl.demo.crash_log import FOLDER
from rplctl.errors import UsageError
from rplctl.failpoint import crash_point
from tests.cli.program import Program
from tests.servers import MariadbServer, PostgresqlServer


@pytest.fixture
def program(tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """Its temporary folder in memory where there is room for that: a kill is no power cut, fsyncs do not matter."""
    if os.access("/dev/shm", os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    return Program(tmp_path, capsys)


@pytest.mark.parametrize(
    "modes", [pytest.param(["marker", "-"], marks=pytest.mark.slow), pytest.param([], marks=pytest.mark.torture)]
)
def test_every_point_on_a_sqlite_file(program: Program, modes: list[str]) -> None:
    done = program("crash-test", "--json", "--mode", ",".join(modes))
    lines = json.loads(done.out)
    assert done.code == 0, [line for line in lines if line["Result"] != "OK"]
    wanted = [case for case in crash_test.all_cases("sqlite") if not modes or case.mode in modes]
    assert len(lines) == len(wanted)
    assert {line["Seen"] for line in lines} == {"rolled back", "committed", "fetched once", "finished", "undone"}


@pytest.mark.mariadb
@pytest.mark.slow
def test_two_phases_and_ddl_on_mariadb_and_nothing_is_left_there(mariadb: MariadbServer, program: Program) -> None:
    """The transaction kind in every mode, and what differs on a server: DDL is repeated."""
    before = mariadb.sql("SHOW DATABASES")
    done = program("crash-test", "--target", bare(mariadb), *password(program, mariadb), *ON_SERVERS)
    assert (done.code, "repeated" in done.out) == (0, True), done.out + done.err
    assert mariadb.sql("SHOW DATABASES") == before and mariadb.sql("XA RECOVER") == []


ON_SERVERS = ("--kinds", "transaction,ddl", "--mode", "xa")


def bare(server: Any) -> str:
    return str(server.url()).replace(":rpl@", "@")


def password(program: Program, server: Any) -> tuple[str, str]:
    path = program.datadir / "password"
    path.write_text("rpl")
    path.chmod(0o600)
    return ("--target-password-file", str(path))


@pytest.mark.postgresql
@pytest.mark.slow
def test_two_phases_and_ddl_on_postgresql(
    postgresql_factory: Callable[..., PostgresqlServer], program: Program
) -> None:
    server = postgresql_factory("-c", "max_prepared_transactions=10")
    done = program("crash-test", "--target", bare(server), *password(program, server), *ON_SERVERS)
    assert (done.code, "repeated" in done.out) == (0, False), done.out + done.err


@pytest.mark.mariadb
def test_a_database_of_that_name_is_never_touched(mariadb: MariadbServer, program: Program) -> None:
    mariadb.sql("CREATE DATABASE rplctl_crash_test; CREATE TABLE rplctl_crash_test.mine (a INT)")
    try:
        done = program("crash-test", "--target", bare(mariadb), *password(program, mariadb))
        assert done.code == 2 and "holds a database 'rplctl_crash_test'" in done.err
        assert mariadb.sql("SHOW TABLES", "rplctl_crash_test") == [("mine",)]
    finally:
        mariadb.sql("DROP DATABASE rplctl_crash_test")


@pytest.mark.slow
@pytest.mark.usefixtures("program")
def test_a_wrong_commit_order_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before COMMIT: the proof that a FAIL can be had."""

    def wrong(target: Any, ledger: Any, step: Any, apply: Callable[[], None], *, foreign_keys: bool = True) -> None:
        target.begin(foreign_keys=foreign_keys)
        ledger.advance(target.connection, *step)
        target.commit()
        target.begin(foreign_keys=foreign_keys)
        apply()
        crash_point("crash_commit_before")
        target.commit()
        ledger.committed(step[1])

    monkeypatch.setattr("rplctl.applier.batch.commit_group", wrong)
    lines = crash_test.crash_test(points=["crash_commit_before"], kinds=["transaction"])
    assert [line.Result for line in lines] == ["FAIL", "FAIL"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--points", "nonsense"), "'nonsense' is not a crash point"),
        (("--mode", "none"), "'none' is not a commit mode"),
        (("--kinds", "all"), "'all' is not a kind"),
        (("--mode", "xa"), "no such case on a target of kind sqlite"),
        (("--target", "mysql://u:secret@h/"), "a password in --target would be seen"),
    ],
)
def test_what_cannot_be_walked_is_said(program: Program, arguments: tuple[str, ...], says: str) -> None:
    done = program("crash-test", *arguments)
    assert (done.code, says in done.err, "secret" in done.err) == (2, True, False)


def test_a_child_says_what_it_did_up_to_its_death() -> None:
    def work(say: Callable[[Any], None]) -> None:
        say("first")
        crash_point("crash_commit_after")
        say("second")

    assert crash_run.in_child(work, "crash_commit_after=kill") == crash_run.Outcome(True, ("first",))
    assert crash_run.in_child(work) == crash_run.Outcome(False, ("first", "second"))


def test_a_childs_error_is_its_last_word() -> None:
    def work(say: Callable[[Any], None]) -> None:
        raise UsageError("no", errno=1210)

    assert crash_run.in_child(work) == crash_run.Outcome(False, (), "no", 1210)


def test_arming_a_thread_needs_one_that_runs(program: Program) -> None:
    program("change-master", "--master-binlog-dir", str(FOLDER))
    done = program("crash-test", "--arm", "crash_commit_after=kill")
    assert (done.code, "no thread of the channel runs" in done.err) == (3, True)
