"""Replaces function calls in the VALUES of a partition by numbers.

The result of UNIX_TIMESTAMP depends on the time zone of the statement, which is not stored with the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

from rplctl.schema.context import DdlContext

_TO_DAYS_OF_ORDINAL = 365  # TO_DAYS('0001-01-01') - date(1, 1, 1).toordinal()
_CALL = re.compile(r"(YEAR|TO_DAYS|TO_SECONDS|UNIX_TIMESTAMP)\s*\(\s*'([^']*)'\s*\)", re.IGNORECASE)


def evaluate_values(values: str, context: DdlContext) -> str:
    """Return the VALUES of a partition, with numbers instead of calls such as TO_DAYS('2026-01-01').

    A call that cannot be computed is unchanged.
    """

    def number(match: re.Match[str]) -> str:
        try:
            moment = datetime.fromisoformat(match[2])
        except ValueError:
            return match[0]
        found = _CALLS[match[1].upper()](moment, context)
        return match[0] if found is None else str(found)

    return _CALL.sub(number, values)


def _to_days(moment: date) -> int:
    return moment.toordinal() + _TO_DAYS_OF_ORDINAL


def _unix_timestamp(moment: datetime, context: DdlContext) -> int | None:
    offset = context.utc_offset()
    return None if offset is None else int((moment - offset).replace(tzinfo=UTC).timestamp())


_CALLS: dict[str, Callable[[datetime, DdlContext], int | None]] = {
    "YEAR": lambda moment, _: moment.year,
    "TO_DAYS": lambda moment, _: _to_days(moment),
    "TO_SECONDS": lambda m, _: _to_days(m) * 86400 + m.hour * 3600 + m.minute * 60 + m.second,
    "UNIX_TIMESTAMP": _unix_timestamp,
}
