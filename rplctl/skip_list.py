"""Transactions that the applier must skip: a number and GTIDs, one small file each in the channel's run folder.

    skip_counter   N                    transactions, taken by the next start (sql_slave_skip_counter)
    skip_gtids     one GTID in a line   each until it is reached

Invariant: a number that is used up never comes back, so it is taken away before it is used: a crash in between stops
at the same error again and skips nothing that was not meant. A GTID can only ever mean its own transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rplctl.durable import replace_file
from rplctl.plain_file import read_if_there

_LARGEST = 1 << 20  # bytes


def read_count(run_folder: Path) -> int:
    text = read_if_there(run_folder / "skip_counter", _LARGEST).decode("ascii", "replace").strip()
    return int(text) if text.isdecimal() and len(text) < 20 else 0


def write_count(run_folder: Path, count: int) -> None:
    replace_file(run_folder / "skip_counter", f"{count}\n".encode())


def read_gtids(run_folder: Path) -> tuple[str, ...]:
    return tuple(read_if_there(run_folder / "skip_gtids", _LARGEST).decode("ascii", "replace").split())


def write_gtids(run_folder: Path, gtids: Sequence[str]) -> None:
    replace_file(run_folder / "skip_gtids", "".join(f"{gtid}\n" for gtid in gtids).encode())


def clear(run_folder: Path) -> None:
    """Clear the list, as RESET SLAVE does."""
    for name in ("skip_counter", "skip_gtids"):
        (run_folder / name).unlink(missing_ok=True)
