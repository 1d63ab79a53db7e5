"""The command line: Typer, output, exit codes. The only package that prints; everything it does, rplctl.command does.

`main` is the one place that turns an RplError into `ERROR number: text`, a `hint:` and its exit code (errors.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

from rplctl.errors import RplError, UsageError, file_error

INTERRUPTED = 130
BROKEN_PIPE = 141  # as a shell reports SIGPIPE
TRACEBACK_VARIABLE = "RPLCTL_TRACEBACK"


def main() -> NoReturn:
    sys.excepthook = _unexpected
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """One command line to its exit code; messages go to stderr."""
    from rplctl.cli import completion
    from rplctl.cli.app import command_for
    from rplctl.cli.globals import hoist

    hoisted: list[str] = []
    try:
        hoisted = hoist(arguments)
        command_for(completion.words() if completion.is_asked() else hoisted)(args=hoisted, prog_name="rplctl")
        sys.stdout.flush()
    except RplError as error:
        if error.exit_code == UsageError.exit_code and not error.hint:
            error.hint = help_of(hoisted)
        report(error)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at exit
        return BROKEN_PIPE
    except OSError as error:
        shown = file_error(error)
        report(shown)
        return shown.exit_code
    except SystemExit as exit:
        return exit.code if isinstance(exit.code, int) else 0 if exit.code is None else 1
    return 0


def help_of(hoisted: Sequence[str]) -> str:
    """Where a mistyped command is described: every wrong command line names its next step."""
    from rplctl.cli.app import VERBS, verb_of

    verb = verb_of(hoisted)
    known = any(verb in (name, *aliases) for name, aliases in VERBS.items())
    return f"rplctl {verb} --help" if known else "rplctl --help"


def report(error: RplError, channel: str | None = None) -> None:
    """`channel` when several were meant."""
    from rplctl.cli.color import as_error
    from rplctl.cli.text import clean, shortened

    head = as_error(f"ERROR {error.errno}" if error.errno else "ERROR", sys.stderr)
    lines = [f": {error.message}"]
    if channel is not None:
        lines.append(f"channel: '{channel}'")
    if error.position:
        lines.append(f"position: {error.position}")
    if error.hint:
        lines.append(f"hint: {error.hint}")
    sys.stderr.write(head + "".join(clean(shortened(line)) + "\n" for line in lines))


def _unexpected(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """A bug of ours: one line, the traceback only when asked for (it may show what the operator typed)."""
    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(kind, value, trace)
    sys.stderr.write(
        f"ERROR: unexpected {kind.__name__} in rplctl: this is a bug\nhint: {TRACEBACK_VARIABLE}=1 shows where\n"
    )
