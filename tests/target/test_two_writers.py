"""Processes that claim one batch of a lake at the same instant: one has it, and the others are told so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rplctl.target.delta.place import Place
from rplctl.target.delta.tables import DeltaTables
from rplctl.target.lake import LakeTables
from rplctl.target.parquet.place import ParquetPlace
from rplctl.target.parquet.tables import ParquetTables

ROUNDS = 15
WRITERS = 3
CODE = """
import json, sys, time
from pathlib import Path
from rplctl.errors import LockBusy
from tests.target.test_two_writers import ROUNDS, tables_of

kind, folder, mark, begin = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
tables, won = tables_of(kind, folder), []
tables.claimed("rplctl/other")  # what a first call loads is loaded
for batch in range(1, ROUNDS + 1):
    while time.time() < begin + 0.3 * batch:
        pass
    try:
        tables.claim("rplctl/c", batch, mark)
        won.append(batch)
    except LockBusy:
        pass
print(json.dumps(won))
"""


def tables_of(kind: str, folder: Path) -> LakeTables:
    where = str(folder / "lake"), str(folder / "state.db")
    return DeltaTables(Place(*where)) if kind == "delta" else ParquetTables(ParquetPlace(*where))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_of_writers_at_the_same_instant_one_has_the_batch(kind: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    begin = str(time.time() + 4)  # seconds to start a Python
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, kind, str(tmp_path), str(mark), begin], stdout=subprocess.PIPE, text=True
        )
        for mark in range(1, 1 + WRITERS)
    ]
    won = []
    for writer in writers:
        told, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0
        won += json.loads(told)
    assert sorted(won) == [*range(1, 1 + ROUNDS)]
    assert tables_of(kind, tmp_path).claimed("rplctl/c") == ROUNDS
