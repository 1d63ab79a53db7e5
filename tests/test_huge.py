"""Transactions far larger than memory should hold go through, and the memory of all processes stays what it is.

Memory is what processes hold for themselves (RssAnon of receiver, applier, its JVM and its Python workers), sampled;
mapped relay logs are the page cache's. `pytest -m huge` runs the sizes of the promise, the default run small ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.channel import lock_holder
from rplctl.commit.prepared import PIECE_BYTES
from tests.process_memory import anonymous_bytes
from tests.replica import Replica
from tests.servers import MariadbServer, MysqlServer

MB = 1 << 20
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


def test_a_row_transaction_of_many_batches(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPLCTL_MAX_BATCH_BYTES", str(8 * MB))
    source = mariadb_factory()
    one_transaction(source, 60_000, KILOBYTE)
    peak, _ = apply_measured(tmp_path, source)
    assert peak < 1_000 * MB


XA = ("XA START 'huge';", "XA END 'huge'; XA PREPARE 'huge'; XA COMMIT 'huge'")


def test_a_prepared_transaction_of_many_pieces(tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]) -> None:
    source = mariadb_factory()
    one_transaction(source, 12_000, KILOBYTE, *XA)
    assert 12_000_000 > 2 * PIECE_BYTES
    peak, _ = apply_measured(tmp_path, source)
    assert peak < 1_000 * MB


def test_a_compressed_transaction_of_many_batches(
    tmp_path: Path, mysql_factory: Callable[..., MysqlServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RPLCTL_MAX_BATCH_BYTES", str(8 * MB))
    source = mysql_factory()
    one_transaction(source, 30_000, RANDOM, "SET binlog_transaction_compression=ON;")
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


@pytest.mark.huge
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("size", [200 * MB, 900 * MB])
@pytest.mark.parametrize("compress", ["ON", "OFF"])
def test_one_row_of_many_megabytes_goes_through(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    size: int,
    compress: str,
    record_property: Callable[[str, object], None],
) -> None:
    """The servers' limit is 1 GB. A row is held whole, a few times: four times its size besides what all else takes."""
    source = mariadb_factory("--max-allowed-packet=1G", f"--log-bin-compress={compress}", "--innodb-log-file-size=2G")
    source.sql("CREATE DATABASE huge; CREATE TABLE huge.big (id INT PRIMARY KEY, body LONGBLOB)")
    source.sql(f"INSERT INTO huge.big VALUES (1, REPEAT('x', {size}))")
    peak, seconds = apply_measured(tmp_path, source)
    record_property("measured", f"{peak / MB:.0f} MB in {seconds:.0f} s")
    assert peak < 1_000 * MB + 4 * size, f"{peak / MB:.0f} MB in {seconds:.0f} s"


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
