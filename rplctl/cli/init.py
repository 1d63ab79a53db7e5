"""Define the options of `init`, and print the result.

The options are those of the table of all options. Only `target_password` is replaced by options that read the password
from a file or from standard input, so the password is never on the command line.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from rplctl.cli.globals import Globals
from rplctl.cli.options import option, option_parameter, parameter, switch, takes
from rplctl.cli.output import say, write
from rplctl.cli.passwords import password_sources, refuse_password_on_argv
from rplctl.config import OPTIONS
from rplctl.secret import find_password

_FILE = option("--target-password-file", "FILE", "Read the target's password from a file.")
_STDIN = switch("--target-password-stdin", "Read the target's password from standard input.")
_SYSTEMD = switch("--systemd", "Write units and timers for systemd and print the next command.")


@takes(
    *(option_parameter(o) for o in OPTIONS.values() if o.name != "target_password"),  # never on a command line
    parameter("target_password_file", Path | None, _FILE),
    parameter("target_password_stdin", bool, _STDIN),
    parameter("systemd", bool, _SYSTEMD),
    parameter("systemd_dir", Path | None, option("--systemd-dir", "DIR", "Folder for the systemd units.")),
    parameter("force", bool, switch("--force", "Overwrite systemd units that were edited.")),
    parameter("password_on_argv", str | None, typer.Option(None, "--target-password", hidden=True)),
)
def init(options: Globals, **given: Any) -> None:
    """Create an instance, or change its options."""
    from rplctl.command.init import init as run
    from rplctl.command.instance.units import unit_folder, write_units

    refuse_password_on_argv(given.pop("password_on_argv"))
    sources = password_sources(given["target_password_file"], given["target_password_stdin"], False, "", "")
    password = find_password(sources, "") if sources.is_given else None
    values = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    folder = unit_folder(given["systemd_dir"]) if given["systemd"] or given["systemd_dir"] else None
    result = run(options.datadir, values, password, config_file=options.config_file)
    if folder:
        units = write_units(options.config(), folder, force=given["force"])
        result = replace(result, units=units.written, next_commands=units.next_commands)
    say(options, f"instance folder {result.datadir}, target {result.target}", result)
    if result.next_commands and not options.quiet and options.format != "json":
        what = f"{units.folder}: {', '.join(units.written) or 'all units are up to date'}"
        write("\n".join((what, "next:", *(f"  {command}" for command in units.next_commands), "")))
