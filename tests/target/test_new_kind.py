"""A new kind of target needs its folder and its line in the registry: commands never need to know its name."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rplctl.command.crash_test import crash_test
from rplctl.target.registry import KINDS, TargetKind
from tests.cli.program import Program

MASTER = ("--master-host", "127.0.0.1", "--master-port", "1", "--master-user", "r", "--master-log-file", "b.000001")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "toy", TargetKind(folder="tests.target.toy", is_file=True))


def test_a_new_kind_holds_the_repository_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, file = Program(tmp_path / "instance", capsys), tmp_path / "t.db"
    tables = ("--master-info-repository", "TABLE", "--relay-log-info-repository", "TABLE")
    for words in (("init", "--target", f"toy:///{file}", *tables), ("change-master", *MASTER)):
        done = program(*words)
        assert done.code == 0, done.err
    with closing(sqlite3.connect(file)) as stored:
        assert stored.execute("SELECT Host, Port FROM slave_master_info").fetchall() == [("127.0.0.1", 1)]
    assert json.loads(program("show-status", "--json").out)[0]["Master_Host"] == "127.0.0.1"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["transaction", "marker"])
def test_crash_test_walks_a_new_kind_that_is_a_file(mode: str) -> None:
    lines = crash_test("toy:///", points=["crash_commit_before"], modes=[mode], kinds=["transaction"])
    assert [(line.Target, line.Seen, line.Result) for line in lines] == [("toy", "rolled back", "OK")]
