"""Commands with closed standard files do what they do with open ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl.cli import open_standard_files
from rplctl.cli.app import VERBS
from tests.kit.replica import run_here

_ALL = (0, 1, 2)


@pytest.fixture(scope="module")
def datadir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instance")
    logs = tmp_path_factory.mktemp("logs")
    folder.chmod(0o700)
    for words in (["init"], ["change-master", "--master-binlog-dir", str(logs)]):
        assert run_here(["--datadir", str(folder), *words]).returncode == 0
    return folder


def run(datadir: Path, *words: str, closed: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    def prepare() -> None:
        for number in closed:
            os.close(number)

    command = [sys.executable, "-m", "rplctl", "--datadir", str(datadir), *words]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=prepare)


@pytest.mark.long("The case in which all are closed stays in make test.", keeps=r"0, 1, 2")
@pytest.mark.parametrize("closed", [(1,), (2,), _ALL], ids=str)
def test_a_closed_standard_file_is_as_good_as_dev_null(datadir: Path, closed: tuple[int, ...]) -> None:
    done, plain = run(datadir, "check", closed=closed), run_here(["--datadir", str(datadir), "check"])
    assert done.returncode == plain.returncode == 2  # never started
    assert done.stdout == ("" if 1 in closed else plain.stdout)
    assert done.stderr == ("" if 2 in closed else plain.stderr)


@pytest.mark.torture
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), _ALL], ids=str)
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in ("serve", "top", "demo", "crash-test", "wait")])
def test_no_verb_fails_otherwise_with_closed_standard_files(datadir: Path, verb: str, closed: tuple[int, ...]) -> None:
    plain, done = run(datadir, verb), run(datadir, verb, closed=closed)
    assert "bug" not in done.stderr
    if verb not in ("init", "reset", "start", "stop"):  # they change what the next one finds
        assert done.returncode == plain.returncode


def test_no_file_gets_the_number_of_a_closed_standard_file(tmp_path: Path) -> None:
    kept = os.dup(1)
    os.close(1)
    try:
        open_standard_files()
        with (tmp_path / "database").open("w") as file:
            assert file.fileno() > 2
        assert os.path.samestat(os.fstat(1), os.stat(os.devnull)) and os.get_inheritable(1)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
