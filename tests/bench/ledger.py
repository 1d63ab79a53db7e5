"""`python -m tests.bench.ledger DATADIR < WANTED`: where the time of a drain goes, and what its rows cost bare.

WANTED is JSON: the `ends` (FILE:POS) of the phases, the `server` (process number) of the target, and the `bare` URLs of
two servers like it. Prints one JSON list, an account for each phase.

What the applier's thread does is counted by what it stands in: each second belongs to one part, so the parts are the
whole. Spark's tasks run beside it; they are pure, so they are run once more behind the clock, here, one by one, which
tells their CPU. The bare load is the very rows that the target was told of, and the statements of the log, in their
order, by one connection, without a position: once by MariaDB's bulk execution, as they went, once as text by LOAD DATA.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import rplctl.applier.loop
import rplctl.target.mysql.bulk
from rplctl.applier.apply.bulk import BulkApplier, pieces_to_apply
from rplctl.applier.feed.prefetch import Prefetch
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.loop import Loop
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.applier.spark.split_task import Split, bytes_of, chunks_of, encode_chunks, pieces_of, run_split
from rplctl.commit.position_store import TablePositionStore
from rplctl.decode.event_filter import filtered
from rplctl.decode.net_changes import net_chunks
from rplctl.decode.row_stream import read_run
from rplctl.own_tables.tables import create_own_tables
from rplctl.schema.plan import Catalog
from rplctl.target import open_target
from rplctl.target.base import SourceStatement, TableChunk
from rplctl.target.mysql.target import MysqlTarget
from tests.bench.copied import cpu_of
from tests.bench.drain import applying

TASKS = "wait for tasks"
SCAN, PLAN, HAND_OVER, SERVER, DDL, POSITION, COMMIT, REST = (
    *("scan", "plan", "hand-over", "server: rows", "server: statements of the log", "position", "commit", "rest"),
)
PARTS = (SCAN, PLAN, TASKS, HAND_OVER, SERVER, DDL, POSITION, COMMIT, REST)


@dataclass
class Clock:
    """Seconds, CPU of this thread and CPU of the server, for each part: what a part calls does not count as its own."""

    server: int
    spent: dict[str, list[float]] = field(default_factory=dict)
    _inside: list[str] = field(default_factory=lambda: [REST])
    _since: tuple[float, ...] = ()
    _is_running: bool = False

    def begin(self) -> None:
        self._is_running = True
        self.spent = {part: [0.0, 0.0, 0.0] for part in PARTS}
        self._since = self._now()

    def end(self) -> None:
        self._turn()
        self._is_running = False

    def of(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """`work`, counted as `part` when the applier's thread does it, and not for TASKS or DDL."""

        def counted(*args: Any, **words: Any) -> Any:
            if threading.current_thread() is not threading.main_thread() or self._inside[-1] in (TASKS, DDL):
                return work(*args, **words)
            self._turn(part)
            try:
                return work(*args, **words)
            finally:
                self._turn()

        return counted

    def each(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same of what `work` yields."""

        def counted(*args: Any, **words: Any) -> Iterator[Any]:
            following = self.of(part, work(*args, **words).__next__)
            while True:
                try:
                    found = following()
                except StopIteration:
                    return
                yield found

        return counted

    def _turn(self, part: str = "") -> None:
        now = self._now()
        if self._is_running:
            spent = self.spent[self._inside[-1]]
            spent[:] = [had + to - since for had, to, since in zip(spent, now, self._since, strict=True)]
        self._since = now
        if part:
            self._inside.append(part)
        elif len(self._inside) > 1:
            self._inside.pop()

    def _now(self) -> tuple[float, ...]:
        return time.perf_counter(), time.thread_time(), _cpu_of_process(self.server)


def _cpu_of_process(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Rows:
    """What one job came to, as it was handed over."""

    splits: Sequence[Split]
    catalog: Catalog
    chunks: list[TableChunk]
    foreign_keys: bool


@dataclass
class Recorder:
    """What the target was told of, in its order; and the jobs that decoded it, with their seconds."""

    told: list[Rows | SourceStatement] = field(default_factory=list)
    jobs: list[tuple[float, Sequence[Split], Catalog]] = field(default_factory=list)
    _of_chunks: dict[int, tuple[Sequence[Split], Catalog, object]] = field(default_factory=dict)
    _foreign_keys: bool = True

    def watch(self, clock: Clock) -> None:
        """Puts the clock, and this, between the parts of the applier."""
        loop: Any = rplctl.applier.loop
        bulk: Any = rplctl.target.mysql.bulk
        decode, follow = Pipeline.decode, Loop.follow
        apply_chunks, begin, run_statement = BulkApplier._apply_chunks, MysqlTarget.begin, MysqlTarget.run_statement

        def decoded(pipeline: Pipeline, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
            began = time.perf_counter()
            chunks = decode(pipeline, splits, catalog)
            self.jobs.append((time.perf_counter() - began, splits, catalog))
            self._of_chunks[id(chunks)] = (splits, catalog, chunks)
            return chunks

        def handed_over(applier: BulkApplier, chunks: list[TableChunk]) -> None:
            splits, catalog, _ = self._of_chunks[id(chunks)]
            self.told.append(Rows(splits, applier._tables.catalog, chunks, self._foreign_keys))
            apply_chunks(applier, chunks)

        def begun(target: MysqlTarget, *, foreign_keys: bool, **words: Any) -> None:
            self._foreign_keys = foreign_keys
            begin(target, foreign_keys=foreign_keys, **words)

        def looped(*args: Any) -> None:
            clock.begin()
            try:
                follow(*args)
            finally:
                clock.end()

        def executed(target: MysqlTarget, statement: SourceStatement) -> Any:
            self.told.append(statement)
            return run_statement(target, statement)

        for owner, name, watched in (
            (Loop, "follow", looped),
            (Pipeline, "decode", decoded),
            (MysqlTarget, "begin", begun),
            (MysqlTarget, "run_statement", clock.of(DDL, executed)),
            (BulkApplier, "_apply_chunks", clock.of(HAND_OVER, handed_over)),
            (BulkApplier, "_decoded", clock.each(TASKS, BulkApplier._decoded)),
            (RelayFeed, "next", clock.of(SCAN, RelayFeed.next)),
            (Prefetch, "take", clock.of(SCAN, Prefetch.take)),
            (loop, "plan_batches", clock.each(PLAN, loop.plan_batches)),
            (bulk, "execute_length_prefixed", clock.of(SERVER, bulk.execute_length_prefixed)),
            (bulk, "load_local", clock.of(SERVER, bulk.load_local)),
            (MysqlTarget, "_send", clock.of(SERVER, MysqlTarget._send)),
            (MysqlTarget, "commit", clock.of(COMMIT, MysqlTarget.commit)),
            (TablePositionStore, "advance", clock.of(POSITION, TablePositionStore.advance)),
        ):
            setattr(owner, name, watched)

    def taken(self) -> tuple[list[Rows | SourceStatement], list[tuple[float, Sequence[Split], Catalog]]]:
        told, jobs = self.told, self.jobs
        self.told, self.jobs, self._of_chunks = [], [], {}
        return told, jobs


def tasks_again(jobs: Sequence[tuple[float, Sequence[Split], Catalog]]) -> dict[str, float]:
    """CPU seconds of decoding and of encoding; seconds that the jobs took besides their longest task."""
    decode, encode, start = 0.0, 0.0, 0.0
    for seconds, splits, catalog in jobs:
        longest = 0.0
        for split in splits:
            began = time.thread_time()
            data = bytes_of(split)
            assert data is not None
            run = read_run(data, split.start, split.end, split.description, split.table_maps)
            run = filtered(run, split.rules)
            kind, most = split.target_kind, split.bulk_rows
            chunks = net_chunks(
                run, catalog, kind, most, length_prefixed=split.length_prefixed, in_order=split.in_order
            )
            decoded = time.thread_time()
            for _ in pieces_of(encode_chunks(chunks)):
                pass
            ended = time.thread_time()
            decode, encode, longest = decode + decoded - began, encode + ended - decoded, max(longest, ended - began)
        start += max(seconds - longest, 0)
    return {"decode": decode, "encode": encode, "job start": start, "jobs": len(jobs)}


def bare_load(
    url: str, told: Sequence[Rows | SourceStatement], server: int, *, length_prefixed: bool
) -> tuple[float, float]:
    """Seconds, and CPU of the server and of this process, to do to a server what `told` did to the target."""
    work: list[Rows | SourceStatement] = []
    for event in told:
        if isinstance(event, Rows) and not length_prefixed:
            plain = [run_split(replace(split, length_prefixed=False), event.catalog) for split in event.splits]
            event = replace(event, chunks=[chunk for result in plain for chunk in chunks_of(result)])
        work.append(event)
    target = open_target(url)
    create_own_tables(target.engine)
    assert isinstance(target, MysqlTarget)
    before, began = cpu_of([os.getpid(), server]), time.perf_counter()
    for is_rows, events in itertools.groupby(work, lambda event: isinstance(event, Rows)):
        for number, event in enumerate(events):
            if isinstance(event, SourceStatement):
                target.begin(foreign_keys=True)
                target.run_statement(event)
                target.commit()
            else:
                if not number:
                    target.begin(foreign_keys=event.foreign_keys)
                for piece in pieces_to_apply(event.chunks):
                    target.apply_chunks(piece, event.catalog.tables)
        if is_rows:
            target.commit()
    seconds, cpu = time.perf_counter() - began, cpu_of([os.getpid(), server]) - before
    target.close()
    return seconds, cpu


def main(folder: str) -> None:
    wanted = json.load(sys.stdin)
    clock, recorder = Clock(wanted["server"]), Recorder()
    plain_apply = BulkApplier._apply_chunks
    accounts = []
    with applying(Path(folder)) as apply:
        recorder.watch(clock)
        for end in wanted["ends"]:
            before = cpu_of([os.getpid(), wanted["server"]])
            seconds = apply(end)
            cpu = cpu_of([os.getpid(), wanted["server"]]) - before
            parts = clock.spent
            told, jobs = recorder.taken()
            watched, BulkApplier._apply_chunks = BulkApplier._apply_chunks, plain_apply  # type: ignore[method-assign]
            (url, pid), (text_url, text_pid) = wanted["bare"]
            account = {"seconds": seconds, "cpu": cpu, "parts": parts, "tasks": tasks_again(jobs)}
            account["bare"] = {
                "bulk execution": bare_load(url, told, pid, length_prefixed=True),
                "LOAD DATA": bare_load(text_url, told, text_pid, length_prefixed=False),
            }
            BulkApplier._apply_chunks = watched  # type: ignore[method-assign]
            recorder.taken()
            accounts.append(account)
    print(json.dumps(accounts), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
