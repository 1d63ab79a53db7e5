"""Waiting for SQLite's write lock so that STOP can end it: a wait inside of SQLite cannot be interrupted.

Invariant: the connection's own patience is what it was when this returns.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

STEP_MS = 200
BEGIN = "rplctl_begin"  # execution option: the statement that begins a transaction


def begin_when_unlocked(
    connection: Connection, driver: sqlite3.Connection, patience_ms: int, is_interrupted: Callable[[], bool]
) -> None:
    """BEGIN IMMEDIATE. Raises SQLAlchemy's OperationalError when the lock is held for longer, or STOP comes."""
    deadline = time.monotonic() + patience_ms / 1000
    driver.execute(f"PRAGMA busy_timeout={STEP_MS}")
    connection.execution_options(**{BEGIN: "BEGIN IMMEDIATE"})
    try:
        while True:
            try:
                connection.begin()
                return
            except OperationalError as error:
                is_busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or is_interrupted() or time.monotonic() > deadline:
                    raise
    finally:
        connection.execution_options(**{BEGIN: "BEGIN"})
        driver.execute(f"PRAGMA busy_timeout={patience_ms}")
