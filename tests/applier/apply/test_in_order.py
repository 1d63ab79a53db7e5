"""Groups carried out event by event: recorded DDL, savepoints, XA, statements and cascades, in the source's order."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from rplctl.applier.apply import in_order
from rplctl.applier.apply.cascade_refresh import Cascade, cascade_of
from rplctl.applier.apply.foreign_key_checks import wants_foreign_keys
from rplctl.applier.apply.in_order import OrderedRange, ends_in_rollback
from rplctl.applier.apply.row_error import row_error
from rplctl.applier.feed.plan import plan_batches
from rplctl.command.check.skipped import check_skipped
from rplctl.decode.row_stream import EventRun, read_run, run_of
from rplctl.errors import RplError, TargetError
from rplctl.event.format_description import FormatDescription
from rplctl.event.rows import CASCADES_LOGGED, NO_FOREIGN_KEY_CHECKS
from rplctl.event.scan import GroupKind
from rplctl.event.types import EventType
from rplctl.history import read_history
from rplctl.own_tables import prepared as prepared_store
from rplctl.own_tables.models import mark_made_empty, tables_made_empty
from rplctl.own_tables.prepared import take_prepared
from rplctl.relay_log.reader import RelayGroups
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.skipped_objects import SkippedObjects
from rplctl.target.base import ChangeKind, RowChange
from tests.applier.apply.live_target import catalog_of, run_with, table_map
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.scenario import apply_in_order, numbers_of, scenario
from tests.event.logs import event
from tests.event.row_events import rows_event
from tests.kit.replica import new_log
from tests.kit.servers import MariadbServer


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Instance]:
    made = Instance(tmp_path)
    yield made
    made.target.close()


def tables(instance: Instance) -> set[str]:
    return {name for (name,) in instance.query("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_ddl_between_rows_is_carried_out_at_its_place(instance: Instance) -> None:
    groups = scenario("ddl")
    assert apply_in_order(instance, groups) == 7
    assert instance.query("SELECT id, price, name FROM ddl__goods ORDER BY id") == [
        (1, "1.50", "ONE"),
        (2, "1.50", "TWO"),
        (3, "2.25", "three"),
    ]
    assert tables(instance) >= {"ddl__goods", "ddl__emptied"} and not tables(instance) & {"ddl__items", "ddl__gone"}
    assert instance.query("SELECT * FROM ddl__emptied") == []
    assert instance.applier.info.exec_position == groups.scan.end_position


def test_models_follow_the_ddl_and_survive_a_restart_at_any_group(instance: Instance) -> None:
    groups = scenario("ddl")
    for number in range(len(groups.scan)):
        apply_in_order(instance, groups, number, number + 1)
        before = instance.applier.catalog
        instance.applier = instance.reopen()
        assert instance.applier.catalog == before
    assert set(before.tables) == {("ddl", "goods"), ("ddl", "emptied")}
    assert [column.name for column in before.tables["ddl", "goods"].columns] == ["id", "price", "name"]


def test_what_load_schema_made_empty_is_known_by_the_name_that_it_has_now(instance: Instance) -> None:
    groups = scenario("ddl")
    made = next(n for n in range(len(groups.scan)) if _knows(instance, groups, n, ("ddl", "items")))
    with instance.target.engine.begin() as connection:
        models = {("ddl", "items"): instance.applier.catalog.tables["ddl", "items"]}
        mark_made_empty(connection, "", groups.scan.source_position(made), models)
        assert tables_made_empty(connection, "") == [("ddl", "items")]
    apply_in_order(instance, groups, made + 1)
    with instance.target.engine.connect() as connection:
        assert tables_made_empty(connection, "") == [("ddl", "goods")]


def _knows(instance: Instance, groups: RelayGroups, number: int, name: tuple[str, str]) -> bool:
    apply_in_order(instance, groups, number, number + 1)
    return name in instance.applier.catalog.tables


def test_ordered_and_bulk_leave_the_same(tmp_path: Path) -> None:
    for name in ("ddl", "cascades", "savepoints"):
        bulk, ordered = Instance(tmp_path / f"{name}-bulk"), Instance(tmp_path / f"{name}-ordered")
        groups = scenario(name)
        bulk.apply(groups)
        apply_in_order(ordered, groups)
        for table in sorted(table for table in tables(bulk) if table.startswith(f"{name}__")):
            assert bulk.query(f"SELECT * FROM {table} ORDER BY 1") == ordered.query(f"SELECT * FROM {table} ORDER BY 1")
        assert bulk.applier.info == ordered.applier.info
        bulk.target.close()
        ordered.target.close()


def test_rows_after_a_savepoint_are_taken_back_by_rollback_to(instance: Instance) -> None:
    groups = scenario("savepoints")
    assert len(numbers_of(groups, GroupKind.ORDERED)) == 2
    apply_in_order(instance, groups)
    assert instance.query("SELECT * FROM savepoints__items ORDER BY id") == [
        (1, "kept"),
        (2, "instead"),
        (3, "three"),
        (4, "four"),
    ]
    assert instance.query("SELECT * FROM savepoints__journal") == [(1,)]  # MyISAM on the source: kept there too


@pytest.mark.parametrize("piece_bytes", [prepared_store.PIECE_BYTES, 33])
def test_prepared_rows_are_not_visible_before_xa_commit_and_wait_over_a_restart(
    instance: Instance, piece_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_store, "PIECE_BYTES", piece_bytes)
    groups = scenario("xa")
    prepared, _, end_dropped, end_kept = numbers_of(groups, GroupKind.XA)
    apply_in_order(instance, groups, 0, prepared + 1)
    assert instance.query("SELECT * FROM xa__items") == []
    apply_in_order(instance, groups, prepared + 1, end_dropped + 1)
    assert instance.query("SELECT * FROM xa__items") == [(2, "between")]
    instance.applier = instance.reopen()
    apply_in_order(instance, groups, end_dropped + 1, end_kept + 1)
    assert instance.query("SELECT * FROM xa__items ORDER BY id") == [(1, "prepared"), (2, "between")]
    apply_in_order(instance, groups, end_kept + 1)
    assert instance.query("SELECT id FROM xa__items ORDER BY id") == [(1,), (2,), (4,)]
    with instance.target.engine.connect() as connection:
        for name in ("kept", "dropped"):
            assert take_prepared(connection, "", f"X'{name.encode().hex()}',X'',1", None) is None


def test_xa_commit_of_what_was_prepared_before_the_channel_began_stops(instance: Instance) -> None:
    groups = scenario("xa")
    prepared, _, _, end_kept = numbers_of(groups, GroupKind.XA)
    apply_in_order(instance, groups, 0, prepared)
    with pytest.raises(RplError, match="XAER_NOTA: Unknown XID: XA COMMIT X'6b657074',X'6272616e6368',7") as caught:
        apply_in_order(instance, groups, end_kept, end_kept + 1)
    assert caught.value.errno == 1397 and "skip" in caught.value.hint
    assert instance.applier.info.exec_position == groups.scan.source_position(prepared - 1)


def test_a_statement_event_stops_with_1666_and_the_way_out(instance: Instance) -> None:
    groups = scenario("statements")
    (statement,) = numbers_of(groups, GroupKind.STATEMENT)
    with pytest.raises(RplError, match="a statement that the source logged instead of row events") as caught:
        apply_in_order(instance, groups)
    assert caught.value.errno == 1666
    assert "binlog_format=ROW" in caught.value.hint and "rplctl skip" in caught.value.hint
    assert caught.value.position.isdecimal()
    assert instance.query("SELECT name FROM statements__items") == [("a row",)]
    assert instance.applier.info.exec_position == groups.scan.source_position(statement - 1)


def test_a_skipped_statement_lets_the_rows_behind_it_through(instance: Instance) -> None:
    groups = scenario("statements")
    (statement,) = numbers_of(groups, GroupKind.STATEMENT)
    apply_in_order(instance, groups, 0, statement)
    apply_in_order(instance, groups, statement + 1)
    assert instance.query("SELECT name FROM statements__items") == [("a row",), ("after it",)]


def test_views_and_triggers_stop_the_channel_only_if_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    groups = scenario("unreplicated")
    stopping = Instance(tmp_path / "stop", on_unsupported_ddl="stop")
    with pytest.raises(RplError, match="cannot execute CREATE VIEW on a SQLite target: CREATE ") as caught:
        stopping.apply(groups)
    assert caught.value.errno == 1235
    assert caught.value.hint.endswith("run: rplctl init --on-unsupported-ddl skip_objects; rplctl start")
    assert caught.value.position.isdecimal() and not SkippedObjects(stopping.channel).read()
    stopping.target.close()
    skipping = Instance(tmp_path / "skip")
    skipping.apply(groups)
    assert skipping.query("SELECT * FROM unreplicated__items") == [(1, "ONE")]  # the trigger's work is in the row
    skipping.target.close()
    notes = [record.getMessage() for record in caplog.records if "skipped at" in record.getMessage()]
    assert len(notes) == 2 and "VIEW" in notes[0] and "TRIGGER" in notes[1]
    assert skipping.applier.passed_over == len(notes)  # of show-status
    skipping.target.close()


def test_a_cascade_runs_before_the_rows_that_came_after_it(instance: Instance) -> None:
    groups = scenario("cascades")
    apply_in_order(instance, groups)
    assert instance.query("SELECT * FROM cascades__parents ORDER BY id") == [(1,), (3,)]
    assert instance.query("SELECT * FROM cascades__children ORDER BY id") == [(10, 1), (20, 3), (99, 999)]


def test_foreign_keys_are_checked_as_the_source_did(instance: Instance) -> None:
    groups = scenario("cascades")
    unchecked = numbers_of(groups, GroupKind.ROWS)[-1]
    ddl = numbers_of(groups, GroupKind.QUERY)[0]

    def wanted(number: int) -> bool:
        begin, end = int(groups.scan.start[number]), int(groups.scan.end[number])
        assert groups.format_description is not None
        return wants_foreign_keys(read_run(groups.data, begin, end, groups.format_description))

    assert wanted(unchecked - 1)
    assert not wanted(unchecked)  # SET foreign_key_checks=0
    assert not wanted(ddl)  # tables may be rebuilt


def test_the_offender_is_named_as_mysql_does_and_its_whole_transaction_is_undone(instance: Instance) -> None:
    groups = scenario("savepoints")
    last = numbers_of(groups, GroupKind.ORDERED)[-1]
    apply_in_order(instance, groups, 0, last)
    instance.execute("INSERT INTO savepoints__items VALUES (4, 'in the way')")
    with pytest.raises(TargetError) as caught:
        apply_in_order(instance, groups, last, last + 1)
    assert caught.value.errno == 1062
    assert caught.value.message.startswith(
        "Could not execute Write_rows_v1 event on table savepoints.items; Duplicate entry '4' for key 'PRIMARY'"
    )
    assert "handler error HA_ERR_FOUND_DUPP_KEY; the event's end_log_pos " in caught.value.message
    assert caught.value.message.endswith(caught.value.position)
    assert instance.query("SELECT count(*) FROM savepoints__items WHERE id = 3") == [(0,)]
    assert instance.reopen().info.exec_position == groups.scan.source_position(last - 1)


@pytest.mark.parametrize(
    ("end", "said"), [(4711, "the event's end_log_pos 4711"), (0, "the event has no end_log_pos of its own")]
)
def test_an_event_without_an_end_is_not_said_to_be_compressed(end: int, said: str) -> None:
    """MariaDB from 11.4 on writes 0 within a transaction, as MySQL does within a compressed one."""
    header = struct.pack("<IBIIIH", 0, EventType.WRITE_ROWS_V1, 1, 19, end, 0)
    run = EventRun(
        data=np.frombuffer(header, np.uint8),
        starts=np.array([0]),
        lengths=np.array([19]),
        types=np.array([EventType.WRITE_ROWS_V1], np.uint8),
        description=cast(FormatDescription, None),
    )
    change = RowChange(kind=ChangeKind.INSERT, before=None, after=None)
    model = cast(TableModel, SimpleNamespace(qualified_name="shop.t"))
    error = row_error(TargetError("no such date", errno=1292), change, model, run, 0)
    assert error.message.endswith(said) and error.position == str(end or "")


def test_a_group_is_rolled_back_by_its_last_word() -> None:
    begin, rollback = (
        event(EventType.QUERY, bytes(13) + b"\0" + sql, checksum=False) for sql in (b"BEGIN", b"rollback ")
    )
    other = event(EventType.XID, bytes(8), checksum=False)
    description = FormatDescription(
        binlog_version=4, server_version="8.0.40", created=0, header_lengths=(), checksum_algorithm=0, is_mariadb=False
    )
    for events, expected in (([begin, rollback], True), ([rollback, other], False), ([begin], False), ([], False)):
        assert ends_in_rollback(run_of(events, description)) is expected


def test_a_bulk_batch_that_does_not_fit_is_gone_through_in_order(instance: Instance) -> None:
    groups = scenario("cascades")
    rows = numbers_of(groups, GroupKind.ROWS)
    batches = list(plan_batches(groups, len(groups.scan)))
    assert any(
        batch.first <= rows[0] and batch.last > rows[-1] for batch in batches
    )  # one bulk batch, refused (cascade)
    instance.apply(groups)
    assert instance.query("SELECT id FROM cascades__children ORDER BY id") == [(10,), (20,), (99,)]


ACCOUNTS = (
    "CREATE USER u@h IDENTIFIED BY 'Se-cret-1'",
    "ALTER USER u@h IDENTIFIED BY 'Se-cret-2'",
    "GRANT ALL ON *.* TO u@h",
    "REVOKE ALL PRIVILEGES, GRANT OPTION FROM u@h",
    "CREATE ROLE r",
    "GRANT r TO u@h",
    "SET DEFAULT ROLE r FOR u@h",
    "SET PASSWORD FOR u@h = PASSWORD('Se-cret-3')",
    "RENAME USER u@h TO v@h",
    "DROP ROLE r",
    "DROP USER v@h",
    "FLUSH PRIVILEGES",
)


@pytest.mark.mariadb
def test_users_and_grants_are_passed_over_with_a_note_and_without_their_passwords(
    mariadb: MariadbServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_log(mariadb)
    mariadb.sql("DROP DATABASE IF EXISTS accounts; CREATE DATABASE accounts; CREATE TABLE accounts.t (a INT)")
    for statement in ACCOUNTS:
        mariadb.sql(statement)
    mariadb.sql("INSERT INTO accounts.t VALUES (1)")
    groups = groups_of(mariadb.data / log)
    passing = Instance(tmp_path / "pass", groups)
    passing.apply(groups)
    assert passing.query("SELECT * FROM accounts__t") == [(1,)]
    passing.target.close()
    notes = [record.getMessage() for record in caplog.records if "skipped at" in record.getMessage()]
    assert len(notes) == passing.applier.passed_over == 9
    assert "Se-cret" not in caplog.text  # SET and FLUSH say nothing of tables anywhere
    stopping = Instance(tmp_path / "stop", groups, on_unsupported_ddl="stop_all")
    with pytest.raises(RplError, match="cannot execute CREATE USER on a SQLite target") as caught:
        stopping.apply(groups)
    assert caught.value.errno == 1235 and "Se-cret" not in caught.value.message
    assert "--on-unsupported-ddl stop;" in caught.value.hint
    stopping.target.close()


ORDINARY_SCHEMA = """
CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE log (a INT);
DROP TRIGGER IF EXISTS nothing; DROP PROCEDURE IF EXISTS nothing; DROP FUNCTION IF EXISTS nothing;
DROP VIEW IF EXISTS nothing; DROP EVENT IF EXISTS nothing;
CREATE TRIGGER `before` BEFORE INSERT ON t FOR EACH ROW SET NEW.b = NEW.a * 2;
CREATE OR REPLACE TRIGGER `before` BEFORE INSERT ON t FOR EACH ROW SET NEW.b = NEW.a * 3;
CREATE TRIGGER `after` AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a);
CREATE TRIGGER gone AFTER DELETE ON t FOR EACH ROW INSERT INTO log VALUES (-1); DROP TRIGGER gone;
CREATE FUNCTION twice(x INT) RETURNS INT DETERMINISTIC RETURN x * 2;
CREATE PROCEDURE fill() INSERT INTO t (a) VALUES (twice(2)), (twice(3));
ALTER PROCEDURE fill COMMENT 'it fills';
CREATE EVENT never ON SCHEDULE AT '2038-01-01' DO DELETE FROM t; ALTER EVENT never DISABLE;
CREATE VIEW v AS SELECT a FROM t; ALTER VIEW v AS SELECT b FROM t;
CALL fill()"""


@pytest.mark.mariadb
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("duckdb", marks=pytest.mark.long)])
def test_an_ordinary_schema_does_not_stop_the_channel(mariadb: MariadbServer, tmp_path: Path, kind: str) -> None:
    log = new_log(mariadb)
    mariadb.sql(f"DROP DATABASE IF EXISTS ordinary; CREATE DATABASE ordinary; USE ordinary;{ORDINARY_SCHEMA}")
    groups = groups_of(mariadb.data / log)
    instance = Instance(tmp_path, groups, target=f"{kind}:///{tmp_path}/ordinary.db")
    instance.apply(groups)
    table = "ordinary__t" if kind == "sqlite" else "ordinary.t"
    assert instance.query(f"SELECT a, b FROM {table} ORDER BY a") == [(4, 12), (6, 18)]
    skipped = SkippedObjects(instance.channel)
    lines = [event for event in read_history(tmp_path) if event.Event == "not-carried-out"]
    assert len(lines) == 8 and all(line.Position.isdecimal() for line in lines)  # also that `gone` came and went
    (note,) = check_skipped(instance.channel)
    assert note.text == "not carried out: 2 triggers, 1 event, 1 function, 1 procedure, 1 view" and note.level == 0
    dropping = new_log(mariadb)
    mariadb.sql("DROP DATABASE ordinary")
    instance.apply(groups_of(mariadb.data / dropping))
    assert not skipped.read() and not list(check_skipped(instance.channel))
    instance.target.close()


@pytest.mark.parametrize(
    ("kind", "flags", "is_followed"),
    [
        (31, 1, True),
        (32, 1, True),
        (30, 1, False),
        (31, 1 | NO_FOREIGN_KEY_CHECKS, False),
        (31, CASCADES_LOGGED, False),
    ],
)
def test_cascades_are_followed_unless_the_log_has_them(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, kind: int, flags: int, is_followed: bool
) -> None:
    parent = "CREATE TABLE parent (a INT PRIMARY KEY)"
    child = "CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (a) ON UPDATE CASCADE)"
    catalog = catalog_of(parent, child)
    images = 2 if kind == 31 else 1
    raw = rows_event(kind, 1, b"\x01" * images, (b"\x00" + bytes(4)) * images)
    raw = raw[:25] + flags.to_bytes(2, "little") + raw[27:]
    looked: list[str] = []

    def noted(catalog: Catalog, model: TableModel, **how: bool) -> Cascade | None:
        looked.append(model.name)
        return cascade_of(catalog, model, **how)

    monkeypatch.setattr(in_order, "cascade_of", noted)
    instance.execute("CREATE TABLE d__parent (a INTEGER PRIMARY KEY)")
    instance.execute("INSERT INTO d__parent VALUES (0)")
    ordered = OrderedRange(instance.target, catalog, "", config=instance.config)
    with suppress(TargetError):  # what the rows are does not matter here
        ordered.apply(run_with(table_map("parent", b"\x03", b""), raw))
    assert looked == ["parent"] * is_followed
