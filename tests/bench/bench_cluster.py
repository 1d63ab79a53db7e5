"""Replay of an archive of binary logs on 1, 2 and 4 executors of a standalone cluster on this machine, and a model.

The executors see the archive and not the relay log, one core each; the target is a MariaDB. All of it shares this
machine's cores, so the MB/s of the runs say little about more machines. What does is CPU time, which is counted apart:
what a MB costs the executors, and what it costs the one thread of the applier and the target that it waits for. From
these the model: n executors decode n times as fast, until the committer is the limit. RPLCTL_BENCH_CLUSTER_MB sets the
size of the archive (48).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rplctl.applier.report import READING, WAITING
from rplctl.status import read_status
from tests.bench.bench_apply import SERVER
from tests.bench.measurement import Measurement
from tests.kit.private_server import ServerUnavailable
from tests.kit.process_memory import cpu_seconds
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.standalone_cluster import StandaloneCluster, can_hide_folders

MB = int(os.environ.get("RPLCTL_BENCH_CLUSTER_MB", "48"))
EXECUTORS = (1, 2, 4)
MODELLED = (1, 2, 4, 8, 16)
ROWS = 20_000  # of a transaction, about 4 MB inserted and 8 MB updated


def measure() -> Iterator[Measurement]:
    if not can_hide_folders():
        print("skipped: this user may not make mount namespaces")
        return
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as folder:
        archive = Path(folder, "archive")
        try:
            size, changes = _archive(archive)
            found = {}
            for count in EXECUTORS:
                found[count] = _replayed(Path(folder, str(count)), archive, size, count)
                note = f"{size:.0f} MB on {os.cpu_count()} cores that target and applier share"
                yield Measurement(f"archive replay, {count} executors", size / found[count][0], "MB/s", note)
        except ServerUnavailable as reason:
            print(f"skipped: {reason}")
            return
        decoding, committing = (min(costs[part] for costs in found.values()) / size for part in (1, 2))
        yield Measurement("an executor's CPU for a MB", 1e3 * decoding, "ms")
        yield Measurement("the committer's CPU for a MB", 1e3 * committing, "ms", "applier's process and target")
        yield Measurement("the committer's limit", 1 / committing, "MB/s", "one thread, one connection")
        rate, note = changes / size / committing, f"{changes} changes in {size:.0f} MB"
        yield Measurement("the committer's limit", rate, "changes/s", note)
        for count in MODELLED:
            limit = "decoding" if count / decoding < 1 / committing else "the committer"
            rate = min(count / decoding, 1 / committing)
            yield Measurement(f"model, {count} executors on cores of their own", rate, "MB/s", f"the limit is {limit}")


def _archive(folder: Path) -> tuple[float, int]:
    """Its MB, and the row changes in it."""
    folder.mkdir()
    with MariadbServer() as source:
        source.sql("CREATE DATABASE sb; CREATE TABLE sb.t (id INT PRIMARY KEY, n INT, v VARCHAR(200))")
        first = 1
        while sum(log.stat().st_size for log in source.binlog_files) < MB << 20:
            where = f"seq_{first}_to_{first + ROWS - 1}"
            source.sql(f"INSERT INTO t SELECT seq, seq % 97, REPEAT(MD5(seq), 5) FROM {where}", "sb")
            source.sql(f"UPDATE t SET n = n + 1 WHERE id >= {first}", "sb")
            first += ROWS
        source.sql("FLUSH BINARY LOGS")
        for log in source.binlog_files:
            shutil.copy(log, folder)
    return sum(log.stat().st_size for log in folder.iterdir()) / 1e6, 2 * (first - 1)


def _replayed(folder: Path, archive: Path, size: float, count: int) -> tuple[float, float, float]:
    """Seconds, CPU seconds of the executors, those of the committer."""
    cluster, replica = StandaloneCluster(folder / "cluster"), Replica(folder)
    with MariadbServer(SERVER) as target:
        try:
            cluster.start_master()
            replica.run("init", *replica.into(target))
            replica.run("change-master", "--master-binlog-dir", str(archive))
            for _ in range(count):
                cluster.start_worker([replica.datadir])
            replica.run("start", "--receiver")
            logs = sorted(path.name for path in archive.iterdir())
            status = replica.channel.status_path("receiver")
            wait_until(lambda: read_status(status).read_log_name == logs[-1], 120)
            replica.run(
                "start", "--applier", *cluster.start_options, "--spark-conf", f"spark.executor.instances={count}"
            )
            applied = replica.channel.status_path("applier")
            wait_until(lambda: read_status(applied).state in (READING, WAITING), 120, 0.01)
            began, before = time.perf_counter(), _spent(cluster, replica, target)
            replica.run("wait", "--state", "synced", "--timeout", "200")
            seconds, after = time.perf_counter() - began, _spent(cluster, replica, target)
            replica.run("stop")
            assert f"executors read {archive}" in replica.logs()
        finally:
            replica.close()
            cluster.close()
    return seconds, after[0] - before[0], after[1] - before[1]


def _spent(cluster: StandaloneCluster, replica: Replica, target: MariadbServer) -> tuple[float, float]:
    committing = cpu_seconds([replica.pid("applier") or 0], with_children=False) + cpu_seconds([target.pid])
    return cpu_seconds([worker.pid for worker in cluster.workers]), committing
