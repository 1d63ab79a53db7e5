"""`fsync-report`: count the fsyncs that a crash-safe position adds to a transaction (the analysis of WL#5125).

The same small transaction is committed N times without a position, and then N times in each variant. The difference for
one transaction is the cost of the position. The fsyncs of rplctl's own files are counted by durable.py. SQLite runs
inside the process, so strace counts its fsyncs in a child process. MySQL, MariaDB and PostgreSQL have their own
counters. Invariant: every object that is created on a target is removed.

The last column has the expected fsyncs for each transaction. The numbered variants and their values are from WL#5125.

    1        RelayLogInfo FILE, commit_mode=xa; the position is prepared only in the          2
             binary log: 1 for the engine's prepare, 1 for the log
    2        RelayLogInfo FILE, commit_mode=xa: 1 for the engine's prepare, 2 for the         3
             `prepared:` line of the file
    3        variant 2 with the binary log                                                    4
    4        RelayLogInfo TABLE, in the same engine as the data                               0
    5        RelayLogInfo TABLE in Aria, commit_mode=xa, only on MariaDB                      2
    pages    variant 2 with a shadow-page file: 1 for the engine's prepare, 3 for the         4
             page, the header and the pointer
    marker   RelayLogInfo FILE; a marker row is committed with the data, and the file is      0, and 2 every
             written after sync_relay_log_info transactions                                   time for the file
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.channel import Channel
from rplctl.commit.step import CommitMode, CommitStep, PositionStore
from rplctl.config import Config
from rplctl.durable import private_folder, replace_file, sync_count
from rplctl.errors import RplError, UsageError
from rplctl.info import RelayLogInfo
from rplctl.instance_id import INSTANCE_ID_FILE, made_instance_id
from rplctl.own_process import OWN_FOLDER, own_environment, own_python
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.repository.base import InfoRepository
from rplctl.sql_run import ask, run
from rplctl.sql_text import word, written
from rplctl.target import open_engine, open_target
from rplctl.target.registry import DEFAULT_KIND, dialect_of, target_kind

if TYPE_CHECKING:
    from rplctl.applied_log.binary_log import LoggedEvents
    from rplctl.target.base import Target

CHANNEL = "fsync-report"
TABLE = "rplctl_fsync_probe"
BASELINE = "data"
_POSITIONS = written("rplctl.slave_relay_log_info")
_MARK = "getpriority"  # a harmless system call that nothing else uses; strace counts between two of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    number: str  # the number in WL#5125; '-' for a variant that only rplctl has
    name: str
    kind: str = "FILE"  # relay_log_info_repository
    sync_period: int = 10_000
    expected: float  # extra fsyncs per transaction
    commit_mode: str = "auto"
    prepared_position: str = "line"
    engine: str = ""  # the engine of the repository's table; '' = the engine of the data
    log_bin: str = ""


VARIANTS = (
    Variant(
        number="1",
        name="along with the XID in the binary log",
        expected=2,
        commit_mode="xa",
        prepared_position="binlog",
        log_bin="binlog",
    ),
    Variant(
        number="2",
        name="separate file in two-phase commit",
        expected=3,
        commit_mode="xa",
    ),
    Variant(
        number="3",
        name="separate file in two-phase commit, binary log on",
        expected=4,
        commit_mode="xa",
        log_bin="binlog",
    ),
    Variant(number="4", name="table, same engine as the data", kind="TABLE", expected=0),
    Variant(
        number="5",
        name="table in another engine (Aria), two-phase commit",
        kind="TABLE",
        expected=2,
        commit_mode="xa",
        engine="Aria",
    ),
    Variant(
        number="-",
        name="shadow-page file in two-phase commit",
        expected=4,
        commit_mode="xa",
        prepared_position="pages",
    ),
    Variant(number="-", name="file behind a marker, sync_relay_log_info=10000", expected=0),
    Variant(number="-", name="file behind a marker, sync_relay_log_info=1", sync_period=1, expected=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FsyncLine:
    """One row of the report. The field names are the column names.

    Counted is None if the variant could not be measured. Then Note gives the reason.
    """

    Variant: str
    Positions: str
    Expected: float
    Counted: float | None
    Result: str  # OK, FAIL or -
    Note: str


def fsync_report(config: Config, transactions: int = 50, *, on_target: bool = False) -> list[FsyncLine]:
    """Measure all variants on a new SQLite file or, with `on_target`, on the configured target.

    `transactions` is the number of transactions for each variant. Raises UsageError if it is not 1 to 10000, and
    TargetError if the target reports an error.
    """
    if not 1 <= transactions <= 10_000:
        raise UsageError(f"--transactions {transactions}: the number must be 1 to 10000")
    kind = target_kind(config.target_place) if on_target else DEFAULT_KIND
    is_file = dialect_of(kind).is_one_file
    with tempfile.TemporaryDirectory(prefix="rplctl-fsync-") as name:
        target = _file_of(kind, name) if is_file else config.target_url  # the password stays in memory
        scratch = Config(Path(name), target=target)
        return _measured(scratch, transactions, _with_strace if is_file else _with_engine_counter)


def _file_of(kind: str, folder: str) -> str:
    """Return the URL of a target of this kind whose file is in `folder`."""
    return f"{kind}:///{folder}/target.db"


Measure = Callable[[Config, str, int], float]


def _measured(config: Config, transactions: int, measure: Measure) -> list[FsyncLine]:
    try:
        base = measure(config, BASELINE, transactions) / transactions
    except RplError as error:
        return [
            FsyncLine(
                Variant=v.number, Positions=v.name, Expected=v.expected, Counted=None, Result="-", Note=error.message
            )
            for v in VARIANTS
        ]
    lines = []
    for index, variant in enumerate(VARIANTS):
        try:
            extra = round(measure(config, str(index), transactions) / transactions - base, 1)
        except RplError as error:
            lines.append(
                FsyncLine(
                    Variant=variant.number,
                    Positions=variant.name,
                    Expected=variant.expected,
                    Counted=None,
                    Result="-",
                    Note=error.message,
                )
            )
            continue
        note, more = f"{base:.1f} without a position", 0
        if variant.commit_mode == "xa" and _prepares_twice(config):
            note, more = f"{note}; MySQL syncs its log twice in XA PREPARE, the worklog expects one sync", 1
        result = "OK" if abs(extra - more - variant.expected) <= 0.2 else "FAIL"
        lines.append(
            FsyncLine(
                Variant=variant.number,
                Positions=variant.name,
                Expected=variant.expected,
                Counted=extra + 0.0,
                Result=result,
                Note=note,
            )
        )
    return lines


def _prepares_twice(config: Config) -> bool:
    """True if the target is MySQL, because MySQL syncs its log twice in XA PREPARE (measured on 9.7).

    MariaDB and PostgreSQL sync their logs once.
    """
    if not dialect_of(target_kind(config.target_place)).executes_statements:
        return False
    engine = open_engine(config.target_url)
    try:
        with engine.connect():
            return not getattr(engine.dialect, "is_mariadb", False)
    finally:
        engine.dispose()


def _with_strace(config: Config, variant: str, transactions: int) -> float:
    """Return the number of fsyncs in `transactions` transactions of a variant, on a SQLite file. strace counts them.

    The transactions run in a child process (`probe`), between two calls that mark their begin and their end in the
    output of strace. The number includes the fsyncs of rplctl and of SQLite.
    """
    strace = shutil.which("strace")
    kind = target_kind(config.target_place)
    if strace is None:
        raise RplError("not counted: strace is not installed")
    if variant != BASELINE and VARIANTS[int(variant)].commit_mode == "xa":
        title = dialect_of(kind).title
        raise RplError(f"not counted: {title} cannot prepare a transaction; use --on-target to count on a server")
    folder = config.datadir / f"v{variant}"
    folder.mkdir()
    output = folder / "strace"
    given = f"{str(folder)!r}, {variant!r}, {transactions}, {kind!r}"
    program = f"from rplctl.command.fsync_report import probe; probe({given})"
    command = [strace, "-f", "-qq", "-e", f"trace=fsync,fdatasync,{_MARK}", "-o", str(output)]
    traced = [*command, *own_python("-c", program)]
    done = subprocess.run(traced, capture_output=True, text=True, check=False, env=own_environment(), cwd=OWN_FOLDER)
    calls = output.read_text() if output.exists() else ""
    parts = re.split(rf"^.*{_MARK}.*$", calls, flags=re.MULTILINE)
    if done.returncode or len(parts) != 3:
        raise RplError(f"not counted: strace cannot be used here ({done.stderr.strip()[-200:]})")
    return len(re.findall(r"\bf(?:data)?sync\(", parts[1]))


def _with_engine_counter(config: Config, variant: str, transactions: int) -> float:
    """Return the number of fsyncs in `transactions` transactions of a variant, on a server.

    It is the sum of the server's own counter and of rplctl's counter in this process.
    """
    run = _Run(replace(config, datadir=config.datadir / f"v{variant}"), variant)
    count = dialect_of(run.target.kind).log_syncs
    try:
        run.commit(3)
        before, ours_before = count(run.target), sync_count.total()
        run.commit(transactions)
        return count(run.target) - before + sync_count.total() - ours_before
    finally:
        run.remove()


def probe(folder: str, variant: str, transactions: int, kind: str) -> None:
    """Run the transactions of a variant in the child process that strace traces.

    A system call before and after the transactions marks them in the output of strace.
    """
    run = _Run(Config(Path(folder), target=_file_of(kind, folder)), variant)
    run.commit(3)  # open everything before the count begins
    os.getpriority(os.PRIO_PROCESS, 0)
    run.commit(transactions)
    os.getpriority(os.PRIO_PROCESS, 0)


def _logged_insert() -> LoggedEvents:
    """Return one transaction for the binary log, which has no events here.

    The fsyncs that are measured do not depend on the events, but on the position that is written with them.
    """
    from rplctl.applied_log.binary_log import LoggedEvents, no_events
    from rplctl.event.format_description import build_format_description, parse_format_description

    description = parse_format_description(build_format_description(1, 0, 1, "8.0.40"))
    return LoggedEvents(description, 0, True, no_events)


class _Run:
    """A target with a table of numbers, into which each transaction inserts one row.

    `store` commits the position of the variant; it is None for the measurement without a position.
    """

    def __init__(self, config: Config, variant: str) -> None:
        from rplctl.own_tables.tables import create_own_tables

        private_folder(config.datadir)
        one = made_instance_id(config.datadir.parent)  # the target must see all variants as one instance (D29)
        replace_file(config.datadir / INSTANCE_ID_FILE, f"{one}\n".encode())
        self.target: Target = open_target(config.target_url)
        create_own_tables(self.target.engine)
        self.table = dialect_of(self.target.kind).own_name(TABLE)
        with self.target.engine.begin() as connection:
            run(connection, written("CREATE TABLE IF NOT EXISTS {} (n INTEGER PRIMARY KEY)", self.table))
        self.store: PositionStore | None = None
        self.repository: InfoRepository[RelayLogInfo] | None = None
        self.engine_before = ""
        self.number = 0
        if variant != BASELINE:
            try:
                self._open(config, VARIANTS[int(variant)])
            except BaseException:
                self.remove()
                raise

    def _open(self, config: Config, chosen: Variant) -> None:
        from rplctl.commit.position_store import open_position_store

        config = replace(
            config,
            relay_log_info_repository=chosen.kind,
            sync_relay_log_info=chosen.sync_period,
            commit_mode=chosen.commit_mode,
            prepared_position=chosen.prepared_position,
            log_bin=chosen.log_bin,
        )
        create_tables(self.target.engine, "")
        if chosen.engine:
            self._move_table(chosen.engine)
        channel = Channel(CHANNEL, config.datadir)
        self.repository = open_relay_log_info(config, channel, lambda: self.target.engine)
        self.repository.flush(self._info(), force=True)
        self.store = open_position_store(config, channel, self.target.engine)
        if chosen.commit_mode == "xa" and self.store.mode is not CommitMode.XA:
            raise RplError(f"not counted: the commit mode here is {self.store.mode}")
        self.store.open()

    def _move_table(self, engine: str) -> None:
        """Change the storage engine of the empty table of RelayLogInfo. `remove` restores the old engine."""

        if not getattr(self.target.engine.dialect, "is_mariadb", False):
            raise RplError(f"not counted: {engine} is an engine of MariaDB")
        with self.target.engine.begin() as connection:
            if ask(connection, written("SELECT COUNT(*) FROM {}", _POSITIONS)).scalar():
                raise RplError(f"not counted: {_POSITIONS} is not empty, so its engine cannot be changed")
            self.engine_before = dialect_of(self.target.kind).engine_of(connection, "slave_relay_log_info")
            ask(connection, written("ALTER TABLE {} ENGINE={}", _POSITIONS, word(engine)))

    def _info(self) -> RelayLogInfo:
        at = 4 + self.number
        info = RelayLogInfo(channel_name=CHANNEL)
        return info.at(RelayLogPosition("relay-bin.000001", at), BinlogPosition("b.000001", at))

    def commit(self, transactions: int) -> None:
        from rplctl.commit.transaction import commit_group

        for _ in range(transactions):
            before = self._info()
            self.number += 1
            if self.store is None:
                self.target.begin(foreign_keys=True)
                self._insert()
                self.target.commit()
            else:
                if self.store.log is not None:
                    self.store.log.stage(_logged_insert(), before)
                commit_group(self.target, self.store, CommitStep(before, self._info()), self._insert)

    def _insert(self) -> None:
        run(self.target.connection, written("INSERT INTO {} VALUES ({})", self.table, self.number))

    def remove(self) -> None:
        from rplctl.commit.marker import remove_marker
        from rplctl.own_tables.owner import disown_channel

        self.target.rollback()
        if self.repository is not None:
            self.repository.remove()
            remove_marker(CHANNEL, self.target.engine)
        if self.store is not None and self.store.log is not None:
            self.store.log.close()
        with self.target.engine.begin() as connection:
            run(connection, written("DROP TABLE {}", self.table))
            disown_channel(connection, CHANNEL)
            if self.engine_before:
                run(connection, written("ALTER TABLE {} ENGINE={}", _POSITIONS, word(self.engine_before)))
        self.target.close()
