"""What a task hands back: the same chunks after encoding, spool files that are ours alone, errors as values."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from rplctl.applier.spark import pipeline, split_task
from rplctl.applier.spark.pipeline import Pipeline, UnknownTables
from rplctl.applier.spark.split_task import Split, chunks_of, decode_chunks, encode_chunks, pieces_of, run_split
from rplctl.event.scan import GroupKind
from rplctl.schema.plan import Catalog
from rplctl.target.base import BulkRows, ChangeKind, EncodedRows, RowChange, RowSet, TableChunk
from tests.applier.demo_log import FOLDER, demo_groups

CHUNK = TableChunk(
    database="shop",
    table="t",
    absent=[(1,)],
    deletes=[(2, "x")],
    updates=[RowSet((1, 2), [("Zoë", None, 7), (b"\x00\xff", 1.5, 8)])],
    inserts=[RowSet((0,), [(2**70,)])],
    ordered=[RowChange(kind=ChangeKind.UPDATE, before=RowSet((0,), [(1,)]), after=RowSet((0,), [(2,)]))],
    change_count=6,
    foreign_keys_off=True,
)


NONE = EncodedRows((), 0, b"")
ENCODED = replace(
    CHUNK,
    bulk=BulkRows(
        absent=NONE,
        deletes=EncodedRows((0,), 1, b"1\n"),
        updates=EncodedRows((1, 0), 2, b"a\t2\nb\t3\n", bytes(16)),
        inserts=NONE,
    ),
)


def test_chunks_come_back_as_they_were() -> None:
    chunks = [CHUNK, ENCODED, CHUNK]
    assert decode_chunks(b"".join(pieces_of(encode_chunks(chunks)))) == chunks


def first_rows_split(spool: Path) -> Split:
    groups = demo_groups()
    number = int((groups.scan.kind == GroupKind.ROWS).argmax())
    assert groups.format_description is not None
    return Split(
        path=str(FOLDER / "binlog.000001"),
        start=int(groups.scan.start[number]),
        end=int(groups.scan.end[number]),
        table_maps=(),
        description=groups.format_description,
        spool_folder=str(spool),
    )


def test_an_unknown_table_is_an_error_value_with_the_way_out(tmp_path: Path) -> None:
    result = run_split(first_rows_split(tmp_path), Catalog())
    assert result.error is not None
    assert result.error["errno"] == 1146
    assert "load-schema" in result.error["hint"]


def test_a_large_result_goes_to_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_task, "SPOOL_THRESHOLD", 10)
    monkeypatch.setattr(split_task, "net_chunks", lambda *_, **__: [CHUNK, ENCODED])
    os.umask(old := os.umask(0))
    try:
        result = run_split(first_rows_split(tmp_path / "spool"), Catalog())
    finally:
        os.umask(old)
    assert result.spooled is not None
    path = Path(result.spooled)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert chunks_of(result) == [CHUNK, ENCODED]


def test_a_small_job_needs_no_spark_and_a_larger_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked by its bytes, all splits together; what the task finds comes as from Spark."""

    def no_spark() -> SparkContext:
        raise AssertionError("a job of Spark")

    made, split = Pipeline(no_spark), first_rows_split(tmp_path)
    made.has_begun = True
    monkeypatch.setattr(pipeline, "SMALL_JOB", 2 * (split.end - split.start))
    with pytest.raises(UnknownTables):
        made.decode([split, split], Catalog())
    assert (made.small_jobs, made.spark_jobs) == (1, 0)
    with pytest.raises(AssertionError, match="a job of Spark"):
        made.decode([split, split, split], Catalog())
    assert (made.small_jobs, made.spark_jobs) == (1, 1)
