"""How much memory processes hold that is theirs alone: pages of mapped files belong to the system's cache."""

from __future__ import annotations

import re
from pathlib import Path


def anonymous_bytes(pids: list[int]) -> int:
    """Of these processes and all their descendants."""
    parents: dict[int, int] = {}
    held: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        pid = int(status.parent.name)
        fields = dict(re.findall(r"^(PPid|RssAnon):\s+(\d+)", text, re.MULTILINE))
        parents[pid], held[pid] = int(fields["PPid"]), int(fields.get("RssAnon", 0)) << 10
    family = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(held.get(pid, 0) for pid in family)
