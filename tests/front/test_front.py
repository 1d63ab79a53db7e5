"""The MySQL front answers real clients, lets nobody in who has not signed in, and lets a reader change nothing."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import mysql.connector
import pymysql
import pytest

from rplctl.accounts import ADMIN
from rplctl.command.user import add_user
from rplctl.config import load_config
from rplctl.demo import BINLOG_FOLDER
from rplctl.errors import RplError
from rplctl.front import session as conversation, sign_in
from rplctl.front.server import MysqlRequest, MysqlServer
from rplctl.front.table import STATEMENTS
from rplctl.history import read_history
from tests.cli.program import Program
from tests.command.test_serve import self_signed
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer, MysqlServer as RealMysql

PASSWORD = "C4nary's"


@pytest.fixture
def datadir(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A channel that is configured and stopped, and an account of each kind."""
    secret = tmp_path / "pw"
    secret.write_text("source-pw\n")
    secret.chmod(0o600)
    made = Program(tmp_path / "instance", capsys)
    change = ("change-master", "--master-host", "127.0.0.1", "--master-port", "1", "--master-user", "repl")
    assert made(*change, "--password-file", str(secret)).code == 0
    config = load_config(made.datadir, "")
    add_user(config, "monitor", "reader", PASSWORD)
    add_user(config, "old", "reader", PASSWORD, native=True)
    add_user(config, "dba", "admin", PASSWORD)
    return made.datadir


@contextmanager
def served(datadir: Path, **request: Any) -> Iterator[MysqlServer]:
    request = {"listen": "127.0.0.1:0", **request}
    with MysqlServer(MysqlRequest(**request), lambda name: load_config(datadir, name)).running() as server:
        yield server


def connect(server: MysqlServer, user: str, password: str = PASSWORD, **more: Any) -> Any:
    return pymysql.connect(host="127.0.0.1", port=server.port, user=user, password=password, **more)


def ask(server: MysqlServer, user: str, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    with connect(server, user) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return [column[0] for column in cursor.description or ()], list(cursor.fetchall())


def errno_of(server: MysqlServer, user: str, sql: str) -> int:
    try:
        ask(server, user, sql)
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return 0


def test_status_has_the_columns_and_types_of_mysql(datadir: Path, mysql: RealMysql) -> None:
    mysql.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'x' FOR CHANNEL 'front'")
    try:
        with served(datadir) as server:
            assert described(connect(server, "monitor"), "SHOW REPLICA STATUS") == described(
                mysql.connect(), "SHOW REPLICA STATUS"
            )
    finally:
        mysql.sql("RESET REPLICA ALL FOR CHANNEL 'front'")


def test_status_has_the_columns_and_types_of_mariadb(datadir: Path, mariadb: MariadbServer) -> None:
    mariadb.sql("CHANGE MASTER 'front' TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'x'")
    try:
        with served(datadir, flavor="mariadb") as server:
            assert described(connect(server, "monitor"), "SHOW SLAVE STATUS") == described(
                mariadb.connect(), "SHOW SLAVE 'front' STATUS"
            )
            assert described(connect(server, "monitor"), "SHOW ALL SLAVES STATUS") == described(
                mariadb.connect(), "SHOW ALL SLAVES STATUS"
            )
    finally:
        mariadb.sql("RESET SLAVE 'front' ALL")


def described(connection: pymysql.connections.Connection[Any], sql: str) -> list[tuple[str, int]]:
    with connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return [(column[0], column[1]) for column in cursor.description]


def test_values_are_those_of_show_status(datadir: Path) -> None:
    with served(datadir) as server:
        names, rows = ask(server, "monitor", "SHOW REPLICA STATUS")
        row = dict(zip(names, rows[0], strict=True))
        assert (row["Source_Host"], row["Source_Port"], row["Replica_IO_Running"]) == ("127.0.0.1", 1, "No")
        assert row["Seconds_Behind_Source"] is None
        assert ask(server, "monitor", "SHOW VARIABLES LIKE 'read_only'")[1] == [("read_only", "ON")]
        names, rows = ask(server, "monitor", "SELECT @@read_only, VERSION(), 'a''b' AS c, 1 + 1")
        assert names == ["@@read_only", "VERSION()", "c", "1 + 1"]
        assert rows == [(1, server.front.version, "a'b", 2)]


@pytest.mark.long("One plugin stays; the others have the same account.", keeps=r"^monitor$")
@pytest.mark.parametrize("user", ["monitor", "old", "dba"])
def test_only_the_right_password_signs_in(datadir: Path, tmp_path: Path, user: str) -> None:
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(self_signed())
    tls: dict[str, Any] = {"ssl": {"ca": str(certificate)}}
    with served(datadir, tls_cert=certificate) as server:
        for more in ({"ssl_disabled": True}, tls, {"ssl_disabled": True}):  # full, TLS, fast
            with connect(server, user, **more) as connection:
                connection.ping()
            for name, password in ((user, "wrong"), (user, ""), ("nobody", PASSWORD), ("", "")):
                with pytest.raises(pymysql.MySQLError) as refused:
                    connect(server, name, password, **more)
                assert refused.value.args[0] == 1045
    with served(datadir, tls_cert=certificate, require_tls=True) as server:
        connect(server, user, **tls).close()
        with pytest.raises(pymysql.MySQLError) as refused:
            connect(server, user, ssl_disabled=True)
        assert refused.value.args[0] == 3159


def test_a_client_that_ignores_its_refusal_is_disconnected(datadir: Path) -> None:
    with served(datadir) as server, socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        packet(client)
        body = struct.pack("<IIB23x", 0x8A209, 1 << 24, 45) + b"old\0" + b"\x14" + bytes(20)
        body += b"mysql_native_password\0"
        client.sendall(len(body).to_bytes(3, "little") + b"\1" + body)
        answer = packet(client)
        assert answer[:1] == b"\xff" and struct.unpack("<H", answer[1:3]) == (1045,)
        with suppress(OSError):
            client.sendall(b"\x09\0\0\0\x03SELECT 1")
            assert client.recv(100) == b""


def packet(client: socket.socket) -> bytes:
    head = client.recv(4, socket.MSG_WAITALL)
    return client.recv(int.from_bytes(head[:3], "little"), socket.MSG_WAITALL)


def test_a_reader_changes_nothing(datadir: Path) -> None:
    with served(datadir) as server:
        administrative = [phrase for phrase, role, _ in STATEMENTS if role == ADMIN]
        for phrase in administrative:
            sql = " ".join(word.split("|")[0] for word in phrase.split())
            assert errno_of(server, "monitor", sql) == 1227, sql
        for sql in ("RESET REPLICA ALL", "STOP SLAVE", "CHANGE MASTER TO MASTER_HOST='x'"):
            assert errno_of(server, "monitor", sql) == 1227, sql
        for sql, number in {
            "INSERT INTO t VALUES (1)": 1290,
            "DROP DATABASE d": 1290,
            "SET @@global.read_only = 0": 1235,
            "SET GTID_NEXT = '0-1-1'": 1227,
            "SET @a = 1, SESSION gtid_next = 'AUTOMATIC'": 1235,
            "SET @a = 1 + 1": 1235,
            "SET @a = NOW()": 1235,
            "SET @a = CONCAT('a', 'b')": 1235,
            "SET @a = 'a' 'b'": 1235,
            "SET @a = TRUE, @b = -1.5, @c = NULL, autocommit = 1": 0,
            "SET SESSION default_master_connection = 'c'": 1235,
            "frobnicate": 1064,
            "SELECT @@nope": 1193,
            "SELECT nope()": 1305,
            "SELECT a": 1054,
            "SELECT * FROM t": 1046,
            "SELECT * FROM mysql.t": 1146,
            "SELECT * FROM nope.t": 1049,
            "SELECT load_extension('x')": 1305,
            "SHOW REPLICA STATUS FOR CHANNEL 'nope'": 3074,
            "SELECT '": 1064,
        }.items():
            assert errno_of(server, "monitor", sql) == number, sql


def test_an_administrator_changes_the_channel_and_history_names_him(datadir: Path) -> None:
    with served(datadir) as server:
        assert errno_of(server, "dba", "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'db9', SOURCE_PORT = 3309") == 0
        assert ask(server, "dba", "SHOW REPLICA STATUS")[1][0][1] == "db9"
        with connect(server, "dba") as connection, connection.cursor() as cursor:
            cursor.execute("STOP REPLICA")
            cursor.execute("SHOW WARNINGS")
            assert [row[:2] for row in cursor.fetchall()] == [("Note", 3084)]
            for sql, expected in {
                "SHOW ERRORS": (),
                "SHOW COUNT(*) ERRORS": ((0,),),
                "SHOW COUNT(*) WARNINGS": ((1,),),
            }.items():
                cursor.execute(sql)
                assert tuple(cursor.fetchall()) == expected
            with pytest.raises(pymysql.MySQLError):
                cursor.execute("frobnicate")
            cursor.execute("SHOW WARNINGS")
            assert [row[:2] for row in cursor.fetchall()] == [("Error", 1064)]
        assert errno_of(server, "dba", "KILL 99999") == 1094
        assert errno_of(server, "dba", "RESET REPLICA ALL") == 0
        assert ask(server, "dba", "SHOW REPLICA STATUS")[1] == []
    done = {event.Event: event.Done_By for event in read_history(datadir)}
    assert done["reset"] == "dba@127.0.0.1 over SQL"


def test_prepared_statements_take_and_give_typed_values(datadir: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(self_signed())
    with served(datadir, tls_cert=certificate) as server:
        options = {"host": "127.0.0.1", "port": server.port, "user": "monitor", "password": PASSWORD}
        client: Any = mysql.connector.connect(**options, use_pure=True)
        cursor = client.cursor(prepared=True)
        cursor.execute("SELECT %s + 1, CONCAT(%s, 'x'), NULL", (4, "a'\\b"))
        assert cursor.fetchall() == [(5, "a'\\bx", None)]
        cursor.execute("SHOW REPLICA STATUS")
        assert len(cursor.fetchall()[0]) == 60
        client.close()


@pytest.mark.parametrize("user", ["old", "dba"])
def test_a_connection_changes_its_account_only_with_the_password(datadir: Path, tmp_path: Path, user: str) -> None:
    """The rights, the variables and the locks of the account before are gone; a failure ends the connection."""
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(self_signed())
    with served(datadir, tls_cert=certificate) as server:
        options = {"host": "127.0.0.1", "port": server.port, "user": "dba", "password": PASSWORD, "use_pure": True}
        client: Any = mysql.connector.connect(**options)
        cursor = client.cursor()
        cursor.execute("SET @a = 'x'")
        cursor.execute("LOCK INSTANCE FOR BACKUP")
        (session,) = server.front.sessions.values()
        assert session.locks and session.variables
        client.cmd_change_user(user, PASSWORD, "mysql")
        assert not session.locks and not session.variables
        cursor.execute("SELECT CURRENT_USER(), DATABASE()")
        assert cursor.fetchall() == [(f"{user}@127.0.0.1", "mysql")]
        if user == "old":
            with pytest.raises(mysql.connector.Error) as refused:
                cursor.execute("STOP REPLICA")
            assert refused.value.errno == 1227
        for name, password in ((user, "wrong"), ("nobody", PASSWORD)):
            other: Any = mysql.connector.connect(**options)
            with pytest.raises(mysql.connector.Error) as refused:
                other.cmd_change_user(name, password)
            assert refused.value.errno == 1045
            with pytest.raises(mysql.connector.Error):
                other.cmd_query("SELECT 1")
            vars(other)["_socket"].sock.close()
        client.close()
        wait_until(lambda: not server.front.sessions)


def test_a_client_that_ignores_its_refusal_to_change_is_disconnected(datadir: Path) -> None:
    with served(datadir) as server, connect(server, "dba") as connection:
        connection._execute_command(17, b"old\0\0\0")
        assert connection._read_packet()._data[:1] == b"\xfe"  # another plugin, and a new scramble
        connection.write_packet(bytes(20))
        with pytest.raises(pymysql.MySQLError) as refused:
            connection._read_packet()
        assert refused.value.args[0] == 1045
        with pytest.raises(pymysql.MySQLError):
            connection.query("STOP REPLICA")
        connection._force_close()


def test_a_prepared_statement_is_executed_again_without_its_types(datadir: Path) -> None:
    """As PHP and the C client do it. Long data are sent in pieces, and hold for one execution."""
    with served(datadir) as server, connect(server, "monitor") as connection:
        statement = prepared(connection, "SELECT CONCAT(?, '|', ?)")
        body = struct.pack("<IBI", statement, 0, 1) + b"\0"
        types, values = b"\1\xfd\0\xfd\0", b"\1a\2b'"
        assert executed(connection, body + types + values) == b"a|b'"
        assert executed(connection, body + b"\0" + b"\1c\1d") == b"c|d"
        for piece in (b"long ", b"text"):
            connection._execute_command(24, struct.pack("<IH", statement, 0) + piece)
        assert executed(connection, body + b"\0" + b"\1d") == b"long text|d"
        assert executed(connection, body + b"\0" + b"\1e\1f") == b"e|f"
        moment = b"\x0b" + struct.pack("<HBBBBBI", 2026, 11, 30, 9, 5, 6, 70)
        duration = b"\x0c" + struct.pack("<BIBBBI", 1, 2, 3, 4, 5, 600000)
        found = executed(connection, body + b"\1\x0c\0\x0b\0" + moment + duration)
        assert found == b"2026-11-30 09:05:06.000070|-51:04:05.600000"
        other = prepared(connection, "SELECT ?")
        with pytest.raises(pymysql.MySQLError) as refused:
            executed(connection, struct.pack("<IBI", other, 0, 1) + b"\0\0" + b"\1a")
        assert refused.value.args[0] == 1210
        with pytest.raises(pymysql.MySQLError) as refused:
            executed(connection, struct.pack("<IBI", 99, 0, 1))
        assert refused.value.args[0] == 1243
        with pytest.raises(pymysql.MySQLError) as refused:
            prepared(connection, "frobnicate")
        assert refused.value.args[0] == 1064


def test_a_connection_keeps_a_limited_number_of_bytes(datadir: Path) -> None:
    with served(datadir) as server, connect(server, "monitor") as connection, connection.cursor() as cursor:
        sql = f"SELECT '{'x' * 1_000_000}'"
        statements = [prepared(connection, f"{sql}, ?") for _ in range(3)]
        with pytest.raises(pymysql.MySQLError, match="have at most"):
            for number in range(3):
                cursor.execute(f"PREPARE p{number} FROM 'SELECT \\'{'x' * 500_000}\\''")
        body = struct.pack("<IH", statements[0], 0) + b"x" * 900_000
        connection._execute_command(24, body)  # without an answer, and without an effect
        (session,) = server.front.sessions.values()
        cursor.execute("SELECT 1")
        assert not session.prepared[statements[0]].long_data
        body = struct.pack("<IBI", statements[0], 0, 1) + b"\0\1\xfd\0"
        with pytest.raises(pymysql.MySQLError, match="have at most"):
            executed(connection, body)


def prepared(connection: Any, sql: str) -> int:
    connection._execute_command(22, sql)
    head = connection._read_packet()._data
    number, _, count = struct.unpack("<IHH", head[1:9])
    for _ in range(count + 1 if count else 0):
        connection._read_packet()
    return int(number)


def executed(connection: Any, body: bytes) -> bytes:
    """The only value of the only row."""
    connection._execute_command(23, body)
    for _ in range(3):
        connection._read_packet()
    row = connection._read_packet()._data
    connection._read_packet()
    return bytes(row[3:])


def test_the_owner_needs_no_password_on_the_unix_socket(datadir: Path, tmp_path: Path) -> None:
    path = tmp_path / "mysql.sock"
    with served(datadir, listen="", socket=path):
        for program in (["mariadb", "-E", "-e", "SHOW REPLICA STATUS; STOP REPLICA"], ["mysqladmin", "status"]):
            done = subprocess.run([program[0], "-S", str(path), *program[1:]], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
    assert not path.exists()


def test_the_socket_of_a_server_that_answers_is_not_taken_away(datadir: Path, tmp_path: Path) -> None:
    path = tmp_path / "mysql.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with served(datadir, listen="", socket=path):
        with pytest.raises(RplError, match="a server answers"), served(datadir, listen="", socket=path):
            pass
        done = subprocess.run(["mysqladmin", "-S", str(path), "status"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.long("test_an_administrator_changes_the_channel_and_history_names_him stays in make test.")
@pytest.mark.usefixtures("children_forked")
def test_threads_start_and_stop_by_statements_as_they_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Program(tmp_path / "instance", capsys)
    assert made("init", "--spark", "auto").code == 0
    assert made("change-master", "--master-binlog-dir", os.fspath(BINLOG_FOLDER)).code == 0
    add_user(load_config(made.datadir, ""), "dba", "admin", PASSWORD)

    def running(server: MysqlServer) -> tuple[str, str]:
        names, rows = ask(server, "dba", "SHOW REPLICA STATUS")
        row = dict(zip(names, rows[0], strict=True))
        return row["Replica_IO_Running"], row["Replica_SQL_Running"]

    with served(made.datadir) as server:
        try:
            for sql in ("START REPLICA UNTIL SOURCE_LOG_POS = 'abc'", "START REPLICA UNTIL SOURCE_LOG_POS = abc"):
                assert errno_of(server, "dba", sql) == 1064
            assert errno_of(server, "dba", "START REPLICA UNTIL SOURCE_LOG_POS = 4") == 1277
            assert running(server) == ("No", "No"), "a condition that cannot be read starts nothing"
            assert errno_of(server, "dba", "START REPLICA IO_THREAD") == 0
            wait_until(lambda: running(server) == ("Yes", "No"))
            assert errno_of(server, "dba", "START REPLICA SQL_THREAD") == 0
            wait_until(lambda: running(server) == ("Yes", "Yes"))
            assert errno_of(server, "dba", "STOP SLAVE IO_THREAD") == 0
            wait_until(lambda: running(server) == ("No", "Yes"))
        finally:
            assert errno_of(server, "dba", "STOP REPLICA") == 0
        assert running(server) == ("No", "No")
    done = [event.Done_By for event in read_history(made.datadir) if event.Event in ("start", "stop")]
    assert done and set(done) == {"dba@127.0.0.1 over SQL"}


def test_the_client_of_mysql_9_signs_in(datadir: Path, mysql: RealMysql) -> None:
    with served(datadir) as server:
        options = ["-h127.0.0.1", f"-P{server.port}", "-umonitor", "--get-server-public-key"]
        done = subprocess.run(
            [*mysql.programs["client"], *options, "-E", "-e", "SHOW REPLICA STATUS"],
            env={**os.environ, "MYSQL_PWD": PASSWORD},
            capture_output=True,
            text=True,
        )
    assert "Source_Host: 127.0.0.1" in done.stdout, done.stderr


def test_beyond_this_machine_it_needs_tls(datadir: Path) -> None:
    with pytest.raises(Exception, match="TLS"), served(datadir, listen="0.0.0.0:0"):
        pass


@pytest.mark.long("Random packets are for the long part; test_a_reader_changes_nothing stays.")
def test_random_packets_end_a_connection_and_nothing_else(datadir: Path) -> None:
    random = Random(47)
    with served(datadir) as server:
        for _ in range(60):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client, suppress(OSError):
                packet(client)
                body = random.randbytes(random.randrange(0, 200))
                head = len(body).to_bytes(3, "little") if random.random() < 0.8 else random.randbytes(3)
                client.sendall(head + b"\1" + body)
        admitted = connect(server, "dba")
        for _ in range(60):
            with suppress(pymysql.MySQLError, OSError):
                command = random.choice([2, 3, 9, 12, 14, 22, 23, 25, 26, 31, random.randrange(4, 256)])
                admitted._execute_command(command, random.randbytes(random.randrange(0, 60)))
                admitted._sock.settimeout(0.05)
                admitted._read_packet()
            with suppress(pymysql.MySQLError, OSError):
                admitted._force_close()
            admitted = connect(server, "dba")
        admitted.close()
        assert ask(server, "monitor", "SELECT 1")[1] == [(1,)]


def test_a_client_that_is_slow_to_sign_in_is_disconnected(datadir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.front.server.SIGN_IN_S", 0.2)
    with served(datadir) as server, socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        packet(client)
        assert client.recv(100) == b""
        wait_until(lambda: not server.front.sessions, 20)


def test_a_statement_that_is_too_long_is_refused(datadir: Path) -> None:
    with served(datadir) as server:
        sql = "SELECT '" + "x" * conversation.LONGEST_STATEMENT + "'"
        assert errno_of(server, "monitor", sql) in (1153, 2006, 2013)
        assert sign_in.SIGN_IN_PACKET < conversation.LONGEST_STATEMENT
