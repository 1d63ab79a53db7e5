"""`fsync-report`: WL#5125's analysis, counted. How many fsyncs does a crash-safe position add to a transaction?

The same small transaction is committed N times without a position and then in each variant; the difference per
transaction is what the position costs. Files of ours are counted by durable.py; SQLite, an engine inside this process,
by strace of a child process; MySQL, MariaDB and PostgreSQL by their own counter. Invariant: what is made on a target
is removed.

    variant 4                         RelayLogInfo TABLE, same engine as the data                     0 (WL#5125)
    marker, sync_relay_log_info = N   RelayLogInfo FILE: marker row with the data, the file follows   0; 2 every N
    variants 1, 2, 3, 5               need two-phase commit or the binary log: said, not measured
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.durable import sync_count
from rplctl.errors import RplError, UsageError
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info

if TYPE_CHECKING:
    from rplctl.target.base import Target

CHANNEL = "fsync-report"
TABLE = "rplctl_fsync_probe"
BASELINE = "data"
_MARK = "getpriority"  # a harmless system call that nothing else makes: begin and end of what strace shall count
# MariaDB ≥ 10.8 counts the log's with the data files'; in so short a run nothing else is synced
_ENGINE_COUNTERS = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_os_log_fsyncs', 'Innodb_data_fsyncs')"


@dataclass(frozen=True, slots=True)
class Variant:
    number: str  # of WL#5125, '-' for ours
    name: str
    kind: str  # relay_log_info_repository
    sync_period: int
    expected: float  # extra fsyncs per transaction


VARIANTS = (
    Variant("4", "table, same engine as the data", "TABLE", 10_000, 0),
    Variant("-", "file behind a marker, sync_relay_log_info=10000", "FILE", 10_000, 0),
    Variant("-", "file behind a marker, sync_relay_log_info=1", "FILE", 1, 2),
)
NOT_MEASURED = (
    ("1", "positions along with the XID in the binary log", 2, "needs log_bin, which this version does not write"),
    ("2", "separate file in two-phase commit", 3, "needs commit_mode=xa, which this version does not have"),
    ("3", "separate file in two-phase commit, binary log on", 4, "needs commit_mode=xa and log_bin"),
    (
        "5",
        "table in another engine, two-phase commit",
        2,
        "needs commit_mode=xa; else it follows a marker",
    ),
)


@dataclass(frozen=True, slots=True)
class FsyncLine:
    """Field names are columns. Counted is None where it could not be counted; Note says why."""

    Variant: str
    Positions: str
    Expected: float
    Counted: float | None
    Result: str  # OK, FAIL or -
    Note: str


def fsync_report(config: Config, transactions: int = 50, *, on_target: bool = False) -> list[FsyncLine]:
    """Measure on a SQLite file of its own, or on the configured target. Raises UsageError, TargetError."""
    if not 1 <= transactions <= 10_000:
        raise UsageError(f"--transactions {transactions}: write 1 to 10000")
    kind = config.target_url.partition(":")[0].partition("+")[0] if on_target else "sqlite"
    with tempfile.TemporaryDirectory(prefix="rplctl-fsync-") as name:
        scratch = Config(Path(name), target=config.target if on_target and kind != "sqlite" else "")
        if on_target and kind != "sqlite":
            scratch = replace(scratch, target=config.target_url)  # with its password: in memory only
        measure = _with_strace if kind == "sqlite" else _with_engine_counter
        lines = _measured(scratch, transactions, measure)
    return lines + [FsyncLine(number, text, wanted, None, "-", why) for number, text, wanted, why in NOT_MEASURED]


Measure = Callable[[Config, str, int], float]


def _measured(config: Config, transactions: int, measure: Measure) -> list[FsyncLine]:
    try:
        base = measure(config, BASELINE, transactions) / transactions
    except RplError as error:
        return [FsyncLine(v.number, v.name, v.expected, None, "-", error.message) for v in VARIANTS]
    lines = []
    for index, variant in enumerate(VARIANTS):
        extra = round(measure(config, str(index), transactions) / transactions - base, 1)
        result = "OK" if abs(extra - variant.expected) <= 0.2 else "FAIL"
        note = f"{base:.1f} without a position"
        lines.append(FsyncLine(variant.number, variant.name, variant.expected, extra + 0.0, result, note))
    return lines


def _with_strace(config: Config, variant: str, transactions: int) -> float:
    """fsyncs between the two marks of a child process, ours and SQLite's alike."""
    strace = shutil.which("strace")
    if strace is None:
        raise RplError("not counted: strace is not installed")
    folder = config.datadir / f"v{variant}"
    folder.mkdir()
    output = folder / "strace"
    program = f"from rplctl.command.fsync_report import probe; probe({str(folder)!r}, {variant!r}, {transactions})"
    command = [strace, "-f", "-qq", "-e", f"trace=fsync,fdatasync,{_MARK}", "-o", str(output)]
    done = subprocess.run([*command, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    calls = output.read_text() if output.exists() else ""
    parts = re.split(rf"^.*{_MARK}.*$", calls, flags=re.MULTILINE)
    if done.returncode or len(parts) != 3:
        raise RplError(f"not counted: strace cannot be used here ({done.stderr.strip()[-200:]})")
    return len(re.findall(r"\bf(?:data)?sync\(", parts[1]))


def _with_engine_counter(config: Config, variant: str, transactions: int) -> float:
    """The engine's own counter and ours, in this process."""
    from sqlalchemy import text

    run = _Run(replace(config, datadir=config.datadir / f"v{variant}"), variant)
    try:
        with run.target.engine.connect() as connection:

            def engine_count() -> int:
                if run.target.kind == "postgresql":
                    return _wal_syncs(run.target)
                rows = {str(name).lower(): int(value) for name, value in connection.execute(text(_ENGINE_COUNTERS))}
                if not rows:
                    raise RplError("not counted: the target has no counter of its log's fsyncs")
                return rows.get("innodb_os_log_fsyncs", rows.get("innodb_data_fsyncs", 0))

            run.commit(3)
            before, ours_before = engine_count(), sync_count.total()
            run.commit(transactions)
            return engine_count() - before + sync_count.total() - ours_before
    finally:
        run.remove()


def _wal_syncs(target: Target) -> int:
    """PostgreSQL's count for its whole log. A backend tells what it did when it is asked to, on its own connection."""

    def ask(sql: str) -> str:
        answer = str(target.connection.exec_driver_sql(sql).scalar())
        target.rollback()  # figures stay the same within a transaction
        return answer

    version = int(ask("SHOW server_version_num"))
    if version < 150000:
        raise RplError("not counted: PostgreSQL counts them at need from version 15 on")
    if ask("SHOW fsync") != "on":
        raise RplError("not counted: fsync is off on the target")
    ask("SELECT pg_stat_force_next_flush()")
    in_io = "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
    return int(ask(in_io if version >= 180000 else "SELECT wal_sync FROM pg_stat_wal"))


def probe(folder: str, variant: str, transactions: int) -> None:
    """What the traced child does."""
    run = _Run(Config(Path(folder)), variant)
    run.commit(3)  # open everything before the count begins
    os.getpriority(os.PRIO_PROCESS, 0)
    run.commit(transactions)
    os.getpriority(os.PRIO_PROCESS, 0)


class _Run:
    """A target, a table of numbers, and the ledger of the variant (None: data alone)."""

    def __init__(self, config: Config, variant: str) -> None:
        from rplctl.commit.ledger import Ledger, open_ledger
        from rplctl.commit.tables import create_own_tables
        from rplctl.durable import private_folder
        from rplctl.target import open_target

        private_folder(config.datadir)
        self.target: Target = open_target(config.target_url)
        create_own_tables(self.target.engine)
        self.table = TABLE if self.target.kind == "sqlite" else f"rplctl.{TABLE}"
        with self.target.engine.begin() as connection:
            connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {self.table} (n INTEGER PRIMARY KEY)")
        self.ledger: Ledger | None = None
        self.number = 0
        if variant != BASELINE:
            chosen = VARIANTS[int(variant)]
            config = replace(config, relay_log_info_repository=chosen.kind, sync_relay_log_info=chosen.sync_period)
            create_tables(self.target.engine, "")
            channel = Channel(CHANNEL, config.datadir)
            repository = open_relay_log_info(config, channel, lambda: self.target.engine)
            repository.flush(self._info(), force=True)
            self.repository = repository
            self.ledger = open_ledger(config, channel, self.target.engine)
            self.ledger.open()

    def _info(self) -> RelayLogInfo:
        at = 4 + self.number
        info = RelayLogInfo(channel_name=CHANNEL)
        return info.at(RelayLogPosition("relay-bin.000001", at), BinlogPosition("b.000001", at))

    def commit(self, transactions: int) -> None:
        from rplctl.commit.transaction import commit_group

        for _ in range(transactions):
            before = self._info()
            self.number += 1
            if self.ledger is None:
                self.target.begin(foreign_keys=True)
                self._insert()
                self.target.commit()
            else:
                commit_group(self.target, self.ledger, (before, self._info()), self._insert)

    def _insert(self) -> None:
        self.target.connection.exec_driver_sql(f"INSERT INTO {self.table} VALUES ({self.number})")

    def remove(self) -> None:
        from rplctl.commit.ledger import remove_marker

        self.target.rollback()
        if self.ledger is not None:
            self.repository.remove()
            remove_marker(CHANNEL, self.target.engine)
        with self.target.engine.begin() as connection:
            connection.exec_driver_sql(f"DROP TABLE {self.table}")
        self.target.close()
