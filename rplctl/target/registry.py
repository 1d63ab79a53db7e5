"""The list of the kinds of target. Each kind has a folder, which alone defines the properties of the kind:

    dialect    opens the target, maps errors, and has its log, two-phase commit and rplctl's tables (`dialect.Dialect`)
    form       the form in which it takes values (`value_form.ValueForm`); Spark tasks import it without a driver
    compared   its rows as `rplctl verify` compares them (`compared.ComparedRows`)
    undo       its rows as SQL text, for `rplctl repair` (`undo.UndoSql`)

The name of a kind is the scheme of its URL and the name of SQLAlchemy's dialect. Invariant: an unknown name is an
error; it never selects another kind.
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
    has_own_rows: bool = True  # False: the kind reports rows in the same form as a source, and needs no `compared`


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
    """Return the name of the kind in a target's URL: `sqlite:///x` → `sqlite`, `mariadb+pymysql://…` → `mysql`.

    A driver after a plus sign is ignored. A scheme that belongs to no kind is returned unchanged.
    """
    scheme = url.partition("://")[0].partition("+")[0]
    return next((name for name, kind in KINDS.items() if scheme in kind.also), scheme)


def is_missing_file(url: str) -> bool:
    """True if the target is a local file that does not exist. Loads no driver (design D16)."""
    kind, path = KINDS.get(target_kind(url)), url.partition(":///")[2].partition("?")[0]
    if kind is None or not kind.is_file or path in ("", ":memory:") or path.startswith("file:"):
        return False
    return not Path(path).exists()


def is_local_file(name: str) -> bool:
    """True if the targets of a kind are local files, KIND:///PATH. Raises ConfigError for an unknown name."""
    return _kind(name).is_file


@cache
def dialect_of(name: str) -> Dialect:
    """Return the dialect of a kind. `name`: the kind's name, a scheme, or SQLAlchemy's name. Raises ConfigError for any
    other name.
    """
    found: Dialect = import_module(f"{_kind(name).folder}.dialect").DIALECT
    return found


@cache
def value_form(name: str) -> ValueForm:
    """Return the value form of a kind. Raises ConfigError for a name that is not a kind's."""
    form: ValueForm = import_module(f"{_kind(name).folder}.form").FORM
    return form


@cache
def compared_rows(name: str) -> type[ComparedRows] | None:
    """Return the ComparedRows of a kind; None if the kind reports rows in a source's form. Raises ConfigError for other
    names.
    """
    if not (kind := _kind(name)).has_own_rows:
        return None
    found: type[ComparedRows] = import_module(f"{kind.folder}.compared").COMPARED
    return found


@cache
def undo_sql(name: str) -> UndoSql:
    """Return the UndoSql of a kind. Raises ConfigError for a name that is not a kind's."""
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
