from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.format_description import parse_format_description
from rplctl.event.header import parse_header
from rplctl.event.scan import scan_events
from rplctl.event.split import RowSplit, split_rows
from rplctl.event.types import EventType
from tests.event.logs import event, events, log

DESCRIPTION = parse_format_description(next(events(log("my97-torture-mixed"))))
GTID = event(EventType.ANONYMOUS_GTID, bytes(25))
XID = event(EventType.XID, bytes(8))


def rows(table_id: int, flags: int = 0, size: int = 100) -> bytes:
    return event(EventType.WRITE_ROWS, table_id.to_bytes(6, "little") + flags.to_bytes(2, "little") + bytes(size))


def table_map(table_id: int) -> bytes:
    return event(EventType.TABLE_MAP, table_id.to_bytes(6, "little") + bytes(30))


def tiles(pieces: list[RowSplit], start: int, end: int) -> bool:
    bounds = [(piece.start, piece.end) for piece in pieces]
    return [start, *(b for _, b in bounds)] == [*(a for a, _ in bounds), end]


@pytest.mark.parametrize("case", ["my97-torture-rowsquery", "ma1011-crash-inuse", "my97-torture-nogtid"])
@pytest.mark.parametrize("split_bytes", [1, 500, 5000, 1 << 30])
def test_pieces_tile_the_range_and_carry_every_table_map_their_rows_need(case: str, split_bytes: int) -> None:
    data = log(case)
    pieces = split_rows(data, 4, len(data), split_bytes)
    assert tiles(pieces, 4, len(data))
    for piece in pieces:
        known = {data[at + 19 : at + 25] for at in piece.table_map_offsets}
        for raw in events(data[: piece.end], piece.start):
            if raw[4] == EventType.TABLE_MAP:
                known.add(raw[19:25])
            elif EventType.WRITE_ROWS_V1 <= raw[4] <= EventType.DELETE_ROWS_V1 or raw[4] in (30, 31, 32, 39):
                assert raw[19:25] in known


def test_small_transactions_stay_whole() -> None:
    transaction = GTID + table_map(1) + rows(1, 1) + XID
    data = transaction * 50
    pieces = split_rows(data, 0, len(data), 3 * len(transaction))
    assert [(piece.end - piece.start) // len(transaction) for piece in pieces] == [3] * 16 + [2]
    assert all(piece.table_map_offsets == () for piece in pieces)


def test_a_huge_transaction_is_cut_between_row_events_with_its_table_maps() -> None:
    head = GTID + table_map(1) + table_map(2)
    data = head + rows(1) * 20 + rows(2, 1) + XID
    pieces = split_rows(data, 0, len(data), 400)
    assert tiles(pieces, 0, len(data))
    assert len(pieces) > 4
    maps = (len(GTID), len(GTID + table_map(1)))
    assert [piece.table_map_offsets for piece in pieces] == [()] + [maps] * (len(pieces) - 1)
    assert all(data[piece.start + 4] == EventType.WRITE_ROWS for piece in pieces[1:])


def test_table_maps_are_out_of_force_after_the_end_of_their_statement() -> None:
    data = GTID + (table_map(1) + rows(1, 1, 1000)) * 5 + XID
    pieces = split_rows(data, 0, len(data), 800)
    assert [piece.table_map_offsets for piece in pieces] == [()] * 5


def test_transactions_without_gtids_are_cut_behind_their_commit() -> None:
    transaction = table_map(1) + rows(1, 1) + XID
    data = transaction * 10
    pieces = split_rows(data, 0, len(data), len(transaction))
    assert [piece.start for piece in pieces] == [number * len(transaction) for number in range(10)]


def test_a_statement_on_very_many_tables_carries_all_its_maps() -> None:
    data = b"".join(table_map(number) for number in range(700)) + b"".join(rows(number) for number in range(20))
    assert len(split_rows(data, 0, len(data), 2000)[-1].table_map_offsets) == 700


def test_an_empty_range_has_no_pieces() -> None:
    assert split_rows(b"", 0, 0, 100) == []


def test_a_range_that_ends_inside_an_event_stops() -> None:
    data = log("ma1011-crash-inuse")
    last = int(scan_events(data, 4).offsets[-2])
    with pytest.raises(BinlogFormatError, match=f"at offset {last}"):
        split_rows(data, 4, len(data) - 1, 1000)
    assert parse_header(data, last).event_length > 1


def test_table_ids_of_four_bytes_stop() -> None:
    lengths = tuple(6 if code == EventType.TABLE_MAP else 0 for code in range(1, 40))
    with pytest.raises(BinlogFormatError, match="4-byte table ids"):
        split_rows(b"", 0, 0, 1, replace(DESCRIPTION, header_lengths=lengths))
