"""Define the options of `user`, which adds, lists and removes the accounts of `serve --mysql`, and print its result."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import argument, option, switch
from rplctl.cli.output import say, show_records
from rplctl.cli.passwords import password_sources
from rplctl.errors import UsageError
from rplctl.secret import find_password


def user(
    options: Globals,
    action: str = argument("add|list|remove", "Action on the accounts.", ...),
    name: str = argument("NAME", "Name of the account.", ""),
    role: str = option(
        "--role",
        "reader|admin|replication",
        "Role of the account: reader = read the status, admin = also change channels, "
        "replication = read the binary log.",
        "reader",
    ),
    native: bool = switch("--native", "Use mysql_native_password, for clients that do not know caching_sha2_password."),
    password_file: Path | None = option(
        "--password-file", "FILE", "Read the password from a file that only you can read."
    ),
    password_stdin: bool = switch("--password-stdin", "Read the password from standard input."),
    ask_password: bool = switch("--ask-password", "Ask for the password on the terminal."),
) -> None:
    """Add, list or remove accounts of serve --mysql."""
    from rplctl.command.user import UserLine, add_user, list_users, remove_user

    if action not in ("add", "list", "remove"):
        raise UsageError(
            f"user {action}: the action must be add, list or remove", hint="to see the actions, run: rplctl user --help"
        )
    if bool(name) == (action == "list"):
        raise UsageError(
            f"user {action} {'takes no NAME' if name else 'requires a NAME'}",
            hint="to see the actions, run: rplctl user --help",
        )
    config = options.config()
    if action == "list":
        return show_records(options, list_users(config), UserLine)
    if action == "remove":
        return say(options, f"account '{name}' is removed", remove_user(config, name))
    sources = password_sources(password_file, password_stdin, ask_password, "", f"Password of {name}: ")
    password = find_password(sources, name) if sources.is_given else None
    added = add_user(config, name, role, password, native=native)
    made = f"; its password, which is not shown again, is {added.Password}" if added.Password else ""
    say(options, f"account '{name}' has the role {role}{made}", added)
