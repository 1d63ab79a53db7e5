"""Finds the suspects, which are rows that may differ, among the rows of unequal buckets.

The hashes and keys of these rows are stored in files, divided into parts by their buckets. Then one part after the
other is read into memory, and its two sides are compared. A part has some hundred thousand rows, so numpy is enough,
without Spark. Invariant: only one part is in memory, however many rows differ. The files are removed at the end.
"""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from rplctl.durable import private_folder
from rplctl.verify.hashes import Hashes, bucket_of
from rplctl.verify.key_values import Key
from rplctl.verify.pair import RowHashes

_ROWS_OF_A_PART: Final = 300_000
_MOST_PARTS: Final = 200


class Spool:
    """The files of one side of a table: for each part, a file with hashes and a file with keys.

    The file with hashes has 16 bytes for each row: the hash of the row's key, and the hash of the row. The file with
    keys has a line of text for each row. `unequal`: for each bucket, True if its rows are stored.
    """

    def __init__(self, folder: Path, parts: int, unequal: npt.NDArray[np.bool_], opened: ExitStack) -> None:
        self._folder, self._parts, self._unequal = folder, parts, unequal
        private_folder(folder)
        self._files: list[tuple[BinaryIO, BinaryIO]] = [
            (opened.enter_context(self._path(part, "hashes").open("wb")),
             opened.enter_context(self._path(part, "keys").open("wb")))
            for part in range(parts)
        ]  # fmt: skip

    def add_all(self, batches: Iterable[RowHashes]) -> None:
        for batch in batches:
            buckets = bucket_of(batch.keys)
            numbers = np.flatnonzero(self._unequal[buckets])
            keys = batch.keys_of(numbers)
            part_of = buckets[numbers] % self._parts
            for part in np.unique(part_of).tolist():
                chosen = np.flatnonzero(part_of == part)
                pairs = np.stack([batch.keys[numbers[chosen]], batch.rows[numbers[chosen]]], axis=1)
                hashes, lines = self._files[part]
                hashes.write(pairs.tobytes())
                lines.write(b"".join(repr(keys[n]).encode() + b"\n" for n in chosen.tolist()))
        for hashes, lines in self._files:
            hashes.flush()
            lines.flush()

    def hashes(self, part: int) -> Hashes:
        return np.fromfile(self._path(part, "hashes"), np.uint64).reshape(-1, 2)

    def keys(self, part: int, wanted: npt.NDArray[np.bool_]) -> Iterator[Key]:
        with self._path(part, "keys").open("rb") as lines:
            for line, is_wanted in zip(lines, wanted.tolist(), strict=True):
                if is_wanted:
                    yield ast.literal_eval(line.decode())

    def _path(self, part: int, what: str) -> Path:
        return self._folder / f"{part}.{what}"


@contextmanager
def spools(folder: Path, rows: int, unequal: npt.NDArray[np.bool_]) -> Iterator[tuple[Spool, Spool, int]]:
    """Open the files of the source's side and of the target's side, and yield both with the number of their parts.

    `rows`: the expected number of rows on both sides together, which determines the number of parts. `unequal`: True
    for each bucket whose rows are stored.
    """
    parts = min(_MOST_PARTS, 1 + rows // _ROWS_OF_A_PART)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        with ExitStack() as opened:
            yield (Spool(folder / "source", parts, unequal, opened), Spool(folder / "target", parts, unequal, opened),
                   parts)  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def suspects(source: Spool, target: Spool, part: int) -> list[Key]:
    """Return the keys of the rows in this part that have no equal row on the other side.

    The keys of the source's rows come before those of the target's rows. Each key is returned once.
    """
    ours, theirs = (_joined(side.hashes(part)) for side in (source, target))
    found: dict[Key, Any] = dict.fromkeys(source.keys(part, ~np.isin(ours, theirs)))
    found.update(dict.fromkeys(target.keys(part, ~np.isin(theirs, ours))))
    return list(found)


def uneven(source: Spool, target: Spool, part: int) -> set[int]:
    """Return the hashes of the rows that one side has more often than the other side, in a table without a key."""
    ours, theirs = (_counts(side.hashes(part)[:, 1]) for side in (source, target))
    return {value for value in ours.keys() | theirs.keys() if ours.get(value) != theirs.get(value)}


def _counts(hashes: Hashes) -> dict[int, int]:
    values, counts = np.unique(hashes, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def _joined(pairs: Hashes) -> Hashes:
    joined: Hashes = pairs[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ pairs[:, 1]
    return joined
