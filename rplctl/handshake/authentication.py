"""Answer the authentication plugin that a server requests, if the connection is safe enough for it (design D14, D21).

A rogue server could choose a plugin that reveals the password. So this module checks the choice, and PyMySQL's own
answers are not used. The same table applies to sources and targets:

    mysql_native_password, client_ed25519, parsec  any connection: only a hash or a signature is sent
    caching_sha2_password, sha256_password         a hash on any connection. The password itself only over TLS that the
                                                   operator requested (`Trust.encrypted`), or encrypted by an RSA key
                                                   that is pinned (public_key_path) or requested (get_public_key).
                                                   Otherwise error 2061, as in MySQL
    mysql_clear_password, dialog                   only over verified TLS
    mysql_old_password, all others                 never

TLS that the server merely offers (PREFERRED) does not justify sending a secret: a man in the middle can offer it too.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pymysql import _auth
from pymysql.err import OperationalError

from rplctl import mysql_errors as er
from rplctl.handshake.tls import TlsSettings

_CHALLENGE_BYTES = 32
_PBKDF2 = ord("P")
_MOST_DOUBLINGS = 3  # of parsec's 1024 rounds, so that a server cannot cause hours of computation
_FAST_AUTH_SUCCEEDED = 3
_FULL_AUTH_NEEDED = 4
_LEAST_SALT = 20
_REQUEST_PUBLIC_KEY = b"\x02"
_REQUEST_PUBLIC_KEY_OF_SHA256 = b"\x01"


@dataclass(frozen=True, slots=True)
class Security:
    """The operator's settings for one connection: TLS, and the RSA key for passwords without TLS.

    `public_key_path` is the file with the pinned key. With `get_public_key`, the key that the server sends is accepted.
    """

    tls: TlsSettings = field(default_factory=TlsSettings)
    public_key_path: str = ""
    get_public_key: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The conditions for sending a secret, from the operator's settings and the current state of the connection."""

    encrypted: bool  # the operator requested a protected connection, and the connection is protected
    verified: bool  # the server's certificate was checked against a CA
    public_key_path: str = ""
    get_public_key: bool = False


class Plugin:
    name: ClassVar[str] = ""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.trust: Trust = connection.trust

    def authenticate(self, packet: Any) -> Any:
        """Answer the server's first packet for this plugin, and return the packet that ends the exchange."""
        raise NotImplementedError

    def refuse(self, reason: str) -> OperationalError:
        return OperationalError(er.CR_AUTH_PLUGIN_ERR, f"Authentication plugin '{self.name}' reported error: {reason}")

    def answer(self, data: bytes) -> Any:
        self.connection.write_packet(data)
        packet = self.connection._read_packet()
        packet.check_error()
        return packet

    def challenge(self, packet: Any) -> bytes:
        """Return the challenge from the server's request to switch to this plugin.

        Raises OperationalError for any other packet, for example a later request for more data.
        """
        if not packet.is_auth_switch_request():
            raise self.refuse("the server requests more data than this plugin sends")
        data: bytes = packet.read_all()
        return data


class NativePassword(Plugin):
    name = "mysql_native_password"

    def authenticate(self, packet: Any) -> Any:
        return self.answer(_auth.scramble_native_password(self.connection.password, self.challenge(packet)))


class Ed25519(Plugin):
    name = "client_ed25519"

    def authenticate(self, packet: Any) -> Any:
        challenge = self.challenge(packet)[:_CHALLENGE_BYTES]
        try:
            return self.answer(_auth.ed25519_password(self.connection.password, challenge))
        except RuntimeError as error:  # caused by the ImportError of PyNaCl
            text = (
                f"Authentication plugin '{self.name}' cannot be loaded: {error.__context__}; "
                "pip install pynacl, or give the account another plugin"
            )
            raise OperationalError(er.CR_AUTH_PLUGIN_CANNOT_LOAD, text) from None


class Parsec(Plugin):
    """The plugin PARSEC, which sends an Ed25519 signature. The seed of the key is PBKDF2-HMAC-SHA512 of the password.

    The signature covers 32 bytes from the server and 32 bytes from the client (MariaDB ≥ 11.6, manual: Authentication
    Plugin - PARSEC).
    """

    name = "parsec"

    def authenticate(self, packet: Any) -> Any:
        challenge = self.challenge(packet)[:_CHALLENGE_BYTES]
        data: bytes = self.answer(b"").get_all_data()  # requests the salt
        salted = data.removeprefix(b"\x01")  # 'P', log2 of (rounds / 1024), the salt
        if len(challenge) != _CHALLENGE_BYTES or len(salted) < 3 or salted[0] != _PBKDF2 or salted[1] > _MOST_DOUBLINGS:
            raise self.refuse("the server's challenge is not valid for parsec")
        seed = hashlib.pbkdf2_hmac("sha512", self.connection.password, salted[2:], 1024 << salted[1], 32)
        ours = os.urandom(_CHALLENGE_BYTES)
        return self.answer(ours + Ed25519PrivateKey.from_private_bytes(seed).sign(challenge + ours))


class CachingSha2(Plugin):
    name = "caching_sha2_password"
    key_request: ClassVar[bytes] = _REQUEST_PUBLIC_KEY

    def authenticate(self, packet: Any) -> Any:
        password: bytes = self.connection.password
        if packet.is_auth_switch_request():
            self.connection.salt = packet.read_all().removesuffix(b"\0")
            packet = self.answer(_auth.scramble_caching_sha2(password, self.connection.salt) if password else b"")
        if not packet.is_extra_auth_data():
            return packet
        packet.advance(1)
        step = packet.read_uint8()
        if step == _FAST_AUTH_SUCCEEDED:
            done = self.connection._read_packet()
            done.check_error()
            return done
        if step != _FULL_AUTH_NEEDED:
            raise self.refuse(f"unknown step {step}")
        return self.full_authentication(password)

    def full_authentication(self, password: bytes) -> Any:
        if self.trust.encrypted:
            return self.answer(password + b"\0")
        if not password:
            return self.answer(b"\0")
        if len(self.connection.salt) < _LEAST_SALT:
            raise self.refuse("the server sent no salt")
        key = self.public_key()
        return self.answer(_auth.sha2_rsa_encrypt(password, self.connection.salt, key))

    def public_key(self) -> bytes:
        if self.trust.public_key_path:
            try:
                return Path(self.trust.public_key_path).read_bytes()
            except OSError as error:
                raise self.refuse(f"the server's public key cannot be read: {error}") from None
        if not self.trust.get_public_key:
            raise self.refuse("Authentication requires secure connection.")
        packet = self.answer(self.key_request)
        if not packet.is_extra_auth_data():
            raise self.refuse("the server sent no public key")
        key: bytes = packet.get_all_data()[1:]
        return key


class Sha256(CachingSha2):
    """The plugin sha256_password, which has no fast path.

    It sends the password over TLS, or encrypted with the RSA key.
    """

    name = "sha256_password"
    key_request = _REQUEST_PUBLIC_KEY_OF_SHA256

    def authenticate(self, packet: Any) -> Any:
        if packet.is_auth_switch_request():
            self.connection.salt = packet.read_all().removesuffix(b"\0")
        return self.full_authentication(self.connection.password)


class ClearPassword(Plugin):
    name = "mysql_clear_password"

    def authenticate(self, packet: Any) -> Any:
        if not self.trust.verified:
            raise self.refuse(
                "the server requests the password in clear text, which needs TLS with a verified certificate"
            )
        return self.answer(self.connection.password + b"\0")


class Dialog(ClearPassword):
    """The plugin of MariaDB's PAM. rplctl answers only one question, which is the question for the password."""

    name = "dialog"


class Refused(Plugin):
    name = "mysql_old_password"

    def authenticate(self, packet: Any) -> Any:
        raise self.refuse("its hash reveals the password, so rplctl never uses it")


PLUGINS: dict[str, type[Plugin]] = {
    plugin.name: plugin
    for plugin in (NativePassword, Ed25519, Parsec, CachingSha2, Sha256, ClearPassword, Dialog, Refused)
}


def plugin_for(name: bytes | str, connection: Any) -> Plugin | None:
    """Return the plugin with this name for the connection. Return None if the name is not in PLUGINS.

    A server that requests an unknown plugin gets no answer.
    """
    known = PLUGINS.get(name.decode("ascii", "replace") if isinstance(name, bytes) else name)
    return known(connection) if known is not None else None
