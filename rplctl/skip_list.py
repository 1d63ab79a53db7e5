"""The transactions that the operator wants the applier to skip, in two small files in the channel's run folder.

    skip_counter   N                    number of transactions that the next start skips (sql_slave_skip_counter)
    skip_gtids     one GTID per line    the applier skips the transaction with this GTID

Invariant: the applier itself removes the number N before it skips transactions, so N is never used twice. After a crash
between these two steps, the applier stops at the same error again, and skips no transaction that it should apply. GTIDs
need no such rule, because a GTID always means the same transaction.
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
    """Remove the number N and all GTIDs, so that no transaction is skipped. RESET SLAVE does the same."""
    for name in ("skip_counter", "skip_gtids"):
        (run_folder / name).unlink(missing_ok=True)
