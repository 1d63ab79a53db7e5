"""The target goes away and comes back: the applier waits, says so, and goes on by itself (design D4, D8, issue G 15).

The family: (kind of target × commit mode) × every moment of a commit; at each moment the server is killed and started
again a little later. The applier is the real one, in a thread and without Spark. Rows lie in a table without a key, so
what was applied twice, or not at all, shows.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier import job, outage
from rplctl.applier.apply import batch
from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions
from rplctl.channel import Channel
from rplctl.commit import ambiguous_commit as in_doubt, transaction, two_phase
from rplctl.config import Config
from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.event.scan import GroupKind
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.repository import create_tables, open_master_info, open_relay_log_info
from rplctl.status import AWAY, read_status
from rplctl.target import open_engine, open_target
from rplctl.target.sqlite.target import SqliteTarget
from tests.applier.demo_log import groups_of
from tests.kit.no_spark import without_spark
from tests.kit.replica import Replica, new_log, slowness, wait_until
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

LONG = pytest.mark.long(
    "An outage of a SQLite file stays; the others repeat it on servers.", keeps=r"in the middle|^stop$"
)

__all__ = ["without_spark"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DATABASE = "outage"
TRANSACTIONS = 60
START = BinlogPosition("log.000001", 4)
Server = MariadbServer | PostgresqlServer

IN_ONE = (
    "crash_before_update_pos",
    "crash_after_update_pos_before_apply",
    "crash_after_apply",
    "COMMIT",
    "answer to COMMIT",
    "crash_after_commit_before_update_pos",
    "crash_after_commit_and_update_pos",
)
IN_TWO = (
    "crash_before_update_pos",
    "crash_after_apply",
    "crash_commit_after_prepare",
    "crash_commit_after_log",
    "COMMIT",
    "answer to COMMIT",
    "crash_commit_between_engines",
    "crash_commit_after",
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, without_spark: None) -> None:
    monkeypatch.setattr(batch, "RETRY_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(outage, "RETRY_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(in_doubt, "PAUSE_S", 0.05)
    monkeypatch.setattr(in_doubt, "ASKED_FOR_S", 0.3)  # shorter than the outage: what is in doubt must be waited for
    monkeypatch.setattr(job, "warm_up", lambda: None)


@pytest.fixture(scope="module")
def recorded(mariadb: MariadbServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A binary log: tables, then numbered transactions."""
    path = tmp_path_factory.mktemp("log") / "log.000001"
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
    log = new_log(mariadb)
    mariadb.sql(
        f"CREATE DATABASE {DATABASE}; USE {DATABASE}; CREATE TABLE probe (seq INT, note VARCHAR(40)) ENGINE=InnoDB;"
        "CREATE TABLE total (id INT PRIMARY KEY, sum BIGINT) ENGINE=InnoDB; INSERT INTO total VALUES (1, 0);"
        + "".join(
            f"BEGIN; INSERT INTO probe VALUES ({n}, '{str(n % 10) * 20}'); UPDATE total SET sum=sum+{n}; COMMIT;"
            for n in range(1, TRANSACTIONS + 1)
        )
        + "FLUSH LOGS"
    )
    shutil.copy(mariadb.data / log, path)
    return path


@pytest.fixture(scope="module")
def maria_target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin", "--skip-log-slave-updates")


@pytest.fixture(scope="module")
def mysql_target(mysql_factory: Callable[..., MysqlServer]) -> MysqlServer:
    return mysql_factory("--skip-log-bin")


@pytest.fixture(scope="module")
def postgres_target(postgresql_factory: Callable[..., PostgresqlServer]) -> PostgresqlServer:
    return postgresql_factory("-c", "max_prepared_transactions=20")


class Run:
    """A channel whose relay log is the recorded one, and its applier in a thread."""

    def __init__(
        self,
        folder: Path,
        log: Path,
        target: str,
        mode: str,
        *,
        retry_count: int = 0,
        connect_retry: int = 1,
        **options: Any,
    ) -> None:
        folder.mkdir()
        kind = "TABLE" if mode == "transaction" else "FILE"
        given = {"commit_group_transactions": 4, "replica_transaction_retries": 5, "relay_log_purge": False} | options
        self.config = Config(
            folder,
            target=target,
            relay_log_info_repository=kind,
            commit_mode="xa" if mode == "xa" else "auto",
            **given,
        )
        self.channel = Channel("", folder)
        self.groups: RelayGroups = groups_of(log)
        self._engine = open_engine(target)
        self._write_records(log, MasterInfo(host="h", connect_retry=connect_retry, retry_count=retry_count))
        self.error: RplError | None = None
        self.applier = self._new_applier()
        self._thread = threading.Thread(target=self._run)

    def _write_records(self, log: Path, master: MasterInfo) -> None:
        writer = RelayLogWriter(self.channel, self.config, 1)
        writer.open_new(START)
        begin = writer.end
        writer.close()
        with (self.config.datadir / begin.log_name).open("ab") as file:
            file.write(log.read_bytes()[4:])
        if self.config.relay_log_info_repository == "TABLE":
            create_tables(self._engine)
        first = RelayLogInfo(master_log_name=START.log_name, master_log_pos=4)
        open_relay_log_info(self.config, self.channel, lambda: self._engine).flush(first, force=True)
        open_master_info(self.config, self.channel, lambda: self._engine).flush(master, force=True)
        self._engine.dispose()

    def _new_applier(self) -> Applier:
        end = self.groups.scan.source_position(
            max(n for n, kind in enumerate(self.groups.scan.kind) if kind != GroupKind.CONTROL)
        )
        return Applier(self.config, self.channel, StartOptions(until_source=end))

    def _run(self) -> None:
        try:
            self.applier.run()
        except RplError as error:
            self.error = error

    def __enter__(self) -> Run:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.applier.stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def join(self, timeout_s: float = 120) -> None:
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), self.status

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    @property
    def status(self) -> Any:
        return read_status(self.channel.status_path("applier"))


def check_rows(server: Server) -> None:
    found = Counter(int(row[0]) for row in server.rows(DATABASE, "probe"))
    assert found == Counter(range(1, TRANSACTIONS + 1))
    assert [int(row[1]) for row in server.rows(DATABASE, "total")] == [sum(range(1, TRANSACTIONS + 1))]


def clear(server: Server) -> str:
    """Nothing of ours is on it; its URL."""
    if server.kind == "postgresql":
        server.sql(f"DROP SCHEMA IF EXISTS {DATABASE} CASCADE; DROP SCHEMA IF EXISTS rplctl CASCADE")
        return server.url("postgres")
    server.sql(f"DROP DATABASE IF EXISTS {DATABASE}; DROP DATABASE IF EXISTS rplctl")
    # a server that has just started knows no password's digest: MySQL asks for it again, which TLS must carry
    return server.url() + ("?ssl_mode=REQUIRED" if server.kind == "mysql" else "")


class Killer:
    """Kills the server once at each moment, each time in another commit; `start_again` is for the main thread, with
    which the server would die.
    """

    def __init__(self, server: Server, moments: tuple[str, ...], outage_s: float) -> None:
        self.server, self.left, self.outage_s = server, list(moments), outage_s
        self.passes = 0
        self.seen: list[str] = []
        self.killed_at: float | None = None

    def at(self, moment: str) -> bool:
        """True when the server was killed now."""
        if not self.left or self.left[0] != moment or self.killed_at is not None:
            return False
        self.passes += 1
        if self.passes < 2:  # so that something was committed since the last outage
            return False
        self.passes = 0
        self.seen.append(self.left.pop(0))
        self.server.kill()
        self.killed_at = time.monotonic()
        return True

    def start_again(self) -> None:
        if self.killed_at is not None and time.monotonic() - self.killed_at > self.outage_s:
            self.server.start()
            self.killed_at = None


@contextmanager
def killing(
    monkeypatch: pytest.MonkeyPatch, server: Server, moments: tuple[str, ...], outage_s: float = 0.5
) -> Iterator[Killer]:
    killer = Killer(server, moments, outage_s)
    for module in (transaction, two_phase):
        monkeypatch.setattr(module, "crash_point", lambda name: killer.at(name) and None)
    kind = type(open_target(server.url("postgres" if server.kind == "postgresql" else "")))
    commit = kind.commit

    def cut(self: Any) -> None:
        killer.at("COMMIT")
        commit(self)
        if killer.at("answer to COMMIT"):
            raise TargetError("Lost connection to the target", errno=2013, transient=True)

    monkeypatch.setattr(kind, "commit", cut)
    try:
        yield killer
    finally:
        killer.outage_s = 0.0
        killer.start_again()


@LONG
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("postgres", "transaction"),
        pytest.param("postgres", "marker", marks=pytest.mark.torture),
        pytest.param("postgres", "xa", marks=pytest.mark.torture),
        pytest.param("maria", "transaction", marks=pytest.mark.torture),
        pytest.param("maria", "xa", marks=pytest.mark.torture),
        ("mysql", "transaction"),
        pytest.param("mysql", "xa", marks=pytest.mark.torture),
    ],
)
def test_a_server_that_is_killed_at_any_moment_and_comes_back_is_waited_for(
    kind: str,
    mode: str,
    recorded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    server: Server = request.getfixturevalue(f"{kind}_target")
    moments = IN_TWO if mode == "xa" else IN_ONE
    with killing(monkeypatch, server, moments) as killer:
        run = Run(tmp_path / "run", recorded, clear(server), mode)
        with run:
            while run.is_running:
                killer.start_again()
                time.sleep(0.02)
    assert run.error is None, (run.error, killer.seen)
    assert not killer.left, f"never met: {killer.left}"
    check_rows(server)
    assert (run.status.last_errno, run.status.last_error) == (0, ""), "it came back"


SLOW_START_S = 3  # of a Python program, on a machine that is busy
ONCE = ("crash_after_apply",)  # in the middle: something is committed, more is not


@LONG
def test_it_says_what_it_waits_for_and_since_when_and_stop_ends_it_at_once(
    postgres_target: PostgresqlServer, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path / "run", recorded, clear(postgres_target), "marker", commit_group_transactions=1)
    began = time.time()
    with killing(monkeypatch, postgres_target, ONCE, outage_s=inf), run:
        wait_until(lambda: "retry-time: 1  maximum-retries: 0" in run.status.last_error, 240)
        status = run.status
        assert status.state == AWAY and status.last_errno == 2013
        assert re.search("message: (Lost connection to the target|the target reports: .)", status.last_error)
        assert began < status.last_error_timestamp <= time.time()
        assert run.is_running
        stopped_at = time.monotonic()
        run.applier.stop.set()
        run.join(60)
        assert (time.monotonic() - stopped_at) / slowness() < 3 and run.error is None
    run.applier = run._new_applier()
    run.applier.run()
    check_rows(postgres_target)


@LONG
@pytest.mark.parametrize("how", ["stop", "SIGTERM"])
def test_a_process_that_waits_for_its_target_ends_within_two_seconds(
    mariadb: MariadbServer, maria_target: MariadbServer, tmp_path: Path, how: str
) -> None:
    """`rplctl stop` and SIGTERM; it says that it was waiting, and goes on from there at its next start."""
    clear(maria_target)
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
    log = new_log(mariadb)
    mariadb.sql(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.probe (seq INT)")
    replica = Replica(tmp_path, spark=False)
    try:
        replica.run("init", *replica.into(maria_target))
        replica.change_master(mariadb, "--master-log-file", log, "--master-log-pos", "4")
        replica.run("start")
        replica.wait_synced(mariadb, 120)
        maria_target.kill()
        try:
            mariadb.sql(f"INSERT INTO {DATABASE}.probe VALUES (1)")
            status_path = replica.channel.status_path("applier")
            wait_until(lambda: read_status(status_path).state == AWAY, 240)
            time.sleep(2)  # until it asks again and again
            pid, began = replica.pid("applier"), time.monotonic()
            assert pid
            if how == "stop":
                replica.run("stop", "--applier")
            else:
                os.kill(pid, signal.SIGTERM)
            wait_until(lambda: replica.pid("applier") != pid, 60)
            assert (time.monotonic() - began) / slowness() < 2 + (SLOW_START_S if how == "stop" else 0)
            assert "while the target was unreachable" in replica.channel.log_path("applier").read_text()
            status = read_status(status_path)
            assert status.state == "" and "error connecting to the target" in status.last_error
        finally:
            maria_target.start()
        replica.run("start", "--applier")
        replica.wait_synced(mariadb, 120)
        assert maria_target.rows(DATABASE, "probe") == [(1,)]
    finally:
        replica.close()


@LONG
def test_when_the_retries_are_used_up_it_ends_with_the_error_and_nothing_is_lost(
    postgres_target: PostgresqlServer, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(
        tmp_path / "run", recorded, clear(postgres_target), "transaction", retry_count=2,
        commit_group_transactions=1, replica_transaction_retries=1,
    )  # fmt: skip
    with killing(monkeypatch, postgres_target, ONCE, outage_s=inf):
        with run:
            run.join(30)
        assert isinstance(run.error, TargetError) and run.error.errno == 2013
        assert run.status.last_errno == 2013 and run.status.last_error_timestamp > time.time() - 60
    run.applier = run._new_applier()
    run.applier.run()
    check_rows(postgres_target)


@LONG
def test_another_applier_that_took_the_channel_during_the_outage_keeps_it(
    maria_target: MariadbServer, recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fence holds after a reconnect (D4)."""
    monkeypatch.setattr("rplctl.target.mysql.fence.LOCK_WAIT_SECONDS", 1)  # the rival lives: no wait frees the lock
    run = Run(
        tmp_path / "run", recorded, clear(maria_target), "transaction", connect_retry=5, commit_group_transactions=1
    )
    rival = open_target(run.config.target_url)
    try:
        with killing(monkeypatch, maria_target, ONCE, outage_s=inf) as killer, run:
            wait_until(lambda: "retry-time: 5 " in run.status.last_error, 240)
            killer.outage_s = 0
            killer.start_again()
            rival.fence("")
            before = maria_target.rows(DATABASE, "probe")
            run.join(60)
            assert isinstance(run.error, LockBusy), run.error
            assert maria_target.rows(DATABASE, "probe") == before
    finally:
        rival.close()


@LONG
def test_an_account_that_is_refused_is_waited_for_as_a_receiver_waits(
    maria_target: MariadbServer, recorded: Path, tmp_path: Path
) -> None:
    """A wrong password stops no receiver (1045, Connecting): nor does it stop an applier, which shows the hint."""
    url = clear(maria_target)
    maria_target.sql("DROP USER IF EXISTS w")
    run = Run(tmp_path / "run", recorded, url, "marker")
    run.config = replace(run.config, target=url.replace("//rpl:rpl@", "//w:right@"))
    run.applier = run._new_applier()
    with run:
        wait_until(lambda: run.status.last_errno == 1045, 240)
        assert run.status.state == AWAY and "target-password-file" in run.status.last_hint
        maria_target.sql("CREATE USER w IDENTIFIED BY 'right'; GRANT ALL ON *.* TO w")
        run.join(60)
    assert run.error is None
    check_rows(maria_target)


@pytest.mark.long(
    "A file system that goes away is rare; test_a_process_that_waits_for_its_target_ends_within_two_seconds stays.",
)
@LONG
@pytest.mark.parametrize("moment", ["at start", "in the middle"])
def test_a_sqlite_file_whose_file_system_is_away_is_waited_for_and_never_made_anew(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    mount, gone = tmp_path / "mount", tmp_path / "gone"
    mount.mkdir()
    run = Run(tmp_path / "run", recorded, f"sqlite:///{mount}/target.db", "marker", commit_group_transactions=1)
    if moment == "at start":
        mount.rename(gone)
    else:
        commits = count()
        commit = SqliteTarget.commit

        def commit_and_unmount(target: SqliteTarget) -> None:
            commit(target)
            if next(commits) == TRANSACTIONS // 2:
                mount.rename(gone)
                mount.mkdir()  # what is left of a mount point

        monkeypatch.setattr(SqliteTarget, "commit", commit_and_unmount)
    with run:
        wait_until(lambda: run.status.state == AWAY, 240)
        assert run.status.last_errno == 1017, run.status.last_error
        assert not (mount / "target.db").exists()
        if mount.exists():
            mount.rmdir()
        gone.rename(mount)
        run.join(60)
    assert run.error is None
    with closing(sqlite3.connect(mount / "target.db")) as target:
        found = Counter(row[0] for row in target.execute(f"SELECT seq FROM {DATABASE}__probe"))
    assert found == Counter(range(1, TRANSACTIONS + 1))
