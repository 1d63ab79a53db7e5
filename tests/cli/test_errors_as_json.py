"""With --json an error is one object on standard error, whoever raises it; with -q another process's lock is silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.config import Config
from tests.cli.program import Program
from tests.cli.terminal import on_terminal


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    change_master(Config(tmp_path / "instance"), "", MasterChanges(master_host="db1"))
    return Program(tmp_path / "instance", capsys)


@pytest.mark.parametrize(
    ("line", "errno", "code"),
    [
        ("skip many --json", 0, 2),
        ("skip --no-such-option --json", 0, 2),
        ("--json no-such-verb", 0, 2),
        ("--format json skip -1", 0, 2),
        ("-f json show-status --channel none", 3074, 4),
        ("reset --json", 0, 2),
    ],
)
def test_an_error_is_one_object(program: Program, line: str, errno: int, code: int) -> None:
    done = program(*line.split())
    error = json.loads(done.err)
    assert list(error) == ["Errno", "Error", "Hint", "Channel_Name", "Position", "Exit_Code"]
    assert (error["Errno"], error["Exit_Code"], done.code) == (errno, code, code) and error["Error"]


def test_check_that_cannot_look_prints_a_verdict_with_json_too(tmp_path: Path, program: Program) -> None:
    (program.datadir / "rplctl.toml").write_text("target = 7")
    done = program("check", "--json")
    (verdict,) = json.loads(done.out)
    assert (verdict["level"], done.code) == ("UNKNOWN", 3)


def test_a_run_that_meets_another_one_is_silent_when_it_is_quiet(program: Program) -> None:
    with hold_lock(Channel("", program.datadir), "admin"):
        done = program("-q", "start", "--until-synced")
        assert (done.code, done.out, done.err) == (75, "", "")
        assert "held by process" in program("start", "--until-synced").err


def test_check_folds_and_colours_for_a_person(program: Program) -> None:
    done = on_terminal(program.datadir, "check", columns=50, plain=False)
    assert "\x1b[1;31mCRITICAL\x1b[0m never_started" in done.out
    plain = on_terminal(program.datadir, "check", columns=50)
    assert all(len(line) <= 50 for line in plain.out.splitlines())
