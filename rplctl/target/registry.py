"""The kinds of target: a folder and a line here for each. What a kind can do is said in its folder and nowhere else.

    dialect    how to open it, what it makes of errors, its logs, two phases and own tables (`dialect.Dialect`)
    form       in which form it takes its values (`value_form.ValueForm`); pure: Spark's tasks load it and no driver
    compared   its rows as `rplctl verify` compares them (`compared.ComparedRows`)
    undo       its rows as SQL text, for `rplctl repair` (`undo.UndoSql`)

Names are those of a URL's scheme and of SQLAlchemy's dialect. Invariant: a name that no line has is an error, never
taken for another kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from rplctl.errors import ConfigError

if TYPE_CHECKING:
    from rplctl.target.compared import ComparedRows
    from rplctl.target.dialect import Dialect
    from rplctl.target.undo import UndoSql
    from rplctl.target.value_form import ValueForm


@dataclass(frozen=True, slots=True)
class Kind:
    folder: str
    also: tuple[str, ...] = ()  # other names
    is_file: bool = False  # KIND:///PATH
    has_own_rows: bool = True  # False: they come as they come from a source, and it has no `compared`


KINDS: dict[str, Kind] = {
    "sqlite": Kind("rplctl.target.sqlite", is_file=True),
    "duckdb": Kind("rplctl.target.duckdb", is_file=True),
    "delta": Kind("rplctl.target.delta"),
    "parquet": Kind("rplctl.target.parquet", has_own_rows=False),
    "mysql": Kind("rplctl.target.mysql", ("mariadb",), has_own_rows=False),
    "postgresql": Kind("rplctl.target.postgresql", ("postgres",)),
}


DEFAULT_KIND = "sqlite"  # the embedded one, when no target is named


def target_kind(url: str) -> str:
    """Return the kind of a URL: `sqlite:///x` → `sqlite`, `mariadb+pymysql://…` → `mysql`.

    Drivers after a plus sign do not count. A scheme that belongs to no kind is returned unchanged.
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return next((name for name, kind in KINDS.items() if scheme in kind.also), scheme)


def is_missing_file(url: str) -> bool:
    """True if the target is a file of this machine that does not exist. Loads no driver (design D16)."""
    kind, path = KINDS.get(target_kind(url)), url.partition(":///")[2].partition("?")[0]
    if kind is None or not kind.is_file or path in ("", ":memory:") or path.startswith("file:"):
        return False
    return not Path(path).exists()


@cache
def dialect_of(name: str) -> Dialect:
    """Return the dialect of a kind, a scheme or SQLAlchemy's name. Raises ConfigError for any other."""
    found: Dialect = import_module(f"{_kind(name).folder}.dialect").DIALECT
    return found


@cache
def value_form(name: str) -> ValueForm:
    """Return the value form of a kind. Raises ConfigError for a name that is not a kind's."""
    form: ValueForm = import_module(f"{_kind(name).folder}.form").FORM
    return form


@cache
def compared_rows(name: str) -> type[ComparedRows] | None:
    """Return how a kind's rows are compared; None if they come as from a source. Raises ConfigError for other names."""
    if not (kind := _kind(name)).has_own_rows:
        return None
    found: type[ComparedRows] = import_module(f"{kind.folder}.compared").COMPARED
    return found


@cache
def undo_sql(name: str) -> UndoSql:
    """Return how a kind writes its rows as SQL text. Raises ConfigError for a name that is not a kind's."""
    sql: UndoSql = import_module(f"{_kind(name).folder}.undo").UNDO
    return sql


def _kind(name: str) -> Kind:
    kind = KINDS.get(target_kind(name))
    if kind is None:
        raise ConfigError(
            f"target '{name}' is not a kind of database that rplctl can apply to",
            hint="write sqlite:///PATH, duckdb:///PATH, mysql://USER@HOST:PORT/, "
            "postgresql://USER@HOST:PORT/DATABASE, delta+file:///FOLDER or parquet+file:///FOLDER",
        )
    return kind
