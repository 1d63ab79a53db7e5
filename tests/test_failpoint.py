"""Crash points: armed by name and count, unknown names refused, unarmed ones free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from rplctl.errors import ConfigError
from rplctl.failpoint import CRASH_POINTS, ENVIRONMENT, parse_failpoints

PASS_TWICE = """
from rplctl.failpoint import crash_point
crash_point("crash_commit_before"); print("once", flush=True)
crash_point("crash_commit_before"); print("twice", flush=True)
"""


@pytest.mark.parametrize(
    ("armed", "printed", "killed"),
    [
        ("", "once\ntwice\n", False),
        ("crash_commit_before=kill@2", "once\n", True),
        ("crash_commit_before=kill", "", True),
    ],
)
def test_the_process_is_killed_at_the_nth_pass(armed: str, printed: str, killed: bool) -> None:
    environment = {**os.environ, ENVIRONMENT: armed}
    done = subprocess.run(
        [sys.executable, "-c", PASS_TWICE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == printed
    assert done.returncode == (-signal.SIGKILL if killed else 0)


@pytest.mark.parametrize(
    "text", ["nonsense=kill", "crash_commit_before", "crash_commit_before=stop", "crash_commit_before=kill@x"]
)
def test_what_is_no_crash_point_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_failpoints(text)


def test_the_worklogs_names_are_there_letter_for_letter() -> None:
    commit = "before after_prepare after_log before_unlog after between_engines"
    assert {f"crash_commit_{name}" for name in commit.split()} <= CRASH_POINTS
