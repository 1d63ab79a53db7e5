"""Rows that were read at some time, with what the log says of them since, are the rows as they are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rplctl.decode.row_stream import TableRows
from rplctl.schema.model import Column, Key, KeyPart, TableModel
from rplctl.verify.log_keys import keys_of_rows
from rplctl.verify.log_rows import NOT_KNOWN, moved_rows
from rplctl.verify.pair import Pair
from tests.event.row_events import VARCHAR, change_event, parsed, walked
from tests.event.test_net_change import Change, random_changes

COLUMNS = (
    Column(name="id", type="varbinary", length=255, nullable=False),
    *(Column(name=name, type="varbinary", length=255) for name in "uv"),
)
MODEL = TableModel(
    database="d", name="t", columns=COLUMNS, keys=(Key(name="PRIMARY", kind="primary", parts=(KeyPart("id"),)),)
)
PAIR = Pair.of(MODEL, MODEL, "sqlite")


def logged(changes: list[Change]) -> tuple[TableRows, list[Any]]:
    events = [change_event(3, before, after) for before, after in changes]
    rows = TableRows(MODEL, (VARCHAR,) * 3, walked(events, 3), parsed(events), "sqlite")
    return rows, keys_of_rows(rows, PAIR)


@pytest.mark.slow
@pytest.mark.parametrize("full", [True, False])
def test_each_row_that_is_told_is_right(full: bool) -> None:
    told = 0
    for seed in range(100):
        rng = random.Random(seed)
        table: dict[Any, Any] = {(b"1",): (b"1", b"a", None), (b"2",): (b"2", b"", b"b")}
        states, kept = [dict(table)], []
        for _ in range(3):
            kept.append(logged(random_changes(rng, table, [0], 3, full=full)))
            states.append(dict(table))
        wanted = {key for key in [(b"1",), (b"2",), (b"33",)] if rng.random() < 0.8}
        read = {key: rng.choice(states[:2]).get(key) for key in wanted}  # at some time before the second one
        rows: dict[Any, Any] = {key: row for key, row in read.items() if row is not None}
        found = moved_rows(kept, PAIR, rows, wanted)
        assert set(found) <= wanted
        for key in wanted:
            row = found.get(key, rows.get(key))
            assert row == NOT_KNOWN or row == table.get(key), (seed, key)
            told += row != NOT_KNOWN
        if full:
            assert NOT_KNOWN not in found.values()
    assert told > 150


def test_what_moved_away_before_its_key_was_read_is_not_known() -> None:
    """Another row has that key by then."""
    kept = [logged([({0: b"1"}, {0: b"2"}), (None, {0: b"1", 1: b"new", 2: b"row"})])]
    rows: dict[Any, Any] = {(b"1",): (b"1", b"new", b"row"), (b"2",): (b"2", b"old", b"row")}
    found = moved_rows(kept, PAIR, rows, rows)
    assert found == {(b"1",): rows[b"1",], (b"2",): NOT_KNOWN}
