"""A row of the last change, locked: what a snapshot behind that shows, of a MySQL without GTIDs that never pauses."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rplctl import mysql_errors as er
from rplctl.clone.last_row import LastRow
from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.received import Received
from rplctl.result_set.columns import SESSION
from rplctl.schema.source_catalog import read_table
from rplctl.source.snapshot import RowLock, SnapshotKind, SourcePosition, orders_commits, snapshot
from rplctl.source.survey import survey
from rplctl.sql_text import Sql
from tests.kit.load import Work, working
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MysqlServer
from tests.source.test_snapshot import commit_ends

pytestmark = [pytest.mark.slow, pytest.mark.mysql]
WRITERS = 12
KEYS = {  # kind of a key, the SQL of a number's
    "numbers": ("BIGINT UNSIGNED", "18446744073709551615 - {n}"),
    "words": ("VARCHAR(20) CHARACTER SET latin1", "CONCAT('ä€ ', {n})"),
    "cells": ("CHAR(20) COLLATE utf8mb4_general_ci", "CONCAT('Ab', {n})"),
    "bytes": ("BINARY(9)", "CONCAT({n}, x'0000')"),
    "moments": ("DATETIME(3)", "'2024-02-29 23:59:59.123' + INTERVAL {n} SECOND"),
    "stamps": ("TIMESTAMP(6)", "FROM_UNIXTIME(1700000000.000001 + {n})"),
    "prices": ("DECIMAL(20,5)", "-{n}.00001"),
    "doubles": ("DOUBLE", "{n} / 8"),
    "keyless": ("INT", "{n}"),
}
UNSURE = ("keyless",)  # nothing tells one of its rows: all are asked for
SEEN = "SELECT CAST(SUM(v) AS SIGNED) FROM x.counts UNION ALL " + " UNION ALL ".join(
    f"SELECT COUNT(*) FROM x.{name}" for name in UNSURE
)


def tables() -> Iterator[str]:
    yield "CREATE TABLE counts (id INT PRIMARY KEY, v BIGINT)"
    yield "INSERT INTO counts VALUES " + ", ".join(f"({n}, 0)" for n in range(WRITERS))
    for name, (kind, _) in KEYS.items():
        key = ", KEY (k)" if name == "keyless" else ", PRIMARY KEY (j, k)" if name == "words" else ", PRIMARY KEY (k)"
        yield f"CREATE TABLE `{name}` (v BIGINT NOT NULL, k {kind}, j INT DEFAULT 7{key}, KEY (v))"


def writer(number: int) -> Work:
    """Each transaction is one more of `SEEN`; what it does last is an INSERT, an UPDATE or a DELETE by some key."""
    chance = random.Random(number)
    keys = itertools.count(number, WRITERS)

    def work(cursor: Any) -> None:
        name = chance.choice([*KEYS, "numbers", *UNSURE])
        key = KEYS[name][1].format(n=next(keys))
        if name in UNSURE:
            cursor.execute(f"INSERT INTO `{name}` (v, k) VALUES (1, {key})")
            return
        for statement in (
            f"INSERT INTO `{name}` (v, k) VALUES (1, {key})",
            f"UPDATE `{name}` SET v = v + 1 WHERE k = {key}",
            f"DELETE FROM `{name}` WHERE k = {key}",
        ):
            cursor.execute("BEGIN")
            cursor.execute(f"UPDATE counts SET v = v + 1 WHERE id = {number}")
            cursor.execute(statement)
            cursor.execute("COMMIT")

    return work


@pytest.mark.long("tests/schema/test_bounds.py holds the order of keys on MariaDB.")
@pytest.mark.parametrize("snapshots", [20, pytest.param(600, marks=pytest.mark.torture)])
def test_a_snapshot_shows_all_that_is_logged_up_to_the_locked_row(
    mysql_factory: Callable[..., MysqlServer], tmp_path: Path, snapshots: int
) -> None:
    server = mysql_factory("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
    server.sql("CREATE DATABASE x; USE x;" + ";".join(tables()) + "; FLUSH BINARY LOGS")
    earlier = len(commit_ends(server)[server.master_status()[0]])
    replica = Replica(tmp_path, spark=False)
    seen: list[tuple[BinlogPosition, int, BinlogPosition]] = []
    passed = {"not locked": 0, "keys": 0, "scans": 0}
    try:
        replica.run("init")
        replica.change_master(server, "--get-master-public-key", "1")
        replica.run("change-master", "--master-log-file", server.master_status()[0], "--master-log-pos", "4")
        replica.run("start", "--receiver")
        info = MasterInfo(host=server.host, port=server.port, user_name="rpl", get_public_key=True)
        with survey(info, "rpl", Config(tmp_path)) as query, survey(info, "rpl", Config(tmp_path)) as about:
            query(SESSION)
            received = Received(replica.channel, server.server_id, by_gtid=False)
            wait_until(received.begin, 60)
            names = frozenset(("x", name) for name in ("counts", *KEYS))
            last = LastRow(received, lambda name: read_table(about, *name)[0], names)
            at = received.position

            def lock() -> RowLock | None:
                nonlocal at
                found = last.lock()
                at = received.position
                if found is not None:
                    scans = "RAND" in found.sql
                    assert scans == any(f"`{name}`" in found.sql for name in UNSURE), found.sql
                    passed["scans" if scans else "keys"] += 1
                return found

            assert orders_commits(query)
            with working(server, "x", [writer(n) for n in range(WRITERS)], harmless=(er.LOCK_DEADLOCK,), pause_s=0):
                while len(seen) < snapshots or not passed["keys"] or not passed["scans"]:
                    try:
                        with snapshot(query, SnapshotKind.SHARE_LOCK, SourcePosition(None), 10, lock) as held:
                            count = sum(int(row[0]) for row in query(Sql(SEEN)))
                            high = held.high().position
                    except SourceError as error:
                        assert error.errno == er.LOCK_WAIT_TIMEOUT, error
                        passed["not locked"] += 1
                        continue
                    assert high is not None
                    seen.append((at, count, high))
    finally:
        replica.close()
    ends = commit_ends(server)
    assert seen[-1][1] > seen[0][1], "the writers went on"
    for low, count, high in seen:
        assert bisect_right(ends[low.log_name], low.log_pos) - earlier <= count
        assert count <= bisect_right(ends[high.log_name], high.log_pos) - earlier
