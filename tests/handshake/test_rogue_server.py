"""Whoever answers in a server's place, source or target: what of the password reaches it (design D14, D21).

One matrix for both: every authentication plugin × how it is asked for × every setting of TLS and keys. Where the
operator chose to believe whoever answers, what is told is exactly what was chosen; nowhere else is the password seen,
readable, under the thief's key, or through its salt.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.source import DumpStart, ReplicaIdentity
from rplctl.source.connection import connect
from rplctl.target import mapped_errors, open_engine
from tests.handshake.certificates import Certificates, make_certificates
from tests.source.fake_server import SALT, FakeServer

PASSWORD = "s3cret-canary"
PLUGINS = (
    "mysql_native_password", "mysql_old_password", "mysql_clear_password", "dialog", "caching_sha2_password",
    "sha256_password", "client_ed25519", "parsec", "auth_gssapi_client", "authentication_ldap_sasl_client",
    "authentication_openid_connect_client", "auth_socket", "unheard_of", "",
)  # fmt: skip
SHA2 = {"caching_sha2_password", "sha256_password"}
READABLE = {"mysql_clear_password", "dialog"}
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the operator said, as a channel's settings and as a target URL's words, and who answers."""

    source: dict[str, object]
    target: str
    offers: str = ""  # which certificate the server has
    told: frozenset[str] = frozenset()  # plugins that get the password, because the operator said so


SETTINGS = {
    "nothing said, no TLS there": Setting({}, ""),
    "nothing said, TLS there": Setting({}, "", "thief"),
    "TLS asked for, none there": Setting({"enabled_ssl": True}, "ssl_mode=REQUIRED"),
    "TLS asked for": Setting({"enabled_ssl": True}, "ssl_mode=REQUIRED", "thief", frozenset(SHA2)),
    "a CA that signed something else": Setting(
        {"enabled_ssl": True, "ssl_ca": "{ca}"}, "ssl_ca={ca}&ssl_check_hostname=0", "thief"
    ),
    "another host's certificate": Setting(
        {"enabled_ssl": True, "ssl_ca": "{ca}", "ssl_verify_server_cert": True}, "ssl_ca={ca}", "other_host"
    ),
    "the system's CAs": Setting(
        {"enabled_ssl": True, "ssl_verify_server_cert": True}, "ssl_mode=VERIFY_IDENTITY", "thief"
    ),
    "a pinned key": Setting({"public_key_path": "{pinned}"}, "server_public_key_path={pinned}", "thief"),
    "the server's key asked for": Setting({"get_public_key": True}, "get_server_public_key=1", "", frozenset(SHA2)),
    "the rightful server": Setting(
        {"enabled_ssl": True, "ssl_ca": "{ca}", "ssl_verify_server_cert": True},
        "ssl_ca={ca}", "rightful", frozenset(SHA2 | READABLE),
    ),
}  # fmt: skip


class Thief(FakeServer):
    """Asks by each means for the password, and keeps what it hears."""

    def __init__(self, tls: ssl.SSLContext | None, *, switches: bool) -> None:
        super().__init__()
        self.tls = tls
        self._switches = switches
        self.asked = ""

    def begin(self, plugin: str) -> None:
        self.asked = plugin
        self.plugin = b"mysql_native_password" if self._switches else plugin.encode()
        self.received.clear()

    def authenticate(self, client: socket.socket) -> None:
        client.settimeout(5)
        packet = b"\xfe" + self.asked.encode() + b"\0" + SALT + b"\0" if self._switches else b"\x01\x04"
        self._hear(client, packet)
        for _ in range(3):
            asks_for_key = self.received[-1] in (b"\x01", b"\x02")
            self._hear(client, b"\x01" + PEM if asks_for_key else b"\x01\x04")
        raise EOFError  # hangs up

    def _hear(self, client: socket.socket, packet: bytes) -> None:
        self.send(client, self.sequence, packet)
        sequence, answer = self.read(client)
        self.sequence = sequence + 1
        self.received.append(answer)

    @property
    def knows(self) -> bool:
        """Whether the password can be read in anything that was said."""
        texts = list(self.received)
        for said in self.received:
            with contextlib.suppress(ValueError):
                texts.append(KEY.decrypt(said, OAEP))
        texts += [bytes(byte ^ SALT[i % len(SALT)] for i, byte in enumerate(text)) for text in texts]
        return any(PASSWORD.encode() in text for text in texts)


def connect_to_source(port: int, setting: Setting, words: dict[str, Path]) -> None:
    settings = {name: v.format(**words) if isinstance(v, str) else v for name, v in setting.source.items()}
    info = MasterInfo(host="127.0.0.1", port=port, user_name="rpl", **settings)  # type: ignore[arg-type]
    start = DumpStart(BinlogPosition("bin.000001", 4))
    replica = ReplicaIdentity(77, "00000000-0000-0000-0000-000000000077")
    connect(info, PASSWORD, start, replica, Config(Path("/nowhere"), replica_net_timeout=10)).close()


def connect_to_target(port: int, setting: Setting, words: dict[str, Path]) -> None:
    engine = open_engine(f"mysql://rpl:{PASSWORD}@127.0.0.1:{port}/?{setting.target.format(**words)}".rstrip("?"))
    try:
        with mapped_errors("mysql"), engine.connect():
            pass
    finally:
        engine.dispose()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.long(
    "A source that switches stays; a target and a greeting are signed in to by the same code.",
    keeps=r"^source-.*-switch$",
)
@pytest.mark.slow
@pytest.mark.parametrize("switches", [True, False], ids=["switch", "greeting"])
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("visit", [connect_to_source, connect_to_target], ids=["source", "target"])
def test_the_password_is_told_only_where_the_operator_chose_to(
    tmp_path: Path,
    certificates: Certificates,
    visit: Callable[[int, Setting, dict[str, Path]], None],
    setting: Setting,
    switches: bool,
) -> None:
    pinned = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    (tmp_path / "pinned.pem").write_bytes(pinned.public_bytes(serialization.Encoding.PEM, form))
    words = {"ca": certificates.ca, "pinned": tmp_path / "pinned.pem"}
    told = set()
    with Thief(certificates.server(setting.offers) if setting.offers else None, switches=switches) as thief:
        for plugin in PLUGINS:
            thief.begin(plugin)
            with pytest.raises(RplError) as caught:
                visit(thief.port, setting, words)
            assert PASSWORD not in caught.value.message + caught.value.hint
            if thief.knows:
                told.add(plugin)
    # a greeting alone never makes us speak sha256_password: the rightful server asks to switch to it
    assert told == setting.told - (set() if switches else {"sha256_password"})
