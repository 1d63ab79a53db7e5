"""The list of the kinds of target. Each kind has a folder that defines the kind completely, in these modules:

    dialect    opens a target, converts its errors, and describes how the kind differs from others (`dialect.Dialect`)
    form       the format of the values that the kind accepts (`value_form.ValueForm`); Spark tasks import this module
    compared   the rows of a target as `rplctl verify` compares them (`compared.ComparedRows`)
    undo       the rows of a target as SQL text, for `rplctl repair` (`undo.UndoSql`)

The name of a kind is the scheme of its URL, and the name of SQLAlchemy's dialect. Invariant: an unknown name is an
error and never selects another kind.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetKind:
    folder: str
    also: tuple[str, ...] = ()  # other names
    is_file: bool = False  # KIND:///PATH
    has_own_rows: bool = True  # False: the kind returns rows in the form of a source, and needs no module `compared`


KINDS: dict[str, TargetKind] = {
    "sqlite": TargetKind(folder="rplctl.target.sqlite", is_file=True),
    "duckdb": TargetKind(folder="rplctl.target.duckdb", is_file=True),
    "delta": TargetKind(folder="rplctl.target.delta"),
    "parquet": TargetKind(folder="rplctl.target.parquet", has_own_rows=False),
    "mysql": TargetKind(folder="rplctl.target.mysql", also=("mariadb",), has_own_rows=False),
    "postgresql": TargetKind(folder="rplctl.target.postgresql", also=("postgres",)),
}


DEFAULT_KIND = "sqlite"  # the embedded database, used if no target is named


def target_kind(url: str) -> str:
    """Return the name of the kind of target in a URL: `sqlite:///x` → `sqlite`, `mariadb+pymysql://…` → `mysql`.

    A driver after the plus sign is ignored. If the scheme belongs to no kind, return the scheme unchanged.
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return next((name for name, kind in KINDS.items() if scheme in kind.also), scheme)


def is_missing_file(url: str) -> bool:
    """True if the target is a local file that does not exist. This function loads no database driver (design D16)."""
    kind, path = KINDS.get(target_kind(url)), url.partition(":///")[2].partition("?")[0]
    if kind is None or not kind.is_file or path in ("", ":memory:") or path.startswith("file:"):
        return False
    return not Path(path).exists()


def is_local_file(name: str) -> bool:
    """True if targets of this kind are local files (KIND:///PATH). Raises ConfigError if no kind has this name."""
    return _kind(name).is_file


@cache
def dialect_of(name: str) -> Dialect:
    """Return the dialect of a kind of target. `name` may be the kind's name, the scheme of a URL, or SQLAlchemy's name
    of the kind. Raises ConfigError for any other name.
    """
    found: Dialect = import_module(f"{_kind(name).folder}.dialect").DIALECT
    return found


@cache
def value_form(name: str) -> ValueForm:
    """Return the format of the values that a kind of target accepts. Raises ConfigError if no kind has this name."""
    form: ValueForm = import_module(f"{_kind(name).folder}.form").FORM
    return form


@cache
def compared_rows(name: str) -> type[ComparedRows] | None:
    """Return the class with which `rplctl verify` reads the rows of a kind of target. Return None for a kind without
    this class, such as mysql, whose rows `verify` reads like a source's. Raises ConfigError if no kind has this name.
    """
    if not (kind := _kind(name)).has_own_rows:
        return None
    found: type[ComparedRows] = import_module(f"{kind.folder}.compared").COMPARED
    return found


@cache
def undo_sql(name: str) -> UndoSql:
    """Return the object with which `rplctl repair` writes rows of a kind of target as SQL text. Raises ConfigError if
    no kind has this name.
    """
    sql: UndoSql = import_module(f"{_kind(name).folder}.undo").UNDO
    return sql


def _kind(name: str) -> TargetKind:
    kind = KINDS.get(target_kind(name))
    if kind is None:
        raise ConfigError(
            f"target '{name}' is not a kind of database that rplctl can apply to",
            hint="write sqlite:///PATH, duckdb:///PATH, mysql://USER@HOST:PORT/, "
            "postgresql://USER@HOST:PORT/DATABASE, delta+file:///FOLDER or parquet+file:///FOLDER",
        )
    return kind
