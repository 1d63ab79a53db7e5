"""What `doctor` asks a SQLite target."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from rplctl.target.doctor_line import POWER_CUT, WARN, DoctorLine


def power_cut(connection: Connection) -> Iterator[DoctorLine]:
    return judge_sqlite(str(connection.exec_driver_sql("PRAGMA synchronous").scalar()))


def judge_sqlite(synchronous: str) -> Iterator[DoctorLine]:
    """0 OFF, 1 NORMAL, 2 FULL, 3 EXTRA. With a write-ahead log FULL syncs at each commit."""
    if synchronous not in ("2", "3"):
        text = f"synchronous is {synchronous}: takes the last commits"
        yield DoctorLine(POWER_CUT, WARN, text, "PRAGMA synchronous=FULL")
