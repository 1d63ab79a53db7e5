"""Plans one DDL statement: the changes of the table models, and the steps that a target executes.

A plan has no side effects and depends only on the catalog, which has the models of all tables. The same plan is valid
for every kind of target. The model changes are stored in the transaction of the DDL statement (design D18).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.schema import statement as ddl, structure
from rplctl.schema.alter import Altered, alter, follow_renamed_columns, renamed_columns
from rplctl.schema.binary_literal import read_literals
from rplctl.schema.context import STRICT_ALL_TABLES, STRICT_TRANS_TABLES, DdlContext
from rplctl.schema.converted_value import stored_labels
from rplctl.schema.model import ForeignKey, TableModel
from rplctl.schema.naming import choose_index_names, renamed
from rplctl.schema.parse import parse_create_table, parse_ddl
from rplctl.schema.value import Value

K = TypeVar("K")
V = TypeVar("V")

_EXCHANGED = "rplctl exchanges"
LOAD_HINT = (
    "to load the table's definition, and to create it empty if the target lacks it, run: rplctl load-schema "
    "--from-source; rplctl start\n"
    "To copy it from a dump, read section INITIAL COPY of: man 1 rplctl"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseModel:
    """The settings that a new table inherits from its database."""

    name: str
    charset: str
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """The models of all replicated tables and the defaults of all known databases, at one position."""

    tables: Mapping[ddl.TableName, TableModel] = field(default_factory=dict)
    databases: Mapping[str, DatabaseModel] = field(default_factory=dict)

    def after(self, plan: DdlPlan) -> Catalog:
        """Return the catalog as it is after the changes of the plan."""
        return self.changed(plan.model_changes, plan.database_changes)

    def changed(
        self, tables: Mapping[ddl.TableName, TableModel | None], databases: Mapping[str, DatabaseModel | None]
    ) -> Catalog:
        """Return a catalog with these changes. None removes a table or a database."""
        return Catalog(_changed(self.tables, tables), _changed(self.databases, databases))

    def changes_to(self, later: Catalog) -> Changes:
        """Return the changes with which `changed` turns this catalog into `later`. An equal model that is another
        object counts as a change.
        """
        if later is self:
            return {}, {}
        return _changes(self.tables, later.tables), _changes(self.databases, later.databases)


Changes: TypeAlias = tuple[dict[ddl.TableName, TableModel | None], dict[str, DatabaseModel | None]]


def _changed(old: Mapping[K, V], changes: Mapping[K, V | None]) -> dict[K, V]:
    merged = dict(old)  # only one copy, because the catalog may have 20,000 tables
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _changes(old: Mapping[K, V], new: Mapping[K, V]) -> dict[K, V | None]:
    others: dict[K, V | None] = {key: value for key, value in new.items() if old.get(key) is not value}
    return others | dict.fromkeys(old.keys() - new.keys())


@dataclass(frozen=True, slots=True)
class CreateStep:
    model: TableModel


@dataclass(frozen=True, slots=True)
class DropStep:
    model: TableModel


@dataclass(frozen=True, slots=True)
class RenameStep:
    old: TableModel
    new: TableModel


@dataclass(frozen=True, slots=True)
class TruncateStep:
    model: TableModel


@dataclass(frozen=True, slots=True)
class KnownRows:
    """New values of a column, each computed by target/known_values.py, because the target's SQL has no exact rule."""

    columns: tuple[str, ...]  # the old names of the columns from which each value is computed
    values: tuple[tuple[tuple[Any, ...], Value], ...]  # pairs: the old values as a query returns them, the new value


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterStep:
    """A step that changes the table `old` to `new`. `origins`: for each new column, its old name, or None if added."""

    old: TableModel
    new: TableModel
    origins: tuple[str | None, ...]
    first_number: int | None = None  # the number N of the option AUTO_INCREMENT = N in the statement
    known: Mapping[str, KnownRows] = field(default_factory=dict)  # the key is the name of the new column


@dataclass(frozen=True, slots=True)
class DeletePartitionsStep:
    """A step that deletes rows that the source did not log. `names`: their partitions, or () for all partitions."""

    model: TableModel
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteHistoryStep:
    """A step that deletes the historical rows of a table that loses its system versioning."""

    model: TableModel


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRowsStep:
    """A step that moves rows from the table `old` to the table `new`, which has the same columns.

    `names`: the partitions of `old` to move, or () for all rows. `must_fit`: the partition of `new` in which the rows
    must fit, or '' for any partition.
    """

    old: TableModel
    new: TableModel
    names: tuple[str, ...] = ()
    must_fit: str = ""


@dataclass(frozen=True, slots=True)
class AddKeysStep:
    """A step that adds the keys that `model` has and `before` lacks. Otherwise, the two models are equal.

    The added keys include the primary key only if the target's dialect creates primary keys after the rows are loaded.
    In this case, an earlier step may already have created the primary key.
    """

    before: TableModel
    model: TableModel


Step = (CreateStep | DropStep | RenameStep | TruncateStep | AlterStep | DeletePartitionsStep | DeleteHistoryStep
        | MoveRowsStep | AddKeysStep)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DdlPlan:
    """The plan of a statement: steps for the target, changes of models and databases, and notes for the operator.

    `model_changes`: the new model of each changed table, or None for a dropped table. `database_changes`: the new
    settings of each changed database, or None for a dropped database.
    """

    actions: tuple[ddl.DdlAction, ...]
    context: DdlContext
    steps: tuple[Step, ...] = ()
    model_changes: dict[ddl.TableName, TableModel | None] = field(default_factory=dict)
    database_changes: dict[str, DatabaseModel | None] = field(default_factory=dict)
    unreplicated: tuple[ddl.Unreplicated, ...] = ()
    notes: tuple[str, ...] = ()

    def moves(self) -> Iterator[ddl.Move]:
        """Yield the tables that the plan renames or removes with all their rows, in order."""
        for step in self.steps:
            match step:
                case RenameStep(old, new):
                    yield (old.database, old.name), (new.database, new.name)
                case DropStep(model) | TruncateStep(model):
                    yield (model.database, model.name), None


def plan_ddl(  # noqa: PLR0913 - keyword arguments with defaults
    sql: str,
    database: str,
    context: DdlContext,
    catalog: Catalog,
    accepts: Callable[[ddl.TableName], bool] | None = None,
    *,
    may_drop_unknown: bool = False,
    may_replace: bool = False,
) -> DdlPlan:
    """Plan the statement of a QUERY event, and return the plan.

    `accepts`: the filter for the tables of a DROP or RENAME. A rejected table is not changed, and a note reports this.
    `may_drop_unknown`: an unknown table in DROP only gives a note, as with IF EXISTS. `may_replace`: CREATE may replace
    a known table. The table's model may have been read from the source, before the log creates the table.

    Raises RplError with MySQL's number: 1064 if the statement is not understood. Raises 1050, 1051, 1146 or 1054 if the
    models and the statement contradict each other. Raises 1592 if only statement-based replication can execute the
    statement.
    """
    actions = tuple(parse_ddl(sql, database, context))
    if any(isinstance(action, ddl.AlterTable) and action.ignore for action in actions):
        context = replace(context, sql_mode=context.sql_mode & ~(STRICT_TRANS_TABLES | STRICT_ALL_TABLES))
    if may_replace:
        made = {
            (a.model.database, a.model.name) for a in actions if isinstance(a, ddl.CreateTable) and not a.if_not_exists
        }
        catalog = replace(catalog, tables={name: model for name, model in catalog.tables.items() if name not in made})
    planner = _Planner(context, catalog, accepts)
    for action in actions:
        if isinstance(action, ddl.DropTable) and may_drop_unknown:
            action = replace(action, if_exists=True)
        planner.carry_out(action)
    unreplicated = tuple(action for action in actions if isinstance(action, ddl.Unreplicated))
    return DdlPlan(actions, context, tuple(planner.steps), planner.models, planner.databases, unreplicated,
                   tuple(planner.notes))  # fmt: skip


def load_table(sql: str, defaults: DatabaseModel, context: DdlContext) -> TableModel:
    """Return the model of a printed CREATE TABLE or CREATE SEQUENCE, with the charsets of all columns. Raises RplError
    if the text is not understood.
    """
    model = parse_create_table(sql, defaults.name, context)
    model = structure.forget_lost_labels(structure.resolve_charsets(model, defaults.charset, defaults.collation))
    return structure.add_versioning(model) if model.system_versioned else model


# With one of these errors, a DROP of tables, sequences or views has dropped some objects of its list.
_DROPPED_IN_PART = frozenset({er.BAD_TABLE_ERROR, er.UNKNOWN_SEQUENCES, er.UNKNOWN_VIEW})
_DROP_HINT = (
    "to ignore error 1051 from now on (init changes only this setting), run: rplctl init --replica-skip-errors 1051; "
    "rplctl start\n"
    "To skip the whole transaction, which then drops none of its tables, run: rplctl skip --yes; rplctl start"
)


class _Planner:
    """The planner of one statement. The catalog includes the changes of the statement's earlier actions."""

    def __init__(self, context: DdlContext, catalog: Catalog, accepts: Callable[[ddl.TableName], bool] | None) -> None:
        self.context = context
        self.catalog = catalog
        self.accepts = accepts
        self.models: dict[ddl.TableName, TableModel | None] = {}
        self.databases: dict[str, DatabaseModel | None] = {}
        self.steps: list[Step] = []
        self.notes: list[str] = []

    def find(self, name: ddl.TableName) -> TableModel | None:
        return self.models[name] if name in self.models else self.catalog.tables.get(name)

    def get(self, name: ddl.TableName) -> TableModel:
        model = self.find(name)
        if model is None:
            what = f"Table '{name[0]}.{name[1]}' doesn't exist"
            raise RplError(what, errno=er.NO_SUCH_TABLE, hint=LOAD_HINT)
        return model

    def leaves_out(self, *names: ddl.TableName) -> bool:
        """True if the filters accept none of these tables. In this case, the function adds a note."""
        if self.accepts is None or any(self.accepts(name) for name in names):
            return False
        self.notes.append(f"Table '{names[0][0]}.{names[0][1]}' is not changed because of the replicate-*-table rules")
        return True

    def everything(self, *, but: TableModel | None = None) -> list[TableModel]:
        """Return the models of all tables except `but`. Each DDL statement calls this, so it must be fast."""
        found = {**self.catalog.tables, **self.models}
        if but is not None:
            found.pop((but.database, but.name), None)
        return [model for model in found.values() if model is not None]

    def defaults(self, database: str) -> DatabaseModel:
        known = self.databases.get(database) or self.catalog.databases.get(database)
        return known or DatabaseModel(name=database, charset=self.context.charset, collation=self.context.collation)

    def carry_out(self, action: ddl.DdlAction) -> None:
        match action:
            case ddl.CreateTable():
                model = self.with_literals(action.model)
                self.create(model, if_not_exists=action.if_not_exists, or_replace=action.or_replace)
            case ddl.CreateTableLike():
                self.create_like(action)
            case ddl.DropTable():
                self.drop(action)
            case ddl.AlterTable():
                self.alter(action)
            case ddl.RenameTable():
                self.rename_all(action)
            case ddl.TruncateTable():
                self.steps.append(TruncateStep(self.get(action.name)))
            case ddl.CreateDatabase() | ddl.AlterDatabase():
                self.set_defaults(action)
            case ddl.DropDatabase():
                self.drop_database(action)
            case _:
                pass  # Unreplicated and NoOperation change no model

    def with_literals(self, model: TableModel) -> TableModel:
        """Return the new table with its literals in their character set, if the session used the charset binary."""
        if not self.context.has_binary_literals:
            return model
        defaults = self.defaults(model.database)
        model = structure.resolve_charsets(model, defaults.charset, defaults.collation)
        return replace(model, columns=tuple(read_literals(column) for column in model.columns))

    def create(self, model: TableModel, *, if_not_exists: bool, or_replace: bool) -> None:
        name = (model.database, model.name)
        if (existing := self.find(name)) is not None:
            if if_not_exists:
                self.notes.append(f"Table '{model.qualified_name}' already exists")
                return
            if not or_replace:
                raise RplError(f"Table '{model.qualified_name}' already exists", errno=er.TABLE_EXISTS_ERROR)
            self.forget(existing)
        defaults = self.defaults(model.database)
        model = structure.resolve_charsets(model, defaults.charset, defaults.collation)
        model = replace(model, columns=tuple(map(stored_labels, model.columns)))
        if model.system_versioned:
            model = structure.add_versioning(model)
        model = choose_index_names(model, self.everything())
        self.models[name] = self._with_references(model)
        self.note_rows_elsewhere(model)
        self.note_foreign_keys_left_out(model.foreign_keys, model)
        self.steps.append(CreateStep(self.get(name)))

    def note_rows_elsewhere(self, model: TableModel) -> None:
        if model.lies_elsewhere:
            name, engine = model.qualified_name, model.engine
            self.notes.append(f"Table '{name}' is not replicated: the engine {engine} stores its rows elsewhere")

    def note_foreign_keys_left_out(self, keys: Iterable[ForeignKey], model: TableModel) -> None:
        for key in keys:
            if structure.is_compared_by_collation(key, model) and not key.acts:
                self.notes.append(
                    f"Foreign key '{key.name}' of '{model.qualified_name}' is omitted: a collation compares its text"
                )

    def _with_references(self, model: TableModel) -> TableModel:
        """Add the columns of the parent's primary key to each `REFERENCES parent` that names no columns."""
        keys = []
        for foreign_key in model.foreign_keys:
            same = (foreign_key.ref_database, foreign_key.ref_table) == (model.database, model.name)
            parent = model if same else self.find((foreign_key.ref_database, foreign_key.ref_table))
            if not foreign_key.ref_columns and parent is not None and parent.primary_key is not None:
                foreign_key = replace(foreign_key, ref_columns=parent.primary_key.columns)
            keys.append(foreign_key)
        return replace(model, foreign_keys=tuple(keys))

    def create_like(self, action: ddl.CreateTableLike) -> None:
        source = self.get(action.like)
        keys = tuple(replace(key, stored_as="") for key in source.keys)  # foreign keys are not copied
        model = replace(source, database=action.name[0], name=action.name[1], keys=keys, foreign_keys=())
        self.create(model, if_not_exists=action.if_not_exists, or_replace=action.or_replace)

    def forget(self, model: TableModel) -> None:
        self.models[model.database, model.name] = None
        self.steps.append(DropStep(model))

    def drop(self, action: ddl.DropTable) -> None:
        tolerant = action.if_exists or self.context.error_code in _DROPPED_IN_PART
        for name in action.names:
            if self.leaves_out(name):
                continue
            model = self.find(name)
            if model is not None:
                self.forget(model)
            elif tolerant:
                self.notes.append(f"Unknown table '{name[0]}.{name[1]}'")
            else:
                what = f"Unknown table '{name[0]}.{name[1]}'"
                raise RplError(what, errno=er.BAD_TABLE_ERROR, hint=_DROP_HINT)

    def alter(self, action: ddl.AlterTable) -> None:
        if action.if_exists and self.find(action.name) is None:
            self.notes.append(f"Table '{action.name[0]}.{action.name[1]}' doesn't exist")
            return
        old = self.get(action.name)
        for operation in action.operations:
            if isinstance(operation, ddl.RemovePartitionRows):
                self.steps.append(DeletePartitionsStep(old, operation.names))
            elif isinstance(operation, ddl.SystemVersioning) and not operation.add:
                self.steps.append(DeleteHistoryStep(old))
            elif isinstance(operation, ddl.ExchangePartition):
                self.exchange(old, operation)
            elif isinstance(operation, ddl.DetachPartition):
                self.detach(old, operation)
        altered = alter(old, action.operations, self.context, self.defaults(old.database).charset)
        self.notes += altered.notes
        new = self._with_references(choose_index_names(altered.model, self.everything(but=old)))
        self.models[action.name] = new
        if not old.lies_elsewhere:
            self.note_rows_elsewhere(new)
        self.note_foreign_keys_left_out([key for key in new.foreign_keys if key not in old.foreign_keys], new)
        options = (op for op in action.operations if isinstance(op, ddl.TableOptions))
        first_number = next((op.auto_increment for op in options if op.auto_increment), None)
        self.steps.append(AlterStep(old=old, new=new, origins=altered.origins, first_number=first_number))
        self._children_follow(old, altered)
        for operation in action.operations:
            if isinstance(operation, ddl.AttachPartition):
                attached = self.get(operation.table)
                self.steps.append(MoveRowsStep(old=attached, new=new, must_fit=operation.partition.name))
                self.forget(attached)
            if isinstance(operation, ddl.RenameTo) and operation.name != action.name:
                self.rename(action.name, operation.name)

    def exchange(self, model: TableModel, operation: ddl.ExchangePartition) -> None:
        """Plan the exchange of the rows of a partition and a table, through a temporary table in the target."""
        other, names = self.get(operation.table), (operation.partition,)
        between = replace(model, name=_EXCHANGED, keys=(), foreign_keys=(), partitioning=None)
        self.steps += [
            CreateStep(between),
            MoveRowsStep(old=model, new=between, names=names),
            MoveRowsStep(old=other, new=model, must_fit=operation.partition),
            MoveRowsStep(old=between, new=other),
            DropStep(between),
        ]

    def detach(self, model: TableModel, operation: ddl.DetachPartition) -> None:
        keys = tuple(replace(key, stored_as="") for key in model.keys)
        database, name = operation.table
        single = replace(model, database=database, name=name, keys=keys, partitioning=None)
        self.create(single, if_not_exists=False, or_replace=False)
        self.steps.append(MoveRowsStep(old=model, new=self.get(operation.table), names=(operation.partition,)))

    def _children_follow(self, old: TableModel, altered: Altered) -> None:
        if renamed := renamed_columns(altered):
            for child in self.everything(but=old):
                if child.foreign_keys and (followed := follow_renamed_columns(child, old, renamed)) != child:
                    self.models[child.database, child.name] = followed

    def rename_all(self, action: ddl.RenameTable) -> None:
        for old, new in action.pairs:
            if self.leaves_out(old, new):
                continue
            if action.if_exists and self.find(old) is None:
                self.notes.append(f"Table '{old[0]}.{old[1]}' doesn't exist")
            else:
                self.rename(old, new)

    def rename(self, old_name: ddl.TableName, new_name: ddl.TableName) -> None:
        old = self.get(old_name)
        if self.find(new_name) is not None:
            raise RplError(f"Table '{new_name[0]}.{new_name[1]}' already exists", errno=er.TABLE_EXISTS_ERROR)
        new = renamed(old, *new_name)
        self.models[old_name] = None
        self.models[new_name] = new
        self.steps.append(RenameStep(old, new))
        for child in self.everything():  # foreign keys follow the renamed table
            if not child.foreign_keys:
                continue
            keys = tuple(
                replace(fk, ref_database=new_name[0], ref_table=new_name[1])
                if (fk.ref_database, fk.ref_table) == old_name
                else fk
                for fk in child.foreign_keys
            )
            if keys != child.foreign_keys:
                self.models[child.database, child.name] = replace(child, foreign_keys=keys)

    def set_defaults(self, action: ddl.CreateDatabase | ddl.AlterDatabase) -> None:
        if isinstance(action, ddl.CreateDatabase):
            if action.if_not_exists and action.name in self.catalog.databases:
                return
            if action.or_replace:
                self.drop_database(ddl.DropDatabase(action.name))
            known = DatabaseModel(name=action.name, charset=self.context.charset, collation=self.context.collation)
        else:
            known = self.defaults(action.name)
        if action.charset in (None, "default"):
            charset = known.charset if action.charset is None else self.context.charset
            collation = action.collation or (known.collation if action.charset is None else None)
        else:
            charset, collation = action.charset or known.charset, action.collation
        self.databases[action.name] = DatabaseModel(name=action.name, charset=charset, collation=collation)

    def drop_database(self, action: ddl.DropDatabase) -> None:
        for model in self.everything():
            if model.database == action.name:
                self.forget(model)
        self.databases[action.name] = None
