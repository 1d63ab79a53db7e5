"""Build the Typer app: the global options, and every verb with its aliases.

`GROUPS` is the only list of commands, sorted by task. `VERBS` maps each command to its aliases, which are hidden and
work in the same way. `rplctl show-status` is the function `show_status` in show_status.py of this package. This
function calls `show_status` in rplctl/command/show_status.py.

A command line with a verb imports only the file of this verb. Help, completion and invalid command lines import the
files of all verbs. The function of a verb imports its command only when it runs. Completion is imported only when a
shell asks for it (tests/house/test_imports.py). So help and the status of a FILE repository load neither Spark nor
SQLAlchemy nor Numba (design D16).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from rplctl import __version__
from rplctl.cli.globals import GLOBAL_FLAGS, asks_for_json, hoist, make_globals
from rplctl.cli.options import option, switch
from rplctl.cli.output import report, reporting, write
from rplctl.cli.plain_values import use_plain_values
from rplctl.deadline import one_deadline
from rplctl.errors import RplError, UsageError, file_error, memory_error
from rplctl.limits import raise_low_limits

ALIASES: dict[str, tuple[str, ...]] = {
    "change-master": ("change-source", "change-replication-source"),
    "change-filter": ("change-replication-filter",),
    "start": ("start-slave", "start-replica"),
    "stop": ("stop-slave", "stop-replica"),
    "reset": ("reset-slave", "reset-replica"),
    "show-status": ("show-slave-status", "show-replica-status", "status"),
    "purge-binary-logs": ("purge-master-logs",),
    "log-status": ("show-log-status",),
    "lock-instance": ("lock-instance-for-backup",),
    "lock-tables": ("flush-tables-with-read-lock",),
}
GROUPS: dict[str, tuple[str, ...]] = {  # by the operator's task, in the order of --help and rplctl(1)
    "Set up": ("init", "change-master", "change-filter", "clone", "load-schema", "rename-channel", "change-target"),
    "Run": ("start", "stop", "wait", "skip", "reset"),
    "Look": ("show-status", "show-channels", "show-clone", "show-changes", "history", "top"),
    "Compare data": ("verify", "repair"),
    "Positions and logs": (
        *("show-relaylog-events", "flush-relay-logs", "purge-relay-logs", "purge-binary-logs", "recover"),
        *("switch-repo", "import-info", "export-info"),
    ),
    "Back up": (
        *("backup", "restore", "log-status", "lock-instance", "unlock-instance", "lock-tables", "unlock-tables"),
    ),
    "Monitor": ("check", "doctor", "metrics", "serve", "user", "heartbeat"),
    "Self-test": ("demo", "crash-test", "fsync-report"),
}
VERBS: dict[str, tuple[str, ...]] = {name: ALIASES.get(name, ()) for names in GROUPS.values() for name in names}
HELP = ("-h", "--help")
VERSION = "--version"
TAB = "_RPLCTL_COMPLETE"  # set in the environment when a shell asks Typer for completions
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]  # the base class of all errors of a command line
BROKEN_PIPE = 141  # the exit code with which a shell reports SIGPIPE


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Messages are printed to stderr.

    Raises KeyboardInterrupt if the operator presses Ctrl-C.
    """
    as_json = asks_for_json(arguments)
    with one_deadline(), reporting(as_json=as_json, quiet=not {"-q", "--quiet"}.isdisjoint(arguments)):
        return _run(arguments, as_json=as_json)


def _run(arguments: Sequence[str], *, as_json: bool) -> int:
    hoisted: list[str] = []
    try:
        raise_low_limits()
        hoisted = hoist(arguments)
        command = _completing() if TAB in os.environ else command_for(hoisted)
        code = command(args=hoisted, prog_name="rplctl", standalone_mode=not as_json)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except _USAGE_ERROR as error:  # Typer raises this error only with JSON; otherwise it prints the error itself
        report(UsageError(error.format_message(), hint=_help_hint(hoisted)))
        return UsageError.exit_code
    except RplError as error:
        if error.exit_code == UsageError.exit_code and not error.hint:
            error.hint = _help_hint(hoisted)
        report(error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python reports the pipe at exit
        return BROKEN_PIPE
    except OSError as error:
        report(file_error(error))
        return file_error(error).exit_code
    except MemoryError:
        report(memory_error())
        return memory_error().exit_code
    except SystemExit as exit:
        return exit.code if isinstance(exit.code, int) else 0 if exit.code is None else 1


def _help_hint(hoisted: Sequence[str]) -> str:
    command = f"rplctl {verb_of(hoisted)} --help" if len(_verbs_of(hoisted)) == 1 else "rplctl --help"
    return f"to see the options and their values, run: {command}"


def command_for(arguments: Sequence[str]) -> Any:
    """Return the program as a command that can be called with these arguments.

    Only the module of the verb in `arguments` is loaded. The arguments come from `hoist`, so the global options are
    before the verb.
    """
    return _program(_verbs_of(arguments))


def _verbs_of(arguments: Sequence[str]) -> tuple[str, ...]:
    verb = verb_of(arguments)
    if not verb and VERSION in arguments and set(HELP).isdisjoint(arguments):
        return ()
    return tuple(name for name, aliases in VERBS.items() if verb in (name, *aliases)) or tuple(VERBS)


class _GroupedHelp(TyperGroup):
    """The main command, with a help that lists the other commands by task."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, VERBS))
        for group, names in GROUPS.items():
            rows = [(name.ljust(width), str(self.commands[name].help).partition("\n")[0]) for name in names]
            with formatter.section(group):
                formatter.write_dl(rows)


def _built(verbs: Iterable[str]) -> Any:
    app = typer.Typer(
        name="rplctl",
        cls=_GroupedHelp,
        help="A crash-safe replica of a MySQL or MariaDB server, operated like a MySQL replica.",
        epilog="The options above may be written before or after a command. For details, see rplctl(1).",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": list(HELP), "max_content_width": 100},
    )
    app.callback()(_global_options)
    for name in verbs:
        function = _as_typer_calls_it(function_of(name))
        app.command(name)(function)
        for alias in VERBS[name]:
            app.command(alias, hidden=True)(function)
    command = get_command(app)
    use_plain_values(command)
    return command


_program = cache(_built)  # building the options is slow, and a process may run several command lines


def _completing() -> Any:
    """Return the main command with the verb that is being typed, and with the values to offer for its options."""
    from rplctl.cli.completion import offer_values, words

    command = _built(_verbs_of(words()))
    offer_values(command)
    return command


def verb_of(arguments: Sequence[str]) -> str:
    """Return the verb: the first argument that is neither a global option nor its value.

    Return '' if there is no verb, or if `--help` comes before the verb.
    """
    words = iter(arguments)
    for word in words:
        if word in HELP:
            return ""
        if not word.startswith("-"):
            return word
        if GLOBAL_FLAGS.get(word):
            next(words, None)
    return ""


def function_of(verb: str) -> Callable[..., None]:
    name = verb.replace("-", "_")
    function: Callable[..., None] = getattr(import_module(f"rplctl.cli.{name}"), name)
    return function


def _as_typer_calls_it(verb: Callable[..., None]) -> Callable[..., None]:
    """Return a function that Typer can call for the verb. Its first parameter is Typer's context.

    The context contains the Globals, the values of the global options, which the verb's own first parameter receives.
    """

    def call(context: typer.Context, **given: Any) -> None:
        verb(context.obj, **given)

    _, *parameters = signature(verb, eval_str=True).parameters.values()
    context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    call.__signature__ = Signature([context, *parameters])  # type: ignore[attr-defined]
    call.__annotations__, call.__doc__ = {}, verb.__doc__
    return call


def _version(wanted: bool) -> None:
    if wanted:
        write(f"rplctl {__version__}\n")
        raise typer.Exit


def _global_options(
    context: typer.Context,
    datadir: Path | None = option("--datadir", "DIR", "Instance folder; also $RPLCTL_DATADIR."),
    config: Path | None = option("--config", "FILE", "Option file; also $RPLCTL_CONFIG."),
    format: str = option(("--format", "-f"), "table|vertical|tsv|json", "Format of the result.", ""),
    json: bool = switch("--json", "Same as --format json."),
    vertical: bool = switch(("--vertical", "-E"), "Same as --format vertical."),
    quiet: bool = switch(("--quiet", "-q"), "Print only errors and results."),
    verbose: bool = switch(("--verbose", "-v"), "Show more columns."),
    color: str = option("--color", "auto|always|never", "Use colour in the output.", "auto"),
    version: bool = typer.Option(False, VERSION, help="Print the version.", callback=_version, is_eager=True),
) -> None:
    if context.resilient_parsing:
        return
    chosen = format or ("json" if json else "vertical" if vertical else "")
    context.obj = make_globals(datadir, config, chosen, quiet, verbose, color)
