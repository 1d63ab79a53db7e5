"""Compares checksums that both servers compute, so that verify need not read the rows of equal pieces of a table.

This works if the source and the target define the table alike.

    row      CRC32 of its cells as text × (CRC32 of its key + 1), so that two rows that swap a value do not cancel out
    piece    the number of its rows, and the XOR of their checksums
    bucket   one of 4,096 parts of an unequal piece, selected by the CRC32 of the key, with the same values as a piece

Both servers compute a piece at the same time, so that few rows change in between. If the servers print an equal value
differently, the rows of the bucket are read and compared, which only costs time. Invariant: no type is printed with a
loss, so a differing row is missed only with a probability of 2^-32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rplctl.errors import RplError
from rplctl.schema.bounds import Chunk, chunk_key, condition
from rplctl.schema.model import BINARY_TYPES, CHARACTER_TYPES, INTEGER_BITS, TEMPORAL_TYPES, Column
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import NOTHING, Sql, joined, written
from rplctl.verify.pair import Pair
from rplctl.verify.progress import PiecesDone, UnequalRows
from rplctl.verify.source_side import SourceSessions, TablePiece, pieces

Ask = Callable[[Sql], Sequence[tuple[Any, ...]]]
_MOST_BUCKETS = 2048  # if more buckets of a piece are unequal, all of its rows are read


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum:
    """SQL expressions for the 64-bit checksum of a row (`row`), and for the CRC32 of its key (`key`)."""

    pair: Pair
    row: Sql
    key: Sql

    @classmethod
    def of(cls, pair: Pair) -> RowSum | None:
        """Return the expressions for a table. Return None if the servers cannot compute comparable checksums.

        Both servers must be MySQL or MariaDB, define the compared columns alike, and have the same indexed key. Each
        column's type must have an exact text form (`_text`).
        """
        columns = list(zip(pair.source.columns[: pair.width], pair.target.columns, strict=False))
        texts = [_text(one, other) if _are_alike(one, other) else NOTHING for one, other in columns]
        key = chunk_key(pair.source)
        if not pair.is_of_servers or not pair.key or key != chunk_key(pair.target) or not all(texts):
            return None
        number = written("CRC32({})", _joined([texts[c] for c in pair.key]))
        row = written("CRC32({}) * ({} + 1)", _joined(texts), number)
        return cls(pair=pair, row=row, key=number)

    def where(self, unequal: UnequalRows) -> Sql:
        """Return the text ` WHERE …` that selects these rows on the source and on the target.

        Raises RplError if a bound of the selection does not match the key.
        """
        piece = condition(chunk_key(self.pair.source), Chunk(unequal.after, unequal.upto))
        if not unequal.buckets:
            return piece
        numbers = joined(", ", [written("{}", int(bucket)) for bucket in unequal.buckets])
        chosen = written("({} & 4095) IN ({})", self.key, numbers)
        return written("{} AND {}", piece, chosen) if piece else written(" WHERE {}", chosen)


def unequal_rows(  # noqa: PLR0913 - all things that the comparison of a table needs
    source: SourceSessions, target: Ask, by: RowSum, max_load: int, moved: Callable[[int], None], done: PiecesDone
) -> tuple[int, list[UnequalRows]]:
    """Compare the checksums of all pieces of a table.

    Return the number of the source's rows, and selections that contain all rows with different checksums. `target` runs
    a query on the target. `by`: the expressions for the checksums. `max_load`: see `pieces`. `moved` is called with the
    number of rows that both servers summed. `done`: the part of the table that an earlier verify has finished. Raises
    SourceError if the source and TargetError if the target reports an error.
    """
    pair = by.pair
    forget_foreign_bounds(by, done)
    rows, found = done.rows, list(done.unlike)
    names = [quote(model.database, model.name) for model in (pair.source, pair.target)]
    todo = pieces(source, pair.source, max_load, done.upto)
    with ThreadPoolExecutor(2, "rplctl-verify") as threads:

        def both(what: Sql, behind: Sql) -> tuple[Sequence[tuple[Any, ...]], Sequence[tuple[Any, ...]]]:
            begun = threads.submit(target, written("SELECT {} FROM {}{}", what, names[1], behind))
            return source.query(written("SELECT {} FROM {}{}", what, names[0], behind)), begun.result()

        piece = next(todo, None)
        while piece is not None:
            following = threads.submit(next, todo, None)
            ours, theirs = both(written("COUNT(*), BIT_XOR({})", by.row), piece.where)
            rows += ours[0][0]
            moved(ours[0][0] + theirs[0][0])
            if tuple(ours[0]) != tuple(theirs[0]):
                what = written("{} & 4095, COUNT(*), BIT_XOR({})", by.key, by.row)
                found += _unequal(*both(what, written("{} GROUP BY 1", piece.where)), piece)
            if piece.chunk.upto is not None:
                done.keep(piece.chunk.upto, rows, found)
            piece = following.result()
    return rows, found


def forget_foreign_bounds(by: RowSum, done: PiecesDone) -> None:
    """Discard the finished part of the table if the progress file has a bound that rplctl would not write.

    Somebody may have edited this file, and the bounds become part of SQL statements.
    """
    try:
        for unequal in (UnequalRows(after=None, upto=done.upto, buckets=(), rows=0), *done.unlike):
            by.where(unequal)
    except RplError:
        done.forget()


def _unequal(
    ours: Iterable[tuple[Any, ...]], theirs: Iterable[tuple[Any, ...]], piece: TablePiece
) -> list[UnequalRows]:
    """Compare the buckets of a piece, and return a selection of the unequal buckets' rows.

    The result is [] if the piece has become equal meanwhile. `ours`, `theirs`: the bucket, the number of rows and the
    checksum, for each bucket of the source and of the target.
    """
    one, other = ({int(bucket): found for bucket, *found in side} for side in (ours, theirs))
    buckets = [bucket for bucket in one.keys() | other.keys() if one.get(bucket) != other.get(bucket)]
    if not buckets:
        return []
    rows = sum(side[bucket][0] for side in (one, other) for bucket in buckets if bucket in side)
    chosen = tuple(sorted(buckets)) if len(buckets) <= _MOST_BUCKETS else ()
    return [UnequalRows(after=piece.chunk.after, upto=piece.chunk.upto, buckets=chosen, rows=int(rows))]


def _are_alike(one: Column, other: Column) -> bool:
    same = (one.name, one.type, one.charset, one.labels) == (other.name, other.type, other.charset, other.labels)
    return same and one.unsigned == other.unsigned


def _text(column: Column, other: Column) -> Sql:
    """Return SQL that converts a column's value to text.

    The result is '' if no exact text exists for the column's type. Different values have different texts, but for a
    string or JSON, the text is only its CRC32. `other`: the same column on the other side. A NULL needs a text if
    either column can be NULL. No text contains '#', which separates columns.
    """
    name, kind = quote(column.name), column.type
    if kind in ("enum", "set", "bit"):
        text = written("CAST({} AS UNSIGNED)", name)
    elif kind in CHARACTER_TYPES or kind in BINARY_TYPES:
        text = written("CRC32({})", name)
    elif kind == "json":
        text = written("CRC32(CAST({} AS CHAR))", name)
    elif kind in ("float", "double"):
        text = written("({} * 1e0)", name)  # prints all digits of a DOUBLE (a FLOAT prints six), and keeps -0
    elif kind in INTEGER_BITS or kind in ("decimal", "year"):
        text = name
    elif kind in TEMPORAL_TYPES or kind in ("inet4", "inet6", "uuid"):
        text = written("CAST({} AS CHAR)", name)
    else:
        return NOTHING
    return written("IFNULL({}, 'N')", text) if column.nullable or other.nullable else text


def _joined(texts: Sequence[Sql]) -> Sql:
    return texts[0] if len(texts) == 1 else written("CONCAT_WS('#', {})", joined(", ", texts))
