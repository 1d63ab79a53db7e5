"""`serve`: publish the state of every channel over HTTP, for Prometheus, load balancers, scripts and people.

/metrics        the output of `rplctl metrics`
/health/live    200 while the program checks its channels
/health/ready   200 if both threads of every channel run and no lag exceeds ?lag=SECONDS; otherwise 503
                (as in Patroni; ?channel=NAME selects one channel)
/status.json    for each channel, the output of `show-status`, the findings of `check`, and the last hour
/               a page that displays /status.json

Invariants: `serve` changes nothing. Without a token, a request must use a name of this machine, so that no foreign web
page can read the answers through a browser. Tokens are compared in constant time. No answer contains a secret
(rplctl.mask).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from rplctl import __version__
from rplctl.command.metrics import metrics
from rplctl.command.watching.document import document
from rplctl.command.watching.seen import Seen
from rplctl.command.watching.watch import LOOK_S, Moment, Watch
from rplctl.errors import RplError, UsageError, file_error

DEFAULT_LISTEN: Final = "127.0.0.1:9104"  # mysqld_exporter's port
_EXAMPLES = {"--listen": DEFAULT_LISTEN, "--mysql": "127.0.0.1:3307"}
OLD_S: Final = 10 * LOOK_S  # seconds after which a state is out of date
TIMEOUT_S = 10.0  # for the bytes of a request, for its answer, and for an idle connection
MOST_CONNECTIONS = 64
_TEXT = "text/plain; charset=utf-8"
_SAMPLES = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """The options of `serve` for its HTTP server."""

    listen: str = DEFAULT_LISTEN
    token: str = ""  # a client must send it; '': no token is needed
    tls_cert: Path | None = None
    tls_key: Path | None = None


class StatusServer(ThreadingHTTPServer):
    """The HTTP server, with one thread for each connection and at most MOST_CONNECTIONS connections.

    If there is one more connection, the server ends the oldest connection that is not being answered. The client of
    this connection has not sent a complete request. If all connections are being answered, the server closes the new
    connection.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, request: HttpRequest, watch: Watch) -> None:
        host, port = address_of(request.listen)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.watch, self.token = watch, request.token
        self.names = {"localhost", host}
        # connection, the oldest first → deadline of its answer by time.monotonic(); 0 while it waits for a request
        self._open: dict[Any, float] = {}
        self._changing = threading.Lock()
        self._tls = tls_context_of(request.tls_cert, request.tls_key)
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise RplError(
                f"cannot listen on {request.listen}: {error.strerror or error}",
                hint="to listen on another address, run: rplctl serve --listen HOST:PORT",
            ) from error

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        shown = f"[{host!s}]" if ":" in str(host) else str(host)
        return f"http{'s' if self._tls else ''}://{shown}:{port}/"

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        connection.settimeout(TIMEOUT_S)
        if self._tls:  # the thread of the connection performs the handshake at its first read
            connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changing:
            if len(self._open) >= MOST_CONNECTIONS:
                now = time.monotonic()
                oldest = next((one for one, until in self._open.items() if until < now), request)
                self._open.pop(oldest, None)
                with suppress(OSError):
                    socket.socket.shutdown(oldest, socket.SHUT_RDWR)  # ends its thread; TLS would wait for the peer
                if oldest is request:
                    return self.close_request(request)
            self._open[request] = 0.0
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._changing:
                self._open.pop(request, None)

    def answers(self, request: Any, until: float) -> None:
        """Note that a connection has received a request, and that its answer must end at `until` by time.monotonic().

        The connection now counts as the newest one. `until=0` means that the answer is complete.
        """
        with self._changing:
            if self._open.pop(request, None) is not None:
                self._open[request] = until

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore an error of a connection: the client disconnected, is slow, or does not use TLS."""


@contextmanager
def serve(request: HttpRequest, watch: Watch) -> Iterator[StatusServer]:
    """Answer requests while the block runs, and yield the server.

    Raises UsageError if an option is not valid, and RplError if the address is in use.
    """
    with StatusServer(request, watch) as server, watch.running():
        answering = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        answering.start()
        try:
            yield server
        finally:
            server.shutdown()
            answering.join()


def is_local(listen: str, flag: str = "--listen") -> bool:
    """True if only this machine can connect to the address. Raises the errors of `address_of`.

    `flag` is the option with the address, for the error.
    """
    host, _ = address_of(listen, flag)
    return host == "localhost" or _is_address(host) and ipaddress.ip_address(host).is_loopback


def address_of(listen: str, flag: str = "--listen") -> tuple[str, int]:
    """Split HOST:PORT into the host and the port. Raises UsageError, which names the option `flag`, for any other
    text.
    """
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"{flag} {listen}: the address must be HOST:PORT",
            hint=f"for this machine alone, run: rplctl serve {flag} {_EXAMPLES[flag]}",
        )
    return host, int(port)


def tls_context_of(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context with this certificate and key. Return None without a certificate.

    Raises UsageError if the files are not a certificate with its key, and RplError if they cannot be read.
    """
    if not cert:
        if key:
            raise UsageError("--tls-key requires --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        raise UsageError(f"--tls-cert {cert}: not a certificate with its key in PEM: {error.reason}") from error
    except OSError as error:
        raise file_error(error) from error
    return context


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _InTime(io.RawIOBase):
    """The bytes that a client sends. A request must be complete within TIMEOUT_S after its first byte.

    This also holds if the client sends the request in many small parts.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline: float | None = None

    def begin(self) -> None:
        """Begin to wait for the next request, which will have a new deadline."""
        self._deadline = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = TIMEOUT_S if self._deadline is None else self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        size = self._connection.recv_into(buffer)
        if self._deadline is None:
            self._deadline = time.monotonic() + TIMEOUT_S
        return size


class _Handler(BaseHTTPRequestHandler):
    server: StatusServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._input = _InTime(self.connection)
        self.rfile = io.BufferedReader(self._input)

    def handle_one_request(self) -> None:
        self._input.begin()
        try:
            super().handle_one_request()
        finally:
            self.server.answers(self.connection, 0.0)

    def version_string(self) -> str:
        return "rplctl"

    def do_GET(self) -> None:
        self.connection.settimeout(TIMEOUT_S)
        self.server.answers(self.connection, time.monotonic() + TIMEOUT_S)
        asked = urlsplit(self.path)
        host = urlsplit(f"//{self.headers.get('Host', '')}").hostname or ""
        if not self.server.token and not (_is_address(host) or host in self.server.names):
            return self._answer(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, b"use an IP address, or set --token-file\n")
        route = _ROUTES.get(asked.path)
        if route is None:
            return self._answer(HTTPStatus.NOT_FOUND, _TEXT, b"not found\n")
        if not asked.path.startswith("/health/") and not self._may_read():
            return self._answer(HTTPStatus.UNAUTHORIZED, _TEXT, b"send the token\n")
        return self._answer(*route(self.server.watch.latest, parse_qs(asked.query, keep_blank_values=True)))

    do_HEAD = do_GET

    def _may_read(self) -> bool:
        if not self.server.token:
            return True
        kind, _, shown = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "basic":  # browsers send any user name, and the token as the password
            try:
                shown = base64.b64decode(shown).decode("latin-1").partition(":")[2]
            except ValueError:
                return False
        elif kind.lower() != "bearer":
            return False
        return hmac.compare_digest(shown.encode(), self.server.token.encode())

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": _policy() if kind.startswith("text/html") else "default-src 'none'",
        }
        if status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = 'Basic realm="rplctl"'
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because a proxy in front of this server logs the requests."""


_Query = dict[str, list[str]]
_Answer = tuple[HTTPStatus, str, bytes]


def _ready(moment: Moment, query: _Query) -> _Answer:
    wanted, lag = query.get("channel"), query.get("lag", [""])[0]
    if lag and not (lag.isascii() and lag.isdecimal()):
        return HTTPStatus.BAD_REQUEST, _TEXT, b"lag is a number of seconds\n"
    channels = [each for each in moment.channels if not wanted or each.channel in wanted]
    if not _is_fresh(moment) or not channels:
        return _health("no channel was checked")
    return _health("" if all(_is_ready(each, int(lag) if lag else None) for each in channels) else "not ready")


def _health(incident: str) -> _Answer:
    status = HTTPStatus.SERVICE_UNAVAILABLE if incident else HTTPStatus.OK
    return status, _TEXT, f"{incident or 'ok'}\n".encode()


def _is_ready(each: Seen, most_lag_s: int | None) -> bool:
    if not each.status or set(each.states) != {"running"}:
        return False
    lag = each.status.Seconds_Behind_Master
    return most_lag_s is None or lag is not None and lag <= most_lag_s


def _is_fresh(moment: Moment) -> bool:
    return moment.error is None and abs(time.time() - moment.at) < OLD_S


_PAGE: Final = files("rplctl.command.watching").joinpath("page.html").read_bytes()
_ROUTES: Final[dict[str, Callable[[Moment, _Query], _Answer]]] = {
    "/": lambda *_: (HTTPStatus.OK, "text/html; charset=utf-8", _PAGE),
    "/metrics": lambda moment, _: (HTTPStatus.OK, _SAMPLES, metrics(moment.channels, moment.at)),
    "/health/live": lambda moment, _: _health("" if _is_fresh(moment) else "the channels were not checked for a while"),
    "/health/ready": _ready,
    "/status.json": lambda moment, _: (
        HTTPStatus.OK,
        "application/json",
        json.dumps(document(moment, __version__)).encode(),
    ),
}


def _policy() -> str:
    """Return the Content-Security-Policy of the page: only its own script and style, and only requests to this
    server.
    """
    script, style = (_PAGE.split(f"<{tag}>".encode())[1].split(f"</{tag}>".encode())[0] for tag in ("script", "style"))
    digests = [base64.b64encode(hashlib.sha256(part).digest()).decode() for part in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
