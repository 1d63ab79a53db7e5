"""A batch of plain Parquet files is in its table whole, once and on the disk, wherever it was cut off before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rplctl.durable import sync_folder
from rplctl.errors import LockBusy, TargetError
from rplctl.target.lake import PendingTable
from rplctl.target.parquet.place import ParquetPlace
from rplctl.target.parquet.tables import ParquetTables

SCHEMA = pa.schema([pa.field("op", pa.string(), nullable=False), pa.field("id", pa.int32())])
APP = "rplctl/c"
MODEL: Any = SimpleNamespace(database="d", name="t")


@pytest.fixture
def place(tmp_path: Path) -> ParquetPlace:
    return ParquetPlace(root=str(tmp_path / "lake"), state=str(tmp_path / "state.db"))


def pending(place: ParquetPlace, *numbers: int) -> PendingTable:
    """A batch of inserts, each in a written file of its own."""
    rows = [pa.Table.from_pylist([{"op": "insert", "id": number}], schema=SCHEMA) for number in numbers]
    files = [place.write(MODEL, "d/t", part) for part in rows]
    columns = ParquetTables(place).columns_of(SCHEMA)
    return PendingTable(
        folder="d/t", columns=columns, files=tuple((file.path, file.size, file.stats) for file in files)
    )


def ids(place: ParquetPlace) -> list[int]:
    folder = Path(place.uri("d/t"))
    return sorted(pq.read_table(folder)["id"].to_pylist()) if folder.exists() and any(folder.iterdir()) else []


class Cut(BaseException):
    """The process ends here."""


def cut_at(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of the file system and every sync is a step; the process ends before the one of this number."""
    steps = count()

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **named: Any) -> Any:
            if next(steps) == number:
                raise Cut
            return work(*given, **named)

        return step

    monkeypatch.setattr(Path, "mkdir", counted(Path.mkdir))
    monkeypatch.setattr(os, "rename", counted(os.rename))
    monkeypatch.setattr("rplctl.target.parquet.tables.sync_folder", counted(sync_folder))


def test_a_batch_cut_off_before_each_step_is_seen_whole_or_not_and_is_there_once_in_the_end(
    place: ParquetPlace,
) -> None:
    tables, published = ParquetTables(place), set()
    for batch in count(1):
        was, new = ids(place), [10 * batch, 10 * batch + 1]
        table = pending(place, *new)
        with pytest.MonkeyPatch.context() as patch:
            cut_at(batch - 1, patch)
            try:
                tables.publish(table, APP, batch)
            except Cut:
                is_done = False
            else:
                is_done = True
        assert ids(place) in (was, was + new)
        published.add(ids(place) == was + new)
        tables.publish(table, APP, batch)
        assert ids(place) == was + new
        assert tables.version("d/t", APP) == batch
        if is_done:
            break
    assert published == {True, False}
    assert list(place.written("d/t", "").iterdir()) == []


def test_of_two_writers_of_one_batch_the_second_is_kept_out(
    place: ParquetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it looks, and between its look and its rename."""
    tables = ParquetTables(place)
    tables.publish(pending(place, 1), APP, 1)
    with pytest.raises(LockBusy, match="has unexpected files"):
        tables.publish(pending(place, 2), APP, 1)
    rename, theirs, ours = os.rename, pending(place, 3), pending(place, 4)

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", rename)
        ParquetTables(place).publish(theirs, APP, 2)
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises(LockBusy, match="has unexpected files"):
        tables.publish(ours, APP, 2)
    assert ids(place) == [1, 3]


def test_a_strangers_batch_just_before_our_rename_is_found_with_its_next_and_at_the_next_start(
    place: ParquetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came behind our look at the folder's time, which our own rename then changed."""
    tables, stranger, rename = ParquetTables(place), ParquetTables(place), os.rename
    tables.publish(pending(place, 1), APP, 1)
    theirs, ours = pending(place, 7), pending(place, 2)

    def late(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "rename", rename)
        stranger.publish(theirs, APP, 7)
        rename(source, target)

    assert tables.version("d/t", APP) == 1
    monkeypatch.setattr(os, "rename", late)
    tables.publish(ours, APP, 2)
    assert (tables.version("d/t", APP), ParquetTables(place).version("d/t", APP)) == (2, 7)
    os.utime(place.uri("d/t"), ns=(1, 1))  # a clock is too coarse to tell a rename from the one just before
    stranger.publish(pending(place, 8), APP, 8)
    assert tables.version("d/t", APP) == 8
    assert ids(place) == [1, 2, 7, 8]


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_a_file_that_is_gone_or_cut_short_is_never_published(
    place: ParquetPlace, spoil: Callable[[Path], object]
) -> None:
    tables, table = ParquetTables(place), pending(place, 1, 2)
    spoil(place.written("d/t", table.files[1][0]))
    with pytest.raises(TargetError):
        tables.publish(table, APP, 1)
    assert (tables.version("d/t", APP), ids(place)) == (0, [])


def test_channels_count_their_batches_apart(place: ParquetPlace) -> None:
    tables = ParquetTables(place)
    for number, app in enumerate(("rplctl/", "rplctl/c", "rplctl/a-c", "rplctl/c")):
        tables.publish(pending(place, number), app, number + 1)
    assert [tables.version("d/t", f"rplctl/{name}") for name in ("", "c", "a-c", "other")] == [1, 4, 3, 0]
    assert ids(place) == [0, 1, 2, 3]


def test_a_folder_is_listed_once_and_when_somebody_else_was_there(
    place: ParquetPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch costs the same however many are there."""
    tables, listed, listing = ParquetTables(place), list[str](), os.listdir
    assert tables.version("d/t", APP) == 0

    def counted(folder: str) -> list[str]:
        listed.append(str(folder))
        return listing(folder)

    monkeypatch.setattr(os, "listdir", counted)
    for batch in range(1, 4):
        tables.publish(pending(place, batch), APP, batch)
        assert tables.version("d/t", APP) == batch
    whole = place.uri("d/t")
    assert whole not in listed
    os.utime(whole, ns=(1, 1))  # a clock is too coarse to tell a rename from the one just before
    ParquetTables(place).publish(pending(place, 5), APP, 5)
    assert tables.version("d/t", APP) == 5
    assert listed.count(whole) == 1


def test_batches_that_are_copied_as_the_manual_says_count_once_at_every_step(
    place: ParquetPlace, tmp_path: Path
) -> None:
    tables, page = ParquetTables(place), (Path(__file__).parents[3] / "man/rplctl-lake.7").read_text()
    blocks = [block.partition(".EE")[0].replace("\\-", "-") for block in page.split(".EX\n")[1:]]
    real = {"/srv/files/shop/orders": place.uri("d/t"), "/srv/old": str(tmp_path), "000000001000": f"{4:012}"}
    for shown, ours in real.items():
        blocks = [block.replace(shown, ours) for block in blocks]
    plain, copy, both = [block for block in blocks if "read_parquet" in block]
    for batch in range(1, 7):
        row = {"op": "insert", "id": batch, "log": "b.000001", "pos": batch, "row_number": 0}
        file = place.write(MODEL, "d/t", pa.Table.from_pylist([row]))
        tables.publish(PendingTable(folder="d/t", columns="", files=((file.path, file.size, file.stats),)), APP, batch)

    def seen(query: str) -> list[tuple[Any, ...]]:
        return sorted(duckdb.execute(f"SELECT id FROM ({query.rstrip().rstrip(';')})").fetchall())

    every = [(number,) for number in range(1, 7)]
    for _ in "cut off", "done":
        duckdb.execute(copy)
        assert seen(plain) == every
    (tmp_path / "orders-1000.new").rename(tmp_path / "orders-1000.parquet")
    assert seen(both) == every
    for batch in 1, 2, 3:
        shutil.rmtree(Path(place.uri("d/t")) / f"{batch:012}-c")
        assert seen(both) == every
    assert seen(plain) == every[3:]
    assert ParquetTables(place).version("d/t", APP) == 6


def test_a_folder_has_files_of_one_definition_only(place: ParquetPlace) -> None:
    """What a reader takes from any one file is true of all."""
    tables = ParquetTables(place)
    same = tables.columns_of(SCHEMA)
    assert tables.takes("d/t", same) is None
    tables.publish(pending(place, 1), APP, 1)
    assert tables.takes("d/t", same) is True
    wider = tables.columns_of(SCHEMA.append(pa.field("v", pa.string())))
    other = tables.columns_of(SCHEMA.set(1, pa.field("id", pa.int64())))
    assert (tables.takes("d/t", wider), tables.takes("d/t", other)) == (False, False)


@pytest.mark.parametrize("junk", [b"", b"7", b"7 x\n", b"7 8 9\n", b"\xff 1\n"])
def test_a_claim_that_is_junk_is_an_error_and_stays_as_it_is(place: ParquetPlace, junk: bytes) -> None:
    tables = ParquetTables(place)
    tables.claim(APP, 7, 1)
    (path,) = Path(place.root).rglob("*.last")
    path.write_bytes(junk)
    for look in (lambda: tables.claimed(APP), lambda: tables.claim(APP, 8, 1)):
        with pytest.raises(TargetError, match="does not have the format that rplctl writes"):
            look()
    assert path.read_bytes() == junk
