"""A table model as a MySQL CREATE TABLE: only to test that reading it gives the model back."""

from __future__ import annotations

from rplctl.schema.model import CHARACTER_TYPES, Column, Key, TableModel


def name(text: str) -> str:
    return "`" + text.replace("`", "``") + "`"


def string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def column_text(column: Column) -> str:
    words = [name(column.name), column.type.upper()]
    if column.labels:
        words.append("(" + ",".join(string(label) for label in column.labels) + ")")
    elif column.length is not None:
        words.append(f"({column.length}" + (f",{column.scale})" if column.scale is not None else ")"))
    if column.unsigned:
        words.append("UNSIGNED")
    if column.zerofill:
        words.append("ZEROFILL")
    if column.type in CHARACTER_TYPES:
        words.append(f"CHARACTER SET {column.charset}")
        if column.collation:
            words.append(f"COLLATE {column.collation}")
    if column.generated is not None:
        words.append(f"GENERATED ALWAYS AS ({column.generated}) {'STORED' if column.stored else 'VIRTUAL'}")
    words.append("NULL" if column.nullable else "NOT NULL")
    if column.default is not None:
        words.append(f"DEFAULT {column.default}")
    if column.invisible:
        words.append("INVISIBLE")
    if column.comment:
        words.append(f"COMMENT {string(column.comment)}")
    return " ".join(words)


def key_text(key: Key) -> str:
    parts = ", ".join(
        name(part.column) + (f"({part.length})" if part.length else "") + (" DESC" if part.descending else "")
        for part in key.parts
    )
    if key.kind == "primary":
        return f"PRIMARY KEY ({parts})"
    return f"{'UNIQUE ' if key.kind == 'unique' else ''}KEY {name(key.name)} ({parts})"


def create_table(model: TableModel) -> str:
    lines = [column_text(c) for c in model.columns] + [key_text(k) for k in model.keys]
    options = f" ENGINE={model.engine} DEFAULT CHARSET={model.charset} COMMENT={string(model.comment)}"
    return f"CREATE TABLE {name(model.name)} (\n  " + ",\n  ".join(lines) + "\n)" + options
