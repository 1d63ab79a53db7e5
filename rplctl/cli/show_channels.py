"""`show-channels`: one line for each configured channel."""

from __future__ import annotations

import typer

from rplctl.cli.options import options_of
from rplctl.cli.output import show_records


def show_channels(context: typer.Context) -> None:
    """List the configured channels."""
    from rplctl.command.show_channels import ChannelLine
    from rplctl.command.show_channels import show_channels as run

    options = options_of(context)
    show_records(options, run(options.config(), options.config), ChannelLine)
