"""The Typer app: global options, every verb with its aliases.

`VERBS` is the one list of commands: (name, function, aliases). Aliases are hidden from help and work alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from rplctl.cli.change_master import change_master, init
from rplctl.cli.demo import demo
from rplctl.cli.globals import make_globals
from rplctl.cli.show import check, doctor, show_channels, show_relaylog_events, show_status
from rplctl.cli.threads import reset, skip, start, stop, wait
from rplctl.cli.upkeep import flush_relay_logs, load_schema, purge_relay_logs, recover, switch_repo

VERBS: tuple[tuple[str, Callable[..., Any], tuple[str, ...]], ...] = (
    ("init", init, ()),
    ("change-master", change_master, ("change-source", "change-replication-source")),
    ("start", start, ("start-slave", "start-replica")),
    ("stop", stop, ("stop-slave", "stop-replica")),
    ("reset", reset, ("reset-slave", "reset-replica")),
    ("show-status", show_status, ("show-slave-status", "show-replica-status", "status")),
    ("show-channels", show_channels, ()),
    ("show-relaylog-events", show_relaylog_events, ()),
    ("flush-relay-logs", flush_relay_logs, ()),
    ("purge-relay-logs", purge_relay_logs, ()),
    ("skip", skip, ()),
    ("recover", recover, ()),
    ("switch-repo", switch_repo, ()),
    ("load-schema", load_schema, ()),
    ("wait", wait, ()),
    ("check", check, ()),
    ("doctor", doctor, ()),
    ("demo", demo, ()),
)

app = typer.Typer(
    name="rplctl",
    help="A crash-safe MySQL/MariaDB replica for any SQL database, run like a MySQL replica.",
    epilog="See rplctl(1). Options of every command may stand before or after it.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from rplctl import __version__
        from rplctl.cli.output import write

        write(f"rplctl {__version__}\n")
        raise typer.Exit


@app.callback()
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


for _name, _function, _aliases in VERBS:
    app.command(_name)(_function)
    for _alias in _aliases:
        app.command(_alias, hidden=True)(_function)
