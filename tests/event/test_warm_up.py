"""Kernels are compiled once, by one process, while the others wait; afterwards nobody waits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rplctl.event import warm_up
from rplctl.event.kernel_cache import STAMP_FILE, is_compiled


def test_every_kernel_runs_over_the_recording() -> None:
    warm_up.run_kernels()


RARE = ["checksum._verify", "inflate._plain_sizes", "inflate._record_offset"]  # of damage and of compressed events
CALLED = """
import sys
from types import FunctionType
from numba.core.dispatcher import Dispatcher
from rplctl.event.warm_up import run_kernels
run_kernels()
missing = set()
for name, module in list(sys.modules.items()):
    if name.startswith("rplctl.event."):
        for function in vars(module).values():
            for used in function.__code__.co_names if isinstance(function, FunctionType) else ():
                kernel = function.__globals__.get(used)
                if isinstance(kernel, Dispatcher) and not kernel.overloads:
                    missing.add(kernel.py_func.__module__.removeprefix("rplctl.event.") + "." + used)
print(*sorted(missing))
"""


@pytest.mark.slow
def test_no_kernel_that_python_calls_is_left_to_the_first_job() -> None:
    """In a process of its own: those of this one have run."""
    found = subprocess.run([sys.executable, "-c", CALLED], capture_output=True, text=True, check=True).stdout
    assert set(found.split()) <= set(RARE)


@pytest.mark.long("test_no_kernel_that_python_calls_is_left_to_the_first_job loads the compiled kernels.")
@pytest.mark.slow
def test_compiled_kernels_run_without_the_compilers_library() -> None:
    """Each process would import it, and enter its typing rules: half a second of CPU time."""
    warm_up.warm_up()
    code = "import sys; from rplctl.event.warm_up import run_kernels; run_kernels(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "numba.core.dispatcher" in loaded
    assert not {"numba.np.linalg", "numba.typed.typedlist", "numba.cpython.setobj"} & {*loaded}


def test_a_stamp_older_than_a_source_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    stamp = tmp_path / STAMP_FILE
    assert not is_compiled()
    stamp.touch()
    assert is_compiled()
    os.utime(stamp, (0, 0))
    assert not is_compiled()


@pytest.mark.torture  # what one process compiles is used in the suite by all
def test_of_several_processes_one_compiles_and_all_are_ready(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "rplctl.event.warm_up"]
    started = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    for process in started:
        _, errors = process.communicate()
        assert (process.returncode, errors) == (0, b"")
    assert (tmp_path / STAMP_FILE).exists()
    assert len(list(tmp_path.rglob("*.nbi"))) >= 8
