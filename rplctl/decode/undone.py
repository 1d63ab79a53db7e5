"""Remove the changes that a source logged and then rolled back within a transaction, for targets without savepoints.

Invariant: the remaining events have the same effect as the whole run, with ROLLBACK and ROLLBACK TO executed.
"""

from __future__ import annotations

import numpy as np

from rplctl.decode.row_stream import IS_ROWS, EventRun
from rplctl.decode.transaction_words import ROLLBACK_TO, SAVEPOINT, TRANSACTION_WORDS
from rplctl.event.query import parse_query
from rplctl.event.types import EventType


def without_undone(run: EventRun) -> EventRun:
    """Return the run without the rows that were rolled back.

    The statements ROLLBACK, ROLLBACK TO and SAVEPOINT are also removed. DDL commits the rows before it, so a later
    ROLLBACK does not remove these rows.
    """
    savepoints: dict[str, int] = {}
    begun = 0
    gone = np.zeros(len(run.types), np.bool_)
    for number in np.flatnonzero(run.types == EventType.QUERY).tolist():
        text = parse_query(run.event(number), run.description).sql_bytes.decode("utf-8", "replace").strip()
        if match := ROLLBACK_TO.match(text):
            first = savepoints.get(folded(match[1]), begun)
        elif match := SAVEPOINT.match(text):
            savepoints[folded(match[1])] = number
            gone[number] = True
            continue
        elif TRANSACTION_WORDS.match(text) and text.upper().startswith("ROLLBACK"):
            first = begun
        else:
            begun = number + 1
            continue
        gone[first:number] |= IS_ROWS[run.types[first:number]]
        gone[number] = True
    if not gone.any():
        return run
    return run.chosen(~gone)


def folded(name: str) -> str:
    """Return the name of a savepoint in lower case and without quotes, so that names can be compared."""
    return name.strip("`").replace("``", "`").casefold()
