"""Declare the options of verbs, and provide the work that several verbs do with them.

Verbs declare their own options by `option`, `argument` and `switch`. Options of several verbs are constants. The rows
of a table of options become parameters by `takes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar

import typer

from rplctl.channel import check_channel_name
from rplctl.cli.globals import Globals
from rplctl.cli.output import one_list, report, say_notes
from rplctl.command.channel.context import (
    APPLIER,
    RECEIVER,
    ROLES,
    Note,
    known_channels,
    one_channel,
    one_engine,
)
from rplctl.config import Config, Option
from rplctl.deadline import Deadline, is_abandoned
from rplctl.errors import RplError, TargetError, UsageError, as_rpl_error

T = TypeVar("T")
Verb = Callable[..., None]
Flags = str | tuple[str, ...]  # the flags of one option


def option(flags: Flags, metavar: str, help: str, default: Any = None) -> Any:
    """Declare an option with a value, for Typer. The default `...` makes the option mandatory."""
    return typer.Option(default, *([flags] if isinstance(flags, str) else flags), metavar=metavar, help=help)


def argument(metavar: str, help: str, default: Any = None) -> Any:
    """Declare a positional argument, for Typer. The default `...` makes the argument mandatory."""
    return typer.Argument(default, metavar=metavar, help=help)


def switch(flags: Flags, help: str, default: Any = False) -> Any:
    """Declare an option without a value, for Typer."""
    return typer.Option(default, *([flags] if isinstance(flags, str) else flags), help=help)


def _channel(help: str) -> Any:
    return option(("--channel", "--for-channel"), "NAME", f"Replication channel{help}")


CHANNEL = _channel("; default: '', or the only channel that exists.")
CHANNELS = _channel("; default: every channel.")
SEVERAL_CHANNELS = _channel("; may be repeated; default: every channel.")
ALL_CHANNELS = switch("--all", "Act on every channel, as without --channel.")
DRY_RUN = switch("--dry-run", "Check and print what would be done; change nothing.")
YES = switch(("--yes", "-y"), "Do not ask for confirmation.")
ONLY_RECEIVER = switch(("--receiver", "--io-thread"), "Act on the receiver (I/O thread) only.")
ONLY_APPLIER = switch(("--applier", "--sql-thread"), "Act on the applier (SQL thread) only.")


def names_of(options: Globals, given: str | Sequence[str] | None, *, every: bool = False) -> list[str]:
    """Return the names of the channels of a command: those of `--channel`, or else all.

    Return [""] if no channel exists. `given` is the value of `--channel`, and `every` is True if the command line has
    `--all`. Raises UsageError if both are given, or if a name is not valid.
    """
    if every and (given or isinstance(given, str)):
        raise UsageError("--all and --channel are mutually exclusive", hint="remove one of them")
    if not given and not isinstance(given, str):
        return known_channels(options.config(), lambda note: _say_unless_late(options, note)) or [""]
    names = [given] if isinstance(given, str) else given
    for name in names:
        check_channel_name(name)
    return list(dict.fromkeys(one_channel(options.config(), name) for name in names))


def _say_unless_late(options: Globals, note: Note) -> None:
    if not is_abandoned():
        say_notes(options, [note])


def members(options: Globals, group: str, given: Sequence[str] | None, *, every: bool) -> list[str]:
    """Return the channels that belong to a group (option channel_group).

    Raises UsageError if the group has no channels, or if --channel or --all is also given.
    """
    if given or every:
        raise UsageError("--group cannot be used with --channel or --all", hint="remove one of them")
    found = [name for name in names_of(options, None) if options.config(name).channel_group == group]
    if not found:
        raise UsageError(
            f"no channel has channel_group = '{group}'",
            hint="to see the options and their values, run: man 5 rplctl.toml",
        )
    return found


def each_channel(options: Globals, given: str | None) -> list[tuple[str, Config]]:
    """Return the channels of `names_of`, each with its configuration."""
    return [(name, options.config(name)) for name in names_of(options, given)]


def for_each(
    options: Globals, given: str | Sequence[str] | None, work: Callable[[str, Config], None], *, every: bool = False
) -> int:
    """Run `work` for each channel of `names_of`, and continue after an error. Return the first error's exit code, or 0.

    Each error is reported. If there is only one channel, its error is raised instead. The parameters are those of
    `names_of`.
    """
    names = names_of(options, given, every=every)
    failed = 0
    with one_engine(), one_list(options):
        for name in names:
            try:
                work(name, options.config(name))
            except (RplError, OSError) as error:
                if len(names) == 1:
                    raise
                report(as_rpl_error(error), name)
                failed = failed or as_rpl_error(error).exit_code
    return failed


def in_time(question: Callable[[], T]) -> T:
    """Run `question`, which queries targets, for a command that only reads, and return its result.

    Raises TargetError if a target does not answer in time.
    """
    return Deadline().ask("the target", TargetError, question)


def end(exit_code: int) -> None:
    """End the command with this exit code. If the code is 0, do nothing."""
    if exit_code:
        raise typer.Exit(exit_code)


def the_channel(options: Globals, given: str | None) -> tuple[str, Config]:
    """Return the one channel that the command means, and its configuration. `given` is the value of `--channel`.

    Raises UsageError 3076 if the name is not valid, and 3079 if no name is given and there are several channels.
    """
    if given is not None:
        check_channel_name(given)
    name = one_channel(options.config(given or ""), given)
    return name, options.config(name)


def roles_of(receiver: bool, applier: bool) -> tuple[str, ...]:
    """Return the roles that --receiver and --applier select. Without these options, return both roles."""
    chosen = tuple(role for role, given in ((RECEIVER, receiver), (APPLIER, applier)) if given)
    return chosen or ROLES


def seconds(text: str | None, flag: str) -> float | None:
    """Return the number of seconds in a text such as `50`, `1.5`, `2m` or `7d`. If `text` is None, return None.

    Raises UsageError, which names the option `flag`, for any other text.
    """
    if text is None:
        return None
    factor = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:], 0)
    digits = text[:-1] if factor else text
    try:
        value = float(digits) * (factor or 1) if digits.isascii() and "_" not in digits else -1.0
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise UsageError(f"{flag} {text}: the value must be a number of seconds, like 50 or 2m")
    return value


def number(text: str, flag: str, least: int, most: int) -> int:
    """Return the number in a text. Raises UsageError if it is not a number from `least` to `most`."""
    if not re.fullmatch(r"[0-9]{1,7}", text) or not least <= int(text) <= most:
        raise UsageError(f"{flag} {text}: the value must be a number from {least} to {most}")
    return int(text)


def takes(*parameters: Parameter) -> Callable[[Verb], Verb]:
    """Set the parameters that Typer sees for a verb. The decorated function receives them as keywords.

    Use this as a decorator if the options come from a table. The Globals are always the first parameter.
    """

    def decorate(function: Verb) -> Verb:
        options = Parameter("options", Parameter.POSITIONAL_OR_KEYWORD)
        function.__signature__ = Signature([options, *parameters])  # type: ignore[attr-defined]
        return function

    return decorate


def parameter(name: str, kind: Any, given: Any) -> Parameter:
    """Return a parameter of a verb, for `takes`. `given` is its declaration by `option` or `switch`."""
    return Parameter(name, Parameter.KEYWORD_ONLY, default=given, annotation=kind)


def option_parameter(o: Option) -> Parameter:
    """Return the parameter for a row of the table of options. If the value is a list, the option may be repeated."""
    flags = tuple(f"--{name.replace('_', '-')}" for name in (o.name, o.old_name) if name)
    kind = list[str] | None if o.holds else str | None
    known = str(o.default).lower() if isinstance(o.default, bool) else str(o.default)
    text = sentence(o.help) + (f"  [default: {known}]" if known else "")
    return parameter(o.name, kind, option(flags, o.range_text, text))


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
