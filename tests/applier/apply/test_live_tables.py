"""Statements of the source, and which rows only the server itself can apply."""

from __future__ import annotations

from typing import Any

import pytest

from rplctl.applier.apply.live_tables import COMMIT_WAS_HERE, LiveTables, NotTransactional
from rplctl.applier.apply.tolerance import Tolerance
from rplctl.applier.spark.pipeline import UnknownTables
from rplctl.decode.net_changes import Inconsistent
from rplctl.errors import BinlogFormatError, TargetError
from rplctl.event.events import Intvar, parse_query
from rplctl.event.types import EventType
from tests.applier.apply.live_target import MYSQL, LiveTarget, names, run_with, table_map
from tests.event.logs import event, query
from tests.event.row_events import rows_event

T, U = ("d", "t"), ("d", "u")
TABLES = ("CREATE TABLE t (a INT NOT NULL PRIMARY KEY)", "CREATE TABLE u (a INT)")
MAP, MAP_U = table_map("t", b"\x03", b""), table_map("u", b"\x03", b"", table_id=8)
INTVAR = event(EventType.INTVAR, b"\x02" + (7).to_bytes(8, "little"))
XID = event(EventType.XID, bytes(8))


def rows(code: int = 30, flags: int = 1) -> bytes:
    images = 2 if code == 31 else 1
    raw = rows_event(code, 1, b"\x01" * images, (b"\x00" + bytes(4)) * images)
    return raw[:25] + bytes([flags]) + raw[26:]


def live(tolerance: Tolerance | None = None) -> tuple[Any, LiveTables]:
    target = LiveTarget(*TABLES)
    return target, LiveTables(target, tolerance or Tolerance())  # type: ignore[arg-type]


def test_variables_go_with_the_next_statement_alone_and_not_into_another_group() -> None:
    target, tables = live()
    assert tables.take(INTVAR, MYSQL) == 0
    for _ in range(2):
        tables.run(parse_query(query("INSERT INTO t VALUES (1)"), MYSQL), MYSQL)
    tables.take(INTVAR, MYSQL)
    tables.begin_group(run_with(XID))
    tables.run(parse_query(query("INSERT INTO t VALUES (2)"), MYSQL), MYSQL)
    assert [statement.variables for statement in target.statements] == [(Intvar(2, 7),), (), ()]
    assert target.said == []


def test_the_file_of_a_load_is_that_of_its_number() -> None:
    target, tables = live()
    for number, data in ((1, b"old"), (1, b"a"), (2, b"x")):
        assert tables.take(event(EventType.BEGIN_LOAD_QUERY, number.to_bytes(4, "little") + data), MYSQL) == 0
    tables.take(event(EventType.APPEND_BLOCK, (1).to_bytes(4, "little") + b"b"), MYSQL)
    head = (
        bytes(8) + b"\x01" + bytes(4) + (1).to_bytes(4, "little") + bytes(9) + b"d\0LOAD DATA INFILE 'f' INTO TABLE t"
    )
    load = event(EventType.EXECUTE_LOAD_QUERY, head)
    assert tables.take(load, MYSQL) == 1
    assert target.statements[0].file == (b"a", b"b")
    with pytest.raises(BinlogFormatError, match="file 1"):
        tables.take(load, MYSQL)
    tables.take(event(EventType.DELETE_FILE, (2).to_bytes(4, "little")), MYSQL)
    with pytest.raises(BinlogFormatError, match="file 2"):
        tables.take(event(EventType.APPEND_BLOCK, (2).to_bytes(4, "little") + b"b"), MYSQL)


def test_files_of_a_group_that_was_given_up_are_forgotten() -> None:
    _, tables = live()
    tables.take(event(EventType.BEGIN_LOAD_QUERY, (1).to_bytes(4, "little") + b"a"), MYSQL)
    tables.begin_group(run_with(XID))
    with pytest.raises(BinlogFormatError, match="file 1"):
        tables.take(event(EventType.APPEND_BLOCK, (1).to_bytes(4, "little") + b"b"), MYSQL)


def test_only_what_may_be_rolled_back_costs_a_savepoint() -> None:
    target, tables = live()
    tables.begin_group(run_with(query("BEGIN"), query("INSERT INTO t VALUES (1)"), XID))
    assert target.said == []
    tables.begin_group(run_with(query("BEGIN"), query("rollback")))
    tables.begin_group(run_with(query("XA START X'31',X'',1")))
    assert target.said == [f"SAVEPOINT {COMMIT_WAS_HERE}"] * 2
    tables.roll_back()
    assert target.said[-1] == f"ROLLBACK TO {COMMIT_WAS_HERE}"


def test_statements_say_where_they_took_tables_once() -> None:
    _, tables = live()
    tables.know([T, U])
    tables.run(parse_query(query("RENAME TABLE u TO v"), MYSQL), MYSQL)
    tables.run(parse_query(query("DROP TABLE t"), MYSQL), MYSQL)
    assert tables.take_moves() == [(U, ("d", "v")), (T, None)] and tables.take_moves() == []
    tables.run(parse_query(query("DROP TABLE t"), MYSQL), MYSQL)
    tables.begin_group(run_with(XID))
    assert tables.take_moves() == []


@pytest.mark.parametrize(("ignored", "drops"), [(frozenset(), False), (frozenset({1051}), True), (None, True)])
def test_a_list_of_tables_is_dropped_as_the_operator_tolerates(ignored: frozenset[int] | None, drops: bool) -> None:
    target, tables = live(Tolerance(ignored=ignored))
    tables.run(parse_query(query("DROP TABLE t"), MYSQL), MYSQL)
    assert target.statements[0].drops_missing is drops


def test_tables_without_transactions_neither_share_one_nor_go_in_bulk() -> None:
    target, tables = live()
    both = run_with(MAP, rows(), MAP_U, rows(), XID)
    models = list(tables.introduce(both).tables.values())
    tables.check_bulk(models)
    assert tables.can_share(both) and tables.can_roll_back(both)
    assert not tables.position_follows(both, in_xa=True) and tables.position_follows(both, in_xa=False)
    assert tables.position_follows(run_with(MAP, rows()), in_xa=True)  # no XID: a ROLLBACK keeps what MyISAM keeps
    target.without_transactions = {"u"}
    assert not tables.can_share(both) and tables.position_follows(both, in_xa=True)
    with pytest.raises(NotTransactional):
        tables.check_bulk(models)


def test_a_table_that_is_not_there_keeps_nothing() -> None:
    target, tables = live()
    target.without_transactions = {"none"}
    assert tables.can_roll_back(run_with(table_map("none", b"\x03", b""), rows()))


@pytest.mark.parametrize(("kind", "why"), [("parents", "cascade"), ("replayed", "triggers")])
def test_rows_whose_order_counts_do_not_go_in_bulk(kind: str, why: str) -> None:
    target, tables = live()
    models = list(tables.know([T, U]).tables.values())
    setattr(target, kind, frozenset({U}) if kind == "parents" else {"u"})
    with pytest.raises(Inconsistent, match=why):
        tables.check_bulk(models)


def test_what_can_be_applied_twice_has_a_key_whole_images_and_nothing_of_its_own() -> None:
    target, tables = live()
    target.without_transactions = {"t", "u"}
    tables.know([T, U])
    assert tables.can_repeat(run_with(MAP, rows()))
    assert not tables.can_repeat(run_with(MAP_U, rows()[:19] + b"\x08" + rows()[20:]))  # no key
    for kind in ("replayed", "preferred"):
        setattr(target, kind, {"t"})
        assert not tables.can_repeat(run_with(MAP, rows()))
        setattr(target, kind, set())
    target.without_transactions = {"u"}
    assert not tables.can_repeat(run_with(MAP, rows()))  # a ROLLBACK takes it back


def test_a_group_is_introduced_only_where_the_server_may_have_to_apply_its_rows() -> None:
    target, tables = live()
    tables.introduce(run_with(MAP, rows()))
    assert target.said == []
    target.preferred = {"t"}
    tables.introduce(run_with(MAP_U))
    assert target.said == []
    tables.introduce(run_with(MAP, rows()))
    target.replayed, target.preferred = {"t"}, set()
    tables.introduce(run_with(MAP, rows()))
    assert target.said == ["introduced", "introduced"]


@pytest.mark.parametrize("flags", [1, 3])
def test_rows_are_checked_as_their_event_says_and_replayed_where_only_that_is_right(flags: int) -> None:
    target, tables = live()
    catalog = tables.know([T])
    piece = run_with(MAP, rows(flags=flags))
    assert not tables.replay(piece, catalog) and target.said == [flags == 1]
    target.said.clear()
    target.replayed = {"t"}
    assert tables.replay(piece, catalog) and target.said == [flags == 1, rows(flags=flags)]
    assert not tables.replay(run_with(table_map("none", b"\x03", b""), rows()), catalog)


def test_prepared_rows_do_not_look_for_parents_that_may_be_gone() -> None:
    target, tables = live()
    target.replayed, catalog = {"t"}, tables.know([T])
    with tables.prepared():
        assert tables.replay(run_with(MAP, rows()), catalog)
        assert target.said == [False, rows(flags=3)]
        target.said.clear()
        tables.replay(run_with(MAP, rows(32)), catalog)  # a DELETE: a foreign key may act on others
        assert target.said == [True, rows(32)]
        target.said.clear()
        tables.replay(run_with(MAP, rows(31)), catalog)
        assert target.said[:1] == [False]
        target.parents = frozenset({T})
        target.said.clear()
        tables.replay(run_with(MAP, rows(31)), catalog)
        assert target.said[:1] == [True]
    target.said.clear()
    tables.replay(run_with(MAP, rows()), catalog)
    assert target.said[:1] == [True]


def test_text_that_no_statement_can_store_is_left_to_the_server_from_then_on() -> None:
    target, tables = live()
    run, error = run_with(MAP, rows()), TargetError("x", errno=1366)
    catalog = tables.introduce(run)
    assert not tables.replay_from_now(TargetError("x", errno=1062), run, 0)
    target.without_transactions = {"t"}
    assert not tables.replay_from_now(error, run, 1)  # some of it stays as it is
    assert not tables.replay(run, catalog)
    assert tables.replay_from_now(error, run, 0)
    assert tables.replay(run, catalog)
    assert not tables.replay_from_now(error, run, 0)  # it was tried
    assert names(target.said) == []


def test_it_is_the_source_of_its_own_catalog() -> None:
    target, tables = live()
    assert tables.statements is tables and list(tables.cascading_parents()) == []
    assert set(tables.find(UnknownTables([T])).tables) == {T}
    before = tables.catalog
    tables.committed(before)
    tables.remade([T])
    assert set(tables.catalog.tables) == set() and target.asked == [T]
