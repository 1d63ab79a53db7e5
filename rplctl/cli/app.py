"""The Typer app: global options, every verb with its aliases.

`VERBS` is the one list of commands: (name, where its function is, aliases). Aliases are hidden, and work alike.
A command line that names its verb builds that verb only; help, completion and mistakes build them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from rplctl.cli import completion
from rplctl.cli.globals import GLOBAL_FLAGS, make_globals
from rplctl.cli.plain_values import use_plain_values

VERBS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("init", "change_master:init", ()),
    ("change-master", "change_master:change_master", ("change-source", "change-replication-source")),
    ("change-filter", "change_master:change_filter", ("change-replication-filter",)),
    ("start", "threads:start", ("start-slave", "start-replica")),
    ("stop", "threads:stop", ("stop-slave", "stop-replica")),
    ("reset", "threads:reset", ("reset-slave", "reset-replica")),
    ("show-status", "show:show_status", ("show-slave-status", "show-replica-status", "status")),
    ("show-channels", "show:show_channels", ()),
    ("show-relaylog-events", "show:show_relaylog_events", ()),
    ("flush-relay-logs", "upkeep:flush_relay_logs", ()),
    ("purge-relay-logs", "upkeep:purge_relay_logs", ()),
    ("purge-binary-logs", "upkeep:purge_binary_logs", ("purge-master-logs",)),
    ("skip", "threads:skip", ()),
    ("recover", "upkeep:recover", ()),
    ("switch-repo", "upkeep:switch_repo", ()),
    ("load-schema", "upkeep:load_schema", ()),
    ("log-status", "log_status:log_status", ("show-log-status",)),
    ("lock-instance", "log_status:lock_instance", ("lock-instance-for-backup",)),
    ("unlock-instance", "log_status:unlock_instance", ()),
    ("lock-tables", "log_status:lock_tables", ("flush-tables-with-read-lock",)),
    ("unlock-tables", "log_status:unlock_tables", ()),
    ("backup", "backup:backup", ()),
    ("restore", "backup:restore", ()),
    ("export-info", "exchange:export_info", ()),
    ("import-info", "exchange:import_info", ()),
    ("wait", "threads:wait", ()),
    ("check", "show:check", ()),
    ("doctor", "show:doctor", ()),
    ("fsync-report", "measure:fsync_report", ()),
    ("crash-test", "measure:crash_test", ()),
    ("demo", "demo:demo", ()),
)
HELP = ("-h", "--help")


def command_for(arguments: Sequence[str]) -> Any:
    """The program as a command that can be called with these (hoisted) arguments."""
    verb = verb_of(arguments)
    wanted = [row for row in VERBS if verb in (row[0], *row[2])] or VERBS
    app = typer.Typer(
        name="rplctl",
        help="A crash-safe MySQL/MariaDB replica for any SQL database, run like a MySQL replica.",
        epilog="See rplctl(1). Options of every command may stand before or after it.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": list(HELP), "max_content_width": 100},
    )
    app.callback()(_global_options)
    for name, place, aliases in wanted:
        function = _function_at(place)
        app.command(name)(function)
        for alias in aliases:
            app.command(alias, hidden=True)(function)
    command = get_command(app)
    use_plain_values(command)
    if completion.is_asked():
        completion.offer_values(command)
    return command


def verb_of(arguments: Sequence[str]) -> str:
    """The first word that is no global option; '' when there is none, or help is asked for before it."""
    words = iter(arguments)
    for word in words:
        if word in HELP:
            return ""
        if not word.startswith("-"):
            return word
        if GLOBAL_FLAGS.get(word):
            next(words, None)
    return ""


def _function_at(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"rplctl.cli.{module}"), name)
    return function


def _version(wanted: bool) -> None:
    if wanted:
        from rplctl import __version__
        from rplctl.cli.output import write

        write(f"rplctl {__version__}\n")
        raise typer.Exit


def _global_options(
    context: typer.Context,
    datadir: Annotated[
        Path | None, typer.Option("--datadir", metavar="DIR", help="Instance folder; also $RPLCTL_DATADIR.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Option file; also $RPLCTL_CONFIG.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", "-f", metavar="table|vertical|tsv|json", help="Layout of the result.")
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    vertical: Annotated[bool, typer.Option("--vertical", "-E", help="Same as --format vertical.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and asked-for results only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show more columns.")] = False,
    color: Annotated[str, typer.Option("--color", metavar="auto|always|never", help="Colour on a terminal.")] = "auto",
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.resilient_parsing:
        return
    chosen = format or ("json" if json else "vertical" if vertical else "")
    context.obj = make_globals(datadir, config, chosen, quiet, verbose, color)
