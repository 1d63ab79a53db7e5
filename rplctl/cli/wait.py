"""`wait`: return once a channel is in a state or past a position."""

from __future__ import annotations

from typing import Annotated

import typer

from rplctl.cli.options import ChannelName, option, options_of, seconds, the_channel
from rplctl.cli.output import say
from rplctl.position import BinlogPosition


def wait(
    context: typer.Context,
    channel: ChannelName = None,
    state: Annotated[str, option("--state", "running|synced|stopped", "State to wait for.")] = "",
    pos: Annotated[str | None, option("--pos", "FILE:POS", "Source position that must be applied.")] = None,
    timeout: Annotated[str | None, option("--timeout", "SECONDS", "Give up then, exit 9.")] = None,
) -> None:
    """Wait for a state or a position (MASTER_POS_WAIT)."""
    from rplctl.command.wait import wait as run

    options = options_of(context)
    position = BinlogPosition.parse(pos) if pos is not None else None
    limit = seconds(timeout, "--timeout")
    name, config = the_channel(options, channel)
    result = run(config, name, state=state, position=position, timeout_s=limit)
    say(options, f"channel '{name}' is {state or f'past {position}'}", result)
