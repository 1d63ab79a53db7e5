"""Define the options of `flush-relay-logs`, run the command, and print its result."""

from __future__ import annotations

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, end, for_each
from rplctl.cli.output import say
from rplctl.config import Config


def flush_relay_logs(options: Globals, channel: str | None = CHANNELS) -> None:
    """Start a new relay log (FLUSH RELAY LOGS)."""
    from rplctl.command.flush_relay_logs import flush_relay_logs as run

    def flush(name: str, config: Config) -> None:
        result = run(config, name)
        done = "the receiver begins a new relay log" if result.asked_receiver else "the receiver does not run"
        say(options, f"channel '{name}': {done}", result)

    end(for_each(options, channel, flush))
