"""PostgreSQL as a target: COPY and staged tables with counts, foreign keys at rest, fences, errors as MySQL's."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

from rplctl.errors import LockBusy, TargetError
from rplctl.own_tables.tables import create_own_tables
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.target import open_target, target_kind
from rplctl.target.base import ChangeKind, CountMismatch, Row, RowChange, RowSet, TableChunk
from rplctl.target.postgresql import values as postgresql_values
from rplctl.target.postgresql.target import PostgresqlTarget
from tests.kit.postgresql_state import new_database
from tests.kit.servers import PostgresqlServer

pytestmark = pytest.mark.postgresql
MANY = 300  # more than go by parameters


def hash_of(number: int) -> int:
    """Digits that no compression makes shorter."""
    return int.from_bytes(hashlib.sha256(str(number).encode()).digest()[:4], "big")


class Shop:
    """A target with the tables of one catalog in schema `shop`."""

    def __init__(self, url: str) -> None:
        opened = open_target(url)
        assert isinstance(opened, PostgresqlTarget)
        self.target = opened
        self.catalog = Catalog()

    def ddl(self, sql: str) -> TableModel:
        plan = plan_ddl(sql, "shop", DdlContext(), self.catalog)
        self.target.begin(foreign_keys=False)
        try:
            self.target.execute_ddl(plan, self.catalog)
        except BaseException:
            self.target.rollback()
            raise
        self.target.commit()
        self.catalog = self.catalog.after(plan)
        return next(model for model in plan.model_changes.values() if model is not None)

    def apply(self, *chunks: TableChunk, foreign_keys: bool = True) -> None:
        self.target.rollback()  # of what a query began
        self.target.begin(foreign_keys=foreign_keys)
        try:
            self.target.apply_chunks(list(chunks), self.catalog.tables)
        except BaseException:
            self.target.rollback()
            raise
        self.target.commit()

    def change(self, change: RowChange, model: TableModel) -> TargetError:
        """The error of one change."""
        self.target.begin(foreign_keys=True)
        with pytest.raises(TargetError) as caught:
            self.target.apply_change(change, model)
        self.target.rollback()
        return caught.value

    def query(self, sql: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in self.target.connection.exec_driver_sql(sql)]


@pytest.fixture
def shop(postgresql: PostgresqlServer) -> Iterator[Shop]:
    postgresql.sql("DROP SCHEMA IF EXISTS shop CASCADE")
    made = Shop(postgresql.url())
    yield made
    made.target.rollback()
    made.target.close()


def chunk(table: str, **parts: object) -> TableChunk:
    fields: dict[str, object] = {"absent": [], "deletes": [], "updates": [], "inserts": [], "ordered": []} | parts
    return TableChunk(database="shop", table=table, change_count=1, foreign_keys_off=False, **fields)  # type: ignore[arg-type]


def insert(table: str, rows: list[Row], columns: tuple[int, ...] | None = None) -> TableChunk:
    return chunk(table, inserts=[RowSet(columns or tuple(range(len(rows[0]))), rows)])


def added(*values: object) -> RowChange:
    return RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet(tuple(range(len(values))), [values]))  # type: ignore[list-item]


TABLE = "CREATE TABLE t (id INT, part VARCHAR(9), u INT UNIQUE, doc JSON, raw BLOB, PRIMARY KEY (id, part))"


def rows_of(count: int) -> list[Row]:
    return [(n, f"p\t{n}", n, f'{{"n":  {n}}}', bytes([n % 256, 92])) for n in range(count)]


@pytest.mark.parametrize("count", [3, MANY])
def test_few_and_many_rows_come_and_go_the_same_way(shop: Shop, count: int) -> None:
    shop.ddl(TABLE)
    shop.apply(insert("t", rows_of(count)))
    rows: list[Row] = [(None, f"[{n}]", b"", n, f"p\t{n}") for n in range(0, count, 2)]
    keys: list[Row] = [(n, f"p\t{n}") for n in range(1, count, 2)]
    shop.apply(chunk("t", absent=[(-n, "x") for n in range(1, count)], deletes=keys, updates=[RowSet((2, 3, 4), rows)]))
    assert shop.query("SELECT id, part, u, doc::text, raw FROM shop.t ORDER BY 1") == [
        (n, f"p\t{n}", None, f"[{n}]", b"") for n in range(0, count, 2)
    ]


@pytest.mark.parametrize("count", [3, MANY])
@pytest.mark.parametrize("what", ["absent", "deletes", "updates", "inserts"])
def test_one_row_that_is_not_as_expected_is_a_mismatch(shop: Shop, count: int, what: str) -> None:
    shop.ddl(TABLE)
    shop.apply(insert("t", rows_of(count)))
    missing: list[Row] = [(n, f"p\t{n}") for n in range(1, count + 1)]
    parts: dict[str, object] = {
        "absent": [(n, f"p\t{n}") for n in range(count - 1, 2 * count)],
        "deletes": missing,
        "updates": [RowSet((3,), [("1", *key) for key in missing])],
        "inserts": [RowSet((0, 1), [(n, f"p\t{n}") for n in range(count - 1, 2 * count)])],
    }
    with pytest.raises(CountMismatch):
        shop.apply(chunk("t", **{what: parts[what]}))
    assert shop.query("SELECT count(*) FROM shop.t") == [(count,)]


@pytest.mark.parametrize("count", [4, MANY])
def test_rows_trade_values_of_a_unique_key_with_one_image_or_many(shop: Shop, count: int) -> None:
    shop.ddl(TABLE)
    shop.apply(insert("t", rows_of(count)))
    swapped: list[Row] = [((n + 1) % count, None, None, n, f"p\t{n}") for n in range(count)]
    shop.apply(chunk("t", updates=[RowSet((2, 3, 4), swapped)]))
    assert shop.query("SELECT id, u FROM shop.t ORDER BY 1") == [(n, (n + 1) % count) for n in range(count)]


def test_a_parent_with_cascades_is_not_taken_out_to_trade_values(shop: Shop) -> None:
    """Its children would go with it: the applier goes one transaction at a time instead."""
    shop.ddl("CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE)")
    shop.ddl("CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)")
    shop.apply(insert("p", [(1, 10), (2, 20)]), insert("c", [(1, 1)]))
    swap = chunk("p", updates=[RowSet((1,), [(20, 1), (10, 2)])])
    with pytest.raises(CountMismatch):
        shop.apply(swap)
    shop.apply(swap, foreign_keys=False)
    assert shop.query("SELECT * FROM shop.c") == [(1, 1)]


def test_keys_move_in_their_order(shop: Shop) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)")
    shop.apply(insert("t", [(n, n, n) for n in range(1, 5)]))
    shop.apply(chunk("t", updates=[RowSet((0, 1), [(9, 0, 4), (4, 3, 3), (3, 2, 2)])]))
    assert shop.query("SELECT * FROM shop.t ORDER BY 1") == [(1, 1, 1), (3, 2, 2), (4, 3, 3), (9, 0, 4)]


@pytest.mark.parametrize("count", [2, MANY])
def test_generated_columns_that_the_source_left_out_are_computed(shop: Shop, count: int) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, g INT AS (a * 2 + b) VIRTUAL)")
    shop.apply(insert("t", [(n, n, 1) for n in range(count)]))
    shop.apply(chunk("t", updates=[RowSet((1,), [(10 * n, n) for n in range(count)])]))
    assert shop.query("SELECT g FROM shop.t ORDER BY id") == [(20 * n + 1,) for n in range(count)]


def test_a_table_without_a_key_takes_many_inserts_at_once_and_removes_one_of_equals(shop: Shop) -> None:
    shop.ddl("CREATE TABLE t (a INT, b JSON, c FLOAT, d TIME(3))")
    row = (1, '{"x": 1}', 0.10000000149011612, "-00:00:01.500")
    gone = RowChange(kind=ChangeKind.DELETE, before=RowSet((0, 1, 2, 3), [row]), after=None)
    shop.apply(chunk("t", ordered=[added(*row)] * MANY + [gone, added(None, None, None, None)]))
    assert shop.query("SELECT a, count(*) FROM shop.t GROUP BY a ORDER BY a") == [(1, MANY - 1), (None, 1)]
    nothing = RowChange(
        kind=ChangeKind.DELETE, before=RowSet((0, 1, 2, 3), [(1, '{"x":1}', 0.5, "00:00:00.000")]), after=None
    )
    with pytest.raises(TargetError) as caught:
        shop.apply(chunk("t", ordered=[nothing]))
    assert caught.value.errno == 1032
    assert "b='{" in caught.value.position


def test_rows_without_any_value_are_rows(shop: Shop) -> None:
    shop.ddl("CREATE TABLE t (a INT DEFAULT 5)")
    shop.apply(chunk("t", ordered=[RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((), [()]))] * 2))
    assert shop.query("SELECT * FROM shop.t") == [(5,), (5,)]


def test_each_misfit_has_mysqls_number_and_names_the_row(shop: Shop) -> None:
    model = shop.ddl(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) NOT NULL, b DATE, c TEXT, d JSON, UNIQUE ua (a),"
        " UNIQUE pc (c(3)))"
    )
    shop.apply(insert("t", [(1, "x", None, "abc", None)]))
    found = [
        (error.errno, error.message, error.position)
        for error in (
            shop.change(added(1, "y", None, None, None), model),
            shop.change(added(2, "x", None, None, None), model),
            shop.change(added(3, "z", None, "abcd", None), model),
            shop.change(added(4, None, None, None, None), model),
            shop.change(added(5, "v", "2024-00-07", None, None), model),
            shop.change(added(6, "v", None, "a\0b", None), model),
            shop.change(added(7, "v", None, None, "{no"), model),
            shop.change(RowChange(kind=ChangeKind.DELETE, before=RowSet((0,), [(9,)]), after=None), model),
        )
    ]
    assert [errno for errno, _, _ in found] == [1062, 1062, 1062, 1048, 1292, 1366, 1366, 1032]
    assert [text for _, text, _ in found[:5]] == [
        "Duplicate entry '1' for key 'PRIMARY'",
        "Duplicate entry 'x' for key 'ua'",
        "Duplicate entry 'abcd' for key 'pc'",
        "Column 'a' cannot be null",
        "Incorrect date value: '2024-00-07' for column 'b': PostgreSQL cannot store this date",
    ]
    assert [position for _, _, position in found[4:]] == ["id=5", "id=6", "id=7", "id=9"]


@pytest.mark.parametrize("count", [1, MANY])
def test_a_nul_stops_it_wherever_it_is(shop: Shop, count: int) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, c TEXT)")
    with pytest.raises(TargetError, match="NUL") as caught:
        shop.apply(insert("t", [(n, "a\0b" if n == count - 1 else "x") for n in range(count)]))
    assert caught.value.errno == 1366
    assert shop.query("SELECT count(*) FROM shop.t") == [(0,)]


def test_large_bytes_go_as_they_are_and_a_row_that_no_message_holds_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shop.ddl("CREATE TABLE t (a INT, raw LONGBLOB)")  # without a key: found by all its bytes
    first, second = bytes(range(256)) * 5000, bytes(2_000_000)
    shop.apply(insert("t", [(1, first)]), insert("t", [(1, second)]))
    shop.apply(chunk("t", ordered=[RowChange(kind=ChangeKind.DELETE, before=RowSet((0, 1), [(1, first)]), after=None)]))
    assert shop.query("SELECT a, length(raw), md5(raw) = md5(decode(repeat('00', 2000000), 'hex')) FROM shop.t") == [
        (1, 2_000_000, True)
    ]
    shop.target.rollback()
    monkeypatch.setattr(postgresql_values, "MOST_MESSAGE_BYTES", 1_500_000)  # 1 GB: PostgreSQL would only hang up
    error = shop.change(added(2, second), model)
    assert (error.errno, error.transient, error.position[:5]) == (1153, False, "a=2, ")


def test_a_column_that_grows_takes_its_new_values_at_once(shop: Shop) -> None:
    model = shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, v TINYINT)")
    for number in range(12):  # drivers prepare what they see often, with the types of then
        shop.apply(insert("t", [(number, 1)]))
        shop.apply(chunk("t", updates=[RowSet((1,), [(2, number)])]))
    shop.ddl("ALTER TABLE t MODIFY v BIGINT")
    shop.apply(insert("t", [(99, 2**40)]), chunk("t", updates=[RowSet((1,), [(2**41, 1)])]))
    assert shop.query("SELECT id, v FROM shop.t WHERE v > 2 ORDER BY 1") == [(1, 2**41), (99, 2**40)]
    assert model.columns[1].type == "tinyint"


def test_a_transaction_in_two_phases_is_prepared_with_its_bulk(shop: Shop) -> None:
    """PREPARE TRANSACTION refuses what has touched a temporary table: rows are staged in others, and none is left."""
    create_own_tables(shop.target.engine)
    shop.ddl(TABLE)
    shop.apply(insert("t", rows_of(MANY)))
    shop.target.begin(foreign_keys=True, xid="rplctl-test")
    updates = [RowSet((3,), [("[]", n, f"p\t{n}") for n in range(MANY // 2)])]
    deletes = [(n, f"p\t{n}") for n in range(MANY // 2, MANY)]
    more = [RowSet((0, 1), [(n, "new") for n in range(MANY)])]
    absent = [(-n, "x") for n in range(1, MANY)]
    shop.target.apply_chunks([chunk("t", absent=absent, deletes=deletes, updates=updates, inserts=more)],
                             shop.catalog.tables)  # fmt: skip
    shop.target.prepare()
    shop.target.commit()
    assert shop.query("SELECT count(*), count(doc) FROM shop.t") == [(MANY + MANY // 2, MANY // 2)]
    assert shop.query("SELECT count(*) FROM pg_class WHERE starts_with(relname, 'rplctl_stage')") == [(0,)]


def test_a_date_in_no_calendar_is_kept_once_its_column_is_text(shop: Shop) -> None:
    model = shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, b DATETIME(3))")
    error = shop.change(added(1, "2024-00-07 01:02:03.000"), model)
    shop.target.begin(foreign_keys=True)
    shop.target.connection.exec_driver_sql(error.hint.partition("run on the target: ")[2].partition("\n")[0])
    shop.target.commit()
    for count in (1, MANY):
        shop.apply(insert("t", [(n + count, "2024-00-07 01:02:03.000") for n in range(count)]))
    assert shop.query("SELECT b, count(*) FROM shop.t GROUP BY b") == [("2024-00-07 01:02:03.000", MANY + 1)]


def test_a_value_too_long_for_an_index_goes_in_once_the_index_is_gone(shop: Shop) -> None:
    model = shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(3000) CHARACTER SET latin1, KEY long_one (v))")
    text = "".join(chr(33 + hash_of(n) % 90) for n in range(3000))
    error = shop.change(added(1, text), model)
    assert error.errno == 1071
    assert "dropped that index" in error.hint
    shop.target.begin(foreign_keys=True)
    shop.target.connection.exec_driver_sql('DROP INDEX shop."shop__t::long_one"')
    shop.target.commit()
    shop.apply(insert("t", [(1, text)]))
    shop.ddl("ALTER TABLE t DROP KEY long_one")


def test_a_view_of_the_targets_own_keeps_its_table_and_is_named(shop: Shop) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)")
    shop.target.begin(foreign_keys=True)
    shop.target.connection.exec_driver_sql("CREATE VIEW shop.report AS SELECT id FROM shop.t")
    shop.target.commit()
    with pytest.raises(TargetError, match="other objects depend on it") as caught:
        shop.ddl("DROP TABLE t")
    assert caught.value.errno == 1235
    assert "view" in caught.value.hint


def test_foreign_keys_rest_where_the_source_had_none(shop: Shop) -> None:
    shop.ddl("CREATE TABLE p (id INT PRIMARY KEY)")
    shop.ddl("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))")
    shop.apply(insert("p", [(1,)]), chunk("c", ordered=[added(1)]))
    for wrong, errno in ((chunk("c", ordered=[added(7)]), 1452), (chunk("p", deletes=[(1,)]), 1451)):
        with pytest.raises(TargetError) as caught:
            shop.apply(wrong)
        shop.target.rollback()
        assert caught.value.errno == errno
    shop.apply(chunk("c", ordered=[added(7)]), foreign_keys=False)
    assert shop.query("SELECT p FROM shop.c ORDER BY 1") == [(1,), (7,)]


def test_foreign_keys_act_for_some_changes_of_a_transaction_and_rest_for_others(shop: Shop) -> None:
    parent = shop.ddl("CREATE TABLE p (id INT PRIMARY KEY)")
    shop.ddl("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)")
    shop.apply(insert("p", [(1,), (2,)]), chunk("c", ordered=[added(1), added(2)]))
    shop.target.begin(foreign_keys=False)
    for wanted, key in ((True, 1), (False, 2)):
        assert shop.target.follow_foreign_keys(wanted, shop.catalog.tables)
        shop.target.apply_change(RowChange(kind=ChangeKind.DELETE, before=RowSet((0,), [(key,)]), after=None), parent)
    shop.target.commit()
    assert shop.query("SELECT p FROM shop.c") == [(2,)]


def test_a_user_who_may_not_rest_them_is_told_what_to_grant(shop: Shop, postgresql: PostgresqlServer) -> None:
    shop.ddl("CREATE TABLE p (id INT PRIMARY KEY)")
    shop.ddl("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))")
    shop.target.rollback()
    postgresql.sql("CREATE ROLE plain LOGIN PASSWORD 'p'; GRANT USAGE ON SCHEMA shop TO plain;"
                   " GRANT ALL ON ALL TABLES IN SCHEMA shop TO plain")  # fmt: skip
    plain = Shop(f"postgres://plain:p@{postgresql.host}:{postgresql.port}/postgres")
    plain.catalog = shop.catalog
    try:
        plain.apply(insert("p", [(1,)]), chunk("c", ordered=[added(1)]), foreign_keys=False)
        with pytest.raises(TargetError) as caught:
            plain.apply(chunk("c", ordered=[added(7)]), foreign_keys=False)
        assert caught.value.errno == 1452
        assert "GRANT SET ON PARAMETER session_replication_role TO plain\n" in caught.value.hint
        postgresql.sql("GRANT SET ON PARAMETER session_replication_role TO plain")
        plain.target.reconnect()
        plain.apply(chunk("c", ordered=[added(7)]), foreign_keys=False)
    finally:
        plain.target.close()
        postgresql.sql("DROP OWNED BY plain; DROP ROLE plain")


def test_a_user_who_may_make_no_temporary_tables_changes_many_rows_all_the_same(
    postgresql: PostgresqlServer,
) -> None:
    url = new_database(postgresql)
    name = url.rpartition("/")[2]
    postgresql.sql("DROP ROLE IF EXISTS hardened; CREATE ROLE hardened LOGIN PASSWORD 'h'")
    postgresql.sql(f"ALTER DATABASE {name} OWNER TO hardened; REVOKE TEMP ON DATABASE {name} FROM PUBLIC, hardened")
    hardened = Shop(url.replace("rpl:rpl@", "hardened:h@"))
    try:
        hardened.ddl(TABLE)
        hardened.apply(insert("t", rows_of(MANY)))
        hardened.apply(chunk("t", deletes=[(n, f"p\t{n}") for n in range(MANY - 1)]))
        assert hardened.query("SELECT id FROM shop.t") == [(MANY - 1,)]
    finally:
        hardened.target.close()


def test_a_channel_has_one_committer_and_a_lost_connection_takes_its_lock_along(
    shop: Shop, postgresql: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(patience: str) -> None:  # a server takes a moment to free the lock of a connection that was closed
        monkeypatch.setattr("rplctl.target.postgresql.target.LOCK_WAIT", patience)

    shop.target.fence("north")
    other = Shop(postgresql.url())
    try:
        wait("100ms")
        with pytest.raises(LockBusy, match="north"):
            other.target.fence("north")
        other.target.fence("south")
        shop.target.reconnect()
        wait("300s")
        other.target.fence("north")
        wait("100ms")
        for _ in range(2):
            with pytest.raises(LockBusy):
                shop.target.begin(foreign_keys=True)
    finally:
        other.target.close()


def test_a_killed_backend_is_a_transient_error_and_the_next_connection_works(
    shop: Shop, postgresql: PostgresqlServer
) -> None:
    model = shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)")
    shop.target.begin(foreign_keys=True)
    (pid,) = shop.query("SELECT pg_backend_pid()")[0]
    postgresql.sql(f"SELECT pg_terminate_backend({pid}, 5000)")
    with pytest.raises(TargetError) as caught:
        shop.target.apply_change(added(1), model)
    assert (caught.value.transient, caught.value.errno) == (True, 2013)
    shop.target.rollback()
    shop.apply(insert("t", [(1,)]))


def test_a_lock_that_another_session_holds_is_a_lock_wait_timeout(shop: Shop, postgresql: PostgresqlServer) -> None:
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    shop.apply(insert("t", [(1, 1)]))
    with psycopg.connect(postgresql.url().replace("+psycopg", "")) as blocker:
        blocker.execute("SELECT * FROM shop.t FOR UPDATE")
        shop.target.begin(foreign_keys=True)
        shop.query("SELECT set_config('lock_timeout', '50ms', true)")
        with pytest.raises(TargetError) as caught:
            shop.target.apply_chunks([chunk("t", deletes=[(1,)])], shop.catalog.tables)
    shop.target.rollback()
    assert (caught.value.errno, caught.value.transient) == (1205, True)


def test_stop_cuts_off_a_statement_in_work(shop: Shop) -> None:
    model = shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)")
    shop.target.begin(foreign_keys=True)
    shop.target.apply_change(added(1), model)
    ended = threading.Event()

    def interrupt() -> None:  # again, lest one comes before the statement
        while not ended.wait(0.2):
            shop.target.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(Exception, match="cancel"):
            shop.query("SELECT pg_sleep(600)")
    finally:
        ended.set()
        thread.join()
    shop.target.rollback()
    assert shop.target.is_idle()
    assert shop.query("SELECT count(*) FROM shop.t") == [(0,)]


def test_a_database_that_cannot_hold_every_text_is_refused(postgresql: PostgresqlServer) -> None:
    postgresql.sql("DROP DATABASE IF EXISTS narrow")
    postgresql.sql("CREATE DATABASE narrow ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    target = open_target(postgresql.url("narrow"))
    for _ in range(2):
        with pytest.raises(TargetError, match="LATIN1") as caught:
            target.begin(foreign_keys=True)
    assert "createdb -E UTF8" in caught.value.hint
    target.close()


@pytest.mark.parametrize(
    ("user", "database", "errno", "is_waited_for"),
    [("rpl:wrong", "postgres", 1045, True), ("rpl:rpl", "nowhere", 1049, False)],
)
def test_why_it_cannot_connect_is_said(
    postgresql: PostgresqlServer, user: str, database: str, errno: int, is_waited_for: bool
) -> None:
    target = open_target(f"postgresql://{user}@{postgresql.host}:{postgresql.port}/{database}")
    with pytest.raises(TargetError) as caught:
        target.begin(foreign_keys=True)
    assert (caught.value.errno, caught.value.transient) == (errno, is_waited_for)
    target.close()


def test_no_readable_password_without_verified_tls(postgresql_factory: Callable[..., PostgresqlServer]) -> None:
    server = postgresql_factory()
    server.sql("CREATE ROLE clear LOGIN PASSWORD 'secret'")
    rules = server.data / "pg_hba.conf"
    rules.write_text("host all clear 127.0.0.1/32 password\n" + rules.read_text())
    server.sql("SELECT pg_reload_conf()")
    with psycopg.connect(f"host=127.0.0.1 port={server.port} user=clear password=secret dbname=postgres") as usual:
        assert usual.execute("SELECT 1").fetchone() == (1,)
    target = open_target(f"postgresql://clear:secret@127.0.0.1:{server.port}/postgres")
    with pytest.raises(TargetError, match="cleartext") as caught:
        target.begin(foreign_keys=True)
    assert (caught.value.errno, caught.value.transient) == (1045, True)
    assert "verify-full" in caught.value.hint
    target.close()


def test_a_server_that_is_away_may_come_back() -> None:
    target = open_target("postgresql://u:p@127.0.0.1:1/x")
    with pytest.raises(TargetError) as caught:
        target.begin(foreign_keys=True)
    assert (caught.value.errno, caught.value.transient) == (2013, True)
    target.close()


def test_both_spellings_of_the_scheme_mean_postgresql() -> None:
    urls = ("postgres://u@h/d", "postgresql://u@h/d", "postgresql+psycopg://u@h/d")
    assert {target_kind(url) for url in urls} == {"postgresql"}


def test_a_commit_is_durable_whatever_the_server_was_told(shop: Shop) -> None:
    settings = shop.query(
        "SELECT current_setting('synchronous_commit'), current_setting('timezone'), current_setting('lock_timeout')"
    )
    assert settings == [("on", "UTC", "50s")]


def test_an_alter_that_makes_a_date_of_no_calendar_names_the_column(shop: Shop) -> None:
    create = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))"
    add = "ALTER TABLE t ADD d DATE NOT NULL DEFAULT '2024-02-30'"
    shop.ddl(create)
    shop.apply(insert("t", [(1, "2024-02-30")]))
    with pytest.raises(TargetError, match="'2024-02-30' in column 'd'"):
        shop.ddl(add)
    with pytest.raises(TargetError, match="column 'v': .*2024-02-30") as caught:
        shop.ddl("ALTER TABLE t MODIFY v DATE")
    assert caught.value.errno == 1292
    shop.apply(chunk("t", deletes=[(1,)]))
    shop.ddl(add)  # no row gets it
