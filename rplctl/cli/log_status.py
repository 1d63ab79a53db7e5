"""Define the options of `log-status`, and print the coordinates for a backup (WL#9452)."""

from __future__ import annotations

import json
import sys
from typing import Any

from rplctl.cli.globals import Globals
from rplctl.cli.options import option
from rplctl.cli.output import show_rows


def log_status(
    options: Globals,
    layout: str = option(
        "--format", "seed|mysql8", "Names of columns and keys: seed = as in WL#9452, mysql8 = as in MySQL 8.", ""
    ),
) -> None:
    """Show the coordinates for a backup (WL#9452).

    All coordinates are from the same moment.
    """
    from rplctl.command.log_status import log_status as run

    found = run(options.config, layout)
    row = found.row if options.format == "json" else {name: _as_text(value) for name, value in found.row.items()}
    show_rows(options, tuple(row), [row], prefer_vertical=True)
    if options.verbose:
        held, map_held, waited = (f"{s * 1000:.1f} ms" for s in (found.held_s, found.map_held_s, found.waited_s))
        sys.stderr.write(f"held {held} (commands {map_held}), waited {waited}\n")


def _as_text(value: Any) -> str:
    """Return the value as text. A JSON document has the format in which MySQL prints a JSON column."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
