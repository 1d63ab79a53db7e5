"""CPU time of following a source, at 10, 100, 500 and 2,000 transactions of one row a second.

rplctl with its default options follows a MariaDB source into a MariaDB target. A native MariaDB replica follows the
same source at the same time. Each of the rates (RPLCTL_BENCH_FOLLOW_RATES, with commas) runs for
RPLCTL_BENCH_FOLLOW_SECONDS (20) after a warm-up. One writer commits; the rate that it reached is printed.
CPU is the user and system time of each process except the source's, divided by the number of transactions. The clock
stops when target and replica have the source's last row. The ratio is that of rplctl and its target to the replica.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from rplctl.channel import Channel, lock_holder
from tests.bench.measurement import Measurement
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.process_memory import cpu_seconds, family_of
from tests.kit.servers import MariadbServer

RATES = tuple(map(int, os.environ.get("RPLCTL_BENCH_FOLLOW_RATES", "10,100,500,2000").split(",")))
SECONDS = float(os.environ.get("RPLCTL_BENCH_FOLLOW_SECONDS", "20"))
WARM_UP_TRANSACTIONS = 200
JAVA = b"org.apache.spark"


def measure() -> Iterator[Measurement]:
    try:
        with contextlib.ExitStack() as opened:
            source = opened.enter_context(MariadbServer())
            target, replica = (opened.enter_context(MariadbServer(("--skip-log-bin",))) for _ in range(2))
            source.sql("CREATE DATABASE b; CREATE TABLE b.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
            _begin_replica(replica, source)
            channel = opened.enter_context(_following(source, target))
            _commit(source, WARM_UP_TRANSACTIONS, 1000)
            _await_end(source, target, replica)
            for rate in RATES:
                yield from _at(rate, source, target, replica, channel)
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _at(
    rate: int, source: MariadbServer, target: MariadbServer, replica: MariadbServer, channel: Channel
) -> Iterator[Measurement]:
    before, peer_before = _spent(channel, target), cpu_seconds([replica.pid])
    count = int(rate * SECONDS)
    taken = _commit(source, count, rate)
    _await_end(source, target, replica)
    peer = 1e3 * (cpu_seconds([replica.pid]) - peer_before) / count
    parts = {name: 1e3 * (spent - before[name]) / count for name, spent in _spent(channel, target).items()}
    ours = sum(parts.values())
    note = f"{count / taken:,.0f} a second reached; ratio to the replica {ours / peer:.1f}"
    yield Measurement(f"{rate} a second: rplctl and its target", ours, "ms CPU", note)
    for name, part in parts.items():
        yield Measurement(f"{rate} a second: {name}", part, "ms CPU")
    yield Measurement(f"{rate} a second: native replica", peer, "ms CPU")


def _begin_replica(replica: MariadbServer, source: MariadbServer) -> None:
    replica.sql(
        f"CHANGE MASTER TO master_host='{source.host}', master_port={source.port}, master_user='{USER}',"
        f" master_password='{PASSWORD}', master_log_file='binlog.000001', master_log_pos=4; START SLAVE"
    )


@contextlib.contextmanager
def _following(source: MariadbServer, target: MariadbServer) -> Iterator[Channel]:
    """A channel with the default options, which follows."""
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        secret, folder = Path(name, "password"), Path(name, "instance")
        secret.write_text(PASSWORD)
        secret.chmod(0o600)

        def run(*words: str) -> None:
            command = [sys.executable, "-m", "rplctl", "--datadir", str(folder), *words]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

        run("init", "--target", f"mysql://{USER}@{target.host}:{target.port}/", "--target-password-file", str(secret))
        where = ("--master-host", source.host, "--master-port", str(source.port), "--master-user", USER)
        run("change-master", *where, "--password-file", str(secret), "--master-log-file", "binlog.000001")
        run("start")
        try:
            yield Channel("", folder)
        finally:
            run("stop")


def _commit(source: MariadbServer, count: int, rate: int) -> float:
    """Commit so many rows, one by one, at this rate; the seconds that it took."""
    began = time.perf_counter()
    with contextlib.closing(source.connect("b")) as connection, connection.cursor() as cursor:
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.perf_counter()))
            cursor.execute(f"INSERT INTO t (n) VALUES ({number})")
    return time.perf_counter() - began


def _await_end(source: MariadbServer, *replicas: MariadbServer) -> None:
    """Return when all have the source's last row."""
    last = source.sql("SELECT MAX(id) FROM b.t")
    for replica in replicas:
        while True:
            with contextlib.suppress(*replica.errors):  # the table does not exist yet
                if replica.sql("SELECT MAX(id) FROM b.t") == last:
                    break
            time.sleep(0.05)


def _spent(channel: Channel, target: MariadbServer) -> defaultdict[str, float]:
    """CPU seconds of each process of the channel, by its part, and of the target."""
    spent = defaultdict[str, float](float, target=cpu_seconds([target.pid]))
    for role in ("receiver", "applier"):
        root = lock_holder(channel, role) or 0
        for pid in family_of([root]):
            spent[_part(pid, root, role)] += cpu_seconds([pid], with_children=False)
    return spent


def _part(pid: int, root: int, role: str) -> str:
    """The name of a process."""
    if pid == root:
        return role
    with contextlib.suppress(OSError):  # it has ended
        if JAVA in Path(f"/proc/{pid}/cmdline").read_bytes():
            return "Java"
    return "Spark's Python workers"
