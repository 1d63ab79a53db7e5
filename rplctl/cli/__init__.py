"""The command line: Typer, output, exit codes. The only package that prints; everything it does, rplctl.command does.

`app.run` is the one place that turns an RplError into its exit code (errors.py), and `output.report` into
`ERROR number: text` and a `hint:`. `rplctl VERB` is VERB.py; what is no verb's:

app, globals                    the command line: verbs, options of every command
plain_values, completion        values as the verbs get them; what a TAB is offered
options                         how a verb names its own, those of several verbs, rows of a table as options
passwords, backup_lock          how a password is given; what the two locks of a backup share
output, text, color, progress   what is shown: rows, a result, an error; layouts; colour; how far a start came
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

INTERRUPTED = 130
_OBJECTS = 50_000  # what is loaded is no garbage: to look for some took a tenth of a short command
TRACEBACK_VARIABLE = "RPLCTL_TRACEBACK"


def main() -> NoReturn:
    open_standard_files()
    sys.excepthook = _unexpected
    gc.set_threshold(_OBJECTS)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """One command line to its exit code; messages go to stderr. Ctrl-C ends it quietly, also while it is loaded."""
    try:
        from rplctl.cli.app import run as run_app

        return run_app(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def open_standard_files() -> None:
    """Open /dev/null for each of standard input, output and error that is closed.

    Else the next file that is opened, a database for one, would take its number and get what is written there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))


def _unexpected(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """A bug of ours: one line, the traceback only when asked for (it may show what the operator typed)."""
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(kind, value, trace)
    sys.stderr.write(
        f"ERROR: unexpected {kind.__name__} in rplctl: this is a bug\nhint: {TRACEBACK_VARIABLE}=1 shows where\n"
    )
