"""Sums of a table that both servers make themselves, where both define it alike: of equal pieces no row leaves them.

    row      CRC32 of its cells as text × (CRC32 of its key + 1): two rows that swap a value do not even out
    piece    how many rows, and their 64 bits XORed; of an unequal one the same by 4,096 buckets of the key's CRC32

Both read a piece at the same time, so that few rows are under way between them. What a server prints otherwise of the
same value only costs time: rows of unequal buckets are read. Invariant: no type is printed with a loss, so a row that
differs is passed over with a chance of 2^-32 and not otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rplctl.clone.bounds import Chunk, chunk_key, condition
from rplctl.errors import RplError
from rplctl.schema.model import BINARY_TYPES, CHARACTER_TYPES, INTEGER_BITS, TEMPORAL_TYPES, Column
from rplctl.schema.source_catalog import quote
from rplctl.sql_text import NOTHING, Sql, joined, written
from rplctl.verify.pair import Pair
from rplctl.verify.progress import PiecesDone, UnequalRows
from rplctl.verify.source_side import Source, TablePiece, pieces

Ask = Callable[[Sql], Sequence[tuple[Any, ...]]]
_MOST_BUCKETS = 2048  # of a piece, before all of its rows are read


@dataclass(frozen=True, slots=True)
class RowSum:
    """SQL of 64 bits of a row, and of a number of its key."""

    pair: Pair
    row: Sql
    key: Sql

    @classmethod
    def of(cls, pair: Pair) -> RowSum | None:
        """None where the two are not defined alike, or have no key that both have an index of."""
        columns = list(zip(pair.source.columns[: pair.width], pair.target.columns, strict=False))
        texts = [_text(one, other) if _are_alike(one, other) else NOTHING for one, other in columns]
        key = chunk_key(pair.source)
        if not pair.is_of_servers or not pair.key or key != chunk_key(pair.target) or not all(texts):
            return None
        number = written("CRC32({})", _joined([texts[c] for c in pair.key]))
        return cls(pair, written("CRC32({}) * ({} + 1)", _joined(texts), number), number)

    def where(self, unequal: UnequalRows) -> Sql:
        """` WHERE …` of them on both sides. Raises RplError for a bound that is none of the key's."""
        piece = condition(chunk_key(self.pair.source), Chunk(unequal.after, unequal.upto))
        if not unequal.buckets:
            return piece
        numbers = joined(", ", [written("{}", int(bucket)) for bucket in unequal.buckets])
        chosen = written("({} & 4095) IN ({})", self.key, numbers)
        return written("{} AND {}", piece, chosen) if piece else written(" WHERE {}", chosen)


def unequal_rows(  # noqa: PLR0913 - what a comparison takes
    source: Source, target: Ask, by: RowSum, max_load: int, moved: Callable[[int], None], done: PiecesDone
) -> tuple[int, list[UnequalRows]]:
    """How many rows the source has, and which are not alike. `moved`: is told of rows that were read. `done`: by a
    verify that was killed. Raises SourceError, TargetError.
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
    """Begin the table again if the file's bounds are not those that rplctl wrote."""
    try:
        for unequal in (UnequalRows(after=None, upto=done.upto, buckets=(), rows=0), *done.unlike):
            by.where(unequal)
    except RplError:
        done.forget()


def _unequal(
    ours: Iterable[tuple[Any, ...]], theirs: Iterable[tuple[Any, ...]], piece: TablePiece
) -> list[UnequalRows]:
    """Return the rows of a piece that differ by now: none, or the rows of some buckets."""
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
    """SQL of a text without '#' that tells values apart; '' of a type that has none."""
    name, kind = quote(column.name), column.type
    if kind in ("enum", "set", "bit"):
        text = written("CAST({} AS UNSIGNED)", name)
    elif kind in CHARACTER_TYPES or kind in BINARY_TYPES:
        text = written("CRC32({})", name)
    elif kind == "json":
        text = written("CRC32(CAST({} AS CHAR))", name)
    elif kind in ("float", "double"):
        text = written("({} * 1e0)", name)  # all digits of a DOUBLE; a FLOAT by itself shows six; -0 stays
    elif kind in INTEGER_BITS or kind in ("decimal", "year"):
        text = name
    elif kind in TEMPORAL_TYPES or kind in ("inet4", "inet6", "uuid"):
        text = written("CAST({} AS CHAR)", name)
    else:
        return NOTHING
    return written("IFNULL({}, 'N')", text) if column.nullable or other.nullable else text


def _joined(texts: Sequence[Sql]) -> Sql:
    return texts[0] if len(texts) == 1 else written("CONCAT_WS('#', {})", joined(", ", texts))
