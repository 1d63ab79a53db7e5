"""Filters on recorded events: the same in bulk, in order and one by one; what is left out is not looked into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.decode.event_filter import filtered
from rplctl.decode.filter_rules import ReplicationFilter
from rplctl.decode.row_stream import EventRun, read_run
from rplctl.errors import BinlogFormatError, RplError
from rplctl.event.events import parse_query
from rplctl.event.table_map import parse_table_map
from rplctl.event.types import EventType
from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import demo_groups
from tests.applier.instance import Instance
from tests.applier.scenario import apply_in_order, scenario

FILTERS = scenario("filters")
QUIET: dict[str, Any] = {"on_unsupported_ddl": "skip"}


def run_of(groups: RelayGroups) -> EventRun:
    assert groups.format_description is not None
    return read_run(groups.data, int(groups.scan.start[0]), int(groups.scan.end[-1]), groups.format_description)


def tables_of(run: EventRun) -> list[tuple[str, str]]:
    """The tables of the rows events, each through the table map in force."""
    named, found = {}, []
    for number, code in enumerate(run.types):
        event = run.event(number)
        if code == EventType.TABLE_MAP:
            table_map = parse_table_map(event, run.description)
            named[table_map.table_id] = (table_map.database, table_map.table)
        elif 23 <= code <= 25 or 30 <= code <= 32:
            found.append(named[int.from_bytes(event[19:25], "little")])
    return found


def statements_of(run: EventRun) -> list[tuple[str, str]]:
    queries = (parse_query(run.event(int(n)), run.description) for n in np.flatnonzero(run.types == EventType.QUERY))
    return [(query.database, query.sql.split(" /*")[0]) for query in queries]


@pytest.fixture(params=["bulk", "in order"])
def apply(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """`apply(**options)` → an instance that went through the recorded scenario."""
    made: list[Instance] = []

    def run(**options: Any) -> Instance:
        instance = Instance(tmp_path / str(len(made)), **options)
        made.append(instance)
        instance.apply(FILTERS) if request.param == "bulk" else apply_in_order(instance, FILTERS)
        assert instance.applier.info.exec_position == FILTERS.scan.end_position
        return instance

    yield run
    for instance in made:
        instance.target.close()


def tables(instance: Instance) -> list[str]:
    names = instance.query("SELECT name FROM sqlite_master WHERE type='table' AND name LIKE '%\\_\\_%' ESCAPE '\\'")
    return sorted(name for (name,) in names)


def test_without_rules_a_run_stays_what_it_is() -> None:
    run = run_of(FILTERS)
    assert filtered(run, ReplicationFilter()) is run
    assert filtered(run, ReplicationFilter(ignore_db=("nobody",))) is run


def test_rows_go_with_their_table_map_and_transaction_words_stay() -> None:
    run = run_of(FILTERS)
    assert set(tables_of(run)) == {("filters", "items"), ("filters", "skipped"), ("other", "items")}
    left = filtered(run, ReplicationFilter(do_db=("other",)))
    assert tables_of(left) == [("other", "items")]
    assert left.data is run.data  # nothing was copied
    assert {sql for _, sql in statements_of(left)} >= {"COMMIT"} or EventType.XID in left.types
    assert all(database == "other" for database, sql in statements_of(left) if sql.startswith(("CREATE", "INSERT")))


def test_variables_leave_with_their_statement() -> None:
    run = run_of(FILTERS)
    assert EventType.USER_VAR in run.types
    assert EventType.USER_VAR not in filtered(run, ReplicationFilter(ignore_db=("other",))).types
    assert EventType.USER_VAR not in filtered(run, ReplicationFilter(ignore_table=("other.items",))).types
    assert EventType.USER_VAR in filtered(run, ReplicationFilter(ignore_db=("filters",))).types


def test_a_rewrite_names_the_database_anew_in_table_maps_and_as_the_current_one() -> None:
    run = run_of(FILTERS)
    left = filtered(run, ReplicationFilter(rewrite_db=(("filters", "a much longer name than before"),)))
    assert len(left.types) == len(run.types) and not left.description.checksum_length
    assert set(tables_of(left)) == {
        ("a much longer name than before", "items"),
        ("a much longer name than before", "skipped"),
        ("other", "items"),
    }
    renamed = [(name, sql) for name, sql in statements_of(left) if name.startswith("a much")]
    assert [sql for _, sql in renamed] == [sql for name, sql in statements_of(run) if name == "filters"]
    positions = [int.from_bytes(left.event(n)[13:17], "little") for n in range(len(left.types))]
    assert positions == [int.from_bytes(run.event(n)[13:17], "little") for n in range(len(run.types))]


def test_a_table_id_that_came_to_mean_another_table_is_noticed() -> None:
    run = run_of(FILTERS)
    maps = np.flatnonzero(run.types == EventType.TABLE_MAP)
    rows = np.flatnonzero(np.isin(run.types, (23, 24, 25)))
    data = run.data.copy()
    for number in (*maps, *rows):  # as after a restart of the source: all of them table 18
        data[int(run.starts[number]) + 19 : int(run.starts[number]) + 25] = (18, 0, 0, 0, 0, 0)
    one_id = replace(run, data=data)
    for left_out in ("filters.items", "filters.skipped", "other.items"):
        expected = [name for name in tables_of(run) if ".".join(name) != left_out]
        assert tables_of(filtered(one_id, ReplicationFilter(ignore_table=(left_out,)))) == expected


def test_a_table_map_without_room_for_its_names_stops() -> None:
    run = run_of(FILTERS)
    number = int(np.flatnonzero(run.types == EventType.TABLE_MAP)[0])
    data = run.data.copy()
    data[int(run.starts[number]) + 27] = 255
    with pytest.raises(BinlogFormatError, match="names of a TABLE_MAP exceed"):
        filtered(replace(run, data=data), ReplicationFilter(do_db=("other",)))


def test_by_database_statements_count_where_they_were_written(tmp_path: Path) -> None:
    instance = Instance(tmp_path, replicate_do_db="filters", replica_ddl_exec_mode="STRICT")
    with pytest.raises(RplError, match="Unknown table 'filters.across'"):  # its CREATE was written in `other`
        instance.apply(FILTERS)
    assert tables(instance) == ["filters__items", "filters__skipped", "other__items"]
    assert instance.query("SELECT * FROM other__items") == []  # its rows are of another database
    assert len(instance.query("SELECT * FROM filters__skipped")) == 2
    instance.target.close()


def test_what_is_left_out_needs_no_model_and_is_not_understood(apply: Any) -> None:
    done = apply(replicate_ignore_db="other", replicate_wild_ignore_table="%.skipped,%.across,other.%")
    assert tables(done) == ["filters__items"]
    assert done.query("SELECT * FROM filters__items ORDER BY id") == [(1, "uno"), (2, "two")]
    assert ("filters", "skipped") not in done.applier.catalog.tables


def test_of_several_tables_in_one_drop_only_the_accepted_ones_go(apply: Any, caplog: pytest.LogCaptureFixture) -> None:
    done = apply(replicate_do_table="filters.across,filters.items", **QUIET)
    assert "Table 'filters.skipped' is not changed because of the replicate-*-table rules" in caplog.text
    assert tables(done) == ["filters__items"]


def test_tables_arrive_under_the_new_database(apply: Any) -> None:
    done = apply(replicate_rewrite_db="filters->shop", replicate_ignore_db="other", **QUIET)
    assert done.query("SELECT * FROM shop__items ORDER BY id") == [(1, "uno"), (2, "two")]
    assert "filters__items" not in tables(done)


def test_the_demo_shop_without_a_table_is_the_rest_of_it(tmp_path: Path) -> None:
    instance = Instance(tmp_path, replicate_ignore_table="copy.order_items", replicate_rewrite_db="shop->copy")
    for name in ("binlog.000001", "binlog.000002", "binlog.000003"):
        instance.apply(demo_groups(name))
    assert tables(instance) == ["copy__customers", "copy__orders", "copy__products"]
    instance.target.close()
