"""ALTER TABLE text → operations, clause by clause."""

from __future__ import annotations

from rplctl.schema.column_definition import parse_column, parse_default
from rplctl.schema.cursor import Cursor
from rplctl.schema.data_type import accept_charset, accept_collation
from rplctl.schema.model import Partitioning
from rplctl.schema.statement import (
    AddColumn,
    AddPartitions,
    AlterTable,
    AttachPartition,
    ChangeColumn,
    ConvertCharset,
    DetachPartition,
    DropCheck,
    DropColumn,
    DropForeignKey,
    DropKey,
    ExchangePartition,
    Operation,
    RemovePartitionRows,
    RenameColumn,
    RenameKey,
    RenameTo,
    ReorganizePartitions,
    Repartition,
    SetDefault,
    SetVisibility,
    SystemVersioning,
    TableOptions,
)
from rplctl.schema.table_definition import (
    accept_option,
    is_constraint,
    parse_constraint,
    parse_partition,
    parse_partition_list,
    parse_partitioning,
)

_NO_EFFECT = ("FORCE", "ENABLE KEYS", "DISABLE KEYS", "WITH VALIDATION", "WITHOUT VALIDATION", "NOWAIT",
              "SECONDARY_LOAD", "SECONDARY_UNLOAD", "UPGRADE PARTITIONING")  # fmt: skip
_STORAGE_OF_PARTITIONS = ("ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "COALESCE")


def parse_alter_table(cursor: Cursor, database: str) -> AlterTable:
    """After ALTER TABLE: the name and its clauses. Raises RplError for a clause rplctl does not know."""
    if_exists = cursor.accept("IF EXISTS")
    name = cursor.table_name(database)
    operations: list[Operation] = []
    while not cursor.at_end:
        operations.extend(_clause(cursor, name[0]))
        cursor.accept_symbol(",")  # optional between table options
    return AlterTable(name, tuple(operations), if_exists)


def _clause(cursor: Cursor, database: str) -> tuple[Operation, ...]:
    if cursor.is_word("ADD"):
        return _add(cursor, database)
    if cursor.accept("DROP PERIOD FOR"):
        cursor.accept("IF EXISTS")
        cursor.identifier()
        return ()
    if cursor.accept("DROP"):
        return (_drop(cursor),)
    if cursor.is_word("MODIFY", "CHANGE"):
        return _change(cursor, database)
    if cursor.accept("ALTER"):
        return _alter_item(cursor)
    if cursor.accept("RENAME"):
        return (_rename(cursor, database),)
    if cursor.accept("CONVERT TO"):
        return (_convert(cursor),)
    if cursor.accept("ORDER BY"):  # order of rows in the file; the commas belong to it
        cursor.rest()
        return ()
    if (partition := _partition_clause(cursor, database)) is not None:
        return partition
    if cursor.accept_any("ALGORITHM", "LOCK"):
        cursor.accept_symbol("=")
        cursor.next()
        return ()
    if cursor.accept("WAIT"):
        cursor.integer()
        return ()
    if any(cursor.accept(phrase) for phrase in _NO_EFFECT):
        return ()
    options = TableOptions()
    if (changed := accept_option(cursor, options)) is not None:
        return (changed,) if changed != options else ()
    cursor.refuse()


def _add(cursor: Cursor, database: str) -> tuple[Operation, ...]:
    cursor.expect("ADD")
    if cursor.accept("SYSTEM VERSIONING"):
        return (SystemVersioning(add=True),)
    if cursor.is_word("PERIOD") and cursor.ahead().value == "FOR":
        cursor.refuse("rplctl does not carry out ADD PERIOD on an existing table")
    if cursor.accept("PARTITION"):
        _accept_if_not_exists(cursor)
        if cursor.accept("PARTITIONS"):
            cursor.integer()
            return ()
        return (AddPartitions(Partitioning("", "", parse_partition_list(cursor))),)
    if is_constraint(cursor):
        return (parse_constraint(cursor, database),)
    cursor.accept("COLUMN")
    if_not_exists = _accept_if_not_exists(cursor)
    if cursor.is_symbol("("):
        return _add_several(cursor, database, if_not_exists=if_not_exists)
    column, constraints = parse_column(cursor, database, cursor.identifier())
    return (AddColumn(column, _position(cursor), if_not_exists), *constraints)


def _add_several(cursor: Cursor, database: str, *, if_not_exists: bool) -> tuple[Operation, ...]:
    """`ADD (a INT, b INT, KEY (a))`."""
    cursor.expect_symbol("(")
    operations: list[Operation] = []
    while True:
        if is_constraint(cursor):
            operations.append(parse_constraint(cursor, database))
        else:
            column, constraints = parse_column(cursor, database, cursor.identifier())
            operations += [AddColumn(column, None, if_not_exists), *constraints]
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return tuple(operations)


def _accept_if_not_exists(cursor: Cursor) -> bool:
    return cursor.accept("IF NOT EXISTS")


def _position(cursor: Cursor) -> str | None:
    if cursor.accept("FIRST"):
        return ""
    return cursor.identifier() if cursor.accept("AFTER") else None


def _drop(cursor: Cursor) -> Operation:
    if cursor.accept("PRIMARY KEY"):
        return DropKey("PRIMARY")
    if cursor.accept("FOREIGN KEY"):
        cursor.accept("IF EXISTS")
        return DropForeignKey(cursor.identifier())
    if cursor.accept("SYSTEM VERSIONING"):
        return SystemVersioning(add=False)
    if cursor.accept("PARTITION"):
        cursor.accept("IF EXISTS")
        return RemovePartitionRows(_names(cursor), drop=True)
    if cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF EXISTS")
        return DropKey(cursor.identifier())
    if cursor.is_word("CHECK", "CONSTRAINT"):
        any_constraint = cursor.next().value == "CONSTRAINT"
        cursor.accept("IF EXISTS")
        return DropCheck(cursor.identifier(), any_constraint)
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF EXISTS")
    operation = DropColumn(cursor.identifier(), if_exists)
    cursor.accept_any("RESTRICT", "CASCADE")
    return operation


def _names(cursor: Cursor) -> tuple[str, ...]:
    names = [cursor.identifier()]
    while cursor.accept_symbol(","):
        names.append(cursor.identifier())
    return tuple(names)


def _change(cursor: Cursor, database: str) -> tuple[Operation, ...]:
    renames = cursor.next().value == "CHANGE"
    cursor.accept("COLUMN")
    if_exists = cursor.accept("IF EXISTS")
    name = cursor.identifier()
    new_name = cursor.identifier() if renames else name
    column, constraints = parse_column(cursor, database, new_name)
    return (ChangeColumn(name, column, _position(cursor), if_exists), *constraints)


def _alter_item(cursor: Cursor) -> tuple[Operation, ...]:
    """ALTER [COLUMN] c SET DEFAULT …, ALTER INDEX i INVISIBLE, ALTER CHECK c NOT ENFORCED."""
    if cursor.accept_any("INDEX", "KEY", "CHECK", "CONSTRAINT"):
        cursor.accept("IF EXISTS")
        cursor.identifier()
        _ = cursor.accept("NOT")
        if cursor.accept_any("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED") is None:
            cursor.refuse()
        return ()
    cursor.accept("COLUMN")
    cursor.accept("IF EXISTS")
    name = cursor.identifier()
    if cursor.accept("SET DEFAULT"):
        return (SetDefault(name, parse_default(cursor)),)
    if cursor.accept("DROP DEFAULT"):
        return (SetDefault(name, None),)
    cursor.expect("SET")
    invisible = cursor.accept("INVISIBLE")
    if not invisible:
        cursor.expect("VISIBLE")
    return (SetVisibility(name, invisible),)


def _rename(cursor: Cursor, database: str) -> Operation:
    if cursor.accept("COLUMN"):
        if_exists = cursor.accept("IF EXISTS")
        name = cursor.identifier()
        cursor.expect("TO")
        return RenameColumn(name, cursor.identifier(), if_exists)
    if cursor.accept_any("INDEX", "KEY"):
        cursor.accept("IF EXISTS")
        name = cursor.identifier()
        cursor.expect("TO")
        return RenameKey(name, cursor.identifier())
    _ = cursor.accept_any("TO", "AS") or cursor.accept_symbol("=")
    return RenameTo(cursor.table_name(database))


def _convert(cursor: Cursor) -> ConvertCharset:
    charset = accept_charset(cursor)
    if charset is None:
        cursor.refuse()
    return ConvertCharset(None if charset == "default" else charset, accept_collation(cursor))


def _partition_clause(cursor: Cursor, database: str) -> tuple[Operation, ...] | None:
    """Clauses about partitions; None when none comes next."""
    if cursor.accept("PARTITION BY"):
        return (Repartition(parse_partitioning(cursor)),)
    if cursor.accept("REMOVE PARTITIONING"):
        return (Repartition(None),)
    if cursor.accept("TRUNCATE PARTITION"):
        return (RemovePartitionRows(() if cursor.accept("ALL") else _names(cursor), drop=False),)
    if cursor.accept("REORGANIZE PARTITION"):
        if cursor.at_end:
            return ()
        names = _names(cursor)
        cursor.expect("INTO")
        return (ReorganizePartitions(names, Partitioning("", "", parse_partition_list(cursor))),)
    if cursor.is_word(*_STORAGE_OF_PARTITIONS) and cursor.ahead().value == "PARTITION":
        cursor.rest()
        return ()
    if cursor.is_word("DISCARD", "IMPORT"):
        what = cursor.token.value
        cursor.refuse(f"{what} of a partition or tablespace takes or brings rows that are not in the binary log")
    return _moved_partition(cursor, database)


def _moved_partition(cursor: Cursor, database: str) -> tuple[Operation, ...] | None:
    """A table that becomes a partition, or the reverse. What WITHOUT VALIDATION let in is looked at when it is done."""
    if cursor.accept("EXCHANGE PARTITION"):
        partition = cursor.identifier()
        cursor.expect("WITH")
        cursor.expect("TABLE")
        operation: Operation = ExchangePartition(partition, cursor.table_name(database))
    elif cursor.accept("CONVERT PARTITION"):
        partition = cursor.identifier()
        cursor.expect("TO")
        cursor.expect("TABLE")
        return (DetachPartition(partition, cursor.table_name(database)),)
    elif cursor.accept("CONVERT TABLE"):
        table = cursor.table_name(database)
        cursor.expect("TO")
        cursor.expect("PARTITION")
        operation = AttachPartition(table, parse_partition(cursor))
    else:
        return None
    _ = cursor.accept("WITH VALIDATION") or cursor.accept("WITHOUT VALIDATION")
    return (operation,)
