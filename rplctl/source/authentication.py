"""Authentication plugins that a source may ask for, and on which connection each is allowed (design D14).

A rogue source chooses the plugin, so the choice is checked here, whatever PyMySQL would answer by itself:

    mysql_native_password, client_ed25519   anywhere: only a hash leaves
    caching_sha2_password, sha256_password  hash anywhere; the password itself over TLS, or by an RSA key that was
                                            pinned (public_key_path) or asked for (get_public_key); else 2061 as MySQL's
    mysql_clear_password, dialog            over verified TLS only
    mysql_old_password, all others          never
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pymysql import _auth
from pymysql.err import OperationalError

CR_AUTH_PLUGIN_CANNOT_LOAD = 2059
CR_AUTH_PLUGIN_ERR = 2061

_FAST_AUTH_SUCCEEDED = 3
_FULL_AUTH_NEEDED = 4
_REQUEST_PUBLIC_KEY = b"\x02"


@dataclass(frozen=True, slots=True)
class Trust:
    """What the operator's settings allow on this connection."""

    encrypted: bool  # TLS in use
    verified: bool  # and the source's certificate checked against a CA
    public_key_path: str = ""
    get_public_key: bool = False


class _Plugin:
    name: ClassVar[str] = ""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.trust: Trust = connection.rplctl_trust

    def refuse(self, reason: str) -> OperationalError:
        return OperationalError(CR_AUTH_PLUGIN_ERR, f"Authentication plugin '{self.name}' reported error: {reason}")

    def answer(self, data: bytes) -> Any:
        self.connection.write_packet(data)
        packet = self.connection._read_packet()
        packet.check_error()
        return packet


class CachingSha2(_Plugin):
    name = "caching_sha2_password"

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
        key = self.public_key()
        return self.answer(_auth.sha2_rsa_encrypt(password, self.connection.salt, key))

    def public_key(self) -> bytes:
        if self.trust.public_key_path:
            return Path(self.trust.public_key_path).read_bytes()
        if not self.trust.get_public_key:
            raise self.refuse("Authentication requires secure connection.")
        packet = self.answer(_REQUEST_PUBLIC_KEY)
        if not packet.is_extra_auth_data():
            raise self.refuse("the server sent no public key")
        key: bytes = packet.get_all_data()[1:]
        return key


class Sha256(CachingSha2):
    """sha256_password: no fast path; the password itself, or encrypted by the RSA key."""

    name = "sha256_password"

    def authenticate(self, packet: Any) -> Any:
        if packet.is_auth_switch_request():
            self.connection.salt = packet.read_all().removesuffix(b"\0")
        return self.full_authentication(self.connection.password)


class ClearPassword(_Plugin):
    name = "mysql_clear_password"

    def authenticate(self, packet: Any) -> Any:
        if not self.trust.verified:
            raise self.refuse(
                "the source asks for the password in clear text; that needs TLS with a verified certificate"
            )
        return self.answer(self.connection.password + b"\0")


class Dialog(ClearPassword):
    """MariaDB's PAM: the one question we answer is the password."""

    name = "dialog"


class Refused(_Plugin):
    name = "mysql_old_password"

    def authenticate(self, packet: Any) -> Any:
        raise self.refuse("its hash can be turned into the password; it is never used")


PLUGINS: dict[str, type[_Plugin]] = {
    plugin.name: plugin for plugin in (CachingSha2, Sha256, ClearPassword, Dialog, Refused)
}
