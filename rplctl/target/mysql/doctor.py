"""Checks of `doctor` for a MySQL or MariaDB target: bulk loading of rows, and the effects of a power cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlalchemy import Connection

from rplctl.sql_run import ask, run
from rplctl.sql_text import written
from rplctl.target.dialect import OK, POWER_CUT, RESTORE, WARN, DoctorLine

_ORDERED: Final = {1, 3}  # innodb_flush_log_at_trx_commit: 3 is MariaDB's, at PREPARE and at COMMIT


def rights(connection: Connection) -> Iterator[DoctorLine]:
    """Check that rows may be loaded in bulk."""
    may_load = bool(ask(connection, written("SELECT @@local_infile")).scalar())
    hint = "" if may_load else "SET GLOBAL local_infile=1 on the target, and in its option file"
    detail = "on" if may_load else "off: rows go by INSERT and UPDATE instead of in bulk, slower"
    yield DoctorLine("target local_infile", OK if may_load else WARN, detail, hint)


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
    """Return warnings about settings of InnoDB in MySQL and MariaDB that let a power cut take something."""
    flushed = settings.get("innodb_flush_log_at_trx_commit", "1")
    if int(flushed) not in _ORDERED:
        seconds = settings.get("innodb_flush_log_at_timeout", "1")
        text = f"innodb_flush_log_at_trx_commit is {flushed}: takes the commits of the last {seconds} s or so, {lost}"
        yield DoctorLine(POWER_CUT, WARN, text, "SET GLOBAL innodb_flush_log_at_trx_commit=1 on the target")
    synced = settings.get("sync_binlog", "1")
    if settings.get("log_bin") == "ON" and synced != "1":  # the log decides, at its start, which commits there were
        some = "those that the system has not written yet" if synced == "0" else f"the last {synced} groups of them"
        text = f"sync_binlog is {synced}: takes commits that are not in the target's binary log, {some}; {lost}"
        yield DoctorLine(POWER_CUT, WARN, text, "SET GLOBAL sync_binlog=1 on the target")
    doublewrite = settings.get("innodb_doublewrite", "ON")
    if doublewrite.upper() in ("OFF", "0", "DETECT_ONLY"):
        text = f"innodb_doublewrite is {doublewrite}: a page that is written half stays so; {RESTORE}"
        yield DoctorLine(POWER_CUT, WARN, text, "set innodb_doublewrite=ON, unless the disk writes pages whole")
    if settings.get("innodb_flush_method", "").lower() in ("nosync", "littlesync"):
        text = f"innodb_flush_method is {settings['innodb_flush_method']}: {RESTORE}"
        yield DoctorLine(POWER_CUT, WARN, text, "set innodb_flush_method=fsync or O_DIRECT")
    if settings.get("innodb_redo_log_enabled", "ON") == "OFF":
        yield DoctorLine(POWER_CUT, WARN, f"the redo log is off: {RESTORE}", "ALTER INSTANCE ENABLE INNODB REDO_LOG")
