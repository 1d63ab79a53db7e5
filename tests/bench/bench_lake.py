"""A lake: 100,000 changes spread evenly over a table, kept as they are, and into a mirror beside delta-rs's bare merge.

CPU seconds of the process and its threads. The mirror's changes are 80 % updates, 10 % deletes, 10 % inserts, into
`RPLCTL_BENCH_ROWS` rows (10 million); both tables are equal afterwards. What a mirror's applier does besides is in
`make bench apply`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from rplctl.event.scan import scan_groups
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.target import open_target
from rplctl.target.base import RowSet, TableChunk
from rplctl.target.delta.columns import row_schema
from rplctl.target.delta.mirror import MirrorTarget
from rplctl.target.delta.tables import DeltaTables
from tests.applier.apply.live_target import catalog_of
from tests.applier.instance import Instance
from tests.bench.measurement import Measurement
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer

ROWS = int(os.environ.get("RPLCTL_BENCH_ROWS", 10_000_000))
FILES = 10
CHANGES = 100_000
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, k INT, c VARCHAR(40))"


def measure() -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _mirror(Path(folder))
    try:
        with MariadbServer() as server, tempfile.TemporaryDirectory() as folder:
            yield from _changes(server, Path(folder))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")


def _cpu(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _mirror(folder: Path) -> Iterator[Measurement]:
    model = catalog_of(TABLE).tables["d", "t"]
    target = open_target(f"delta+file://{folder}/lake?layer=mirror")
    assert isinstance(target, MirrorTarget)
    places = (folder / "bare", folder / "lake/d/t")
    for place in places:
        _load(place, row_schema(model))
    random = np.random.default_rng(7)
    keys = random.choice(ROWS, CHANGES * 9 // 10, replace=False) * 2  # odd keys are free
    updated, deleted = np.split(keys, [CHANGES * 8 // 10])
    added = np.unique(random.integers(0, ROWS, CHANGES // 10)) * 2 + 1
    merged = _cpu(lambda: _merge(DeltaTable(places[0]), updated, deleted, added))
    chunk = TableChunk(database="d", table="t", absent=[], deletes=[(key,) for key in deleted.tolist()],
                       updates=[RowSet((1, 2), [(1, f"new {key}", key) for key in updated.tolist()])],
                       inserts=[RowSet((0, 1, 2), [(key, 1, f"new {key}") for key in added.tolist()])],
                       ordered=[], change_count=CHANGES, foreign_keys_off=False)  # fmt: skip

    def apply() -> None:
        target.begin(foreign_keys=True)
        target.apply_chunks([chunk], {("d", "t"): model})
        staged = target.take_staged()
        target.rollback()
        for table in staged:
            DeltaTables(target.writer).publish(table, "bench", 1)

    mirrored = _cpu(apply)
    assert _digest(places[0]) == _digest(places[1])
    target.close()
    name = f"{CHANGES:,} changes into {ROWS:,} rows"
    yield Measurement(f"{name}, delta-rs merge", merged, "CPU s")
    yield Measurement(f"{name}, mirror", mirrored, "CPU s", f"{mirrored / merged:.2f} of the merge")


def _load(place: Path, schema: pa.Schema) -> None:
    for ids in np.split(np.arange(ROWS) * 2, FILES):
        columns = [pa.array(ids), pa.array((ids % 1000).astype(np.int32)), pa.array(ids).cast(pa.string())]
        write_deltalake(place, pa.Table.from_arrays(columns, schema=schema), mode="append")


def _merge(table: DeltaTable, updated: np.ndarray, deleted: np.ndarray, added: np.ndarray) -> None:
    ids = np.concatenate([updated, deleted, added])
    source = pa.table({
        "id": ids,
        "op": ["u"] * len(updated) + ["d"] * len(deleted) + ["i"] * len(added),
        "k": pa.array(np.ones(len(ids), np.int32)),
        "c": [f"new {key}" for key in ids.tolist()],
    })  # fmt: skip
    merger = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merger = merger.when_matched_delete("s.op = 'd'").when_matched_update({"k": "s.k", "c": "s.c"}, "s.op = 'u'")
    merger.when_not_matched_insert({"id": "s.id", "k": "s.k", "c": "s.c"}).execute()


def _digest(place: Path) -> tuple[int, ...]:
    rows = DeltaTable(place).to_pyarrow_table()
    ids, k = (rows[name].to_numpy() for name in ("id", "k"))
    new = np.char.startswith(rows["c"].to_numpy().astype(str), "new")
    return len(rows), int(ids.sum()), int((ids * k).sum()), int(ids[new].sum())


def _changes(server: MariadbServer, folder: Path) -> Iterator[Measurement]:
    server.sql(f"CREATE DATABASE b; USE b; {TABLE}")
    server.sql(f"USE b; INSERT INTO t SELECT seq, seq, CONCAT('row ', seq) FROM seq_1_to_{CHANGES}")
    server.sql("FLUSH BINARY LOGS; UPDATE b.t SET k = k + 1, c = CONCAT(c, '!')")
    server.sql("FLUSH BINARY LOGS")
    first, second = server.binlog_files[:2]
    for run in ("warm-up", "run"):
        loaded, changed = _groups(first), _groups(second)
        instance = Instance(folder / run, loaded, target=f"delta+file://{folder / run}/lake", log_bin="")
        instance.apply(loaded)
        spent = _cpu(partial(instance.apply, changed))
        instance.applier.close()
        instance.target.close()
    yield Measurement(f"{CHANGES:,} updates into a lake of changes", spent, "CPU s")


def _groups(path: Path) -> RelayGroups:
    data = np.fromfile(path, np.uint8)
    scan = scan_groups(data, 4, BinlogPosition(path.name, 4), len(data))
    start, end = (RelayLogPosition(path.name, at) for at in (4, int(scan.end[-1])))
    description = scan.description_at(int(scan.end[-1]))
    source = BinlogPosition(path.name, 4)
    return RelayGroups(
        path=path,
        log_name=start.log_name,
        data=data,
        scan=scan,
        format_description=description,
        start=start,
        start_source=source,
        end=end,
        end_source=scan.end_position,
    )
