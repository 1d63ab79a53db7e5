"""The ladder under twelve writers: what is seen is what L and H say, with the least rights and without a lock."""

from __future__ import annotations

import struct
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rplctl.clone.reading import released
from rplctl.config import Config
from rplctl.errors import SourceError, WaitTimeout
from rplctl.event.gtid import MysqlGtidSet
from rplctl.event.types import EventType
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source.snapshot import Snapshot, SnapshotKind, SourcePosition, lets_ddl_pass, locked_rows, snapshot, step_of
from rplctl.source.survey import Ask, survey
from rplctl.sql_text import written
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer, MysqlServer

WRITERS, SECONDS = 12, 3.0
SERVERS = {
    SnapshotKind.EXACT: (MariadbServer, ()),
    SnapshotKind.GTID_WINDOW: (MysqlServer, ()),
    SnapshotKind.SHARE_LOCK: (MysqlServer, ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")),
}
NOTHING = SourcePosition(None)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(SnapshotKind.EXACT, marks=pytest.mark.mariadb),
        pytest.param(SnapshotKind.GTID_WINDOW, marks=pytest.mark.mysql),
        pytest.param(SnapshotKind.SHARE_LOCK, marks=pytest.mark.mysql),
    ],
)
def case(request: pytest.FixtureRequest) -> Iterator[tuple[SnapshotKind, MariadbServer]]:
    kind, options = SERVERS[request.param]
    try:
        server = kind(("--general-log=1", "--general-log-file=said.log", *options))
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    with server:
        server.sql("CREATE DATABASE x; CREATE TABLE x.t (id INT PRIMARY KEY, v BIGINT NOT NULL)")
        server.sql("INSERT INTO x.t VALUES " + ", ".join(f"({n}, 0)" for n in range(WRITERS)))
        server.sql("CREATE USER low@'%' IDENTIFIED BY 'low'; GRANT SELECT ON x.* TO low@'%'")
        server.sql("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO low@'%'; FLUSH BINARY LOGS")
        yield request.param, server


@contextmanager
def writers(server: MariadbServer) -> Iterator[None]:
    stop = threading.Event()

    def write(key: int) -> None:
        with closing(server.connect()) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute(f"UPDATE x.t SET v = v + 1 WHERE id = {key}")

    threads = [threading.Thread(target=write, args=(key,)) for key in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def asking(server: MariadbServer, folder: Path) -> Iterator[Ask]:
    info = MasterInfo(host=server.host, port=server.port, user_name="low", get_public_key=True)
    with survey(info, "low", Config(folder)) as query:
        yield query


def opened(query: Ask, step: SnapshotKind) -> AbstractContextManager[Snapshot]:
    """What there is without a relay log: the row that a share lock wants is known from that (tests/clone)."""
    return locked_rows(query, step, 10) if step is SnapshotKind.SHARE_LOCK else snapshot(query, step, NOTHING, 10)


def total(query: Ask, held: Snapshot) -> int:
    return int(query(written("SELECT CAST(SUM(v) AS SIGNED) FROM x.t{}", held.locking))[0][0])


def commit_ends(server: MariadbServer) -> dict[str, list[int]]:
    """Per log of the server: where each commit in it ends."""
    found: dict[str, list[int]] = {}
    for path in server.binlog_files:
        data, ends, at = path.read_bytes(), [], 4
        while at + 19 <= len(data):
            length = struct.unpack_from("<I", data, at + 9)[0]
            if data[at + 4] == EventType.XID:
                ends.append(at + length)
            at += length
        found[path.name] = ends
    return found


@pytest.mark.long("tests/command/test_clone.py copies with such a snapshot while the source changes.")
@pytest.mark.slow
def test_what_is_seen_is_what_the_places_say(case: tuple[SnapshotKind, MariadbServer], tmp_path: Path) -> None:
    step, server = case
    before = int(server.sql("SELECT SUM(v) FROM x.t")[0][0])
    earlier = len(commit_ends(server)[server.master_status()[0]])
    seen: list[tuple[SourcePosition, int, SourcePosition]] = []
    with asking(server, tmp_path) as query:
        assert step_of(query) is step
        start = (
            MysqlGtidSet.parse(query(written("SELECT @@GLOBAL.gtid_executed"))[0][0])
            if step is SnapshotKind.GTID_WINDOW
            else None
        )
        with writers(server):
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                with opened(query, step) as held:
                    rows = total(query, held)
                    high = held.high()
                seen.append((held.low, rows - before, high))
    assert len(seen) > 10 and seen[-1][1] > WRITERS
    ends = commit_ends(server)

    def commits_up_to(position: BinlogPosition) -> int:
        return bisect_right(ends[position.log_name], position.log_pos) - earlier

    for low, count, high in seen:
        assert high.position is not None
        most = commits_up_to(high.position)
        if start is not None:
            least = MysqlGtidSet.parse(low.gtids).count() - start.count()
        else:
            assert low.position is not None
            least = commits_up_to(low.position)
        assert least <= count <= most
        assert step is not SnapshotKind.EXACT or (low == high and least == most and low.gtids)


@pytest.mark.long("The exact snapshot stays.", keeps=r"EXACT")
@pytest.mark.slow
def test_what_the_replica_has_applied_is_seen_or_waited_for(
    case: tuple[SnapshotKind, MariadbServer], tmp_path: Path
) -> None:
    step, server = case
    with asking(server, tmp_path) as query:
        if step is SnapshotKind.SHARE_LOCK:
            return
        name, offset = server.master_status()
        server.sql("UPDATE x.t SET v = v + 1 WHERE id = 0")
        gtids = server.sql("SELECT @@GLOBAL.gtid_executed")[0][0] if step is SnapshotKind.GTID_WINDOW else ""
        with snapshot(query, step, SourcePosition(BinlogPosition(*server.master_status()), gtids), 10) as held:
            assert total(query, held) == int(server.sql("SELECT SUM(v) FROM x.t")[0][0])
        later = SourcePosition(BinlogPosition(name, offset + (1 << 30)), "00000000-0000-0000-0000-000000000001:1-9")
        with pytest.raises(WaitTimeout), snapshot(query, step, later, 0.2):
            pass
        assert query(written("SELECT 1")) == [(1,)]


@pytest.mark.long("One method of taking a snapshot stays.", keeps=r"EXACT")
@pytest.mark.slow
def test_no_table_is_locked_and_no_more_rights_are_taken(
    case: tuple[SnapshotKind, MariadbServer], tmp_path: Path
) -> None:
    step, server = case
    with asking(server, tmp_path) as query:
        with opened(query, step) as held:
            total(query, held)
        said = (server.data / "said.log").read_text(errors="replace").upper()
        for words in ("LOCK TABLE", "FLUSH TABLE", "BACKUP STAGE", "LOCK INSTANCE"):
            assert words not in said
        refused: Any = pytest.raises(SourceError)
        with refused:
            query(written("FLUSH TABLES WITH READ LOCK"))


@pytest.mark.long("DDL between two statements of a snapshot is rare.")
@pytest.mark.slow
def test_ddl_passes_between_two_statements_of_a_snapshot_where_the_session_may_turn_its_log_off(
    case: tuple[SnapshotKind, MariadbServer], tmp_path: Path
) -> None:
    step, server = case
    if step is SnapshotKind.SHARE_LOCK:
        return  # each of its statements is a transaction
    alter = "SET lock_wait_timeout=1; ALTER TABLE x.t COMMENT '{}'"
    with asking(server, tmp_path) as query:
        assert lets_ddl_pass(query, step) is (step is not SnapshotKind.EXACT)
        with snapshot(query, step, NOTHING, 10):
            with released(query):
                query(written("SELECT 1 FROM x.t LIMIT 1"))
            if step is SnapshotKind.EXACT:
                with pytest.raises(server.errors, match="Lock wait timeout"):
                    server.sql(alter.format("waits"))
                server.sql("GRANT BINLOG ADMIN ON *.* TO low@'%'")
            else:
                server.sql(alter.format("passes"))
    with asking(server, tmp_path) as query:
        assert lets_ddl_pass(query, step)
        with snapshot(query, step, NOTHING, 10):
            with released(query):
                query(written("SELECT 1 FROM x.t LIMIT 1"))
            server.sql(alter.format("passes again"))
