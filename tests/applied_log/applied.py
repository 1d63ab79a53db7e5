"""Applying a recorded log with `log_bin`, and what the binary log then holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.event.gtid_arrays import unsigned
from rplctl.event.scan import scan_events
from rplctl.event.types import EventType
from rplctl.failpoint import ENVIRONMENT
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups, RelayLogReader
from rplctl.relay_log.writer import RelayLogWriter
from rplctl.target import open_target
from tests.applier.instance import Instance

PER_COMMIT = 7  # transactions: many commits, so that there is something to be cut between
OWN = [EventType.FORMAT_DESCRIPTION, EventType.ROTATE, EventType.STOP, EventType.PREVIOUS_GTIDS, EventType.GTID_LIST]
OWN += [EventType.BINLOG_CHECKPOINT, EventType.IGNORABLE]


def logs_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("binlog.*") if path.suffix[1:].isdecimal())


def events_of(paths: Sequence[Path], checksum: int = 4) -> list[bytes]:
    """Every transaction's events without what a copy may change: end_log_pos and checksum."""
    found = []
    for path in paths:
        data = np.fromfile(path, np.uint8)
        index = scan_events(data, 4)
        for number in np.flatnonzero(~np.isin(index.type_codes, OWN)):
            event = data[index.offsets[number] : index.offsets[number + 1]].tobytes()
            found.append(event[:13] + event[17 : len(event) - checksum])
    return found


def types_of(paths: Sequence[Path]) -> list[str]:
    """Names of the transactions' events."""
    return [EventType(event[4]).name for event in events_of(paths)]


def vendor_reads(tool: Sequence[str], paths: Sequence[Path]) -> str:
    """What the vendor's tool prints; it verifies every checksum."""
    command = [*tool, "--verify-binlog-checksum", *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr
    return done.stdout


def positions_are_exact(path: Path) -> bool:
    data = np.fromfile(path, np.uint8)
    index = scan_events(data, 4)
    ends = unsigned(data, index.offsets[:-1] + 13, 4)
    return index.end == len(data) and bool((ends == index.offsets[1:]).all())


def receive(folder: Path, log: Path) -> RelayGroups:
    """The log's transactions as our receiver leaves them: in a relay log of the instance."""
    folder.mkdir(parents=True, exist_ok=True)
    data = np.fromfile(log, np.uint8)
    behind = 4 + int.from_bytes(data[13:17].tobytes(), "little")
    writer = RelayLogWriter(Channel("", folder), Config(folder), 77)
    writer.open_new(BinlogPosition(log.name, behind), data[4:behind].tobytes())
    writer.append(data[behind:], 1)
    writer.sync()
    writer.close()
    return all_groups(folder)


def all_groups(folder: Path) -> RelayGroups:
    reader = RelayLogReader(Channel("", folder))
    assert reader.open(RelayLogInfo())
    groups = reader.groups(1 << 30)
    assert groups is not None
    return groups


def resumed(folder: Path, **options: Any) -> Instance:
    """A start of an instance that ran before."""
    instance = Instance.__new__(Instance)
    instance.config = replace(Config(datadir=folder, relay_log_info_repository="TABLE"), **options)
    instance.channel = Channel("", folder)
    instance.target = open_target(instance.config.target_url)
    instance.pipeline = InProcessPipeline()
    instance.stop = threading.Event()
    instance.applier = instance.reopen()
    return instance


def apply_rest(instance: Instance, groups: RelayGroups) -> None:
    """From where the instance stands, in small commits."""
    for batch in plan_batches(groups, len(groups.scan), per_commit=lambda: PER_COMMIT):
        if batch.start >= instance.applier.info.relay_log_pos:
            instance.applier.apply(batch)


def kill_in_between(folder: Path, point: str, options: dict[str, Any]) -> None:
    """A process begins to apply what the instance's relay log holds and is killed at the crash point (NAME=kill@N)."""
    program = (
        "from pathlib import Path\n"
        "from tests.applier.instance import Instance\n"
        "from tests.applied_log.applied import all_groups, apply_rest\n"
        f"folder = Path({str(folder)!r})\n"
        "groups = all_groups(folder)\n"
        f"apply_rest(Instance(folder, groups, **{options!r}), groups)\n"
    )
    environment = {**os.environ, ENVIRONMENT: point}
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


def tables(instance: Instance) -> dict[str, list[tuple[Any, ...]]]:
    names = instance.query("SELECT name FROM sqlite_master WHERE type='table' AND instr(name, '__') ORDER BY name")
    return {name: sorted(instance.query(f'SELECT * FROM "{name}"'), key=repr) for (name,) in names}
