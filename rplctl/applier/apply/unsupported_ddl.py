"""Which statements about objects that the target cannot have are skipped, by on_unsupported_ddl (design D31).

Invariant: the default skips only objects that hold no rows of their own. Row events carry what triggers, routines and
events change, and a view only shows rows. A statement that changes tables or rows is never skipped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from rplctl import mysql_errors as er
from rplctl.errors import RplError
from rplctl.mask import masked
from rplctl.schema.statement import ObjectKind, Unreplicated

_MOST_SHOWN = 200  # characters of a statement


class UnsupportedDdl(StrEnum):
    """The values of on_unsupported_ddl, from the strictest."""

    STOP_ALL = "stop_all"
    STOP = "stop"
    SKIP_OBJECTS = "skip_objects"
    SKIP = "skip"


EFFECTS_ARE_ROWS = frozenset(
    {
        ObjectKind.TRIGGER,
        ObjectKind.PROCEDURE,
        ObjectKind.FUNCTION,
        ObjectKind.PACKAGE,
        ObjectKind.LIBRARY,
        ObjectKind.EVENT,
    }
)
_WITHOUT_ROWS = frozenset({ObjectKind.VIEW, ObjectKind.ACCOUNT})
SKIPPED_KINDS: Mapping[UnsupportedDdl, frozenset[ObjectKind]] = {
    UnsupportedDdl.STOP_ALL: frozenset(),
    UnsupportedDdl.STOP: frozenset({ObjectKind.ACCOUNT}),
    UnsupportedDdl.SKIP_OBJECTS: EFFECTS_ARE_ROWS | _WITHOUT_ROWS,
    UnsupportedDdl.SKIP: frozenset(ObjectKind),
}
NOTED_KINDS = EFFECTS_ARE_ROWS | {ObjectKind.VIEW}  # in the history and in `check`; grants would fill both


def cannot_execute(statement: Unreplicated, target: str) -> RplError:
    """Return error 1235 of a statement that on_unsupported_ddl does not skip. `target`: the product's name."""
    value = next(policy for policy in UnsupportedDdl if statement.kind in SKIPPED_KINDS[policy])
    why = "row events already contain what it changes" if statement.kind in EFFECTS_ARE_ROWS else ""
    return RplError(
        f"cannot execute {statement.title} on a {target} target: {shown(statement)}",
        errno=er.NOT_SUPPORTED_YET,
        hint=f"{why}{'; ' if why else ''}to skip such statements, run: "
        f"rplctl init --on-unsupported-ddl {value}; rplctl start",
    )


def shown(statement: Unreplicated) -> str:
    """The statement's beginning on one line, without secrets."""
    return " ".join(masked(statement.text)[:_MOST_SHOWN].split())
