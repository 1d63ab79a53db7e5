"""Decide whether tables, progress and errors use colour.

The first of these settings decides:

    --color always|never    as the option says
    NO_COLOR                never, if it is not empty
    FORCE_COLOR             always, if it is neither empty nor 0
    TERM=dumb               never

Without these settings, output to a terminal has colour. In a pipe, colour changes only the layout of a table.
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
    """True if the terminal cannot move its cursor, so that it can show neither live output nor a drawn table."""
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
    """Return the word of a verdict, coloured if the output to this stream uses colour."""
    return f"{_LEVELS[word]}{word}{_PLAIN}" if has_color(stream) else word


def as_error(text: str, stream: TextIO) -> str:
    """Return the first words of an error, coloured if the output to this stream uses colour."""
    return f"{_ERROR}{text}{_PLAIN}" if has_color(stream) else text
