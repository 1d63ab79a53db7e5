"""The actions of a DDL statement, and the operations of ALTER TABLE, as plain values. `parse.py` creates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rplctl.schema.model import Check, Column, ForeignKey, Key, Partition, Partitioning, TableModel

TableName = tuple[str, str]  # (database, table)
Move = tuple[TableName, TableName | None]  # a table with all its rows: its old name, its new name (None = dropped)
EVERY_TABLE = ""  # in place of a table's name: all tables of its database


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    model: TableModel  # a column that inherits its charset has the charset None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTableLike:
    name: TableName
    like: TableName
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    names: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    name: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    name: str
    charset: str | None
    collation: str | None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    name: str
    charset: str | None
    collation: str | None


@dataclass(frozen=True, slots=True)
class DropDatabase:
    name: str
    if_exists: bool = False


class ObjectKind(StrEnum):
    """The kinds of objects that only a MySQL or MariaDB server has, and no other target. The value is the word in
    messages.
    """

    VIEW = "view"
    TRIGGER = "trigger"
    PROCEDURE = "procedure"
    FUNCTION = "function"
    PACKAGE = "package"
    LIBRARY = "library"
    EVENT = "event"
    ACCOUNT = "user"  # users, roles and their privileges
    SERVER = "server"
    TABLESPACE = "tablespace"
    SPATIAL_REFERENCE_SYSTEM = "spatial reference system"
    RESOURCE_GROUP = "resource group"
    CATALOG = "catalog"
    PLUGIN = "plugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreplicated:
    """A statement about an object that the target may lack, for example a trigger.

    The option on_unsupported_ddl decides what happens. `title`: the words for messages, for example CREATE TRIGGER.
    `text`: the statement. `names`: the objects, if they belong to a database.
    """

    kind: ObjectKind
    title: str
    text: str
    names: tuple[TableName, ...] = ()
    is_drop: bool = False


@dataclass(frozen=True, slots=True)
class NoOperation:
    """A statement that changes neither tables nor rows, for example ANALYZE, FLUSH, or a statement about temporary
    tables.

    `why`: the reason, for messages.
    """

    why: str


# --- operations of ALTER TABLE


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: Column
    position: str | None = None  # None = after the last column, '' = FIRST, a name = AFTER this column
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """The operation CHANGE, or MODIFY, which does not change the column's name.

    `name`: the old name. `position`: None if it is unchanged, '' for FIRST, a name for AFTER this column.
    """

    name: str
    column: Column
    position: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    name: str
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterColumn:
    """The operation ALTER COLUMN: SET or DROP DEFAULT, SET VISIBLE or INVISIBLE.

    `changes`: name of a field of `Column` → its new value.
    """

    name: str
    changes: Mapping[str, str | bool | None]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddKey:
    key: Key  # if its name is '', the server chooses a name
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    foreign_key: ForeignKey
    key_name: str = ""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddCheck:
    check: Check


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """The operation DROP KEY, FOREIGN KEY, CHECK, or CONSTRAINT, which drops any of these.

    `of`: the fields of the TableModel that may contain the constraint.
    """

    name: str
    of: tuple[str, ...] = ("keys",)


@dataclass(frozen=True, slots=True)
class RenameTo:
    name: TableName


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    charset: str | None  # None = the database's default
    collation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options of CREATE and ALTER TABLE that affect the model.

    A field is None if the statement does not have the option.
    """

    charset: str | None = None
    collation: str | None = None
    engine: str | None = None
    comment: str | None = None
    auto_increment: int | None = None  # the first number for rows that an ALTER numbers; the model does not store it


@dataclass(frozen=True, slots=True)
class Repartition:
    partitioning: Partitioning | None  # None = REMOVE PARTITIONING


@dataclass(frozen=True, slots=True)
class AddPartitions:
    partitioning: Partitioning  # only its partitions are used


@dataclass(frozen=True, slots=True)
class ReorganizePartitions:
    names: tuple[str, ...]
    partitioning: Partitioning


@dataclass(frozen=True, slots=True)
class RemovePartitionRows:
    """The operation DROP PARTITION (if `drop` is True) or TRUNCATE PARTITION.

    The source does not log the deleted rows.
    """

    names: tuple[str, ...]  # () = ALL
    drop: bool


@dataclass(frozen=True, slots=True)
class ExchangePartition:
    """The operation EXCHANGE PARTITION, which exchanges the rows of a partition and of another table."""

    partition: str
    table: TableName


@dataclass(frozen=True, slots=True)
class DetachPartition:
    """MariaDB's operation CONVERT PARTITION … TO TABLE, by which a partition becomes a table."""

    partition: str
    table: TableName


@dataclass(frozen=True, slots=True)
class AttachPartition:
    """MariaDB's operation CONVERT TABLE … TO PARTITION, by which a table becomes a partition."""

    table: TableName
    partition: Partition


@dataclass(frozen=True, slots=True)
class SystemVersioning:
    add: bool


Operation = (
    AddColumn | ChangeColumn | RenameColumn | DropColumn | AlterColumn | AddKey | RenameKey | AddForeignKey | AddCheck
    | DropConstraint | RenameTo | ConvertCharset | TableOptions | Repartition | AddPartitions | ReorganizePartitions
    | RemovePartitionRows | ExchangePartition | DetachPartition | AttachPartition | SystemVersioning
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    name: TableName
    operations: tuple[Operation, ...]
    if_exists: bool = False
    ignore: bool = False  # MariaDB: no strict mode, and rows that violate a new unique key are deleted


DdlAction = (
    CreateTable | CreateTableLike | DropTable | AlterTable | RenameTable | TruncateTable | CreateDatabase
    | AlterDatabase | DropDatabase | Unreplicated | NoOperation
)  # fmt: skip


def tables_of(action: DdlAction) -> tuple[TableName, ...]:
    """Return the names of all tables that the statement changes, including new names."""
    match action:
        case CreateTable(model=model):
            return ((model.database, model.name),)
        case CreateTableLike(name=name) | TruncateTable(name):
            return (name,)
        case DropTable(names):
            return names
        case RenameTable(pairs):
            return tuple(name for pair in pairs for name in pair)
        case AlterTable(name=name, operations=operations):
            return (name, *(more for operation in operations for more in _also_altered(operation)))
    return ()


def moves_of(action: DdlAction) -> Iterator[Move]:
    """Yield the tables that the action renames or removes with all their rows, in the order of the statement."""
    match action:
        case CreateTable(model=model, or_replace=True):
            yield (model.database, model.name), None
        case TruncateTable(name) | CreateTableLike(name=name, or_replace=True):
            yield name, None
        case DropTable(names):
            yield from ((name, None) for name in names)
        case DropDatabase(name):
            yield (name, EVERY_TABLE), None
        case RenameTable(pairs):
            yield from pairs
        case AlterTable(name=name, operations=operations):
            yield from ((name, o.name) for o in operations if isinstance(o, RenameTo) and o.name != name)


def _also_altered(operation: Operation) -> tuple[TableName, ...]:
    match operation:
        case ExchangePartition(table=table) | DetachPartition(table=table) | AttachPartition(table=table):
            return (table,)
        case RenameTo(name):
            return (name,)
    return ()
