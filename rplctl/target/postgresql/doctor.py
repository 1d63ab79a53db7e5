"""Checks a PostgreSQL target for `rplctl doctor`: the encoding, privileges, and settings that matter in a power cut."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from rplctl.errors import COPY_ALL, LOSES_CHANNEL
from rplctl.sql_run import ask, run
from rplctl.sql_text import Sql, written
from rplctl.target.dialect import FAIL, OK, POWER_CUT, RESTORE, WARN, DoctorLine


def rights(connection: Connection) -> Iterator[DoctorLine]:
    """Check the target's encoding, and the privileges of the target's user that rplctl can use.

    These are the privileges to create schemas, to create temporary tables, and to turn off foreign keys.
    """

    def asked(sql: Sql) -> str:
        return str(ask(connection, sql).scalar())

    encoding = asked(written("SHOW server_encoding"))
    is_utf8 = encoding == "UTF8"
    hint = (
        ""
        if is_utf8
        else f"to create another database and to copy all tables into it {LOSES_CHANNEL}, run: createdb -E UTF8 -T "
        f"template0 NAME; {COPY_ALL}"
    )
    yield DoctorLine(Check="target encoding", Result=OK if is_utf8 else FAIL, Detail=encoding, Hint=hint)
    may_create = asked(written("SELECT has_database_privilege(current_database(), 'CREATE')")) == "True"
    hint = "" if may_create else "GRANT CREATE ON DATABASE to the target's user: each source database is a schema"
    yield DoctorLine(
        Check="target schemas",
        Result=OK if may_create else WARN,
        Detail="" if may_create else "cannot create schemas",
        Hint=hint,
    )
    may_stage = asked(written("SELECT has_database_privilege(current_database(), 'TEMP')")) == "True"
    hint = "" if may_stage else "GRANT TEMPORARY ON DATABASE to the target's user"
    detail = "" if may_stage else "rows are applied one by one, without temporary tables"
    yield DoctorLine(Check="target temporary tables", Result=OK if may_stage else WARN, Detail=detail, Hint=hint)
    hint = foreign_key_grant(connection)
    detail = "checked even if the source ran with foreign_key_checks=0" if hint else ""
    yield DoctorLine(Check="target foreign keys", Result=WARN if hint else OK, Detail=detail, Hint=hint)


def foreign_key_grant(connection: Connection) -> str:
    """Return the statement that allows the target's user to turn off foreign keys, or '' if this is already allowed.

    Rows can then be loaded in any order. Before PostgreSQL 15, only a superuser may turn off foreign keys.
    """
    has_grants = ask(connection, written("SELECT current_setting('server_version_num')::int >= 150000")).scalar()
    may = written("has_parameter_privilege('session_replication_role', 'SET')") if has_grants else written("false")
    sql = written("SELECT current_setting('is_superuser') = 'on' OR {}, quote_ident(current_user)", may)
    may_rest, role = ask(connection, sql).one()
    if may_rest:
        return ""
    return (
        f"GRANT SET ON PARAMETER session_replication_role TO {role}" if has_grants else f"ALTER ROLE {role} SUPERUSER"
    )


def power_cut(connection: Connection, lost: str) -> Iterator[DoctorLine]:
    if run(connection, written("SHOW fsync")).scalar() == "off":
        yield DoctorLine(
            Check=POWER_CUT, Result=WARN, Detail=f"fsync is off: {RESTORE}", Hint="ALTER SYSTEM SET fsync = on; reload"
        )
    if run(connection, written("SHOW full_page_writes")).scalar() == "off":
        text = f"full_page_writes is off: a half-written page is not repaired; {RESTORE}"
        yield DoctorLine(
            Check=POWER_CUT, Result=WARN, Detail=text, Hint="ALTER SYSTEM SET full_page_writes = on; reload"
        )
