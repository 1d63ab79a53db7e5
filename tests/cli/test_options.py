"""What several commands share: durations, channels, roles, the two terminologies, and how an error reads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rplctl.cli.globals import Globals
from rplctl.cli.options import each_channel, roles_of, seconds, the_channel
from rplctl.cli.output import report
from rplctl.errors import RplError, UsageError
from tests.cli.program import Program


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("50", 50.0),
        ("1.5", 1.5),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("3s", 3.0),
        ("7d", 604800.0),
        (None, None),
    ],
)
def test_durations_are_seconds_or_have_their_unit(text: str | None, value: float | None) -> None:
    assert seconds(text, "--timeout") == value


@pytest.mark.parametrize("text", ["", "m", "-1", "1w", "1 2", "nan", "inf", "1e30", "two"])
def test_a_duration_that_is_none_is_refused_by_its_options_name(text: str) -> None:
    with pytest.raises(UsageError, match="--timeout .*: the value must be a number of seconds, like 50 or 2m"):
        seconds(text, "--timeout")


def test_neither_role_is_both() -> None:
    assert roles_of(False, False) == roles_of(True, True) == ("receiver", "applier")
    assert (roles_of(True, False), roles_of(False, True)) == (("receiver",), ("applier",))


def test_commands_for_all_channels_find_all_and_commands_for_one_ask_which(configured: Program) -> None:
    options = Globals(datadir=configured.datadir)
    assert [name for name, _ in each_channel(options, None)] == [""]
    assert the_channel(options, None)[0] == ""
    configured("change-master", "--channel", "East", "--master-host", "db2")
    assert [name for name, _ in each_channel(options, None)] == ["", "East"]
    assert [name for name, _ in each_channel(options, "x")] == ["x"]
    with pytest.raises(UsageError) as caught:
        the_channel(options, None)
    assert caught.value.errno == 3079 and "rplctl show-channels" in caught.value.hint
    assert the_channel(options, "East")[0] == "East"


def test_without_any_channel_the_default_one_is_meant(program: Program) -> None:
    assert [name for name, _ in each_channel(Globals(datadir=program.datadir), None)] == [""]


def test_the_only_channel_is_meant_whatever_its_name(program: Program) -> None:
    program("change-master", "--channel", "east", "--master-host", "db2")
    assert the_channel(Globals(datadir=program.datadir), None)[0] == "east"


def test_an_error_is_number_text_position_and_hint_one_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    report(RplError("no\nroute", errno=2003, position="binlog.000003:4", hint="rplctl start"))
    report(RplError("plain"))
    assert capsys.readouterr().err == (
        "ERROR 2003: no\\nroute\nposition: binlog.000003:4\nhint: rplctl start\nERROR: plain\n"
    )


@pytest.mark.parametrize("wanted", [False, True])
def test_a_bug_of_ours_is_one_line_and_its_traceback_only_when_asked_for(wanted: bool) -> None:
    code = "import rplctl.cli, sys; sys.argv = ['rplctl']; rplctl.cli.run = lambda words: 1 / 0; rplctl.cli.main()"
    environment = {**os.environ, **({"RPLCTL_TRACEBACK": "1"} if wanted else {})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert "ERROR: unexpected ZeroDivisionError in rplctl: this is a bug\n" in done.stderr
    assert ("Traceback" in done.stderr) == wanted
