"""Sets the session variables for a statement of the source on the target, and resets them afterwards (D10, D11, D21).

Invariant: all statements of rplctl (positions, savepoints, rows, LOAD DATA, XA, SET) run in rplctl's own session, which
has the variables `settings.ROWS`. Only `statement` sets the session of a statement of the source, and only `leave`
restores rplctl's own session. Outside of a `foreign` block, the connection itself calls `leave` before each command
(`LoadingConnection.before_own`), so that no caller needs to call `leave`.

The SQL of `leave` has no quotes and only ASCII characters, because it contains texts as hex. So it means the same under
every character_set_client, collation_connection and sql_mode, and one statement is enough.

Only changed variables are sent. But `leave` sends all that were ever set, because a statement may have changed the
session. Autocommit is off. This module commits only transactions that the next statement commits anyway (`own_commits`,
and `statement` before DDL).

The variables are those of Query_event in the manual. mysqlbinlog and mariadb-binlog print the same variables.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pymysql import err

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, TargetError
from rplctl.event.charset import charset_of
from rplctl.event.decimal import decimal_text
from rplctl.event.events import Intvar, Rand, UserVar
from rplctl.event.query import Query
from rplctl.schema.context import TIME_ROUND_FRACTIONAL, TIME_TRUNCATE_FRACTIONAL
from rplctl.sql_text import (
    NOTHING,
    NULL,
    Grammar,
    Sql,
    SqlBytes,
    as_text,
    backticked,
    float_literal,
    hex_bytes,
    joined,
    matched,
    word,
    written,
    written_bytes,
)
from rplctl.target.mysql.collations import collation_of_other_vendor
from rplctl.target.mysql.settings import (
    DEFAULT,
    LENIENT,
    OFF,
    ON,
    OWN_CHARSETS,
    ROWS,
    Settings,
    assignments,
    integer,
    literal,
)
from rplctl.target.mysql.values import quote

StatementVariable = Intvar | Rand | UserVar

_CANONICAL = {f"character_set_{what}": f"collation_{what}" for what in ("connection", "server", "database")}
_ALIASES = _CANONICAL | {collation: charset for charset, collation in _CANONICAL.items()}
# `leave` gives these values to variables that are not in ROWS. All other variables get DEFAULT, the server's value.
_OWN = {"sql_if_exists": OFF, "check_constraint_checks": OFF}

_BETWEEN_TRANSACTIONS = "explicit_defaults_for_timestamp"  # MySQL refuses to set it in a transaction; used by DDL
_BINARY = 63
# bits of flags2
_AUTO_IS_NULL, _NO_FOREIGN_KEYS, _NO_UNIQUE = 14, 26, 27
_MARIADB_FLAGS = {  # bit → variable, value if the bit is set, value if not
    15: ("check_constraint_checks", OFF, ON),
    28: ("sql_if_exists", ON, OFF),
    30: ("system_versioning_insert_history", ON, OFF),
}
_MARIADB_SINCE = {"sql_if_exists": 100503, "system_versioning_insert_history": 101011}
_DEFAULTS_SINCE = {True: 100802, False: 50600}  # is MariaDB → a session can set explicit_defaults_for_timestamp
_REQUIRES_KEYS_SINCE, _GENERATES_KEYS_SINCE = 80013, 80030  # MySQL
_UTF8MB4_DEFAULT_SINCE = 80011  # MySQL's default_collation_for_utf8mb4
_GENERAL = 45  # utf8mb4_general_ci
_DEFAULT_COLLATIONS_SINCE = 110201  # MariaDB's character_set_collations
_GONE_IN_MYSQL_8 = 0x3FF << 8 | 1 << 28  # sql_mode: POSTGRESQL … MYSQL40, NO_AUTO_CREATE_USER
# MariaDB's modes that change the meaning of a statement
_ONLY_MARIADB = {1 << 9: "ORACLE", 1 << 32: "EMPTY_STRING_IS_NULL", 1 << 33: "SIMULTANEOUS_ASSIGNMENT"}
_COMMON_MODES = 0xFFFF_FFFF & ~(_GONE_IN_MYSQL_8 | 1 << 4)  # these modes mean the same on both vendors


@dataclass(frozen=True, slots=True)
class ServerKind:
    """The vendor and version of a server: `10.11.19-MariaDB` → (True, 101119)."""

    is_mariadb: bool
    version: int


class Session:
    """Controls the session variables of one connection. `send`: executes a statement. `collation_name`: returns the
    target's name for the collation with an id, or ''.
    """

    def __init__(
        self,
        send: Callable[[SqlBytes], object],
        server: ServerKind,
        collation_name: Callable[[int], str],
        connection_id: int,
    ) -> None:
        self._send = send
        # the caller passes the id: CONNECTION_ID() would return pseudo_thread_id if a statement has set it
        self._home = ROWS | _OWN | primary_key_settings("OFF", server) | {"pseudo_thread_id": integer(connection_id)}
        self._as_it_is_now: dict[str, Sql] = {}
        if not server.is_mariadb and server.version >= 80000:  # else information_schema is up to a day old
            self._as_it_is_now = {"information_schema_stats_expiry": OFF}
        self._home |= self._as_it_is_now
        self._collation_name = collation_name
        self._server = server
        self._current: dict[str, Sql] = {}
        self._ever_set: set[str] = set(ROWS)
        self._is_foreign = False  # True: variables of a statement of the source may be set
        self._in_source_block = False  # True: the caller is inside of a `foreign` block
        self._database = ""
        self.missing_database: err.Error | None = None  # the error for the default database of the last statement
        self._policy: dict[str, Sql] = {}  # primary key settings for every statement of the source
        self._own: dict[str, Sql] = {}  # the server's values of these settings, used if the policy does not set them

    @contextmanager
    def foreign(self) -> Iterator[None]:
        """Send SQL in the session of a statement of the source during the `with` block, not in rplctl's session."""
        before, self._in_source_block = self._in_source_block, True
        try:
            yield
        finally:
            self._in_source_block = before

    def before_own(self) -> None:
        """Restore rplctl's own session, but do nothing inside of a `foreign` block. The connection calls this method
        before each command.
        """
        if not self._in_source_block:
            self.leave()

    def leave(self) -> None:
        """Restore rplctl's own session. Send nothing if no statement of the source has changed the session."""
        if not self._is_foreign:
            return
        own = {name: self._home.get(name, DEFAULT) for name in sorted(self._ever_set - {_BETWEEN_TRANSACTIONS})}
        with self.foreign():
            self._send(assignments(OWN_CHARSETS | own))
        self._current = {name: self._current[name] for name in (_BETWEEN_TRANSACTIONS,) if name in self._current} | own
        self._is_foreign = False

    def rows(self, *, foreign_keys: bool, lenient: bool = False) -> None:
        """Set the session variables for row changes of rplctl. `lenient`: True to turn off strict mode."""
        wanted = dict(LENIENT if lenient else ROWS)
        wanted["foreign_key_checks"] = ON if foreign_keys else OFF
        if self._server.is_mariadb:
            wanted["check_constraint_checks"] = OFF  # the source has already checked the rows, or did not want a check
        wanted |= primary_key_settings("OFF", self._server)  # rplctl's temporary tables have no primary key
        wanted |= self._as_it_is_now
        self.leave()
        self._require(wanted)

    def follow(self, policy: str, query: Callable[[Sql], Sequence[Sequence[object]]]) -> None:
        """Use the policy (a value of REQUIRE_TABLE_PRIMARY_KEY_CHECK) for all later statements of the source. `query`
        reads the present values, because a change of these variables requires a privilege and is avoided if possible.
        """
        self._policy = primary_key_settings(policy, self._server)
        names = list(primary_key_settings("OFF", self._server))
        if names:
            values = query(written("SELECT {}", joined(", ", (written("@@session.{}", word(name)) for name in names))))[
                0
            ]
            self._own = {name: word(str(value)) for name, value in zip(names, values, strict=True)}
            self._current |= self._own

    def _require(self, wanted: Settings, once: Sequence[Sql] = ()) -> None:
        """Set the variables whose values differ from `wanted`. `once`: assignments only for the next statement."""
        changed = self._missing(wanted)
        if self._is_foreign and not _reads_alike(assignments(changed, once)):
            self.leave()
            changed = self._missing(wanted)
        if not changed and not once:
            return
        for name in changed:  # if the server refuses the SET, the values of the variables and their aliases are unknown
            self._current.pop(name, None)
            self._current.pop(_ALIASES.get(name, ""), None)
            self._ever_set.add(_CANONICAL.get(name, name))
        self._send(assignments(changed, once))
        self._current.update(changed)

    def _missing(self, wanted: Settings) -> dict[str, Sql]:
        return {name: value for name, value in wanted.items() if self._current.get(name) != value}

    def use(self, database: str) -> None:
        if database and database != self._database:
            self._send(written_bytes(b"USE %s", quote(database)))
            self._database = database
            self._current.pop("collation_database", None)  # USE has changed this variable

    def _use_or_none(self, database: str) -> None:
        """Set the default database. If the target lacks the database, use information_schema, and set
        `missing_database` to the error.

        A missing database is no error yet, because the statement may qualify all its names. But a session cannot unset
        its default database. In information_schema, nothing can be created or changed. So a name without a database
        causes an error, and the caller then reports `missing_database`.
        """
        try:
            self.use(database)
        except err.Error as error:
            if error.args[0] != er.BAD_DB_ERROR:
                raise
            self.use("information_schema")
            self.missing_database = error

    def forget_database(self) -> None:
        """Send USE again before the next statement, because a statement may have dropped or created the database."""
        self._database = ""

    def statement(
        self, query: Query, variables: Sequence[StatementVariable], source: ServerKind, *, is_ddl: bool
    ) -> None:
        """Set the session variables for one statement of the source. `variables`: the INTVAR, RAND and USER_VAR events
        of the statement.

        The caller must be inside of a `foreign` block until the statement has been sent.
        """
        is_same = source.is_mariadb == self._server.is_mariadb
        once = [self._once(variable, is_same_vendor=is_same) for variable in variables]
        if not query.database.isascii():
            self.leave()
        self.missing_database = None
        if not query.suppress_use:
            self._use_or_none(query.database)
        wanted = statement_settings(query, source, self._server, self._collation_name)
        defaults = query.context.character_set_collations
        if defaults and self._server.is_mariadb and self._server.version >= _DEFAULT_COLLATIONS_SINCE:
            pairs = (f"{charset_of(charset)}={self._collation_name(collation)}" for charset, collation in defaults)
            wanted["character_set_collations"] = literal(",".join(pairs))
        if not is_ddl:
            wanted.pop(_BETWEEN_TRANSACTIONS, None)
        elif not self._server.is_mariadb and wanted.get(_BETWEEN_TRANSACTIONS) != self._current.get(
            _BETWEEN_TRANSACTIONS
        ):
            self._send(written_bytes(b"COMMIT"))  # the DDL statement would commit anyway
        try:
            self._require(self._own | wanted | self._policy, once)
        finally:
            self._is_foreign = True

    @contextmanager
    def own_commits(self, *, wanted: bool) -> Iterator[None]:
        """Turn on autocommit for the `with` block if `wanted`. The block executes DDL, which commits anyway.

        Some statements of MariaDB fail with autocommit off. EXCHANGE PARTITION and CONVERT TABLE check rows, and then
        wait for the locks of this check. SYSTEM VERSIONING writes its entry to mysql.transaction_registry twice (errors
        1062 and 1292).
        """
        if wanted:
            self._send(written_bytes(b"SET autocommit=1"))
        try:
            yield
        finally:
            if wanted:
                self._send(written_bytes(b"SET autocommit=0"))

    def _once(self, variable: StatementVariable, *, is_same_vendor: bool) -> Sql:
        match variable:
            case Intvar():
                name = written("last_insert_id") if variable.kind == 1 else written("insert_id")
                return written("@@session.{}={}", name, variable.value)
            case Rand():
                return written("@@session.rand_seed1={}, @@session.rand_seed2={}", variable.seed1, variable.seed2)
            case UserVar():
                return written("@{}={}", backticked(variable.name), self._user_variable(variable, is_same_vendor))

    def _user_variable(self, variable: UserVar, is_same_vendor: bool) -> Sql:
        """Return the value of a user variable (USER_VAR event) as SQL with the type and collation of the source."""
        raw = variable.value
        if raw is None:
            return NULL
        if variable.kind == 1:
            return float_literal(struct.unpack("<d", raw)[0])
        if variable.kind == 2:
            return integer(int.from_bytes(raw, "little", signed=not variable.unsigned))
        if variable.kind == 4:
            return matched(Grammar.DECIMAL, decimal_text(raw[2:], raw[0], raw[1]))
        if variable.collation == _BINARY:
            return as_text(hex_bytes(raw))
        charset, name = charset_of(variable.collation), self._collation_name(variable.collation)
        if not is_same_vendor:
            name = collation_of_other_vendor(variable.collation, self._collation_name)
        collation = written(" COLLATE {}", word(name)) if name else NOTHING
        return written("_{} {}{}", word(charset), as_text(hex_bytes(raw)), collation)


def primary_key_settings(policy: str, server: ServerKind) -> dict[str, Sql]:
    """Return the session variables that implement a policy of REQUIRE_TABLE_PRIMARY_KEY_CHECK on this server.

    With the policy STREAM, the event of each statement has the setting. The server's global value of
    sql_generate_invisible_primary_key is ignored, as by MySQL's applier. Raises TargetError 1235 if the server does not
    support the policy.
    """
    found: dict[str, Sql] = {}
    generates = not server.is_mariadb and server.version >= _GENERATES_KEYS_SINCE
    if policy == "GENERATE" and not generates:
        raise TargetError(
            "REQUIRE_TABLE_PRIMARY_KEY_CHECK = GENERATE requires a MySQL target, 8.0.30 or later",
            errno=er.NOT_SUPPORTED_YET,
            hint="to use the source's setting, run: rplctl change-master --require-table-primary-key-check stream; "
            "rplctl start",
        )
    if policy != "STREAM" and not server.is_mariadb and server.version >= _REQUIRES_KEYS_SINCE:
        found["sql_require_primary_key"] = ON if policy == "ON" else OFF
    if generates:
        found["sql_generate_invisible_primary_key"] = ON if policy == "GENERATE" else OFF
    return found


def _reads_alike(sql: bytes) -> bool:
    """True if the SQL means the same in every session, because it is ASCII and has no quoted text."""
    return sql.isascii() and b"'" not in sql


def collations_sql(server: ServerKind) -> Sql:
    """Return a query for the ids and names of a server's collations. Since MariaDB 10.10, a collation can belong to
    several character sets, and then has a full name for each character set.
    """
    if server.is_mariadb and server.version >= 101001:
        return written("SELECT ID, FULL_COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY")
    return written("SELECT ID, COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL")


def statement_settings(
    query: Query, source: ServerKind, target: ServerKind, collation_name: Callable[[int], str]
) -> dict[str, Sql]:
    """Return the session variables for a statement of the source: name → SQL of the value. Character sets are last,
    because they change how the server reads the other values.

    `collation_name`: returns the target's name for the collation with an id, or "". Raises TargetError 1231 if the
    target lacks an SQL mode, and 1273 if the target lacks a collation.
    """
    context = query.context
    stamp = f"{query.timestamp}.{context.microseconds:06d}" if context.microseconds else str(query.timestamp)
    found = {"timestamp": matched(Grammar.DECIMAL, stamp), "pseudo_thread_id": integer(query.thread_id)}
    found |= _flags(context.flags2 or 0, source, target)
    found["sql_mode"] = ROWS["sql_mode"]
    if context.sql_mode is not None:
        found["sql_mode"] = integer(_sql_mode(context.sql_mode, source, target))
    increment, offset = context.auto_increment or (1, 1)
    found |= {"auto_increment_increment": integer(increment), "auto_increment_offset": integer(offset)}
    found["time_zone"] = literal(context.time_zone) if context.time_zone else DEFAULT
    found["lc_time_names"] = integer(context.lc_time_names or 0)
    if target.version >= _DEFAULTS_SINCE[target.is_mariadb]:
        explicit = context.has_explicit_defaults(is_mariadb=source.is_mariadb, version=source.version)
        found[_BETWEEN_TRANSACTIONS] = ON if explicit else OFF
    if not target.is_mariadb and not source.is_mariadb:
        found |= _mysql_only(query)
    elif source.is_mariadb and not target.is_mariadb and target.version >= _UTF8MB4_DEFAULT_SINCE:
        chosen = dict(context.character_set_collations).get(_GENERAL, _GENERAL)
        found["default_collation_for_utf8mb4"] = word(collation_of_other_vendor(chosen, collation_name))
    return found | _charsets(query, source, target, collation_name)


def _flags(flags: int, source: ServerKind, target: ServerKind) -> dict[str, Sql]:
    found = {
        "foreign_key_checks": OFF if flags >> _NO_FOREIGN_KEYS & 1 else ON,
        "unique_checks": OFF if flags >> _NO_UNIQUE & 1 else ON,
        "sql_auto_is_null": ON if flags >> _AUTO_IS_NULL & 1 else OFF,
    }
    if source.is_mariadb and target.is_mariadb:
        for bit, (name, if_set, if_not) in _MARIADB_FLAGS.items():
            if target.version >= _MARIADB_SINCE.get(name, 0):
                found[name] = if_set if flags >> bit & 1 else if_not
        # events lack this setting, but the source had the value KEEP: otherwise, it would have refused the statement
        found["system_versioning_alter_history"] = literal("KEEP")
    return found


def _mysql_only(query: Query) -> dict[str, Sql]:
    context = query.context
    found = {
        "sql_require_primary_key": context.sql_require_primary_key,
        "default_table_encryption": context.default_table_encryption,
    }
    settings = {name: integer(int(value)) for name, value in found.items() if value is not None}
    if context.default_collation_for_utf8mb4 is not None:
        settings["default_collation_for_utf8mb4"] = integer(context.default_collation_for_utf8mb4)
    return settings


def _sql_mode(mode: int, source: ServerKind, target: ServerKind) -> int:
    """Return the bits of sql_mode with which the target reads a statement like the source. Raises TargetError 1231 if
    the target lacks a mode that changes the meaning of statements.
    """
    if source.is_mariadb != target.is_mariadb:
        if source.is_mariadb and (lost := [name for bit, name in _ONLY_MARIADB.items() if mode & bit]):
            raise TargetError(
                f"the statement was executed in sql_mode {','.join(lost)}, which a MySQL target does not have",
                errno=er.WRONG_VALUE_FOR_VAR,
                hint=BY_HAND,
            )
        return mode & _COMMON_MODES | _fractions(mode, target)
    return mode if target.is_mariadb or target.version < 80000 else mode & ~_GONE_IN_MYSQL_8


def _fractions(mode: int, target: ServerKind) -> int:
    """Return the bit of sql_mode with which the target treats surplus digits of a second like the source of the other
    vendor, or 0. By default, MySQL rounds and MariaDB truncates.
    """
    if target.is_mariadb:
        return TIME_ROUND_FRACTIONAL if target.version >= 100400 and not mode & TIME_TRUNCATE_FRACTIONAL else 0
    return TIME_TRUNCATE_FRACTIONAL if target.version >= 80000 and not mode & TIME_ROUND_FRACTIONAL else 0


def _charsets(
    query: Query, source: ServerKind, target: ServerKind, collation_name: Callable[[int], str]
) -> dict[str, Sql]:
    context = query.context
    same = source.is_mariadb == target.is_mariadb
    found: dict[str, Sql] = {}
    for name, collation in (
        ("collation_server", context.server_collation),
        ("collation_database", context.database_collation),
        ("collation_connection", context.connection_collation),
    ):
        if collation:
            found[name] = integer(collation) if same else word(collation_of_other_vendor(collation, collation_name))
    found.setdefault("collation_database", DEFAULT)
    found["character_set_client"] = word(charset_of(context.client_collation or 45))
    return found
