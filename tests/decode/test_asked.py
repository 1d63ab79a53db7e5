"""What is asked for holds all that a filter on the names would keep."""

from __future__ import annotations

import itertools

import pytest

from rplctl.decode.asked import Asked

NAMES = [*itertools.product(("shop", "hr"), ("t", "u"))]
ASKED = [
    Asked(databases=frozenset(d), names=frozenset(n))
    for d in ([], ["shop"], ["shop", "hr"])
    for n in ([], ["t"], ["t", "u"])
]


@pytest.mark.parametrize("asked", ASKED)
def test_a_table_is_asked_for_by_both_of_its_names(asked: Asked) -> None:
    for database, table in NAMES:
        kept = (not asked.databases or database in asked.databases) and (not asked.names or table in asked.names)
        assert ((database, table) in asked) == kept
        assert asked.concerns([(database, table)], "elsewhere") == kept  # it is of the table's database alone


@pytest.mark.parametrize("asked", ASKED)
def test_a_statement_without_one_table_is_of_the_database_that_it_ran_in(asked: Asked) -> None:
    for database in ("shop", "hr"):
        assert asked.concerns([], database) == (not asked.names and asked.has_of(database))
        assert Asked(databases=asked.databases, names=frozenset([""])).concerns([], database) == asked.has_of(database)
    assert Asked(databases=frozenset(["shop"])).concerns([("hr", "t"), ("hr", "u")], "shop")
    assert not Asked(databases=frozenset(["shop"])).concerns([("hr", "t"), ("hr", "u")], "hr")
    assert Asked.table(("shop", "t")).concerns([("shop", "t"), ("shop", "u")], "hr")


def test_of_no_table_and_no_time_is_of_all() -> None:
    assert Asked.table(None) == Asked() and Asked().all_tables and Asked().any_time
    assert not Asked(until=5).any_time and not Asked(since=5).any_time and Asked(since=5).all_tables
