"""Checks a MySQL or MariaDB target for `rplctl doctor`: bulk load, and settings that matter in a power cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlalchemy import Connection

from rplctl.sql_run import ask, run
from rplctl.sql_text import written
from rplctl.target.dialect import OK, POWER_CUT, RESTORE, WARN, DoctorLine

_ORDERED: Final = {1, 3}  # safe values of innodb_flush_log_at_trx_commit; MariaDB's 3 syncs at PREPARE and at COMMIT


def rights(connection: Connection) -> Iterator[DoctorLine]:
    """Yield a line of `rplctl doctor` about local_infile. With this setting, the target allows a bulk load of rows."""
    may_load = bool(ask(connection, written("SELECT @@local_infile")).scalar())
    hint = (
        ""
        if may_load
        else "on the target, run: SET GLOBAL local_infile=1; write local_infile=1 into its option file, too"
    )
    detail = "on" if may_load else "off: rows are applied with INSERT and UPDATE, which is slower than a bulk load"
    yield DoctorLine(Check="target local_infile", Result=OK if may_load else WARN, Detail=detail, Hint=hint)


def power_cut(connection: Connection, lost: str) -> Iterator[DoctorLine]:
    rows = run(
        connection,
        written(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite',"
            " 'innodb_flush_method', 'innodb_flush_log_at_timeout', 'log_bin', 'sync_binlog')"
        ),
    )
    settings = {str(name).lower(): str(value) for name, value in rows}
    rows = run(connection, written("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'"))
    return judge_innodb(settings | {str(name).lower(): str(value) for name, value in rows}, lost)


def judge_innodb(settings: Mapping[str, str], lost: str) -> Iterator[DoctorLine]:
    """Yield warnings about settings with which a power cut can lose or damage data. `settings`: the server's variables.
    `lost`: text about the consequence of a loss, for the warnings.
    """
    flushed = settings.get("innodb_flush_log_at_trx_commit", "1")
    if int(flushed) not in _ORDERED:
        seconds = settings.get("innodb_flush_log_at_timeout", "1")
        text = f"innodb_flush_log_at_trx_commit is {flushed}: loses the commits of about the last {seconds} s, {lost}"
        yield DoctorLine(
            Check=POWER_CUT, Result=WARN, Detail=text, Hint="SET GLOBAL innodb_flush_log_at_trx_commit=1 on the target"
        )
    synced = settings.get("sync_binlog", "1")
    if settings.get("log_bin") == "ON" and synced != "1":  # after a crash, only commits in this log remain
        some = "all that the system has not written yet" if synced == "0" else f"up to the last {synced} groups"
        text = f"sync_binlog is {synced}: loses commits that are not yet in the target's binary log, {some}; {lost}"
        yield DoctorLine(Check=POWER_CUT, Result=WARN, Detail=text, Hint="SET GLOBAL sync_binlog=1 on the target")
    doublewrite = settings.get("innodb_doublewrite", "ON")
    if doublewrite.upper() in ("OFF", "0", "DETECT_ONLY"):
        text = f"innodb_doublewrite is {doublewrite}: a half-written page is not repaired; {RESTORE}"
        yield DoctorLine(
            Check=POWER_CUT,
            Result=WARN,
            Detail=text,
            Hint="set innodb_doublewrite=ON, unless the disk writes pages atomically",
        )
    if settings.get("innodb_flush_method", "").lower() in ("nosync", "littlesync"):
        text = f"innodb_flush_method is {settings['innodb_flush_method']}: {RESTORE}"
        yield DoctorLine(Check=POWER_CUT, Result=WARN, Detail=text, Hint="set innodb_flush_method=fsync or O_DIRECT")
    if settings.get("innodb_redo_log_enabled", "ON") == "OFF":
        yield DoctorLine(
            Check=POWER_CUT,
            Result=WARN,
            Detail=f"the redo log is off: {RESTORE}",
            Hint="ALTER INSTANCE ENABLE INNODB REDO_LOG",
        )
