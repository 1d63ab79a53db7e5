"""Columns of the repository tables in each dialect: MySQL's own types there, elsewhere the nearest that hold all."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from rplctl.target.registry import dialect_of


class ColumnTypes:
    """Types by what they hold, for a table of the engine `rep_engine`."""

    def __init__(self, dialect: str, rep_engine: str = "") -> None:
        self._dialect = dialect_of(dialect)
        self._types = types = self._dialect.own_types(rep_engine)
        self.text, self.long_text, self.switch = types.text, types.long_text, types.switch
        self.unsigned, self.position = types.unsigned, types.position
        self.seconds, self.short_seconds = types.seconds, types.short_seconds
        self.name, self.choice = types.name, types.choice

    def column(self, name: str, type_: Any, default: str | None = None, *, null: bool = True, key: bool = False) -> Any:
        """`default` is SQL text."""
        literal = None
        if default is not None:
            literal = sa.text(self._types.off if default == "0" else default)
        return sa.Column(
            self._dialect.stored_name(name),
            type_,
            nullable=null,
            server_default=literal,
            primary_key=key,
            autoincrement=False,
        )
