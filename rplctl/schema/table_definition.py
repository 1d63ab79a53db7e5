"""Parses CREATE TABLE after the name of the table: columns, keys, table options, partitions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rplctl.schema.column_definition import Constraint, parse_check, parse_column, parse_references
from rplctl.schema.data_type import accept_charset, accept_collation, charset_of
from rplctl.schema.model import Column, ForeignKey, Key, KeyKind, KeyPart, Partition, Partitioning
from rplctl.schema.partition import evaluate_values
from rplctl.schema.statement import AddForeignKey, AddKey, TableOptions
from rplctl.schema.token_stream import TokenStream

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
    """The parsed parts between the parentheses of CREATE TABLE, in their order."""

    columns: list[Column] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    row_period: tuple[str, str] | None = None  # the two columns of PERIOD FOR SYSTEM_TIME
    periods: dict[str, tuple[str, str]] = field(default_factory=dict)  # MariaDB's application-time periods: two columns


def parse_definitions(tokens: TokenStream, database: str) -> Definitions:
    found = Definitions()

    def one() -> None:
        if is_constraint(tokens):
            found.constraints.append(parse_constraint(tokens, database))
        elif tokens.is_word("PERIOD") and tokens.ahead().value == "FOR":
            tokens.next(), tokens.next()
            period, names = tokens.identifier(), tokens.in_parentheses(tokens.identifier)
            if period.upper() == "SYSTEM_TIME":
                found.row_period = (names[0], names[1])
            else:
                found.periods[period.casefold()] = (names[0], names[1])
        else:
            column, constraints = parse_column(tokens, database, tokens.identifier())
            found.columns.append(column)
            found.constraints.extend(constraints)

    tokens.in_parentheses(one)
    return found


def is_constraint(tokens: TokenStream) -> bool:
    if tokens.is_word("VECTOR") and tokens.ahead().kind == "word" and tokens.ahead().value in ("INDEX", "KEY"):
        return True
    return tokens.is_word(*_KEY_WORDS)


def parse_constraint(tokens: TokenStream, database: str) -> Constraint:
    """Parse a key, foreign key or check that is not part of a column's definition."""
    symbol = ""
    if tokens.accept("CONSTRAINT") and not tokens.is_word("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        tokens.accept("IF NOT EXISTS")
        symbol = tokens.identifier()
    if tokens.is_word("CHECK"):
        return parse_check(tokens, symbol)
    if tokens.accept("FOREIGN KEY"):
        if_not_exists = tokens.accept("IF NOT EXISTS")
        key_name = "" if tokens.is_symbol("(") else tokens.identifier()
        name = symbol or (key_name if tokens.context.is_mariadb else "")  # MySQL ignores this name
        columns = tokens.in_parentheses(tokens.identifier)
        key = ForeignKey(name=name, columns=columns, ref_database="", ref_table="", ref_columns=())
        return AddForeignKey(parse_references(tokens, database, key), key_name, if_not_exists)
    kind: KeyKind = "index"
    if tokens.accept("PRIMARY KEY"):
        kind, symbol = "primary", "PRIMARY"
    else:
        kind = accept_key_kind(tokens)
        if tokens.accept_any("INDEX", "KEY") is None and kind == "index":
            tokens.refuse()
    return parse_key(tokens, kind, symbol)


def accept_key_kind(tokens: TokenStream) -> KeyKind:
    kinds: tuple[KeyKind, ...] = ("unique", "fulltext", "spatial", "vector")
    return next((kind for kind in kinds if tokens.accept(kind.upper())), "index")


def parse_key(tokens: TokenStream, kind: KeyKind, symbol: str = "") -> AddKey:
    """Parse the rest of a key, `[IF NOT EXISTS] [name] [USING …] (parts) options`.

    `symbol`: the name after CONSTRAINT, which applies if the key itself has none.
    """
    if_not_exists = tokens.accept("IF NOT EXISTS")
    name = symbol
    if not tokens.is_symbol("(") and not tokens.is_word("USING", "TYPE"):
        written = tokens.identifier()
        name = symbol if kind == "primary" else written
    skip_key_options(tokens)
    parts = tokens.in_parentheses(lambda: _key_part(tokens))
    skip_key_options(tokens)
    return AddKey(Key(name=name, kind=kind, parts=parts), if_not_exists)


def _key_part(tokens: TokenStream) -> KeyPart:
    if tokens.is_symbol("("):
        part = KeyPart("", expression=tokens.skip_group())
    else:
        part = KeyPart(tokens.identifier())
        if tokens.accept("WITHOUT OVERLAPS"):
            part = KeyPart("", expression=part.column)
        elif tokens.accept_symbol("("):
            part = replace(part, length=tokens.integer())
            tokens.expect_symbol(")")
    return replace(part, descending=tokens.accept_any("ASC", "DESC") == "DESC")


def skip_key_options(tokens: TokenStream) -> None:
    """Skip the options of a key, for example USING or COMMENT, because they do not change its columns."""
    while True:
        if tokens.accept("WITH PARSER") or tokens.accept("USING") or tokens.accept("TYPE"):
            tokens.next()
        elif tokens.accept("COMMENT"):
            tokens.string()
        elif tokens.accept_any("KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING", "M",
                               "DISTANCE"):  # fmt: skip
            if tokens.accept_symbol("="):
                tokens.next()
            elif tokens.token.kind in ("number", "string"):
                tokens.next()
        elif tokens.accept_any("VISIBLE", "INVISIBLE", "IGNORED") is None and not tokens.accept("NOT IGNORED"):
            return


def parse_options(tokens: TokenStream) -> tuple[TableOptions, bool]:
    """Parse the table options, with or without commas between them.

    Return the options that affect the model, and True if WITH SYSTEM VERSIONING is one of them.
    """
    options, versioned = TableOptions(), False
    while True:
        tokens.accept_symbol(",")
        if tokens.accept("WITH SYSTEM VERSIONING"):
            versioned = True
        elif (changed := accept_option(tokens, options)) is not None:
            options = changed
        else:
            return options, versioned


def accept_option(tokens: TokenStream, options: TableOptions) -> TableOptions | None:
    """Parse one table option, and return `options` with its value, or None if no option comes next.

    If the option does not affect the model, `options` is returned unchanged.
    """
    if tokens.is_word("DEFAULT") and tokens.ahead().value in ("CHARACTER", "CHARSET", "CHAR", "COLLATE"):
        tokens.next()
    if (charset := accept_charset(tokens)) is not None:
        return replace(options, charset=charset)
    if (collation := accept_collation(tokens)) is not None:
        return replace(options, collation=collation, charset=options.charset or charset_of(collation))
    if tokens.accept("ENGINE") or tokens.accept("TYPE"):
        tokens.accept_symbol("=")
        return replace(options, engine=tokens.string() if tokens.token.kind == "string" else tokens.identifier())
    if tokens.accept("COMMENT"):
        tokens.accept_symbol("=")
        return replace(options, comment=tokens.string())
    if tokens.is_word("AUTO_INCREMENT"):
        tokens.next()
        tokens.accept_symbol("=")
        return replace(options, auto_increment=tokens.integer())
    if tokens.accept("DATA DIRECTORY") or tokens.accept("INDEX DIRECTORY") or tokens.accept("START TRANSACTION"):
        if tokens.accept_symbol("="):
            tokens.string()
        return options
    if tokens.accept("UNION"):
        tokens.accept_symbol("=")
        tokens.skip_group()
        return options
    return options if _accept_storage_option(tokens) else None


def _accept_storage_option(tokens: TokenStream) -> bool:
    """Parse an option of the engine, `NAME = value`, and return True, or False if no such option comes next.

    An unknown name before an equals sign counts, too, because MariaDB's engines have options of their own.
    """
    known = tokens.token.kind == "word" and tokens.token.value in _OPTIONS
    if not known and not (tokens.token.kind in ("word", "quoted") and tokens.ahead().value == "="):
        return False
    tokens.next()
    tokens.skip_value()
    return True


def parse_partitioning(tokens: TokenStream) -> Partitioning:
    """Parse the text after PARTITION BY: method, expression, and partitions with their VALUES. Subpartitions are
    ignored.
    """
    words = [tokens.next().value]
    if words[0] == "LINEAR":
        words.append(tokens.next().value)
    if words[-1] in ("RANGE", "LIST") and tokens.accept("COLUMNS"):
        words.append("COLUMNS")
    if tokens.accept("ALGORITHM"):
        tokens.expect_symbol("=")
        tokens.next()
    expression = tokens.skip_group() if tokens.is_symbol("(") else ""
    while not tokens.at_end and not tokens.is_symbol("("):
        if tokens.is_word("AS", "SELECT", "IGNORE", "REPLACE", "WITH", "START"):
            break
        if tokens.accept("SUBPARTITION BY"):
            while not tokens.is_symbol("("):
                tokens.next()
            tokens.skip_group()
        else:
            tokens.next()  # for example PARTITIONS n, or MariaDB's INTERVAL … and AUTO for SYSTEM_TIME
    partitions = parse_partition_list(tokens) if tokens.is_symbol("(") else ()
    return Partitioning(method=" ".join(words), expression=expression, partitions=partitions)


def parse_partition_list(tokens: TokenStream) -> tuple[Partition, ...]:
    def one() -> Partition:
        tokens.expect("PARTITION")
        return parse_partition(tokens)

    return tokens.in_parentheses(one)


def parse_partition(tokens: TokenStream) -> Partition:
    """Parse the name of a partition and its clauses, which come after the word PARTITION."""
    name = tokens.identifier()
    return Partition(name, evaluate_values(_values_of(tokens.skip_clause(), tokens), tokens.context))


def _values_of(clause: str, whole: TokenStream) -> str:
    """Return the values in the clauses of a partition: `LESS THAN (10)` for `VALUES LESS THAN (10) ENGINE = InnoDB`.

    Return '' if there is no VALUES. `whole`: the statement, for an error.
    """
    tokens = TokenStream(clause, whole.context)
    if not tokens.accept("VALUES"):
        return ""
    for method in ("LESS THAN", "IN"):
        if tokens.accept(method):
            _ = tokens.accept("MAXVALUE")
            return f"{method} ({tokens.skip_group()})" if tokens.is_symbol("(") else f"{method} (MAXVALUE)"
    whole.refuse()
