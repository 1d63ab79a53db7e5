"""Every verb × every option × what a tired hand types: one clear error with a way on, no traceback, nothing changed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from rplctl.cli.app import VERBS
from tests.cli.program import Outcome, Program, whole_program

pytestmark = pytest.mark.slow

LONG = "x" * 5000
MOVES = "\x1b[31mred\nand more"  # a terminal would obey
WIDE = "１"  # a digit in another script: int() and float() take it
BEYOND = "9223372036854775808"
LOOKS_ALIKE = "fіle"
NOT_TEXT = "\udcff"  # a byte that is no UTF-8, as Python hands it over
VALUES = ["", " ", LONG, MOVES, WIDE, "-1", BEYOND, "1e400", "nan", "../../x", LOOKS_ALIKE, NOT_TEXT, "%s", "1_0"]
NEEDED = {
    "skip": ["--yes"],
    "switch-repo": ["--to", "file"],
    "wait": ["--state", "stopped"],
    "reset": ["--yes"],
    "export-info": ["--server", "mariadb"],
    "import-info": ["--yes"],
    "crash-test": ["--points", "none", "--kinds", "none"],
    "start": ["--channel", "none"],  # nothing is to start
    "serve": ["--listen", "none"],  # else it goes on for ever
    "show-status": ["--channel", "none"],
}
NOT_HERE = {"demo", "restore"}  # a new folder is all they take; tests/cli/test_backup.py
EXIT_CODES = {0, 2, 4, 78}
MORE_CODES = {"check": {3}, "crash-test": {1, 3}, "clone": {6}, "heartbeat": {6}, "verify": {3, 6}}
MORE_CODES |= dict.fromkeys(("backup", "export-info", "import-info", "doctor"), {1})
NUMBERS = ("N", "S", "SECONDS", "POS")
PARAMETERS: list[tuple[str, Any]] = [
    (verb, parameter)
    for verb in VERBS
    if verb not in NOT_HERE
    for parameter in whole_program().commands[verb].params
    if not getattr(parameter, "is_flag", False) and parameter.name not in ("command", "password_on_argv")
]


def contents(folder: Path) -> dict[str, bytes]:
    """Without what looking leaves: locks, and the key that a password is tried with."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".lock", ".key"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def line(verb: str, parameter: Any, value: str) -> list[str]:
    flag = parameter.opts[0]
    words = list(NEEDED.get(verb, []))
    if not flag.startswith("-"):
        return [verb, *words, "--", value]
    if flag in words:
        del words[words.index(flag) : words.index(flag) + 2]
    return [verb, *words, f"{flag}={value}"]


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in NOT_HERE])
@pytest.mark.parametrize(
    "every", [5, pytest.param(1, marks=pytest.mark.long("Each option meets a fifth of the values in make test."))]
)
def test_a_wrong_value_has_one_error_with_a_way_on_and_changes_nothing(
    configured: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, every: int
) -> None:
    monkeypatch.chdir(tmp_path)
    configured("change-master", "--master-host", "127.0.0.1", "--master-port", "1")  # no name server is asked
    made = tmp_path / "made"
    shutil.copytree(configured.datadir, made)
    for number, parameter in enumerate(p for name, p in PARAMETERS if name == verb):
        for value in VALUES[number % every :: every]:
            if verb == "start" and parameter.name == "channel" and not value:
                continue  # the default channel: that would start it
            before = contents(configured.datadir)
            done = configured(*line(verb, parameter, value))
            judge(done, verb, parameter, value)
            if done.code:
                assert contents(configured.datadir) == before, (verb, parameter.name, value, done)
            elif contents(configured.datadir) != before:
                shutil.rmtree(configured.datadir)
                shutil.copytree(made, configured.datadir)
    configured("unlock-instance")
    configured("unlock-tables")


def judge(done: Outcome, verb: str, parameter: Any, value: str) -> None:
    where = f"{verb} {parameter.opts[0]} {value[:40]!r}: {done.code}\n{done.err[:2000]}"
    assert done.code in EXIT_CODES | MORE_CODES.get(verb, set()), where
    assert "Traceback" not in done.err and "is a bug" not in done.err, where
    assert "\x1b" not in done.err + done.out, where
    assert len(done.err) < 3000, where
    if parameter.metavar in NUMBERS and value in (WIDE, BEYOND, "-1", "1e400", "nan", "1_0", " "):
        assert done.code, f"taken: {where}"
    if done.code and verb not in ("check", "doctor"):
        assert done.err.count("ERROR") + done.err.count("Error: ") == 1, where
        assert "hint: " in done.err or "Try 'rplctl" in done.err, where
        assert done.out == "", where


def test_the_options_of_another_command_are_its_own(configured: Program) -> None:
    done = configured("lock-instance", "--", sys.executable, "-c", "", "--slave-parallel-workers=4")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("verb", list(VERBS))
def test_an_option_that_is_none_is_named_with_where_the_others_are(configured: Program, verb: str) -> None:
    before = contents(configured.datadir)
    for wrong in ("--no-such-option", "--no-such-option=1", "-Z", f"--{LONG}", f"--{MOVES}", "——json"):
        done = configured(verb, wrong)
        assert done.code in (2, 4) and "Traceback" not in done.err and "\x1b" not in done.err, (verb, wrong, done)
        assert "Try 'rplctl" in done.err or "hint: " in done.err, (verb, wrong, done)
    assert contents(configured.datadir) == before
