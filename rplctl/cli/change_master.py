"""Define the options of `change-master`, run the command, and print its result.

Each row of `CHANGE_OPTIONS` becomes an option: `takes` adds it to the function's signature.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rplctl.channel import check_channel_name
from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, YES, option, parameter, sentence, switch, takes
from rplctl.cli.output import confirm, say
from rplctl.cli.passwords import PASSWORD_ON_ARGV, password_sources, refuse_password_on_argv
from rplctl.command.channel.change_options import CHANGE_OPTIONS, parse_changes
from rplctl.errors import UsageError
from rplctl.secret import find_password

_FILE = "Read the password from a file that only you can read."
_POSITIONS = frozenset({"master_log_file", "master_log_pos", "relay_log_file", "relay_log_pos"})
_REFERENCE = "Store env:NAME or file:/PATH instead of the password; rplctl reads the password there."


@takes(
    parameter("channel", str | None, CHANNEL),
    *(
        parameter(row.name, str | None, option(row.flags, row.metavar, sentence(row.help)))
        for row in CHANGE_OPTIONS.values()
    ),
    parameter("password_file", Path | None, option("--password-file", "FILE", _FILE)),
    parameter("password_stdin", bool, switch("--password-stdin", "Read the password from standard input.")),
    parameter("ask_password", bool, switch("--ask-password", "Ask for the password on the terminal.")),
    parameter("password_reference", str, option("--password-reference", "REF", _REFERENCE, "")),
    parameter("password_on_argv", str | None, PASSWORD_ON_ARGV),
    parameter("dry_run", bool, DRY_RUN),
    parameter("yes", bool, YES),
)
def change_master(options: Globals, channel: str | None, dry_run: bool, yes: bool, **given: Any) -> None:
    """Set where a channel reads from (CHANGE MASTER TO)."""
    from rplctl.command.change_master import change_master as run
    from rplctl.command.channel.context import one_channel

    refuse_password_on_argv(given.pop("password_on_argv"))
    texts = {name: given[name] for name in CHANGE_OPTIONS if given[name] is not None}
    user, host = texts.get("master_user", ""), texts.get("master_host", "")
    sources = password_sources(
        given["password_file"],
        given["password_stdin"],
        given["ask_password"],
        given["password_reference"],
        f"Password of {user or 'the replication account'}{f'@{host}' if host else ''}: ",
    )
    if not (texts or sources.is_given):
        raise UsageError(
            "change-master requires an option to change",
            hint="to see the options and their values, run: rplctl change-master --help",
        )
    check_channel_name(channel or "")
    # Without a password option, find the password elsewhere only if the command names an account.
    is_wanted = not sources.reference and (sources.is_given or "master_user" in texts)
    password = find_password(sources, user) if is_wanted else None
    changes = parse_changes(texts, password, sources.reference or None)
    name = one_channel(options.config(), channel)  # the default channel unless several exist (3079)
    asks = not (dry_run or yes) and not _POSITIONS.isdisjoint(texts)
    if asks and run(options.config(name), name, changes, dry_run=True).repeats:
        question = "the new position is before the executed position: transactions would be applied again."
        confirm(f"Channel '{name}': {question}", yes=yes)
    result = run(options.config(name), name, changes, dry_run=dry_run)
    where = result.master_info.master_binlog_dir or f"{result.master_info.host}:{result.master_info.port}"
    begins = "at the position of its GTIDs" if result.master_info.uses_gtid else "the first binary log"
    text = f"channel '{name}' reads from {where}, {result.master_info.read_position.or_else(begins)}"
    purge = "; relay logs are removed" if result.purges_relay_logs and not result.created else ""
    say(options, f"{'would change: ' if dry_run else ''}{text}{purge}", result)
