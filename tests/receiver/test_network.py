"""A real MariaDB behind a network that fails: cut at any byte, reset, silent, slow; every event is there once.

Each case has a receiver of its own and looks at what recovery left when it comes back: a prefix of the source's log
that ends with a transaction, asked for on from exactly there.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.errors import RplError
from tests.kit.proxy import Fate, Proxy
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import count_torture, walk
from tests.receiver.running import RunningReceiver, log_events

pytestmark = [pytest.mark.slow]
LONG = [pytest.mark.torture, pytest.mark.timeout(7200)]

FIRST_LOG = "binlog.000001"
DUMP_THREADS = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
ENDS_TRANSACTION = (2, 16)  # QUERY (of DDL and COMMIT), XID


@pytest.fixture(scope="module")
def server(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    made = mariadb_factory()
    made.sql("CREATE DATABASE net; CREATE TABLE net.t (a INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)")
    return made


@pytest.fixture
def source(server: MariadbServer) -> MariadbServer:
    """Its first log holds three transactions; RESET MASTER makes what is sent the same for each test."""
    server.sql("RESET MASTER; TRUNCATE net.t")
    for number in range(3):
        server.sql(f"INSERT INTO net.t (b) VALUES ('{number}'), (REPEAT('x', 300)); FLUSH BINARY LOGS")
    return server


@pytest.fixture
def proxy(source: MariadbServer) -> Iterator[Proxy]:
    with Proxy(source.port) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.receiver.receiver.TICK_S", 0.02)


def receiver_of(folder: Path, proxy: Proxy, config: dict[str, Any] | None = None, **info: Any) -> RunningReceiver:
    settings = {"connect_retry": 0, "retry_count": 0, "master_log_name": FIRST_LOG, "master_log_pos": 4, **info}
    return RunningReceiver(folder, config=config, host="127.0.0.1", port=proxy.port, **settings)


def position_asked(request: bytes) -> tuple[str, int]:
    """(log, position) of a COM_BINLOG_DUMP."""
    position, _flags, _server_id = struct.unpack_from("<IHI", request)
    return request[10:].decode(), position


def assert_ends_with_a_transaction(receiver: RunningReceiver, source: MariadbServer, request: bytes) -> None:
    """I4: what is there is a prefix of the source's log, and what is asked for is the event behind it."""
    have, whole = receiver.relayed(), log_events(source.binlog_files)
    assert have == whole[: len(have)]
    name, position = position_asked(request)
    logs = {path.name: log_events([path]) for path in source.binlog_files}
    counts = list(accumulate(len(events) for events in logs.values()))
    number = list(logs).index(name)
    before = counts[number - 1] if number else 0
    assert before <= len(have) <= counts[number]
    if len(have) > before:
        last = have[-1]
        assert last[4] in ENDS_TRANSACTION and int.from_bytes(last[13:17], "little") <= position
    if len(have) < counts[number]:
        following = whole[len(have)]
        start = int.from_bytes(following[13:17], "little") - len(following)
        assert position <= start, "an event would be left out"


def length_of_dump(folder: Path, proxy: Proxy, source: MariadbServer) -> int:
    """Bytes of answer up to the last event, learned by receiving once."""
    proxy.usual = Fate(1 << 30)
    with receiver_of(folder, proxy) as receiver:
        receiver.catch_up(source)
    proxy.usual = Fate()
    return proxy.answered


def cut_cases(folder: Path, proxy: Proxy, source: MariadbServer, cuts: list[int]) -> None:
    for number, cut in enumerate(cuts):
        how = ("fin", "rst")[number % 2]
        proxy.fates.append(Fate(cut, how))
        proxy.is_cut.clear()
        proxy.dump_requests.clear()
        proxy.hold_dumps.set()
        with receiver_of(folder / f"{cut}", proxy) as receiver:
            receiver.wait(lambda: len(proxy.dump_requests) == 2)
            assert_ends_with_a_transaction(receiver, source, proxy.dump_requests[1])
            proxy.hold_dumps.clear()
            receiver.catch_up(source)
            assert receiver.status().last_errno == 0
        assert receiver.relayed() == log_events(source.binlog_files), f"cut after byte {cut} ({how})"
        count_torture("network", f"dump cut by {how}", 0)


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=LONG)], ids=["some", "all"])
def test_a_dump_cut_after_any_byte_goes_on_behind_the_last_whole_transaction(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, everything: bool
) -> None:
    length = length_of_dump(tmp_path / "whole", proxy, source)
    assert length > 1500
    cuts = range(length)
    cut_cases(tmp_path, proxy, source, walk("network", "dump cuts", cuts) if everything else list(cuts[::197]))


@pytest.mark.long(
    "With heartbeats, which is the default, one way of losing the connection stays.",
    keeps=r"^heartbeats-hold",
)
@pytest.mark.parametrize(("how", "words"), [("fin", "closed"), ("rst", "reset"), ("hold", "nothing received")])
@pytest.mark.parametrize("heartbeat", [0.5, 0.0], ids=["heartbeats", "no heartbeats"])
def test_a_lost_connection_is_noticed_told_and_made_again(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, how: str, words: str, heartbeat: float
) -> None:
    """`hold` is the black hole: nothing comes any more and nobody says so; the net timeout does."""
    proxy.fates.append(Fate(700, how, closes=True))  # lest it is connected again before anybody has looked
    with receiver_of(tmp_path / "data", proxy, {"replica_net_timeout": 2}, heartbeat=heartbeat) as receiver:
        receiver.wait(lambda: receiver.status().last_errno != 0)
        status = receiver.status()
        assert (status.last_errno, status.connected) == (2013, False) and words in status.last_error
        assert status.state in ("Reconnecting after a failed master event read", "Connecting to master")
        proxy.open.set()
        receiver.catch_up(source)
        receiver.wait(lambda: receiver.status().connected and not receiver.status().last_errno)
    assert receiver.relayed() == log_events(source.binlog_files)


def test_a_host_name_is_asked_for_at_each_attempt_and_may_move_to_an_ipv6_address(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, answers = socket.getaddrinfo, [""]

    def resolve(host: Any, *rest: Any, **more: Any) -> Any:
        if host == "source.test" and not answers[-1]:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return really(answers[-1] if host == "source.test" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    try:
        moved = Proxy(source.port, host="::1", own_port=proxy.port)
    except OSError:
        pytest.skip("this machine has no IPv6")
    settings: dict[str, Any] = {"connect_retry": 0, "master_log_name": FIRST_LOG, "master_log_pos": 4}
    with moved, RunningReceiver(tmp_path, host="source.test", port=proxy.port, **settings) as receiver:
        receiver.wait(lambda: receiver.status().last_errno != 0)
        said = receiver.status()
        assert (said.last_errno, "Unknown MySQL server host 'source.test'" in said.last_error) == (2005, True)
        answers.append("127.0.0.1")
        receiver.catch_up(source)
        receiver.wait(lambda: receiver.status().last_errno == 0)
        here = proxy.accepted
        assert (here > 0, moved.accepted) == (True, 0)
        answers.append("::1")
        proxy.cut_all()
        source.sql("INSERT INTO net.t (b) VALUES ('moved')")
        receiver.catch_up(source)
        assert moved.accepted > 0 and proxy.accepted == here
    assert receiver.relayed() == log_events(source.binlog_files)


@pytest.mark.long("Each story of make test that waits has heartbeats; this one waits longer than the timeout.")
def test_idle_with_heartbeats_is_no_lost_connection(tmp_path: Path, proxy: Proxy, source: MariadbServer) -> None:
    """A machine may be too busy for heartbeats in time: then with longer times."""
    connections: list[int] = []
    for net_timeout in (1, 4, 16):
        before = proxy.accepted
        config = {"replica_net_timeout": net_timeout}
        with receiver_of(tmp_path / f"{net_timeout}", proxy, config, heartbeat=net_timeout * 0.3) as receiver:
            receiver.catch_up(source)
            receiver.wait(lambda: receiver.status().received_heartbeats >= 5)
        connections.append(proxy.accepted - before)
        if connections[-1] == 1:
            break
    assert connections[-1] == 1, connections


def test_single_bytes_give_the_same_relay_log(tmp_path: Path, proxy: Proxy, source: MariadbServer) -> None:
    proxy.usual = Fate(piece=1)
    with receiver_of(tmp_path / "data", proxy) as receiver:
        receiver.catch_up(source)
    assert receiver.relayed() == log_events(source.binlog_files)


@pytest.mark.long("tests/stories/test_replication.py kills receiver and applier under load.")
@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=LONG)])
@pytest.mark.parametrize("gtid", [0, pytest.param(2, marks=LONG)])
def test_dump_threads_killed_under_load_lose_and_repeat_nothing(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, kills: int, gtid: int
) -> None:
    if kills > 4:
        kills = len(walk("network", f"kills of dump threads, GTID {gtid}", range(kills)))
    chance = random.Random(kills)
    done = threading.Event()

    def load() -> None:
        with contextlib.closing(source.connect("net")) as connection, connection.cursor() as cursor:
            number = 0
            while not done.is_set():
                number += 1
                cursor.execute(f"INSERT INTO t (b) VALUES ('{number}'), (REPEAT('y', {chance.randrange(3000)}))")
                if number % 100 == 0:
                    cursor.execute("FLUSH BINARY LOGS")

    thread = threading.Thread(target=load)
    thread.start()
    try:
        start = {"using_gtid": gtid, "master_log_name": "", "master_log_pos": 0} if gtid else {}
        with receiver_of(tmp_path / "data", proxy, {"max_relay_log_size": 1 << 16}, **start) as receiver:
            killed: set[int] = set()
            for _ in range(kills):
                receiver.wait(lambda: bool({row[0] for row in source.sql(DUMP_THREADS)} - killed))
                time.sleep(chance.random() * 0.15)
                for row in source.sql(DUMP_THREADS):
                    killed.add(row[0])
                    with contextlib.suppress(pymysql.Error):
                        source.sql(f"KILL {row[0]}")
                        count_torture("network", "dump thread killed", 0)
            done.set()
            thread.join()
            receiver.catch_up(source)
    finally:
        done.set()
        thread.join()
    assert len(proxy.dump_requests) >= kills
    assert receiver.relayed() == log_events(source.binlog_files)


def failure_of(receiver: RunningReceiver) -> RplError:
    with receiver:
        return receiver.wait_for_error()


def test_a_source_with_our_own_server_id_is_1593_and_final(tmp_path: Path, proxy: Proxy, source: MariadbServer) -> None:
    error = failure_of(receiver_of(tmp_path / "data", proxy, {"server_id": source.server_id}))
    assert error.errno == 1593 and "equal MySQL server ids" in error.message and "--server-id" in error.hint
    assert proxy.accepted == 1 and not proxy.dump_requests


def test_of_two_replicas_with_one_server_id_the_first_is_told_and_gives_way(
    tmp_path: Path, proxy: Proxy, source: MariadbServer
) -> None:
    with receiver_of(tmp_path / "first", proxy) as first:
        first.catch_up(source)
        with receiver_of(tmp_path / "second", proxy) as second:
            second.catch_up(source)
            error = first.wait_for_error()
            assert "server_id" in error.message and "--server-id" in error.hint and not error.transient
            source.sql("INSERT INTO net.t (b) VALUES ('for the second')")
            second.catch_up(source)
        assert second.error is None
    assert len(proxy.dump_requests) == 2, "they fought"


def test_an_event_above_our_limit_is_1153_at_once_and_above_the_sources_own_none(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No endless fetching again of what never fits; a source sends a replica more than its max_allowed_packet."""
    source.sql("SET GLOBAL max_allowed_packet=67108864")
    source.sql("INSERT INTO net.t (b) VALUES (REPEAT('z', 6000000))")
    source.sql("SET GLOBAL max_allowed_packet=1048576")
    receiver = receiver_of(tmp_path / "data", proxy)
    with monkeypatch.context() as patched:
        patched.setattr("rplctl.source.dump.MAX_BUFFER_BYTES", 5 << 20)
        error = failure_of(receiver)
    assert error.errno == 1153 and not error.transient and "slave_max_allowed_packet" in error.message
    assert len(proxy.dump_requests) == 1 and receiver.status().last_errno == 1153
    with receiver:
        receiver.catch_up(source)
    assert receiver.relayed() == log_events(source.binlog_files)


def test_logs_begun_anew_under_a_position_are_never_read_on_from_it(
    tmp_path: Path, proxy: Proxy, source: MariadbServer
) -> None:
    """RESET MASTER, then a log of the same name that has grown past our position, event for event as long."""
    source.sql("RESET MASTER")
    for number in range(3):
        source.sql(f"INSERT INTO net.t (b) VALUES ('{number}')")
    receiver = receiver_of(tmp_path / "data", proxy)
    with receiver:
        receiver.catch_up(source)
    before = receiver.relayed()
    time.sleep(1.1)  # a log's birth is known to the second
    source.sql("RESET MASTER")
    for number in range(6):
        source.sql(f"INSERT INTO net.t (b) VALUES ('{number}')")
    error = failure_of(receiver)
    assert error.errno == 1236 and not error.transient, error.message
    assert "clone --replace" in error.hint
    assert receiver.relayed() == before, "transactions of another log"


@pytest.mark.long("A restored source stays; RESET MASTER is compared in the same way.", keeps=r"^mariadb-restored$")
@pytest.mark.parametrize("how", ["reset", "restored"])
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_same_gtids_of_other_transactions_are_never_read_on_from(
    tmp_path: Path, proxy: Proxy, request: pytest.FixtureRequest, vendor: str, how: str
) -> None:
    """RESET MASTER, or a restored server that lost its tail: the GTIDs go on past those that were received."""
    source: MariadbServer = request.getfixturevalue(f"{vendor}_factory")()
    reset = "RESET BINARY LOGS AND GTIDS" if vendor == "mysql" else "RESET MASTER"
    by_gtid = {"enabled_auto_position": True, "get_public_key": True} if vendor == "mysql" else {"using_gtid": 2}
    source.sql(f"{reset}; CREATE DATABASE net; CREATE TABLE net.t (a INT)")
    source.stop()
    backup = tmp_path / "backup"
    shutil.copytree(source.data, backup, copy_function=shutil.copy2)
    source.start()
    proxy.server_port = source.port
    for number in range(3):
        source.sql(f"INSERT INTO net.t VALUES ({number})")
    receiver = receiver_of(tmp_path / "data", proxy, master_log_name="", **by_gtid)
    with receiver:
        receiver.catch_up(source)
    before = receiver.relayed()
    with receiver:  # as long as it is the same history, it is read on
        receiver.catch_up(source)
    time.sleep(1.1)  # a log's birth is known to the second
    if how == "reset":
        source.sql(reset)
    else:
        source.stop()
        shutil.rmtree(source.data)
        shutil.copytree(backup, source.data, copy_function=shutil.copy2)
        source.start()
    for number in range(9):
        source.sql(f"INSERT INTO net.t VALUES (10 + {number})")
    error = failure_of(receiver)
    assert error.errno == 1236 and "has started a new log" in error.message and "clone --replace" in error.hint
    assert receiver.relayed() == before, "transactions of another history"


@pytest.mark.long("test_logs_begun_anew_under_a_position_are_never_read_on_from_it has it at a connect.")
@pytest.mark.parametrize("grows", [False, True], ids=["shorter", "longer"])
def test_logs_begun_anew_while_connected_stop_it(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, grows: bool
) -> None:
    source.sql("RESET MASTER")
    for number in range(3):
        source.sql(f"INSERT INTO net.t (b) VALUES ('{number}')")
    with receiver_of(tmp_path / "data", proxy) as receiver:
        receiver.catch_up(source)
        before = receiver.relayed()
        time.sleep(1.1)
        source.sql("RESET MASTER")
        for number in range(6 * grows):
            source.sql(f"INSERT INTO net.t (b) VALUES ('{number}')")
        proxy.cut_all()
        error = receiver.wait_for_error()
    assert error.errno == 1236, error.message
    assert receiver.relayed() == before


def any_request(_data: bytes) -> bool:
    return True


@pytest.mark.long("One kind of end stays.", keeps=r"^fin-some$")
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=LONG)], ids=["some", "all"])
@pytest.mark.parametrize("how", ["fin", "rst"])
def test_a_handshake_cut_after_any_byte_is_tried_again(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, how: str, everything: bool
) -> None:
    """From the answer to the login to the last question before the dump: no error is final, nothing is half set up."""
    cuts = walk("network", f"handshake cuts by {how}", range(1100)) if everything else list(range(0, 1100, 211))
    proxy.fates.extend(Fate(cut, how, any_request) for cut in cuts)
    with receiver_of(tmp_path / "data", proxy) as receiver:
        receiver.catch_up(source)
        receiver.wait(lambda: receiver.status().connected and not receiver.status().last_errno)
    assert receiver.relayed() == log_events(source.binlog_files)
    assert proxy.cuts == len(cuts) < proxy.accepted
    count_torture("network", f"handshake cut by {how}", 0, len(cuts))


@pytest.mark.long("tests/handshake/test_connection.py has silent servers in make test.")
@pytest.mark.parametrize("stage", ["greeting", "login", "questions"])
def test_a_handshake_that_stalls_is_tried_again_after_the_net_timeout(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, stage: str
) -> None:
    stalled = Fate({"greeting": 0, "login": 0, "questions": 300}[stage], "hold", any_request)
    if stage == "greeting":
        proxy.open.clear()
    proxy.usual = stalled
    with receiver_of(tmp_path / "data", proxy, {"replica_net_timeout": 1}) as receiver:
        receiver.wait(lambda: receiver.status().last_errno != 0)
        assert receiver.status().last_errno in (2003, 2013) and not receiver.status().connected
        proxy.usual = Fate()
        proxy.open.set()
        receiver.catch_up(source)
    assert receiver.relayed() == log_events(source.binlog_files)


@pytest.mark.long("tests/cli/test_hanging_servers.py has silent sources in make test.")
@pytest.mark.parametrize("stage", ["greeting", "login"])
def test_stop_does_not_wait_for_a_source_that_does_not_answer(
    tmp_path: Path, proxy: Proxy, source: MariadbServer, stage: str
) -> None:
    if stage == "greeting":
        proxy.open.clear()
    proxy.usual = Fate(0, "hold", any_request)
    receiver = receiver_of(tmp_path / "data", proxy)
    process = subprocess.Popen(
        [sys.executable, "-m", "rplctl.receiver", str(tmp_path / "data"), ""],
        stderr=subprocess.PIPE,
        env={**os.environ, "RPLCTL_SERVER_ID": "77"},
    )
    try:
        wait_until(lambda: proxy.accepted and (stage == "greeting" or proxy.is_cut.is_set()))
        time.sleep(0.2)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, notes = process.communicate(timeout=180)
    finally:
        process.kill()
    assert process.returncode == 0, notes
    assert time.monotonic() - began < 45 and b"Traceback" not in notes
    assert receiver.status().state == ""


def test_a_source_without_a_free_connection_is_1040_and_tried_again(
    tmp_path: Path, proxy: Proxy, source: MariadbServer
) -> None:
    source.sql("CREATE OR REPLACE USER few@'%' IDENTIFIED BY 'rpl'; GRANT REPLICATION SLAVE ON *.* TO few@'%'")
    with contextlib.closing(source.connect()) as own, own.cursor() as cursor:
        cursor.execute("SET GLOBAL max_connections=10")
        with contextlib.ExitStack() as crowd, receiver_of(tmp_path / "data", proxy, user_name="few") as receiver:
            with contextlib.suppress(pymysql.Error):
                while True:
                    crowd.enter_context(contextlib.closing(source.connect()))
            receiver.wait(lambda: receiver.status().last_errno == 1040 or receiver.status().connected)
            if receiver.status().connected:
                proxy.cut_all()
                receiver.wait(lambda: receiver.status().last_errno == 1040)
            assert "Too many connections" in receiver.status().last_error
            crowd.close()
            cursor.execute("SET GLOBAL max_connections=150")
            receiver.catch_up(source)
        assert receiver.relayed() == log_events(source.binlog_files)
