"""What a power cut takes from this set-up, by what the target says of itself (`doctor`; design D3, WL#5125).

Rows and position are in one transaction of the target but for commit mode `xa`, so a target that loses its last
commits loses both: the channel goes on from the older position, and fetches what is missing while the source has it.
In mode `xa` the position is durable on our side when the target says that it has committed: what it loses then is
missing for good. A target that may be damaged, not only older, is named as such. The relay log only costs fetching.

Settings are read on a connection of its own, as the server has them for everybody; PostgreSQL's synchronous_commit
does not count: our sessions turn it on (postgresql_connection.py). SQLite's are ours (sqlite.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rplctl.command.doctor import OK, WARN, Finding
from rplctl.config import Config

if TYPE_CHECKING:
    from sqlalchemy import Connection

CHECK = "power cut"
_TOGETHER = "rows and position together: they are fetched and applied again"
_APART = "rows without their position (commit_mode=xa): they are missing then"
_RESTORE = "the target may be damaged: restore it from a backup then"
_ORDERED = {1, 3}  # innodb_flush_log_at_trx_commit: 3 is MariaDB's, at PREPARE and at COMMIT


def power_cut(connection: Connection, config: Config) -> Iterator[Finding]:
    """One finding for each setting that lets a power cut take something; else one that says that none does."""
    lost = _APART if config.commit_mode == "xa" else _TOGETHER
    kind = connection.dialect.name
    if kind == "sqlite":
        found = list(judge_sqlite(str(connection.exec_driver_sql("PRAGMA synchronous").scalar())))
    elif kind == "postgresql":
        rows = connection.exec_driver_sql(
            "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes')"
        )
        found = list(judge_postgresql({row[0]: row[1] for row in rows}))
    else:
        rows = connection.exec_driver_sql(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit', 'innodb_doublewrite',"
            " 'innodb_flush_method', 'innodb_flush_log_at_timeout', 'log_bin', 'sync_binlog')"
        )
        settings = {str(name).lower(): str(value) for name, value in rows}
        rows = connection.exec_driver_sql("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'")
        found = list(judge_innodb(settings | {str(name).lower(): str(value) for name, value in rows}, lost))
    yield from found or [Finding(CHECK, OK, "takes no committed row from the target, nor its position")]
    yield relay_log(config)


def judge_innodb(settings: Mapping[str, str], lost: str = _TOGETHER) -> Iterator[Finding]:
    """MySQL and MariaDB."""
    flushed = settings.get("innodb_flush_log_at_trx_commit", "1")
    if int(flushed) not in _ORDERED:
        seconds = settings.get("innodb_flush_log_at_timeout", "1")
        text = f"innodb_flush_log_at_trx_commit is {flushed}: takes the commits of the last {seconds} s or so, {lost}"
        yield Finding(CHECK, WARN, text, "SET GLOBAL innodb_flush_log_at_trx_commit=1 on the target")
    synced = settings.get("sync_binlog", "1")
    if settings.get("log_bin") == "ON" and synced != "1":  # the log decides, at its start, which commits there were
        some = "those that the system has not written yet" if synced == "0" else f"the last {synced} groups of them"
        text = f"sync_binlog is {synced}: takes commits that are not in the target's binary log, {some}; {lost}"
        yield Finding(CHECK, WARN, text, "SET GLOBAL sync_binlog=1 on the target")
    doublewrite = settings.get("innodb_doublewrite", "ON")
    if doublewrite.upper() in ("OFF", "0", "DETECT_ONLY"):
        text = f"innodb_doublewrite is {doublewrite}: a page that is written half stays so; {_RESTORE}"
        yield Finding(CHECK, WARN, text, "set innodb_doublewrite=ON, unless the disk writes pages whole")
    if settings.get("innodb_flush_method", "").lower() in ("nosync", "littlesync"):
        text = f"innodb_flush_method is {settings['innodb_flush_method']}: {_RESTORE}"
        yield Finding(CHECK, WARN, text, "set innodb_flush_method=fsync or O_DIRECT")
    if settings.get("innodb_redo_log_enabled", "ON") == "OFF":
        yield Finding(CHECK, WARN, f"the redo log is off: {_RESTORE}", "ALTER INSTANCE ENABLE INNODB REDO_LOG")


def judge_postgresql(settings: Mapping[str, str]) -> Iterator[Finding]:
    if settings.get("fsync") == "off":
        yield Finding(CHECK, WARN, f"fsync is off: {_RESTORE}", "ALTER SYSTEM SET fsync = on; reload")
    if settings.get("full_page_writes") == "off":
        text = f"full_page_writes is off: a page that is written half stays so; {_RESTORE}"
        yield Finding(CHECK, WARN, text, "ALTER SYSTEM SET full_page_writes = on; reload")


def judge_sqlite(synchronous: str) -> Iterator[Finding]:
    """0 OFF, 1 NORMAL, 2 FULL, 3 EXTRA. With a write-ahead log FULL syncs at each commit."""
    if synchronous not in ("2", "3"):
        yield Finding(CHECK, WARN, f"synchronous is {synchronous}: takes the last commits", "PRAGMA synchronous=FULL")


def relay_log(config: Config) -> Finding:
    """Ours: what is fetched again."""
    events = config.sync_relay_log
    part = f"up to {events} events" if events else "what came since its last rotation"
    return Finding(
        f"{CHECK}, relay log", OK, f"takes {part} from it, which are fetched again while the source has them"
    )
