"""Computes a generated column for existing rows, if its expression consists of functions over texts and integers.

Only expressions that the source and all targets compute alike are supported. Some values remain uncertain: non-ASCII
letters in UPPER and LOWER, texts that are too long, and NUL characters at which a target's functions end. An SQL
condition selects the rows with such values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rplctl.schema.context import DdlContext
from rplctl.schema.model import INTEGER_BITS, TEXT_BYTES, Column
from rplctl.schema.token_stream import TokenStream
from rplctl.schema.value import ASCII_INTRODUCERS
from rplctl.sql_text import NOTHING, Grammar, Sql, joined, matched, written
from rplctl.target.conversion import ASCII_CHARSETS, UTF8_CHARSETS
from rplctl.target.ddl_parts import text_literal

Operands = Mapping[str, tuple[Column, Sql]]  # case-folded name → (column, its name in SQL)

_MULTI_BYTE = frozenset({"gbk", "gb2312", "gb18030", "big5", "euckr", "ujis", "eucjpms", "sjis", "cp932"})
_PRINTED = ("decimal", "date", "time", "datetime", "year")
_BOTH_CASES = {
    "UPPER": written("upper"),
    "UCASE": written("upper"),
    "LOWER": written("lower"),
    "LCASE": written("lower"),
}
_MOST_DIGITS = 9


class NotKnown(Exception):
    """Raised for an expression that only the source can compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFunctions:
    """The SQL with which a kind of target measures, prints and checks texts."""

    octets: Callable[[Sql], Sql]  # the number of bytes of a text in UTF-8
    printed: Callable[[Column, Sql], Sql]  # a value as text, in the format of the source
    has_nul: Callable[[Sql], Sql]  # the condition for a text with a NUL; NOTHING if functions do not end at a NUL


@dataclass(slots=True)
class Expression:
    """A parser that translates the source's expression for `column` into SQL of the target. `doubts` are conditions for
    rows in which the expression may have another value than on the source.
    """

    column: Column
    tokens: TokenStream
    operands: Operands
    context: DdlContext
    functions: TextFunctions
    doubts: list[Sql] = field(default_factory=list)

    def whole(self) -> Sql:
        """Read the whole expression, and return SQL that computes a value of the column. Raises NotKnown if only the
        source can compute this value.
        """
        is_text, sql = self._term()
        if not self.tokens.at_end:
            raise NotKnown
        if self.column.type in INTEGER_BITS:
            if is_text:
                raise NotKnown
            return sql
        if not is_text:
            sql = written("CAST({} AS TEXT)", sql)
        length = written("length({})", sql)
        limit: int | None = self.column.length
        if self.column.type in TEXT_BYTES:
            length, limit = self.functions.octets(sql), TEXT_BYTES[self.column.type]
        self._doubt(written("{} > {}", length, limit or 0))
        return sql

    def _doubt(self, condition: Sql) -> None:
        if condition and condition not in self.doubts:
            self.doubts.append(condition)

    def _term(self) -> tuple[bool, Sql]:
        """Read one term of the expression, and return (True if its value is a text, its SQL)."""
        tokens = self.tokens
        if tokens.accept_symbol("("):
            found = self._term()
            self._end_of_list()
        elif tokens.token.kind == "string" or tokens.ahead().kind == "string":
            found = True, self._literal()
        elif tokens.token.kind == "number":
            found = False, matched(Grammar.TERM, str(self._number()))
        elif tokens.ahead().kind == "symbol" and tokens.ahead().value == "(" and tokens.token.kind == "word":
            found = self._function(tokens.next().value)
        else:
            found = self._operand()
        if tokens.accept("IS NULL"):
            return False, written("(CASE WHEN {} IS NULL THEN 1 ELSE 0 END)", found[1])
        if tokens.accept("IS NOT NULL"):
            return False, written("(CASE WHEN {} IS NULL THEN 0 ELSE 1 END)", found[1])
        return found

    def _literal(self) -> Sql:
        token = self.tokens.token
        if token.kind == "word" and token.value not in ASCII_INTRODUCERS:
            raise NotKnown  # the literal has another character set, or is a DATE literal
        literal = self.tokens.string()
        if not literal.isascii() or "\0" in literal:
            raise NotKnown
        return text_literal(literal)

    def _number(self) -> int:
        text = self.tokens.next().value
        if not text.isdecimal() or len(text) > _MOST_DIGITS:
            raise NotKnown
        return int(text)

    def _operand(self) -> tuple[bool, Sql]:
        column, sql = self._column()
        if column.type in INTEGER_BITS:
            return False, sql
        return True, sql if column.type in ("char", "varchar", *TEXT_BYTES) else self.functions.printed(column, sql)

    def _column(self) -> tuple[Column, Sql]:
        column, sql = self.operands.get(self.tokens.identifier().casefold(), (None, NOTHING))
        if column is None or column.zerofill or column.is_unsigned_64:
            raise NotKnown
        is_text = column.type in ("char", "varchar", *TEXT_BYTES)
        if not is_text and column.type not in (*INTEGER_BITS, *_PRINTED):
            raise NotKnown
        if column.type == "char" and self.context.pads_char:
            raise NotKnown
        own = self.column.charset
        if is_text and own is not None and column.charset not in (own, "ascii") and own != "utf8mb4":
            raise NotKnown  # the source replaces characters with '?' that the new character set lacks
        return column, sql

    def _end_of_list(self) -> None:
        if not self.tokens.accept_symbol(")"):
            raise NotKnown

    def _text(self) -> Sql:
        is_text, sql = self._term()
        if not is_text:
            return written("CAST({} AS TEXT)", sql)
        self._doubt(self.functions.has_nul(sql))
        return sql

    def _texts(self) -> list[Sql]:
        found = [self._text()]
        while self.tokens.accept_symbol(","):
            found.append(self._text())
        return found

    def _comma(self) -> None:
        if not self.tokens.accept_symbol(","):
            raise NotKnown

    def _function(self, name: str) -> tuple[bool, Sql]:
        self.tokens.accept_symbol("(")
        match name:
            case "CONCAT":
                found = True, written("({})", joined(" || ", self._texts()))
            case "CONCAT_WS":
                found = True, self._with_separators()
            case "UPPER" | "UCASE" | "LOWER" | "LCASE":
                found = True, self._in_one_case(written("upper") if name[0] == "U" else written("lower"))
            case "LENGTH" | "OCTET_LENGTH":
                found = False, self._octets()
            case "CHAR_LENGTH" | "CHARACTER_LENGTH":
                found = False, written("length({})", self._text())
            case "LEFT" | "SUBSTRING" | "SUBSTR" | "MID":
                found = True, self._part(name == "LEFT")
            case "TRIM" | "LTRIM" | "RTRIM":
                found = True, self._trimmed(name)
            case "COALESCE" | "IFNULL":
                found = self._first_value()
            case _:
                raise NotKnown
        self._end_of_list()
        return found

    def _with_separators(self) -> Sql:
        """Read the arguments of CONCAT_WS, and return its SQL, which omits each NULL together with its separator."""
        separator = self._literal_text()
        self._comma()
        parts = [written("coalesce({} || {}, '')", text_literal(separator), part) for part in self._texts()]
        return written("substr({}, {})", joined(" || ", parts), len(separator) + 1)

    def _literal_text(self) -> str:
        if self.tokens.token.kind != "string":
            raise NotKnown
        literal = self.tokens.string()
        if not literal.isascii() or "\0" in literal:
            raise NotKnown
        return literal

    def _in_one_case(self, function: Sql) -> Sql:
        column, sql = self._column()
        if column.type in _PRINTED:
            return self.functions.printed(column, sql)
        collation = column.collation or ""
        if column.charset not in ASCII_CHARSETS or "turkish" in collation or "_tr_" in collation:
            raise NotKnown
        self._doubt(self.functions.has_nul(sql))
        self._doubt(written("{} <> length({})", self.functions.octets(sql), sql))
        return written("{}({})", function, sql)

    def _octets(self) -> Sql:
        column, sql = self._column()
        if column.type in INTEGER_BITS:
            return written("length(CAST({} AS TEXT))", sql)
        if column.type in _PRINTED:
            return written("length({})", self.functions.printed(column, sql))
        if column.charset in UTF8_CHARSETS:
            return self.functions.octets(sql)
        if column.charset not in ASCII_CHARSETS or column.charset in _MULTI_BYTE:
            raise NotKnown
        self._doubt(self.functions.has_nul(sql))
        return written("length({})", sql)

    def _part(self, from_left: bool) -> Sql:
        text = self._text()
        self._comma()
        first = 1 if from_left else self._number()
        if not first:
            raise NotKnown  # SUBSTRING from position 0 is '' on MySQL and MariaDB; targets return the first characters
        if not from_left and not self.tokens.accept_symbol(","):
            return written("substr({}, {})", text, first)
        return written("substr({}, {}, {})", text, first, self._number())

    def _trimmed(self, name: str) -> Sql:
        text = self._text()
        if name != "RTRIM":
            text = written("ltrim({}, ' ')", text)
        return written("rtrim({}, ' ')", text) if name != "LTRIM" else text

    def _first_value(self) -> tuple[bool, Sql]:
        found = [self._term()]
        while self.tokens.accept_symbol(","):
            found.append(self._term())
        is_text = any(is_text for is_text, _ in found)
        parts = (sql if one or not is_text else written("CAST({} AS TEXT)", sql) for one, sql in found)
        return is_text, written("coalesce({})", joined(", ", parts))
