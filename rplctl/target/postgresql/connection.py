"""Opens connections to a PostgreSQL target with common settings, and converts errors to MySQL's error numbers.

Invariants: a committed position survives a crash of the server, because synchronous_commit is never off. Values are
read and written in the source's format (UTC, ISO dates). A cleartext password is only sent over a verified connection.
An error text never contains a statement, which could contain data.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import psycopg
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError

from rplctl import mysql_errors as er
from rplctl.errors import CORRECT_VALUE, OR_EXCLUDE, OR_SKIP, OTHER_KIND, ConfigError, TargetError, another_way
from rplctl.event.large_text import LargeText
from rplctl.handshake import Protection
from rplctl.target.aborted import watch_connections
from rplctl.target.postgresql.values import LargeBytes, NulInText
from rplctl.target_url import NUL_IN_TEXT

_SETTINGS = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "standard_conforming_strings": "on",
    "lock_timeout": "50s",  # the default of innodb_lock_wait_timeout
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_connection_check_interval": "1s",  # ends the statement of a killed applier, and releases its locks
}
_SESSION = (
    "SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES "
    + ", ".join(f"('{name}', '{value}')" for name, value in _SETTINGS.items())
    + ") AS wanted (known_as, value) ON lower(name) = known_as"
    " WHERE name <> 'client_connection_check_interval' OR version() ~ 'linux'"
    " UNION ALL SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
# a lost server is noticed within half a minute, although a statement may take hours
_KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_FIRST_LIBPQ_TO_REFUSE = 160000
_VERIFYING = ("verify-ca", "verify-full")
_GRANT = (
    "to see the privileges that rplctl needs (section PRIVILEGES), run: man 1 rplctl\n"
    "To continue after you have granted the privilege to the user of the target's URL, run: rplctl start"
)
_DATE = (
    "to continue after you have changed the column's type to text on the target, run: rplctl start"
    f"{another_way(CORRECT_VALUE)}"
)
_LONG_KEY = "to continue after you have dropped that index on the target, run: rplctl start"
_LONG_ROW = f"{OTHER_KIND}{OR_EXCLUDE}"
_LIMIT = "54000"  # program_limit_exceeded: the source file in the error distinguishes an index from a table's page
_HEAP = frozenset({"hio.c", "rewriteheap.c"})
_IN_USE = (er.NOT_SUPPORTED_YET, False, "to continue after you have dropped the dependent object on the target, for "
           "example a view, run: rplctl start")  # fmt: skip

# SQLSTATE, or its class → (MySQL's number, is transient, hint)
STATES: dict[str, tuple[int, bool, str]] = {
    "23505": (er.DUP_ENTRY, False, ""),
    "23503": (er.NO_REFERENCED_ROW_2, False, ""),
    "23502": (er.BAD_NULL_ERROR, False, ""),
    "23514": (er.CONSTRAINT_FAILED, False, ""),
    "40P01": (er.LOCK_DEADLOCK, True, ""),
    "40001": (er.LOCK_DEADLOCK, True, ""),
    "55P03": (er.LOCK_WAIT_TIMEOUT, True, "end the session that locks the target's rows; the channel then continues"),
    "57014": (er.QUERY_INTERRUPTED, False, ""),
    "42P01": (er.NO_SUCH_TABLE, False, ""),
    "3F000": (er.BAD_DB_ERROR, False, ""),
    "3D000": (er.BAD_DB_ERROR, False, "to create the database, run: createdb -E UTF8 NAME; rplctl start"),
    "42703": (er.BAD_FIELD_ERROR, False, ""),
    "42P07": (er.TABLE_EXISTS_ERROR, False, f"to continue after you have dropped the table on the target, which "
              f"deletes its rows, run: rplctl start{OR_SKIP}"),
    "42501": (er.TABLEACCESS_DENIED_ERROR, False, _GRANT),
    "25006": (er.OPTION_PREVENTS_STATEMENT, False, "to continue after you have made the target writable (it is a "
              "standby or read-only), run: rplctl start"),
    "53100": (er.DISK_FULL, True, "free space on the disk of the target; the channel then continues by itself"),
    "53300": (er.CON_COUNT_ERROR, True, "to allow more connections, run on the target: ALTER SYSTEM SET "
              "max_connections = 200\nThen restart PostgreSQL; the channel continues by itself"),
    "28P01": (er.ACCESS_DENIED_ERROR, False, "to change the target's password, run: rplctl init"
              " --target-password-file FILE; rplctl start"),
    "28000": (er.ACCESS_DENIED_ERROR, False, "check the target's user and pg_hba.conf; a cleartext password requires"
              " sslmode=verify-full"),
    _LIMIT: (er.TOO_LONG_KEY, False, _LONG_KEY),
    "54011": (er.TOO_MANY_FIELDS, False, f"{OTHER_KIND}{OR_EXCLUDE}"),
    "22001": (er.DATA_TOO_LONG, False, ""),
    "22003": (er.WARN_DATA_OUT_OF_RANGE, False, ""),
    "22007": (er.TRUNCATED_WRONG_VALUE, False, _DATE),
    "22008": (er.TRUNCATED_WRONG_VALUE, False, _DATE),
    "22021": (er.TRUNCATED_WRONG_VALUE_FOR_FIELD, False, ""),
    "22P02": (er.TRUNCATED_WRONG_VALUE_FOR_FIELD, False, ""),
    "2BP01": _IN_USE,
    "0A000": _IN_USE,
}  # fmt: skip
_REFUSALS = {
    "authentication failed": "28P01",
    "no pg_hba.conf": "28000",
    "cleartext password": "28000",
    "does not exist": "3D000",
}
# errors of login that are transient, because somebody may repair the account; a missing database stops the channel
_MAY_PASS = frozenset({"28P01", "28000"})
_CLASSES: dict[str, tuple[int, bool, str]] = {
    "08": (er.CR_SERVER_LOST, True, ""),
    "57": (er.CR_SERVER_LOST, True, ""),  # shutdown, crash, starting up
    "58": (er.GET_ERRNO, False, "to continue after you have checked the target's disk and log, run: rplctl start"),
}


class _LargeBytesDumper(psycopg.adapt.Dumper):
    """The converter with which psycopg sends a LargeBytes parameter, in the protocol's binary format."""

    format = psycopg.pq.Format.BINARY
    oid = psycopg.adapters.types["bytea"].oid

    def dump(self, obj: LargeBytes) -> bytes | memoryview:
        assert not isinstance(obj.raw, LargeText)  # the module large.py sends a LargeText in pieces
        return obj.raw


def open_engine(url: str) -> Engine:
    """Return a SQLAlchemy engine for the target's URL. All its sessions get the common settings of this module.

    Options of libpq follow the question mark in the URL. Raises ConfigError if a password could be sent as cleartext.
    """
    parsed = with_driver(make_url(url))
    nul = NulInText.REPLACE if parsed.query.get(NUL_IN_TEXT) == NulInText.REPLACE.value else NulInText.STOP
    parsed = parsed.difference_update_query([NUL_IN_TEXT])
    options: dict[str, Any] = {"connect_timeout": 10, "application_name": "rplctl", "client_encoding": "UTF8"}
    options |= {name: value for name, value in _KEEPALIVE.items() if name not in parsed.query} | _password_rule(parsed)
    engine = create_engine(  # a parallel commit can use sixteen connections, more than the pool's default
        parsed,
        connect_args=options,
        hide_parameters=True,
        pool_pre_ping=True,
        max_overflow=-1,
        execution_options={NUL_IN_TEXT: nul},
    )
    watch_connections(engine)

    @event.listens_for(engine, "connect")
    def _configure(connection: psycopg.Connection[Any], _record: object) -> None:
        # a prepared statement would keep its parameter types if a column's type changes
        connection.prepare_threshold = None
        connection.adapters.register_dumper(LargeBytes, _LargeBytesDumper)
        connection.execute(_SESSION.encode())
        connection.commit()

    return engine


def nul_in_text(engine: Engine) -> NulInText:
    """Return the treatment of the character NUL in text, which the target's URL sets."""
    found: NulInText = engine.get_execution_options().get(NUL_IN_TEXT, NulInText.STOP)
    return found


def _password_rule(url: URL) -> dict[str, str]:
    """Return the option of libpq that refuses to send a cleartext password to a server that TLS does not verify (D14).

    The result is {} if the URL has an sslmode that verifies the server, or its own require_auth. Raises ConfigError for
    a libpq before 16, which lacks the option.
    """
    if str(url.query.get("sslmode")) in _VERIFYING or "require_auth" in url.query:
        return {}
    if psycopg.pq.version() < _FIRST_LIBPQ_TO_REFUSE:
        raise ConfigError(
            f"libpq {psycopg.pq.version() // 10000} would send the target's password to any server as cleartext",
            hint="append ?sslmode=verify-full to the URL\nTo install a newer libpq, run: pip install 'psycopg[binary]'",
        )
    return {"require_auth": "!password"}


def protection(connection: Any) -> Protection:
    """Return the protection of a connection: whether it is remote, encrypted, and verified by TLS."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    parameters = driver.info.get_parameters()
    address = driver.info.hostaddr  # '' on a Unix socket
    is_remote = bool(address) and not ip_address(address.partition("%")[0]).is_loopback
    encrypted = bool(driver.pgconn.ssl_in_use)
    return Protection(
        is_remote=is_remote, encrypted=encrypted, verified=encrypted and parameters.get("sslmode") in _VERIFYING
    )


def with_driver(url: URL) -> URL:
    """Return the URL with psycopg 3 as its driver, because this package uses the COPY and the errors of psycopg 3."""
    return url.set(drivername="postgresql+psycopg")


def target_error(error: psycopg.Error) -> TargetError:
    """Convert an error of the driver to a TargetError with MySQL's error number and the server's text.

    The attribute `transient` of the result is True if another attempt may succeed.
    """
    state = error.sqlstate or ""
    text = error.diag.message_primary or str(error).strip() or type(error).__name__
    if not state and isinstance(error, psycopg.OperationalError):
        return _unreachable(str(error).strip())
    errno, transient, hint = STATES.get(state) or _CLASSES.get(state[:2]) or (er.UNKNOWN_ERROR, False, "")
    if state == _LIMIT and error.diag.source_file in _HEAP:
        errno, hint = er.TOO_BIG_ROWSIZE, _LONG_ROW
    if state == "23503" and "still referenced" in (error.diag.message_detail or ""):
        errno = er.ROW_IS_REFERENCED_2
    return TargetError(f"the target reports: {text}", errno=errno, transient=transient, hint=hint)


def _unreachable(text: str) -> TargetError:
    """Convert the text of an error without an SQLSTATE, which a failed attempt to connect raises.

    Only the text shows whether the password is wrong or the server is unreachable.
    """
    for words, state in _REFUSALS.items():
        if words in text:
            errno, _, hint = STATES[state]
            may_pass = state in _MAY_PASS
            return TargetError(f"the target reports: {text}", errno=errno, transient=may_pass, hint=hint)
    return TargetError(f"Lost connection to the target: {text}", errno=er.CR_SERVER_LOST, transient=True)


@contextmanager
def mapped_errors() -> Iterator[None]:
    """Convert errors of the driver or SQLAlchemy to TargetError."""
    try:
        yield
    except DBAPIError as error:
        cause = error.orig
        raise (target_error(cause) if isinstance(cause, psycopg.Error) else TargetError(str(cause))) from None
    except psycopg.Error as error:
        raise target_error(error) from None
