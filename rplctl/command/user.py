"""`user`: manage the accounts of `serve --mysql`. A change takes effect at the next sign-in, without a restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from rplctl.accounts import (
    USERS_FILE,
    Account,
    new_account,
    random_password,
    read_accounts,
    unknown_account,
    write_accounts,
)
from rplctl.config import Config
from rplctl.errors import NotConfigured, UsageError, file_errors, no_instance
from rplctl.history import note_event
from rplctl.locks import PATIENCE_S, FileLock, lock_wait_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLine:
    """One account in the list. The field names are the column names."""

    User: str
    Role: str
    Plugin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserAdded:
    """The new account. `Password` is the password that rplctl generated. `Password` is '' if the caller gave one."""

    User: str
    Role: str
    Password: str


def refuse_missing_folder(config: Config) -> None:
    """Raise NotConfigured if the instance folder is missing. Otherwise, a mistyped --datadir would create a folder."""
    if not config.datadir.is_dir():
        raise NotConfigured(f"there is no instance folder {config.datadir}", hint=no_instance(config.datadir))


def add_user(config: Config, name: str, role: str, password: str | None, *, native: bool = False) -> UserAdded:
    """Add an account. If `password` is None, rplctl generates one. `native` chooses the plugin mysql_native_password.

    Raises UsageError if the account exists or a value is not valid. Raises NotConfigured if the instance does not
    exist, and ConfigError if the file of accounts is not usable.
    """
    given = random_password() if password is None else password
    with _changing(config) as accounts:
        if name in accounts:
            raise UsageError(
                f"account '{name}' already exists", hint=f"to remove the account, run: rplctl user remove {name}"
            )
        accounts[name] = new_account(name, role, given, native=native)
    note_event(config.datadir, None, "user", f"account '{name}' added with the role {role}")
    return UserAdded(User=name, Role=role, Password=given if password is None else "")


def remove_user(config: Config, name: str) -> UserLine:
    """Remove an account and return it.

    Raises UsageError if the account does not exist, NotConfigured if the instance does not exist, and ConfigError if
    the file of accounts is not usable.
    """
    with _changing(config) as accounts:
        if name not in accounts:
            raise unknown_account(name)
        line = _line(accounts.pop(name))
    note_event(config.datadir, None, "user", f"account '{name}' removed")
    return line


def list_users(config: Config) -> list[UserLine]:
    """Return the accounts, sorted by name.

    Raises NotConfigured if the instance does not exist, and ConfigError if the file of accounts is not usable.
    """
    refuse_missing_folder(config)
    return [_line(account) for _, account in sorted(read_accounts(config.datadir).items())]


def _line(account: Account) -> UserLine:
    plugin = "mysql_native_password" if account.native else "caching_sha2_password"
    return UserLine(User=account.name, Role=account.role, Plugin=plugin)


@contextmanager
def _changing(config: Config) -> Iterator[dict[str, Account]]:
    """Yield the accounts for a change, and write them if the block ends without an error.

    A lock prevents other processes from changing the accounts within the block.
    """
    refuse_missing_folder(config)
    with file_errors(), closing(FileLock(config.datadir / f".{USERS_FILE}.lock")) as lock:
        if not lock.acquire(patience_s=PATIENCE_S):
            raise lock_wait_timeout("another process changes the accounts", "run the same command again")
        accounts = read_accounts(config.datadir)
        yield accounts
        write_accounts(config.datadir, accounts)
