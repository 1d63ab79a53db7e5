"""No kernel reads or writes outside of the room it was given, whatever the bytes (man rplctl-design, D12).

The kernels run in a process of their own, compiled with a check of each index (NUMBA_BOUNDSCHECK). Their code is kept
in pytest's cache folder, by what the sources are: compiling takes 40 seconds of CPU, and only a change needs it again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import rplctl
from rplctl.event.kernel_cache import VARIABLE

ROOT = Path(rplctl.__file__).parents[1]
_HALVES = (("log", "short_event", "stream", "event"), ("rows", "json", "result_set"))
_CHECKED_READS = """
import numpy as np
from rplctl.event import bytes_at
from rplctl.event.jit import byte_view
data = byte_view(bytes(8))
for name, width in (("u8", 1), ("u16", 2), ("u24", 3), ("u32", 4), ("u64", 8)):
    read = getattr(bytes_at, name)
    read(data, 8 - width)
    for outside in (8 - width + 1, -1, 1 << 40):
        try:
            read(data, outside)
        except IndexError:
            continue
        print(name, outside)
for arguments in ((data, 4, 5, np.empty(9, np.uint8), 0), (data, 0, 8, np.empty(8, np.uint8), 1)):
    try:
        bytes_at.copy_bytes(*arguments)
    except IndexError:
        continue
    print("copy_bytes", arguments[1:3])
"""


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", VARIABLE: str(folder)}


def _cache_name() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted((ROOT / "rplctl").rglob("*.py")):
        if b"kernel" in (text := path.read_bytes()):
            digest.update(text)
    return f"checked-kernels-{digest.hexdigest()[:16]}"


@pytest.fixture(scope="module")
def cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for code that checks its indexes."""
    store: pytest.Cache | None = getattr(request.config, "cache", None)  # None with -p no:cacheprovider
    return store.mkdir(_cache_name()) if store is not None else tmp_path_factory.mktemp("kernels")


def started(cache: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", *arguments]
    return subprocess.Popen(
        command, cwd=ROOT, env=_environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate()
    assert err == ""
    return out.splitlines()


def fuzz(cache: Path, turns: int, seed: str) -> None:
    """Half of the families in one process and half in another: the compiler has two cores."""
    both = [started(cache, "-m", "tests.kit.kernel_fuzz", str(turns), seed, *table_groups) for table_groups in _HALVES]
    ends = [[json.loads(line) for line in lines_of(process)] for process in both]
    failures = [line["failure"] for lines in ends for line in lines if "failure" in line]
    assert not failures, "\n".join([f"{len(failures)} kinds of failure, seed {seed}:", *failures])
    assert [lines[-1]["turns"] for lines in ends] == [turns, turns]
    unused = set.intersection(*(set(lines[-1]["unused"]) for lines in ends))
    assert not unused, "a kernel that no damaged byte reaches"


def test_a_read_outside_of_an_array_is_seen_where_indexes_are_checked(cache: Path) -> None:
    assert lines_of(started(cache, "-c", _CHECKED_READS)) == []


@pytest.mark.long(
    "test_a_read_outside_of_an_array_is_seen_where_indexes_are_checked stays; to compile all kernels takes 40 seconds."
)
def test_damaged_events_and_result_sets_never_lead_a_kernel_out_of_its_room(cache: Path) -> None:
    fuzz(cache, 2000, "1")


@pytest.mark.torture
@pytest.mark.parametrize("seed", [f"torture {number}" for number in range(8)])
def test_damaged_bytes_of_other_seeds_never_lead_a_kernel_out_of_its_room(cache: Path, seed: str) -> None:
    fuzz(cache, 30_000, seed)
