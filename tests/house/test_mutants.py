"""Some wrongs put into the code at random are noticed by the quick tests nearest to it (tests/tools/mutate.py)."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.house.code import ROOT
from tests.kit.torture_page import LINES, run_seed

NOTICED = 0.4  # of the mutants; most of what is left is for tests with servers


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_quick_tests_notice_what_is_wrong(record_property: Callable[[str, object], None]) -> None:
    """Three mutants of each module, others in each run; the survivors are on the page that ends the run."""
    how = ["--sample", "3", "--seed", run_seed(), "--seconds", "3000"]
    command = [sys.executable, "-m", "tests.tools.mutate", *how]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    record_property(LINES, done.stdout.splitlines())
    tried, killed, _ = map(int, re.findall(r"^(\d+) mutants, (\d+) killed, (\d+) survived", done.stdout, re.M)[0])
    assert tried > 0 and killed / tried >= NOTICED, done.stdout + done.stderr
