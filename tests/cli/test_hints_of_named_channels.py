"""Where there are several channels, each command that a hint names is one of the channel that the hint is about."""

from __future__ import annotations

import re

import pytest

from rplctl.cli.app import VERBS
from rplctl.errors import for_channel
from tests.cli.program import Program, whole_program

OF_A_CHANNEL = sorted(
    verb
    for verb in VERBS
    if any("--channel" in getattr(parameter, "opts", ()) for parameter in whole_program().commands[verb].params)
)
# they show all channels, or make one
OF_MANY = {"doctor", "history", "import-info", "metrics", "serve", "top", "change-target"}
COMMAND = re.compile(rf"\brplctl ({'|'.join(OF_A_CHANNEL)})(?![\w-])((?:(?!\brplctl )[^;&`\n])*)")


def lacking(text: str) -> list[str]:
    """The commands in it that mean no channel, or all of them."""
    found = [match for match in COMMAND.finditer(text) if match[1] not in OF_MANY]
    return [match[0] for match in found if "--channel" not in match[0]]


def test_each_verb_of_a_channel_gets_the_option() -> None:
    for verb in OF_A_CHANNEL:
        expected = f"rplctl {verb}{'' if verb in OF_MANY else ' --channel east'} --x"
        assert for_channel(f"rplctl {verb} --x", "east") == expected


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("rplctl stop, then rplctl start", "rplctl stop --channel 'a b', then rplctl start --channel 'a b'"),
        ("rplctl stop --channel x; rplctl start", "rplctl stop --channel x; rplctl start --channel 'a b'"),
        ("rplctl reset --all --yes", "rplctl reset --channel 'a b' --all --yes"),
        ("rplctl start --all && rplctl start --group g", "rplctl start --all && rplctl start --group g"),
        ("X=1 rplctl start-slave; `rplctl skip`", "X=1 rplctl start-slave; `rplctl skip --channel 'a b'`"),
    ],
)
def test_each_command_of_a_hint_is_looked_at_by_itself(hint: str, expected: str) -> None:
    assert for_channel(hint, "a b") == for_channel(expected, "a b") == expected
    assert for_channel(hint, "") == hint


@pytest.mark.parametrize(
    "line",
    [
        "check",
        "check --offline -v",
        "doctor",
        "verify",
        "repair",
        "clone --tables d.t",
        "wait --state synced",
        "skip 1 --yes",
        "start --until-synced",
        "load-schema --from-source",
        "switch-repo --to nowhere",
        "show-relaylog-events",
        "purge-binary-logs --to x.000001",
        "change-master --master-log-pos 5 --master-auto-position 1",
    ],
)
def test_what_a_command_prints_of_a_channel_names_it(configured: Program, line: str) -> None:
    configured("change-master", "--channel", "east", "--master-host", "127.0.0.1", "--master-port", "1")
    done = configured(*line.split(), "--channel", "east")
    assert lacking(done.out + done.err) == [], done
