"""Define the options of `show-channels`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import in_time
from rplctl.cli.output import show_records


def show_channels(options: Globals) -> None:
    """List the configured channels."""
    from rplctl.command.show_channels import ChannelLine, show_channels as run

    show_records(options, in_time(lambda: run(options.config(), options.config)), ChannelLine)
