"""The choice of colour: one answer for tables, progress and errors.

First that is given: --color always|never, NO_COLOR (not empty: never), FORCE_COLOR (not empty, not 0: always),
TERM=dumb (never), else colour on a terminal. What a script reads from a pipe is the same either way, unless it asks for
a table.
"""

from __future__ import annotations

import os
from typing import TextIO

_chosen = "auto"  # --color of this command line
_ERROR, _PLAIN = "\x1b[1;31m", "\x1b[0m"


def choose(color: str) -> None:
    """Set the value of --color for the rest of the process."""
    global _chosen
    _chosen = color


def is_dumb() -> bool:
    """A terminal that cannot move its cursor: nothing live, no table that is drawn."""
    return os.environ.get("TERM") == "dumb"


def has_color(stream: TextIO) -> bool:
    if _chosen != "auto":
        return _chosen == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return not is_dumb() and stream.isatty()


_LEVELS = {"OK": "\x1b[32m", "WARNING": "\x1b[33m", "CRITICAL": _ERROR, "UNKNOWN": "\x1b[33m"}


def as_level(word: str, stream: TextIO) -> str:
    """The word of a verdict."""
    return f"{_LEVELS[word]}{word}{_PLAIN}" if has_color(stream) else word


def as_error(text: str, stream: TextIO) -> str:
    """The word that an error begins with."""
    return f"{_ERROR}{text}{_PLAIN}" if has_color(stream) else text
