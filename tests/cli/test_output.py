"""The same result on a terminal and in a pipe: readable here, cut and parsed there, never truncated in either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rplctl.cli.globals import Globals
from rplctl.cli.output import many, report, say, say_notes, show_rows
from rplctl.command.channel.context import Note
from rplctl.command.flush_relay_logs import FlushResult
from rplctl.errors import RplError
from tests.cli.program import Program
from tests.cli.terminal import on_terminal

pytestmark = pytest.mark.slow

LONG = "x" * 150


@pytest.fixture
def two_channels(configured: Program) -> Program:
    configured("change-master", "--channel", "east", "--master-host", f"{'h' * 60}.example.org")
    return configured


def test_a_terminal_gets_a_table_without_tabs_and_a_pipe_gets_tabs(configured: Program) -> None:
    piped = configured("show-channels").out
    seen = on_terminal(configured.datadir, "show-channels", columns=140).out
    assert piped.splitlines()[1].split("\t")[1] == "db1:3306"
    assert "\t" not in seen and "db1:3306" in seen and "Slave_SQL_Running" in seen


def test_colour_is_for_terminals_and_can_be_had_and_refused(configured: Program) -> None:
    assert "\x1b" not in configured("show-channels").out
    assert "\x1b[" in on_terminal(configured.datadir, "show-channels", columns=140, plain=False).out
    never = on_terminal(configured.datadir, "show-channels", "--color", "never", columns=140, plain=False).out
    assert "\x1b" not in never and "Slave_SQL_Running" in never
    assert "\x1b[" in configured("-f", "table", "show-channels", "--color", "always").out


ENVIRONMENTS: list[tuple[dict[str, str], tuple[str, ...], bool, bool]] = [  # …, colour on a terminal, in a pipe
    ({}, (), True, False),
    ({"NO_COLOR": "1"}, (), False, False),
    ({"NO_COLOR": ""}, (), True, False),
    ({"FORCE_COLOR": "1"}, (), True, True),
    ({"FORCE_COLOR": "0"}, (), True, False),
    ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False, False),
    ({"TERM": "dumb"}, (), False, False),
    ({"TERM": "dumb", "FORCE_COLOR": "1"}, (), True, True),
    ({"NO_COLOR": "1"}, ("--color", "always"), True, True),
    ({"FORCE_COLOR": "1"}, ("--color", "never"), False, False),
]


@pytest.mark.parametrize(("environment", "flags", "on_screen", "in_pipe"), ENVIRONMENTS, ids=str)
def test_the_environment_decides_on_colour_in_tables_and_errors_alike(
    configured: Program,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    flags: tuple[str, ...],
    on_screen: bool,
    in_pipe: bool,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm"} | environment).items():
        monkeypatch.setenv(name, value)
    for is_terminal, expected in ((True, on_screen), (False, in_pipe)):
        monkeypatch.setattr("sys.stdout.isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal, raising=False)
        table = configured("-f", "table", "show-channels", *flags).out
        assert ("\x1b[" in table) == expected, table
        failed = configured("wait", *flags)
        assert (failed.code, "\x1b[" in failed.err) == (2, expected), failed.err
        assert "ERROR" in failed.err and "wait requires" in failed.err
        if not is_terminal:
            assert "\x1b" not in configured("show-channels", *flags).out, "a script reads it"
            assert configured("show-channels", "--json", *flags).out.startswith("[{")


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_no_value_is_cut_off_however_narrow_the_terminal(two_channels: Program, columns: int) -> None:
    seen = on_terminal(two_channels.datadir, "show-channels", columns=columns).out
    for name in ("Slave_IO_Running", "Slave_SQL_Running", "Seconds_Behind_Master", f"{'h' * 60}.example.org:3306"):
        assert name in seen
    assert seen.startswith("****") == (columns < 200)  # too wide for a table: the layout of \\G


def test_prose_is_folded_on_a_narrow_terminal_and_whole(configured: Program) -> None:
    seen = on_terminal(configured.datadir, "doctor", columns=80).out
    assert "****" not in seen, "a table is easier to read than eleven blocks"
    assert max(map(len, seen.splitlines())) <= 80
    piped = json.loads(configured("doctor", "--json").out)
    squeezed = "".join(seen.split())
    for row in piped:
        assert "".join(row["Check"].split()) in squeezed
    packages = next(row for row in piped if row["Check"] == "packages")
    assert all(word.strip() in squeezed for word in packages["Detail"].split(","))


def test_one_channels_status_is_vertical_on_a_terminal_too(configured: Program) -> None:
    seen = on_terminal(configured.datadir, "show-status").out
    assert seen == configured("show-status").out


def test_a_pipe_never_wraps(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(Globals(datadir=Path("/d")), ("A", "B"), [{"A": LONG, "B": LONG}])
    assert capsys.readouterr().out == f"A\tB\n{LONG}\t{LONG}\n"


def test_results_go_to_stdout_and_notes_to_stderr_and_quiet_drops_both(
    configured: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    options, quiet = Globals(datadir=configured.datadir), Globals(datadir=configured.datadir, quiet=True)
    for chosen in (options, quiet):
        say(chosen, "done\x1b[2J", {})
        say_notes(chosen, [Note("are already running.", 3083), Note("no number")])
        shown = capsys.readouterr()
        if chosen is quiet:
            assert (shown.out, shown.err) == ("", "")
        else:
            assert shown.out == "done\\x1b[2J\n"
            assert shown.err == "Note 3083: are already running.\nNote: no number\n"


def test_with_json_a_changing_command_answers_in_json_even_when_quiet(
    configured: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    say(Globals(datadir=configured.datadir, format="json", quiet=True), "done", FlushResult("x", asked_receiver=True))
    assert json.loads(capsys.readouterr().out) == [{"Channel_Name": "x", "Asked_Receiver": True}]


@pytest.mark.long("One of the words stays.", keeps=r"^yes")
@pytest.mark.parametrize("typed", ["y\n", "yes\n", "Y\n"])
def test_a_terminal_is_asked_and_yes_means_yes(configured: Program, typed: str) -> None:
    done = on_terminal(configured.datadir, "reset", typed=typed)
    assert done.code == 0 and "Channel '' is reset: its position is removed. [y/N]" in done.out
    assert "channel '' reset, 0 relay logs removed" in done.out


def test_anything_else_means_no_and_nothing_is_changed(configured: Program) -> None:
    before = (configured.datadir / "master.info").read_bytes()
    done = on_terminal(configured.datadir, "reset", typed="\n")
    assert done.code == 2 and "was not confirmed, and nothing was changed" in done.out
    assert (configured.datadir / "master.info").read_bytes() == before


@pytest.mark.parametrize(("count", "text"), [(0, "0 relay logs"), (1, "1 relay log"), (2, "2 relay logs")])
def test_one_is_one(count: int, text: str) -> None:
    assert many(count, "relay log") == text


def test_every_layout_shows_the_same_values(configured: Program) -> None:
    rows = json.loads(configured("show-channels", "--json").out)
    for flags in (["-f", "tsv"], ["-f", "table"], ["-E"]):
        out = configured("show-channels", *flags).out
        for name, value in rows[0].items():
            assert name in out and (value is None or str(value) in out)


def test_the_steps_of_a_dry_run_are_lines_of_their_own(configured: Program) -> None:
    done = configured("rename-channel", "", "shop", "--dry-run")
    first, *steps = done.out.splitlines()
    assert first == "channel '' would be renamed to 'shop'" and len(steps) > 3 and "\\n" not in done.out


def test_each_way_out_of_a_hint_has_its_own_line(capsys: pytest.CaptureFixture[str]) -> None:
    report(RplError("The table is missing", hint="rplctl clone --tables a.b\nor make the table\tby hand"))
    assert capsys.readouterr().err.splitlines()[1:] == [
        "hint: rplctl clone --tables a.b",
        "      or make the table\\tby hand",
    ]
