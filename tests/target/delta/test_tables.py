"""Delta tables take each batch once, on the disk, whole and of one definition, whoever else is at work in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rplctl.decode.lake_rows import lake_schema, statement_rows
from rplctl.durable import sync_count
from rplctl.errors import LockBusy, TargetError
from rplctl.schema.model import TableModel
from rplctl.target import open_target
from rplctl.target.delta import tables as delta_tables
from rplctl.target.delta.place import LakePlace
from rplctl.target.delta.tables import DeltaTables, columns_of
from rplctl.target.delta.target import DeltaTarget
from rplctl.target.lake import PendingTable
from tests.applier.apply.live_target import catalog_of

ROW = pa.struct([pa.field("id", pa.int32())])
SCHEMA = pa.schema([pa.field("op", pa.string(), nullable=False), pa.field("before", ROW), pa.field("after", ROW)])
APP = "rplctl/c"
LOG_KEPT = "delta.logRetentionDuration"
MODEL: Any = SimpleNamespace(database="d", name="t")


@pytest.fixture
def place(tmp_path: Path) -> LakePlace:
    return LakePlace(root=str(tmp_path / "lake"), state=str(tmp_path / "state.db"))


def pending(place: LakePlace, number: int) -> PendingTable:
    """A batch of one insert, whose file is written."""
    rows = pa.Table.from_pylist([{"op": "insert", "before": None, "after": {"id": number}}], schema=SCHEMA)
    file = place.write(MODEL, "d/t", rows)
    return PendingTable(folder="d/t", columns=columns_of(SCHEMA), files=((file.path, file.size, file.stats),))


def ids(place: LakePlace) -> list[int]:
    return sorted(row["after"]["id"] for row in DeltaTable(place.uri("d/t")).to_pyarrow_table().to_pylist())


def test_a_commit_is_on_the_disk_before_the_position_may_move(place: LakePlace) -> None:
    """delta-rs syncs nothing; also where the process before us ended between its commit and our sync."""
    tables, first, second = DeltaTables(place), pending(place, 1), pending(place, 2)
    for table, number in ((first, 1), (second, 2), (second, 2)):
        before = sync_count["lake commit"]
        tables.publish(table, APP, number)
        assert sync_count["lake commit"] > before
    assert ids(place) == [1, 2]


def test_a_batch_of_the_same_number_with_other_files_is_somebody_elses(place: LakePlace) -> None:
    tables = DeltaTables(place)
    tables.publish(pending(place, 1), APP, 1)
    ours, theirs = pending(place, 100), pending(place, 200)
    tables.publish(theirs, APP, 2)
    with pytest.raises(LockBusy, match="other files"):
        tables.publish(ours, APP, 2)
    assert ids(place) == [1, 200]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_a_file_that_is_gone_or_cut_short_is_never_named_by_a_table(
    place: LakePlace, spoil: Callable[[Path], object]
) -> None:
    tables = DeltaTables(place)
    tables.publish(pending(place, 1), APP, 1)
    lost = pending(place, 2)
    spoil(Path(place.root, "d/t", lost.files[0][0]))
    with pytest.raises(TargetError):
        tables.publish(lost, APP, 2)
    assert tables.version("d/t", APP) == 1 and ids(place) == [1]


def test_optimize_at_the_same_moment_stops_nothing_and_another_writer_is_kept_out(
    place: LakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, opened = DeltaTables(place), DeltaTables.open_table
    for number in (1, 2):
        tables.publish(pending(place, number), APP, number)

    def while_doing(work: Callable[[], object]) -> None:
        def open_first(self: DeltaTables, folder: str) -> DeltaTable | None:
            found = opened(self, folder)
            monkeypatch.setattr(DeltaTables, "open_table", opened)
            work()
            return found

        monkeypatch.setattr(DeltaTables, "open_table", open_first)

    while_doing(lambda: DeltaTable(place.uri("d/t")).optimize.compact())
    tables.publish(pending(place, 3), APP, 3)
    assert ids(place) == [1, 2, 3]
    while_doing(lambda: DeltaTables(place).publish(pending(place, 200), APP, 4))
    with pytest.raises(LockBusy):
        tables.publish(pending(place, 100), APP, 4)
    assert ids(place) == [1, 2, 3, 200]


class Changes:
    """Batches of one target, as the applier stages and commits them."""

    def __init__(self, folder: Path) -> None:
        opened = open_target(f"delta+file://{folder}")
        assert isinstance(opened, DeltaTarget)
        self.target, self._number = opened, 0

    def ddl(self, model: TableModel) -> str:
        place = {"log_name": "b.1", "position": self._number, "gtid": "", "end": self._number, "time": 0, "number": 0}
        return self._stage(model, statement_rows(model, "ddl", "ALTER", **place))  # type: ignore[arg-type]

    def insert(self, model: TableModel, row: dict[str, Any]) -> str:
        fields = {"op": "insert", "log": "b.1", "pos": self._number, "row_number": 0, "gtid": "", "end_log": "b.1"}
        fields |= {"end_pos": 1, "ts": 0, "before": None, "after": row, "is_partial": False, "statement": None}
        return self._stage(model, pa.Table.from_pylist([fields], schema=lake_schema(model)))

    def _stage(self, model: TableModel, rows: object) -> str:
        schema = lake_schema(model)
        folder = self.target.folder_of(model, schema)
        self.target.stage(model, schema, [self.target.writer.write(model, folder, rows)])
        return folder

    def commit(self) -> None:
        self._number += 1
        for table in self.target.take_staged():
            DeltaTables(self.target.writer).publish(table, APP, self._number)


def table(columns: str) -> TableModel:
    return catalog_of(f"CREATE TABLE t ({columns})").tables["d", "t"]


NUMBER, TEXT = "id INT PRIMARY KEY, v INT", "id INT PRIMARY KEY, v VARCHAR(9)"


@pytest.mark.parametrize(("first", "between", "value"), [(NUMBER, TEXT, 7), (TEXT, NUMBER, "abc")])
def test_a_definition_that_comes_back_never_puts_its_type_into_a_table_of_another(
    tmp_path: Path, first: str, between: str, value: object
) -> None:
    changes = Changes(tmp_path / "lake")
    changes.target.folder_of(table(first), lake_schema(table(first)))  # asked, and nothing of it written
    changes.ddl(table(between))
    changes.commit()
    changes.ddl(table(first))
    changes.commit()
    folder = changes.insert(table(first), {"id": 1, "v": value})
    changes.commit()
    rows = DeltaTable(str(tmp_path / "lake" / folder)).to_pyarrow_table().to_pylist()
    assert {"id": 1, "v": value} in [row["after"] for row in rows]
    for path in (tmp_path / "lake/d").iterdir():
        DeltaTable(str(path)).to_pyarrow_table()


def test_two_definitions_of_one_name_in_one_batch_are_two_tables(tmp_path: Path) -> None:
    changes = Changes(tmp_path / "lake")
    assert changes.ddl(table(NUMBER)) != changes.ddl(table(TEXT))
    changes.commit()
    assert sorted(path.name for path in (tmp_path / "lake/d").iterdir()) == ["t", "t~2"]


def test_old_claims_go_and_the_last_one_stays(place: LakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    soon = {LOG_KEPT: "interval 0 seconds", "delta.checkpointInterval": "10"}  # of itself each 100 commits
    monkeypatch.setattr(delta_tables, "CLAIMS_KEPT", {**delta_tables.CLAIMS_KEPT, **soon})
    monkeypatch.setattr(delta_tables, "COMMITS_BETWEEN_CLEANUPS", 10)
    tables = DeltaTables(place)
    for batch in range(1, 34):
        tables.claim(APP, batch, 7)
    (log,) = Path(place.root).glob("_rplctl/batches*/_delta_log")
    assert len([*log.glob("*.json")]) < 25
    assert DeltaTables(place).claimed(APP) == 33
    tables.claim(APP, 33, 7)  # again, as a start does
    with pytest.raises(LockBusy):
        tables.claim(APP, 33, 8)
    tables.claim(APP, 34, 8)


@pytest.mark.parametrize("wanted", ["true", "false"])
def test_old_commits_go_as_the_table_says_and_no_sooner_than_their_checkpoint_is_on_the_disk(
    place: LakePlace, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    """delta-rs by itself would delete them in the call that writes the checkpoint."""
    monkeypatch.setattr(delta_tables, "COMMITS_BETWEEN_CLEANUPS", 10)
    tables, log, sync_log = DeltaTables(place), Path(place.uri("d/t")) / "_delta_log", LakePlace.sync_log
    tables.publish(pending(place, 1), APP, 1)
    properties = {LOG_KEPT: "interval 0 seconds", "delta.checkpointInterval": "10", delta_tables.CLEANUP: wanted}
    DeltaTable(place.uri("d/t")).alter.set_table_properties(properties)
    synced = [set[str]()]

    def seen(self: LakePlace, folder: str, behind: int) -> None:
        names = {entry.name for entry in log.iterdir()}
        if gone := synced[-1] - names:  # between the last sync and this one
            assert max(gone) < max(name for name in synced[-1] if "checkpoint" in name and name[0].isdigit())
        sync_log(self, folder, behind)
        synced.append(names)

    monkeypatch.setattr(LakePlace, "sync_log", seen)
    for number in range(2, 36):
        tables.publish(pending(place, number), APP, number)
    commits = len([*log.glob("*.json")])
    assert commits < 20 if wanted == "true" else commits == 36
    assert ids(place) == [*range(1, 36)]
