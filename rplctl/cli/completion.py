"""Determine the values that a shell offers on TAB: names of channels and relay logs, and values of options.

Typer uses them if the variable `_RPLCTL_COMPLETE` (app.TAB) is set. Invariant: the values come only from file names in
the instance folder. No database, lock or large module is used (design D16). If the folder cannot be read, no values are
offered. The options of every command are also offered after the verb. For an option without known values, such as FILE
or DIR, the shell offers file names.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rplctl import failpoint
from rplctl.channel import decode_channel_name
from rplctl.command.selftest.crash_cases import ALL_KINDS, MODES
from rplctl.command.show_status import COLUMNS
from rplctl.config import default_datadir
from rplctl.errors import RplError

_CHOICES = re.compile(r"[\w-]+(?:\|[\w-]+)+")
_RELAY_LOGS = ("relay_log_file", "until_relay_log_file")
_CRASH_NAMES = {"points": sorted(failpoint.CRASH_POINTS), "mode": [*MODES, "-"], "kinds": ALL_KINDS}


def words() -> list[str]:
    """Return the words of the unfinished command line, without the program's name and the word at the cursor."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        found = shlex.split(line)
    except ValueError:  # a quote is open
        found = line.split()
    last = os.environ.get("COMP_CWORD", "")
    end = int(last) if last.isdecimal() else len(found) - (not line.endswith(" "))
    return found[1:end]


def offer_values(command: Any) -> None:
    """Set the completer of every parameter with known values, and add the global options to each verb."""
    everywhere = [p for p in command.params if p.name not in ("version", "install_completion", "show_completion")]
    for verb, child in command.commands.items():
        known = {flag for parameter in child.params for flag in getattr(parameter, "opts", ())}
        child.params += [p for p in everywhere if not known & set(p.opts)]
        for parameter in child.params:
            _offer(parameter, verb)
    for parameter in command.params:
        _offer(parameter, "")


def _offer(parameter: Any, verb: str) -> None:
    source = _source_of(parameter, verb)
    if source is not None and hasattr(parameter, "_custom_shell_complete"):
        parameter._custom_shell_complete = lambda context, _, incomplete: _matching(source(context), incomplete)


def _source_of(parameter: Any, verb: str) -> Callable[[Any], Iterable[str]] | None:
    name, metavar = parameter.name, getattr(parameter, "metavar", None) or ""
    if name == "channel" or (verb, name) == ("rename-channel", "old"):
        return _channels
    if name in _RELAY_LOGS or (verb, name) == ("show-relaylog-events", "log"):
        return _relay_logs
    metavar = metavar.removesuffix("|number,...")
    if _CHOICES.fullmatch(metavar):
        return lambda _: metavar.split("|")
    if metavar == "COLUMN":
        return lambda _: COLUMNS
    if verb == "crash-test" and name in _CRASH_NAMES:
        return lambda _: _CRASH_NAMES[name]
    return None


def _matching(values: Iterable[str], incomplete: str) -> list[str]:
    """Return the values that begin with the typed text, without regard to case.

    If the text is a list, only its last member is completed.
    """
    before, comma, last = incomplete.rpartition(",")
    found = [value for value in values if value.lower().startswith(last.lower())]
    return [f"{before}{comma}{value}" for value in found]


def _datadir(context: Any) -> Path:
    """Return the instance folder: the one in the unfinished command line, before or after the verb, or the default
    one.
    """
    given: dict[str, Any] = {}
    while context is not None:
        given = {**context.params, **{name: value for name, value in given.items() if value is not None}}
        context = context.parent
    folder, config = given.get("datadir"), given.get("config")
    return Path(folder).expanduser() if folder else default_datadir(Path(config) if config else None)


def _channels(context: Any) -> list[str]:
    """Return the names of the channels that have an info file or a run folder. They can be read without a database."""
    try:
        folder = _datadir(context)
        found = [path.stem.removeprefix("master-") for path in folder.glob("master-*.info")]
        found += [path.name for path in (folder / "run").iterdir() if path.is_dir() and path.name != "@"]
    except (RplError, OSError):
        found = []
    names = set()
    for encoded in found:
        try:
            names.add(decode_channel_name(encoded))
        except (ValueError, OverflowError):
            continue  # not a file of rplctl
    return sorted(names)


def _relay_logs(context: Any) -> list[str]:
    try:
        return sorted(path.name for path in _datadir(context).glob("relay-bin*.[0-9]*"))
    except (RplError, OSError):
        return []
