"""CREATE TABLE after its name: columns, keys, table options, partitions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rplctl.schema.column_definition import Constraint, parse_check, parse_column, parse_references
from rplctl.schema.cursor import Cursor
from rplctl.schema.data_type import accept_charset, accept_collation, charset_of
from rplctl.schema.model import Column, ForeignKey, Key, KeyKind, KeyPart, Partition, Partitioning
from rplctl.schema.partition import evaluate_values
from rplctl.schema.statement import AddForeignKey, AddKey, TableOptions

_KEY_WORDS = ("PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CONSTRAINT", "CHECK")
_OPTIONS = frozenset(
    "AUTO_INCREMENT AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM COMPRESSION CONNECTION DELAY_KEY_WRITE ENCRYPTION "
    "ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SECONDARY_ENGINE INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS "
    "PACK_KEYS PASSWORD ROW_FORMAT STATS_AUTO_RECALC STATS_PERSISTENT STATS_SAMPLE_PAGES AUTOEXTEND_SIZE TABLESPACE "
    "STORAGE PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL ENCRYPTED ENCRYPTION_KEY_ID TRANSACTIONAL "
    "IETF_QUOTES SEQUENCE NODEGROUP".split()
)


@dataclass(slots=True)
class Definitions:
    """What stands between the parentheses of CREATE TABLE, in order."""

    columns: list[Column] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    row_period: tuple[str, str] | None = None  # PERIOD FOR SYSTEM_TIME


def parse_definitions(cursor: Cursor, database: str) -> Definitions:
    found = Definitions()
    cursor.expect_symbol("(")
    while True:
        if is_constraint(cursor):
            found.constraints.append(parse_constraint(cursor, database))
        elif cursor.is_word("PERIOD") and cursor.ahead().value == "FOR":
            cursor.next(), cursor.next()
            if cursor.identifier().upper() != "SYSTEM_TIME":
                names = cursor.names_in_parentheses()  # an application-time period does not change rows by itself
            else:
                names = cursor.names_in_parentheses()
                found.row_period = (names[0], names[1])
        else:
            column, constraints = parse_column(cursor, database, cursor.identifier())
            found.columns.append(column)
            found.constraints.extend(constraints)
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return found


def is_constraint(cursor: Cursor) -> bool:
    if cursor.is_word("VECTOR") and cursor.ahead().kind == "word" and cursor.ahead().value in ("INDEX", "KEY"):
        return True
    return cursor.is_word(*_KEY_WORDS)


def parse_constraint(cursor: Cursor, database: str) -> Constraint:
    """A key, foreign key or check that stands by itself."""
    symbol = ""
    if cursor.accept("CONSTRAINT") and not cursor.is_word("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        _accept_if_not_exists(cursor)
        symbol = cursor.identifier()
    if cursor.is_word("CHECK"):
        return parse_check(cursor, symbol)
    if cursor.accept("FOREIGN KEY"):
        _accept_if_not_exists(cursor)
        key_name = "" if cursor.is_symbol("(") else cursor.identifier()
        columns = cursor.names_in_parentheses()
        key = parse_references(cursor, database, ForeignKey(symbol, columns, "", "", ()))
        return AddForeignKey(key, key_name)
    kind: KeyKind = "index"
    if cursor.accept("PRIMARY KEY"):
        kind, symbol = "primary", "PRIMARY"
    else:
        kind = accept_key_kind(cursor)
        if cursor.accept_any("INDEX", "KEY") is None and kind == "index":
            cursor.refuse()
    return parse_key(cursor, kind, symbol)


def accept_key_kind(cursor: Cursor) -> KeyKind:
    kinds: tuple[KeyKind, ...] = ("unique", "fulltext", "spatial", "vector")
    return next((kind for kind in kinds if cursor.accept(kind.upper())), "index")


def _accept_if_not_exists(cursor: Cursor) -> bool:
    return cursor.accept("IF NOT EXISTS")


def parse_key(cursor: Cursor, kind: KeyKind, symbol: str = "") -> AddKey:
    """`[IF NOT EXISTS] [name] [USING …] (parts) options`."""
    if_not_exists = _accept_if_not_exists(cursor)
    name = symbol
    if not cursor.is_symbol("(") and not cursor.is_word("USING", "TYPE"):
        written = cursor.identifier()
        name = symbol if kind == "primary" else written
    skip_key_options(cursor)
    parts = parse_key_parts(cursor)
    skip_key_options(cursor)
    return AddKey(Key(name, kind, parts), if_not_exists)


def parse_key_parts(cursor: Cursor) -> tuple[KeyPart, ...]:
    cursor.expect_symbol("(")
    parts = []
    while True:
        if cursor.is_symbol("("):
            part = KeyPart("", expression=cursor.skip_group())
        else:
            part = KeyPart(cursor.identifier())
            if cursor.accept("WITHOUT OVERLAPS"):
                part = KeyPart("", expression=part.column)
            elif cursor.accept_symbol("("):
                part = replace(part, length=cursor.integer())
                cursor.expect_symbol(")")
        direction = cursor.accept_any("ASC", "DESC")
        parts.append(replace(part, descending=direction == "DESC"))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(parts)


def skip_key_options(cursor: Cursor) -> None:
    """Storage hints of a key; none changes what it holds."""
    while True:
        if cursor.accept("WITH PARSER") or cursor.accept("USING") or cursor.accept("TYPE"):
            cursor.next()
        elif cursor.accept("COMMENT"):
            cursor.string()
        elif cursor.accept_any("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING", "M",
                               "DISTANCE"):  # fmt: skip
            if cursor.accept_symbol("="):
                cursor.next()
            elif cursor.token.kind in ("number", "string"):
                cursor.next()
        elif cursor.accept_any("VISIBLE", "INVISIBLE", "IGNORED") is None and not cursor.accept("NOT IGNORED"):
            return


def parse_options(cursor: Cursor) -> tuple[TableOptions, bool]:
    """Table options in any order, with or without commas → (the kept ones, WITH SYSTEM VERSIONING was there)."""
    options, versioned = TableOptions(), False
    while True:
        cursor.accept_symbol(",")
        if cursor.accept("WITH SYSTEM VERSIONING"):
            versioned = True
        elif (changed := accept_option(cursor, options)) is not None:
            options = changed
        else:
            return options, versioned


def accept_option(cursor: Cursor, options: TableOptions) -> TableOptions | None:
    """One table option; None when none comes next."""
    if cursor.is_word("DEFAULT") and cursor.ahead().value in ("CHARACTER", "CHARSET", "CHAR", "COLLATE"):
        cursor.next()
    if (charset := accept_charset(cursor)) is not None:
        return replace(options, charset=charset)
    if (collation := accept_collation(cursor)) is not None:
        return replace(options, collation=collation, charset=options.charset or charset_of(collation))
    if cursor.accept("ENGINE") or cursor.accept("TYPE"):
        cursor.accept_symbol("=")
        return replace(options, engine=cursor.string() if cursor.token.kind == "string" else cursor.identifier())
    if cursor.accept("COMMENT"):
        cursor.accept_symbol("=")
        return replace(options, comment=cursor.string())
    if cursor.accept("DATA DIRECTORY") or cursor.accept("INDEX DIRECTORY") or cursor.accept("START TRANSACTION"):
        if cursor.accept_symbol("="):
            cursor.string()
        return options
    if cursor.accept("UNION"):
        cursor.accept_symbol("=")
        cursor.skip_group()
        return options
    return options if _accept_storage_option(cursor) else None


def _accept_storage_option(cursor: Cursor) -> bool:
    """An option of the storage engine, `NAME = value`; MariaDB's engines bring names of their own, plain or quoted."""
    known = cursor.token.kind == "word" and cursor.token.value in _OPTIONS
    if not known and not (cursor.token.kind in ("word", "quoted") and cursor.ahead().value == "="):
        return False
    cursor.next()
    cursor.accept_symbol("=")
    cursor.next()
    return True


def parse_partitioning(cursor: Cursor) -> Partitioning:
    """After PARTITION BY: the method, its expression, and the partitions with their VALUES; subpartitions are cut."""
    words = [cursor.next().value]
    if words[0] == "LINEAR":
        words.append(cursor.next().value)
    if words[-1] in ("RANGE", "LIST") and cursor.accept("COLUMNS"):
        words.append("COLUMNS")
    if cursor.accept("ALGORITHM"):
        cursor.expect_symbol("=")
        cursor.next()
    expression = cursor.skip_group() if cursor.is_symbol("(") else ""
    while not cursor.at_end and not cursor.is_symbol("("):
        if cursor.is_word("AS", "SELECT", "IGNORE", "REPLACE", "WITH", "START"):
            break
        if cursor.accept("SUBPARTITION BY"):
            while not cursor.is_symbol("("):
                cursor.next()
            cursor.skip_group()
        else:
            cursor.next()  # PARTITIONS n, INTERVAL … of MariaDB's SYSTEM_TIME, AUTO
    partitions = parse_partition_list(cursor) if cursor.is_symbol("(") else ()
    return Partitioning(" ".join(words), expression, partitions)


def parse_partition_list(cursor: Cursor) -> tuple[Partition, ...]:
    cursor.expect_symbol("(")
    partitions = []
    while True:
        cursor.expect("PARTITION")
        partitions.append(parse_partition(cursor))
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(partitions)


def parse_partition(cursor: Cursor) -> Partition:
    """After PARTITION: its name and what belongs to it."""
    name = cursor.identifier()
    return Partition(name, evaluate_values(_values_of(cursor.skip_clause(), cursor), cursor.context))


def _values_of(clause: str, whole: Cursor) -> str:
    """`VALUES LESS THAN (10) ENGINE = InnoDB` → `LESS THAN (10)`."""
    cursor = Cursor(clause, whole.context)
    if not cursor.accept("VALUES"):
        return ""
    for method in ("LESS THAN", "IN"):
        if cursor.accept(method):
            _ = cursor.accept("MAXVALUE")
            return f"{method} ({cursor.skip_group()})" if cursor.is_symbol("(") else f"{method} (MAXVALUE)"
    whole.refuse()
