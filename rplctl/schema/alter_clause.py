"""Parses the text of ALTER TABLE into operations, clause by clause."""

from __future__ import annotations

from rplctl.schema import statement as ddl
from rplctl.schema.column_definition import parse_column, parse_default
from rplctl.schema.data_type import accept_charset, accept_collation
from rplctl.schema.model import Partitioning
from rplctl.schema.table_definition import (
    accept_option,
    is_constraint,
    parse_constraint,
    parse_partition,
    parse_partition_list,
    parse_partitioning,
)
from rplctl.schema.token_stream import TokenStream

_NO_EFFECT = ("FORCE", "ENABLE KEYS", "DISABLE KEYS", "WITH VALIDATION", "WITHOUT VALIDATION", "NOWAIT",
              "SECONDARY_LOAD", "SECONDARY_UNLOAD", "UPGRADE PARTITIONING")  # fmt: skip
_CONSTRAINTS = {
    "FOREIGN KEY": ("foreign_keys",), "INDEX": ("keys",), "KEY": ("keys",), "CHECK": ("checks",),
    "CONSTRAINT": ("keys", "foreign_keys", "checks"),
}  # fmt: skip
_STORAGE_OF_PARTITIONS = ("ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "COALESCE")


def parse_alter_table(tokens: TokenStream, database: str) -> ddl.AlterTable:
    """Parse the name of the table and the clauses after ALTER TABLE into operations.

    `database`: the default database, for table names without a database. Raises RplError for a clause that rplctl does
    not know.
    """
    if_exists = tokens.accept("IF EXISTS")
    name = tokens.table_name(database)
    operations: list[ddl.Operation] = []
    while not tokens.at_end:
        operations.extend(_clause(tokens, name[0], database or name[0]))
        tokens.accept_symbol(",")  # optional between table options
    return ddl.AlterTable(name=name, operations=tuple(operations), if_exists=if_exists)


def _clause(tokens: TokenStream, database: str, default: str) -> tuple[ddl.Operation, ...]:
    """Parse one clause of ALTER TABLE into operations.

    `database`: the table's database, in which REFERENCES finds its table. `default`: the default database, to which
    RENAME TO moves the table, and in which EXCHANGE PARTITION finds the other table.
    """
    if tokens.is_word("ADD"):
        return _add(tokens, database)
    if tokens.accept("DROP PERIOD FOR"):
        tokens.accept("IF EXISTS")
        tokens.identifier()
        return ()
    if tokens.accept("DROP"):
        return (_drop(tokens),)
    if tokens.is_word("MODIFY", "CHANGE"):
        return _change(tokens, database)
    if tokens.accept("ALTER"):
        return _alter_item(tokens)
    if tokens.accept("RENAME"):
        return (_rename(tokens, default),)
    if tokens.accept("CONVERT TO"):
        return (_convert(tokens),)
    if tokens.accept("ORDER BY"):  # only the order of rows in the file; its commas do not separate clauses
        tokens.rest()
        return ()
    if (partition := _partition_clause(tokens, default)) is not None:
        return partition
    if tokens.accept_any("ALGORITHM", "LOCK"):
        tokens.skip_value()
        return ()
    if tokens.accept("WAIT"):
        tokens.integer()
        return ()
    if any(tokens.accept(phrase) for phrase in _NO_EFFECT):
        return ()
    options = ddl.TableOptions()
    if (changed := accept_option(tokens, options)) is not None:
        return (changed,) if changed != options else ()
    tokens.refuse()


def _add(tokens: TokenStream, database: str) -> tuple[ddl.Operation, ...]:
    tokens.expect("ADD")
    if tokens.accept("SYSTEM VERSIONING"):
        return (ddl.SystemVersioning(add=True),)
    if tokens.is_word("PERIOD") and tokens.ahead().value == "FOR":
        tokens.refuse("rplctl cannot execute ADD PERIOD on an existing table")
    if tokens.accept("PARTITION"):
        tokens.accept("IF NOT EXISTS")
        if tokens.accept("PARTITIONS"):
            tokens.integer()
            return ()
        return (ddl.AddPartitions(Partitioning(method="", expression="", partitions=parse_partition_list(tokens))),)
    if is_constraint(tokens):
        return (parse_constraint(tokens, database),)
    tokens.accept("COLUMN")
    if_not_exists = tokens.accept("IF NOT EXISTS")
    if tokens.is_symbol("("):
        return _add_several(tokens, database, if_not_exists=if_not_exists)
    column, constraints = parse_column(tokens, database, tokens.identifier())
    return (ddl.AddColumn(column, _position(tokens), if_not_exists), *constraints)


def _add_several(tokens: TokenStream, database: str, *, if_not_exists: bool) -> tuple[ddl.Operation, ...]:
    """Parse the definitions in parentheses after ADD, for example `(a INT, b INT, KEY (a))`."""

    def one() -> tuple[ddl.Operation, ...]:
        if is_constraint(tokens):
            return (parse_constraint(tokens, database),)
        column, constraints = parse_column(tokens, database, tokens.identifier())
        return (ddl.AddColumn(column, None, if_not_exists), *constraints)

    return tuple(operation for operations in tokens.in_parentheses(one) for operation in operations)


def _position(tokens: TokenStream) -> str | None:
    if tokens.accept("FIRST"):
        return ""
    return tokens.identifier() if tokens.accept("AFTER") else None


def _drop(tokens: TokenStream) -> ddl.Operation:
    if tokens.accept("PRIMARY KEY"):
        return ddl.DropConstraint("PRIMARY")
    if tokens.accept("SYSTEM VERSIONING"):
        return ddl.SystemVersioning(add=False)
    if tokens.accept("PARTITION"):
        tokens.accept("IF EXISTS")
        return ddl.RemovePartitionRows(tokens.each(tokens.identifier), drop=True)
    for words, of in _CONSTRAINTS.items():
        if tokens.accept(words):
            tokens.accept("IF EXISTS")
            return ddl.DropConstraint(tokens.identifier(), of)
    tokens.accept("COLUMN")
    if_exists = tokens.accept("IF EXISTS")
    operation = ddl.DropColumn(tokens.identifier(), if_exists)
    tokens.accept_any("RESTRICT", "CASCADE")
    return operation


def _change(tokens: TokenStream, database: str) -> tuple[ddl.Operation, ...]:
    renames = tokens.next().value == "CHANGE"
    tokens.accept("COLUMN")
    if_exists = tokens.accept("IF EXISTS")
    name = tokens.identifier()
    new_name = tokens.identifier() if renames else name
    column, constraints = parse_column(tokens, database, new_name)
    return (ddl.ChangeColumn(name, column, _position(tokens), if_exists), *constraints)


def _alter_item(tokens: TokenStream) -> tuple[ddl.Operation, ...]:
    """Parse the rest of a clause ALTER [COLUMN] c SET DEFAULT …, ALTER INDEX i INVISIBLE, or ALTER CHECK c NOT
    ENFORCED.

    Return () for the clauses about indexes and checks, because a target needs no operation for these clauses.
    """
    if tokens.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        tokens.accept("IF EXISTS")
        tokens.identifier()
        _ = tokens.accept("NOT")
        if tokens.accept_any("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED") is None:
            tokens.refuse()
        return ()
    tokens.accept("COLUMN")
    if_exists = tokens.accept("IF EXISTS")
    name = tokens.identifier()
    if tokens.accept("SET DEFAULT"):
        return (ddl.AlterColumn(name, {"default": parse_default(tokens)}, if_exists),)
    if tokens.accept("DROP DEFAULT"):
        return (ddl.AlterColumn(name, {"default": None}, if_exists),)
    tokens.expect("SET")
    invisible = tokens.accept("INVISIBLE")
    if not invisible:
        tokens.expect("VISIBLE")
    return (ddl.AlterColumn(name, {"invisible": invisible}, if_exists),)


def _rename(tokens: TokenStream, database: str) -> ddl.Operation:
    if tokens.accept("COLUMN"):
        if_exists = tokens.accept("IF EXISTS")
        name = tokens.identifier()
        tokens.expect("TO")
        return ddl.RenameColumn(name=name, new_name=tokens.identifier(), if_exists=if_exists)
    if tokens.accept_any("INDEX", "KEY"):
        tokens.accept("IF EXISTS")
        name = tokens.identifier()
        tokens.expect("TO")
        return ddl.RenameKey(name, tokens.identifier())
    _ = tokens.accept_any("TO", "AS") or tokens.accept_symbol("=")
    return ddl.RenameTo(tokens.table_name(database))


def _convert(tokens: TokenStream) -> ddl.ConvertCharset:
    charset = accept_charset(tokens)
    if charset is None:
        tokens.refuse()
    return ddl.ConvertCharset(None if charset == "default" else charset, accept_collation(tokens))


def _partition_clause(tokens: TokenStream, database: str) -> tuple[ddl.Operation, ...] | None:
    """Parse a clause about partitions, or return None if the next clause is not about partitions."""
    if tokens.accept("PARTITION BY"):
        return (ddl.Repartition(parse_partitioning(tokens)),)
    if tokens.accept("REMOVE PARTITIONING"):
        return (ddl.Repartition(None),)
    if tokens.accept("TRUNCATE PARTITION"):
        names = () if tokens.accept("ALL") else tokens.each(tokens.identifier)
        return (ddl.RemovePartitionRows(names, drop=False),)
    if tokens.accept("REORGANIZE PARTITION"):
        if tokens.at_end:
            return ()
        names = tokens.each(tokens.identifier)
        tokens.expect("INTO")
        return (
            ddl.ReorganizePartitions(
                names, Partitioning(method="", expression="", partitions=parse_partition_list(tokens))
            ),
        )
    if tokens.is_word(*_STORAGE_OF_PARTITIONS) and tokens.ahead().value == "PARTITION":
        tokens.rest()
        return ()
    if tokens.is_word("DISCARD", "IMPORT"):
        what = tokens.token.value
        tokens.refuse(f"{what} of a partition or tablespace removes or adds rows that are not in the binary log")
    return _moved_partition(tokens, database)


def _moved_partition(tokens: TokenStream, database: str) -> tuple[ddl.Operation, ...] | None:
    """Parse CONVERT PARTITION … TO TABLE, CONVERT TABLE … TO PARTITION, or EXCHANGE PARTITION … WITH TABLE.

    Return None if none of these clauses comes next. The words WITH VALIDATION and WITHOUT VALIDATION have no effect,
    because the rows are checked in any case when the operation runs.
    """
    if tokens.accept("EXCHANGE PARTITION"):
        partition = tokens.identifier()
        tokens.expect("WITH")
        tokens.expect("TABLE")
        operation: ddl.Operation = ddl.ExchangePartition(partition, tokens.table_name(database))
    elif tokens.accept("CONVERT PARTITION"):
        partition = tokens.identifier()
        tokens.expect("TO")
        tokens.expect("TABLE")
        return (ddl.DetachPartition(partition, tokens.table_name(database)),)
    elif tokens.accept("CONVERT TABLE"):
        table = tokens.table_name(database)
        tokens.expect("TO")
        tokens.expect("PARTITION")
        operation = ddl.AttachPartition(table, parse_partition(tokens))
    else:
        return None
    _ = tokens.accept("WITH VALIDATION") or tokens.accept("WITHOUT VALIDATION")
    return (operation,)
