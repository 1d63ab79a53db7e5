"""Handle the command line: options, output and exit codes. Only this package prints; rplctl.command does the work.

An RplError becomes an exit code (errors.py) only in `app.run`. It becomes the printed lines `ERROR number: text` and
`hint:` only in `output.report`. A verb such as `rplctl start` is in the module of that name, start.py. The other
modules:

app           the Typer app: global options, verbs and their aliases
globals       the options that every command has, before or after the verb
plain_values  converts values of options without pydantic, which loads slowly
completion    the values that a shell offers on TAB
options       declares options of one verb, of several verbs, or of tables
passwords     reads a password from a file, standard input or a prompt
backup_lock   the common options and output of both backup locks
output        prints results to stdout, and messages and errors to stderr
text          formats text for people and for pipes
color         decides whether tables, progress and errors use colour
progress      shows the progress of `start --until-synced`
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

INTERRUPTED = 130
_OBJECTS = 50_000  # a search for garbage among the loaded modules took a tenth of the time of a short command
TRACEBACK_VARIABLE = "RPLCTL_TRACEBACK"


def main() -> NoReturn:
    open_standard_files()
    sys.excepthook = _unexpected
    gc.set_threshold(_OBJECTS)
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Messages are printed to stderr.

    Ctrl-C ends the command without a message, even while the modules are loaded.
    """
    try:
        from rplctl.cli.app import run as run_app

        return run_app(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def open_standard_files() -> None:
    """Open /dev/null for each of standard input, output and error that is closed.

    Otherwise, the next file that is opened, for example a database, would have the number of standard output. Then
    output would be written into this file.
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
    """Report an unexpected exception, which is a bug of rplctl, in one line.

    The traceback is printed only on request, because it may show the operator's input.
    """
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(kind, value, trace)
    sys.stderr.write(
        f"ERROR: unexpected {kind.__name__} in rplctl: this is a bug\n"
        f"hint: to see the traceback, set {TRACEBACK_VARIABLE}=1\n"
    )
