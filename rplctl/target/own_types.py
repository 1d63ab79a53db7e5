"""The column types of the tables that rplctl creates for itself. Each kind of target fills in the record `OwnTypes`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from rplctl.sql_text import Sql, written


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTypes:
    """The column types of rplctl's own tables on one kind of target, one for each kind of value. The defaults are
    standard types, for a kind of target that lacks MySQL's types.
    """

    text: Any = sa.Text()
    long_text: Any = sa.Text()
    large_binary: Any = sa.LargeBinary()
    unsigned: Any = sa.BigInteger()
    position: Any = sa.BigInteger()
    switch: Any = sa.Boolean(create_constraint=False)
    seconds: Any = sa.Float(53)
    short_seconds: Any = sa.Float(24)
    no_case: str | None = None  # collation of names that are compared without case
    off: Sql = written("0")  # SQL of a switch's default value
    options: dict[str, Any] = field(default_factory=dict)  # table options with which names are compared bytewise
    name_of: Callable[[int, str], Any] | None = None
    choice_of: Callable[[tuple[str, ...]], Any] | None = None

    def name(self, length: int, collation: str = "") -> Any:
        """Return the type of a column that stores names of up to `length` characters. `collation`: MySQL's collation if
        the names are compared without case, else ''.
        """
        if self.name_of is not None:
            return self.name_of(length, collation)
        return sa.String(length, collation=self.no_case if collation else None)

    def choice(self, name: str, words: tuple[str, ...]) -> Any:
        if self.choice_of is not None:
            return self.choice_of(words)
        return sa.Enum(*words, name=name, native_enum=False, create_constraint=True)
