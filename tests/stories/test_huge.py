"""Transactions far larger than memory should hold go through, and the memory of all processes stays what it is.

Memory is what processes hold for themselves (RssAnon of receiver, applier, its JVM and its Python workers), sampled;
mapped relay logs are the page cache's. `pytest -m huge` runs the sizes of the promise, the default run small ones.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import lock_holder
from rplctl.own_tables.prepared import PIECE_BYTES
from tests.command.test_clone import wait_cloned
from tests.conftest import servers_of
from tests.kit.private_server import PrivateServer
from tests.kit.process_memory import anonymous_bytes
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

MB = 1 << 20


@pytest.fixture(autouse=True)
def _on_a_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers in memory would be gigabytes of it."""
    if request.node.get_closest_marker("huge"):
        monkeypatch.setattr(PrivateServer, "in_memory", False)


@pytest.fixture
def mariadb_factory(_on_a_disk: None) -> Iterator[Callable[..., MariadbServer]]:
    """Servers that end with their test, as the others below: each holds gigabytes."""
    yield from servers_of(MariadbServer)


@pytest.fixture
def mysql_factory(_on_a_disk: None) -> Iterator[Callable[..., MysqlServer]]:
    yield from servers_of(MysqlServer)


@pytest.fixture
def postgresql_factory(_on_a_disk: None) -> Iterator[Callable[..., PostgresqlServer]]:
    yield from servers_of(PostgresqlServer)


LIMIT = 2_000 * MB  # of all processes together, whatever the transaction: max_batch_bytes = 64 MB, 2 cores


class PeakMemory:
    """Samples the two processes of a channel for as long as a `with` block lasts."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self.peak = 0

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._end.wait(0.1):
            pids = [lock_holder(self._replica.channel, role) for role in ("receiver", "applier")]
            self.peak = max(self.peak, anonymous_bytes([pid for pid in pids if pid]))


def apply_measured(folder: Path, source: MariadbServer) -> tuple[int, float]:
    """Everything the source has → (peak memory, seconds); all rows are compared."""
    replica = Replica(folder)
    try:
        replica.set_up(source, "--relay-log-info-repository", "table")
        begun = time.monotonic()
        with PeakMemory(replica) as memory:
            replica.run("start", "--until-synced", timeout_s=3000)
        seconds = time.monotonic() - begun
        sums = "count(*), sum(id), sum(length(body))"
        assert replica.query(f"SELECT {sums} FROM huge__big") == [
            tuple(int(value) for value in row) for row in source.sql(f"SELECT {sums} FROM huge.big")
        ]
        some = "SELECT id, body FROM {} WHERE id % 9973 = 0 ORDER BY id"
        assert replica.query(some.format("huge__big")) == list(source.sql(some.format("huge.big")))
        return memory.peak, seconds
    finally:
        replica.close()


def one_transaction(source: MariadbServer, rows: int, body: str, setting: str = "", end: str = "") -> None:
    """A table filled by a single INSERT between `setting` and `end`; `body` is a row's text, from `n`."""
    source.sql("CREATE DATABASE huge; CREATE TABLE huge.big (id INT PRIMARY KEY, body TEXT CHARACTER SET latin1)")
    digits = "(SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 "
    digits += "UNION SELECT 7 UNION SELECT 8 UNION SELECT 9)"
    places = [f"{10**place} * t{place}.d" for place in range(7)]
    joined = ", ".join(f"{digits} t{place}" for place in range(7))
    numbers = f"SELECT {' + '.join(places)} n FROM {joined}"
    source.sql(f"{setting} INSERT INTO huge.big SELECT n, {body} FROM ({numbers}) numbers WHERE n < {rows};{end}")


KILOBYTE = "RPAD(n, 1000, CONCAT('row ', n, ' of a long transaction. '))"
RANDOM = "CONCAT(" + ",".join(f"SHA2(n*31+{part}, 512)" for part in range(12)) + ")"  # 1.5 KB that halve at best


@pytest.mark.long("A transaction above the size of a batch is rare; tests/applier/test_large_rows.py holds large rows.")
@pytest.mark.slow
def test_a_row_transaction_of_many_batches(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPLCTL_MAX_BATCH_BYTES", str(4 * MB))
    source = mariadb_factory()
    one_transaction(source, 12_000, KILOBYTE)
    peak, _ = apply_measured(tmp_path, source)
    assert peak < 1_000 * MB


XA = ("XA START 'huge';", "XA END 'huge'; XA PREPARE 'huge'; XA COMMIT 'huge'")


@pytest.mark.slow
@pytest.mark.torture
def test_a_prepared_transaction_of_many_pieces(tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]) -> None:
    source = mariadb_factory()
    one_transaction(source, 12_000, KILOBYTE, *XA)
    assert 12_000_000 > 2 * PIECE_BYTES
    peak, _ = apply_measured(tmp_path, source)
    assert peak < 1_000 * MB


@pytest.mark.slow
@pytest.mark.torture
def test_a_compressed_transaction_of_many_batches(
    tmp_path: Path, mysql_factory: Callable[..., MysqlServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPLCTL_MAX_BATCH_BYTES", str(8 * MB))
    source = mysql_factory()
    one_transaction(source, 18_000, RANDOM, "SET binlog_transaction_compression=ON;")
    peak, _ = apply_measured(tmp_path, source)
    assert peak < 1_000 * MB


@pytest.mark.huge
@pytest.mark.timeout(4000)
def test_compressed_rows_that_unfold_to_800_mb_stay_below_the_limit(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], record_property: Callable[[str, object], None]
) -> None:
    """MariaDB compresses each event; how small the log is does not matter."""
    source = mariadb_factory("--log-bin-compress=ON", "--binlog-row-event-max-size=1M")
    one_transaction(source, 800_000, KILOBYTE)
    assert max(path.stat().st_size for path in source.binlog_files) < 100 * MB
    peak, seconds = apply_measured(tmp_path, source)
    record_property("measured", f"{peak / MB:.0f} MB in {seconds:.0f} s")
    assert peak < 1_000 * MB, f"{peak / MB:.0f} MB in {seconds:.0f} s"


NOISE = "LEFT(REPEAT(RANDOM_BYTES(1021), {size} DIV 1021 + 1), {size})"
ZEROS = "REPEAT(CHAR(0), {size})"  # each an escape and a byte where LOAD DATA carries it
PIECE = 64 * MB


def digests(sql: Callable[[str], Sequence[Sequence[Any]]], piece: str, size: int) -> list[Any]:
    """Of a row too large to be compared whole; `piece` is the server's SUBSTRING."""
    columns = (piece.format(at=at, length=PIECE) for at in range(1, size + 1, PIECE))
    return [
        sql("SELECT LENGTH(body) FROM huge.big")[0][0],
        *(sql(f"SELECT MD5({c}) FROM huge.big")[0][0] for c in columns),
    ]


@pytest.mark.huge
@pytest.mark.timeout(4000)
@pytest.mark.parametrize(
    ("target", "body", "size", "compress", "feed"),
    [
        ("sqlite", NOISE, 200 * MB, "OFF", "network"),
        ("sqlite", NOISE, 900 * MB, "ON", "network"),
        ("postgresql", NOISE, 1023 * MB, "OFF", "network"),
        ("mariadb", ZEROS, 600 * MB, "OFF", "network"),
        ("mariadb", NOISE, 1000 * MB, "OFF", "network"),
        ("mariadb", NOISE, 900 * MB, "OFF", "folder"),
    ],
)
def test_one_row_up_to_the_servers_limit_goes_through(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    postgresql_factory: Callable[..., PostgresqlServer],
    record_property: Callable[[str, object], None],
    target: str,
    body: str,
    size: int,
    compress: str,
    feed: str,
) -> None:
    """It is held nowhere: from the source to the target it goes through files, piece by piece (man 7 rplctl-types)."""
    large = ("--max-allowed-packet=1G", "--innodb-log-file-size=3G")
    source = mariadb_factory(*large, f"--log-bin-compress={compress}")
    source.sql("CREATE DATABASE huge; CREATE TABLE huge.big (id INT PRIMARY KEY, body LONGBLOB)")
    source.sql(f"INSERT INTO huge.big VALUES (1, {body.format(size=size)})")
    server: PrivateServer | None = None
    if target != "sqlite":
        server = mariadb_factory(large[1]) if target == "mariadb" else postgresql_factory()
    replica = Replica(tmp_path)
    try:
        url = () if server is None else target_options(tmp_path, server)
        replica.run("init", "--relay-log-info-repository", "table", *url)
        if feed == "network":
            replica.change_master(source)
        else:
            replica.run("change-master", "--master-binlog-dir", str(source.data))
        with PeakMemory(replica) as memory:
            replica.run("start", "--until-synced", timeout_s=3000)
        expected = digests(source.sql, "SUBSTRING(body, {at}, {length})", size)
        if server is None:
            ((found,),) = replica.query("SELECT body FROM huge__big")
            pieces = (found[at : at + PIECE] for at in range(0, size, PIECE))
            assert [len(found), *(hashlib.md5(piece).hexdigest() for piece in pieces)] == expected
        else:
            assert digests(server.sql, "SUBSTRING(body FROM {at} FOR {length})", size) == expected
    finally:
        replica.close()
    record_property("measured", f"{memory.peak / MB:.0f} MB")
    assert memory.peak < 1_000 * MB, f"{memory.peak / MB:.0f} MB"


@pytest.mark.huge
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("target", ["sqlite", "mariadb"])
def test_a_row_of_500_mb_is_copied(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    record_property: Callable[[str, object], None],
    target: str,
) -> None:
    """By `rplctl clone`, and its processes take little more for it than for the same without it."""
    large, size = ("--max-allowed-packet=1G", "--innodb-log-file-size=3G"), 500 * MB
    source = mariadb_factory(*large)
    source.sql("CREATE DATABASE huge; CREATE TABLE huge.big (id INT PRIMARY KEY, body LONGBLOB)")
    peaks = []
    for number, body in enumerate(("'small'", NOISE.format(size=size))):
        source.sql(f"REPLACE INTO huge.big VALUES (1, {body})")
        server = mariadb_factory(large[1]) if target == "mariadb" else None
        replica = Replica(tmp_path / str(number))
        replica.datadir.parent.mkdir()
        try:
            replica.run("init", *(target_options(tmp_path / str(number), server) if server else ()))
            replica.change_master(source)
            with PeakMemory(replica) as memory:
                replica.run("clone")
                wait_cloned(replica)
            peaks.append(memory.peak)
            expected = digests(source.sql, "SUBSTRING(body, {at}, {length})", size)
            if server is not None:
                assert digests(server.sql, "SUBSTRING(body FROM {at} FOR {length})", size) == expected
            else:
                ((found,),) = replica.query("SELECT body FROM huge__big")
                pieces = (found[at : at + PIECE] for at in range(0, size, PIECE))
                assert [len(found), *(hashlib.md5(piece).hexdigest() for piece in pieces)] == expected
        finally:
            replica.close()
    more = peaks[1] - peaks[0]
    record_property("measured", f"{more / MB:.0f} MB more than {peaks[0] / MB:.0f}")
    assert more < 200 * MB, peaks


@pytest.mark.huge
@pytest.mark.timeout(4000)
def test_one_row_without_a_key_goes_through(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], record_property: Callable[[str, object], None]
) -> None:
    """It is looked for by all that it holds; the target's max_allowed_packet (16 MB) does not matter."""
    source, size = mariadb_factory("--max-allowed-packet=1G", "--innodb-log-file-size=3G"), 300 * MB
    source.sql("CREATE DATABASE huge; CREATE TABLE huge.big (n INT, body LONGBLOB)")
    source.sql(f"INSERT INTO huge.big VALUES (1, {NOISE.format(size=size - 1)})")
    source.sql("INSERT INTO huge.big SELECT * FROM huge.big")
    source.sql("UPDATE huge.big SET n=2, body=CONCAT(body, '.') LIMIT 1")
    source.sql("DELETE FROM huge.big WHERE n=1")
    target, replica = mariadb_factory("--innodb-log-file-size=3G"), Replica(tmp_path)
    try:
        replica.run("init", "--relay-log-info-repository", "table", *target_options(tmp_path, target))
        replica.change_master(source)
        begun = time.monotonic()
        with PeakMemory(replica) as memory:
            replica.run("start", "--until-synced", timeout_s=3000)
        seconds = time.monotonic() - begun
        assert [tuple(row) for row in target.sql("SELECT n FROM huge.big")] == [(2,)]
        piece = "SUBSTRING(body, {at}, {length})"
        target.sql("SET GLOBAL max_allowed_packet=1073741824")  # for what SUBSTRING returns
        assert digests(target.sql, piece, size) == digests(source.sql, piece, size)
    finally:
        replica.close()
    record_property("measured", f"{memory.peak / MB:.0f} MB in {seconds:.0f} s")
    assert memory.peak < 1_000 * MB, f"{memory.peak / MB:.0f} MB"


CODECS = {"utf8mb4": "utf-8", "utf16": "utf-16-be"}


@pytest.mark.huge
@pytest.mark.timeout(4000)
@pytest.mark.parametrize(
    ("target", "charset", "size", "most"),
    [("sqlite", "utf8mb4", 300 * MB, 1_500 * MB), ("postgresql", "utf16", 700 * MB, 1_000 * MB)],
)
def test_one_row_of_text_goes_through(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    postgresql_factory: Callable[..., PostgresqlServer],
    record_property: Callable[[str, object], None],
    target: str,
    charset: str,
    size: int,
    most: int,
) -> None:
    """It is converted piece by piece; SQLite holds the room for it twice (man 7 rplctl-types)."""
    source = mariadb_factory("--max-allowed-packet=1G", "--innodb-log-file-size=3G")
    source.sql("CREATE DATABASE huge")
    source.sql(f"CREATE TABLE huge.big (id INT PRIMARY KEY, body LONGTEXT CHARACTER SET {charset}, n INT)")
    line = "Zeile ä🦄b."
    lines = size // len(line.encode(CODECS[charset]))
    source.sql(f"INSERT INTO huge.big VALUES (1, REPEAT(CONVERT('{line}' USING {charset}), {lines}), 7)")
    server = postgresql_factory() if target == "postgresql" else None
    replica = Replica(tmp_path)
    try:
        url = () if server is None else target_options(tmp_path, server)
        replica.run("init", "--relay-log-info-repository", "table", *url)
        replica.change_master(source)
        with PeakMemory(replica) as memory:
            replica.run("start", "--until-synced", timeout_s=3000)
        expected = hashlib.md5(line.encode() * lines).hexdigest()
        if server is None:
            ((kind, n, found),) = replica.query("SELECT typeof(body), n, body FROM huge__big")
            assert (kind, n, hashlib.md5(found.encode()).hexdigest()) == ("text", 7, expected)
        else:
            assert [tuple(row) for row in server.sql("SELECT n, md5(body) FROM huge.big")] == [(7, expected)]
    finally:
        replica.close()
    record_property("measured", f"{memory.peak / MB:.0f} MB")
    assert memory.peak < most, f"{memory.peak / MB:.0f} MB"


def target_options(folder: Path, server: PrivateServer) -> tuple[str, ...]:
    """Of `init`, its password in a file."""
    password = folder / "target-password"
    password.write_text("rpl\n")
    password.chmod(0o600)
    return ("--target", server.url().replace("rpl:rpl@", "rpl@"), "--target-password-file", str(password))


@pytest.mark.huge
@pytest.mark.timeout(4000)
def test_one_row_above_sqlites_limit_stops_with_the_way_out(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source = mariadb_factory("--max-allowed-packet=1G", "--innodb-log-file-size=3G")
    source.sql("CREATE DATABASE huge; CREATE TABLE huge.big (id INT PRIMARY KEY, body LONGBLOB)")
    source.sql(f"INSERT INTO huge.big VALUES (1, REPEAT('x', {1000 * MB}))")
    replica = Replica(tmp_path)
    try:
        replica.set_up(source, "--relay-log-info-repository", "table")
        failed = replica.run("start", "--until-synced", expect=7, timeout_s=3000)
        assert "ERROR 1406" in failed.stderr and "another kind of target" in failed.stderr
        assert replica.status()["Last_SQL_Errno"] == 1406
        assert replica.query("SELECT count(*) FROM huge__big") == [(0,)]
    finally:
        replica.close()


@pytest.mark.huge
@pytest.mark.timeout(4000)
def test_a_row_transaction_of_2_gb_stays_below_the_limit(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], record_property: Callable[[str, object], None]
) -> None:
    source = mariadb_factory()
    one_transaction(source, 2_200_000, KILOBYTE)
    assert max(path.stat().st_size for path in source.binlog_files) > 2_048 * MB
    peak, seconds = apply_measured(tmp_path, source)
    record_property("measured", f"{peak / MB:.0f} MB in {seconds:.0f} s")
    assert peak < LIMIT, f"{peak / MB:.0f} MB in {seconds:.0f} s"


@pytest.mark.huge
@pytest.mark.timeout(4000)
def test_a_prepared_transaction_of_200_mb_stays_below_the_limit(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], record_property: Callable[[str, object], None]
) -> None:
    source = mariadb_factory()
    one_transaction(source, 220_000, KILOBYTE, *XA)
    assert max(path.stat().st_size for path in source.binlog_files) > 200 * MB
    peak, seconds = apply_measured(tmp_path, source)
    record_property("measured", f"{peak / MB:.0f} MB in {seconds:.0f} s")
    assert peak < 1_000 * MB, f"{peak / MB:.0f} MB in {seconds:.0f} s"


@pytest.mark.huge
@pytest.mark.timeout(4000)
def test_a_payload_of_300_mb_stays_below_the_limit(
    tmp_path: Path, mysql_factory: Callable[..., MysqlServer], record_property: Callable[[str, object], None]
) -> None:
    source = mysql_factory("--max-allowed-packet=1G")
    one_transaction(source, 420_000, RANDOM, "SET binlog_transaction_compression=ON;")
    assert max(path.stat().st_size for path in source.binlog_files) > 300 * MB
    peak, seconds = apply_measured(tmp_path, source)
    record_property("measured", f"{peak / MB:.0f} MB in {seconds:.0f} s")
    assert peak < LIMIT, f"{peak / MB:.0f} MB in {seconds:.0f} s"
