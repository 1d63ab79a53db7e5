"""`serve`: what each path answers, and to whom. tests/command/watching/test_page.py opens the page in a browser."""

from __future__ import annotations

import base64
import datetime
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from prometheus_client.parser import text_string_to_metric_families as table_groups

from rplctl.command.serve import MOST_CONNECTIONS, HttpRequest, StatusServer, is_local, serve
from rplctl.command.show_status import COLUMNS
from rplctl.command.watching.watch import Watch
from rplctl.config import load_config
from rplctl.demo import BINLOG_FOLDER
from rplctl.errors import RplError, UsageError
from tests.cli.program import Program
from tests.kit.replica import Replica, wait_until


@pytest.fixture
def configured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    """The default channel is configured: a server that nobody will ask."""
    password = tmp_path / "pw"
    password.write_text("C4nary\n")
    password.chmod(0o600)
    made = Program(tmp_path / "instance", capsys)
    assert made("change-master", "--master-host", "db1", "--password-file", str(password)).code == 0
    return made


PATHS = ("/", "/metrics", "/health/live", "/health/ready", "/status.json")


@contextmanager
def served(datadir: Path, *channels: str, **request: object) -> Iterator[StatusServer]:
    watch = Watch(lambda: [(name, load_config(datadir, name)) for name in channels or ("",)], checks=True)
    with serve(HttpRequest(listen="127.0.0.1:0", **request), watch) as server:  # type: ignore[arg-type]
        wait_until(lambda: bool(watch.latest.at), 10)
        yield server


def ask(
    server: StatusServer, path: str, method: str = "GET", *, tls: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    port = server.server_address[1]
    address = ("127.0.0.1", int(port))
    connection = (
        http.client.HTTPSConnection(*address, timeout=5, context=tls)
        if tls
        else http.client.HTTPConnection(*address, timeout=5)
    )
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def test_each_path_answers_what_it_is_for(configured: Program) -> None:
    with served(configured.datadir) as server:
        status, headers, page = ask(server, "/")
        assert status == 200 and headers["content-type"].startswith("text/html") and b"<title>rplctl" in page
        names = {sample.name for f in table_groups(ask(server, "/metrics")[2].decode()) for sample in f.samples}
        assert {"mysql_up", "mysql_slave_status_slave_io_running", "rplctl_thread_state"} <= names
        told = json.loads(ask(server, "/status.json")[2])
        (channel,) = told["channels"]
        assert list(channel["status"]) == list(COLUMNS) and channel["level"] == "CRITICAL"
        assert [f["code"] for f in channel["findings"]] == ["never_started"] and channel["findings"][0]["repair"]
        assert ask(server, "/health/live")[0] == 200 and ask(server, "/health/ready")[0] == 503
        assert ask(server, "/none")[0] == 404 and ask(server, "/health/ready?lag=x")[0] == 400
        assert ask(server, "/metrics", "HEAD")[2] == b"" and ask(server, "/metrics", "POST")[0] == 501


def test_nothing_it_answers_holds_the_password(configured: Program) -> None:
    with served(configured.datadir) as server:
        assert not [path for path in PATHS if b"C4nary" in ask(server, path)[2]]


def test_the_page_loads_nothing_from_elsewhere_and_runs_no_script_but_its_own(configured: Program) -> None:
    with served(configured.datadir) as server:
        _, headers, page = ask(server, "/")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"] and "no-store" in headers["cache-control"]
    elsewhere = re.findall(rb"(?:src|href|url\()\s*=?\s*[\"']?(\S+)", page)
    assert elsewhere == [] and b"innerHTML" not in page


def test_a_page_of_somebody_else_cannot_read_it_under_a_name_of_its_own(configured: Program) -> None:
    with served(configured.datadir) as server:
        assert {path: ask(server, path, Host="evil.example")[0] for path in PATHS} == dict.fromkeys(PATHS, 421)
        for name in ("localhost:9104", "127.0.0.1", "[::1]:9104", "10.1.2.3"):
            assert ask(server, "/status.json", Host=name)[0] == 200, name


def test_with_a_token_only_who_shows_it_reads(configured: Program) -> None:
    basic = {word: base64.b64encode(f"me:{word}".encode()).decode() for word in ("s3cret", "other")}
    with served(configured.datadir, token="s3cret") as server:
        for path in ("/", "/metrics", "/status.json"):
            assert ask(server, path)[0] == 401 and "basic" in ask(server, path)[1]["www-authenticate"].lower()
            for wrong in ("Bearer other", "Bearer ", "Bearer", f"Basic {basic['other']}", "Basic *", "s3cret"):
                assert ask(server, path, Authorization=wrong)[0] == 401, wrong
            for right in ("Bearer s3cret", "bearer s3cret", f"Basic {basic['s3cret']}"):
                assert ask(server, path, Authorization=right, Host="monitor.example")[0] == 200
        assert ask(server, "/health/live")[0] == 200


def test_over_tls(configured: Program, tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(self_signed())
    with served(configured.datadir, tls_cert=certificate) as server:
        assert server.url.startswith("https://")
        assert ask(server, "/health/live", tls=ssl.create_default_context(cafile=str(certificate)))[0] == 200
        with socket.create_connection(("127.0.0.1", int(server.server_address[1])), timeout=5) as plain:
            plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert b"200" not in plain.recv(100)
        assert ask(server, "/health/live", tls=ssl.create_default_context(cafile=str(certificate)))[0] == 200
    for wrong in (tmp_path / "none.pem", configured.datadir / "rplctl.lock"):
        wrong.exists() or wrong.name == "none.pem" or wrong.write_text("junk")
        with pytest.raises(RplError), served(configured.datadir, tls_cert=wrong):
            pass


def self_signed() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private + made.public_bytes(pem)


def test_slow_and_many_readers_keep_nobody_out_for_long(configured: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.command.serve.TIMEOUT_S", 0.5)
    with served(configured.datadir) as server:
        slow = [socket.create_connection(("127.0.0.1", int(server.server_address[1]))) for _ in range(80)]
        try:
            wait_until(lambda: answers(server), 10)
        finally:
            for connection in slow:
                connection.close()


def test_clients_that_send_byte_by_byte_hold_nothing_for_longer_than_a_request_may_take(
    configured: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rplctl.command.serve.TIMEOUT_S", 1.0)
    with served(configured.datadir) as server, ExitStack() as opened:
        address = ("127.0.0.1", int(server.server_address[1]))
        slow = opened.enter_context(socket.create_connection(address))
        sent, began = 0, time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 30:  # a byte is always there before a timeout of each read would be over
                slow.sendall(b"GET / HTTP/1.1\r\nX: "[sent : sent + 1] or b"x")
                sent += 1
                slow.settimeout(0.1)
                with suppress(TimeoutError):
                    assert slow.recv(1) == b""
                    break
        assert time.monotonic() - began < 20


def test_connections_without_a_request_make_room_at_once(configured: Program) -> None:
    with served(configured.datadir) as server, ExitStack() as opened:
        address = ("127.0.0.1", int(server.server_address[1]))
        for _ in range(MOST_CONNECTIONS + 10):
            opened.enter_context(socket.create_connection(address)).sendall(b"G")
        assert all(ask(server, "/health/live")[0] == 200 for _ in range(3))


def answers(server: StatusServer) -> bool:
    try:
        return ask(server, "/health/live")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("listen", ["9104", "host:", ":9104", "host:x", "h:70000", ""])
def test_where_it_cannot_be_meant_to_listen_is_refused(listen: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        is_local(listen)


def test_a_port_that_is_taken_is_said(configured: Program) -> None:
    with served(configured.datadir) as server:
        done = configured("serve", "--listen", f"127.0.0.1:{server.server_address[1]}")
    assert done.code and "cannot listen on 127.0.0.1" in done.err and "run: rplctl serve --listen HOST:PORT" in done.err


@pytest.mark.long("One signal stays; both are handled alike.", keeps=r"^15$")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_by_a_signal_without_a_word(configured: Program, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "rplctl", "--datadir", str(configured.datadir), "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=ctrl_c_acts) as process:
        try:
            assert process.stderr
            assert "rplctl serves http://127.0.0.1:" in process.stderr.readline()
            os.kill(process.pid, number)
            assert process.wait(10) == (0 if number == signal.SIGTERM else 130) and not process.stderr.read()
        finally:
            process.kill()


def ctrl_c_acts() -> None:
    """Also where the tests run in the background of a shell, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.long("tests/command/watching/test_page.py asks the same server in make test.")
@pytest.mark.slow
@pytest.mark.spark
def test_ready_while_both_threads_of_every_channel_run(tmp_path: Path) -> None:
    replica = Replica(tmp_path, spark=False)
    try:
        replica.run("init")
        replica.run("change-master", "--master-binlog-dir", os.fspath(BINLOG_FOLDER))
        replica.run("change-master", "--master-binlog-dir", os.fspath(BINLOG_FOLDER), "--channel", "broken<b>")
        replica.run("start", "--channel", "")
        with served(replica.datadir, "", "broken<b>") as server:
            wait_until(lambda: ask(server, "/health/ready?channel=")[0] == 200, 60)
            assert ask(server, "/health/ready")[0] == 503
            replica.run("stop")
            wait_until(lambda: ask(server, "/health/ready?channel=")[0] == 503, 20)
    finally:
        replica.close()
