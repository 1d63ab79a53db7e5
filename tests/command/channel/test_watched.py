"""A server that SIGSTOP stops in the middle of a query ends the command; one that only takes long does not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rplctl.command.channel.context import ask_source, engine_of, one_engine, open_repositories
from rplctl.command.channel.watched import watched_peers
from rplctl.config import Config, load_config
from rplctl.errors import SourceError, TargetError
from rplctl.sql_run import run
from rplctl.sql_text import written
from rplctl.target import mapped_errors, open_engine
from tests.cli.program import Program
from tests.kit.private_server import PASSWORD, USER
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer

SHORT = {"PAUSE_S": 0.05, "ANSWER_S": 1.0, "MOST_LATE": 2}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SHORT.items():
        monkeypatch.setattr(f"rplctl.command.channel.watched.{name}", value)
    monkeypatch.setenv("RPLCTL_TEST_PASSWORD", PASSWORD)


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Every thread stands still inside: a signal takes effect when a thread enters the kernel, not when it is sent."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: {state_of(stat) for stat in Path(f"/proc/{pid}/task").glob("*/stat")} <= {"T", "Z"})  # noqa: B023
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def state_of(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def configured(datadir: Path, capsys: pytest.CaptureFixture[str], *source: str, target: str = "") -> Config:
    program = Program(datadir, capsys)
    done = program("change-master", *source)
    assert done.code == 0, done
    if target:
        with (datadir / "rplctl.toml").open("a") as file:
            file.write(f'target = "{target}"\n')
        (datadir / "rplctl.toml").chmod(0o600)
    return load_config(datadir)


@pytest.mark.mariadb
def test_a_target_that_stops_in_the_middle_of_a_query_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mariadb: MariadbServer
) -> None:
    config = configured(tmp_path / "instance", capsys, "--master-binlog-dir", str(tmp_path), target=mariadb.url())
    engine = open_engine(config.target_url)
    with pytest.raises(TargetError, match="the target .* did not answer within 1 s") as raised:
        with one_engine(), watched_peers(config, ""), mapped_errors("mysql"), engine.connect() as connection:
            run(connection, written("SELECT SLEEP(1.5)"))  # it is watched and works
            with stopped(mariadb.pid):
                run(connection, written("SELECT 1"))
    assert "run: rplctl " in raised.value.hint
    engine.dispose()


@pytest.mark.long("test_a_target_that_stops_in_the_middle_of_a_query_is_named stays in make test.")
@pytest.mark.mariadb
def test_a_source_that_stops_in_the_middle_of_a_query_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mariadb: MariadbServer
) -> None:
    address = ("--master-host", mariadb.host, "--master-port", str(mariadb.port), "--master-user", USER)
    config = configured(tmp_path / "instance", capsys, *address, "--password-reference", "env:RPLCTL_TEST_PASSWORD")
    master = open_repositories(config, "").master()
    with pytest.raises(SourceError, match="the source .* did not answer within 1 s") as raised:
        with one_engine(), watched_peers(config, ""), ask_source(config, master) as query:
            query(written("SELECT SLEEP(1.5)"))
            with stopped(mariadb.pid):
                query(written("SELECT 1"))
    assert "run: rplctl " in raised.value.hint


@pytest.mark.long("the same of another driver's connection: test_a_target_that_stops_in_the_middle_of_a_query_is_named")
@pytest.mark.postgresql
def test_a_postgresql_target_that_stops_in_the_middle_of_a_query_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], postgresql: PostgresqlServer
) -> None:
    config = configured(tmp_path / "instance", capsys, "--master-binlog-dir", str(tmp_path), target=postgresql.url())
    engine = open_engine(config.target_url)
    with pytest.raises(TargetError, match="the target .* did not answer within 1 s"):
        with one_engine(), watched_peers(config, ""), mapped_errors("postgresql"), engine.connect() as connection:
            run(connection, written("SELECT pg_sleep(1.5)"))  # it is watched and works
            with stopped(postgresql.pid), stopped(*children_of(postgresql.pid)):
                run(connection, written("SELECT 1"))
    engine.dispose()


def children_of(pid: int) -> list[int]:
    """Return the server's backends: each is a process, which answers on its connection while the others stand still."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.postgresql
def test_a_connection_that_comes_back_after_its_block_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], postgresql: PostgresqlServer
) -> None:
    """As that of a question whose answer is late: nobody would close it."""
    config = configured(tmp_path / "instance", capsys, "--master-binlog-dir", str(tmp_path), target=postgresql.url())
    with one_engine():
        late = engine_of(config)().connect()
    connection = late.connection.dbapi_connection
    late.close()
    assert connection is not None and connection.closed
