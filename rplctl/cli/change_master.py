"""`change-master`, `change-filter` and `init`: what configures an instance and its channels.

The options of change-master are the rows of `CHANGE_OPTIONS`; Typer gets them as the function's signature.
"""

from __future__ import annotations

import getpass
import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rplctl.channel import check_channel_name
from rplctl.cli.options import (
    AskPassword,
    ChannelName,
    DryRun,
    PasswordFile,
    PasswordReference,
    PasswordStdin,
    options_of,
    the_channel,
)
from rplctl.cli.output import say, say_notes
from rplctl.command.channel.change_options import CHANGE_OPTIONS, parse_changes
from rplctl.config import OPTIONS, Option
from rplctl.errors import UsageError
from rplctl.secret import PasswordSources, check_reference, find_password

_HOW = "give --password-file FILE, --password-stdin or --ask-password"
PasswordOnArgv = Annotated[
    str | None, typer.Option("--master-password", "--source-password", "--password", hidden=True)
]


def _sources(file: Path | None, stdin: bool, ask: bool, reference: str, prompt: str) -> PasswordSources:
    if sum((file is not None, stdin, ask, bool(reference))) > 1:
        raise UsageError("give the password one way only", hint=_HOW)
    if ask and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("--ask-password needs a terminal", hint="give --password-file FILE or --password-stdin")
    return PasswordSources(
        file, stdin, (lambda: getpass.getpass(prompt)) if ask else None, check_reference(reference) if reference else ""
    )


def _refuse_password_on_argv(value: str | None) -> None:
    if value is not None:
        raise UsageError("a password on the command line can be seen by everybody on this machine", hint=_HOW)


def _change_master(context: typer.Context, channel: str | None, dry_run: bool, **given: Any) -> None:
    """Set where a channel reads from (CHANGE MASTER TO)."""
    from rplctl.command.change_master import change_master as run

    _refuse_password_on_argv(given.pop("password_on_argv"))
    texts = {name: given[name] for name in CHANGE_OPTIONS if given[name] is not None}
    user, host = texts.get("master_user", ""), texts.get("master_host", "")
    sources = _sources(
        given["password_file"],
        given["password_stdin"],
        given["ask_password"],
        given["password_reference"],
        f"Password of {user or 'the replication account'}{f'@{host}' if host else ''}: ",
    )
    if not (texts or sources.is_given):
        raise UsageError("change-master needs something to change", hint="rplctl change-master --help")
    check_channel_name(channel or "")
    # without an option of its own the password is looked up only when an account is named
    is_wanted = not sources.reference and (sources.is_given or "master_user" in texts)
    password = find_password(sources, user) if is_wanted else None
    changes = parse_changes(texts, password, sources.reference or None)
    options = options_of(context)
    name = _channel_to_change(context, channel)
    result = run(options.config(name), name, changes, dry_run=dry_run)
    say_notes(options, result.notes)
    where = result.master_info.master_binlog_dir or f"{result.master_info.host}:{result.master_info.port}"
    start = result.master_info.read_position
    text = f"channel '{name}' reads from {where}, {start if start.log_name else 'the first binary log'}"
    purge = "; relay logs are removed" if result.purges_relay_logs and not result.created else ""
    say(
        options,
        f"{'would change: ' if dry_run else ''}{text}{purge}",
        {
            "Channel_Name": name,
            "Master_Host": result.master_info.host,
            "Master_Port": result.master_info.port,
            "Master_Binlog_Dir": result.master_info.master_binlog_dir,
            "Master_Log_File": start.log_name,
            "Read_Master_Log_Pos": start.log_pos,
            "Password_Set": bool(result.master_info.user_password),
            "Created": result.created,
            "Purges_Relay_Logs": result.purges_relay_logs,
            "Dry_Run": dry_run,
        },
    )


def _channel_to_change(context: typer.Context, given: str | None) -> str:
    """CHANGE MASTER without a channel means the default one unless several exist (3079)."""
    from rplctl.command.channel.context import one_channel

    return one_channel(options_of(context).config(), given)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _change_master_signature() -> inspect.Signature:
    fixed = [
        inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
        _parameter("channel", ChannelName, None),
    ]
    rows = [
        _parameter(
            row.name,
            Annotated[str | None, typer.Option(*row.flags, metavar=row.metavar, help=_sentence(row.help))],
            None,
        )
        for row in CHANGE_OPTIONS.values()
    ]
    secrets = [
        _parameter("password_file", PasswordFile, None),
        _parameter("password_stdin", PasswordStdin, False),
        _parameter("ask_password", AskPassword, False),
        _parameter("password_reference", PasswordReference, ""),
        _parameter("password_on_argv", PasswordOnArgv, None),
        _parameter("dry_run", DryRun, False),
    ]
    return inspect.Signature([*fixed, *rows, *secrets])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


change_master = _change_master
change_master.__signature__ = _change_master_signature()  # type: ignore[attr-defined]
change_master.__annotations__ = {}


def _change_filter(context: typer.Context, channel: str | None, dry_run: bool, **given: Any) -> None:
    """Set which databases and tables a channel applies.

    CHANGE REPLICATION FILTER: a list that is given replaces the one before.
    """
    from rplctl.command.change_filter import change_filter as run

    options = options_of(context)
    name, config = the_channel(options, channel)
    rules = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    result = run(config, name, rules, dry_run=dry_run)
    shown = "; ".join(f"{rule}: {text}" for rule, text in result.filters.items() if text) or "everything is applied"
    say(
        options,
        f"{'would change: ' if dry_run else ''}channel '{name}': {shown}",
        {"Channel_Name": name, **result.filters, "Dry_Run": dry_run},
    )


def _change_filter_signature() -> inspect.Signature:
    return inspect.Signature(
        [
            inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
            _parameter("channel", ChannelName, None),
            *(_option_parameter(o) for o in OPTIONS.values() if o.holds),
            _parameter("dry_run", DryRun, False),
        ]
    )


def _option_parameter(o: Option) -> inspect.Parameter:
    """Of a row of the option table; a list may be given several times."""
    flags = [f"--{name.replace('_', '-')}" for name in (o.name, o.old_name) if name]
    kind = typer.Option(*flags, metavar=o.range_text, help=_sentence(o.help))
    annotation = Annotated[list[str] | None, kind] if o.holds else Annotated[str | None, kind]
    return _parameter(o.name, annotation, None)


change_filter = _change_filter
change_filter.__signature__ = _change_filter_signature()  # type: ignore[attr-defined]
change_filter.__annotations__ = {}


def _init(context: typer.Context, **given: Any) -> None:
    """Make an instance folder, or change its options."""
    from rplctl.command.init import init as run

    options = options_of(context)
    _refuse_password_on_argv(given.pop("password_on_argv"))
    sources = _sources(given["target_password_file"], given["target_password_stdin"], False, "", "")
    password = find_password(sources, "") if sources.is_given else None
    values = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    result = run(options.datadir, values, password, config_file=options.config_file)
    say_notes(options, result.notes)
    say(
        options,
        f"instance folder {result.datadir}, target {result.target}",
        {
            "Datadir": str(result.datadir),
            "Option_File": str(result.option_file),
            "Target": result.target,
            "Created_Tables": result.created_tables,
        },
    )


def _init_signature() -> inspect.Signature:
    parameters = [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    for o in OPTIONS.values():
        if o.name == "target_password":
            continue  # never on a command line
        parameters.append(_option_parameter(o))
    file = typer.Option("--target-password-file", metavar="FILE", help="Read the target's password from a file.")
    stdin = typer.Option("--target-password-stdin", help="Read the target's password from standard input.")
    refused = typer.Option("--target-password", hidden=True)
    parameters += [
        _parameter("target_password_file", Annotated[Path | None, file], None),
        _parameter("target_password_stdin", Annotated[bool, stdin], False),
        _parameter("password_on_argv", Annotated[str | None, refused], None),
    ]
    return inspect.Signature(parameters)


init = _init
init.__signature__ = _init_signature()  # type: ignore[attr-defined]
init.__annotations__ = {}
