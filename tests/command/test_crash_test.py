"""`crash-test` itself: it walks in seconds, on every kind of target, and what is wrong shows as FAIL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.selftest import crash_run, crash_walk
from rplctl.command.selftest.crash_cases import BESIDES, CrashCase, all_cases
from rplctl.command.selftest.crash_walk import CrashWalk
from rplctl.demo.crash_log import FOLDER
from rplctl.errors import UsageError
from rplctl.failpoint import CRASH_POINTS, crash_point
from rplctl.recovery import plan_recovery
from rplctl.relay_log.index import RelayLogIndex
from tests.cli.program import Outcome, Program
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer
from tests.kit.torture_page import count_torture


@pytest.fixture
def program(tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    """Its temporary folder in memory where there is room for that: a kill is no power cut, fsyncs do not matter."""
    if os.access("/dev/shm", os.W_OK):
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    return Program(tmp_path, capsys)


IN_THE_SUITE = {  # what of the walk is done there; `make torture` does all of it on every target
    "sqlite": (["marker"], ["transaction"]),
    "sqlite and all besides": (["marker", "-"], ["ddl", *BESIDES]),
    "sqlite with log_bin": (["transaction+log"], ["transaction"]),
    "parquet": (["per-table-file"], ["transaction"]),  # Delta is killed in test_lake
    "duckdb": (["marker"], ["transaction"]),
    "mariadb": (["xa"], ["transaction", "exchange", "non-transactional", "statement"]),
    "mariadb without xa": (["marker"], ["non-transactional", "statement"]),
    "mysql": (["xa-binlog"], ["transaction"]),
    "postgresql": (["xa"], ["transaction", "ddl"]),
}


def chosen(name: str) -> list[CrashCase]:
    modes, kinds = IN_THE_SUITE[name]
    of = name.split()[0].replace("mariadb", "mysql")
    return [case for case in all_cases(of) if case.mode in modes and (not kinds or case.kind in kinds)]


def arguments(name: str) -> list[str]:
    modes, kinds = IN_THE_SUITE[name]
    return ["--mode", ",".join(modes), *(["--kinds", ",".join(kinds)] if kinds else [])]


def test_the_suite_itself_hits_every_named_point() -> None:
    """And every test below asserts that each of its cases was walked with the outcome of the table."""
    assert {case.point for name in IN_THE_SUITE for case in chosen(name)} == CRASH_POINTS


@pytest.mark.long("The points of a transaction stay in make test.", keeps=r"^sqlite$")
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("name", ["sqlite", "sqlite and all besides", "sqlite with log_bin"])
def test_points_on_a_sqlite_file(program: Program, name: str) -> None:
    walked(program("crash-test", "--json", *arguments(name)), chosen(name))


LAKES = {"delta": "delta+file://", "parquet": "parquet+file://"}


@pytest.mark.long("test_points_on_a_sqlite_file walks the same points.")
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "url"), [("parquet", LAKES["parquet"]), ("duckdb", "duckdb:///")])
def test_points_on_a_scratch_target(kind: str, url: str) -> None:
    walked(in_own_process("--target", url, *arguments(kind)), chosen(kind))


def in_own_process(*words: str) -> Outcome:
    """Delta-rs cannot be used in a child of a process that has used it."""
    command = [sys.executable, "-m", "rplctl", "crash-test", "--json", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    return Outcome(done.returncode, done.stdout, done.stderr)


def walked(done: Outcome, cases: list[CrashCase]) -> list[dict[str, str]]:
    assert done.out, done.err
    lines: list[dict[str, str]] = json.loads(done.out)
    assert done.code == 0, [line for line in lines if line["Result"] != "OK"]
    seen = [(line["Crash_point"], line["Commit_mode"], line["Group_kind"], line["Seen"]) for line in lines]
    assert seen == [(case.point, case.mode, case.kind, case.expected) for case in cases]
    for line in lines:
        count_torture("crash-test", line["Crash_point"], 0)
    return lines


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "delta", "parquet", "mariadb", "mysql", "postgresql"])
def test_every_point_mode_and_kind_of_group(request: pytest.FixtureRequest, program: Program, kind: str) -> None:
    where: list[str] = []
    if kind in LAKES:
        walked(in_own_process("--target", LAKES[kind]), list(all_cases(kind)))
        return
    if kind == "duckdb":
        where = ["--target", "duckdb:///"]
    elif kind != "sqlite":
        options = ("-c", "max_prepared_transactions=10") if kind == "postgresql" else ()
        server = request.getfixturevalue(f"{kind}_factory")(*options)
        where = ["--target", bare(server), *password(program, server)]
    walked(program("crash-test", "--json", *where), list(all_cases("mysql" if kind == "mariadb" else kind)))


def purged_with_the_one_in_use(channel: Any, names: Any) -> None:
    index = RelayLogIndex(channel)
    taken = index.names()[: len(names) + 1]
    crash_point("crash_before_purge_logs")
    index.remove(taken)
    for name in taken:
        index.path(name).unlink()


def read_behind_the_cut(*arguments: Any) -> Any:
    """Recovery that asks for what follows the torn transaction, not for it."""
    plan = plan_recovery(*arguments)
    place = plan.next_event
    return replace(plan, next_event=replace(place, log_pos=place.log_pos + plan.truncated_bytes + 60))


def deleted_first(switch: Any, *_: object) -> None:
    """A switch that deletes before it writes: neither place has the record when it is killed."""
    info = switch.old.read()
    switch.old.remove()
    crash_point("switch_after_journal")
    switch.write(info)
    switch.store_option()


def both_left(switch: Any, *_: object) -> None:
    """A switch without a journal: both places have a record when it is killed, and nothing says which counts."""
    switch.write(switch.old.read())
    crash_point("switch_after_write")
    switch.old.remove()
    switch.store_option()


BROKEN: dict[str, tuple[str, Any, str]] = {  # what takes whose place, and the point that shows it
    "recovery skips": ("rplctl.recovery.plan_recovery", read_behind_the_cut, "crash_recovery_after_truncate"),
    "purge takes too much": (
        "rplctl.relay_log.purge.purge_names",
        purged_with_the_one_in_use,
        "crash_before_purge_logs",
    ),
    "a switch deletes first": (
        "rplctl.repository.switch.Switch.copy_and_delete",
        deleted_first,
        "switch_after_journal",
    ),
    "a range is given only once": ("rplctl.applier.spark.pool.ATTEMPTS", 1, "crash_task_with_range"),
    "a switch leaves both": ("rplctl.repository.switch.Switch.copy_and_delete", both_left, "switch_after_write"),
}


@pytest.mark.long("It tests the test; tests/commit/test_fault_matrix.py has a wrong order in make test.")
@pytest.mark.slow
@pytest.mark.parametrize(("name", "broken", "point"), BROKEN.values(), ids=BROKEN)
def test_a_broken_order_is_a_failed_case(
    walk: CrashWalk, monkeypatch: pytest.MonkeyPatch, name: str, broken: Any, point: str
) -> None:
    """As it is, each of these cases is walked above."""
    cases = [case for case in all_cases("sqlite") if case.point == point]
    monkeypatch.setattr(name, broken)
    assert cases
    for case in cases:
        assert walk.run(case) != case.expected, case


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> CrashWalk:
    made = CrashWalk(tmp_path_factory.mktemp("walk"), "", "")
    made.prepare()
    return made


@pytest.mark.long("test_points_on_a_sqlite_file walks the points in make test.")
@pytest.mark.mariadb
@pytest.mark.slow
def test_two_phases_and_ddl_on_mariadb_and_nothing_is_left_there(mariadb: MariadbServer, program: Program) -> None:
    """And what differs on a server: DDL and tables without transactions are decided, statements are executed."""
    before = mariadb.sql("SHOW DATABASES")
    where = ("--target", bare(mariadb), *password(program, mariadb))
    for name in ("mariadb", "mariadb without xa"):
        walked(program("crash-test", "--json", *where, *arguments(name)), chosen(name))
    assert mariadb.sql("SHOW DATABASES") == before and mariadb.sql("XA RECOVER") == []


@pytest.mark.long("tests/commit/test_two_phase.py holds the decision of the binary log.")
@pytest.mark.mysql
@pytest.mark.slow
def test_the_binary_log_alone_decides_on_mysql(mysql: MysqlServer, program: Program) -> None:
    where = ("--target", bare(mysql), *password(program, mysql))
    walked(program("crash-test", "--json", *where, *arguments("mysql")), chosen("mysql"))
    assert mysql.sql("XA RECOVER") == []


def bare(server: Any) -> str:
    return str(server.url()).replace(":rpl@", "@")


def password(program: Program, server: Any) -> tuple[str, str]:
    path = program.datadir / "password"
    path.write_text("rpl")
    path.chmod(0o600)
    return ("--target-password-file", str(path))


@pytest.mark.postgresql
@pytest.mark.slow
@pytest.mark.torture
def test_two_phases_and_ddl_on_postgresql(
    postgresql_factory: Callable[..., PostgresqlServer], program: Program
) -> None:
    server = postgresql_factory("-c", "max_prepared_transactions=10")
    where = ("--target", bare(server), *password(program, server))
    walked(program("crash-test", "--json", *where, *arguments("postgresql")), chosen("postgresql"))


@pytest.mark.mariadb
def test_a_database_of_that_name_is_never_touched(mariadb: MariadbServer, program: Program) -> None:
    mariadb.sql("CREATE DATABASE rplctl_crash_test; CREATE TABLE rplctl_crash_test.mine (a INT)")
    try:
        done = program("crash-test", "--target", bare(mariadb), *password(program, mariadb))
        assert done.code == 2 and "already has a database 'rplctl_crash_test'" in done.err
        assert mariadb.sql("SHOW TABLES", "rplctl_crash_test") == [("mine",)]
    finally:
        mariadb.sql("DROP DATABASE rplctl_crash_test")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--points", "nonsense"), "'nonsense' is not a crash point"),
        (("--mode", "none"), "'none' is not a commit mode"),
        (("--kinds", "all"), "'all' is not a kind"),
        (("--mode", "xa"), "no such case on a target of kind sqlite"),
        (("--target", "mysql://u:secret@h/"), "a password in --target would be visible"),
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

    assert crash_run.in_child(work, "crash_commit_after=kill") == crash_run.ChildOutcome(killed=True, said=("first",))
    assert crash_run.in_child(work) == crash_run.ChildOutcome(killed=False, said=("first", "second"))


def test_a_childs_error_is_its_last_word() -> None:
    def work(say: Callable[[Any], None]) -> None:
        raise UsageError("no", errno=1210)

    assert crash_run.in_child(work) == crash_run.ChildOutcome(killed=False, said=(), error="no", errno=1210)


@pytest.mark.long("A crash-test that is interrupted is rare.")
@pytest.mark.slow
@pytest.mark.mariadb
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.torture)])
def test_interrupted_it_leaves_nothing_behind(mariadb: MariadbServer, program: Program, number: int) -> None:
    """To the process alone, in the middle of a case: no folder, no child, no database."""
    before = mariadb.sql("SHOW DATABASES")
    folder = program.datadir / "tmp"
    folder.mkdir()
    where = ["--target", bare(mariadb), *password(program, mariadb), "--mode", "xa", "--kinds", "transaction"]
    begun = subprocess.Popen(
        [sys.executable, "-m", "rplctl", "--datadir", str(program.datadir), "crash-test", *where],
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # which a run in the background ignores
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: begun.poll() is not None or list(folder.glob("rplctl-crash-*/[1-9]*")), timeout_s=240)
    begun.send_signal(number)
    _, said = begun.communicate(timeout=240)
    assert (begun.returncode, said) == (130, "")
    assert list(folder.iterdir()) == []
    # those it killed may be there until somebody has asked how they ended
    wait_until(lambda: not [path for path in Path("/proc").glob("[0-9]*/stat") if session_of(path) == begun.pid])
    assert mariadb.sql("SHOW DATABASES") == before and mariadb.sql("XA RECOVER") == []


def session_of(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[3])
    except OSError:  # it has ended
        return 0


@pytest.mark.long("A crash-test that is interrupted on a server is rare.")
@pytest.mark.slow
@pytest.mark.mariadb
def test_a_transaction_that_an_interrupted_case_left_prepared_is_rolled_back(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mariadb.sql("SHOW DATABASES")
    walk = CrashWalk(tmp_path, mariadb.url(), "")
    left: list[Any] = []

    def interrupted(work: Any, crash_points: str = "") -> Any:
        outcome = crash_run.in_child(work, crash_points)
        if outcome.killed:
            left.extend(mariadb.sql("XA RECOVER"))
            raise KeyboardInterrupt
        return outcome

    monkeypatch.setattr(crash_walk, "in_child", interrupted)
    try:
        walk.prepare()
        with pytest.raises(KeyboardInterrupt):
            walk.run(
                CrashCase(point="crash_commit_after_prepare", mode="xa", kind="transaction", expected="rolled back")
            )
    finally:
        walk.close()
    assert len(left) == 1
    assert mariadb.sql("XA RECOVER") == [] and mariadb.sql("SHOW DATABASES") == before


def test_arming_a_thread_needs_one_that_runs(program: Program) -> None:
    program("change-master", "--master-binlog-dir", str(FOLDER))
    done = program("crash-test", "--arm", "crash_commit_after=kill")
    assert (done.code, "no thread of the channel runs" in done.err) == (3, True)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", LAKES)
def test_every_point_mode_and_kind_of_group_on_a_lake(kind: str) -> None:
    walked(in_own_process("--target", LAKES[kind]), list(all_cases(kind)))
