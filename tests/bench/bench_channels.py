"""Many channels of one instance in few processes: memory of each, CPU at rest, lag under a trickle on all.

One real source; each channel writes its transactions into a database of its own (replicate_rewrite_db) of one target,
so each transaction of the source is applied by every channel, by all at the same moment. The lag is that of a row: from
the source's clock when it is written to the target's when it is inserted, on one machine. RPLCTL_BENCH_CHANNELS and
RPLCTL_BENCH_GROUPS set how many channels (12) and groups (2). What 1,000 channels in groups of that size take is
calculated from it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from rplctl.channel import Channel, lock_holder
from rplctl.command.change_filter import change_filter
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.config import load_config
from tests.bench.measurement import Measurement
from tests.kit.process_memory import anonymous_bytes, cpu_seconds, family_of
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

CHANNELS = int(os.environ.get("RPLCTL_BENCH_CHANNELS", "12"))
GROUPS = int(os.environ.get("RPLCTL_BENCH_GROUPS", "2"))
MANY = 1000
REST_S = 30
TRANSACTIONS = 12
PAUSE_S = 5  # between two of them
ROOM = ("--max-connections=4000", "--open-files-limit=20000")


def measure() -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as folder, MariadbServer(ROOM) as source, MariadbServer(ROOM) as target:
        replica = Replica(Path(folder))
        names = [f"c{number:03}" for number in range(CHANNELS)]
        channels = [Channel(name, replica.datadir) for name in names]
        try:
            _set_up(source, target, replica, names)
            yield from _measured(source, target, replica, channels)
        finally:
            for name in names:
                Replica(Path(folder), name).kill("receiver")
                Replica(Path(folder), name).kill("applier")


def _set_up(source: MariadbServer, target: MariadbServer, replica: Replica, names: list[str]) -> None:
    source.sql("CREATE DATABASE trickle")
    log_name, position = source.master_status()
    replica.run("init", *replica.into(target))
    source.sql(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, at DATETIME(6))", "trickle"
    )  # its default: rewritten
    for name in names:
        target.sql(f"CREATE DATABASE {name}")
        changes = MasterChanges(
            master_host=source.host, master_port=source.port, master_user="rpl", password="rpl",
            master_log_file=log_name, master_log_pos=position, master_connect_retry=1,
        )  # fmt: skip
        change_master(load_config(replica.datadir, name), name, changes)
        filters = {"replicate_rewrite_db": f"trickle->{name}", "replicate_do_db": name}
        change_filter(load_config(replica.datadir, name), name, filters)


def _measured(
    source: MariadbServer, target: MariadbServer, replica: Replica, channels: list[Channel]
) -> Iterator[Measurement]:
    what = f"{len(channels)} channels in {GROUPS} groups"
    began = time.monotonic()
    for group in range(GROUPS):
        those = [part for channel in channels[group::GROUPS] for part in ("--channel", channel.name)]
        replica.run("start", "--shared-session", *those, timeout_s=1200)
    yield Measurement(f"start {what}", time.monotonic() - began, "s")

    def with_table() -> int:
        return int(target.sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_name='t'")[0][0])

    wait_until(lambda: with_table() == len(channels), 900, 1)
    yield Measurement(f"until all of {what} apply", time.monotonic() - began, "s")
    for channel in channels:
        target.sql(f"ALTER TABLE {channel.name}.t ADD seen TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6)")
    roots = {
        role: sorted({pid for channel in channels if (pid := lock_holder(channel, role))})
        for role in ("receiver", "applier")
    }
    _settle(roots["applier"])
    yield from _lag(source, target, channels, what, roots)
    time.sleep(5)
    each_mb = {role: anonymous_bytes(pids) / 1e6 / len(channels) for role, pids in roots.items()}
    for role, pids in roots.items():
        family = family_of(pids)
        note = f"{len(pids)} processes; {_threads(family)} threads and {_descriptors(family)} descriptors in all"
        yield Measurement(f"memory, {role}s of {what}", each_mb[role], "MB each", note)
    before = {role: cpu_seconds(pids) for role, pids in roots.items()}
    time.sleep(REST_S)
    percent = {role: 100 * (cpu_seconds(pids) - before[role]) / REST_S for role, pids in roots.items()}
    for role in roots:
        yield Measurement(f"CPU at rest, {role}s of {what}", percent[role], "% core", "all together")
    note = f"calculated, in groups of {len(channels) // GROUPS}; 256 of an instance at most"
    yield Measurement(f"memory of {MANY} channels", sum(each_mb.values()) * MANY / 1e3, "GB", note)
    yield Measurement(f"CPU at rest of {MANY} channels", sum(percent.values()) * MANY / len(channels), "% core", note)
    for verb in (["show-status", "--json"], ["check"], ["show-channels"]):
        command = [*verb, "--datadir", os.fspath(replica.datadir)]
        yield Measurement(f"{' '.join(verb)}, {what}", _seconds(command), "s")
    began = time.monotonic()
    replica.run("stop", "--all", expect=None, timeout_s=1200)
    yield Measurement(f"stop {what}", time.monotonic() - began, "s")


def _settle(appliers: list[int]) -> None:
    """What a start leaves to do is done: the lag is that of channels that run."""
    for _ in range(60):
        before = cpu_seconds(appliers)
        time.sleep(2)
        if cpu_seconds(appliers) - before < 0.5:
            return


def _lag(
    source: MariadbServer, target: MariadbServer, channels: list[Channel], what: str, roots: dict[str, list[int]]
) -> Iterator[Measurement]:
    before = {role: cpu_seconds(pids) for role, pids in roots.items()}
    for _ in range(TRANSACTIONS):
        source.sql("INSERT INTO trickle.t (at) VALUES (NOW(6))")
        time.sleep(PAUSE_S)
    tables = " UNION ALL ".join(f"SELECT at, seen FROM {channel.name}.t" for channel in channels)
    counted = f"SELECT TIMESTAMPDIFF(MICROSECOND, at, seen) FROM ({tables}) x"
    wait_until(lambda: len(target.sql(counted)) == TRANSACTIONS * len(channels), 600, 1)
    for role, pids in roots.items():
        each_ms = 1000 * (cpu_seconds(pids) - before[role]) / TRANSACTIONS / len(channels)
        yield Measurement(f"CPU, {role}s of {what}", each_ms, "ms a commit", "what they take at rest included")
    lags = sorted(int(row[0]) / 1000 for row in target.sql(counted))
    note = f"{len(lags)} rows, one transaction in {PAUSE_S} s for all channels at once"
    yield Measurement(f"lag p50, {what}", statistics.median(lags), "ms", note)
    yield Measurement(f"lag p99, {what}", lags[int(len(lags) * 0.99)], "ms")


def _threads(pids: Iterable[int]) -> int:
    return sum(_entries(f"/proc/{pid}/task") for pid in pids)


def _descriptors(pids: Iterable[int]) -> int:
    return sum(_entries(f"/proc/{pid}/fd") for pid in pids)


def _entries(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:  # the process has ended meanwhile
        return 0


def _seconds(arguments: list[str]) -> float:
    import subprocess

    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "rplctl", *arguments[-2:], *arguments[:-2]], capture_output=True, check=False)
    return time.monotonic() - began
