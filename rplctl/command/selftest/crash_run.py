"""Run the receiver, the applier and commands of a scratch instance in child processes that `crash-test` may kill.

Each step is a fork of this process, which has loaded all modules and has no connection and no thread. The child itself
decodes rows, as Spark's tasks do (in_process.py). Only the step in which a task of Spark is killed starts Spark.
Invariant: a child reports through a pipe, so its reports before a kill are known. A position that it has reported as
committed must be committed afterwards.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from rplctl import failpoint
from rplctl.applied_log.files import binary_log_files, existing_names
from rplctl.applier.feed.plan import plan_batches
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.interrupt import Interrupter
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.session import OwnSpark
from rplctl.attempts import attempts
from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import no_engine
from rplctl.commit.xid import instance_name, xid_prefix
from rplctl.config import Config
from rplctl.data_source.options import QueryOptions
from rplctl.data_source.walk import LogWalk as LogWalk
from rplctl.decode.changes import OPS, changes_of
from rplctl.demo.crash_log import DATABASE, FOLDER, TABLES, State, digest_of, states
from rplctl.durable import private_folder
from rplctl.errors import LockBusy, RplError
from rplctl.event.header import CHECKSUM_LENGTH
from rplctl.event.scan import GroupKind, scan_events, scan_groups
from rplctl.event.types import LOG_EVENTS, EventType
from rplctl.info import RelayLogInfo
from rplctl.own_process import ended_how
from rplctl.position import BinlogPosition
from rplctl.receiver.receiver import Receiver
from rplctl.relay_log.reader import RelayLogReader
from rplctl.repository import open_relay_log_info
from rplctl.sql_run import ask
from rplctl.sql_text import word, written
from rplctl.status import read_status
from rplctl.target import dialect_of, open_target, two_phase_verbs

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

    from rplctl.target.base import Target
    from rplctl.target.lake import LakeTables

CHANNEL: Final = "crash-test"
_STDERR: Final = 2
PATIENCE_S: Final = 120.0  # seconds for a receiver to read a folder, or for a target to release a dead child's locks
INTERRUPTIONS: Final = (signal.SIGTERM, signal.SIGINT)
_BETWEEN: Final = [*LOG_EVENTS, EventType.IGNORABLE]  # types of the events between transactions; each log has its own
Say = Callable[[Any], None]
Work = Callable[[Say], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOutcome:
    """The way in which a child process ended, and the values that it has reported by `say`."""

    killed: bool
    said: tuple[Any, ...]
    error: str = ""
    errno: int = 0


def in_child(work: Work, crash_points: str = "") -> ChildOutcome:
    """Execute `work` in a child process, and return how it ended. `crash_points` are active in the child."""
    reading, writing = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)  # a child must not run its parent's handlers
    pid = os.fork()
    if not pid:
        os.close(reading)
        _be_child(work, crash_points, writing)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            said = [json.loads(line) for line in file]
        _, status = os.waitpid(pid, 0)
    except BaseException:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        raise
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    code = os.waitstatus_to_exitcode(status)  # negative: a signal
    if killed or code == 0:
        return ChildOutcome(killed=killed, said=tuple(said))
    last = said.pop() if said and isinstance(said[-1], dict) else {"error": f"the child {ended_how(code)}, unasked"}
    return ChildOutcome(killed=False, said=tuple(said), error=str(last["error"]), errno=int(last.get("errno", 0)))


def _be_child(work: Work, crash_points: str, writing: int) -> None:
    code = 1

    def say(value: Any) -> None:
        os.write(writing, json.dumps(value).encode() + b"\n")

    try:
        for number in INTERRUPTIONS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTIONS)
        logging.disable()
        for name in [name for name in os.environ if name.startswith("RPLCTL_")]:
            del os.environ[name]  # no option of the operator's own instance may reach the scratch one
        os.environ[failpoint.ENVIRONMENT] = crash_points
        failpoint.rearm()
        work(say)
        code = 0
    except RplError as error:
        say({"error": error.message, "errno": error.errno})
    except BaseException as error:
        say({"error": f"{type(error).__name__}: {error}"})
        raise
    finally:
        os._exit(code)


def load_what_is_loaded_by(work: Work) -> None:
    """Do the work in a child, and then import in this process the modules that the child has imported.

    Later children are forks of this process, so they need not import these modules again.
    """

    def tell(say: Say) -> None:
        work(say)
        say(list(sys.modules))

    done = in_child(tell)
    if done.error:
        raise RplError(done.error, errno=done.errno)
    for name in done.said[-1]:
        with contextlib.suppress(ImportError):  # some modules are created at run time, and have no file
            import_module(name)


def channel_of(config: Config) -> Channel:
    return Channel(CHANNEL, config.datadir)


def configure(config: Config, _say: Say) -> None:
    """Run CHANGE MASTER TO for the recorded log, and store an applier position before its first event.

    Raises RplError if the command fails.
    """
    change_master(config, CHANNEL, MasterChanges(master_binlog_dir=os.fspath(FOLDER)))
    file = replace(config, relay_log_info_repository="FILE")
    open_relay_log_info(file, channel_of(config), no_engine).flush(RelayLogInfo(channel_name=CHANNEL), force=True)


def receive(config: Config, _say: Say) -> None:
    """Run the receiver until the relay log contains the whole recorded log. Raises RplError if the receiver fails."""
    receiver = Receiver(config, channel_of(config))
    last, path = recorded()[-1:], channel_of(config).status_path("receiver")
    path.unlink(missing_ok=True)
    deadline = time.monotonic() + PATIENCE_S

    def stop_at_the_end() -> None:
        while time.monotonic() < deadline:
            with contextlib.suppress(RplError, OSError):  # the receiver is writing or repairing the relay log
                if read_status(path).connected and received(config)[-1:] == last:
                    break
            time.sleep(0.01)
        receiver.stop()

    threading.Thread(target=stop_at_the_end, daemon=True).start()
    receiver.run()


def apply_by_spark(config: Config, end: State, say: Say) -> None:
    """Run the applier as `apply` does, but with tasks of a real Spark. Report how many attempts to decode a range have
    failed.

    Raises RplError if the applier fails.
    """
    channel = channel_of(config)
    with (private_folder(channel.run_folder) / "applier.log").open("ab") as log:  # for Spark's errors about the task
        os.dup2(log.fileno(), _STDERR)
    spark = OwnSpark(config, channel)
    try:
        spark.begin()
        pipeline = Pipeline(spark.open, open_pool=spark.pool)
        pipeline.begin()
        apply(config, end, say, pipeline=pipeline)
        say(["failures", pipeline.failed_attempts])
    finally:
        spark.end()


def apply(config: Config, end: State, say: Say, *, per_commit: int = 0, pipeline: Pipeline | None = None) -> None:
    """Run the applier from its stored position to `end`.

    Report the start position, each committed position and the end position. The first and the last report also have the
    digest of the target's rows. `per_commit` is the maximum number of transactions in a batch; 0 means no limit. Raises
    RplError if the applier fails.
    """
    from rplctl.applier.apply.batch import BatchApplier
    from rplctl.commit.position_store import open_position_store
    from rplctl.commit.resolve import terminate_predecessor
    from rplctl.own_tables.tables import create_own_tables

    channel = channel_of(config)
    with contextlib.closing(open_target(config.target_url)) as target:
        terminate_predecessor(channel, target.engine)
        _fence(target)
        create_own_tables(target.engine)
        store = open_position_store(config, channel, target.engine)
        parts = (target, store, pipeline or InProcessPipeline(), Interrupter(threading.Event()))
        work = BatchApplier.open(config, channel, *parts)
        say(["start", str(work.info.exec_position), target_digest(target)])
        try:
            feed = RelayFeed(channel, 0)
            while groups := feed.next(work.info, config.max_batch_bytes):
                last = BinlogPosition(end.log_name, end.log_pos)
                count = sum(not last.is_before(groups.scan.source_position(n)) for n in range(len(groups.scan)))
                grouped = work.executes_statements
                for batch in plan_batches(groups, count, has_rollbacks=grouped, per_commit=lambda: per_commit):
                    work.apply(batch)
                    say(["commit", str(work.info.exec_position)])
                if count < len(groups.scan):
                    break
        finally:
            work.close()
        store.close(work.info)
        left = leftovers(config, target.engine)
        say(["end", str(work.info.exec_position), target_digest(target), left])


def _fence(target: Target) -> None:
    """Acquire the channel's lock in the target. Wait for it if the server still holds it for a killed child."""
    for _ in attempts(PATIENCE_S, 0.05):
        try:
            return target.fence(CHANNEL)
        except LockBusy as error:
            busy = error
    raise busy


def target_digest(target: Target) -> str:
    """Return the digest of the rows in the tables of the crash test. For a lake, it is the digest of all changes of
    them.
    """
    from sqlalchemy import inspect

    engine, dialect = target.engine, dialect_of(target.kind)
    if dialect.commits_per_table:
        tables = dialect.lake_tables(engine)
        places = {name: _places(tables, f"{DATABASE}/{name}") for name in TABLES}
        return digest_of({name: [place for place in found if place[0] in OPS] for name, found in places.items()})
    is_one_file = dialect_of(engine.dialect.name).is_one_file
    rows = {}
    with engine.connect() as connection:
        for name in TABLES:
            table, schema = (f"{DATABASE}__{name}", None) if is_one_file else (name, DATABASE)
            if inspect(connection).has_table(table, schema):
                where = word(table) if is_one_file else written("{}.{}", word(DATABASE), word(name))
                rows[name] = [tuple(row) for row in ask(connection, written("SELECT * FROM {}", where))]
    return digest_of(rows)


def _places(tables: LakeTables, folder: str) -> list[tuple[str, str, int, int]]:
    """Return (operation, log, position, number of the row in its event) for each change in the lake's table `folder`.

    After a change of its definition, a table continues in the folder `FOLDER~2`, then in `FOLDER~3` and so on. The
    changes in these folders are included.
    """
    found = tables.places(folder)
    for number in itertools.count(2):
        if not (more := tables.places(f"{folder}~{number}")):
            break
        found += more
    return found


def lake_states() -> list[State]:
    """Return the states of the recorded log for a lake: their digests are those of the changes in the log, not of
    rows.
    """
    rows: dict[str, list[tuple[str, str, int, int]]] = {name: [] for name in TABLES}
    ends: dict[tuple[str, str, int, int], BinlogPosition] = {}
    for piece in LogWalk(QueryOptions.parse({"path": os.fspath(FOLDER), "statements": "skip"})).to():
        arrived = changes_of(piece)
        for part in arrived.tables:
            numbers = zip(part.rows.images.ops, part.position, part.number, part.transaction, strict=True)
            for op, position, number, transaction in numbers:
                place = OPS[int(op)], piece.log_name, int(position), int(number)
                rows.setdefault(part.rows.model.name, []).append(place)
                ends[place] = BinlogPosition(
                    arrived.transactions.end_log, int(arrived.transactions.end[int(transaction)])
                )
    found = []
    for state in states():
        at = BinlogPosition(state.log_name, state.log_pos)
        had = {name: [place for place in rows[name] if not at.is_before(ends[place])] for name in TABLES}
        found.append(replace(state, digest=digest_of(had)))
    return found


def leftovers(config: Config, engine: Engine) -> list[str]:
    """Return the names of prepared transactions and temporary files. After the channel has continued, there must be
    none.
    """
    left = [path.name for path in config.datadir.rglob(".*.tmp*")]
    verbs = two_phase_verbs(engine.dialect.name)
    if verbs is not None and instance_name(config.datadir):
        left += verbs.prepared_xids(engine, xid_prefix(channel_of(config)))
    return left


def received(config: Config) -> list[tuple[str, str]]:
    """Return the position and the digest of every transaction in the relay log, which is read as the applier reads
    it.
    """
    reader = RelayLogReader(channel_of(config))
    found: list[tuple[str, str]] = []
    if reader.open(RelayLogInfo()):
        while groups := reader.groups(1 << 20):
            whole = groups.data[: groups.end.log_pos]  # the receiver may cut off the bytes after it at any moment
            found += transactions_of(groups.scan, whole.tobytes())
    return found


def recorded() -> list[tuple[str, str]]:
    """Return the position and the digest of every transaction in the source's own logs."""
    import numpy as np

    found: list[tuple[str, str]] = []
    for path in sorted(FOLDER.glob("binlog.0*")):
        data = np.fromfile(path, np.uint8)
        found += transactions_of(scan_groups(data, 4, BinlogPosition(path.name, 4), 1 << 20), data.tobytes())
    return found


def logged(config: Config) -> list[str]:
    """Return the digest of each event in the binary log of applied transactions.

    The digests do not include the fields that may differ in a copy of an event.
    """
    files = binary_log_files(config, channel_of(config))
    if files is None:
        return []
    return [digest for _, digest in _events(files.datadir / name for name in existing_names(files))]


def recorded_events(end: State) -> list[str]:
    """Return the digests of the events in the source's own logs up to `end`, to compare them with `logged`."""
    last = BinlogPosition(end.log_name, end.log_pos)
    return [digest for at, digest in _events(sorted(FOLDER.glob("binlog.0*"))) if not last.is_before(at)]


def _events(paths: Iterable[Path]) -> Iterator[tuple[BinlogPosition, str]]:
    """Yield the end position and the digest of every event that belongs to a transaction.

    The digest excludes the position in the event and its checksum.
    """
    import numpy as np

    for path in paths:
        data = np.fromfile(path, np.uint8)
        index = scan_events(data, 4)
        for number in np.flatnonzero(~np.isin(index.type_codes, _BETWEEN)):
            end = int(index.offsets[number + 1])
            event = data[index.offsets[number] : end].tobytes()
            without_place = event[:13] + event[17:-CHECKSUM_LENGTH]
            yield BinlogPosition(path.name, end), hashlib.sha256(without_place).hexdigest()[:16]


def transactions_of(scan: Any, data: bytes) -> list[tuple[str, str]]:
    return [
        (str(scan.source_position(n)), hashlib.sha256(data[int(scan.start[n]) : int(scan.end[n])]).hexdigest()[:16])
        for n in range(len(scan))
        if scan.kind[n] != GroupKind.CONTROL
    ]
