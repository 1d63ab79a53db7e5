"""Compressed transactions too large for memory: a batch of their own, unfolded into a file, gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.applier import event_range as module
from rplctl.applier.event_range import apart, event_range
from rplctl.applier.plan import Batch, BatchKind, plan_batches
from rplctl.binlog.payload import payload_size
from rplctl.binlog.scan import scan_events
from rplctl.errors import BinlogFormatError
from tests.applier.demo_log import groups_of
from tests.applier.test_fidelity import apply_all, data_of, different, write_logs

CASE = "my97-torture-compress-l1"


@pytest.fixture
def bulk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Batch:
    """Many compressed transactions, every one worth asking for its size."""
    monkeypatch.setattr(module, "_SMALLEST_SUSPECT", 0)
    groups = groups_of(write_logs(tmp_path / "source", data_of(CASE))[0])
    batches = [batch for batch in plan_batches(groups, len(groups.scan)) if batch.kind is BatchKind.BULK]
    return max(batches, key=lambda batch: batch.last - batch.first)


def test_only_transactions_that_unfold_to_more_than_the_limit_are_set_apart(bulk: Batch) -> None:
    assert apart(bulk, 1 << 30) == [bulk]
    alone = apart(bulk, 1)
    assert len(alone) == bulk.last - bulk.first
    assert [(part.first, part.last) for part in alone] == [(n, n + 1) for n in range(bulk.first, bulk.last)]


def test_the_unfolded_events_are_those_of_the_payload_and_the_file_is_removed(bulk: Batch, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    for part in (part for part in apart(bulk, 1) if part.has_payload):
        with event_range(part, 1, spool) as events:
            assert events.path.parent == spool and not events.description.checksum_length
            index = scan_events(events.data)
            assert index.end == events.end and len(index) > 3
            plain = len(events.data) - int(index.offsets[1])  # all but the GTID event
            raw = part.groups.data
            at = part.start + int(scan_events(raw[part.start : part.end]).offsets[1])
            assert payload_size(raw[at : part.end], part.description) == plain
        assert list(spool.iterdir()) == []


def test_small_ones_stay_where_they_are(bulk: Batch, tmp_path: Path) -> None:
    with event_range(bulk, 1 << 30, tmp_path / "spool") as events:
        assert (events.path, events.start, events.end) == (bulk.path, bulk.start, bulk.end)


def test_a_damaged_payload_is_refused_and_leaves_no_file(bulk: Batch, tmp_path: Path) -> None:
    part = apart(bulk, 1)[0]
    part.groups.data[part.end - 10] ^= 0xFF
    with pytest.raises(BinlogFormatError) as caught, event_range(part, 1, tmp_path / "spool"):
        pass
    assert caught.value.errno == 1743
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_log_of_unfolded_transactions_gives_the_sources_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SMALLEST_SUSPECT", 0)
    paths = write_logs(tmp_path / "source", data_of(CASE))
    instance = apply_all(tmp_path, paths, max_batch_bytes=1)
    assert different(instance, data_of(f"{CASE}.state").decode()) == []
    instance.target.close()
