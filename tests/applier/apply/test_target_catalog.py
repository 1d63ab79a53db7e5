"""Models read from the target: once, as long as no statement may have changed the table."""

from __future__ import annotations

from typing import Any

import pytest

from rplctl.applier.apply.target_catalog import LiveCatalog
from rplctl.schema.context import DdlContext
from tests.applier.apply.live_target import LiveTarget

CONTEXT = DdlContext(server_version="8.0.40")
T, CHILD, U, OTHER = ("d", "t"), ("d", "child"), ("d", "u"), ("d", "other")


def known() -> tuple[Any, LiveCatalog]:
    target = LiveTarget(
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "CREATE TABLE u (a INT PRIMARY KEY)",
        "CREATE TABLE other (a INT PRIMARY KEY)",
        "CREATE TABLE child (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES t (a))",
    )
    catalog = LiveCatalog(target)  # type: ignore[arg-type]
    assert catalog.load([T, CHILD, U, OTHER])
    return target, catalog


def test_a_table_is_read_once_and_the_catalog_is_another_only_when_one_came() -> None:
    target, live = known()
    before, target.asked = live.catalog, []
    assert not live.load([T]) and live.catalog is before and target.asked == []
    assert not live.load([("d", "none")]) and live.catalog is before and target.asked == [("d", "none")]
    assert set(before.tables) == {T, CHILD, U, OTHER}


@pytest.mark.parametrize(
    ("sql", "gone"),
    [
        ("ALTER TABLE t ADD b INT", {T, CHILD}),
        ("CREATE TABLE t (a INT)", {T, CHILD}),
        ("CREATE TABLE u LIKE t", {U}),
        ("TRUNCATE TABLE u", {U}),
        ("DROP TABLE u, other", {U, OTHER}),
        ("RENAME TABLE u TO other", {U, OTHER}),
        ("ALTER TABLE u RENAME TO other", {U, OTHER}),
        ("DROP DATABASE d", {T, CHILD, U, OTHER}),
        ("ALTER DATABASE d CHARACTER SET latin1", {T, CHILD, U, OTHER}),
        ("CREATE DATABASE e", set()),
        ("CREATE VIEW v AS SELECT 1", set()),
        ("ANALYZE TABLE t", set()),
        ("nobody understands this", {T, CHILD, U, OTHER}),
    ],
)
def test_a_statement_makes_forget_what_it_may_have_changed_and_what_points_at_it(
    sql: str, gone: set[tuple[str, str]]
) -> None:
    target, live = known()
    before, target.asked = live.catalog, []
    live.forget(sql, "d", CONTEXT)
    assert set(live.catalog.tables) == {T, CHILD, U, OTHER} - gone
    assert (live.catalog is before) == (not gone)
    live.load([])  # read again with the next tables, without being named
    assert set(live.catalog.tables) == {T, CHILD, U, OTHER} and {*target.asked} >= gone
    target.asked = []
    assert not live.load([]) and target.asked == []


def test_a_statement_says_where_it_took_whole_tables() -> None:
    _, live = known()
    assert live.forget("RENAME TABLE u TO v", "d", CONTEXT) == [(U, ("d", "v"))]
    assert live.forget("nobody understands this", "d", CONTEXT) == []


def test_what_it_forgot_is_not_found_unless_it_was_asked_for() -> None:
    _, live = known()
    live.remade({U})
    assert not live.load([("d", "none")])
    live.remade({U})
    assert live.load([U])


def test_a_table_that_is_gone_is_asked_for_once() -> None:
    target, live = known()
    live.forget("DROP TABLE u", "d", CONTEXT)
    del target.tables[U]
    target.asked = []
    for _ in range(2):
        assert not live.load([T])
    assert target.asked == [U]
