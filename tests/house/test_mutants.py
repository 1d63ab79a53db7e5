"""Some wrongs put into the code at random are noticed by the quick tests nearest to it (tests/kit/mutate.py)."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.house.code import ROOT
from tests.kit.torture_page import run_seed

NOTICED = 0.4  # of the mutants; most of what is left is for tests with servers


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_quick_tests_notice_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Three mutants of each module, others in each run; the survivors are printed."""
    how = ["--sample", "3", "--seed", run_seed(), "--seconds", "3000"]
    command = [sys.executable, "-m", "tests.kit.mutate", *how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    with capsys.disabled():
        sys.stdout.write(done.stdout)
    tried, killed, _ = map(int, re.findall(r"^(\d+) mutants, (\d+) killed, (\d+) survived", done.stdout, re.M)[0])
    assert tried > 0 and killed / tried >= NOTICED, done.stdout + done.stderr
