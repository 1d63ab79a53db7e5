"""VALUES of a partition are numbers before the session that wrote them is forgotten."""

from __future__ import annotations

from rplctl.schema.context import DdlContext
from rplctl.schema.partition import evaluate_values


def test_calls_are_evaluated_in_the_session_that_wrote_them() -> None:
    context = DdlContext(time_zone="+02:00")
    assert evaluate_values("LESS THAN (UNIX_TIMESTAMP('2026-01-01 02:00:00'))", context) == "LESS THAN (1767225600)"
    assert evaluate_values("LESS THAN (to_days('1970-01-01'))", context) == "LESS THAN (719528)"
    assert evaluate_values("LESS THAN (TO_SECONDS('1970-01-01 00:00:01'))", context) == "LESS THAN (62167219201)"
    assert evaluate_values("LESS THAN (YEAR('2024-05-01'))", context) == "LESS THAN (2024)"
    unknown = "LESS THAN (UNIX_TIMESTAMP('2026-01-01'))"
    assert evaluate_values(unknown, DdlContext(time_zone="SYSTEM")) == unknown
