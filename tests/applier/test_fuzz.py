"""Recorded transactions with a wound, lengths and checksums mended: applied, or refused with an error of ours.

Never another error, a hang, memory that a length field asked for, or a target that a refused transaction has touched.
Seeds are in the tests' names; a failure prints the mutant.
"""

from __future__ import annotations

import random
import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from rplctl.applier.feed.plan import plan_batches
from rplctl.decode.net_changes import Inconsistent, net_chunks, row_changes
from rplctl.decode.row_stream import read_run, read_tables
from rplctl.errors import RplError
from rplctl.event.checksum_trailer import append_checksum, event_crc
from rplctl.event.format_description import FormatDescription
from rplctl.event.scan import GroupKind, scan_groups, split_rows
from rplctl.event.types import EventType
from rplctl.instance_id import INSTANCE_ID_FILE
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.plan import Catalog
from rplctl.target.base import CountMismatch, Row, TableChunk
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.test_fidelity import OPTIONS, recorded

EXPECTED = (RplError, Inconsistent, CountMismatch)
EXTREMES = (0, 1, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
LENGTHS = (0, 1, 18, 19, 20, (1 << 24) - 1, 1 << 31, (1 << 32) - 1)
TYPES = (0, 15, 16, 18, 19, 23, 24, 25, 29, 30, 31, 32, 35, 38, 39, 40, 41, 42, 160, 163, 164, 165, 166, 171, 172, 255)
MUTANTS_PER_SEED = 2_500
MEMORY = 400 << 20  # bytes that the fuzzing may add to the process


@dataclass(frozen=True)
class Corpus:
    """Transactions of one recorded log, and the models of all its tables at its end."""

    groups: tuple[bytes, ...]
    description: FormatDescription
    catalog: Catalog


def corpora(folder: Path, vendor: str) -> Iterator[Corpus]:
    paths, _ = recorded(vendor, folder / "source")
    left_out = "%.w%,%.gent"
    instance = Instance(folder / "replica", groups_of(paths[0]), replicate_wild_ignore_table=left_out, **OPTIONS)
    driver = instance.target.connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute("PRAGMA synchronous=OFF")
    for path in paths[:4]:
        groups = groups_of(path)
        instance.apply(groups)
        rows = np.flatnonzero(groups.scan.kind == GroupKind.ROWS)
        raw = groups.data.tobytes()
        pieces = tuple(raw[int(groups.scan.start[n]) : int(groups.scan.end[n])] for n in rows)
        if pieces and groups.format_description is not None:
            small = tuple(piece for piece in pieces if len(piece) < 5_000)
            yield Corpus(small, groups.format_description, instance.applier.catalog)
    instance.target.close()


def events_of(group: bytes) -> list[bytes]:
    events, at = [], 0
    while at < len(group):
        length = int.from_bytes(group[at + 9 : at + 13], "little")
        events.append(group[at : at + length])
        at += length
    return events


def wounded(group: bytes, description: FormatDescription, dice: random.Random) -> bytes:
    """One event changed; its length and checksum are right again unless the length itself is the wound."""
    events = events_of(group)
    number = dice.randrange(len(events))
    checksum = description.checksum_length
    event = bytearray(events[number][: len(events[number]) - checksum])
    lie = None
    match dice.randrange(8):
        case 0:
            event[4] = dice.choice(TYPES)
        case 1:
            lie = dice.choice([*LENGTHS, len(event) + checksum - 1, len(event) + checksum + 1, 2 * len(event)])
        case 2 if len(event) > 24:  # cut anywhere behind the header
            del event[dice.randrange(19, len(event)) :]
        case 3 if len(event) > 24:
            at = dice.randrange(19, len(event))
            event[at:at] = dice.randbytes(dice.randrange(1, 9))
        case 4 if len(event) > 24:
            at = dice.randrange(19, len(event))
            del event[at : at + dice.randrange(1, 9)]
        case 5:
            events[number : number + 1] = [] if dice.random() < 0.5 else [events[number]] * 2
            return b"".join(events)
        case _:
            for _ in range(dice.choice([1, 1, 2, 6])):
                at = dice.randrange(min(17, len(event) - 1), len(event))
                event[at] = dice.choice(EXTREMES) if dice.random() < 0.6 else event[at] ^ (1 << dice.randrange(8))
    event[9:13] = (len(event) + checksum).to_bytes(4, "little")
    if lie is not None:
        event[9:13] = lie.to_bytes(4, "little")
    events[number] = bytes(event) + (event_crc(bytes(event)).to_bytes(checksum, "little") if checksum else b"")
    return b"".join(events)


def decode_everything(mutant: bytes, corpus: Corpus) -> list[TableChunk]:
    """What the planner and a task do with it, and every change as the ordered way sees it."""
    data = np.frombuffer(mutant, np.uint8)
    scan = scan_groups(data, 0, BinlogPosition("bin.000001", 4), 1 << 30, corpus.description)
    end = int(scan.complete_end)
    for piece in split_rows(data, 0, end, 500, corpus.description) if end else []:
        assert 0 <= piece.start < piece.end <= end
    run = read_run(data, 0, end, corpus.description)
    for rows in read_tables(run, corpus.catalog, "sqlite"):
        for _ in row_changes(rows, lambda _image, _column: "{}"):
            pass
    return net_chunks(run, corpus.catalog, "sqlite")


@pytest.mark.long("tests/applier/test_damaged_type.py has a wounded transaction in make test.")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("vendor", "seed"),
    [
        ("mariadb", 1),
        ("mysql", 3),
        pytest.param("mariadb", 2, marks=pytest.mark.torture),
        pytest.param("mysql", 4, marks=pytest.mark.torture),
    ],
)
def test_wounded_transactions_decode_or_are_refused(tmp_path: Path, vendor: str, seed: int) -> None:
    dice = random.Random(seed)
    found = list(corpora(tmp_path, vendor))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    accepted = 0
    for _ in range(MUTANTS_PER_SEED):
        corpus = dice.choice(found)
        mutant = wounded(dice.choice(corpus.groups), corpus.description, dice)
        try:
            decode_everything(mutant, corpus)
            accepted += 1
        except EXPECTED:
            pass
        except BaseException:
            print("mutant:", mutant.hex())  # noqa: T201
            raise
    assert MUTANTS_PER_SEED * 0.05 < accepted < MUTANTS_PER_SEED * 0.8
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before < MEMORY


def dump(path: Path) -> list[str]:
    """Return the target's SQL without the owner row, which names the folder of each try."""
    with closing(sqlite3.connect(path)) as target:
        return [line for line in target.iterdump() if not line.startswith('INSERT INTO "rplctl_channel_owner"')]


def as_relay_log(path: Path, mutant: bytes, corpus: Corpus, at: BinlogPosition) -> RelayGroups:
    """The mutant as what the receiver wrote next, behind the position `at`."""
    path.write_bytes(mutant)
    data = np.fromfile(path, np.uint8)
    scan = scan_groups(data, 0, at, 1 << 30, corpus.description)
    end = RelayLogPosition("relay-bin.000099", int(scan.complete_end))
    start = replace(end, log_pos=0)
    return RelayGroups(
        path=path,
        log_name=end.log_name,
        data=data,
        scan=scan,
        format_description=corpus.description,
        start=start,
        start_source=at,
        end=end,
        end_source=scan.end_position,
    )


@pytest.mark.long("tests/applier/test_damaged_type.py has such a transaction in make test.")
@pytest.mark.slow
@pytest.mark.parametrize("wounds", [8, pytest.param(60, marks=pytest.mark.torture)])
@pytest.mark.parametrize(("vendor", "seed"), [("mariadb", 5), ("mysql", 6)])
def test_a_refused_transaction_leaves_the_target_as_it_was(tmp_path: Path, vendor: str, seed: int, wounds: int) -> None:
    dice = random.Random(seed)
    corpus = list(corpora(tmp_path, vendor))[0]
    kept = tmp_path / "kept.db"
    with closing(sqlite3.connect(tmp_path / "replica" / "target.db")) as target:
        target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(tmp_path / "replica" / "target.db", kept)
    original = dump(kept)
    refused = 0
    for number in range(wounds):
        folder = tmp_path / f"try{number}"
        instance = Instance(folder, None, on_unsupported_ddl="skip")
        shutil.copy(tmp_path / "replica" / INSTANCE_ID_FILE, folder)  # one instance, tried again and again
        instance.target.close()
        for path in folder.glob("target.db*"):
            path.unlink()
        shutil.copy(kept, folder / "target.db")
        applier = instance.reopen()
        before = applier.info
        mutant = wounded(dice.choice(corpus.groups), corpus.description, dice)
        try:
            groups = as_relay_log(folder / "relay-bin.000099", mutant, corpus, before.exec_position)
            for batch in plan_batches(groups, len(groups.scan)):
                applier.apply(batch)
        except RplError as error:
            refused += 1
            assert error.message and len(error.message) < 3_000
            instance.target.close()
            if applier.info.exec_position == before.exec_position:
                assert dump(folder / "target.db") == original
        instance.target.close()
        shutil.rmtree(folder)
    assert refused > wounds // 3


@pytest.mark.long("One type of event stays; the others are cut by the same loop.", keeps=r"^23$")
@pytest.mark.slow
@pytest.mark.parametrize("code", [EventType.TABLE_MAP, EventType.WRITE_ROWS_V1])
def test_an_event_cut_at_any_byte_is_refused_unless_whole_rows_are_left(tmp_path: Path, code: int) -> None:
    """A table map may also lose what follows its types: the model knows it."""
    corpus = next(corpora(tmp_path, "mariadb"))
    group = next(group for group in corpus.groups if any(event[4] == code for event in events_of(group)))
    events = events_of(group)
    number = next(n for n, event in enumerate(events) if event[4] == code)
    whole = events[number][: len(events[number]) - corpus.description.checksum_length]
    rows = inserted(decode_everything(group, corpus))
    refused = 0
    for end in range(19, len(whole)):
        events[number] = append_checksum(whole[:9] + (end + 4).to_bytes(4, "little") + whole[13:end])
        try:
            found = inserted(decode_everything(b"".join(events), corpus))
            assert found == rows[: len(found)]
        except RplError:
            refused += 1
    assert refused > (len(whole) - 19) / 2


def inserted(chunks: list[TableChunk]) -> list[Row]:
    return [row for chunk in chunks for insert in chunk.inserts for row in insert.rows]
