"""Column types of the repository tables in each dialect: MySQL's own there, elsewhere the nearest that holds all."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

MYSQL = ("mysql", "mariadb")
MEMORY = "MEMORY"  # MySQL's engine without TEXT
_UTF8: dict[str, Any] = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}


class ColumnTypes:
    """Types by what they hold. `rep_engine` MEMORY has no TEXT: there texts are VARCHAR, long enough for settings."""

    def __init__(self, dialect: str, rep_engine: str = "") -> None:
        self.dialect = dialect
        self.is_mysql = dialect in MYSQL
        is_memory = self.is_mysql and rep_engine.upper() == MEMORY
        short: Any = mysql.VARCHAR(512, **_UTF8) if is_memory else mysql.TEXT(**_UTF8)
        long: Any = mysql.VARCHAR(8000, **_UTF8) if is_memory else mysql.LONGTEXT(**_UTF8)
        self.text: Any = short if self.is_mysql else sa.Text()
        self.long_text: Any = long if self.is_mysql else sa.Text()
        self.unsigned: Any = mysql.INTEGER(unsigned=True) if self.is_mysql else sa.BigInteger()
        self.position: Any = mysql.BIGINT(unsigned=True) if self.is_mysql else sa.BigInteger()
        self.switch: Any = sa.Boolean(create_constraint=False)
        self.seconds: Any = mysql.DOUBLE() if self.is_mysql else sa.Float(53)

    def name(self, length: int, collation: str = "") -> Any:
        if self.is_mysql:
            return mysql.VARCHAR(length, charset="utf8mb4", collation=collation or "utf8mb4_bin")
        return sa.String(length, collation="NOCASE" if collation and self.dialect == "sqlite" else None)

    def choice(self, name: str, words: tuple[str, ...]) -> Any:
        if self.is_mysql:
            return mysql.ENUM(*words)
        return sa.Enum(*words, name=name, native_enum=False, create_constraint=True)

    def column(self, name: str, type_: Any, default: str | None = None, *, null: bool = True, key: bool = False) -> Any:
        """`default` is SQL text; names are in lower case on PostgreSQL, so that nobody has to quote them."""
        stored = name.lower() if self.dialect == "postgresql" else name
        literal = None
        if default is not None:
            literal = sa.text("false" if (default, self.dialect) == ("0", "postgresql") else default)
        return sa.Column(stored, type_, nullable=null, server_default=literal, primary_key=key, autoincrement=False)
