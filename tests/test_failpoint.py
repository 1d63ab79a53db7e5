"""Crash points: armed by name and count in three ways, unknown names refused, unarmed ones free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl import failpoint
from rplctl.command.selftest.crash_cases import all_cases
from rplctl.errors import ConfigError
from rplctl.failpoint import CRASH_POINTS, ENVIRONMENT, arm, parse_failpoints
from tests.cli.program import Program

PASS_TWICE = """
import sys
from pathlib import Path
from rplctl.failpoint import arm, crash_point, watch
if len(sys.argv) > 1:
    watch(Path(sys.argv[1]))
crash_point("crash_commit_before"); print("once", flush=True)
if len(sys.argv) > 2:
    arm(Path(sys.argv[1]), sys.argv[2])
crash_point("crash_commit_before"); print("twice", flush=True)
"""

BESIDE_ANOTHER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from rplctl.failpoint import arm, crash_point, watch
one, other = (ThreadPoolExecutor(1) for _ in range(2))
def passes(thread, what): thread.submit(crash_point, "crash_commit_before").result(); print(what, flush=True)
for name, thread in ("one", one), ("other", other):
    thread.submit(watch, Path(sys.argv[1], name), beside_others=True).result()
passes(one, "one"), passes(other, "other")
arm(Path(sys.argv[1], "one"), "crash_commit_before=kill")
passes(other, "the other again"), passes(one, "not said")
"""


def passed(*arguments: str, armed: str = "") -> tuple[str, bool]:
    """(what was printed, whether it was killed)."""
    command = [sys.executable, "-c", PASS_TWICE, *arguments]
    environment = {**os.environ, ENVIRONMENT: armed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout, done.returncode != 0


@pytest.mark.parametrize(
    ("armed", "printed", "killed"),
    [
        ("", "once\ntwice\n", False),
        ("crash_commit_before=kill@2", "once\n", True),
        ("crash_commit_before=kill", "", True),
    ],
)
def test_the_process_is_killed_at_the_nth_pass(armed: str, printed: str, killed: bool) -> None:
    assert passed(armed=armed) == (printed, killed)


def test_one_that_is_armed_while_the_thread_runs_kills_once(tmp_path: Path) -> None:
    point = "crash_commit_before=kill"
    assert passed(str(tmp_path), point) == ("once\n", True)
    assert passed(str(tmp_path)) == ("once\ntwice\n", False), "it went with the kill"
    arm(tmp_path, point)
    arm(tmp_path, "")
    assert passed(str(tmp_path)) == ("once\ntwice\n", False), "taken back"


def test_one_of_two_channels_of_a_process_is_killed_where_it_is_armed_and_not_where_the_other_passes(
    tmp_path: Path,
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    done = subprocess.run([sys.executable, "-c", BESIDE_ANOTHER, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("one\nother\nthe other again\n", -signal.SIGKILL), done.stderr


@pytest.mark.parametrize(
    "text",
    ["nonsense=kill", "crash_commit_before", "crash_commit_before=stop", "crash_commit_before=kill@x"]
    + ["crash_commit_before=kill@0"],
)
def test_what_is_no_crash_point_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError):
        parse_failpoints(text)
    with pytest.raises(ConfigError):
        arm(tmp_path, text)
    assert not list(tmp_path.iterdir())


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as unknown:
        parse_failpoints("crash_comit_after=kill")
    assert "'crash_comit_after' is not a crash point" in unknown.value.message
    assert all(name in unknown.value.hint for name in CRASH_POINTS)


def test_a_file_written_by_hand_with_an_unknown_name_is_an_error_at_start_and_harmless_later(
    tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    request.addfinalizer(failpoint.rearm)
    failpoint.watch(tmp_path)
    (tmp_path / failpoint.RUN_TIME_FILE).write_text("nonsense=kill")
    failpoint.crash_point("crash_commit_before")
    assert "'nonsense' is not a crash point" in caplog.text
    with pytest.raises(ConfigError):
        failpoint.watch(tmp_path)


def test_start_refuses_an_unknown_name_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = Program(tmp_path, capsys)("start", "--crash-points", "nonsense=kill")
    assert (done.code, "'nonsense' is not a crash point" in done.err) == (78, True)


def test_the_worklogs_names_are_there_letter_for_letter() -> None:
    commit = "before after_prepare after_log before_unlog after between_engines"
    assert {f"crash_commit_{name}" for name in commit.split()} <= CRASH_POINTS


def test_the_servers_names_of_the_relay_log_are_there_letter_for_letter() -> None:
    """Of the two kinds of each, the worklogs' servers call critical what recovery has to repair."""
    names = """crash_create_non_critical_before_update_index crash_create_critical_before_update_index
        crash_create_after_update_index crash_purge_before_update_index crash_purge_critical_after_update_index
        crash_purge_non_critical_after_update_index crash_before_purge_logs crash_before_rotate_relaylog"""
    recovery = "crash_recovery_after_update_index crash_recovery_between_engines"
    assert {*names.split(), *recovery.split()} <= CRASH_POINTS


def test_crash_test_walks_every_point() -> None:
    cases = [case for kind in ("mysql", "sqlite", "delta") for case in all_cases(kind)]
    assert {case.point for case in cases} == CRASH_POINTS
