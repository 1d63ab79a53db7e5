"""Applies ALTER TABLE to a model in the order of the server, and reports which old column each new column comes from.

The server first processes the old columns (dropped, changed, unchanged). It then places new and moved columns in the
order of the clauses, by their new names. It drops keys before it adds others. So a swap of two columns' names works.

An index or constraint that the model lacks only gives a note, because it does not affect rows. A column that the model
lacks raises an error. The functions have no side effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.schema import statement as ddl, structure
from rplctl.schema.binary_literal import read_literals
from rplctl.schema.context import DdlContext
from rplctl.schema.converted_value import stored_labels
from rplctl.schema.data_type import BYTES_OF_A_CHARACTER, normalize, takes_charset
from rplctl.schema.generated import with_renamed
from rplctl.schema.model import TEXT_BYTES, Column, ForeignKey, Key, KeyPart, Partitioning, TableModel
from rplctl.schema.naming import index_name


@dataclass(frozen=True, slots=True)
class Altered:
    """The model after ALTER TABLE. `origins[i]`: the old name of the model's column i, or None if the column is new."""

    model: TableModel
    origins: tuple[str | None, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Draft:
    old: TableModel
    columns: list[tuple[Column, str | None]]  # (column, origin)
    renamed: dict[str, str] = field(default_factory=dict)  # old name → new name
    notes: list[str] = field(default_factory=list)
    dropped: frozenset[str] = frozenset()  # case-folded names
    replaced: list[str] = field(default_factory=list)  # case-folded names of added columns that a later clause changed

    def keeps(self, name: str) -> bool:
        """True if the old table has the column and the statement does not drop it."""
        return self.old.find(name) is not None and name.casefold() not in self.dropped

    def index(self, name: str) -> int | None:
        wanted = name.casefold()
        return next((i for i, (column, _) in enumerate(self.columns) if column.name.casefold() == wanted), None)


def alter(model: TableModel, operations: tuple[ddl.Operation, ...], context: DdlContext,
          database_charset: str) -> Altered:  # fmt: skip
    """Return the model after the operations of one ALTER TABLE statement, and the origins of its columns.

    `database_charset`: the default of the table's database. Raises RplError if the model lacks a column that an
    operation names.
    """
    options = next((op for op in operations if isinstance(op, ddl.TableOptions) and (op.charset or op.collation)), None)
    if options is not None:  # columns that the statement adds get the new default
        model = replace(model, charset=options.charset or model.charset, collation=options.collation)
    converting = [op for op in operations if isinstance(op, ddl.ConvertCharset)]
    for conversion in converting:
        model = _convert_charset(model, conversion, database_charset)
    if not context.explicit_defaults_for_timestamp:
        operations = _promote_first_timestamp(operations)
    if context.has_binary_literals:
        operations = tuple(_read_literals(model, op, database_charset) for op in operations)
    draft = _place_columns(model, operations, context)
    columns = tuple(structure.resolve_column(c, model.charset or database_charset, model.collation)
                    for c, _ in draft.columns)  # fmt: skip
    for conversion in converting:  # the conversion also applies to columns that the statement itself defines
        columns = tuple(_with_charset(c, conversion.charset or database_charset, conversion.collation) for c in columns)
    columns = tuple(map(stored_labels, columns))
    origins = tuple(origin for _, origin in draft.columns)
    structure.check_column_names(columns, model.qualified_name)
    drops_primary = any(isinstance(op, ddl.DropConstraint) and op.name == "PRIMARY" for op in operations)
    new = _carry_keys(replace(model, columns=columns), draft, keeps_primary=not drops_primary)
    new, notes = _constraints(new, operations, context)
    if new.system_versioned:
        new = structure.versioned_keys(new, structure.row_end(new) or structure.ROW_END)
    for operation in operations:
        new = _table_level(new, operation)
    if len(new.columns) != len(origins):  # system versioning was added or dropped
        known = dict(zip((c.name for c in columns), origins, strict=True))
        origins = tuple(known.get(column.name) for column in new.columns)
    return Altered(new, origins, (*draft.notes, *notes))


def _promote_first_timestamp(operations: tuple[ddl.Operation, ...]) -> tuple[ddl.Operation, ...]:
    """Give the first TIMESTAMP of the statement its implicit default, as CREATE TABLE does.

    The other columns of the table do not matter for this.
    """
    written = [op.column for op in operations if isinstance(op, ddl.AddColumn | ddl.ChangeColumn)]
    promoted = iter(structure.promote_first_timestamp(tuple(written)))
    return tuple(
        replace(op, column=next(promoted)) if isinstance(op, ddl.AddColumn | ddl.ChangeColumn) else op
        for op in operations
    )


def _read_literals(model: TableModel, operation: ddl.Operation, database_charset: str) -> ddl.Operation:
    if isinstance(operation, ddl.AddColumn | ddl.ChangeColumn):
        column = structure.resolve_column(operation.column, model.charset or database_charset, model.collation)
        return replace(operation, column=read_literals(column))
    if isinstance(operation, ddl.AlterColumn) and isinstance(default := operation.changes.get("default"), str):
        old = model.find(operation.name)
        if old is not None:
            read = read_literals(replace(old, default=default, labels=()))
            return replace(operation, changes={**operation.changes, "default": read.default})
    return operation


def _convert_charset(model: TableModel, operation: ddl.ConvertCharset, database_charset: str) -> TableModel:
    """Return the model after CONVERT TO CHARACTER SET, which changes the table's default and all text columns.

    A TEXT column gets a larger type if its characters need more bytes in the new charset.
    """
    charset = operation.charset or database_charset
    columns = tuple(_converted(column, charset, operation.collation) for column in model.columns)
    return replace(model, columns=columns, charset=charset, collation=operation.collation)


def _converted(column: Column, charset: str, collation: str | None) -> Column:
    if not takes_charset(column) or column.charset == "binary":
        return column
    if column.type in TEXT_BYTES and charset != "binary":
        characters = TEXT_BYTES[column.type] // BYTES_OF_A_CHARACTER.get(column.charset or "", 1)
        needed = characters * BYTES_OF_A_CHARACTER.get(charset, 1)
        fitting = next((kind for kind, size in TEXT_BYTES.items() if needed <= size), "longtext")
        column = replace(column, type=fitting)
    return _with_charset(column, charset, collation)


def _with_charset(column: Column, charset: str, collation: str | None) -> Column:
    if not takes_charset(column) or column.charset == "binary":
        return column
    return normalize(replace(column, charset=charset, collation=collation))


def _unknown_column(model: TableModel, name: str) -> RplError:
    error = RplError(f"Unknown column '{name}' in '{model.qualified_name}'", errno=er.BAD_FIELD_ERROR)
    error.table = (model.database, model.name)
    return error


def _place_columns(model: TableModel, operations: tuple[ddl.Operation, ...], context: DdlContext) -> _Draft:
    """Return the draft of the altered table, with its columns in their new order.

    A moved column keeps its old position until its clause is processed. Expressions of the other columns get the new
    names of renamed columns, as in MariaDB. (MySQL refuses such a rename.)
    """
    operations = tuple(_effective(model, operations))
    dropped = frozenset(op.name.casefold() for op in operations if isinstance(op, ddl.DropColumn))
    draft = _Draft(old=model, columns=[], dropped=dropped)
    changes = _changes_by_column(draft, operations)
    names = {old.casefold(): new for old, new in _new_names(changes) if old != new}
    for column in model.columns:
        change = changes.get(column.name)
        if isinstance(change, ddl.DropColumn):
            continue
        new = _with_renamed(column, names, context)
        if isinstance(change, ddl.RenameColumn):
            new = replace(new, name=change.new_name)
        elif isinstance(change, ddl.ChangeColumn):
            new = change.column
        if change is not None:
            draft.renamed[column.name] = new.name
        draft.columns.append((new, column.name))
    for operation in operations:
        _place(draft, operation)
    defined_again = Counter(draft.replaced)
    for operation in operations:
        if isinstance(operation, ddl.AlterColumn):
            name = operation.name.casefold()
            if defined_again[name]:  # the clause applied to the definition that the column no longer has
                defined_again[name] -= 1
            else:
                _alter_column(draft, operation)
    return draft


def _new_names(changes: dict[str, ddl.DropColumn | ddl.RenameColumn | ddl.ChangeColumn]) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each changed column, which may be the same."""
    for old, change in changes.items():
        if isinstance(change, ddl.RenameColumn):
            yield old, change.new_name
        elif isinstance(change, ddl.ChangeColumn):
            yield old, change.column.name


def _with_renamed(column: Column, names: dict[str, str], context: DdlContext) -> Column:
    """Return the column with the new names of other columns in its expression. `names`: see generated.with_renamed."""
    if column.generated is not None:
        return replace(column, generated=with_renamed(column.generated, names, context))
    if column.default is not None and column.default.startswith("("):
        return replace(column, default=with_renamed(column.default, names, context))
    return column


def _effective(model: TableModel, operations: tuple[ddl.Operation, ...]) -> Iterator[ddl.Operation]:
    """Yield the operations except those that IF EXISTS or IF NOT EXISTS cancels.

    MariaDB decides by the columns of the old table. For ADD IF NOT EXISTS, it also considers the columns of earlier
    clauses, even cancelled clauses.
    """
    defined: set[str] = set()
    for operation in operations:
        if isinstance(operation, ddl.AddColumn):
            name = operation.column.name.casefold()
            exists = name in defined or model.find(name) is not None
            defined.add(name)
            if operation.if_not_exists and exists:
                continue
        elif isinstance(operation, ddl.DropColumn | ddl.RenameColumn | ddl.ChangeColumn | ddl.AlterColumn):
            if isinstance(operation, ddl.ChangeColumn):
                defined.add(operation.column.name.casefold())
            if operation.if_exists and model.find(operation.name) is None:
                continue
        yield operation


def _changes_by_column(
    draft: _Draft, operations: tuple[ddl.Operation, ...]
) -> dict[str, ddl.DropColumn | ddl.RenameColumn | ddl.ChangeColumn]:
    changes: dict[str, ddl.DropColumn | ddl.RenameColumn | ddl.ChangeColumn] = {}
    for operation in operations:
        if isinstance(operation, ddl.DropColumn | ddl.RenameColumn | ddl.ChangeColumn):
            column = draft.old.find(operation.name)
            if isinstance(operation, ddl.ChangeColumn) and not draft.keeps(operation.name):
                continue  # `_place` changes a column that the statement adds
            if column is None:
                raise _unknown_column(draft.old, operation.name)
            changes[column.name] = operation
    return changes


def _place(draft: _Draft, operation: ddl.Operation) -> None:
    """Insert a new column at the position that its clause names, or move a changed column there.

    In MariaDB, a clause can change a column that an earlier clause adds. Its column replaces the added column, and is
    last without a position.
    """
    if isinstance(operation, ddl.AddColumn):
        _insert(draft, operation.column, None, operation.position)
    elif isinstance(operation, ddl.ChangeColumn) and not draft.keeps(operation.name):
        added = draft.index(operation.column.name)
        if added is None or draft.columns[added][1] is not None:
            raise _unknown_column(draft.old, operation.name)
        del draft.columns[added]
        draft.replaced.append(operation.column.name.casefold())
        _insert(draft, operation.column, None, operation.position)
    elif isinstance(operation, ddl.ChangeColumn) and operation.position is not None:
        at = next((i for i, (column, _) in enumerate(draft.columns) if column is operation.column), None)
        if at is None:  # another clause changes the same column, and servers reject such a statement
            raise _unknown_column(draft.old, operation.name)
        _insert(draft, *draft.columns.pop(at), operation.position)


def _alter_column(draft: _Draft, operation: ddl.AlterColumn) -> None:
    index = draft.index(operation.name)
    if index is None:
        raise _unknown_column(draft.old, operation.name)
    column, origin = draft.columns[index]
    changes: dict[str, Any] = {**operation.changes}
    draft.columns[index] = (replace(column, **changes), origin)


def _insert(draft: _Draft, column: Column, origin: str | None, position: str | None) -> None:
    at = len(draft.columns)
    if position == "":
        at = 0
    elif position is not None:
        after = draft.index(position)
        if after is None:
            raise _unknown_column(draft.old, position)
        at = after + 1
    elif draft.old.system_versioned:  # the hidden columns stay last
        at -= sum(c.name in (structure.ROW_START, structure.ROW_END) and c.invisible for c, _ in draft.columns)
    draft.columns.insert(at, (column, origin))


def _carry_keys(model: TableModel, draft: _Draft, *, keeps_primary: bool) -> TableModel:
    """Return the model with the keys and foreign keys of the old model, in which columns have their new names.

    A dropped column is removed from the keys. `keeps_primary`: False if the statement drops the primary key.
    """
    final = {origin: column.name for column, origin in draft.columns if origin is not None}
    keys = []
    for key in model.keys:
        parts = tuple(_carried(part, final) for part in key.parts if not part.column or part.column in final)
        if parts:
            keys.append(replace(key, parts=parts))
    foreign_keys = tuple(
        replace(fk, columns=tuple(final[name] for name in fk.columns))
        for fk in model.foreign_keys
        if all(name in final for name in fk.columns)
    )
    if model.primary_key is not None and keeps_primary:
        names = {name for key in keys if key.kind == "primary" for name in key.columns}
        columns = tuple(replace(c, nullable=False) if c.name in names else c for c in model.columns)
        model = replace(model, columns=columns)
    own = {name: new for name, new in draft.renamed.items() if name != new}
    foreign_keys = tuple(_follow_rename(fk, model, own) for fk in foreign_keys)
    return replace(model, keys=tuple(keys), foreign_keys=foreign_keys)


def _carried(part: KeyPart, final: dict[str, str]) -> KeyPart:
    return replace(part, column=final[part.column]) if part.column else part


def _follow_rename(foreign_key: ForeignKey, parent: TableModel, renamed: dict[str, str]) -> ForeignKey:
    """Return the foreign key with the new column names of its parent table, if it references the table `parent`.

    `renamed`: the new name of each renamed column by its old name.
    """
    if (foreign_key.ref_database, foreign_key.ref_table) != (parent.database, parent.name) or not renamed:
        return foreign_key
    folded = {old.casefold(): new for old, new in renamed.items()}
    names = tuple(folded.get(name.casefold(), name) for name in foreign_key.ref_columns)
    return replace(foreign_key, ref_columns=names)


def renamed_columns(altered: Altered) -> dict[str, str]:
    """Return the new name of each renamed column by its old name."""
    pairs = zip(altered.origins, altered.model.columns, strict=True)
    return {origin: column.name for origin, column in pairs if origin is not None and origin != column.name}


def follow_renamed_columns(child: TableModel, parent: TableModel, renamed: dict[str, str]) -> TableModel:
    """Return the model of a child table, whose foreign keys now have the new column names of the parent table.

    `renamed`: the new name of each renamed column by its old name.
    """
    return replace(child, foreign_keys=tuple(_follow_rename(fk, parent, renamed) for fk in child.foreign_keys))


def _constraints(
    model: TableModel, operations: tuple[ddl.Operation, ...], context: DdlContext
) -> tuple[TableModel, list[str]]:
    """Apply the operations that drop constraints or rename keys, and then those that add constraints.

    Return the model and the notes. A note reports each constraint or key to drop or rename that the model lacks.
    """
    notes: list[str] = []
    for operation in operations:
        before = model
        if isinstance(operation, ddl.DropConstraint):
            wanted = operation.name.casefold()
            kept: dict[str, Any] = {
                of: tuple(one for one in getattr(model, of) if one.name.casefold() != wanted) for of in operation.of
            }
            model = replace(model, **kept)
        elif isinstance(operation, ddl.RenameKey):
            model = replace(model, keys=tuple(_renamed_key(model, key, operation) for key in model.keys))
        else:
            continue
        if model == before:
            notes.append(f"{model.qualified_name} has no key or constraint '{operation.name}' in the stored model")
    added = tuple(op for op in operations if isinstance(op, ddl.AddKey | ddl.AddForeignKey | ddl.AddCheck))
    return structure.add_constraints(model, added, context), notes


def _renamed_key(model: TableModel, key: Key, operation: ddl.RenameKey) -> Key:
    if key.name.casefold() != operation.name.casefold():
        return key
    return replace(key, name=operation.new_name, stored_as=index_name(model, key))


def _table_level(model: TableModel, operation: ddl.Operation) -> TableModel:
    """Return the model after an operation about table options, partitions or system versioning."""
    if isinstance(operation, ddl.TableOptions):
        engine = model.engine if operation.engine is None else operation.engine
        comment = model.comment if operation.comment is None else operation.comment
        return replace(model, engine=engine, comment=comment)
    if isinstance(operation, ddl.Repartition):
        return replace(model, partitioning=operation.partitioning)
    if isinstance(operation, ddl.SystemVersioning):
        return structure.add_versioning(model) if operation.add else structure.drop_versioning(model)
    if model.partitioning is None:
        return model
    parts = model.partitioning.partitions
    if isinstance(operation, ddl.AddPartitions):
        parts += operation.partitioning.partitions
    elif isinstance(operation, ddl.AttachPartition):
        parts += (operation.partition,)
    elif isinstance(operation, ddl.DetachPartition):
        parts = tuple(p for p in parts if p.name.casefold() != operation.partition.casefold())
    elif isinstance(operation, ddl.RemovePartitionRows) and operation.drop:
        gone = {name.casefold() for name in operation.names}
        parts = tuple(p for p in parts if p.name.casefold() not in gone)
    elif isinstance(operation, ddl.ReorganizePartitions):
        return replace(model, partitioning=_reorganized(model.partitioning, operation))
    return replace(model, partitioning=replace(model.partitioning, partitions=parts))


def _reorganized(partitioning: Partitioning, operation: ddl.ReorganizePartitions) -> Partitioning:
    gone = {name.casefold() for name in operation.names}
    first = next((i for i, p in enumerate(partitioning.partitions) if p.name.casefold() in gone), 0)
    kept = [p for p in partitioning.partitions if p.name.casefold() not in gone]
    kept[first:first] = operation.partitioning.partitions
    return replace(partitioning, partitions=tuple(kept))
