from __future__ import annotations

import pytest

from rplctl.applier.apply.table_groups import ConflictingGroups, TableGroups
from rplctl.target.base import RowSet, TableChunk
from tests.applier.apply.live_target import catalog_of

PLAIN = tuple(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in "abcd")
CHILD = (
    "CREATE TABLE e (id INT PRIMARY KEY, a INT, b INT, FOREIGN KEY (a) REFERENCES a (id),"
    " FOREIGN KEY (b) REFERENCES b (id))"
)


def chunk(table: str, count: int) -> TableChunk:
    rows = [RowSet((0,), [(n,) for n in range(count)])]
    return TableChunk(
        database="d",
        table=table,
        absent=[],
        deletes=[],
        updates=[],
        inserts=rows,
        ordered=[],
        change_count=count,
        foreign_keys_off=False,
    )


def shares(groups: TableGroups, catalog: object, *chunks: TableChunk) -> dict[int, str]:
    split = groups.split(chunks, catalog)  # type: ignore[arg-type]
    return {branch: "".join(chunk.table for chunk in share) for branch, share in sorted(split.items())}


def test_the_largest_table_has_a_branch_and_a_table_keeps_its_own_for_the_batch() -> None:
    groups, catalog = TableGroups(2), catalog_of(*PLAIN)
    groups.begin(catalog)
    before = groups.are_shared
    assert shares(groups, catalog, chunk("a", 1), chunk("b", 5), chunk("c", 3)) == {0: "b", 1: "ac"}
    assert (before, groups.are_shared) == (False, True)
    assert shares(groups, catalog, chunk("b", 9), chunk("d", 1), chunk("a", 2)) == {0: "b", 1: "da"}


def test_tables_that_a_foreign_key_joins_are_one_group_though_a_third_one_has_it() -> None:
    groups, catalog = TableGroups(2), catalog_of(*PLAIN, CHILD)
    groups.begin(catalog)
    assert not groups.are_several([chunk("a", 9), chunk("b", 9), chunk("e", 9)], 1)
    assert groups.are_several([chunk("a", 9), chunk("b", 9), chunk("c", 9)], 9)
    assert not groups.are_several([chunk("a", 9), chunk("b", 9), chunk("c", 9)], 10)
    assert shares(groups, catalog, chunk("a", 1), chunk("c", 1), chunk("b", 1)) == {0: "ab", 1: "c"}


def test_what_got_in_each_others_way_is_one_group_whatever_the_catalog_says_later() -> None:
    groups = TableGroups(2)
    groups.begin(catalog := catalog_of(*PLAIN))
    shares(groups, catalog, chunk("a", 1), chunk("b", 1))
    assert groups.join_changed() == [("d", "a"), ("d", "b")]
    for later in (catalog, catalog_of(*PLAIN)):
        groups.begin(later)
        assert not groups.are_several([chunk("a", 1), chunk("b", 1)], 1)
        assert groups.are_several([chunk("a", 1), chunk("c", 1)], 1)


def test_a_table_that_comes_later_and_joins_two_branches_ends_the_attempt() -> None:
    groups = TableGroups(2)
    groups.begin(catalog := catalog_of(*PLAIN))
    shares(groups, catalog, chunk("a", 1), chunk("b", 1))
    with pytest.raises(ConflictingGroups):
        groups.split([chunk("e", 1)], later := catalog_of(*PLAIN, CHILD))
    groups.begin(later)
    assert not groups.are_several([chunk("a", 1), chunk("b", 1), chunk("e", 1)], 1)


def test_a_later_catalog_lets_tables_go_whose_foreign_key_is_gone_and_disturbs_no_others() -> None:
    groups = TableGroups(2)
    groups.begin(joined := catalog_of(*PLAIN, CHILD))
    assert shares(groups, joined, chunk("a", 1), chunk("b", 1)) == {0: "ab"}
    groups.begin(plain := catalog_of(*PLAIN))
    assert shares(groups, plain, chunk("a", 2), chunk("b", 1)) == {0: "a", 1: "b"}
    more = catalog_of(*PLAIN, "CREATE TABLE f (id INT PRIMARY KEY)")
    assert shares(groups, more, chunk("f", 1), chunk("b", 1), chunk("a", 1)) == {0: "a", 1: "fb"}
