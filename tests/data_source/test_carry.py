"""Option carry: the bytes of the logs go along with a task, which reads what it would have read in their folder."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rplctl.data_source import source
from rplctl.data_source.source import BinlogDataSource, BinlogError
from tests.kit.recorded_state import unpacked_log

pytestmark = pytest.mark.slow


def reader_of(folder: Path, **options: str) -> Any:
    found = BinlogDataSource({"path": str(folder), **options})
    return found.reader(found.schema())


def rows_of(reader: Any, partitions: Sequence[Any]) -> list[dict[str, Any]]:
    """As executors get them: pickled."""
    return [
        row
        for partition in partitions
        for batch in reader.read(pickle.loads(pickle.dumps(partition)))
        for row in batch.to_pylist()
    ]


@pytest.mark.long("Logs that tasks do not see are rare; tests/data_source/test_walk.py reads the same rows.")
@pytest.mark.parametrize(
    ("case", "size"),
    [("ma1011-torture-row", "7000"), ("my97-torture-row", "33554432"), ("my97-torture-compress-l1", "700")],
)
def test_a_task_that_does_not_see_the_logs_reads_the_same_rows(case: str, size: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    unpacked_log(case, folder)
    beside, sent = reader_of(folder, partition_bytes=size), reader_of(folder, partition_bytes=size, carry="true")
    wanted = rows_of(beside, beside.partitions())
    parts, seen = sent.partitions(), beside.partitions()
    folder.rename(tmp_path / "hidden")
    assert wanted and rows_of(sent, parts) == wanted
    with pytest.raises(BinlogError, match="To send the logs along instead, set the option carry=true"):
        rows_of(beside, seen)


def test_more_than_the_driver_or_a_task_takes_is_refused_before_a_byte_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked_log("ma1011-torture-row", tmp_path)
    monkeypatch.setattr(source, "carried", None)
    monkeypatch.setattr(source, "MOST_CARRIED", 1 << 10)
    with pytest.raises(BinlogError, match=r"option carry: the logs have 2 MiB.*max_bytes_per_trigger"):
        reader_of(tmp_path, carry="true").partitions()
    monkeypatch.setattr(source, "MOST_CARRIED", 1 << 40)
    monkeypatch.setattr(source, "MOST_IN_PARTITION", 1 << 10)
    with pytest.raises(BinlogError, match=r"a task would get .*partition_bytes"):
        reader_of(tmp_path, carry="true").partitions()
    found = BinlogDataSource({"path": str(tmp_path), "carry": "true"})
    stream: Any = found.streamReader(found.schema())
    start = stream.initialOffset()
    with pytest.raises(BinlogError, match=r"a task would get .*partition_bytes"):
        stream.partitions(start, stream.latestOffset(start))
    with pytest.raises(BinlogError, match="option carry"):
        reader_of(tmp_path, carry="perhaps")
