"""Define the options of `wait`, which returns when a channel has reached a state or a position, and print its
result.
"""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, option, seconds, the_channel
from rplctl.cli.output import say
from rplctl.position import BinlogPosition


def wait(
    options: Globals,
    channel: str | None = CHANNEL,
    state: str = option("--state", "running|synced|stopped", "State to wait for.", ""),
    pos: str | None = option("--pos", "FILE:POS", "Position of the source to wait for."),
    timeout: str | None = option("--timeout", "SECONDS", "Give up after this many seconds; the exit code is 9."),
) -> None:
    """Wait for a state or a position (MASTER_POS_WAIT)."""
    from rplctl.command.wait import wait as run

    position = BinlogPosition.parse(pos) if pos is not None else None
    limit = seconds(timeout, "--timeout")
    name, config = the_channel(options, channel)
    result = run(config, name, state=state, position=position, timeout_s=limit)
    say(options, f"channel '{name}' is {state or f'past {position}'}", result)
