"""Signs in one client: greeting, TLS, authentication plugin.

    client                                           how the client signs in
    owner of the instance folder, or root, on the    as an administrator, without a password
    Unix socket
    any other client                                 with an account of users.json, by mysql_native_password if the
                                                     account has a hash for it, or by caching_sha2_password

caching_sha2_password has two ways. The fast way compares SHA256(SHA256(password)), which is in memory after the first
full sign-in. In the full way, the client sends the password over TLS or the Unix socket. On another connection, the
client encrypts the password with an RSA key of this process. Invariant: for an unknown name, the sign-in has the same
steps and takes the same time as for a known name. After a failure, the client gets error 1045 and is disconnected.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pwd
import secrets
import socket
import ssl
import struct
import threading
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.accounts import ADMIN, NOBODY, Account, is_password, read_accounts
from rplctl.errors import RplError
from rplctl.front import wire
from rplctl.front.charset import UTF8MB4_COLLATION, ConnectionCharsets, of_collation_id
from rplctl.front.wire import ClientConnection, Closed, PacketReader

SIGN_IN_PACKET = 4096  # bytes
SIGN_IN_S: Final = 10.0
CACHING_SHA2, NATIVE = "caching_sha2_password", "mysql_native_password"
_SCRAMBLE = 20
_FAST_OK, _FULL_NEEDED, _KEY_REQUEST = b"\x01\x03", b"\x01\x04", b"\x02"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A client that has signed in, with its account, role, host, database and character sets."""

    account: str
    role: str
    host: str
    database: str = ""
    port: int = 0  # of the client's TCP connection; 0 for a Unix socket
    charsets: ConnectionCharsets = ConnectionCharsets()

    @property
    def name(self) -> str:
        return f"{self.account}@{self.host}"

    @property
    def address(self) -> str:
        """The host and the port, as in the process list of a server."""
        return f"{self.host}:{self.port}" if self.port else self.host


class SignIns:
    """The state that all sign-ins of one server share: accounts, TLS, the RSA key, and hashes of verified passwords."""

    def __init__(self, datadir: Path, version: str, tls: ssl.SSLContext | None, *, require_tls: bool) -> None:
        self.datadir, self.version, self.tls, self.require_tls = datadir, version, tls, require_tls
        self._seen: dict[Account, bytes] = {}
        self._making = threading.Lock()

    def account(self, name: str) -> Account:
        """Return the account with this name, or NOBODY if there is no such account.

        Raises ConfigError if the file of accounts is unsafe or unreadable.
        """
        return read_accounts(self.datadir).get(name, NOBODY)

    def seen(self, account: Account) -> bytes:
        return self._seen.get(account, b"")

    def has_seen(self, account: Account, password: bytes) -> None:
        self._seen[account] = hashlib.sha256(hashlib.sha256(password).digest()).digest()

    @cached_property
    def _key(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric import rsa

        return rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public_key(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        with self._making:
            public = self._key.public_key()
        pem: bytes = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        return pem

    def decrypted(self, data: bytes) -> bytes:
        """Decrypt data that a client has encrypted with this process's public key.

        Return b'' if the data cannot be decrypted.
        """
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        with self._making:
            key = self._key
        scheme = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
        try:
            found: bytes = key.decrypt(data, scheme)
        except ValueError:
            return b""
        return found

    def is_owner(self, connection: socket.socket) -> bool:
        """True if the client is on the Unix socket, and is the owner of the instance folder or root."""
        if connection.family != socket.AF_UNIX:
            return False
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("3i", peer)
        return uid in (0, self.datadir.stat().st_uid)


def sign_in(link: ClientConnection, door: SignIns, number: int) -> Client:
    """Sign in the client of a new connection, and return its account and settings.

    `number`: the number of the connection, for the greeting. Raises Closed if the connection ends. Raises RplError 1045
    (refused), 3159 (TLS is required) or 1835 (malformed packet).
    """
    scramble = _new_scramble()
    link.send(_greeting(door, number, scramble))
    reply = PacketReader(link.read(SIGN_IN_PACKET))
    flags = reply.integer(4)
    if not flags & wire.PROTOCOL_41:
        raise wire.malformed()
    if flags & wire.SSL and reply.left == 28 and door.tls:
        _begin_tls(link, door.tls)
        reply = PacketReader(link.read(SIGN_IN_PACKET))
        flags = reply.integer(4)
    reply.take(4)
    charsets = of_collation_id(reply.integer(1))
    reply.take(23)
    name = reply.until_zero().decode("utf-8", "replace")
    if flags & wire.LENENC_AUTH:
        answer = reply.counted()
    else:
        answer = reply.take(reply.integer(1)) if flags & wire.SECURE_CONNECTION else reply.until_zero()
    database = reply.until_zero().decode("utf-8", "replace") if flags & wire.CONNECT_WITH_DB and reply.left else ""
    plugin = reply.until_zero().decode("ascii", "replace") if flags & wire.PLUGIN_AUTH and reply.left else NATIVE
    client = _admitted(link, door, (name, database), scramble, (plugin, answer))
    return replace(client, charsets=charsets)


def change_user(link: ClientConnection, door: SignIns, packet: bytes) -> Client:
    """Sign in another account on an open connection, with a new scramble (COM_CHANGE_USER).

    Raises the errors of `sign_in`, after which the caller ends the connection.
    """
    reply = PacketReader(packet)
    name = reply.until_zero().decode("utf-8", "replace")
    reply.take(reply.integer(1))  # this answers the scramble of the greeting, which must not be used twice
    database = reply.until_zero().decode("utf-8", "replace") if reply.left else ""
    charsets = of_collation_id(reply.integer(2) if reply.left > 1 else 0)
    client = _admitted(link, door, (name, database), _new_scramble(), ("", b""))
    return replace(client, charsets=charsets)


def _new_scramble() -> bytes:
    return bytes(secrets.choice(range(1, 128)) for _ in range(_SCRAMBLE))


def _admitted(
    link: ClientConnection, door: SignIns, claimed: tuple[str, str], scramble: bytes, answered: tuple[str, bytes]
) -> Client:
    """Check the password, and return the client.

    `claimed`: the name and the database that the client has sent. `answered`: the client's plugin, and its answer to
    the scramble. Raises the errors of `sign_in`.
    """
    name, database = claimed
    plugin, answer = answered
    is_local = link.connection.family == socket.AF_UNIX
    is_safe = is_local or isinstance(link.connection, ssl.SSLSocket)
    if door.is_owner(link.connection):
        return Client(account=pwd_name(), role=ADMIN, host="localhost", database=database)
    if door.require_tls and not is_safe:
        text = "Connections using insecure transport are prohibited while --require_secure_transport=ON."
        raise RplError(text, errno=er.SECURE_TRANSPORT_REQUIRED)
    host = "localhost" if is_local else str(link.connection.getpeername()[0])
    account = door.account(name)
    wanted = NATIVE if account.native else CACHING_SHA2
    # A MariaDB server that is the client (a replica) supports only the native plugin, and waits for a second scramble.
    if plugin != wanted or (account.native and not answer):
        link.send(b"\xfe" + wanted.encode() + b"\0" + scramble + b"\0")
        answer = link.read(SIGN_IN_PACKET)
    if account.native:
        passed = _is_native(account, scramble, answer)
    else:
        passed = _is_caching_sha2(link, door, account, (scramble, answer), is_safe=is_safe)
    if not passed:
        raise access_denied(name, host, with_password=bool(answer))
    port = 0 if is_local else int(link.connection.getpeername()[1])
    return Client(account=name, role=account.role, host=host, database=database, port=port)


def pwd_name() -> str:
    """Return the name of the operating system's account that runs this process."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def access_denied(name: str, host: str, *, with_password: bool) -> RplError:
    used = "YES" if with_password else "NO"
    text = f"Access denied for user '{name[:80]}'@'{host}' (using password: {used})"
    return RplError(text, errno=er.ACCESS_DENIED_ERROR)


def _greeting(door: SignIns, number: int, scramble: bytes) -> bytes:
    flags = wire.OFFERED | (wire.SSL if door.tls else 0)
    return b"".join(
        (
            b"\x0a" + door.version.encode() + b"\0",
            struct.pack("<I", number) + scramble[:8] + b"\0",
            struct.pack("<HBHH", flags & 0xFFFF, UTF8MB4_COLLATION, wire.STATUS_AUTOCOMMIT, flags >> 16),
            bytes((_SCRAMBLE + 1,)) + bytes(10) + scramble[8:] + b"\0" + CACHING_SHA2.encode() + b"\0",
        )
    )


def _begin_tls(link: ClientConnection, tls: ssl.SSLContext) -> None:
    try:
        link.connection = tls.wrap_socket(link.connection, server_side=True)
    except (OSError, ValueError) as error:
        raise Closed from error


def _is_native(account: Account, scramble: bytes, answer: bytes) -> bool:
    stage2 = bytes.fromhex(account.native)
    if len(answer) != hashlib.sha1().digest_size:
        return False
    stage1 = _xor(answer, hashlib.sha1(scramble + stage2).digest())
    return hmac.compare_digest(hashlib.sha1(stage1).digest(), stage2)


def _is_caching_sha2(
    link: ClientConnection, door: SignIns, account: Account, exchange: tuple[bytes, bytes], *, is_safe: bool
) -> bool:
    scramble, answer = exchange
    if not answer or answer == b"\0":  # an empty password, which no account has
        return is_password(account, b"")
    if (stage2 := door.seen(account)) and len(answer) == len(stage2):
        stage1 = _xor(answer, hashlib.sha256(stage2 + scramble).digest())
        if hmac.compare_digest(hashlib.sha256(stage1).digest(), stage2):
            link.send(_FAST_OK)
            return True
    link.send(_FULL_NEEDED)
    said = link.read(SIGN_IN_PACKET)
    if not is_safe:
        if said == _KEY_REQUEST:
            link.send(b"\x01" + door.public_key)
            said = link.read(SIGN_IN_PACKET)
        said = _xor(door.decrypted(said), scramble)
    if not said.endswith(b"\0"):
        return is_password(account, b"")
    password = said[:-1]
    if not is_password(account, password):
        return False
    door.has_seen(account, password)
    return True


def _xor(data: bytes, key: bytes) -> bytes:
    return bytes(byte ^ key[index % len(key)] for index, byte in enumerate(data))
