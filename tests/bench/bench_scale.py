"""One long drain: whether gigabyte after gigabyte of log takes the same time and the same memory.

The log repeats a recorded one: transactions of sysbench, then MariaDB's flashback of them, which takes every row back,
so that each copy of the two files meets the rows that it was recorded over. A copy differs in the name of the file that
its end points to. The receiver reads the folder while the applier drains it, within a limit of relay logs, as with a
source that is far ahead. The tables are compared at the end.

$RPLCTL_BENCH_SCALE_GB: gigabytes of log (2); the disk has to hold them, and 3 more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rplctl.channel import Channel
from rplctl.event.checksum_trailer import append_checksum
from rplctl.status import read_status
from tests.bench.bench_apply import ROWS, SERVER, target_options
from tests.bench.measurement import Measurement
from tests.bench.workload import DATABASE, SOURCE_OPTIONS, TABLES, checksums, phase_of, sysbench_phase
from tests.kit.private_server import PASSWORD, USER, ServerUnavailable
from tests.kit.process_memory import anonymous_bytes
from tests.kit.servers import MariadbServer

GIGABYTES = float(os.environ.get("RPLCTL_BENCH_SCALE_GB", "2"))
TRANSACTIONS = 30_000
LIMIT = 1 << 30  # bytes of relay log
GB = 10**9
BATCH = 64 << 20  # less than what one file takes back of the other, which folded together would be nothing
CHECKSUM = 4


@dataclass(frozen=True, slots=True)
class Look:
    seconds: float
    applied: int  # bytes of the source's log
    memory: int  # bytes of the applier and its children


def measure() -> Iterator[Measurement]:
    try:
        with tempfile.TemporaryDirectory(prefix="rplctl-bench-") as name, MariadbServer(SERVER) as target:
            logs = Path(name, "logs")
            logs.mkdir()
            wanted = record(logs)
            looks = drained(Path(name, "instance"), logs, target, Path(name))
            assert checksums(target, DATABASE, TABLES) == wanted
            yield from shown(looks)
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def record(logs: Path) -> list[tuple[object, ...]]:
    """Fill the folder; the checksums of the tables that its log ends with."""
    with MariadbServer((*SOURCE_OPTIONS, "--innodb-flush-log-at-trx-commit=0")) as source:
        source.sql(f"CREATE DATABASE {DATABASE}")
        words = [f"--table-size={ROWS}", "--threads=4"]
        rows = sysbench_phase(source, "rows", [*words, "prepare"])
        before = checksums(source, DATABASE, TABLES)
        changes = sysbench_phase(source, "changes", [*words, f"--events={TRANSACTIONS}", "--time=0", "run"])
        back = phase_of(source, "back", lambda: _flash_back(source, source.data / changes.file))
        assert checksums(source, DATABASE, TABLES) == before
        pieces = [(source.data / phase.file).read_bytes() for phase in (rows, changes, back)]
    first, *pair = pieces
    copies = [first, *pair * round((GIGABYTES * GB - len(first)) / sum(map(len, pair)))]
    names = [f"binlog.{number:06d}" for number in range(1, len(copies) + 1)]
    for name, following, copy in zip(names, [*names[1:], f"binlog.{len(names) + 1:06d}"], copies, strict=True):
        Path(logs, name).write_bytes(leading_to(copy, following))
    Path(logs, "binlog.index").write_text("".join(f"./{name}\n" for name in names))
    return before


def leading_to(log: bytes, following: str) -> bytes:
    """The log with another file's name of the same length in its last event, which is a ROTATE."""
    return log[: -CHECKSUM - len(following)] + append_checksum(_rotate(log, following))[-CHECKSUM - len(following) :]


def _rotate(log: bytes, following: str) -> bytes:
    size = 19 + 8 + len(following) + CHECKSUM
    return log[-size : -CHECKSUM - len(following)] + following.encode()


def _flash_back(source: MariadbServer, log: Path) -> None:
    client = ["mariadb", f"--socket={source.socket}", f"--user={USER}", f"--password={PASSWORD}"]
    dump = subprocess.Popen(["mariadb-binlog", "--flashback", str(log)], stdout=subprocess.PIPE)
    subprocess.run(client, stdin=dump.stdout, check=True)
    assert dump.wait() == 0


def drained(instance: Path, logs: Path, target: MariadbServer, folder: Path) -> list[Look]:
    """A look each second, from the start of both processes to the end of the log."""
    sizes = {path.name: path.stat().st_size for path in sorted(logs.glob("binlog.0*"))}
    ends = dict(zip(sizes, [sum(list(sizes.values())[:number]) for number in range(len(sizes))], strict=True))
    program = [sys.executable, "-m", "rplctl", "--datadir", str(instance)]

    def run(*words: str) -> str:
        return subprocess.run([*program, *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    run("init", *target_options(target, folder), "--relay-log-info-repository", "table")
    with Path(instance, "rplctl.toml").open("a") as file:
        file.write(f"\nrelay_log_space_limit = {LIMIT}\nmax_batch_bytes = {BATCH}\n")
    where = ["--master-log-file", min(sizes), "--master-log-pos", "4"]
    run("change-master", "--master-binlog-dir", str(logs), *where)
    run("start")
    began, looks, channel = time.monotonic(), [Look(0.0, 0, 0)], Channel("", instance)
    try:
        while looks[-1].applied < sum(sizes.values()):
            time.sleep(0.5)
            status = read_status(channel.status_path("applier"))
            assert not status.last_error, status
            if not status.exec_log_pos:  # not yet
                continue
            applied = ends.get(status.exec_log_name, sum(sizes.values())) + status.exec_log_pos
            looks.append(Look(time.monotonic() - began, applied, anonymous_bytes([_applier(channel)])))
    finally:
        run("stop")
    return looks


def _applier(channel: Channel) -> int:
    words = channel.lock_path("applier").read_text().split()
    return int(words[0]) if words else 0  # not yet


def shown(looks: list[Look]) -> Iterator[Measurement]:
    """The first gigabyte begins when Spark runs; the last ends with the log."""
    total = looks[-1].applied
    part = min(GB, total // 4)
    marks = range(part, total, part)
    rates = [part / 1e6 / (_when(looks, end) - _when(looks, end - part)) for end in marks]
    yield Measurement("log", total / 1e9, "GB", f"in parts of {part / 1e9:.2f} GB")
    yield Measurement("all", total / 1e6 / looks[-1].seconds, "MB/s", f"{looks[-1].seconds:.0f} s with the start")
    for name, rate in (("first", rates[1]), ("slowest", min(rates[1:])), ("last", rates[-1])):
        yield Measurement(f"{name} part behind the tables' own", rate, "MB/s", f"to the first {rate / rates[1]:.2f}")
    early = max(look.memory for look in looks if look.applied <= 2 * part)
    late = max(look.memory for look in looks)
    yield Measurement("peak memory, first two parts", early / 1e6, "MB")
    yield Measurement("peak memory, all", late / 1e6, "MB", f"ratio {late / early:.2f}")


def _when(looks: list[Look], applied: int) -> float:
    """Between two looks: as if they were joined by a line."""
    after = next(number for number, look in enumerate(looks) if look.applied >= applied and number)
    one, other = looks[after - 1], looks[after]
    share = (applied - one.applied) / max(1, other.applied - one.applied)
    return one.seconds + share * (other.seconds - one.seconds)
