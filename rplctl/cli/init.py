"""`init`. Its options are all of the option table, but for the password of the target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rplctl.cli.option_rows import option_parameter, parameter, takes
from rplctl.cli.options import option, options_of, switch
from rplctl.cli.output import say
from rplctl.cli.passwords import password_sources, refuse_password_on_argv
from rplctl.config import OPTIONS
from rplctl.secret import find_password

_FILE = option("--target-password-file", "FILE", "Read the target's password from a file.")
_STDIN = switch("--target-password-stdin", "Read the target's password from standard input.")
_REFUSED = typer.Option("--target-password", hidden=True)


@takes(
    *(option_parameter(o) for o in OPTIONS.values() if o.name != "target_password"),  # never on a command line
    parameter("target_password_file", Annotated[Path | None, _FILE], None),
    parameter("target_password_stdin", Annotated[bool, _STDIN], False),
    parameter("password_on_argv", Annotated[str | None, _REFUSED], None),
)
def init(context: typer.Context, **given: Any) -> None:
    """Make an instance folder, or change its options."""
    from rplctl.command.init import init as run

    options = options_of(context)
    refuse_password_on_argv(given.pop("password_on_argv"))
    sources = password_sources(given["target_password_file"], given["target_password_stdin"], False, "", "")
    password = find_password(sources, "") if sources.is_given else None
    values = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    result = run(options.datadir, values, password, config_file=options.config_file)
    say(options, f"instance folder {result.datadir}, target {result.target}", result)
