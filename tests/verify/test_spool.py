"""Rows of unequal buckets are joined part by part: what one side lacks or has otherwise is suspect, nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rplctl.verify.hashes import Buckets, hash_values
from rplctl.verify.pair import RowHashes
from rplctl.verify.spool import spools, suspects, uneven


def batch(rows: list[tuple[int, str]]) -> RowHashes:
    keys = [(number,) for number, _ in rows]
    return RowHashes(
        keys=hash_values(keys), rows=hash_values(rows), keys_of=lambda numbers: [keys[n] for n in numbers.tolist()]
    )


def test_what_differs_is_suspect_in_whatever_order_it_comes(tmp_path: Path) -> None:
    rows = [(number, f"v{number}") for number in range(5000)]
    others = [(n, "other" if n == 7 else v) for n, v in reversed(rows) if n != 9] + [(9000, "more")]
    ours, theirs = Buckets(), Buckets()
    for side, found in ((ours, batch(rows)), (theirs, batch(others))):
        side.add(found.keys, found.rows)
    unequal = ours.unequal(theirs)
    assert (ours.rows, theirs.rows) == (5000, 5000) and 1 <= int(unequal.sum()) <= 3
    with spools(tmp_path / "spool", 10**6, unequal) as (one, other, parts):
        assert parts > 1
        for spool, all_rows in ((one, rows), (other, others)):
            spool.add_all([batch(all_rows[:2000]), batch(all_rows[2000:])])
        found_keys = {key for part in range(parts) for key in suspects(one, other, part)}
    assert found_keys == {(7,), (9,), (9000,)} and not (tmp_path / "spool").exists()


def test_without_a_key_rows_are_counted(tmp_path: Path) -> None:
    hashes = hash_values(["a", "a", "b"])
    plain = RowHashes(keys=hashes, rows=hashes, keys_of=lambda numbers: [()] * len(numbers))
    fewer = RowHashes(keys=hashes[1:], rows=hashes[1:], keys_of=lambda numbers: [()] * len(numbers))
    with spools(tmp_path / "spool", 5, np.ones(4096, np.bool_)) as (one, other, _):
        one.add_all([plain])
        other.add_all([fewer])
        assert uneven(one, other, 0) == {int(hashes[0])}
