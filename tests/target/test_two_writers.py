"""Processes that claim one batch of a lake at the same instant: one has it, and the others are told so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rplctl.target.delta import place as delta
from rplctl.target.delta.tables import DeltaTables
from rplctl.target.lake import LakeTables
from rplctl.target.parquet import place as parquet
from rplctl.target.parquet.tables import ParquetTables
from tests.kit.bucket import BUCKET, KEYS, bucket_server, words_of

ROUNDS = 15
WRITERS = 3
CODE = """
import json, sys, time
from rplctl.errors import LockBusy
from tests.target.test_two_writers import ROUNDS, tables_of

url, mark, begin = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
tables, won = tables_of(url), []
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


def tables_of(url: str) -> LakeTables:
    if url.startswith("parquet"):
        return ParquetTables(parquet.place_of(url))
    return DeltaTables(delta.place_of(url))


def one_has_each_batch(url: str) -> None:
    begin = str(time.time() + 4)  # seconds to start a Python
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, url, str(mark), begin],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **KEYS},
        )
        for mark in range(1, 1 + WRITERS)
    ]
    won = []
    for writer in writers:
        told, _ = writer.communicate(timeout=120)
        assert writer.returncode == 0
        won += json.loads(told)
    assert sorted(won) == [*range(1, 1 + ROUNDS)]


@pytest.mark.long("Two writers of one channel at the same instant are rare: a lock keeps the second out.")
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_of_writers_at_the_same_instant_one_has_the_batch(kind: str, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    url = f"{kind}+file://{tmp_path / 'lake'}?state={tmp_path / 'state.db'}"
    one_has_each_batch(url)
    assert tables_of(url).claimed("rplctl/c") == ROUNDS


@pytest.mark.long("Two writers of one lake at the same instant are rare.")
@pytest.mark.slow
def test_of_writers_at_the_same_instant_one_has_the_batch_in_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with bucket_server(tmp_path) as address:
        url = f"delta+s3://{BUCKET}/copy?state={tmp_path / 'state.db'}&{words_of(address)}"
        one_has_each_batch(url)
        assert tables_of(url).claimed("rplctl/c") == ROUNDS
