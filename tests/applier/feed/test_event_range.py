"""Compressed transactions too large for memory: a batch of their own, unfolded into a file, gone afterwards."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.feed.event_range import event_range, split_by_unpacked_size
from rplctl.applier.feed.plan import Batch, BatchKind, plan_batches
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.applier.spark.split_task import Split
from rplctl.decode import row_stream
from rplctl.decode.row_stream import read_run
from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import FormatDescription
from rplctl.event.header import HEADER_LENGTH
from rplctl.event.inflate import plain_sizes
from rplctl.event.payload import expand_event, payload_size, unpack_event
from rplctl.event.scan import scan_events
from rplctl.event.types import MARIADB_COMPRESSED, EventType
from rplctl.schema.plan import Catalog
from rplctl.target.base import TableChunk
from tests.applier.demo_log import groups_of
from tests.applier.test_fidelity import apply_all, data_of, different, recorded, write_logs

CASE = "my97-torture-compress-l1"


@pytest.fixture
def bulk(tmp_path: Path) -> Batch:
    """Many compressed transactions."""
    groups = groups_of(write_logs(tmp_path / "source", data_of(CASE))[0])
    batches = [batch for batch in plan_batches(groups, len(groups.scan)) if batch.kind is BatchKind.BULK]
    return max(batches, key=lambda batch: batch.last - batch.first)


def test_only_transactions_that_unfold_to_more_than_the_limit_are_set_apart(bulk: Batch) -> None:
    assert split_by_unpacked_size(bulk, 1 << 30) == [bulk]
    alone = split_by_unpacked_size(bulk, 1)
    assert len(alone) == bulk.last - bulk.first
    assert [(part.first, part.last) for part in alone] == [(n, n + 1) for n in range(bulk.first, bulk.last)]


def unpacked_bytes(batch: Batch) -> int:
    """What the groups hold in the log, and what their payloads unfold to."""
    raw = batch.groups.data[batch.start : batch.end]
    index = scan_events(raw)
    payloads = [n for n, code in enumerate(index.type_codes) if code == EventType.TRANSACTION_PAYLOAD]
    plain = (expand_event(raw[index.offsets[n] : index.offsets[n + 1]].tobytes(), batch.description) for n in payloads)
    return len(raw) + sum(map(len, plain))


@pytest.mark.parametrize("limit", [1_000, 2_500, 10_000])
def test_many_small_transactions_unfold_to_no_more_than_the_limit_together(bulk: Batch, limit: int) -> None:
    parts = split_by_unpacked_size(bulk, limit)
    assert (parts[0].first, parts[-1].last) == (bulk.first, bulk.last)
    assert all(one.last == other.first for one, other in pairwise(parts))
    sizes = [unpacked_bytes(part) for part in parts]
    assert all(size <= limit or part.last - part.first == 1 for part, size in zip(parts, sizes, strict=True))
    following = [replace(part, last=part.first + 1) for part in parts[1:]]
    assert all(size + unpacked_bytes(one) > limit for size, one in zip(sizes, following, strict=False))
    assert sum(sizes) > 3 * limit


def test_a_job_decodes_no_more_bytes_than_a_batch_may_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted where payloads are expanded, per decoding of a batch."""
    limit, expanded, jobs = 1_500, [0], list[int]()
    decode = InProcessPipeline.decode

    def counted(event: bytes, description: FormatDescription) -> bytes:
        plain = expand_event(event, description)
        expanded[0] += len(plain)
        return plain

    def decoded(pipeline: InProcessPipeline, splits: Sequence[Split], catalog: Catalog) -> list[TableChunk]:
        expanded[0] = 0
        chunks = decode(pipeline, splits, catalog)
        jobs.append(expanded[0])
        return chunks

    monkeypatch.setattr(row_stream, "expand_event", counted)
    monkeypatch.setattr(InProcessPipeline, "decode", decoded)
    paths = write_logs(tmp_path / "source", data_of(CASE))
    instance = apply_all(tmp_path, paths, max_batch_bytes=limit)
    assert different(instance, data_of(f"{CASE}.state").decode()) == []
    instance.target.close()
    assert max(jobs) <= limit < sum(jobs) // 2


def test_the_unfolded_events_are_those_of_the_payload_and_the_file_is_removed(bulk: Batch, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    for part in (part for part in split_by_unpacked_size(bulk, 1) if part.has_payload):
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
        assert (events.path, events.start, events.end) == (bulk.groups.path, bulk.start, bulk.end)


def test_a_damaged_payload_is_refused_and_leaves_no_file(bulk: Batch, tmp_path: Path) -> None:
    part = split_by_unpacked_size(bulk, 1)[0]
    part.groups.data[part.end - 10] ^= 0xFF
    with pytest.raises(BinlogFormatError) as caught, event_range(part, 1, tmp_path / "spool"):
        pass
    assert caught.value.errno == 1743
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_log_of_unfolded_transactions_gives_the_sources_state(tmp_path: Path) -> None:
    paths = write_logs(tmp_path / "source", data_of(CASE))
    instance = apply_all(tmp_path, paths, max_batch_bytes=1)
    assert different(instance, data_of(f"{CASE}.state").decode()) == []
    instance.target.close()


def zipped_logs(folder: Path, database: str) -> list[Path]:
    """MariaDB's, with log_bin_compress."""
    return [
        path for path in recorded("mariadb", folder)[0] if f"CREATE DATABASE {database}".encode() in path.read_bytes()
    ]


def test_compressed_rows_and_statements_of_mariadb_unfold_to_what_they_say(tmp_path: Path) -> None:
    checked = 0
    for path in zipped_logs(tmp_path / "source", "full_zip"):
        groups = groups_of(path)
        description = groups.format_description
        assert description is not None
        index = scan_events(groups.data, 4)  # behind the magic number
        sizes = plain_sizes(groups.data, index.offsets, index.type_codes)
        for number, code in enumerate(index.type_codes.tolist()):
            raw = groups.data[index.offsets[number] : index.offsets[number + 1]]
            if code not in MARIADB_COMPRESSED:
                assert sizes[number] == 0
                continue
            plain = expand_event(raw.tobytes(), description)
            held = len(raw) - description.checksum_length
            assert 0 < len(plain) - sizes[number] < held  # all but the record
            out = io.BytesIO()
            unpack_event(raw, description, out)
            assert out.getvalue() == plain
            checked += 1
    assert checked > 300


@pytest.mark.long("tests/applier/test_fidelity.py has a log of compressed rows.")
@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 3_000])
def test_a_log_of_unfolded_rows_of_mariadb_gives_the_same_tables(tmp_path: Path, limit: int) -> None:
    paths = zipped_logs(tmp_path / "source", "minimal_zip")
    options = {"replicate_wild_ignore_table": "%.wmost,%.gent,%.w2000,%.t0__"}
    whole = apply_all(tmp_path / "whole", paths, **options)
    unpacked = apply_all(tmp_path / "unfolded", paths, max_batch_bytes=limit, **options)
    names = "SELECT name FROM sqlite_master WHERE type='table' AND name LIKE 'minimal%'"
    tables = [name for (name,) in whole.query(names)]
    assert len(tables) > 20
    for name in tables:
        one, other = (sorted(instance.query(f'SELECT * FROM "{name}"'), key=repr) for instance in (whole, unpacked))
        assert one == other, name
    for instance in (whole, unpacked):
        instance.target.close()


@pytest.mark.parametrize("kind", [BatchKind.BULK, BatchKind.COMMIT_GROUP])
def test_compressed_rows_are_set_apart_by_what_they_unfold_to(tmp_path: Path, kind: BatchKind) -> None:
    groups = groups_of(zipped_logs(tmp_path / "source", "full_zip")[0])
    planned = plan_batches(groups, len(groups.scan), has_rollbacks=kind is BatchKind.COMMIT_GROUP)
    batch = max((b for b in planned if b.kind is kind and b.unpacks), key=lambda b: b.last - b.first)
    assert not batch.has_payload
    for limit in (100, 2_000):
        parts = split_by_unpacked_size(batch, limit)
        assert (parts[0].first, parts[-1].last) == (batch.first, batch.last)
        for part in parts:
            run = read_run(part.groups.data, part.start, part.end, part.description)
            assert int(run.lengths.sum()) <= limit or part.last - part.first == 1


def test_a_record_that_lies_about_its_size_is_refused_before_it_is_unfolded_further(bulk: Batch) -> None:
    description = replace(bulk.description, checksum_algorithm=0)
    head = bytes(8) + b"\x01\xff"
    for said, holds in ((1 << 30, 1_000), (1_000, 50_000_000), ((1 << 30) + 1, 10)):
        record = b"\x84" + said.to_bytes(4, "big") + zlib.compress(bytes(holds))
        length = HEADER_LENGTH + len(head) + len(record)
        raw = bytes(4) + b"\xa6" + bytes(4) + length.to_bytes(4, "little") + bytes(6) + head + record
        out = io.BytesIO()
        with pytest.raises(BinlogFormatError, match=r"does not have|more than"):
            unpack_event(np.frombuffer(raw, np.uint8), description, out)
        assert len(out.getvalue()) < 2_000
        with pytest.raises(BinlogFormatError, match=r"does not have|more than"):
            expand_event(raw, description)
