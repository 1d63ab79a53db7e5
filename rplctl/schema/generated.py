"""Finds generated columns that need special care, by their expressions.

* Every target computes sums and products of integers as the source does.
* A VIRTUAL column over a TIMESTAMP has another value for each reader, by the time zone of the reader's session.

MariaDB omits virtual columns from MINIMAL row images. rplctl only computes expressions that give the same integer on
every target: integer columns, integer literals, + - * and parentheses. An overflow is an error on the source already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from rplctl.schema.context import DdlContext
from rplctl.schema.model import INTEGER_BITS, TableModel
from rplctl.schema.token_stream import TokenStream

Expression = tuple[str | int, ...]  # parts: SQL text, or the number of a column

_NAME = re.compile(r"`((?:[^`]|``)+)`|([\w$\u0080-\uffff]+)")
_TOKEN = re.compile(r"\s*(?:(?P<name>`(?:[^`]|``)+`|[A-Za-z_$\u0080-\uffff][\w$]*)|(?P<plain>\d+|[-+*()]))")


def names_in(expression: str) -> set[str]:
    """Return all words in the expression in lower case: the names of its columns, and its SQL words."""
    return {(quoted or plain).replace("``", "`").casefold() for quoted, plain in _NAME.findall(expression)}


@lru_cache(maxsize=1024)
def integer_expressions(model: TableModel) -> dict[int, Expression]:
    """Return the expression of each generated column that rplctl can compute, by the number of the column."""
    numbers = {column.name.casefold(): number for number, column in enumerate(model.columns)}
    found: dict[int, Expression] = {}
    for number, column in enumerate(model.columns):
        if column.generated is not None and column.type in INTEGER_BITS and not column.is_unsigned_64:
            expression = _over_plain_integers(model, integer_terms(column.generated, numbers) or (), found)
            if expression:
                found[number] = expression
    return found


def _over_plain_integers(model: TableModel, terms: Expression, known: dict[int, Expression]) -> Expression:
    """Return the expression `terms`, in which each generated column is replaced by its own expression.

    `known`: the expressions of the earlier generated columns. Return () if a column is not a plain integer.
    """
    parts: list[str | int] = []
    for part in terms:
        column = model.columns[part] if isinstance(part, int) else None
        if column is None or (column.type in INTEGER_BITS and not column.is_unsigned_64 and column.generated is None):
            parts.append(part)
        elif isinstance(part, int) and part in known:
            parts += ["(", *known[part], ")"]
        else:
            return ()
    return tuple(parts)


def with_renamed(expression: str, names: Mapping[str, str], context: DdlContext) -> str:
    """Return the expression with the new names of columns. `names`: the new name by the case-folded old name."""
    if not names:
        return expression
    tokens, parts, start = TokenStream(expression, context), list[str](), 0
    while tokens.token.kind != "end":
        token = tokens.next()
        is_name = token.kind == "quoted" or (token.kind == "word" and not tokens.is_symbol("("))
        if is_name and (new := names.get(token.value.casefold())) is not None:
            parts += [tokens.text[start : token.start], "`", new.replace("`", "``"), "`"]
            start = token.end
    return "".join([*parts, tokens.text[start:]])


@lru_cache(maxsize=1024)
def columns_by_time_zone(model: TableModel) -> tuple[int, ...]:
    """Return the numbers of the columns whose values depend on the time zone of the session that reads them.

    These are VIRTUAL columns over a TIMESTAMP, or over another such column. The log has the value that the writer of
    the row sees. (A STORED column has the same value for all readers.)
    """
    names = {column.name.casefold() for column in model.columns if column.type == "timestamp"}
    found = []
    for number, column in enumerate(model.columns):
        if column.generated is not None and not column.stored and names & names_in(column.generated):
            names.add(column.name.casefold())
            found.append(number)
    return tuple(found)


def integer_terms(text: str, numbers: dict[str, int]) -> Expression | None:
    """Return the parts of an expression over integer columns, or None if `text` is not only a sum or product.

    `numbers`: the number of each column by its lower-case name.
    """
    parts: list[str | int] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        if name := match["name"]:
            number = numbers.get(name.strip("`").replace("``", "`").casefold())
            if number is None:
                return None  # the word is a function or a keyword
            parts.append(number)
        else:
            parts.append(match["plain"])
        at = match.end()
    return tuple(parts)
