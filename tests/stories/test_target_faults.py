"""The target fails in the middle of things: nothing lost, nothing twice, and the position says what the rows say.

The applier's own parts on real servers behind a proxy, without Spark: a binary log of numbered transactions, each of
which writes its number into `probe`, so that rows and position can be held against each other.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.applier.feed.plan import plan_batches
from rplctl.commit.position_store import open_position_store
from rplctl.errors import RplError, TargetError
from rplctl.event.scan import GroupKind
from rplctl.relay_log.reader import RelayGroups
from rplctl.target import open_target
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.proxy import Fate, Proxy
from tests.kit.replica import new_log, wait_until
from tests.kit.servers import MariadbServer, PostgresqlServer
from tests.kit.small_disk import fill, release, small_disk

LONG = pytest.mark.long(
    "The cases of SQLite and of a commit without an answer on MariaDB stay; a full or vanished server is rare.",
    keeps=r"mariadb-there at once.*(TABLE|FILE)$|mariadb-arrives-commit-True|^(mariadb-)?(TABLE|FILE)$",
)

DATABASE = "target_faults"
TRANSACTIONS = 40
PER_COMMIT = 5

pytestmark = [pytest.mark.slow]

Server = MariadbServer | PostgresqlServer


@dataclass(frozen=True)
class Recorded:
    """One binary log: CREATE TABLEs, then TRANSACTIONS numbered transactions; statements in one, rows in the other."""

    rows: RelayGroups
    statements: RelayGroups


@pytest.fixture(scope="module")
def recorded(mariadb: MariadbServer, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("logs")
    logs = []
    for number, log_format in enumerate(("ROW", "STATEMENT"), 1):
        mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
        log = new_log(mariadb)
        mariadb.sql(
            f"CREATE DATABASE {DATABASE}; USE {DATABASE}; SET binlog_format={log_format};"
            "CREATE TABLE probe (seq INT PRIMARY KEY, note VARCHAR(40)) ENGINE=InnoDB;"
            "CREATE TABLE total (id INT PRIMARY KEY, sum BIGINT) ENGINE=InnoDB; INSERT INTO total VALUES (1, 0);"
            + "".join(
                f"BEGIN; INSERT INTO probe VALUES ({n}, '{str(n % 10) * 20}'); UPDATE total SET sum=sum+{n}; COMMIT;"
                for n in range(1, TRANSACTIONS + 1)
            )
            + "FLUSH LOGS"
        )
        path = folder / f"log.00000{number}"
        shutil.copy(mariadb.data / log, path)
        logs.append(groups_of(path))
    return Recorded(*logs)


@pytest.fixture(scope="module")
def maria_target(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin", "--skip-log-slave-updates")


@pytest.fixture(scope="module")
def postgres_target(postgresql_factory: Callable[..., PostgresqlServer]) -> PostgresqlServer:
    return postgresql_factory()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.applier.apply.batch.RETRY_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr("rplctl.commit.ambiguous_commit.PAUSE_S", 0.05)


class Through:
    """An applier whose target is behind a proxy."""

    def __init__(
        self,
        folder: Path,
        server: Server,
        proxy: Proxy,
        groups: RelayGroups,
        user: str = "rpl",
        database: str = "",
        **options: Any,
    ) -> None:
        """`database`: PostgreSQL's, new; '' for the usual one."""
        if server.kind == "postgresql" and not database:
            server.sql(f"DROP SCHEMA IF EXISTS {DATABASE} CASCADE; DROP SCHEMA IF EXISTS rplctl CASCADE")
        elif server.kind != "postgresql":
            server.sql(f"DROP DATABASE IF EXISTS {DATABASE}; DROP DATABASE IF EXISTS rplctl")
        self.server, self.proxy, self.groups = server, proxy, groups
        self.database = database or ("postgres" if server.kind == "postgresql" else "")
        url = server.url(self.database).replace(f":{server.port}/", f":{proxy.port}/").replace("//rpl:", f"//{user}:")
        self.instance = Instance(folder, groups, target=url, **options)

    def begin(self) -> None:
        """Tables, without trouble; what comes next comes over new connections."""
        self._apply(self._tables())
        self._leave_connections()

    def restart(self) -> None:
        """The next start: what was known of the target is asked anew."""
        self.close()
        self.instance.target = open_target(self.instance.config.target_url)
        self.instance.applier = self.instance.reopen()
        self._leave_connections()

    def _leave_connections(self) -> None:
        """They keep the fate they were opened with."""
        self.instance.target.reconnect()
        self.instance.target.engine.dispose()

    def apply(self) -> None:
        """What is left, as the applier's loop does."""
        self._apply(len(self.groups.scan))

    def _apply(self, stop: int) -> None:
        applier = self.instance.applier
        at, scan = applier.info.exec_position, self.groups.scan
        done = sum(not at.is_before(scan.source_position(n)) for n in range(len(scan)))
        options: dict[str, Any] = {"has_rollbacks": applier.executes_statements, "per_commit": lambda: PER_COMMIT}
        for batch in plan_batches(self.groups, stop, **options):
            if batch.last > done:
                applier.apply(replace(batch, first=max(batch.first, done)))

    def _tables(self) -> int:
        """Groups up to the first numbered transaction."""
        real = np.flatnonzero(self.groups.scan.kind != GroupKind.CONTROL)
        return int(real[-TRANSACTIONS])

    def assert_whole(self) -> None:
        rows = self.server.sql(f"SELECT seq, note FROM {DATABASE}.probe ORDER BY seq", self.database)
        assert rows == [(n, str(n % 10) * 20) for n in range(1, TRANSACTIONS + 1)]
        total = self.server.sql(f"SELECT sum FROM {DATABASE}.total", self.database)
        assert total == [(TRANSACTIONS * (TRANSACTIONS + 1) // 2,)]
        assert self.instance.applier.info.exec_position == self.groups.scan.end_position

    def close(self) -> None:
        self.instance.applier.close()
        self.instance.target.close()


@pytest.fixture(params=["mariadb", "postgresql"])
def server(request: pytest.FixtureRequest) -> Server:
    made: Server = request.getfixturevalue("maria_target" if request.param == "mariadb" else "postgres_target")
    return made


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Through]]:
    with contextlib.ExitStack() as stack:

        def through(server: Server, groups: RelayGroups, **options: Any) -> Through:
            proxy = stack.enter_context(Proxy(server.port))
            made = Through(tmp_path / "instance", server, proxy, groups, **options)
            stack.callback(made.close)
            return made

        yield through


class Sent:
    """A trigger: these numbers of all requests that hold these bytes, whatever connection they come on."""

    def __init__(self, words: bytes, *numbers: int) -> None:
        self._words, self._numbers, self._count = words, numbers, 0

    def __call__(self, data: bytes) -> bool:
        if self._words not in data:
            return False
        self._count += 1
        return self._count in self._numbers


class Committing(Sent):
    """A trigger: these of the COMMITs with which a position moves."""

    def __init__(self, *numbers: int) -> None:
        super().__init__(b"COMMIT", *numbers)
        self._moved = False

    def __call__(self, data: bytes) -> bool:
        self._moved = self._moved or (b"UPDATE" in data and b"elay_log_pos" in data)
        if not self._moved or b"COMMIT" not in data:
            return False
        self._moved = False
        return super().__call__(data)


@contextlib.contextmanager
def away_after_each_cut(proxy: Proxy) -> Iterator[None]:
    """Nobody gets through for some attempts to connect again."""
    over = threading.Event()

    def away() -> None:
        while not over.is_set():
            if not proxy.is_cut.wait(0.05):
                continue
            proxy.away.set()
            proxy.is_cut.clear()
            seen = proxy.accepted
            while proxy.accepted < seen + 2 and not over.is_set():
                over.wait(0.02)
            proxy.away.clear()

    thread = threading.Thread(target=away)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.long(
    "A commit that arrives stays; the answer is asked for in the same way.",
    keeps=r"^mariadb-there at once-commit arrives-TABLE$",
)
@LONG
@pytest.mark.parametrize("kind", ["TABLE", "FILE"])
@pytest.mark.parametrize("arrives", [True, False], ids=["commit arrives", "commit is lost"])
@pytest.mark.parametrize("away", [False, True], ids=["there at once", "away for a while"])
def test_a_commit_without_an_answer_is_asked_for_and_neither_lost_nor_repeated(
    make: Callable[..., Through], server: Server, recorded: Recorded, kind: str, arrives: bool, away: bool
) -> None:
    through = make(server, recorded.rows, relay_log_info_repository=kind)
    through.begin()
    proxy = through.proxy
    proxy.usual = Fate(0, begins=Committing(1, 3, 4), request_arrives=arrives)
    with away_after_each_cut(proxy) if away else contextlib.nullcontext():
        through.apply()
    through.assert_whole()
    assert proxy.cuts == 3


@pytest.mark.long("Positions in files stay.", keeps=r"FILE")
@LONG
@pytest.mark.parametrize("kind", ["TABLE", "FILE"])
def test_a_connection_that_only_we_know_to_be_lost_is_ended_on_the_server_with_its_locks(
    make: Callable[..., Through], server: Server, recorded: Recorded, kind: str
) -> None:
    """A network that falls apart: the server keeps the transaction, its rows' locks and the channel's lock."""
    through = make(server, recorded.rows, relay_log_info_repository=kind)
    through.begin()
    through.instance.target.fence("")
    through._leave_connections()
    proxy = through.proxy
    proxy.usual = Fate(0, begins=Committing(1, 3), request_arrives=False, server_hears=False)
    through.apply()
    through.assert_whole()
    assert proxy.cuts == 2


PHASES = {  # the statement that is cut, by server
    "prepare": {"mariadb": b"XA PREPARE", "postgresql": b"PREPARE TRANSACTION"},
    "commit": {"mariadb": b"XA COMMIT", "postgresql": b"COMMIT PREPARED"},
}


@pytest.mark.long(
    "test_a_commit_without_an_answer_is_asked_for_and_neither_lost_nor_repeated stays; two phases ask in the same way.",
)
@LONG
@pytest.mark.parametrize(
    ("phase", "away"),
    [
        ("prepare", False),
        ("commit", False),
        ("commit", True),
        pytest.param("prepare", True, marks=pytest.mark.torture),
    ],
)
@pytest.mark.parametrize("arrives", [True, False], ids=["arrives", "is lost"])
def test_in_two_phases_one_that_is_not_answered_is_carried_out_once_or_undone(
    make: Callable[..., Through], server: Server, recorded: Recorded, phase: str, arrives: bool, away: bool
) -> None:
    """Before the decision it is rolled back and tried again, behind it committed, whatever the network did to both."""
    through = make(server, recorded.rows, relay_log_info_repository="FILE", commit_mode="xa")
    through.begin()
    proxy = through.proxy
    proxy.usual = Fate(0, begins=Sent(PHASES[phase][server.kind], 1, 3, 4), request_arrives=arrives)
    with away_after_each_cut(proxy) if away else contextlib.nullcontext():
        through.apply()
    through.assert_whole()
    assert proxy.cuts == 3
    left = "XA RECOVER" if server.kind == "mariadb" else "SELECT gid FROM pg_prepared_xacts"
    assert server.sql(left) == []


@LONG
def test_what_an_attempt_committed_before_the_connection_broke_is_not_applied_again(
    make: Callable[..., Through], maria_target: MariadbServer, recorded: Recorded
) -> None:
    """A batch that goes one transaction at a time, because one of its statements fails, is cut in the middle."""
    through = make(maria_target, recorded.statements)
    through.begin()
    maria_target.sql(f"INSERT INTO {DATABASE}.probe VALUES (8, 'in the way')")
    through.proxy.usual = Fate(0, begins=Sent(b"INSERT INTO probe VALUES (7,", 2), request_arrives=False)
    with pytest.raises(TargetError) as caught:
        through.apply()
    assert caught.value.errno == 1062 and "'8'" in caught.value.message
    assert through.proxy.cuts == 1
    assert maria_target.sql(f"SELECT sum FROM {DATABASE}.total") == [(sum(range(8)),)]
    maria_target.sql(f"DELETE FROM {DATABASE}.probe WHERE seq = 8")
    through.apply()
    through.assert_whole()


@LONG
def test_rows_of_a_table_without_transactions_are_not_applied_again_once_they_have_their_position(
    make: Callable[..., Through], maria_target: MariadbServer, recorded: Recorded
) -> None:
    """Cut where a group says that it begins, before any of its rows: nothing of it is there."""
    through = make(maria_target, recorded.rows)
    through.begin()
    maria_target.sql(f"ALTER TABLE {DATABASE}.probe ENGINE=MyISAM; ALTER TABLE {DATABASE}.total ENGINE=MyISAM")
    through.restart()
    through.proxy.usual = Fate(0, begins=Sent(b"INSERT INTO rplctl.rplctl_group_begun", 4), request_arrives=False)
    through.apply()
    through.assert_whole()
    assert through.proxy.cuts == 1


@LONG
def test_tables_without_transactions_outlive_a_lost_connection_in_the_middle_of_a_group(
    make: Callable[..., Through], maria_target: MariadbServer, recorded: Recorded
) -> None:
    """A group is no transaction of the target: what it applied is there, and is no error when it is tried again."""
    through = make(maria_target, recorded.rows)
    through.begin()
    maria_target.sql(f"ALTER TABLE {DATABASE}.probe ENGINE=MyISAM; ALTER TABLE {DATABASE}.total ENGINE=MyISAM")
    through.restart()
    through.proxy.usual = Fate(0, begins=Sent(f"INSERT INTO `{DATABASE}`".encode(), 8), request_arrives=False)
    through.apply()
    through.assert_whole()
    assert through.proxy.cuts == 1


@LONG
def test_a_record_in_a_table_of_its_own_that_cannot_follow_a_commit_at_once_follows_later(
    make: Callable[..., Through], maria_target: MariadbServer, recorded: Recorded
) -> None:
    through = make(maria_target, recorded.rows)
    through.begin()
    maria_target.sql("ALTER TABLE rplctl.slave_relay_log_info ENGINE=MyISAM")
    through.restart()
    through.proxy.usual = Fate(0, begins=Sent(b"UPDATE rplctl.slave_relay_log_info", 2, 5), request_arrives=False)
    through.apply()
    through.assert_whole()
    assert through.proxy.cuts == 2
    stored = maria_target.sql("SELECT Master_log_pos FROM rplctl.slave_relay_log_info")
    assert stored == [(through.instance.applier.info.master_log_pos,)]


@LONG
@pytest.mark.parametrize("kind", ["TABLE", "FILE"])
@pytest.mark.parametrize("taken", ["at work", "stopped"])
def test_a_target_from_an_older_backup_goes_on_from_its_own_position(
    tmp_path: Path, recorded: Recorded, kind: str, taken: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The position is in the target with its rows; that a FILE is ahead of it is told."""
    instance = Instance(tmp_path, recorded.rows, relay_log_info_repository=kind)
    groups = recorded.rows
    middle = len(groups.scan) - 20

    def stop() -> None:
        store = open_position_store(instance.config, instance.channel, instance.target.engine)
        store.open()
        store.close(instance.applier.info)

    instance.apply(groups, middle)
    if taken == "stopped":
        stop()
    at_backup = instance.applier.info
    with contextlib.closing(sqlite3.connect(tmp_path / "target.db")) as live:
        with contextlib.closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
            live.backup(backup)
        instance.applier = instance.reopen()
        instance.apply_from(groups, middle)
        end = instance.applier.info
        stop()
        with contextlib.closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
            backup.backup(live)
    caplog.clear()
    instance.target.reconnect()
    instance.applier = instance.reopen()
    is_reported = f"position {end.exec_position} is ahead of the target's own {at_backup.exec_position}" in caplog.text
    assert instance.applier.info.exec_position == at_backup.exec_position
    instance.apply_from(groups, middle)
    assert instance.query(f"SELECT count(*), sum(seq) FROM {DATABASE}__probe") == [(TRANSACTIONS, 820)]
    assert instance.query(f"SELECT sum FROM {DATABASE}__total") == [(820,)]
    assert is_reported == (kind == "FILE")
    instance.applier.close()
    instance.target.close()


@LONG
@pytest.mark.parametrize("arrives", [True, False], ids=["in COMMIT", "before COMMIT"])
def test_a_target_killed_in_a_batch_and_started_again_has_all_once(
    make: Callable[..., Through],
    server: Server,
    recorded: Recorded,
    arrives: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rplctl.applier.apply.batch.RETRY_PAUSE_SECONDS", 1.0)
    through = make(server, recorded.rows, replica_transaction_retries=180)  # seconds: a loaded machine starts slowly
    through.begin()
    through.proxy.usual = Fate(0, begins=Committing(2), request_arrives=arrives)

    with ThreadPoolExecutor(1) as pool:  # a server dies with the thread that started it, so that is this one
        applying = pool.submit(through.apply)
        assert through.proxy.is_cut.wait(180)
        server.kill()
        server.start()
        applying.result()
    through.assert_whole()
    assert through.proxy.cuts == 1


@LONG
def test_a_read_only_target_stops_with_1290_says_so_and_goes_on_when_it_is_not(
    make: Callable[..., Through], server: Server, recorded: Recorded
) -> None:
    if server.kind == "mariadb":
        server.sql(
            "CREATE OR REPLACE USER plain@'%' IDENTIFIED BY 'rpl'; GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP,"
            "ALTER, INDEX, REFERENCES, CREATE TEMPORARY TABLES, LOCK TABLES, TRIGGER, RELOAD, PROCESS, BINLOG ADMIN,"
            " BINLOG REPLAY ON *.* TO plain@'%'"
        )
        on, off, user = "SET GLOBAL read_only=1", "SET GLOBAL read_only=0", "plain"
    else:
        on = "ALTER ROLE rpl SET default_transaction_read_only = on"
        off = "BEGIN READ WRITE; ALTER ROLE rpl RESET default_transaction_read_only; COMMIT"
        user = "rpl"
    through = make(server, recorded.rows, user=user)
    through.begin()
    before = through.instance.applier.info
    server.sql(on)
    try:
        with pytest.raises(RplError) as caught:
            through.apply()
    finally:
        server.sql(off)
    assert caught.value.errno == 1290 and not caught.value.transient and "writable" in caught.value.hint
    assert through.instance.applier.info == before
    through.restart()
    through.apply()
    through.assert_whole()


@LONG
def test_a_deadlock_on_postgresql_costs_an_attempt_and_nothing_else(
    make: Callable[..., Through], postgres_target: PostgresqlServer, recorded: Recorded
) -> None:
    through = make(postgres_target, recorded.rows)
    through.begin()
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type='Lock'"
    with contextlib.closing(postgres_target.connect()) as other:
        other.execute("SET deadlock_timeout='10min'")
        other.execute("BEGIN")
        other.execute(f"SELECT * FROM {DATABASE}.total FOR UPDATE".encode())

        def close_the_circle() -> None:
            wait_until(lambda: postgres_target.sql(waiting) == [(1,)])
            other.execute("SELECT * FROM rplctl.slave_relay_log_info FOR UPDATE")  # until the applier is the victim
            other.execute("ROLLBACK")

        thread = threading.Thread(target=close_the_circle)
        thread.start()
        try:
            through.apply()
        finally:
            thread.join()
    through.assert_whole()
    assert through.instance.applier.retried == 1


@pytest.mark.long("Positions in files stay.", keeps=r"FILE")
@LONG
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.parametrize("kind", ["TABLE", "FILE"])
def test_sqlite_on_a_full_or_read_only_disk_stops_says_so_and_goes_on_with_space(
    tmp_path: Path, recorded: Recorded, kind: str
) -> None:
    small, groups = tmp_path / "small", recorded.rows
    small.mkdir()
    with small_disk(small, 2):
        instance = Instance(
            tmp_path / "data", groups, target=f"sqlite:///{small / 'target.db'}", relay_log_info_repository=kind
        )
        middle = len(groups.scan) - 20
        instance.apply(groups, middle)
        at = instance.applier.info
        damages: list[tuple[Callable[[], object], Callable[[], None], int]] = [
            (lambda: fill(small), lambda: release(small), 1021),
            (lambda: remount(small, "ro"), lambda: remount(small, "rw"), 1290),
        ]
        for damage, repair, errno in damages:
            instance.target.reconnect()
            damage()
            with pytest.raises(RplError) as caught:
                instance.apply_from(groups, middle)
            assert (caught.value.errno, instance.applier.info) == (errno, at), caught.value.message
            assert caught.value.hint
            repair()
        instance.target.close()
        instance.target = open_target(instance.config.target_url)
        instance.applier = instance.reopen()
        assert instance.applier.info.exec_position == at.exec_position
        instance.apply_from(groups, middle)
        assert instance.query(f"SELECT count(*), sum(seq) FROM {DATABASE}__probe") == [(TRANSACTIONS, 820)]
        instance.applier.close()
        instance.target.close()


@pytest.fixture(scope="module")
def bulky(mariadb: MariadbServer, tmp_path_factory: pytest.TempPathFactory) -> RelayGroups:
    """Numbered transactions of 200 kB."""
    mariadb.sql(f"DROP DATABASE IF EXISTS {DATABASE}")
    log = new_log(mariadb)
    mariadb.sql(
        f"CREATE DATABASE {DATABASE}; USE {DATABASE}; CREATE TABLE probe (seq INT PRIMARY KEY, note LONGTEXT);"
        + "".join(f"INSERT INTO probe VALUES ({n}, REPEAT('{n % 10}', 200000));" for n in range(1, TRANSACTIONS + 1))
        + "FLUSH LOGS"
    )
    path = tmp_path_factory.mktemp("bulky") / "log.000001"
    shutil.copy(mariadb.data / log, path)
    return groups_of(path)


@pytest.mark.long(
    "tests/stories/test_failures.py::test_a_full_disk_stops_the_receiver_and_space_lets_it_go_on stays in make test."
)
@LONG
@pytest.mark.mariadb
@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices to mount an image"
)
@pytest.mark.parametrize("kind", ["FILE", pytest.param("TABLE", marks=pytest.mark.torture)])
def test_a_server_whose_disk_is_full_stops_the_applier_which_goes_on_with_space(
    make: Callable[..., Through], bulky: RelayGroups, tmp_path: Path, kind: str
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    server = MariadbServer(("--skip-log-bin", "--skip-log-slave-updates"))
    server.data = small / "data"
    with (
        small_disk(small, 250),
        contextlib.closing(server),
    ):  # without holes: a redo log that must still grow on a full disk ends the server
        subprocess.run(["cp", "-a", "--sparse=never", str(server.template()), str(server.data)], check=True)
        server.start()
        through = make(server, bulky, relay_log_info_repository=kind)
        through.begin()
        ballast = fill(small)
        os.truncate(ballast, ballast.stat().st_size - (3 << 20))
        with pytest.raises(RplError) as caught:
            through.apply()
        is_alive = server.is_running  # some releases end themselves when they cannot extend a file
        assert caught.value.errno in ((1114, 1021) if is_alive else (2013, 2003)), caught.value.message
        release(small)
        if not is_alive:
            server.restart()
        through.restart()
        held = server.sql(f"SELECT count(*), coalesce(max(seq), 0) FROM {DATABASE}.probe")[0]
        ends = [str(bulky.scan.source_position(n)) for n in range(len(bulky.scan))]
        left = len(ends) - 1 - ends.index(str(through.instance.applier.info.exec_position))
        assert held[0] == held[1] < TRANSACTIONS and left >= TRANSACTIONS - held[0]
        through.apply()
        found = server.sql(f"SELECT count(*), sum(seq), sum(length(note)), max(seq) FROM {DATABASE}.probe")[0]
        assert tuple(int(n) for n in found) == (TRANSACTIONS, 820, TRANSACTIONS * 200_000, TRANSACTIONS)
        assert through.instance.applier.info.exec_position == bulky.scan.end_position
        through.close()


@pytest.mark.long("test_sqlite_on_a_full_or_read_only_disk_stops_says_so_and_goes_on_with_space stays in make test.")
@LONG
@pytest.mark.postgresql
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.parametrize("kind", ["FILE", pytest.param("TABLE", marks=pytest.mark.torture)])
def test_a_postgresql_whose_tablespace_is_full_stops_the_applier_which_goes_on_with_space(
    make: Callable[..., Through], postgres_target: PostgresqlServer, recorded: Recorded, kind: str
) -> None:
    """Rows and position are on a disk of their own, the write-ahead log is not: 53100, and the server lives on."""
    small = postgres_target.folder / f"small-{kind}"
    small.mkdir()
    with small_disk(small, 40):
        shutil.chown(small, "postgres", "postgres")
        for statement in (
            f"CREATE TABLESPACE small_{kind} LOCATION '{small}'",
            f"CREATE DATABASE small_{kind} TABLESPACE small_{kind}",
        ):
            postgres_target.sql(statement)
        through = make(postgres_target, recorded.rows, relay_log_info_repository=kind, database=f"small_{kind.lower()}")
        through.begin()
        before = through.instance.applier.info
        fill(small)
        with pytest.raises(RplError) as caught:
            through.apply()
        assert (caught.value.errno, "free space" in caught.value.hint) == (1021, True), caught.value.message
        release(small)
        through.restart()
        assert not through.instance.applier.info.exec_position.is_before(before.exec_position)
        through.apply()
        through.assert_whole()
        through.close()
        postgres_target.sql(f"DROP DATABASE small_{kind} WITH (FORCE)")
        postgres_target.sql(f"DROP TABLESPACE small_{kind}")


@LONG
def test_a_table_that_is_full_stops_the_applier_which_goes_on_when_it_is_not(
    make: Callable[..., Through], maria_target: MariadbServer, recorded: Recorded
) -> None:
    """1114 from an engine with a limit of its own, and without transactions: each row is there once all the same."""
    through = make(maria_target, recorded.rows)
    through.begin()
    maria_target.sql(
        "SET SESSION max_heap_table_size=16384;"
        f"ALTER TABLE {DATABASE}.probe MODIFY note VARCHAR(250) CHARACTER SET utf8mb4, ENGINE=MEMORY"
    )
    through.restart()
    with pytest.raises(RplError) as caught:
        through.apply()
    assert (caught.value.errno, "freed space" in caught.value.hint) == (1114, True), caught.value.message
    held = int(maria_target.sql(f"SELECT count(*) FROM {DATABASE}.probe")[0][0])
    assert maria_target.sql(f"SELECT sum FROM {DATABASE}.total") == [(held * (held + 1) // 2,)]
    assert 0 < held < TRANSACTIONS
    maria_target.sql(f"ALTER TABLE {DATABASE}.probe ENGINE=InnoDB")
    through.restart()
    through.apply()
    through.assert_whole()


def remount(folder: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)


@LONG
def test_a_target_that_vanishes_without_a_word_is_noticed_within_half_a_minute(
    make: Callable[..., Through], server: Server, recorded: Recorded
) -> None:
    """The kernel asks and gives up, as on the source's connection; a long statement is not cut off."""
    driver: Any = make(server, recorded.rows).instance.target.connection.connection.driver_connection
    descriptor = driver.pgconn.socket if server.kind == "postgresql" else driver._sock.fileno()
    with socket.socket(fileno=os.dup(descriptor)) as link:
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        assert [link.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [15, 5, 3, 30_000]
        assert link.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
