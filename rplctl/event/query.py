"""Parse a statement and its session variables from QUERY (2), QUERY_COMPRESSED (165) or EXECUTE_LOAD_QUERY (18).

    u32 thread id, u32 execution seconds, u8 database length, u16 error code, u16 status length   (after the header)
    18 adds: u32 file id, u32 start and u32 end of the file name in the statement, u8 duplicate handling
    status variables: (u8 code, value)*; database, NUL; the statement to the end (165: compressed, see `payload`)

EXECUTE_LOAD_QUERY is a LOAD DATA statement. An unknown status variable is an error (D12): its length is unknown, and it
may change the effect of the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rplctl import mysql_errors as er
from rplctl.errors import BY_HAND, BinlogFormatError
from rplctl.event.charset import charset_of, decode_text
from rplctl.event.cursor import EventCursor, open_event
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid_event import MariadbGtidExtra
from rplctl.event.header import FLAG_SUPPRESS_USE, FLAG_THREAD_SPECIFIC, format_error, parse_header
from rplctl.event.inflate import MAX_INFLATED, inflate
from rplctl.event.table_map import BINARY_COLLATION
from rplctl.event.types import EventType
from rplctl.mask import masked

_UTF8MB4 = 45
_TOO_MANY_DATABASES = 254
_EXPLICIT_DEFAULTS = 24  # bit of flags2
_MARIADB_LOGS_DEFAULTS, _MYSQL_HAS_DEFAULTS = 100802, 80000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """The session variables of a statement. A variable that is not logged is None: the server's default applies."""

    flags2: int | None = None  # bits: 14 sql_auto_is_null, 19 autocommit=0, 26 foreign_key_checks=0, 27 unique_checks=0
    sql_mode: int | None = None
    catalog: str | None = None
    auto_increment: tuple[int, int] | None = None  # increment, offset
    client_collation: int | None = None  # of client, connection and server: collation ids
    connection_collation: int | None = None
    server_collation: int | None = None
    database_collation: int | None = None
    time_zone: str | None = None
    lc_time_names: int | None = None
    table_map_for_update: int | None = None
    invoker: tuple[str, str] | None = None  # user, host
    updated_databases: tuple[str, ...] | None = None
    microseconds: int = 0
    explicit_defaults_for_timestamp: bool | None = None
    ddl_xid: int | None = None
    default_collation_for_utf8mb4: int | None = None
    sql_require_primary_key: bool | None = None
    default_table_encryption: bool | None = None
    enable_cascade_triggers: bool | None = None
    gtid_extra: MariadbGtidExtra = MariadbGtidExtra(0)  # MariaDB: START / COMMIT / ROLLBACK ALTER
    alter_sequence: int = 0
    character_set_collations: tuple[tuple[int, int], ...] = ()  # MariaDB: (charset's default, chosen collation)

    def has_explicit_defaults(self, *, is_mariadb: bool, version: int) -> bool:
        """Return the value of explicit_defaults_for_timestamp in the session that executed the statement.

        MariaDB logs the variable since 10.8.2, and its default was OFF before. If MySQL does not log the variable, the
        result is the default: ON since 8.0, OFF before. `version` is a number like 80036 for 8.0.36.
        """
        if is_mariadb:
            return version >= _MARIADB_LOGS_DEFAULTS and bool((self.flags2 or 0) >> _EXPLICIT_DEFAULTS & 1)
        logged = self.explicit_defaults_for_timestamp
        return version >= _MYSQL_HAS_DEFAULTS if logged is None else logged


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    timestamp: int
    thread_id: int
    execution_time: int
    error_code: int
    database: str
    sql_bytes: bytes  # in the client's charset
    context: QueryContext
    uses_temporary_tables: bool
    suppress_use: bool

    @property
    def charset(self) -> str:
        """The client's character set, in which the statement is written. Servers read `binary` statements as UTF-8."""
        collation = self.context.client_collation or _UTF8MB4
        return charset_of(_UTF8MB4 if collation == BINARY_COLLATION else collation)

    @property
    def sql(self) -> str:
        """The statement as text. Raises BinlogFormatError if its bytes are not in the client's charset.

        Servers log literals in other charsets unchanged. A statement with such a literal can only be executed as
        `sql_bytes`.
        """
        charset = self.charset
        try:
            return decode_text(self.sql_bytes, charset)
        except BinlogFormatError:
            raw = self.sql_bytes.decode("latin-1")
            if masked(raw) == raw:
                raise
            raise BinlogFormatError(
                f"a statement that holds a password is not {charset} text",
                errno=er.TRUNCATED_WRONG_VALUE_FOR_FIELD,
                hint=BY_HAND,
            ) from None


@dataclass(frozen=True, slots=True)
class ExecuteLoadQuery:
    """A LOAD DATA INFILE statement. Earlier events have the blocks of the file (`LoadBlock`).

    `query.sql_bytes[name_start:name_end]` is the file name in the statement.
    """

    query: Query
    file_id: int
    name_start: int
    name_end: int
    duplicate_handling: int  # 0 error, 1 IGNORE, 2 REPLACE


def parse_query(event: bytes, description: FormatDescription) -> Query:
    """Return the statement of one complete QUERY or QUERY_COMPRESSED event.

    Raises BinlogFormatError for another type of event, or if the event is damaged.
    """
    if event[4:5] not in (bytes([EventType.QUERY]), bytes([EventType.QUERY_COMPRESSED])):
        raise format_error("a QUERY event was expected", event)
    return _parse(event, open_event(event, description.checksum_length))[0]


def parse_execute_load(event: bytes, description: FormatDescription) -> ExecuteLoadQuery:
    """Return the statement of one complete EXECUTE_LOAD_QUERY event.

    Raises BinlogFormatError for another type of event, or if the event is damaged.
    """
    query, load = _parse(event, open_event(event, description.checksum_length))
    if load is None or not load[1] <= load[2] <= len(query.sql_bytes):
        raise format_error("an EXECUTE_LOAD_QUERY with a file name inside its statement was expected", event)
    return ExecuteLoadQuery(query, *load)


def _parse(event: bytes, body: EventCursor) -> tuple[Query, tuple[int, int, int, int] | None]:
    header = parse_header(event)
    thread_id, execution_time, database_length = body.unsigned(4), body.unsigned(4), body.unsigned(1)
    error_code, status_length = body.unsigned(2), body.unsigned(2)
    load = None
    if header.type_code == EventType.EXECUTE_LOAD_QUERY:
        load = (body.unsigned(4), body.unsigned(4), body.unsigned(4), body.unsigned(1))
    context = _parse_status(body.sub(status_length))
    database = _text(body, database_length)
    if body.unsigned(1) != 0:
        raise body.error("the database name of a QUERY does not end with NUL")
    sql = body.rest()
    if not sql:
        raise body.error("a QUERY has no statement")
    if header.type_code == EventType.QUERY_COMPRESSED:
        sql = inflate(sql, MAX_INFLATED, event)
    query = Query(
        timestamp=header.timestamp,
        thread_id=thread_id,
        execution_time=execution_time,
        error_code=error_code,
        database=database,
        sql_bytes=sql,
        context=context,
        uses_temporary_tables=bool(header.flags & FLAG_THREAD_SPECIFIC),
        suppress_use=bool(header.flags & FLAG_SUPPRESS_USE),
    )
    return query, load


def _text(body: EventCursor, length: int) -> str:
    raw = body.take(length)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise body.error(f"a name in a QUERY is not UTF-8: {raw.hex(' ')}") from None


Fields: TypeAlias = dict[str, Any]  # fields of a QueryContext by name


def _parse_status(body: EventCursor) -> QueryContext:
    fields: Fields = {}
    while body.remaining:
        code = body.unsigned(1)
        reader = _STATUS.get(code)
        if reader is None:
            raise body.error(f"unknown status variable {code} in a QUERY")
        fields |= reader(body)
    return QueryContext(**fields)


def _charsets(body: EventCursor) -> Fields:
    client, connection, server = body.unsigned(2), body.unsigned(2), body.unsigned(2)
    return {"client_collation": client, "connection_collation": connection, "server_collation": server}


def _updated_databases(body: EventCursor) -> Fields:
    count = body.unsigned(1)
    if count == _TOO_MANY_DATABASES:
        return {}
    names: list[str] = []
    for _ in range(count):
        end = body.data.find(b"\0", body.position, body.end)
        names.append(_text(body, max(end - body.position, 0)))
        body.skip(1)
    return {"updated_databases": tuple(names)}


def _old_catalog(body: EventCursor) -> Fields:
    catalog = _text(body, body.unsigned(1))
    body.skip(1)
    return {"catalog": catalog}


def _gtid_flags(body: EventCursor) -> Fields:
    extra = MariadbGtidExtra(body.unsigned(1))
    ends_alter = extra & (MariadbGtidExtra.COMMIT_ALTER | MariadbGtidExtra.ROLLBACK_ALTER)
    return {"gtid_extra": extra, "alter_sequence": body.unsigned(8) if ends_alter else 0}


def _collation_map(body: EventCursor) -> Fields:
    pairs = tuple((body.unsigned(2), body.unsigned(2)) for _ in range(body.unsigned(1)))
    return {"character_set_collations": pairs}


def _ignored(width: int) -> Callable[[EventCursor], Fields]:
    def read(body: EventCursor) -> Fields:
        body.skip(width)
        return {}

    return read


def _invoker(body: EventCursor) -> Fields:
    user = _text(body, body.unsigned(1))
    return {"invoker": (user, _text(body, body.unsigned(1)))}


_STATUS: dict[int, Callable[[EventCursor], Fields]] = {
    0: lambda b: {"flags2": b.unsigned(4)},
    1: lambda b: {"sql_mode": b.unsigned(8)},
    2: _old_catalog,
    3: lambda b: {"auto_increment": (b.unsigned(2), b.unsigned(2))},
    4: _charsets,
    5: lambda b: {"time_zone": _text(b, b.unsigned(1))},
    6: lambda b: {"catalog": _text(b, b.unsigned(1))},
    7: lambda b: {"lc_time_names": b.unsigned(2)},
    8: lambda b: {"database_collation": b.unsigned(2)},
    9: lambda b: {"table_map_for_update": b.unsigned(8)},
    10: _ignored(4),  # master_data_written of MySQL 5.0
    11: _invoker,
    12: _updated_databases,
    13: lambda b: {"microseconds": b.unsigned(3)},
    16: lambda b: {"explicit_defaults_for_timestamp": bool(b.unsigned(1))},
    17: lambda b: {"ddl_xid": b.unsigned(8)},
    18: lambda b: {"default_collation_for_utf8mb4": b.unsigned(2)},
    19: lambda b: {"sql_require_primary_key": bool(b.unsigned(1))},
    20: lambda b: {"default_table_encryption": bool(b.unsigned(1))},
    21: lambda b: {"enable_cascade_triggers": bool(b.unsigned(1))},  # MySQL 9.7
    128: lambda b: {"microseconds": b.unsigned(3)},
    129: lambda b: {"ddl_xid": b.unsigned(8)},
    130: _gtid_flags,
    131: _collation_map,
}
