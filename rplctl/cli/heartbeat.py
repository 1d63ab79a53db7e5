"""Define the options of `heartbeat`, which are those of pt-heartbeat, and print its result."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, end, for_each, option, seconds, switch, the_channel
from rplctl.cli.output import show_rows, write
from rplctl.cli.text import clean
from rplctl.config import Config
from rplctl.deadline import Deadline
from rplctl.errors import SourceError, UsageError
from rplctl.own_process import stop_on_signals

if TYPE_CHECKING:
    from rplctl.command.heartbeat import HeartbeatLag


def heartbeat(
    options: Globals,
    channel: str | None = CHANNELS,
    update: bool = switch("--update", "Write heartbeats of one channel at the source until Ctrl-C."),
    create_table: bool = switch("--create-table", "With --update, create the heartbeat table if it is missing."),
    monitor: bool = switch("--monitor", "Print the lag repeatedly until Ctrl-C."),
    interval: str = option("--interval", "SECONDS", "Seconds between two heartbeats or two lines.", "1"),
    run_time: str | None = option("--run-time", "SECONDS", "Stop after this many seconds."),
) -> None:
    """Measure the true lag, or write heartbeats."""
    from rplctl.command.heartbeat import HeartbeatLag, heartbeat as look, update as beat_at_source

    pause, limit = seconds(interval, "--interval") or 1.0, seconds(run_time, "--run-time")
    if update and monitor or create_table and not update:
        raise UsageError("--update and --monitor are mutually exclusive, and --create-table requires --update")
    beat = _beats(pause, limit)
    if update:
        name, config = the_channel(options, channel)
        return beat_at_source(config, name, creates=create_table, beat=beat)
    columns = tuple(HeartbeatLag.__dataclass_fields__)
    rows: list[dict[str, Any]] = []
    while True:
        failed = for_each(options, channel, lambda name, config: rows.append(_in_time(look, config, name)))
        if options.is_terminal and not options.format:
            write("".join(_line(row) for row in rows))
        else:
            show_rows(options, columns, rows)
        rows.clear()
        if not monitor or not beat():
            return end(failed)


def _in_time(look: Callable[[Config, str], HeartbeatLag], config: Config, name: str) -> dict[str, Any]:
    return asdict(
        Deadline().ask(f"the source or the target of channel '{name}'", SourceError, lambda: look(config, name))
    )


def _line(row: dict[str, Any]) -> str:
    lag = "lag unknown" if row["True_Lag"] is None else f"{row['True_Lag']:.2f} s behind"
    how = {"heartbeat": f" by the heartbeat of server {row['Server_Id']}", "source": " by the source's clock"}
    name = f"channel '{row['Channel_Name']}': " if row["Channel_Name"] else ""
    clocks = f"clocks differ by {row['Clock_Skew']:.3f} s (within {row['Clock_Skew_Error']:.3f})"
    text = f"{name}{lag}{how.get(row['True_Lag_From'], '')}, applied {row['Applied'] or 'nothing yet'}, {clocks}"
    return clean(text) + "\n"


def _beats(pause: float, limit: float | None) -> Callable[[], bool]:
    """Return a function that waits until the next full interval, as pt-heartbeat does, and then returns True.

    After SIGTERM, or if the total time `limit` would be exceeded, the function returns False. `pause` is the interval.
    Both times are in seconds, and a `limit` of None means no limit.
    """
    ended = threading.Event()
    stop_on_signals(ended.set, signal.SIGTERM)
    until = None if limit is None else time.monotonic() + limit

    def beat() -> bool:
        wait = pause - time.time() % pause
        if until is not None and time.monotonic() + wait > until:
            return False
        return not ended.wait(wait)

    return beat
