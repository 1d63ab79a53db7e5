"""Accounts of the MySQL front: what is stored of a password."""

from __future__ import annotations

from pathlib import Path

from rplctl.accounts import USERS_FILE, is_password, read_accounts
from rplctl.command.user import add_user
from rplctl.config import load_config

PASSWORD = "C4nary's"


def test_the_accounts_hold_no_password_and_are_private(tmp_path: Path) -> None:
    add_user(load_config(tmp_path, ""), "monitor", "reader", PASSWORD)
    path = tmp_path / USERS_FILE
    assert PASSWORD not in path.read_text() and path.stat().st_mode & 0o077 == 0
    assert PASSWORD not in repr(read_accounts(tmp_path))
    account = read_accounts(tmp_path)["monitor"]
    assert is_password(account, PASSWORD.encode()) and not is_password(account, b"") and not is_password(account, b"x")
