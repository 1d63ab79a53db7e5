"""A process with too low a limit says which, and what raises it; a soft limit is raised by itself."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from rplctl import limits
from rplctl.errors import RplError


def run(datadir: Path, limit: int, soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rplctl", "--datadir", str(datadir), "show-channels"]
    before = partial(resource.setrlimit, limit, (soft, hard))
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=before)


@pytest.mark.parametrize(
    ("limit", "value", "option"),
    [
        (resource.RLIMIT_NOFILE, 12, "-n 64"),
        (resource.RLIMIT_FSIZE, 16 << 10, "-f 65536"),
        (resource.RLIMIT_STACK, 256 << 10, "-s 1024"),
    ],
)
def test_a_limit_that_is_too_low_is_named_with_the_command_that_raises_it(
    tmp_path: Path, limit: int, value: int, option: str
) -> None:
    done = run(tmp_path, limit, value, value)
    assert done.returncode == RplError.exit_code and done.stdout == ""
    assert done.stderr.startswith("ERROR 1041: the limit of ")
    assert f"run in a shell of root: ulimit {option}\n" in done.stderr


@pytest.mark.long("test_a_limit_that_is_too_low_is_named_with_the_command_that_raises_it stays in make test.")
def test_the_smallest_stack_that_runs_a_script_ends_with_a_clear_error(tmp_path: Path) -> None:
    """Below that size Python itself is killed before any line of ours."""
    script = tmp_path / "empty.py"
    script.touch()

    def ends(command: list[str], kib: int) -> list[subprocess.CompletedProcess[str]]:
        limit = partial(resource.setrlimit, resource.RLIMIT_STACK, (kib << 10, kib << 10))
        return [subprocess.run(command, capture_output=True, text=True, preexec_fn=limit) for _ in range(5)]

    python = [sys.executable, str(script)]
    least = next(kib for kib in range(64, 512, 4) if not any(done.returncode for done in ends(python, kib)))
    assert 64 < least < 512
    program = [str(Path(sys.executable).with_name("rplctl")), "--datadir", str(tmp_path / "data")]
    random_kib = 8  # Linux moves the beginning of a stack by up to so much
    for verb in ("show-channels", "start"):
        for done in ends([*program, verb], least + random_kib):
            assert (done.returncode, done.stdout) == (RplError.exit_code, ""), done
            assert done.stderr.startswith("ERROR 1041: ") and "run in a shell of root: ulimit -s 1024\n" in done.stderr


def test_a_low_soft_limit_is_raised_to_what_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {resource.RLIMIT_NOFILE: (12, 512), resource.RLIMIT_FSIZE: (-1, -1), resource.RLIMIT_STACK: (8192, -1)}
    monkeypatch.setattr(resource, "getrlimit", allowed.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", allowed.__setitem__)
    limits.raise_low_limits()
    assert allowed == dict(zip(allowed, ((512, 512), (-1, -1), (-1, -1)), strict=True))
