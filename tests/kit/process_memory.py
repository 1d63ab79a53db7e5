"""What processes take: memory that is theirs alone (pages of mapped files belong to the system's cache), CPU time."""

from __future__ import annotations

import os
import re
from pathlib import Path


def anonymous_bytes(pids: list[int]) -> int:
    """Of these processes and all their descendants; a page that a fork shares with others counts once."""
    return sum(map(_anonymous_bytes, family_of(pids)))


def _anonymous_bytes(pid: int) -> int:
    try:
        found = re.search(r"^Pss_Anon:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:  # it has ended
        return 0
    return int(found[1]) << 10 if found else 0


def family_of(pids: list[int]) -> set[int]:
    """These processes and all their descendants."""
    parents = _parents()
    family = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def cpu_seconds(pids: list[int], *, with_children: bool = True) -> float:
    """Of these processes and all their descendants that live, since each began."""
    ticks = 0
    for pid in family_of(pids) if with_children else pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _parents() -> dict[int, int]:
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
