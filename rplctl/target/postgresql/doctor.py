"""What `doctor` asks a PostgreSQL target: its encoding, the account's rights, what a power cut takes."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, text

from rplctl.target.dialect import FAIL, OK, POWER_CUT, RESTORE, WARN, DoctorLine


def rights(connection: Connection) -> Iterator[DoctorLine]:
    """Encoding, the rights to make schemas and temporary tables and to let foreign keys rest."""

    def ask(sql: str) -> str:
        return str(connection.execute(text(sql)).scalar())

    encoding = ask("SHOW server_encoding")
    is_utf8 = encoding == "UTF8"
    hint = "" if is_utf8 else "createdb -E UTF8 -T template0 NAME, then rplctl init --target URL"
    yield DoctorLine("target encoding", OK if is_utf8 else FAIL, encoding, hint)
    may_create = ask("SELECT has_database_privilege(current_database(), 'CREATE')") == "True"
    hint = "" if may_create else "GRANT CREATE ON DATABASE to the target's user: each source database is a schema"
    yield DoctorLine("target schemas", OK if may_create else WARN, "" if may_create else "cannot make schemas", hint)
    may_stage = ask("SELECT has_database_privilege(current_database(), 'TEMP')") == "True"
    hint = "" if may_stage else "GRANT TEMPORARY ON DATABASE to the target's user"
    detail = "" if may_stage else "rows go one by one instead of through temporary tables"
    yield DoctorLine("target temporary tables", OK if may_stage else WARN, detail, hint)
    may_rest = ask("SELECT current_setting('is_superuser')") == "on"
    if not may_rest and int(ask("SHOW server_version_num")) >= 150000:
        may_rest = ask("SELECT has_parameter_privilege('session_replication_role', 'SET')") == "True"
    hint = "" if may_rest else "GRANT SET ON PARAMETER session_replication_role TO the target's user"
    detail = "" if may_rest else "checked even where the source ran with foreign_key_checks=0"
    yield DoctorLine("target foreign keys", OK if may_rest else WARN, detail, hint)


def power_cut(connection: Connection, lost: str) -> Iterator[DoctorLine]:
    if connection.exec_driver_sql("SHOW fsync").scalar() == "off":
        yield DoctorLine(POWER_CUT, WARN, f"fsync is off: {RESTORE}", "ALTER SYSTEM SET fsync = on; reload")
    if connection.exec_driver_sql("SHOW full_page_writes").scalar() == "off":
        text = f"full_page_writes is off: a page that is written half stays so; {RESTORE}"
        yield DoctorLine(POWER_CUT, WARN, text, "ALTER SYSTEM SET full_page_writes = on; reload")
