"""The kinds of target: a folder and a line here for each. What a kind can do is said in its folder and nowhere else.

    dialect    how to open it, what it says of errors, its logs, two phases and own tables (`dialect.Dialect`)
    form       in which form it wants its values (`value_form.ValueForm`); pure: Spark's tasks load it and no driver
    compared   its rows as `rplctl verify` compares them (`compared.ComparedRows`)
    undo       its rows as SQL text, for `rplctl repair` (`undo.UndoSql`)

Names are those of a URL's scheme and of SQLAlchemy's dialect. Invariant: a name that no line has is an error, never
taken for another kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from rplctl.errors import ConfigError

if TYPE_CHECKING:
    from rplctl.target.compared import ComparedRows
    from rplctl.target.dialect import Dialect
    from rplctl.target.undo import UndoSql
    from rplctl.target.value_form import ValueForm


@dataclass(frozen=True, slots=True)
class Kind:
    dialect: str  # module with DIALECT
    form: str  # module with FORM
    also: tuple[str, ...] = ()  # other names
    compared: str = ""  # module with COMPARED; '' where rows come as they come from a source
    undo: str = ""  # module with UNDO


KINDS: dict[str, Kind] = {
    "sqlite": Kind(
        "rplctl.target.sqlite.dialect",
        "rplctl.target.sqlite.form",
        compared="rplctl.target.sqlite.compared",
        undo="rplctl.target.sqlite.undo",
    ),
    "duckdb": Kind(
        "rplctl.target.duckdb.dialect",
        "rplctl.target.duckdb.form",
        compared="rplctl.target.duckdb.compared",
        undo="rplctl.target.duckdb.undo",
    ),
    "delta": Kind("rplctl.target.delta.dialect", "rplctl.target.delta.form", compared="rplctl.target.delta.compared"),
    "mysql": Kind(
        "rplctl.target.mysql.dialect", "rplctl.target.mysql.form", ("mariadb",), undo="rplctl.target.mysql.undo"
    ),
    "postgresql": Kind(
        "rplctl.target.postgresql.dialect",
        "rplctl.target.postgresql.form",
        ("postgres",),
        "rplctl.target.postgresql.compared",
        "rplctl.target.postgresql.undo",
    ),
}


DEFAULT_KIND = "sqlite"  # the embedded one, when no target is named


def target_kind(url: str) -> str:
    """`sqlite:///x` → `sqlite`, `mariadb+pymysql://…` → `mysql`; drivers after a plus sign do not count.

    A scheme that is no kind's is given back.
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return next((name for name, kind in KINDS.items() if scheme in kind.also), scheme)


@cache
def dialect_of(name: str) -> Dialect:
    """By kind, scheme or SQLAlchemy's name. Raises ConfigError for any other."""
    found: Dialect = import_module(_kind(name).dialect).DIALECT
    return found


@cache
def value_form(name: str) -> ValueForm:
    """Raises ConfigError for a name that is no kind's."""
    form: ValueForm = import_module(_kind(name).form).FORM
    return form


@cache
def compared_rows(name: str) -> ComparedRows | None:
    """None of a kind whose rows come as they come from a source. Raises ConfigError for a name that is no kind's."""
    module = _kind(name).compared
    found: ComparedRows | None = import_module(module).COMPARED if module else None
    return found


@cache
def undo_sql(name: str) -> UndoSql:
    """Raises ConfigError for a name that is no kind's."""
    sql: UndoSql = import_module(_kind(name).undo).UNDO
    return sql


def _kind(name: str) -> Kind:
    kind = KINDS.get(target_kind(name))
    if kind is None:
        raise ConfigError(
            f"target '{name}' is not a kind of database that rplctl can apply to",
            hint="write sqlite:///PATH, duckdb:///PATH, mysql://USER@HOST:PORT/, "
            "postgresql://USER@HOST:PORT/DATABASE or delta+file:///FOLDER",
        )
    return kind
