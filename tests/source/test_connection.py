"""Connecting: what a rogue source gets (nothing), and which errors are final (design D14)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.event.gtid import MysqlGtidSet
from rplctl.handshake import LONGEST_WAIT_S
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source import DumpStart, ReplicaIdentity
from rplctl.source.base import SourceIdentity
from rplctl.source.connection import check_identity, connect
from tests.kit.private_server import free_port
from tests.kit.replica import wait_until
from tests.kit.servers import MariadbServer, MysqlServer
from tests.source.fake_server import OK, SALT, FakeServer

LONG = pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")

PASSWORD = "s3cret-canary"
REPLICA = ReplicaIdentity(77, "00000000-0000-0000-0000-000000000077")
START = DumpStart(BinlogPosition("bin.000001", 4))


def connect_to(server: FakeServer, **settings: Any) -> None:
    info = MasterInfo(host="127.0.0.1", port=server.port, user_name="rpl", **settings)
    connect(info, PASSWORD, START, REPLICA, Config(Path("/nowhere"), replica_net_timeout=5)).close()


class _AuthSwitch(FakeServer):
    """Asks for another plugin, as a thief would."""

    switch_to = b"mysql_clear_password"

    def authenticate(self, client: socket.socket) -> None:
        self.send(client, 2, b"\xfe" + self.switch_to + b"\0" + SALT + b"\0")
        sequence, answer = self.read(client)
        self.received.append(answer)
        self.send(client, sequence + 1, OK)


class _FullSha2(FakeServer):
    """caching_sha2_password that never knows the hash: asks for the password, then offers its own RSA key."""

    plugin = b"caching_sha2_password"

    def authenticate(self, client: socket.socket) -> None:
        self.send(client, 2, b"\x01\x04")
        _, answer = self.read(client)
        self.received.append(answer)


@pytest.mark.parametrize(
    "plugin", [b"mysql_clear_password", b"dialog", b"mysql_old_password", b"sha256_password", b"unheard_of"]
)
def test_a_rogue_source_never_gets_the_password(plugin: bytes) -> None:
    server = _AuthSwitch()
    server.switch_to = plugin
    with server, pytest.raises(SourceError) as caught:
        connect_to(server)
    assert PASSWORD.encode() not in b"".join(server.received)
    assert caught.value.errno in (2059, 2061) and not caught.value.transient
    assert PASSWORD not in str(caught.value)


def test_full_sha2_authentication_needs_tls_or_a_key_that_the_operator_allowed() -> None:
    with _FullSha2() as server, pytest.raises(SourceError, match="Authentication requires secure connection") as caught:
        connect_to(server)
    assert len(server.received) == 1 and caught.value.errno == 2061


def test_tls_never_falls_back_to_none() -> None:
    with FakeServer() as server, pytest.raises(SourceError) as caught:
        connect_to(server, enabled_ssl=True)
    assert caught.value.errno == 2026
    assert b"rpl" not in b"".join(server.received)


class _AsksForAFile(FakeServer):
    def answer(self, client: socket.socket, payload: bytes) -> None:
        if not payload[1:].startswith(b"SELECT"):
            super().answer(client, payload)
            return
        self.send(client, 1, b"\xfb/etc/passwd")
        self.received.append(self.read(client)[1])


def test_a_source_that_asks_for_a_local_file_is_refused() -> None:
    with _AsksForAFile() as server, pytest.raises(SourceError, match="LOAD DATA LOCAL"):
        connect_to(server)
    assert not any(b"root:" in data for data in server.received)


class _Garbage(FakeServer):
    reply = b""

    def talk(self, client: socket.socket) -> None:
        client.sendall(self.reply)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\x00",
        b"\x01\x00\x00\x05\x0a",
        b"\x17\x00\x00\x00\xff\x10\x04Too many connections",
    ],
)
def test_a_server_that_is_none_is_a_source_error(reply: bytes) -> None:
    server = _Garbage()
    server.reply = reply
    with server, pytest.raises(SourceError):
        connect_to(server)


@pytest.mark.parametrize(
    ("number", "text"), [(1040, "Too many connections"), (1129, "Host is blocked"), (1130, "Host is not allowed")]
)
def test_a_refusal_instead_of_a_greeting_is_tried_again_as_mysql_does(number: int, text: str) -> None:
    server = _Garbage()
    error = b"\xff" + number.to_bytes(2, "little") + text.encode()
    server.reply = len(error).to_bytes(3, "little") + b"\0" + error
    with server, pytest.raises(SourceError, match=text) as caught:
        connect_to(server)
    assert caught.value.errno == number and caught.value.transient


def test_a_closed_port_is_tried_again() -> None:
    info = MasterInfo(host="127.0.0.1", port=free_port(), user_name="rpl")
    with pytest.raises(SourceError, match="Can't connect to MySQL server on") as caught:
        connect(info, PASSWORD, START, REPLICA, Config(Path("/nowhere"), replica_net_timeout=5))
    assert caught.value.errno == 2003 and caught.value.transient


@pytest.mark.parametrize(
    ("answer", "missing"), [("server_id", "SELECT @@GLOBAL.server_id"), ("UNIX_TIMESTAMP", "UNIX_TIMESTAMP")]
)
def test_an_answer_without_a_value_is_a_source_error(answer: str, missing: str) -> None:
    server = FakeServer()
    del server.answers[answer]
    with server, pytest.raises(SourceError, match="returned no row"):
        connect_to(server)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        *(("server_id", text) for text in ("-1", "4294967296", "1e3", "seven", "")),
        *(("UNIX_TIMESTAMP", text) for text in ("nan", "inf", "-1", "1e300", "now")),
        *(("server_uuid", text) for text in ("x", "3e11fa47-71ca-11e1-9e33-c80aa942956", "'; DROP TABLE t; --")),
    ],
)
def test_an_answer_that_no_server_gives_is_a_source_error(answer: str, text: str) -> None:
    server = FakeServer(version="9.1.0")
    server.answers[answer] = text
    with server, pytest.raises(SourceError, match="cannot read the answer of the source: it"):
        connect_to(server)


def test_a_net_timeout_beyond_what_the_system_can_count_is_as_good_as_none() -> None:
    with FakeServer() as server:
        info = MasterInfo(host="127.0.0.1", port=server.port, user_name="rpl")
        config = Config(Path("/nowhere"), replica_net_timeout=31_536_000)  # the largest, as in MySQL
        connection = connect(info, PASSWORD, START, REPLICA, config)
        assert connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == LONGEST_WAIT_S * 1000
        connection.close()


def test_a_source_with_our_server_id_is_refused() -> None:
    server = FakeServer()
    server.answers["server_id"] = "77"
    with server, pytest.raises(SourceError, match="equal MySQL server ids") as caught:
        connect_to(server)
    assert caught.value.errno == 1593 and not caught.value.transient


@pytest.mark.parametrize(
    ("version", "is_mariadb", "errno"),
    [("9.7.0", False, 13117), ("5.7.44", False, 1593), ("10.11.6-MariaDB", True, 1593)],
)
def test_equal_server_ids_have_the_number_of_the_vendor(version: str, is_mariadb: bool, errno: int) -> None:
    """MySQL 9.7 said 13117 when it was asked, MariaDB 10.11 and MySQL 5.7 say 1593."""
    found = replace(identity(server_id=77), version=version, is_mariadb=is_mariadb)
    with pytest.raises(SourceError) as caught:
        check_identity(found, MasterInfo(host="h"), START, REPLICA)
    assert caught.value.errno == errno


def test_with_replicate_same_server_id_even_our_own_id_may_be_the_sources() -> None:
    check_identity(identity(server_id=77), MasterInfo(host="h"), START, None)
    with pytest.raises(SourceError, match="--replicate-same-server-id option"):
        check_identity(identity(server_id=77), MasterInfo(host="h"), START, REPLICA)


@pytest.mark.parametrize(
    ("version", "start", "option"),
    [
        ("5.5.5-10.11.19-MariaDB-log", DumpStart(START.position, mysql_gtid_set=MysqlGtidSet()), "--master-use-gtid"),
        ("9.7.4", DumpStart(START.position, mariadb_gtid=""), "--master-auto-position 1"),
    ],
)
def test_gtids_of_the_other_vendor_are_answered_with_the_option_to_use(
    version: str, start: DumpStart, option: str
) -> None:
    with FakeServer(version=version) as server, pytest.raises(SourceError) as caught:
        info = MasterInfo(host="127.0.0.1", port=server.port, user_name="rpl")
        connect(info, PASSWORD, start, REPLICA, Config(Path("/nowhere"), replica_net_timeout=5)).close()
    assert option in caught.value.hint


def test_full_sha2_authentication_says_what_each_way_out_means() -> None:
    with _FullSha2() as server, pytest.raises(SourceError) as caught:
        connect_to(server)
    for word in ("--master-ssl 1", "--master-ssl-ca", "--get-master-public-key 1", "--master-public-key-path"):
        assert word in caught.value.hint


def identity(server_id: int = 1, uuid: str = "a") -> SourceIdentity:
    return SourceIdentity(server_id=server_id, uuid=uuid, version="9.7.4", is_mariadb=False, clock_difference=0.0)


@pytest.mark.parametrize("found", [identity(server_id=2), identity(uuid="b")])
def test_positions_are_not_carried_to_another_server_behind_the_address(found: SourceIdentity) -> None:
    info = MasterInfo(host="h", uuid="a", master_server_id=1)
    with pytest.raises(SourceError, match="is not the one that bin.000001:4 belongs to"):
        check_identity(found, info, START, REPLICA)
    check_identity(
        found, info, DumpStart(START.position, mariadb_gtid="0-1-5"), REPLICA
    )  # GTIDs mean the same everywhere
    check_identity(identity(), info, START, REPLICA)


@pytest.fixture(scope="module")
def sha2_server(mysql: MysqlServer) -> Iterator[MysqlServer]:
    mysql.sql("CREATE USER sha2@'%' IDENTIFIED BY 'pw'; GRANT REPLICATION SLAVE ON *.* TO sha2@'%'")
    yield mysql
    mysql.sql("DROP USER sha2@'%'")


def connect_sha2(server: MysqlServer, password: str = "pw", **settings: Any) -> SourceIdentity:
    server.sql("FLUSH PRIVILEGES")  # empties the hash cache: full authentication each time
    info = MasterInfo(host="127.0.0.1", port=server.port, user_name="sha2", **settings)
    connection = connect(info, password, START, REPLICA, Config(Path("/nowhere")))
    connection.close()
    return connection.identity


@LONG
def test_caching_sha2_over_tls(sha2_server: MysqlServer) -> None:
    assert not connect_sha2(sha2_server, enabled_ssl=True).is_mariadb


@LONG
def test_caching_sha2_with_the_servers_key(sha2_server: MysqlServer) -> None:
    assert connect_sha2(sha2_server, get_public_key=True).uuid


@LONG
def test_caching_sha2_with_a_pinned_key(sha2_server: MysqlServer) -> None:
    connect_sha2(sha2_server, public_key_path=str(sha2_server.data / "public_key.pem"))


@LONG
def test_caching_sha2_without_either_is_refused(sha2_server: MysqlServer) -> None:
    with pytest.raises(SourceError, match="secure connection"):
        connect_sha2(sha2_server)


@LONG
def test_a_verified_certificate(sha2_server: MysqlServer) -> None:
    connect_sha2(sha2_server, enabled_ssl=True, ssl_ca=str(sha2_server.data / "ca.pem"))


@LONG
def test_a_certificate_of_another_host_is_refused_when_it_is_to_be_verified(sha2_server: MysqlServer) -> None:
    with pytest.raises(SourceError) as caught:
        connect_sha2(
            sha2_server, enabled_ssl=True, ssl_ca=str(sha2_server.data / "ca.pem"), ssl_verify_server_cert=True
        )
    assert caught.value.errno in (2003, 2026)


@LONG
def test_an_unknown_ca_is_refused(sha2_server: MysqlServer) -> None:
    with pytest.raises(SourceError):
        connect_sha2(
            sha2_server,
            enabled_ssl=True,
            ssl_ca=ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt",
        )


@LONG
def test_a_wrong_password_is_1045_and_tried_again(sha2_server: MysqlServer) -> None:
    with pytest.raises(SourceError, match="Access denied") as caught:
        connect_sha2(sha2_server, "wrong", enabled_ssl=True)
    assert caught.value.errno == 1045 and caught.value.transient


def test_a_mariadb_source_may_ask_for_a_signature(mariadb: MariadbServer) -> None:
    mariadb.sql("INSTALL SONAME 'auth_ed25519'")
    mariadb.sql("CREATE USER signs@'%' IDENTIFIED VIA ed25519 USING PASSWORD('pw')")
    mariadb.sql("GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO signs@'%'")
    info = MasterInfo(host=mariadb.host, port=mariadb.port, user_name="signs")
    try:
        connect(info, "pw", START, REPLICA, Config(Path("/nowhere"))).close()
    finally:
        mariadb.sql("DROP USER signs@'%'")
        mariadb.sql("UNINSTALL SONAME 'auth_ed25519'")


def may_not_replicate(source: MariadbServer, native: MariadbServer, errno: int) -> None:
    """The number and the words of a native replica whose account lacks REPLICATION SLAVE."""
    source.sql("DROP USER IF EXISTS weak@'%'; CREATE USER weak@'%' IDENTIFIED BY 'w'; GRANT SELECT ON *.* TO weak@'%'")
    info = MasterInfo(host=source.host, port=source.port, user_name="weak", get_public_key=True)
    with pytest.raises(SourceError, match="GISTER_.* failed: Access denied .*1045") as caught:
        connect(info, "w", START, REPLICA, Config(Path("/nowhere"), replica_net_timeout=5))
    assert caught.value.errno == errno and caught.value.transient
    assert "GRANT REPLICATION SLAVE" in (caught.value.hint or "")
    to = "CHANGE REPLICATION SOURCE TO {0}HOST='{1}', {0}PORT={2}, {0}USER='weak', {0}PASSWORD='w', {0}CONNECT_RETRY=1"
    if errno == 13120:
        native.sql(to.format("SOURCE_", source.host, source.port) + ", GET_SOURCE_PUBLIC_KEY=1; START REPLICA")
        told = "SELECT last_error_number FROM performance_schema.replication_connection_status"
        wait_until(lambda: native.sql(told) == [(errno,)])
        native.sql("STOP REPLICA; RESET REPLICA ALL")


@pytest.mark.slow
def test_an_account_that_may_not_replicate_has_mysqls_error(
    mysql: MysqlServer, mysql_factory: Callable[..., MysqlServer]
) -> None:
    may_not_replicate(mysql, mysql_factory(), 13120)


@pytest.mark.slow
def test_an_account_that_may_not_replicate_has_mariadbs_error(mariadb: MariadbServer) -> None:
    may_not_replicate(mariadb, mariadb, 1597)
