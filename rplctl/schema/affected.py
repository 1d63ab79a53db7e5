"""Determines which objects of a server a DDL statement changes, and how the definitions of the objects then differ.

After a crash, this shows whether the statement was executed (design D28). Invariant: if `affected_by` returns None, the
statement may be executed twice, because the second execution changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from rplctl.errors import RplError
from rplctl.schema import statement as ddl
from rplctl.schema.context import DdlContext
from rplctl.schema.lexer import expand
from rplctl.schema.parse import parse_ddl
from rplctl.schema.statement import TableName

ACCOUNTS: Final = "ACCOUNTS"  # all users, roles and privileges count as one object
DATABASE: Final = "DATABASE"
TABLE: Final = "TABLE"  # a table, a view or a sequence


class ServerObject(NamedTuple):
    """An object of a server, for example a table or a trigger.

    `kind`: the word in SHOW CREATE. `database`, `name`: '' if objects of this kind have none.
    """

    kind: str
    database: str
    name: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind, ".".join(filter(None, (self.database, self.name))))))


class DefinitionOutcome(StrEnum):
    """The difference between the definition of an object before a statement and after it."""

    ABSENT = "does not exist"
    PRESENT = "exists"
    OTHER = "exists and differs"
    CHANGED = "differs"


@dataclass(slots=True, kw_only=True)
class Affected:
    """The objects that a statement changes, and for each the outcome that proves that the statement was executed.

    `outcomes`: empty for a statement that is not understood. `pairs`: the renames of RENAME TABLE, which may swap
    names. `wants_identity`: True if the texts of the definitions do not prove the execution, so that ids are compared,
    too. `may_look_alike`: True if equal columns may have been swapped. `is_drop`: True for DROP TABLE, which drops each
    table of its list separately. `replaces`: True for CREATE OR REPLACE, which some targets execute as DROP and CREATE.
    """

    outcomes: dict[ServerObject, DefinitionOutcome] = field(default_factory=dict)
    pairs: tuple[tuple[ServerObject, ServerObject], ...] = ()
    wants_identity: bool = False
    may_look_alike: bool = False
    is_drop: bool = False
    replaces: bool = False

    def expect(self, outcome: DefinitionOutcome, *names: TableName) -> None:
        self.outcomes |= {table(name): outcome for name in names}


def table(name: TableName) -> ServerObject:
    return ServerObject(TABLE, *name)


_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_QUALIFIED = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_OBJECT = re.compile(
    r"(?P<verb>CREATE|ALTER|DROP|RENAME)\b.*?\b"
    r"(?P<kind>VIEW|TRIGGER|PROCEDURE|FUNCTION|PACKAGE\s+BODY|PACKAGE|EVENT|USER|ROLE)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?"
    rf"(?P<names>{_QUALIFIED}(?:\s*,\s*{_QUALIFIED})*)",
    re.IGNORECASE | re.DOTALL,
)
_CREATE_TABLE = re.compile(
    rf"\s*CREATE\s+(?P<replaces>OR\s+REPLACE\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>{_QUALIFIED})", re.IGNORECASE
)
# A second execution of RETAIN CURRENT PASSWORD would lose the old password. A second ADD FACTOR would fail.
_REPEATABLE_RIGHTS = re.compile(
    r"\s*(?:GRANT|SET|ALTER)\b(?!.*\b(?:RETAIN\s+CURRENT|FACTOR|UNREGISTER)\b)", re.IGNORECASE | re.DOTALL
)


def affected_by(sql: str, database: str, context: DdlContext) -> Affected | None:
    """Return the objects whose definitions show, after a crash, whether the statement was executed.

    Return None if the statement may be executed twice, so that no comparison of definitions is necessary.
    """
    try:
        actions = parse_ddl(sql, database, context)
    except RplError:
        found = Affected()
        with suppress(RplError):
            if match := _CREATE_TABLE.match(expand(sql, context)):  # for example CREATE TABLE … SELECT as a statement
                found.expect(DefinitionOutcome.OTHER, _qualified(match["name"], database))
                found.replaces = match["replaces"] is not None
        return found
    if all(_repeats(action) for action in actions):
        return None
    found = Affected()
    for action in actions:
        _touch(found, action, database)
    return found


def _repeats(action: ddl.DdlAction) -> bool:
    match action:
        case ddl.NoOperation() | ddl.TruncateTable() | ddl.AlterDatabase():
            return True
        case ddl.Unreplicated(kind=ddl.ObjectKind.ACCOUNT, text=text):
            return _REPEATABLE_RIGHTS.match(text) is not None
    return False


def _touch(found: Affected, action: ddl.DdlAction, database: str) -> None:
    match action:
        case ddl.CreateTable(model=model):
            found.expect(DefinitionOutcome.OTHER, (model.database, model.name))
            found.replaces = action.or_replace
        case ddl.CreateTableLike(name=name):
            found.expect(DefinitionOutcome.OTHER, name)
            found.replaces = action.or_replace
        case ddl.DropTable(names):
            found.expect(DefinitionOutcome.ABSENT, *names)
            found.is_drop = True
        case ddl.RenameTable(pairs):
            _rename(found, pairs)
        case ddl.AlterTable(name=name, operations=operations):
            _alter(found, name, operations)
        case ddl.CreateDatabase(name=name):
            found.outcomes[ServerObject(kind=DATABASE, database="", name=name)] = DefinitionOutcome.OTHER
        case ddl.DropDatabase(name):
            found.outcomes[ServerObject(kind=DATABASE, database="", name=name)] = DefinitionOutcome.ABSENT
        case ddl.Unreplicated(kind=ddl.ObjectKind.ACCOUNT):
            found.outcomes[ServerObject(kind=ACCOUNTS, database="", name="")] = DefinitionOutcome.CHANGED
        case ddl.Unreplicated(text=text):
            _other_object(found, text, database)


def _rename(found: Affected, pairs: Iterable[tuple[TableName, TableName]]) -> None:
    found.pairs = tuple((table(old), table(new)) for old, new in pairs)
    for old, new in found.pairs:
        found.outcomes |= {old: DefinitionOutcome.ABSENT, new: DefinitionOutcome.PRESENT}
    found.wants_identity = len(found.pairs) > 1


def _alter(found: Affected, name: TableName, operations: Iterable[ddl.Operation]) -> None:
    found.expect(DefinitionOutcome.OTHER, name)
    for operation in operations:
        match operation:
            case ddl.RenameTo(new) if new != name:
                found.expect(DefinitionOutcome.ABSENT, name)
                found.expect(DefinitionOutcome.PRESENT, new)
            case ddl.ExchangePartition(table=other):
                found.expect(DefinitionOutcome.OTHER, other)
                found.wants_identity = True
            case ddl.DetachPartition(table=other):
                found.expect(DefinitionOutcome.PRESENT, other)
            case ddl.AttachPartition(table=other):
                found.expect(DefinitionOutcome.ABSENT, other)
            case ddl.ChangeColumn(old, column) if column.name.lower() != old.lower():
                found.may_look_alike = True
            case ddl.RenameColumn():
                found.may_look_alike = True
    found.wants_identity |= found.may_look_alike


def _other_object(found: Affected, text: str, database: str) -> None:
    match = _OBJECT.match(text)
    if match is None:
        return
    kind = " ".join(match["kind"].upper().split())
    outcome = {"CREATE": DefinitionOutcome.OTHER, "DROP": DefinitionOutcome.ABSENT}.get(
        match["verb"].upper(), DefinitionOutcome.CHANGED
    )
    for name in re.findall(_QUALIFIED, match["names"]):
        found.outcomes[ServerObject(TABLE if kind == "VIEW" else kind, *_qualified(name, database))] = outcome


def _qualified(text: str, database: str) -> TableName:
    *first, name = (part[1:-1].replace("``", "`") if part[0] == "`" else part for part in re.findall(_NAME, text))
    return (first[0] if first else database, name)
