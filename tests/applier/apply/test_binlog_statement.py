"""A rows event is cut where MySQL's own applier would take one row for another, and nowhere else."""

from __future__ import annotations

import pytest

from rplctl.applier.apply.binlog_statement import split_by_kind
from rplctl.event.table_map import parse_table_map
from tests.applier.apply.live_target import MYSQL, catalog_of, run_with, table_map
from tests.event.row_events import bitmap, rows_event

# what the hash of rows knows, and what it does not
BARE = "CREATE TABLE t (a INT, b BLOB)"
KEYED = "CREATE TABLE t (a INT NOT NULL PRIMARY KEY, b BLOB)"
MAP = table_map("t", b"\x03\xfc", b"\x02")

Row = tuple[int | None, bytes | None]


def image(row: Row, columns: tuple[int, ...] = (0, 1)) -> bytes:
    held = [row[c] for c in columns]
    cells = b""
    for value in held:
        if isinstance(value, int):
            cells += value.to_bytes(4, "little")
        elif value is not None:
            cells += len(value).to_bytes(2, "little") + value
    return bitmap([i for i, value in enumerate(held) if value is None], len(held)) + cells


def cut(raw: bytes, create: str = BARE) -> list[bytes]:
    """The rows' bytes of each part, whose head and checksum are the event's."""
    table = parse_table_map(MAP, MYSQL)
    parts = list(split_by_kind(run_with(MAP, raw), table, catalog_of(create).tables["d", "t"]))
    head = raw[: len(raw) - 4 - sum(len(part) - HEADS[raw[4]] - 4 for part in parts)]
    assert all(part.startswith(head) and part.endswith(b"CRC!") for part in parts)
    return [part[len(head) : -4] for part in parts]


HEADS = {30: 31, 31: 32, 32: 31}  # bytes before the rows, with bitmaps of one byte


def deletes(*rows: Row, columns: tuple[int, ...] = (0, 1)) -> tuple[bytes, list[bytes]]:
    pieces = [image(row, columns) for row in rows]
    return rows_event(32, 2, bitmap(columns, 2), b"".join(pieces)), pieces


def updates(*rows: tuple[Row, Row], after: tuple[int, ...] = (0, 1)) -> tuple[bytes, list[bytes]]:
    pieces = [image(old) + image(new, after) for old, new in rows]
    return rows_event(31, 2, bitmap((0, 1), 2) + bitmap(after, 2), b"".join(pieces)), pieces


def test_rows_that_differ_in_what_is_hashed_stay_together() -> None:
    raw, (a, b, c) = deletes((1, b"x"), (2, b"x"), (None, b"x"))
    assert cut(raw) == [a + b + c]


def test_rows_alike_but_for_a_blob_are_told_apart() -> None:
    raw, (a, b, c, d) = deletes((1, b"x"), (1, b"y"), (2, b"x"), (1, b"z"))
    assert cut(raw) == [a, b + c, d]
    raw, (a, b) = deletes((None, b"x"), (None, None))
    assert cut(raw) == [a, b]


def test_a_row_like_what_another_became_is_told_apart() -> None:
    raw, (a, b) = updates(((1, b"x"), (2, b"x")), ((2, b"y"), (3, b"y")))
    assert cut(raw) == [a, b]
    raw, (a, b) = updates(((1, b"x"), (3, b"x")), ((2, b"y"), (4, b"y")))
    assert cut(raw) == [a + b]


def test_what_an_image_lacks_has_not_changed() -> None:
    raw, (a, b) = updates(((1, b"x"), (0, b"new")), ((2, b"y"), (0, b"new")), after=(1,))
    assert cut(raw) == [a + b]
    raw, (a, b) = updates(((1, b"x"), (0, b"new")), ((1, b"y"), (0, b"new")), after=(1,))
    assert cut(raw) == [a, b]
    raw, (a, b) = updates(((1, b"x"), (2, b"")), ((2, b"y"), (5, b"")), after=(0,))
    assert cut(raw) == [a, b]


def test_rows_without_a_cell_are_counted_by_their_bits() -> None:
    raw, (a, b, c) = deletes((None, None), (None, None), (1, b"x"))
    assert cut(raw) == [a, b + c]


@pytest.mark.parametrize(
    ("raw", "create"),
    [
        (rows_event(30, 2, bitmap((0, 1), 2), image((1, b"x")) + image((1, b"y"))), BARE),  # nothing is looked up
        (deletes((1, b"x"))[0], BARE),
        (deletes((1, b"x"), (1, b"y"))[0], KEYED),  # found by the key
    ],
)
def test_what_is_not_hashed_goes_whole(raw: bytes, create: str) -> None:
    table = parse_table_map(MAP, MYSQL)
    assert list(split_by_kind(run_with(MAP, raw), table, catalog_of(create).tables["d", "t"])) == [raw]


def test_a_key_that_the_image_lacks_finds_nothing() -> None:
    raw, (a, b) = deletes((1, b"x"), (1, b"y"), columns=(1,))
    assert cut(raw, KEYED) == [a, b]


def test_after_images_with_pieces_of_json_are_passed_by_their_own_length() -> None:
    with_json = table_map("t", b"\x03\xf5", b"\x04")
    model = catalog_of("CREATE TABLE t (a INT, j JSON)").tables["d", "t"]

    def document(number: int, text: bytes) -> bytes:
        return b"\0" + number.to_bytes(4, "little") + len(text).to_bytes(4, "little") + text

    whole, in_pieces = b"\0", b"\1\0"  # in pieces: a bit for each JSON column follows, here of none
    pieces = [document(1, b"x") + how + document(2, b"yy") for how in (whole, in_pieces, in_pieces, whole)]
    raw = rows_event(39, 2, bitmap((0, 1), 2) * 2, b"".join(pieces))
    parts = list(split_by_kind(run_with(with_json, raw), parse_table_map(with_json, MYSQL), model))
    head = raw[: len(raw) - 4 - sum(map(len, pieces))]
    assert parts == [head + piece + b"CRC!" for piece in pieces]
