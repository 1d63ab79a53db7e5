"""What each plugin sends, byte for byte: a hash, the password under a key or over TLS, or nothing (design D14)."""

from __future__ import annotations

import struct
from collections import deque
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pymysql import _auth
from pymysql.err import OperationalError
from pymysql.protocol import MysqlPacket

from rplctl.handshake.authentication import PLUGINS, CachingSha2, ClearPassword, Sha256, Trust

PASSWORD, SALT = b"s3cret-canary", b"abcdefghijklmnopqrst"
OK = b"\x00\x00\x00\x02\x00\x00\x00"
FAST, FULL = b"\x01\x03", b"\x01\x04"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

PLAIN = Trust(encrypted=False, verified=False)
ENCRYPTED = Trust(encrypted=True, verified=False)
VERIFIED = Trust(encrypted=True, verified=True)


class Wire:
    """The two ends of PyMySQL's connection that a plugin uses: packets that come, packets that were sent."""

    def __init__(self, trust: Trust, *answers: bytes, password: bytes = PASSWORD) -> None:
        self.trust, self.password, self.salt = trust, password, SALT
        self.sent: list[bytes] = []
        self._answers = deque(answers)

    def write_packet(self, data: bytes) -> None:
        self.sent.append(data)

    def _read_packet(self) -> MysqlPacket:
        return packet(self._answers.popleft())


def packet(data: bytes) -> MysqlPacket:
    return MysqlPacket(data, "utf8")


def switch_to(plugin: str) -> bytes:
    return b"\xfe" + plugin.encode() + b"\0" + SALT + b"\0"


def begun(plugin: str) -> MysqlPacket:
    """An auth switch request, as PyMySQL hands it over: plugin name and salt are read."""
    made = packet(switch_to(plugin))
    made.advance(1)
    made.read_string()  # type: ignore[no-untyped-call]
    return made


def decrypted(data: bytes) -> bytes:
    padded = KEY.decrypt(data, padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None))
    return bytes(byte ^ SALT[i % len(SALT)] for i, byte in enumerate(padded))


def test_caching_sha2_sends_a_hash_first_and_that_is_all_when_the_server_knows_it() -> None:
    wire = Wire(PLAIN, FAST, OK)
    CachingSha2(wire).authenticate(begun("caching_sha2_password"))
    assert wire.sent == [_auth.scramble_caching_sha2(PASSWORD, SALT)]


def test_an_empty_password_is_an_empty_answer_not_a_hash_of_nothing() -> None:
    wire = Wire(PLAIN, OK, password=b"")
    CachingSha2(wire).authenticate(begun("caching_sha2_password"))
    assert wire.sent == [b""]


@pytest.mark.parametrize("trust", [ENCRYPTED, VERIFIED])
def test_full_authentication_sends_the_password_over_tls(trust: Trust) -> None:
    wire = Wire(trust, OK)
    CachingSha2(wire).authenticate(packet(FULL))
    assert wire.sent == [PASSWORD + b"\0"]


def test_without_tls_a_pinned_key_is_used_and_none_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_bytes(PEM)
    wire = Wire(Trust(encrypted=False, verified=False, public_key_path=str(tmp_path / "key.pem")), OK)
    CachingSha2(wire).authenticate(packet(FULL))
    (sent,) = wire.sent
    assert decrypted(sent) == PASSWORD + b"\0"


def test_without_tls_the_servers_key_is_asked_for_only_when_the_operator_said_so() -> None:
    wire = Wire(Trust(encrypted=False, verified=False, get_public_key=True), b"\x01" + PEM, OK)
    CachingSha2(wire).authenticate(packet(FULL))
    asked, sent = wire.sent
    assert asked == b"\x02" and decrypted(sent) == PASSWORD + b"\0"
    refused = Wire(PLAIN, b"\x01" + PEM, OK)
    with pytest.raises(OperationalError) as caught:
        CachingSha2(refused).authenticate(packet(FULL))
    assert refused.sent == []
    assert caught.value.args == (
        2061,
        "Authentication plugin 'caching_sha2_password' reported error: Authentication requires secure connection.",
    )


def test_sha256_sends_the_password_only_under_tls_or_a_key() -> None:
    over_tls = Wire(ENCRYPTED, OK)
    Sha256(over_tls).authenticate(begun("sha256_password"))
    assert over_tls.sent == [PASSWORD + b"\0"]
    plain = Wire(PLAIN)
    with pytest.raises(OperationalError, match="sha256_password"):
        Sha256(plain).authenticate(begun("sha256_password"))
    assert plain.sent == []


@pytest.mark.parametrize("name", ["mysql_clear_password", "dialog"])
def test_clear_text_goes_to_a_verified_source_only(name: str) -> None:
    wire = Wire(VERIFIED, OK)
    PLUGINS[name](wire).authenticate(packet(b"\xfe"))
    assert wire.sent == [PASSWORD + b"\0"]
    for trust in (PLAIN, ENCRYPTED):
        wire = Wire(trust, OK)
        with pytest.raises(OperationalError, match=f"'{name}'.*TLS with a verified certificate"):
            PLUGINS[name](wire).authenticate(packet(b"\xfe"))
        assert wire.sent == []


@pytest.mark.parametrize("trust", [PLAIN, ENCRYPTED, VERIFIED])
def test_the_old_hash_is_never_sent(trust: Trust) -> None:
    wire = Wire(trust, OK)
    with pytest.raises(OperationalError, match="never uses it"):
        PLUGINS["mysql_old_password"](wire).authenticate(packet(b"\xfe"))
    assert wire.sent == []


@pytest.mark.parametrize("step", [b"\x01\x05", b"\x01\x00", b"\x01\xff"])
def test_a_step_that_the_protocol_does_not_have_ends_it(step: bytes) -> None:
    wire = Wire(VERIFIED, OK)
    with pytest.raises(OperationalError, match="unknown step"):
        CachingSha2(wire).authenticate(packet(step))
    assert wire.sent == []


def test_a_key_that_is_none_ends_it() -> None:
    wire = Wire(Trust(encrypted=False, verified=False, get_public_key=True), OK)
    with pytest.raises(OperationalError, match="sent no public key"):
        CachingSha2(wire).authenticate(packet(FULL))
    assert wire.sent == [b"\x02"]


def test_the_servers_refusal_is_passed_on() -> None:
    refusal = b"\xff" + struct.pack("<H", 1045) + b"#28000Access denied"
    with pytest.raises(OperationalError) as caught:
        ClearPassword(Wire(VERIFIED, refusal)).authenticate(packet(b"\xfe"))
    assert caught.value.args == (1045, "Access denied")


def test_every_plugin_that_is_handled_here_is_listed_by_its_own_name() -> None:
    assert set(PLUGINS) == {
        "caching_sha2_password", "sha256_password", "mysql_clear_password", "dialog", "mysql_old_password",
        "mysql_native_password", "client_ed25519", "parsec",
    }  # fmt: skip
    assert all(plugin.name == name for name, plugin in PLUGINS.items())
