"""One body for every kind of target: what `target.base.Target` promises, run against each."""

from __future__ import annotations

import gc
import random
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

import pytest
from sqlalchemy.exc import SQLAlchemyError

from rplctl.errors import TargetError
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.row_key import key_of
from rplctl.target import dialect_of, mapped_errors, open_engine, open_target, statement_target
from rplctl.target.base import (
    ChangeKind,
    CountMismatch,
    KeylessMismatch,
    Row,
    RowChange,
    RowSet,
    TableChunk,
    Target,
)
from rplctl.target.column_rows import ColumnRows
from rplctl.target.registry import KINDS, TargetKind, is_local_file, value_form
from tests.kit.servers import MariadbServer, PostgresqlServer
from tests.target.encoded import in_bulk

LONG = pytest.mark.long(
    "The other kinds hold the promise; those of MySQL, and DuckDB in bulk, repeat it.",
    keeps=r"^(?!.*(mysql|duckdb-bulk-framed))",
)

KEYED = "CREATE TABLE t (id INT PRIMARY KEY, code VARCHAR(20) UNIQUE, note TEXT)"
IN_BULK: WeakKeyDictionary[Target, bool] = WeakKeyDictionary()
FRAMED: WeakKeyDictionary[Target, bool] = WeakKeyDictionary()


@pytest.fixture(
    params=[
        "sqlite",
        "duckdb",
        "duckdb-bulk-framed",
        "toy",
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("mariadb-bulk", marks=pytest.mark.mariadb),
        pytest.param("mariadb-bulk-framed", marks=pytest.mark.mariadb),
        pytest.param("mysql", marks=[pytest.mark.mysql, pytest.mark.slow]),
        pytest.param("mysql-bulk", marks=[pytest.mark.mysql, pytest.mark.slow]),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
        pytest.param("postgresql-bulk", marks=pytest.mark.postgresql),
    ]
)
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Target]:
    monkeypatch.setitem(KINDS, "toy", TargetKind(folder="tests.target.toy", is_file=True))
    if is_local_file(kind := request.param.partition("-")[0]):
        opened = open_target(f"{kind}:///{tmp_path / 'target.db'}")
    elif request.param.startswith("postgresql"):
        postgresql: PostgresqlServer = request.getfixturevalue("postgresql")
        postgresql.sql("DROP SCHEMA IF EXISTS shop CASCADE")
        opened = open_target(postgresql.url())
    else:
        server: MariadbServer = request.getfixturevalue(kind)
        server.sql(
            "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop CHARACTER SET utf8mb4;"
            " CREATE DATABASE IF NOT EXISTS rplctl"
        )
        opened = open_target(server.url())
    IN_BULK[opened] = "bulk" in request.param
    FRAMED[opened] = "framed" in request.param
    yield opened
    opened.rollback()
    opened.close()


def make(target: Target, sql: str) -> TableModel:
    if (server := statement_target(target)) is not None:
        target.begin(foreign_keys=True)
        target.connection.exec_driver_sql(sql.replace("TABLE ", "TABLE shop."))
        target.commit()
        model = server.table_model("shop", "t")
        assert model is not None
        return model
    empty = Catalog()
    plan = plan_ddl(sql, "shop", DdlContext(), empty)
    target.begin(foreign_keys=True)
    target.execute_ddl(plan, empty)
    target.commit()
    return empty.after(plan).tables["shop", "t"]


def chunk(model: TableModel, **parts: object) -> TableChunk:
    fields: dict[str, object] = {"absent": [], "deletes": [], "updates": [], "inserts": [], "ordered": []} | parts
    return TableChunk(database=model.database, table=model.name, change_count=1, foreign_keys_off=False, **fields)  # type: ignore[arg-type]


def apply(target: Target, model: TableModel, *chunks: TableChunk) -> None:
    target.begin(foreign_keys=True)
    given = [in_bulk(c, model, target.kind, length_prefixed=FRAMED[target]) if IN_BULK[target] else c for c in chunks]
    try:
        target.apply_chunks(given, {(model.database, model.name): model})
    except BaseException:
        target.rollback()
        raise
    target.commit()


def name_of(target: Target) -> str:
    return '"shop__t"' if dialect_of(target.kind).is_one_file else "shop.t"


def rows(target: Target) -> list[tuple[object, ...]]:
    result = target.connection.exec_driver_sql(f"SELECT * FROM {name_of(target)} ORDER BY 1, 2")
    found = [tuple(row) for row in result]
    target.rollback()
    return found


ALL = (0, 1, 2)


@LONG
def test_net_changes_are_inserted_updated_and_deleted(target: Target) -> None:
    model = make(target, KEYED)
    apply(target, model, chunk(model, inserts=[RowSet(ALL, [(1, "a", "x"), (2, "b", None), (3, "c", "z")])]))
    apply(target, model, chunk(model, deletes=[(3,)], updates=[RowSet((1, 2), [("a2", "new", 1)])]))
    assert rows(target) == [(1, "a2", "new"), (2, "b", None)]


@LONG
@pytest.mark.parametrize(
    "parts",
    [
        {"inserts": [RowSet(ALL, [(1, "other", None)])]},
        {"inserts": [RowSet(ALL, [(9, "a", None)])]},
        {"deletes": [(7,)]},
        {"updates": [RowSet((1, 2), [("q", None, 7)])]},
        {"absent": [(1,)]},
    ],
    ids=[
        "duplicate key",
        "duplicate secondary key",
        "row to delete missing",
        "row to update missing",
        "key not absent",
    ],
)
def test_a_target_that_differs_is_a_mismatch_and_stays_untouched(target: Target, parts: dict[str, object]) -> None:
    model = make(target, KEYED)
    apply(target, model, chunk(model, inserts=[RowSet(ALL, [(1, "a", "x")])]))
    with pytest.raises(CountMismatch):
        apply(target, model, chunk(model, **parts))
    assert rows(target) == [(1, "a", "x")]


@LONG
def test_rows_may_trade_values_of_another_unique_key(target: Target) -> None:
    model = make(target, KEYED)
    apply(target, model, chunk(model, inserts=[RowSet(ALL, [(1, "a", "x"), (2, "b", "y")])]))
    apply(target, model, chunk(model, updates=[RowSet((1, 2), [("b", "x", 1), ("a", "y", 2)])]))
    assert rows(target) == [(1, "b", "x"), (2, "a", "y")]


@LONG
def test_a_freed_unique_value_can_be_taken_in_the_same_batch(target: Target) -> None:
    model = make(target, KEYED)
    apply(target, model, chunk(model, inserts=[RowSet(ALL, [(1, "a", None), (2, "b", None)])]))
    apply(target, model, chunk(model, deletes=[(1,)], inserts=[RowSet(ALL, [(3, "a", None)])]))
    assert rows(target) == [(2, "b", None), (3, "a", None)]


@LONG
def test_what_was_applied_is_held_no_longer_though_nobody_looks_for_garbage(target: Target) -> None:
    """A batch has many megabytes, and garbage is looked for when there are many objects."""
    model = make(target, KEYED)
    apply(target, model, chunk(model, inserts=[RowSet(ALL, [(1, "a", "x"), (2, "b", "y")])]))
    given = chunk(
        model, deletes=[(2,)], updates=[RowSet((1, 2), [("a2", "new", 1)])], inserts=[RowSet(ALL, [(3, "c", "z")])]
    )
    given = in_bulk(given, model, target.kind, length_prefixed=FRAMED[target]) if IN_BULK[target] else given
    held = (given, given.bulk.inserts) if given.bulk is not None else (given, given.inserts)
    before = [*map(sys.getrefcount, held)]
    gc.disable()
    try:
        target.begin(foreign_keys=True)
        target.apply_chunks([given], {(model.database, model.name): model})
        target.commit()
        assert [*map(sys.getrefcount, held)] == before
    finally:
        gc.enable()


@LONG
@pytest.mark.parametrize("names", ["ab", ("rowid", "oid"), ("_rowid_", "RowId")])
def test_without_a_key_exactly_one_equal_row_is_changed(target: Target, names: Sequence[str]) -> None:
    model = make(target, "CREATE TABLE t ({} INT, {} VARCHAR(20))".format(*names))
    assert key_of(model) == ()
    twice = [RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(1, None)]))] * 2
    gone = RowChange(kind=ChangeKind.DELETE, before=RowSet((0, 1), [(1, None)]), after=None)
    apply(target, model, chunk(model, ordered=[*twice, gone]))
    assert rows(target) == [(1, None)]
    moved = RowChange(kind=ChangeKind.UPDATE, before=RowSet((0, 1), [(1, None)]), after=RowSet((0, 1), [(2, "x")]))
    apply(target, model, chunk(model, ordered=[moved]))
    assert rows(target) == [(2, "x")]


def random_bag(rng: random.Random, size: int) -> Counter[Row]:
    texts = ("a", "A", "a ", "\u00e1", "", None)
    return Counter((rng.choice((1, 2, None)), rng.choice(texts)) for _ in range(size))


def copies(multiset: Counter[Row]) -> list[Row]:
    return [(*row, count) for row, count in multiset.items()]


def bag_model(target: Target, more: str = "") -> TableModel:
    if not value_form(target.kind).counts_rows and not IN_BULK[target]:
        pytest.skip("tasks encode such rows for this target")
    return make(target, f"CREATE TABLE t (a INT, b VARCHAR(20){more})")


@LONG
@pytest.mark.parametrize("seed", range(8))
def test_without_a_key_as_many_copies_of_a_row_go_as_are_said(target: Target, seed: int) -> None:
    model, rng = bag_model(target, ", KEY (a)" if seed % 2 else ""), random.Random(seed)
    held, come = random_bag(rng, 80), random_bag(rng, 5)
    gone = Counter({row: rng.randint(1, count) for row, count in held.items() if rng.random() < 0.6})
    apply(target, model, chunk(model, inserts=[RowSet((0, 1), list(held.elements()))]))
    parts = {"deletes": copies(gone), "inserts": [RowSet((0, 1), list(come.elements()))]}
    apply(target, model, chunk(model, **parts))
    assert Counter(rows(target)) == held - gone + come
    for row in (next(iter(held - gone + come)), (7, "not there")):
        one_too_many = (*row, (held - gone + come)[row] + 1)
        with pytest.raises(KeylessMismatch, match=r"shop\.t"):
            apply(target, model, chunk(model, deletes=[one_too_many]))
        assert Counter(rows(target)) == held - gone + come


@LONG
def test_without_a_key_an_index_that_tells_rows_apart_finds_them(target: Target) -> None:
    model = bag_model(target, ", KEY (a)")
    each: list[Row] = [(number, f"row {number % 7}") for number in range(2000)]
    held = each * 2
    apply(target, model, chunk(model, inserts=[RowSet((0, 1), held)]))
    if dialect_of(target.kind).executes_statements:
        target.connection.exec_driver_sql("ANALYZE TABLE shop.t")
        target.rollback()
    apply(target, model, chunk(model, deletes=[(*row, 1 + number % 2) for number, row in enumerate(held[:20])]))
    assert Counter(rows(target)) == Counter(held) - Counter(held[:20]) - Counter(held[1:20:2])


@LONG
def test_of_very_many_copies_only_those_that_are_asked_for_go(target: Target) -> None:
    model = bag_model(target)
    held = Counter({(1, "many"): 500, (2, None): 3})
    apply(target, model, chunk(model, inserts=[RowSet((0, 1), list(held.elements()))]))
    apply(target, model, chunk(model, deletes=[(1, "many", 4), (2, None, 2)]))
    assert Counter(rows(target)) == {(1, "many"): 496, (2, None): 1}


TRIGGERS = (  # each kind with triggers accepts one of these statements
    "CREATE TRIGGER tr AFTER DELETE ON {} BEGIN SELECT 1; END",
    "CREATE TRIGGER tr BEFORE UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
)


def has_trigger(target: Target, name: str) -> bool:
    """Create a trigger in the target's open transaction. Return False if the target has no triggers."""
    for sql in TRIGGERS:
        try:
            target.connection.exec_driver_sql(sql.format(name))
        except SQLAlchemyError:
            target.rollback()
            target.begin(foreign_keys=True)
        else:
            return True
    return False


@LONG
@pytest.mark.parametrize("own", ["a column", "a trigger", "a foreign key"])
def test_rows_that_the_target_adds_something_to_are_no_bag(target: Target, own: str) -> None:
    model = bag_model(target, ", UNIQUE (a)")
    name, server = name_of(target), statement_target(target)
    target.begin(foreign_keys=True)
    run = target.connection.exec_driver_sql
    if own == "a column":
        run(f"ALTER TABLE {name} ADD COLUMN extra INT")
    elif own == "a trigger" and server is None and has_trigger(target, name):
        pass
    elif own == "a foreign key" and server is not None:
        run("CREATE TABLE shop.child (a INT, FOREIGN KEY (a) REFERENCES t (a))")
    else:
        target.rollback()
        pytest.skip("found by another rule")
    target.commit()
    if own == "a column" and server is not None:  # there the model has it: images are no whole rows (decode)
        return
    assert not target.takes_multisets(model)
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql(f"DROP TABLE {name}" if server is None else "DROP TABLE shop.child")
    target.commit()
    assert server is not None or target.takes_multisets(make(target, "CREATE TABLE t (a INT)"))


@LONG
@pytest.mark.parametrize(
    ("change", "errno", "words"),
    [
        (
            RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(ALL, [(1, "n", None)])),
            1062,
            "Duplicate entry '1' for key 'PRIMARY'",
        ),
        (
            RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(ALL, [(5, "a", None)])),
            1062,
            "Duplicate entry 'a' for key 'code'",
        ),
        (
            RowChange(kind=ChangeKind.DELETE, before=RowSet(ALL, [(8, "n", None)]), after=None),
            1032,
            "Can't find record in 't'",
        ),
    ],
)
def test_a_single_change_that_does_not_fit_has_mysqls_number_and_text(
    target: Target, change: RowChange, errno: int, words: str
) -> None:
    model = make(target, KEYED)
    apply(target, model, chunk(model, inserts=[RowSet(ALL, [(1, "a", "x")])]))
    target.begin(foreign_keys=True)
    with pytest.raises(TargetError) as caught:
        target.apply_change(change, model)
    target.rollback()
    assert caught.value.errno == errno
    assert words in caught.value.message.replace("'t.", "'")  # MySQL 8 names the table too
    assert caught.value.position == ("id=8" if errno == 1032 else "")


@LONG
def test_ddl_is_rolled_back_with_its_transaction(target: Target) -> None:
    if dialect_of(target.kind).ddl_commits:
        pytest.skip("DDL ends the transaction there")
    empty = Catalog()
    plan = plan_ddl(KEYED, "shop", DdlContext(), empty)
    target.begin(foreign_keys=True)
    target.execute_ddl(plan, empty)
    target.rollback()
    with pytest.raises(TargetError) as caught:
        target.check_table(empty.after(plan).tables["shop", "t"])
    assert caught.value.errno == 1146
    assert "load-schema" in caught.value.hint


@LONG
def test_a_table_without_a_column_of_the_model_is_refused(target: Target) -> None:
    if dialect_of(target.kind).executes_statements:
        pytest.skip("its models are its tables")
    model = make(target, "CREATE TABLE t (id INT PRIMARY KEY, note TEXT)")
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql(f'ALTER TABLE {name_of(target)} RENAME COLUMN "note" TO "remark"')
    target.commit()
    target.reconnect()  # a target that nobody else can change knows what it made itself
    with pytest.raises(TargetError) as caught:
        target.check_table(model)
    assert caught.value.errno == 1677
    assert '"note"' in caught.value.message


@LONG
def test_foreign_keys_count_at_commit_not_before(target: Target) -> None:
    if dialect_of(target.kind).executes_statements:
        pytest.skip("they count at each statement: see test_mysql")
    parent = make(target, KEYED)
    empty = Catalog({("shop", "t"): parent})
    child_ddl = "CREATE TABLE c (id INT PRIMARY KEY, t_id INT, FOREIGN KEY (t_id) REFERENCES t (id))"
    plan = plan_ddl(child_ddl, "shop", DdlContext(), empty)
    target.begin(foreign_keys=True)
    target.execute_ddl(plan, empty)
    target.commit()
    child = empty.after(plan).tables["shop", "c"]
    models = {("shop", "t"): parent, ("shop", "c"): child}
    child_first = [
        TableChunk(
            database="shop",
            table="c",
            absent=[],
            deletes=[],
            updates=[],
            inserts=[RowSet((0, 1), [(1, 5)])],
            ordered=[],
            change_count=1,
            foreign_keys_off=False,
        ),
        TableChunk(
            database="shop",
            table="t",
            absent=[],
            deletes=[],
            updates=[],
            inserts=[RowSet(ALL, [(5, "p", None)])],
            ordered=[],
            change_count=1,
            foreign_keys_off=False,
        ),
    ]
    target.begin(foreign_keys=True)
    target.apply_chunks(child_first, models)
    target.commit()
    target.begin(foreign_keys=True)
    target.apply_chunks(
        [
            TableChunk(
                database="shop",
                table="c",
                absent=[],
                deletes=[],
                updates=[],
                inserts=[RowSet((0, 1), [(2, 99)])],
                ordered=[],
                change_count=1,
                foreign_keys_off=False,
            )
        ],
        models,
    )
    with pytest.raises(TargetError) as caught:
        target.commit()
    target.rollback()
    assert caught.value.errno == 1452


@LONG
def test_a_column_added_on_the_target_breaks_no_change_and_keeps_its_value(target: Target) -> None:
    source = make(target, KEYED)
    apply(target, source, chunk(source, inserts=[RowSet(ALL, [(1, "a", "x"), (2, "b", None), (3, "c", "z")])]))
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql(f"ALTER TABLE {name_of(target)} ADD COLUMN extra VARCHAR(9) DEFAULT 'new'")
    target.connection.exec_driver_sql(f"UPDATE {name_of(target)} SET extra='mine'")
    target.commit()
    target.check_table(source)
    server = statement_target(target)
    model = source if server is None else server.table_model("shop", "t")
    assert model is not None
    parts = {
        "deletes": [(3,)],
        "updates": [RowSet((1, 2), [("a2", "y", 1)])],
        "inserts": [RowSet(ALL, [(4, "d", None)])],
    }
    given = chunk(source, **parts)
    given = in_bulk(given, source, target.kind, length_prefixed=FRAMED[target]) if IN_BULK[target] else given
    target.begin(foreign_keys=True)
    target.apply_chunks([replace(given, width=3)], {("shop", "t"): model})
    changed = RowChange(
        kind=ChangeKind.UPDATE, before=RowSet(ALL, [(2, "b", None)]), after=RowSet(ALL, [(2, "b2", "w")])
    )
    target.apply_change(changed, model)
    target.apply_change(RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(ALL, [(5, "e", "v")])), model)
    target.commit()
    assert rows(target) == [
        (1, "a2", "y", "mine"),
        (2, "b2", "w", "mine"),
        (4, "d", None, "new"),
        (5, "e", "v", "new"),
    ]


@LONG
def test_what_waits_for_a_lock_ends_when_the_target_is_severed(target: Target) -> None:
    """As with the death of the process: an error where it waits, and nothing of it stays."""
    make(target, "CREATE TABLE t (id INT PRIMARY KEY)")
    name = name_of(target)
    target.begin(foreign_keys=True)
    target.connection.exec_driver_sql(f"INSERT INTO {name} VALUES (1)")
    target.commit()
    ended = threading.Event()

    def abort() -> None:  # again, lest one comes before the wait
        while not ended.wait(0.2):
            target.abort()

    thread = threading.Thread(target=abort)
    elsewhere = open_engine(target.engine.url.render_as_string(hide_password=False))
    with elsewhere.connect() as other:
        if dialect_of(target.kind).is_one_file:
            other.exec_driver_sql("DELETE FROM shop__t WHERE 0")
        else:
            other.exec_driver_sql(f"UPDATE {name} SET id=2")
        thread.start()
        try:
            with pytest.raises((TargetError, SQLAlchemyError)):
                target.begin(foreign_keys=True)
                target.connection.exec_driver_sql(f"DELETE FROM {name}")
        finally:
            ended.set()
            thread.join()
        other.rollback()
    with suppress(TargetError, SQLAlchemyError):
        target.rollback()
    target.reconnect()
    with elsewhere.connect() as other:
        assert other.exec_driver_sql(f"SELECT id FROM {name}").fetchall() == [(1,)]
    elsewhere.dispose()


@LONG
@pytest.mark.parametrize("many", [1207, 499])  # SQLite binds 50 rows to a statement, from 500 on
@pytest.mark.parametrize("is_columns", [False, True])
def test_many_rows_are_inserted_each_once_and_none_where_one_is_there(
    target: Target, many: int, is_columns: bool
) -> None:
    model = make(target, "CREATE TABLE t (id INT PRIMARY KEY, a INT, g INT GENERATED ALWAYS AS (a + 1) STORED)")
    rows = [(number, number % 7) for number in range(many)]

    def given(rows: Sequence[Row]) -> TableChunk:
        found: Sequence[Row] = ColumnRows(list(zip(*rows, strict=True))) if is_columns else rows
        return chunk(model, inserts=[RowSet((0, 1), found)])

    apply(target, model, given(rows))
    sql = "SELECT COUNT(*), SUM(id), SUM(a), SUM(g - a) FROM " + name_of(target)
    whole = (many, sum(range(many)), sum(a for _, a in rows), many)
    with target.engine.connect() as reader:
        assert tuple(map(int, reader.exec_driver_sql(sql).one())) == whole
    with pytest.raises(CountMismatch):
        apply(target, model, given([(number + many, 0) for number in range(many)] + [(many - 1, 0)]))
    with target.engine.connect() as reader:
        assert tuple(map(int, reader.exec_driver_sql(sql).one())) == whole


@LONG
def test_a_change_that_was_committed_behind_ones_first_read_is_built_upon(target: Target) -> None:
    """As by the threads that load a copy: each adds its chunk to the count that the one before it committed."""
    if dialect_of(target.kind).loads_alone:
        pytest.skip("one connection loads its copies")
    name = name_of(target)
    other = dialect_of(target.kind).open_target(target.engine)
    make(target, KEYED)
    with target.engine.begin() as before:
        before.exec_driver_sql(f"INSERT INTO {name} VALUES (1, '0', 'n')")
    try:
        for one in (target, other):
            one.begin(foreign_keys=False)
            assert one.connection.exec_driver_sql(f"SELECT code FROM {name}").fetchall() == [("0",)]
        for count, one in enumerate((target, other)):
            sql = f"UPDATE {name} SET code = '{count + 1}' WHERE code = '{count}'"
            assert one.connection.exec_driver_sql(sql).rowcount == 1
            one.commit()
    finally:
        other.rollback()
        other.close()


@LONG
def test_a_severed_target_has_no_connection_left_and_makes_no_other(target: Target) -> None:
    """Also none that somebody asks meanwhile, as for the answer to a COMMIT: what waits anywhere for it ends."""
    if dialect_of(target.kind).is_one_file or dialect_of(target.kind).is_held:
        pytest.skip("there is nothing to wait for")
    target.begin(foreign_keys=True)
    with target.engine.connect() as asking:
        asking.exec_driver_sql("SELECT 1")
        target.abort()
        with pytest.raises(SQLAlchemyError):
            asking.exec_driver_sql("SELECT 1")
    with suppress(TargetError, SQLAlchemyError):
        target.rollback()
    target.reconnect()
    with pytest.raises(TargetError, match="was terminated") as raised:
        target.begin(foreign_keys=True)
    assert not raised.value.transient


def test_a_server_that_takes_the_connection_and_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that hangs: the kernel answers for it. Trying again may help."""
    monkeypatch.setattr("rplctl.target.mysql.connection.SILENCE_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TargetError) as raised:
        engine = open_engine(f"mysql://rpl@127.0.0.1:{silent.getsockname()[1]}/")
        with mapped_errors(engine.dialect.name), engine.connect():
            pass
    assert raised.value.transient
