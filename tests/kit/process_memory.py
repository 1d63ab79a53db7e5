"""What processes take: memory that is theirs alone (pages of mapped files belong to the system's cache), CPU time."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path


def anonymous_bytes(pids: list[int]) -> int:
    """Of these processes and all their descendants."""
    found = _processes()
    return sum(found[pid][1] for pid in family_of(pids, found) if pid in found)


def unshared_bytes(pids: list[int]) -> int:
    """The same, but what forks share counts once (Pss); slower to ask for."""
    whole = 0
    for pid in family_of(pids):
        with suppress(OSError):  # it has ended
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
            whole += sum(int(kib) << 10 for kib in re.findall(r"^Pss_Anon:\s+(\d+)", text, re.MULTILINE))
    return whole


def family_of(pids: list[int], found: dict[int, tuple[int, int]] | None = None) -> set[int]:
    """These processes and all their descendants."""
    parents = {pid: parent for pid, (parent, _) in (_processes() if found is None else found).items()}
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


def _processes() -> dict[int, tuple[int, int]]:
    """Pid → its parent, and the bytes it holds."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = dict(re.findall(r"^(PPid|RssAnon):\s+(\d+)", text, re.MULTILINE))
        found[int(status.parent.name)] = int(fields["PPid"]), int(fields.get("RssAnon", 0)) << 10
    return found
