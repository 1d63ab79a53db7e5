"""What a command loads before it answers, and how it ends when its reader or its operator goes away (design D16)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl.cli.app import VERBS
from rplctl.cli.globals import hoist
from rplctl.demo import BINLOG_FOLDER
from tests.cli.program import Program

pytestmark = pytest.mark.slow

HEAVY = ("pydantic", "pyspark", "sqlalchemy", "numba", "numpy", "pymysql", "cryptography", "rich.table")
MOST_OF_OURS = 63  # as it was counted
NOT_OF_A_STATUS = ("rplctl.cli.completion", "rplctl.command.selftest", "rplctl.demo")


def all_loaded(*arguments: str) -> set[str]:
    """Modules in memory after the command, in a fresh process."""
    code = "import sys; from rplctl.cli import run; code = run(sys.argv[1:]); print('LOADED', code, *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    words = done.stdout.splitlines()[-1].split()
    assert words[:2] == ["LOADED", "0"], done.stdout + done.stderr
    return set(words[2:])


def loaded(*arguments: str) -> set[str]:
    """Of these the heavy ones."""
    return all_loaded(*arguments) & set(HEAVY)


def test_a_status_loads_few_of_our_own_modules(configured: Program) -> None:
    """Each costs about a third of a millisecond; another one here is one that every `show-status` pays for."""
    ours = {name for name in all_loaded("--datadir", str(configured.datadir), "show-status") if name[:6] == "rplctl"}
    assert len(ours) <= MOST_OF_OURS, sorted(ours)
    assert not {name for name in ours if name.startswith(NOT_OF_A_STATUS)}


def test_the_version_loads_no_verb() -> None:
    """Not even their options, which a list of the verbs needs."""
    verbs = {f"rplctl.{part}." + verb.replace("-", "_") for verb in VERBS for part in ("cli", "command")}
    assert not {name for name in all_loaded("--version") if name in verbs or name.startswith(NOT_OF_A_STATUS)}


def test_help_before_the_version_lists_the_verbs(program: Program) -> None:
    assert "show-status" in program("--help", "--version").out


@pytest.mark.parametrize("arguments", [["--help"], ["start", "--help"], ["change-master", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert loaded(*arguments) == set()


@pytest.mark.parametrize("verb", [["show-status"], ["show-channels"], ["stop"], ["show-status", "--json"]])
def test_looking_at_file_repositories_loads_nothing_heavy(configured: Program, verb: list[str]) -> None:
    assert loaded("--datadir", str(configured.datadir), *verb) == set()


@pytest.mark.long("SQLite stays in make test.", keeps=r"sqlite")
@pytest.mark.parametrize("kind", ["sqlite", "mysql", "postgresql"])
def test_a_question_to_a_target_needs_no_compiler(kind: str) -> None:
    """`check` asks every minute, and writes no row."""
    code = "import sys; from rplctl.target import dialect_of; dialect_of(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, kind], capture_output=True, text=True, check=True)
    assert {f"rplctl.target.{kind}.dialect", "sqlalchemy"} <= {*done.stdout.split()}
    assert "numba" not in done.stdout.split()


@pytest.mark.slow
def test_threads_are_started_without_the_compiler_that_they_load_themselves(program: Program) -> None:
    """Numba takes longer to load than all that a start does; only the end of a folder of logs is looked for with it."""
    program("change-master", "--master-binlog-dir", str(BINLOG_FOLDER))
    try:
        assert loaded("--datadir", str(program.datadir), "start", "--receiver") <= {"numpy", "sqlalchemy"}
    finally:
        program("stop")


def test_an_applier_begins_before_start_loads_what_prepares_its_channel() -> None:
    code = "import sys; import rplctl.command.start; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    late = {"rplctl.command.process.preparation", "rplctl.schema.plan", "sqlalchemy", "importlib.metadata"}
    assert not late & {*done.stdout.split()}


@pytest.mark.parametrize("thread", ["receiver", "applier"])
def test_a_thread_seldom_looks_for_garbage_among_the_modules_that_it_loads(thread: str) -> None:
    code = (
        f"import contextlib, gc; from rplctl.{thread}.__main__ import main\n"
        "with contextlib.suppress(ValueError): main([])\n"  # it lacks its arguments, and ends
        "print(gc.get_threshold()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 50_000


def test_completion_of_channels_loads_nothing_heavy_and_knows_them(configured: Program) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    environment = {
        **os.environ,
        "RPLCTL_DATADIR": str(configured.datadir),
        "_RPLCTL_COMPLETE": "complete_bash",
        "COMP_WORDS": "rplctl start --channel e",
        "COMP_CWORD": "3",
    }
    done = subprocess.run([sys.executable, "-m", "rplctl"], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["east"], done.stderr


def test_a_reader_that_closes_early_is_no_error(configured: Program) -> None:
    command = f"{sys.executable} -m rplctl --datadir {configured.datadir} show-status"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command} | true; exit 0"], capture_output=True, text=True)
    assert done.stderr == ""


def test_ctrl_c_ends_a_wait_with_130_and_no_traceback(configured: Program) -> None:
    code = (  # says when it waits
        "import time; sleep = time.sleep\n"
        "def say(seconds): print('waits', flush=True); time.sleep = sleep; sleep(seconds)\n"
        "time.sleep = say; from rplctl.cli import main; main()"
    )
    command = [sys.executable, "-c", code, "--datadir", str(configured.datadir), "wait", "--state", "running"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job inherits it ignored
    )
    assert process.stdout is not None and process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert process.returncode == 130 and "Traceback" not in err


@pytest.mark.parametrize(
    ("given", "hoisted"),
    [
        (["show-status", "--json"], ["--json", "show-status"]),
        (["show-status", "-f", "tsv", "--channel", "x"], ["-f", "tsv", "show-status", "--channel", "x"]),
        (["show-status", "--format=tsv"], ["--format=tsv", "show-status"]),
        (["skip", "--", "--json"], ["skip", "--", "--json"]),
        (["start", "--datadir", "/d", "-q"], ["--datadir", "/d", "-q", "start"]),
    ],
)
def test_options_of_every_command_may_stand_after_it(given: list[str], hoisted: list[str]) -> None:
    assert hoist(given) == hoisted


def test_an_unwritable_instance_folder_is_an_error_not_a_traceback(program: Program, tmp_path: Path) -> None:
    (tmp_path / "instance").write_text("a file")
    done = program("change-master", "--master-host", "db1")
    assert done.code in (1, 78) and done.err.startswith("ERROR") and "Traceback" not in done.err
