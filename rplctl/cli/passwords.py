"""Find the source of a password: a file, standard input, a prompt or a reference, but never the command line."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

import typer

from rplctl.errors import UsageError
from rplctl.secret import PasswordSources, check_reference

_HOW = "use --password-file FILE, --password-stdin or --ask-password"
PASSWORD_ON_ARGV = typer.Option(None, "--master-password", "--source-password", "--password", hidden=True)


def password_sources(file: Path | None, stdin: bool, ask: bool, reference: str, prompt: str) -> PasswordSources:
    if sum((file is not None, stdin, ask, bool(reference))) > 1:
        raise UsageError("the options for the password are mutually exclusive", hint=_HOW)
    if ask and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("--ask-password requires a terminal", hint="use --password-file FILE or --password-stdin")
    return PasswordSources(
        file, stdin, (lambda: getpass.getpass(prompt)) if ask else None, check_reference(reference) if reference else ""
    )


def refuse_password_on_argv(value: str | None) -> None:
    if value is not None:
        raise UsageError("a password on the command line is visible to everybody on this machine", hint=_HOW)
