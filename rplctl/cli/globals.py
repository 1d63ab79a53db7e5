"""Define the options of every command: instance folder, option file and output format. They may follow the verb,
too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from rplctl.cli.color import choose, is_dumb
from rplctl.command.instance.compiled_code import choose_folder
from rplctl.config import Config, default_datadir, load_config
from rplctl.errors import UsageError

LOG_FORMATS = ("seed", "mysql8")  # values of --format after log-status: names of columns, not layouts
FORMATS = ("table", "vertical", "tsv", "json")
COLORS = ("auto", "always", "never")
_OTHER_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
GLOBAL_FLAGS = {  # flag → True if it has a value
    **dict.fromkeys(("--datadir", "--config", "--format", "-f", "--color"), True),
    **dict.fromkeys(("--json", "--vertical", "-E", "--quiet", "-q", "--verbose", "-v"), False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Globals:
    datadir: Path
    config_file: Path | None = None
    format: str = ""  # '': the default for a terminal or a pipe
    quiet: bool = False
    verbose: bool = False
    color: str = "auto"

    def config(self, channel: str = "") -> Config:
        """Return the options of the channel. From now on, `channel_at_work` returns this channel."""
        _at_work.set(channel)
        return load_config(self.datadir, channel, config_file=self.config_file)

    @property
    def is_terminal(self) -> bool:
        return sys.stdout.isatty() and not is_dumb()


_at_work: ContextVar[str] = ContextVar("_at_work", default="")


def channel_at_work() -> str:
    """Return the channel on which the command works now. A hint names this channel if the error does not name one."""
    return _at_work.get()


def leave_channel() -> None:
    """Forget the channel of `channel_at_work`, because another command line begins."""
    _at_work.set("")


def make_globals(
    datadir: Path | None, config_file: Path | None, format: str, quiet: bool, verbose: bool, color: str
) -> Globals:
    """Return the values of the global options, after a check.

    Raises UsageError if a value is not permitted, and ConfigError if the instance folder cannot be determined.
    """
    for value, choices, flag in ((format, FORMATS, "--format"), (color, COLORS, "--color")):
        if value and value not in choices:
            also = f"; log-status also takes {', '.join(LOG_FORMATS)}" if flag == "--format" else ""
            raise UsageError(f"{flag} {value}: the value must be one of {', '.join(choices)}{also}")
    choose(color)
    folder = (datadir or default_datadir(config_file)).expanduser().absolute()
    choose_folder(folder)
    return Globals(datadir=folder, config_file=config_file, format=format, quiet=quiet, verbose=verbose, color=color)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """True if the command line asks for JSON. Other mistakes in the command line are ignored."""
    pairs = zip(arguments, arguments[1:], strict=False)
    return not {"--json", "--format=json"}.isdisjoint(arguments) or any(
        flag in ("-f", "--format") and value == "json" for flag, value in pairs
    )


def hoist(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the global options first: `show-status --json` becomes `--json show-status`.

    Raises UsageError for an argument that is not UTF-8, for a dash that is not ASCII, and for a missing value.
    """
    for word in arguments:
        if not word.isascii() and any(0xD800 <= ord(c) < 0xE000 for c in word):  # Python's form of invalid bytes
            raise UsageError(f"'{word}' is not UTF-8", hint="use a UTF-8 locale; the command `locale` shows yours")
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        if word[:1] in _OTHER_DASHES and word:
            raise UsageError(
                f"'{word}' begins with a dash that is not the ASCII -, as in texts and web pages",
                hint="type the options again, or write -- before a file of that name",
            )
        flag, equals, value = word.partition("=")
        if flag not in GLOBAL_FLAGS or (equals and not flag.startswith("--")):
            rest.append(word)
            continue
        taken = [word]
        if GLOBAL_FLAGS[flag] and not equals:
            following = next(words, None)
            if following is None:
                raise UsageError(
                    f"Option '{flag}' requires an argument.",
                    hint="to see the options and their values, run: rplctl --help",
                )
            taken.append(value := following)
        (rest if rest and flag == "--format" and value in LOG_FORMATS else front).extend(taken)
    return front + rest
