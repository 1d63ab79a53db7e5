"""fsync-report as it is typed: layout, exit code, a wrong number."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.program import Program


def test_every_variant_is_listed_and_nothing_measured_is_no_failure(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    done = program("fsync-report", "--json")
    rows = json.loads(done.out)
    assert (done.code, sorted({row["Variant"] for row in rows})) == (0, ["-", "1", "2", "3", "4", "5"])
    assert all(row["Counted"] is None and row["Note"] for row in rows)


def test_a_wrong_number_of_transactions_is_refused(program: Program) -> None:
    done = program("fsync-report", "--transactions", "0")
    assert (done.code, "1 to 10000" in done.err) == (2, True)
