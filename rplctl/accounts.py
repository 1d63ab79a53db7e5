"""The accounts with which MySQL clients sign in to `rplctl serve --mysql`.

The file `<datadir>/users.json` (mode 0600) has the name and the role of each account, and hashes of its password.
Invariant: the file contains no password. The hash is scrypt, with a salt for each account. An account that must work
with mysql_native_password also has SHA1(SHA1(password)). No error and no repr contains a password or a hash.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rplctl import mysql_errors as er
from rplctl.durable import is_readable_by_others, replace_file
from rplctl.errors import ConfigError, UsageError
from rplctl.plain_file import parsed_json, read_plain

USERS_FILE: Final = "users.json"
READER, ADMIN, REPLICATION = "reader", "admin", "replication"
ROLES: Final = (READER, ADMIN, REPLICATION)
LONGEST_NAME = 32  # characters, as in MySQL
LONGEST_PASSWORD = 256  # bytes
_LARGEST = 1 << 20
_COST = 1 << 14  # of scrypt: 16 MB and about 50 ms
_one_at_a_time = threading.Lock()  # so that simultaneous sign-ins need no more memory than one sign-in


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account, with hashes of its password.

    `verifier` is the scrypt hash. `native` is the hash for mysql_native_password, or '' without that plugin.
    """

    name: str
    role: str
    salt: str = field(repr=False)  # in hexadecimal digits, like the two hashes
    verifier: str = field(repr=False)
    native: str = field(default="", repr=False)


NOBODY: Final = Account(name="", role=READER, salt="00" * 16, verifier="00" * 32)  # checked for unknown names


def new_account(name: str, role: str, password: str, *, native: bool = False) -> Account:
    """Return a new account with hashes of the password.

    `native`: also hash the password for mysql_native_password. Raises UsageError if the name, the role or the length
    of the password is not valid.
    """
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise UsageError(f"'{name}' is not an account name: 1 to {LONGEST_NAME} printable characters")
    if role not in ROLES:
        raise UsageError(f"--role {role}: must be one of {', '.join(ROLES)}")
    if not 0 < len(password.encode()) <= LONGEST_PASSWORD or "\0" in password:
        raise UsageError(f"a password has 1 to {LONGEST_PASSWORD} bytes")
    salt = os.urandom(16)
    stage2 = hashlib.sha1(hashlib.sha1(password.encode()).digest()).hexdigest() if native else ""
    verifier = _scrypt(password.encode(), salt).hex()
    return Account(name=name, role=role, salt=salt.hex(), verifier=verifier, native=stage2)


def random_password() -> str:
    return secrets.token_urlsafe(18)


def is_password(account: Account, password: bytes) -> bool:
    """True if `password` is the account's password.

    The check of an empty or too long password takes as long as any other check.
    """
    found = _scrypt(password[:LONGEST_PASSWORD], bytes.fromhex(account.salt))
    is_equal = hmac.compare_digest(found, bytes.fromhex(account.verifier))
    return is_equal and account is not NOBODY and 0 < len(password) <= LONGEST_PASSWORD


def _scrypt(password: bytes, salt: bytes) -> bytes:
    with _one_at_a_time:
        return hashlib.scrypt(password, salt=salt, n=_COST, r=8, p=1, maxmem=64 << 20, dklen=32)


def read_accounts(datadir: Path) -> dict[str, Account]:
    """Return the accounts by name. If there is no file, there are no accounts.

    Raises ConfigError if the file is damaged or unreadable, or if other users can read it.
    """
    path = datadir / USERS_FILE
    try:
        data = read_plain(path, _LARGEST, follow=False)
        if is_readable_by_others(path):
            raise ConfigError(
                f"{path} holds accounts and others can read it",
                hint=f"to let only its owner read the file, run: chmod 600 {path}",
            )
        return {name: _account(name, stored) for name, stored in dict(parsed_json(data)).items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{path} is damaged: it is not a list of accounts",
            hint=f"to begin without accounts, run: mv {path} {path}.bad",
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def _account(name: str, stored: dict[str, Any]) -> Account:
    account = Account(
        name=name,
        role=stored["role"],
        salt=stored["salt"],
        verifier=stored["verifier"],
        native=stored.get("native", ""),
    )
    if account.role not in ROLES or len(bytes.fromhex(account.verifier)) != 32 or not bytes.fromhex(account.salt):
        raise ValueError(name)
    if len(bytes.fromhex(account.native)) not in (0, 20):
        raise ValueError(name)
    return account


def write_accounts(datadir: Path, accounts: dict[str, Account]) -> None:
    """Replace the file by these accounts, with mode 0600. Raises OSError if the file cannot be written."""
    rows = {name: asdict(account) for name, account in sorted(accounts.items())}
    for row in rows.values():
        del row["name"]
    replace_file(datadir / USERS_FILE, json.dumps(rows, indent=1).encode() + b"\n")


def unknown_account(name: str) -> UsageError:
    return UsageError(
        f"there is no account '{name}'", errno=er.UNKNOWN_ERROR, hint="to list the accounts, run: rplctl user list"
    )
