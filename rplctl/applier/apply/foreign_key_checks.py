"""Decides which foreign key checks and actions the target must execute for the events of a range.

The source logs its session variable foreign_key_checks with every rows event. Invariant: a row that the source wrote
without checks is written without checks. MySQL 9.6 and later also log the rows that a foreign key action changes, so
the target must not execute the action again.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from rplctl.decode.row_stream import EventRun
from rplctl.decode.transaction_words import ROLLBACK_TO, SAVEPOINT, TRANSACTION_WORDS
from rplctl.event.events import parse_query
from rplctl.event.rows import CASCADES_LOGGED, NO_FOREIGN_KEY_CHECKS
from rplctl.event.types import EventType

WITHOUT_ACTIONS: Final = NO_FOREIGN_KEY_CHECKS | CASCADES_LOGGED
_XA_ASIDE: Final = re.compile(r"XA\s+(?!COMMIT)", re.IGNORECASE)


def wants_foreign_keys(run: EventRun, *, statements_bring_their_own: bool = False) -> bool:
    """True if the target must check foreign keys for these events, because the source has checked them.

    `statements_bring_their_own`: True if the target executes statements, each of which sets foreign_key_checks itself.
    Otherwise, the result for a run with statements is False.
    """
    if (run.rows_events().flags & NO_FOREIGN_KEY_CHECKS).any():
        return False
    return statements_bring_their_own or not _holds_statements(run)


def mixes_foreign_key_checks(run: EventRun) -> bool:
    """True if some rows of the run need the target's foreign key actions, and others must be applied without them."""
    flags = run.rows_events().flags
    return bool((flags & NO_FOREIGN_KEY_CHECKS).any() and not (flags & WITHOUT_ACTIONS).all())


def _holds_statements(run: EventRun) -> bool:
    """True if the run has a QUERY event other than BEGIN, SAVEPOINT and similar: DDL, a statement, or XA COMMIT."""
    queries = (
        parse_query(run.event(int(n)), run.description).sql_bytes.decode("latin-1")
        for n in np.flatnonzero(run.types == EventType.QUERY)
    )
    words = (TRANSACTION_WORDS, ROLLBACK_TO, SAVEPOINT, _XA_ASIDE)
    return not all(any(pattern.match(sql.strip()) for pattern in words) for sql in queries)
