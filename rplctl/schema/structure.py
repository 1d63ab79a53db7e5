"""The rules that connect the parts of a table: the server's names, implicit keys, NOT NULL keys, inherited charsets.

Most functions take a model and return a model. CREATE TABLE and ALTER TABLE both use them, so both give the same
result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rplctl import mysql_errors as er
from rplctl.errors import EXCLUDE, RplError
from rplctl.schema.column_definition import Constraint
from rplctl.schema.context import DdlContext
from rplctl.schema.data_type import normalize, takes_charset
from rplctl.schema.model import CHARACTER_TYPES, Check, Column, ForeignKey, Key, KeyPart, TableModel
from rplctl.schema.statement import AddForeignKey, AddKey, TableName, TableOptions
from rplctl.schema.table_definition import Definitions

END_OF_TIME = "2038-01-19 03:14:07.999999"  # MariaDB's row_end of a current row, in UTC
LATER_END_OF_TIME = "2106-02-07 06:28:15.999999"  # since 11.5
ROW_START, ROW_END = "row_start", "row_end"

_WITHOUT_FOREIGN_KEYS = frozenset({"MYISAM", "ARIA", "MEMORY", "HEAP", "CSV", "ARCHIVE", "BLACKHOLE", "ROCKSDB"})
_BEYOND_UTF8MB3 = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})


def build_table(name: TableName, definitions: Definitions, options: TableOptions, context: DdlContext) -> TableModel:
    """Return the model of a CREATE TABLE statement from its parsed parts.

    A charset is still None if the table inherits it from its database. Raises RplError if a name occurs twice or a key
    column does not exist.
    """
    columns = tuple(definitions.columns)
    if not columns:
        raise RplError(
            f"A table must have at least 1 column: {name[0]}.{name[1]}",
            errno=er.TABLE_MUST_HAVE_COLUMNS,
            hint=EXCLUDE,
        )
    check_column_names(columns, name[1])
    if not context.explicit_defaults_for_timestamp:
        columns = promote_first_timestamp(columns)
    model = TableModel(
        database=name[0],
        name=name[1],
        columns=columns,
        charset=options.charset,
        collation=options.collation,
        engine=options.engine or "",
        comment=options.comment or "",
    )
    model = add_constraints(model, tuple(definitions.constraints), context)
    model = replace(model, keys=tuple(_with_period(key, definitions.periods) for key in model.keys))
    if definitions.row_period is not None:
        model = replace(model, system_versioned=True)
        return versioned_keys(model, definitions.row_period[1])
    return model


def _with_period(key: Key, periods: Mapping[str, tuple[str, str]]) -> Key:
    """Replace MariaDB's `p WITHOUT OVERLAPS` in a key by the end and the start of the period p.

    `periods`: the two columns of each period. The rows of the source do not overlap, so the key is unique over these
    columns alone.
    """
    parts: list[KeyPart] = []
    for part in key.parts:
        begin, end = periods.get((part.expression or "").casefold(), ("", ""))
        parts += [KeyPart(end), KeyPart(begin)] if begin else [part]
    return replace(key, parts=tuple(parts))


def is_compared_by_collation(key: ForeignKey, model: TableModel) -> bool:
    """True if the source compares values of the key's columns by a collation in which some different texts are equal.

    For example, the texts may differ in case or in trailing spaces.
    """
    columns = (model.find(name) for name in key.columns)
    texts = [column for column in columns if column is not None and column.type in CHARACTER_TYPES]
    return not all((column.collation or "").endswith(("0900_bin", "nopad_bin")) for column in texts)


def promote_first_timestamp(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Give the first TIMESTAMP column the default CURRENT_TIMESTAMP, if it has no default, ON UPDATE or NULL.

    Servers do this if explicit_defaults_for_timestamp is off.
    """
    for index, column in enumerate(columns):
        if column.type == "timestamp":
            if not column.nullable and column.default is None and column.generated is None:
                digits = f"({column.fraction_digits})" if column.fraction_digits else ""
                promoted = replace(column, default=f"CURRENT_TIMESTAMP{digits}")
                return (*columns[:index], promoted, *columns[index + 1 :])
            return columns
    return columns


def check_column_names(columns: tuple[Column, ...], table: str) -> None:
    seen = set()
    for column in columns:
        if (folded := column.name.casefold()) in seen:
            raise RplError(f"Duplicate column name '{column.name}' in {table}", errno=er.DUP_FIELDNAME)
        seen.add(folded)


def add_constraints(model: TableModel, constraints: tuple[Constraint, ...], context: DdlContext) -> TableModel:
    """Add keys to the model, and then foreign keys and checks.

    The keys come first, because a foreign key needs an index, and adds an index if no key is suitable.
    """
    for constraint in constraints:
        if isinstance(constraint, AddKey):
            model = add_key(model, constraint.key, if_not_exists=constraint.if_not_exists)
    for constraint in constraints:
        if isinstance(constraint, AddForeignKey):
            model = add_foreign_key(model, constraint)
        elif not isinstance(constraint, AddKey):
            model = add_check(model, constraint.check, context)
    return model


def add_key(model: TableModel, key: Key, *, if_not_exists: bool = False) -> TableModel:
    """Add the key to the model, in place of implicit keys for the same columns.

    If the key has no name, it gets the name that the server chooses. The key's columns are spelled as in the table.
    Raises RplError if the table already has a key with this name, or lacks a column of the key.
    """
    parts = tuple(replace(part, column=_own_name(model, part.column)) if part.column else part for part in key.parts)
    key = replace(key, parts=parts, name=key.name or _key_name(model, parts))
    if any(other.name.casefold() == key.name.casefold() and not other.implicit for other in model.keys):
        if if_not_exists:
            return model
        raise RplError(f"Duplicate key name '{key.name}' in {model.qualified_name}", errno=er.DUP_KEYNAME)
    kept = tuple(k for k in model.keys if not (k.implicit and key.columns[: len(k.parts)] == k.columns))
    kept = tuple(k for k in kept if k.name.casefold() != key.name.casefold())
    columns = model.columns
    if key.kind == "primary":
        names = set(key.columns)
        columns = tuple(replace(c, nullable=False) if c.name in names else c for c in columns)
        return replace(model, columns=columns, keys=(key, *kept))
    return replace(model, keys=(*kept, key))


def _own_name(model: TableModel, column_name: str) -> str:
    column = model.find(column_name)
    if column is None:
        what = f"Key column '{column_name}' doesn't exist in table {model.qualified_name}"
        raise RplError(
            what,
            errno=er.KEY_COLUMN_DOES_NOT_EXITS,
            hint="to load the table's definition, run: rplctl load-schema --from-source",
        )
    return column.name


def _key_name(model: TableModel, parts: tuple[KeyPart, ...]) -> str:
    """Return the name that the server chooses for a key: the first column's name, then name_2, name_3, …"""
    base = parts[0].column or "functional_index"
    if base.upper() == "PRIMARY":
        base = "PRIMARY_2"
    taken = {key.name.casefold() for key in model.keys}
    name, number = base, 1
    while name.casefold() in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def add_foreign_key(model: TableModel, operation: AddForeignKey) -> TableModel:
    """Add a foreign key, and the index that the server creates if no key begins with the foreign key's columns.

    A foreign key without a name is named `<table>_ibfk_<n>`. An engine without foreign keys ignores the foreign key,
    but not the index.
    """
    foreign_key = operation.foreign_key
    if operation.if_not_exists and any(fk.name.casefold() == foreign_key.name.casefold() for fk in model.foreign_keys):
        return model
    columns = tuple(_own_name(model, name) for name in foreign_key.columns)
    served = any(key.columns[: len(columns)] == columns for key in model.keys)
    key_name = operation.key_name or foreign_key.name
    if not foreign_key.name:
        prefix = f"{model.name}_ibfk_"
        numbers = [int(fk.name[len(prefix) :]) for fk in model.foreign_keys
                   if fk.name.startswith(prefix) and fk.name[len(prefix) :].isdecimal()]  # fmt: skip
        foreign_key = replace(foreign_key, name=f"{prefix}{max(numbers, default=0) + 1}")
    if not served:
        parts = tuple(KeyPart(name) for name in columns)
        taken = any(key.name.casefold() == key_name.casefold() for key in model.keys)
        model = add_key(model, Key(name="" if taken else key_name, kind="index", parts=parts, implicit=True))
    if model.engine.upper() in _WITHOUT_FOREIGN_KEYS:
        return model
    kept = tuple(fk for fk in model.foreign_keys if fk.name.casefold() != foreign_key.name.casefold())
    return replace(model, foreign_keys=(*kept, replace(foreign_key, columns=columns)))


def add_check(model: TableModel, check: Check, context: DdlContext) -> TableModel:
    if not check.name:
        pattern = "CONSTRAINT_{}" if context.is_mariadb else model.name + "_chk_{}"
        taken, number = {c.name for c in model.checks}, 1
        while pattern.format(number) in taken:
            number += 1
        check = replace(check, name=pattern.format(number))
    kept = tuple(c for c in model.checks if c.name.casefold() != check.name.casefold())
    return replace(model, checks=(*kept, check))


def resolve_charsets(model: TableModel, charset: str, collation: str | None) -> TableModel:
    """Return the model with a charset for the table and for each text column.

    `charset` and `collation`: the defaults of the database, which the table inherits if it has no own charset.
    """
    if model.charset is None:
        # a collation without a charset (MariaDB's uca1400_…) is kept, with the charset of the database
        model = replace(model, charset=charset, collation=model.collation or collation)
    columns = tuple(resolve_column(column, model.charset or charset, model.collation) for column in model.columns)
    return replace(model, columns=columns)


def resolve_column(column: Column, charset: str, collation: str | None) -> Column:
    if column.charset == "default":
        column = replace(column, charset=None)
    if not takes_charset(column):
        return normalize(column)
    if column.collation == "_bin":
        column = replace(column, collation=f"{column.charset or charset}_bin")
    if column.charset is None:
        inherited = column.collation or collation
        column = replace(column, charset=charset, collation=inherited)
    return normalize(column)


def add_versioning(model: TableModel) -> TableModel:
    """Add WITH SYSTEM VERSIONING without explicit columns: two hidden columns, and row_end in every unique key.

    Row events contain both columns, and historical rows are logged as rows (seen in MariaDB 10.11's binary logs).
    """
    if (end := row_end(model)) or model.find(ROW_END) is not None:
        return versioned_keys(model, end or ROW_END)
    hidden = tuple(
        Column(name=name, type="timestamp", length=6, nullable=False, default=default, invisible=True)
        for name, default in ((ROW_START, "(ROW START)"), (ROW_END, "(ROW END)"))
    )
    return versioned_keys(replace(model, columns=(*model.columns, *hidden)), ROW_END)


def row_end(model: TableModel) -> str:
    """Return the name of the column that is GENERATED ALWAYS AS ROW END, or '' if there is none."""
    return next((column.name for column in model.columns if column.default == "(ROW END)"), "")


def versioned_keys(model: TableModel, row_end: str) -> TableModel:
    """Append row_end to each unique key, as the server does, because current and historical rows have the same declared
    key.

    `row_end`: the name of the column with the time at which a version of a row ended.
    """
    keys = tuple(
        replace(key, parts=(*key.parts, KeyPart(row_end))) if key.is_unique and row_end not in key.columns else key
        for key in model.keys
    )
    return replace(model, keys=keys, system_versioned=True)


def drop_versioning(model: TableModel) -> TableModel:
    """Remove the hidden columns from the model, and row_end from its keys. The server deletes the historical rows."""
    hidden = {c.name for c in model.columns if c.name in (ROW_START, ROW_END) and c.invisible}
    end = row_end(model) or ROW_END
    keys = tuple(replace(key, parts=tuple(p for p in key.parts if p.column != end)) for key in model.keys)
    columns = tuple(column for column in model.columns if column.name not in hidden)
    return replace(model, columns=columns, keys=keys, system_versioned=False)


def sequence_model(database: str, name: str) -> TableModel:
    """Return the model of a MariaDB sequence, which is a table of one row in the log.

    rplctl recognizes the row events of a sequence by this model, and skips them.
    """
    signed = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment")
    columns = (
        *(Column(name=column, type="bigint", length=21, nullable=False) for column in signed),
        Column(name="cache_size", type="bigint", length=21, unsigned=True, nullable=False),
        Column(name="cycle_option", type="tinyint", length=1, unsigned=True, nullable=False),
        Column(name="cycle_count", type="bigint", length=21, nullable=False),
    )
    return TableModel(database=database, name=name, columns=columns, engine="SEQUENCE")


def forget_lost_labels(model: TableModel) -> TableModel:
    """Remove the labels of those ENUM and SET columns whose labels a printed definition cannot show.

    A printed definition is in utf8mb3, and `?` replaces other characters of the labels. A value of such a column stops
    the channel, except if the log has the labels (binlog_row_metadata=FULL).
    """
    return replace(
        model,
        columns=tuple(
            replace(column, labels=())
            if column.charset in _BEYOND_UTF8MB3 and any("?" in label for label in column.labels)
            else column
            for column in model.columns
        ),
    )
