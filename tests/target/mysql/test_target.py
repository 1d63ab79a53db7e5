"""MySQL and MariaDB as targets: sessions, statements, values and fencing, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rplctl.errors import LockBusy, RplError, TargetError
from rplctl.event.events import Intvar, Rand, UserVar
from rplctl.event.query import ExecuteLoadQuery, Query, QueryContext
from rplctl.schema.model import TableModel
from rplctl.target import open_target, target_kind
from rplctl.target.base import ChangeKind, CountMismatch, RowChange, RowSet, SourceStatement, TableChunk, Value
from rplctl.target.mysql.target import MysqlTarget
from tests.kit.servers import MariadbServer
from tests.target.encoded import in_bulk

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)

SOURCE = "10.11.6-MariaDB"
QUERY = Query(
    timestamp=1_700_000_000,
    thread_id=7,
    execution_time=0,
    error_code=0,
    database="shop",
    sql_bytes=b"",
    context=QueryContext(flags2=0, sql_mode=0),
    uses_temporary_tables=False,
    suppress_use=False,
)


@pytest.fixture(
    params=[
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param("mysql", marks=[pytest.mark.mysql, pytest.mark.slow]),
    ]
)
def server(request: pytest.FixtureRequest) -> MariadbServer:
    found: MariadbServer = request.getfixturevalue(request.param)
    found.sql(
        "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop CHARACTER SET utf8mb4; CREATE DATABASE IF NOT EXISTS rplctl"
    )
    return found


@pytest.fixture
def target(server: MariadbServer) -> Iterator[MysqlTarget]:
    opened = open_target(server.url())
    assert isinstance(opened, MysqlTarget)
    yield opened
    opened.close()


def run(target: MysqlTarget, sql: str | bytes, *variables: Intvar | Rand | UserVar, **context: object) -> None:
    raw = sql if isinstance(sql, bytes) else sql.encode()
    query = replace(QUERY, sql_bytes=raw, context=replace(QUERY.context, **context))  # type: ignore[arg-type]
    version = SOURCE if target.server.is_mariadb or not target.server.version else "9.1.0"
    target.begin(foreign_keys=True)
    try:
        target.run_statement(SourceStatement(query, variables, (), version))
    except BaseException:
        target.rollback()
        raise
    target.commit()


def model_of(target: MysqlTarget, table: str = "t") -> TableModel:
    model = target.table_model("shop", table)
    assert model is not None
    return model


def test_urls_of_both_vendors_are_one_kind() -> None:
    schemes = ("mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql")
    assert {target_kind(f"{scheme}://u@h/") for scheme in schemes} == {"mysql"}


@LONG
def test_a_default_database_that_is_missing_matters_to_bare_names_alone(
    target: MysqlTarget, server: MariadbServer
) -> None:
    """The servers' own replicas go on at such a statement, and end with 1049 at a name without its database."""

    def run_in(database: str, sql: str) -> None:
        target.begin(foreign_keys=True)
        query = replace(QUERY, sql_bytes=sql.encode(), database=database)
        target.run_statement(SourceStatement(query, (), (), SOURCE if target.server.is_mariadb else "9.1.0"))
        target.commit()

    run_in("nowhere", "CREATE TABLE shop.t (id INT)")
    run_in("nowhere", "INSERT INTO shop.t VALUES (1)")
    for bare in ("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (2)", "DROP TABLE t"):
        with pytest.raises(TargetError, match="Unknown database 'nowhere'") as caught:
            run_in("nowhere", bare)
        assert caught.value.errno == 1049
        target.rollback()
    run_in("shop", "INSERT INTO t VALUES (3)")
    assert sorted(server.sql("SELECT id FROM shop.t")) == [(1,), (3,)]


@LONG
def test_a_statement_runs_in_the_session_it_had_on_the_source(target: MysqlTarget, server: MariadbServer) -> None:
    run(target, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(60), b DATETIME(6), c DOUBLE)")
    run(
        target,
        b"INSERT INTO t (a, b, c) VALUES ('\xe4', NOW(6), RAND()), (@v, NOW(6), LAST_INSERT_ID())",
        Intvar(1, 99),
        Intvar(2, 41),
        Rand(11, 22),
        UserVar(name="v", kind=0, collation=8, value=b"\xfc", unsigned=False),
        client_collation=8,
        connection_collation=8,
        server_collation=8,
        time_zone="+05:00",
        microseconds=250,
        auto_increment=(10, 1),
    )
    server.sql("SET RAND_SEED1=11, RAND_SEED2=22")
    rows = server.sql("SELECT id, a, b, c FROM shop.t ORDER BY id")
    assert [row[:3] for row in rows] == [
        (41, "ä", "2023-11-15 03:13:20.000250"),
        (51, "ü", "2023-11-15 03:13:20.000250"),
    ]
    assert rows[1][3] == 99.0
    assert 0 < rows[0][3] < 1


@LONG
@pytest.mark.parametrize(
    ("source", "mode"), [("10.11.6-MariaDB", 0), ("10.11.6-MariaDB", 1 << 34), ("9.1.0", 0), ("9.1.0", 1 << 32)]
)
def test_digits_without_room_are_rounded_or_cut_as_the_source_does(
    target: MysqlTarget, server: MariadbServer, source: str, mode: int
) -> None:
    """MySQL rounds unless told to cut (TIME_TRUNCATE_FRACTIONAL), MariaDB cuts unless told to round."""
    session = replace(QUERY.context, sql_mode=mode)
    for text in (
        b"CREATE TABLE t (d TIME(3), e TIME)",
        b"INSERT INTO t VALUES ('-23:59:59.6', '1:00:00.6')",
        b"ALTER TABLE t MODIFY d TIME",
    ):
        target.begin(foreign_keys=True)
        target.run_statement(SourceStatement(replace(QUERY, sql_bytes=text, context=session), (), (), source))
        target.commit()
    rounds = ("MariaDB" in source) == bool(mode)
    expected = ("-24:00:00", "01:00:01") if rounds else ("-23:59:59", "01:00:00")
    assert server.rows("shop", "t") == [expected]


@LONG
def test_user_variables_keep_type_sign_and_collation(target: MysqlTarget, server: MariadbServer) -> None:
    run(target, "CREATE TABLE t (a BIGINT UNSIGNED, b BIGINT, c DOUBLE, d DECIMAL(10,3), e VARCHAR(40), f BLOB)")
    run(
        target,
        "INSERT INTO t VALUES (@a, @b, @c, @d, COLLATION(@e), @`f ✓`)",
        UserVar(name="a", kind=2, collation=63, value=(2**64 - 1).to_bytes(8, "little"), unsigned=True),
        UserVar(name="b", kind=2, collation=63, value=(-5).to_bytes(8, "little", signed=True), unsigned=False),
        UserVar(name="c", kind=1, collation=63, value=bytes.fromhex("9a9999999999b93f"), unsigned=False),
        UserVar(name="d", kind=4, collation=63, value=bytes([5, 2]) + bytes.fromhex("807b2d"), unsigned=False),
        UserVar(name="e", kind=0, collation=8, value=b"x", unsigned=False),
        UserVar(name="f ✓", kind=0, collation=63, value=b"\0'\\\xff", unsigned=False),
    )
    assert server.rows("shop", "t") == [(2**64 - 1, -5, 0.1, "123.450", "latin1_swedish_ci", b"\0'\\\xff")]


@LONG
def test_flags_and_modes_do_not_reach_the_rows_that_follow(target: MysqlTarget, server: MariadbServer) -> None:
    run(target, "CREATE TABLE p (id INT PRIMARY KEY) ENGINE=InnoDB")
    run(target, 'CREATE TABLE "t" ("id" INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))', sql_mode=4)
    run(target, "INSERT INTO t VALUES (1, 77)", flags2=1 << 26)
    target.begin(foreign_keys=True)
    with pytest.raises(TargetError) as caught:
        target.apply_change(
            RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(2, 78)])), model_of(target)
        )
    target.rollback()
    assert caught.value.errno == 1452
    assert server.rows("shop", "t") == [(1, 77)]


@LONG
def test_an_error_the_source_met_too_is_expected_and_another_is_not(target: MysqlTarget) -> None:
    run(target, "CREATE TABLE t (id INT PRIMARY KEY)")
    run(target, "INSERT INTO t VALUES (1)")
    failing = SourceStatement(replace(QUERY, sql_bytes=b"INSERT INTO t VALUES (1)", error_code=1062), (), (), SOURCE)
    target.begin(foreign_keys=True)
    target.run_statement(failing)
    with pytest.raises(RplError) as caught:
        target.run_statement(
            replace(failing, query=replace(QUERY, sql_bytes=b"INSERT INTO t VALUES (2)", error_code=1062))
        )
    target.rollback()
    assert caught.value.errno == 3002
    with pytest.raises(TargetError) as caught:
        run(target, "INSERT INTO t VALUES (1)")
    assert caught.value.errno == 1062
    assert "Default database: 'shop'" in caught.value.message


@LONG
def test_a_partition_is_exchanged_with_a_table(target: MysqlTarget, server: MariadbServer) -> None:
    """With autocommit off, MariaDB waits for its own locks until lock_wait_timeout."""
    server.sql(
        "CREATE TABLE shop.p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (9));"
        "CREATE TABLE shop.x (id INT PRIMARY KEY); INSERT INTO shop.p VALUES (1); INSERT INTO shop.x VALUES (5)"
    )
    run(target, "SET @@session.innodb_lock_wait_timeout=2")
    run(target, "ALTER TABLE shop.p EXCHANGE PARTITION p0 WITH TABLE shop.x")
    assert (server.rows("shop", "p"), server.rows("shop", "x")) == ([(5,)], [(1,)])
    assert target.connection.exec_driver_sql("SELECT @@autocommit").scalar() == 0


@LONG
def test_load_data_reads_the_blocks_of_the_log_and_no_file(target: MysqlTarget, server: MariadbServer) -> None:
    run(target, "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))")
    sql = b"LOAD DATA INFILE '/etc/passwd' INTO TABLE t FIELDS TERMINATED BY ','"
    start, end = sql.index(b"INFILE"), sql.index(b" INTO") + 5
    load = ExecuteLoadQuery(
        query=replace(QUERY, sql_bytes=sql), file_id=1, name_start=start, name_end=end, duplicate_handling=0
    )
    target.begin(foreign_keys=True)
    target.run_statement(SourceStatement(load, (), (b"1,one\n2,", b"two\n"), SOURCE))
    target.commit()
    assert sorted(server.rows("shop", "t")) == [(1, "one"), (2, "two")]


EVENTS = [
    ("CREATE DEFINER=rpl@'%' EVENT `e v` ON SCHEDULE EVERY 1 DAY DO SELECT 1", "e v"),
    ("CREATE EVENT e ON SCHEDULE EVERY (1 + 1) DAY ON COMPLETION PRESERVE ENABLE COMMENT 'DO ENABLE' DO SELECT 1", "e"),
    ("CREATE EVENT `do` ON SCHEDULE AT '2037-01-01' /* COMMENT */ + INTERVAL 1 DAY DO SET @a='ENABLE'", "do"),
    ("ALTER EVENT e ENABLE -- DO", "e"),
    ("ALTER EVENT e ON COMPLETION PRESERVE RENAME TO f ENABLE", "f"),
    ("ALTER EVENT f DO BEGIN SELECT 2; END", "f"),
    ("ALTER EVENT f DISABLE;", "f"),
]


@LONG
def test_events_of_the_source_are_passive_from_their_first_moment(target: MysqlTarget, server: MariadbServer) -> None:
    """The general log shows it: one statement for each, so that the scheduler never meets an event that it may run."""
    server.sql("SET GLOBAL log_output='TABLE', general_log=1")
    for statement, name in EVENTS:
        run(target, statement)
        (found,) = server.sql(f"SELECT STATUS FROM information_schema.EVENTS WHERE EVENT_NAME='{name}'")
        assert found[0].endswith("SIDE_DISABLED"), statement
    server.sql("SET GLOBAL general_log=0")
    sent = server.sql("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument LIKE '%EVENT%'")
    assert sum("DISABLE ON SLAVE" in text for (text,) in sent) == len(EVENTS)


AWKWARD: list[tuple[str, Value, str]] = [
    ("BIGINT UNSIGNED", 2**64 - 1, "18446744073709551615"),
    ("BIT(64)", 2**64 - 1, "FFFFFFFFFFFFFFFF"),
    ("FLOAT", 1.100000023841858, "1.100000023841858"),
    ("DOUBLE", 1.7976931348623157e308, "1.7976931348623157e308"),
    ("DECIMAL(65,30)", "-" + "9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "9" * 30),
    ("DATE", "0000-00-00", "0000-00-00"),
    ("DATE", "2024-02-31", "2024-02-31"),
    ("TIME(6)", "-838:59:59.000000", "-838:59:59.000000"),
    ("DATETIME(3)", "2024-00-10 00:00:00.120", "2024-00-10 00:00:00.120"),
    ("TIMESTAMP(6) NULL", "1970-01-01 00:00:01.000001", "1970-01-01 00:00:01.000001"),
    ("YEAR", 0, "0000"),
    ("ENUM('a','b')", 0, ""),
    ("ENUM('a','b')", 2, "b"),
    ("SET('x','y','z')", 5, "x,z"),
    ("CHAR(4) CHARACTER SET latin1", b"\xe4\xdf", "E4DF"),
    ("VARCHAR(9) CHARACTER SET utf16", "a€".encode("utf-16-be"), "006120AC"),
    ("VARCHAR(9) CHARACTER SET gbk", b"\xc4\xe3'\\", "C4E3275C"),
    ("VARCHAR(20)", "it's \\ 😀\0".encode(), "it's \\ 😀\0".encode().hex().upper()),
    ("BINARY(4)", b"\0'\\\xff", "00275CFF"),
    ("JSON", '{"a": "é\\\\n😀", "b": [1, null]}', '{"a": "é\\\\n😀", "b": [1, null]}'),
    ("BIT(3)", None, "None"),
    ("VARCHAR(9)", None, "None"),
    ("LONGBLOB", bytes(range(256)) * 400, (bytes(range(256)) * 400).hex().upper()),
    ("POINT", bytes.fromhex("E6100000" "0101000000000000000000F03F0000000000000040"),
     "E61000000101000000000000000000F03F0000000000000040"),
    ("INET6", "2001:db8::ff00:42:8329", "2001:db8::ff00:42:8329"),
    ("UUID", "12345678-9abc-def0-8123-456789abcdef", "12345678-9abc-def0-8123-456789abcdef"),
    ("VARCHAR(300) CHARACTER SET latin1", b"\xe9" * 251, "E9" * 251),
]  # fmt: skip


@LONG
@pytest.mark.parametrize(("declared", "value", "shown"), AWKWARD, ids=[a[0] + f"-{i}" for i, a in enumerate(AWKWARD)])
def test_values_arrive_exactly_in_bulk_and_singly_and_are_found_again(
    target: MysqlTarget, server: MariadbServer, declared: str, value: Value, shown: str
) -> None:
    is_mariadb = server.kind == "mariadb"
    if declared in ("INET6", "UUID") and not is_mariadb:
        pytest.skip("a type of MariaDB")
    server.sql(
        f"SET sql_mode=''; CREATE TABLE shop.t (id INT, v {declared});"
        f" CREATE TABLE shop.k (id INT PRIMARY KEY, v {declared})"
    )
    model = model_of(target)
    both = RowSet((0, 1), [(1, value)])
    target.begin(foreign_keys=True)
    target.apply_chunks(
        [
            TableChunk(
                database="shop",
                table="t",
                absent=[],
                deletes=[],
                updates=[],
                inserts=[both],
                ordered=[],
                change_count=1,
                foreign_keys_off=False,
            )
        ],
        {("shop", "t"): model},
    )
    target.apply_change(RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(2, value)])), model)
    target.commit()
    keyed = model_of(target, "k")
    assert target.takes_length_prefixed == is_mariadb
    ways = [(False, [1]), (True, [3, 4, 5])] if is_mariadb else [(False, [1])]
    for length_prefixed, numbers, given in ((f, n, i) for f, n in ways for i in (True, False)):
        inserts = [RowSet((0, 1), [(number, value) for number in numbers])] if given else []
        updates = [] if given else [RowSet((1,), [(value, number) for number in numbers])]
        plain = TableChunk(
            database="shop",
            table="k",
            absent=[],
            deletes=[],
            updates=updates,
            inserts=inserts,
            ordered=[],
            change_count=1,
            foreign_keys_off=False,
        )
        loaded = in_bulk(plain, keyed, "mysql", length_prefixed=length_prefixed)
        assert loaded.bulk is not None
        target.begin(foreign_keys=True)
        if value == 0 and keyed.columns[1].type == "enum":  # a warning: these go one by one
            with pytest.raises((CountMismatch, TargetError)):
                target.apply_chunks([loaded], {("shop", "k"): keyed})
            target.rollback()
            for number in numbers:
                server.sql(f"SET sql_mode=''; REPLACE INTO shop.k VALUES ({number}, 0)")
            continue
        target.apply_chunks([loaded], {("shop", "k"): keyed})
        target.commit()
    kind = model.columns[1].type
    hexed = kind in ("bit", "point", "binary", "longblob", "char", "varchar")
    how = "HEX(v)" if hexed else "v+0e0" if kind == "float" else "CAST(v AS CHAR)"
    found = [row[0] for table in ("t", "k") for row in server.sql(f"SELECT {how} FROM shop.{table} ORDER BY id")]
    assert [str(v).replace("+", "") for v in found] == [shown] * (6 if is_mariadb else 3)
    target.begin(foreign_keys=True)
    target.apply_change(RowChange(kind=ChangeKind.DELETE, before=RowSet((0, 1), [(2, value)]), after=None), model)
    target.commit()
    assert server.sql("SELECT id FROM shop.t") == [(1,)]


@LONG
def test_an_update_does_not_touch_times_of_its_own(target: MysqlTarget, server: MariadbServer) -> None:
    server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT, at TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP)")
    server.sql("INSERT INTO shop.t VALUES (1, 1, '2001-01-01 00:00:00')")
    target.begin(foreign_keys=True)
    change = RowChange(kind=ChangeKind.UPDATE, before=RowSet((0,), [(1,)]), after=RowSet((1,), [(2,)]))
    target.apply_change(change, model_of(target))
    target.commit()
    assert server.rows("shop", "t") == [(1, 2, "2001-01-01 00:00:00")]


@LONG
def test_generated_columns_are_not_written(target: MysqlTarget, server: MariadbServer) -> None:
    server.sql("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT, g INT AS (v * 2) STORED)")
    target.begin(foreign_keys=True)
    chunk = TableChunk(
        database="shop",
        table="t",
        absent=[],
        deletes=[],
        updates=[],
        inserts=[RowSet((0, 1, 2), [(1, 4, 8)])],
        ordered=[],
        change_count=1,
        foreign_keys_off=False,
    )
    target.apply_chunks([chunk], {("shop", "t"): model_of(target)})
    target.commit()
    assert server.rows("shop", "t") == [(1, 4, 8)]


@LONG
def test_parents_are_inserted_before_and_deleted_after_their_children(
    target: MysqlTarget, server: MariadbServer
) -> None:
    server.sql("CREATE TABLE shop.p (id INT PRIMARY KEY)")
    server.sql("CREATE TABLE shop.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))")
    models = {("shop", name): model_of(target, name) for name in "pc"}
    child = TableChunk(
        database="shop",
        table="c",
        absent=[],
        deletes=[],
        updates=[],
        inserts=[RowSet((0, 1), [(1, 5)])],
        ordered=[],
        change_count=1,
        foreign_keys_off=False,
    )
    parent = TableChunk(
        database="shop",
        table="p",
        absent=[],
        deletes=[],
        updates=[],
        inserts=[RowSet((0,), [(5,)])],
        ordered=[],
        change_count=1,
        foreign_keys_off=False,
    )
    target.begin(foreign_keys=True)
    target.apply_chunks([child, parent], models)
    target.commit()
    gone = [
        TableChunk(
            database="shop",
            table="p",
            absent=[],
            deletes=[(5,)],
            updates=[],
            inserts=[],
            ordered=[],
            change_count=1,
            foreign_keys_off=False,
        ),
        TableChunk(
            database="shop",
            table="c",
            absent=[],
            deletes=[(1,)],
            updates=[],
            inserts=[],
            ordered=[],
            change_count=1,
            foreign_keys_off=False,
        ),
    ]
    target.begin(foreign_keys=True)
    target.apply_chunks(gone, models)
    target.commit()
    assert server.rows("shop", "p") == server.rows("shop", "c") == []
    target.begin(foreign_keys=True)
    with pytest.raises(CountMismatch):
        target.apply_chunks([child], models)
    target.rollback()


@LONG
@pytest.mark.parametrize("channel", ["", "orders", "o" * 64])
def test_a_channel_has_one_committer_and_gives_way_when_it_closes(
    target: MysqlTarget, server: MariadbServer, monkeypatch: pytest.MonkeyPatch, channel: str
) -> None:
    def wait(seconds: int) -> None:  # a server takes a moment to free the lock of a connection that was closed
        monkeypatch.setattr("rplctl.target.mysql.fence.LOCK_WAIT_SECONDS", seconds)

    target.fence(channel)
    other = open_target(server.url())
    wait(0)
    with pytest.raises(LockBusy):
        other.fence(channel)
    other.fence("another")
    wait(30)
    target.reconnect()
    target.begin(foreign_keys=True)  # the fence is there again before anything is written
    target.rollback()
    wait(0)
    with pytest.raises(LockBusy):
        other.fence(channel)
    with pytest.raises(LockBusy):  # and not through the connection that did not get it
        other.begin(foreign_keys=True)
    target.close()
    wait(30)
    other.fence(channel)
    other.close()


@LONG
def test_a_killed_connection_is_transient_and_replaced(target: MysqlTarget, server: MariadbServer) -> None:
    server.sql("CREATE TABLE shop.t (id INT)")
    model = model_of(target)
    target.begin(foreign_keys=True)
    server.sql(f"KILL {target.connection.exec_driver_sql('SELECT CONNECTION_ID()').scalar()}")
    with pytest.raises(TargetError) as caught:
        target.apply_change(RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0,), [(1,)])), model)
    assert caught.value.transient
    target.reconnect()
    assert model_of(target).columns[0].name == "id"


@LONG
def test_a_row_larger_than_max_allowed_packet_stops_at_once_and_says_so(server: MariadbServer) -> None:
    """Not as a connection that was lost, which would be tried again."""
    (most,) = server.sql("SELECT @@max_allowed_packet")[0]
    server.sql("SET GLOBAL max_allowed_packet=1048576; CREATE TABLE shop.t (id INT PRIMARY KEY, b LONGBLOB)")
    target = open_target(server.url())
    assert isinstance(target, MysqlTarget)
    try:
        zeros, quotes = bytes(1_000_000), b"'" * 1_000_000
        target.begin(foreign_keys=True)
        target.apply_change(
            RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(1, zeros)])), model_of(target)
        )
        with pytest.raises(TargetError, match=r"max_allowed_packet.*the target takes 1048576") as caught:
            target.apply_change(
                RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1), [(2, quotes)])), model_of(target)
            )
        target.commit()
        assert (caught.value.errno, caught.value.transient) == (1153, False)
        assert server.rows("shop", "t") == [(1, zeros)]
    finally:
        target.close()
        server.sql(f"SET GLOBAL max_allowed_packet={most}")


def test_a_value_that_its_column_does_not_hold_exactly_is_written_nowhere(
    target: MysqlTarget, server: MariadbServer
) -> None:
    """Strict mode refuses 100000 in FLOAT(10,5) and 7 characters in VARCHAR(5): only the first is what is stored."""
    run(target, "CREATE TABLE t (id INT PRIMARY KEY, x FLOAT(10,5), v VARCHAR(5), u TINYINT) ENGINE=MyISAM")
    rows: list[tuple[Value, ...]] = [(1, 100000.0, b"12345", 1), (2, 100000.0, b"1234567", 1), (3, 1e6, b"1", 1),
                                     (4, 1.0, b"1", 300)]  # fmt: skip
    target.begin(foreign_keys=True)
    errors = []
    for row in rows:
        try:
            target.apply_change(
                RowChange(kind=ChangeKind.INSERT, before=None, after=RowSet((0, 1, 2, 3), [row])), model_of(target)
            )
        except TargetError as error:
            errors.append(error.errno)
    target.commit()
    assert errors[1:] == [1264, 1264]
    assert errors[0] in (1264, 1406)
    assert server.rows("shop", "t") == [(1, 100000.0, "12345", 1)]
