"""`history`: what the commands and threads wrote, filtered and bounded, in every layout."""

from __future__ import annotations

import json
import time

import pytest

from rplctl.history import HISTORY, note_event
from tests.cli.program import Program
from tests.cli.terminal import on_terminal


@pytest.fixture
def lived(configured: Program) -> Program:
    configured("skip", "1", "--yes")
    note_event(configured.datadir, "", "error", "Duplicate entry", thread="applier", errno=1062, position="b.000001:4")
    note_event(configured.datadir, "Other", "stop", "applier")
    configured("backup", str(configured.datadir.with_name("copy")))
    return configured


def events(program: Program, *arguments: str) -> list[str]:
    return [row["Event"] for row in json.loads(program("history", *arguments, "--json").out)]


def test_it_prints_what_happened_the_oldest_first(lived: Program) -> None:
    assert events(lived) == ["change-master", "skip", "error", "stop", "backup"]
    assert events(lived, "--last", "2") == ["stop", "backup"]
    assert events(lived, "--channel", "") == ["change-master", "skip", "error"]
    assert events(lived, "--channel", "other") == ["stop"]
    assert events(lived, "--since", "1d", "--last", "0") == events(lived)
    rows = json.loads(lived("history", "--json").out)
    assert " from " in rows[1]["Done_By"] and rows[2]["Done_By"] == "" and rows[4]["Channel_Name"] is None


def test_since_leaves_out_what_is_older(lived: Program) -> None:
    path = lived.datadir / HISTORY
    year = time.strftime("%Y")
    path.write_text(path.read_text().replace(f'"Time": "{year}', '"Time": "2020', 2))
    assert events(lived, "--since", "7d") == ["error", "stop", "backup"]


def test_an_event_is_a_line_on_a_terminal_and_in_a_pipe(lived: Program) -> None:
    lines = lived("history").out.splitlines()
    assert lines[0].split("\t")[:3] == ["Time", "Channel_Name", "Event"] and len(lines) == 6
    seen = on_terminal(lived.datadir, "history", columns=80).out.splitlines()
    assert len(seen) == 5 and all(len(line) <= 80 for line in seen)
    assert seen[2].endswith("''  applier error 1062 at b.000001:4  Duplicate entry")
    assert seen[0].endswith("…") and "instance  backup" in seen[4]
    assert "Event: error" in on_terminal(lived.datadir, "history", "-E", columns=80).out


def test_what_is_mistyped_is_refused(configured: Program) -> None:
    assert configured("history", "--last", "-1").code == 2
    assert configured("history", "--since", "yesterday").code == 2


def test_nothing_yet_is_nothing(program: Program) -> None:
    done = program("history", "--json")
    assert (done.code, done.out.strip()) == (0, "[]")
