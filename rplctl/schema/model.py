"""The model of a table: its MySQL definition, with the details that row events lack (design D18).

Row events of MariaDB have no column names, signedness, charsets or labels of ENUM and SET. A target that does not speak
MySQL cannot return this information either. So the target stores the model as JSON, in the transaction of the DDL that
created the model.

Invariant: `columns` have the order of the table maps in the log, including hidden columns (MySQL's `my_row_id`,
MariaDB's `row_start` and `row_end`). In a catalog, every text column has its charset.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Literal, Self

from rplctl import mysql_errors as er
from rplctl.errors import RplError, TargetError
from rplctl.sql_text import backticked

FORMAT = 1  # the version of the JSON text; readers reject other versions
_LOAD_AGAIN = "to load the model again, run: rplctl load-schema --from-source; rplctl start"
MADE_EMPTY = "made_empty"  # a JSON key that is not a field of the model: see own_tables.models.store_models

KeyKind = Literal["primary", "unique", "index", "fulltext", "spatial", "vector"]

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXT_BYTES = {"tinytext": 255, "text": 65535, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
BLOB_BYTES = {"tinyblob": 255, "blob": 65535, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
CHARACTER_TYPES = frozenset({"char", "varchar", "enum", "set", *TEXT_BYTES})
BINARY_TYPES = frozenset({"binary", "varbinary", *BLOB_BYTES})
TEMPORAL_TYPES = frozenset({"date", "time", "datetime", "timestamp"})
MERGE_ENGINES = frozenset({"MERGE", "MRG_MYISAM"})
_ENGINES_ELSEWHERE = MERGE_ENGINES | {"FEDERATED", "CONNECT", "SPIDER"}
GEOMETRY_TYPES = frozenset(
    "geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The definition of one column, as in MySQL.

    `length` depends on the type:
    * display width of integers
    * characters of CHAR and VARCHAR, bytes of BINARY and VARBINARY, bits of BIT
    * digits of DECIMAL, dimensions of VECTOR
    * fraction digits of TIME, DATETIME and TIMESTAMP

    `default` and `generated` are the original SQL text (a literal keeps its quotes), or None if there is no such
    clause.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    labels: tuple[str, ...] = ()
    nullable: bool = True
    default: str | None = None
    auto_increment: bool = False
    generated: str | None = None
    stored: bool = False
    invisible: bool = False
    comment: str = ""

    @property
    def is_unsigned_64(self) -> bool:
        """True if the column can have values above 2^63-1, as BIGINT UNSIGNED and BIT(64) can."""
        return (self.type == "bigint" and self.unsigned) or (self.type == "bit" and self.length == 64)

    @property
    def fraction_digits(self) -> int:
        return (self.length or 0) if self.type in TEMPORAL_TYPES else 0


@dataclass(frozen=True, slots=True)
class KeyPart:
    column: str  # '' if the part is an expression
    length: int | None = None  # length of a prefix: characters of text, bytes of binary data
    descending: bool = False
    expression: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a table. The name of a primary key is PRIMARY.

    `stored_as`: the name of the index in the target, if it differs because the table or the key was renamed; otherwise
    ''.
    """

    name: str
    kind: KeyKind
    parts: tuple[KeyPart, ...]
    implicit: bool = False  # the server created the key for a foreign key
    stored_as: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(part.column for part in self.parts)

    @property
    def is_unique(self) -> bool:
        return self.kind in ("primary", "unique")

    @property
    def has_expression(self) -> bool:
        return any(part.expression is not None for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    name: str
    columns: tuple[str, ...]
    ref_database: str
    ref_table: str
    ref_columns: tuple[str, ...]
    on_delete: str = ""  # CASCADE, SET NULL, RESTRICT, NO ACTION, SET DEFAULT, or '' if there is no clause
    on_update: str = ""

    @property
    def acts(self) -> bool:
        """True if a change of a parent row also changes rows of the child table (CASCADE, SET NULL)."""
        return bool({self.on_delete, self.on_update} & {"CASCADE", "SET NULL"})


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    expression: str


@dataclass(frozen=True, slots=True)
class Partition:
    name: str
    values: str = ""  # original text: `LESS THAN (10)`, `IN (1,2)`, '' for HASH and KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioning:
    """The partitioning of a table. rplctl needs it for DROP and TRUNCATE PARTITION, for which the source
    logs no rows.
    """

    method: str  # RANGE, RANGE COLUMNS, LIST, LIST COLUMNS, HASH, KEY, …, in upper case
    expression: str
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableModel:
    database: str
    name: str
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    charset: str | None = None
    collation: str | None = None
    engine: str = ""
    comment: str = ""
    partitioning: Partitioning | None = None
    system_versioned: bool = False

    @property
    def qualified_name(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def is_sequence(self) -> bool:
        """True for a MariaDB sequence. Its row events are skipped, and the target has no table for it."""
        return self.engine.upper() == "SEQUENCE"

    @property
    def lies_elsewhere(self) -> bool:
        """True if the engine stores the table's rows in other tables, files or servers (MERGE, FEDERATED, CONNECT,
        SPIDER).

        Only a target that is a MySQL or MariaDB server has such a table.
        """
        return self.engine.upper() in _ENGINES_ELSEWHERE

    @property
    def holds_rows(self) -> bool:
        """True if the table has rows of its own, so that targets of every kind have this table.

        False for a sequence.
        """
        return not self.is_sequence and not self.lies_elsewhere

    @property
    def primary_key(self) -> Key | None:
        return next((key for key in self.keys if key.kind == "primary"), None)

    def find(self, column_name: str) -> Column | None:
        """Return the column with this name. Column names ignore case, as on the server."""
        wanted = column_name.casefold()
        return next((column for column in self.columns if column.name.casefold() == wanted), None)

    def as_known_by(self, width: int) -> TableModel:
        """Return the model for row images that have only the first `width` columns.

        A key that has one of the other columns does not identify such a row. So this key is not unique in the result.
        """
        beyond = {column.name for column in self.columns[width:]}
        if not beyond:
            return self
        keys = (replace(key, kind="index") if key.is_unique and beyond & {*key.columns} else key for key in self.keys)
        return replace(self, keys=tuple(keys))

    def to_json(self) -> str:
        """Return the model as JSON text. The text is stable: the same model always gives the same bytes."""
        whole = {"format": FORMAT, **_fields(self)}
        return json.dumps(whole, default=_fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the model in a JSON text of `to_json`.

        Raises RplError if the text is damaged or has another format.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            if fields.pop("format") != FORMAT:
                raise RplError("a stored table model has an unknown format", hint=_LOAD_AGAIN)
            fields.pop(MADE_EMPTY, None)
            return cls(**_rebuild_fields(fields))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RplError(f"a stored table model is damaged: {error}", hint=_LOAD_AGAIN) from error


def below_merge(model: TableModel, what: str) -> TargetError:
    """Return error 1235 for a change that would change the rows of the tables under a MERGE table.

    `what`: the words for the change in the message.
    """
    return TargetError(
        f"cannot apply {what} through MERGE table '{model.qualified_name}': the rows belong to its underlying tables",
        errno=er.NOT_SUPPORTED_YET,
        hint="to see the underlying tables (UNION=…), run on the source: SHOW CREATE TABLE "
        f"{backticked(model.database, model.name)}\n"
        "To skip the whole transaction and to copy these tables again, run: rplctl skip --yes; "
        "rplctl clone --tables DB.TABLE1,DB.TABLE2 --replace --yes; rplctl start",
    )


def _fields(part: Any) -> dict[str, Any]:
    """Return the fields of a model, or of a part of a model, as a dict for `json.dumps`. Nothing is copied.

    `asdict` would copy all nested values, which takes ten times as long.
    """
    return {name: getattr(part, name) for name in part.__slots__}


_NUMBERS = ("length", "scale")
_TEXTS = ("name", "type", "charset", "collation", "default", "generated", "comment", "column", "expression")


def _checked(part: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON fields of a column or a key part unchanged.

    Raises TypeError if a field has a wrong type, because rplctl writes these fields into SQL text without quotes.
    """
    for name in _NUMBERS:
        if type(part.get(name)) not in (int, NoneType):
            raise TypeError(f"{name} is {part[name]!r}")
    for name in _TEXTS:
        if type(part.get(name)) not in (str, NoneType):
            raise TypeError(f"{name} is {part[name]!r}")
    return part


def _rebuild_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert the lists and objects of JSON to the tuples and dataclasses of a model.

    Raises TypeError if a field has a wrong type.
    """
    fields["columns"] = tuple(
        Column(**{**_checked(c), "labels": tuple(map(str, c["labels"]))}) for c in fields["columns"]
    )
    fields["keys"] = tuple(
        Key(**{**k, "parts": tuple(KeyPart(**_checked(p)) for p in k["parts"])}) for k in fields["keys"]
    )
    fields["foreign_keys"] = tuple(
        ForeignKey(**{**f, "columns": tuple(f["columns"]), "ref_columns": tuple(f["ref_columns"])})
        for f in fields["foreign_keys"]
    )
    fields["checks"] = tuple(Check(**c) for c in fields["checks"])
    if (partitioning := fields["partitioning"]) is not None:
        parts = tuple(Partition(**p) for p in partitioning["partitions"])
        fields["partitioning"] = Partitioning(**{**partitioning, "partitions": parts})
    return fields
