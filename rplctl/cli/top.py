"""Define the options of `top`, and show all channels on the whole terminal until q or Ctrl-C. In a pipe, print them
once.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rplctl.cli.color import has_color, is_dumb
from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, each_channel, option, seconds
from rplctl.cli.output import write
from rplctl.cli.text import clean, short, to_json
from rplctl.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from rplctl.command.top import Line
    from rplctl.command.watching.watch import Moment

_KEYS = {"s": "state", "l": "lag", "r": "rows", "b": "relay-log", "n": "name"}
_STYLES = {"running": "green", "connecting": "yellow", "stopped": "yellow"}  # other states are red
_LEVELS = ("green", "yellow", "bold red", "bold red")
_BARS = "▁▂▃▄▅▆▇█"
_SPARK = 10  # characters
_COLUMNS = (("RECEIVER", 10), ("APPLIER", 10), ("LAG", 5), ("LAST HOUR", _SPARK), ("ROWS/S", 6), ("RELAY", 5))
_NUMBERS = {"LAG", "ROWS/S", "RELAY"}


def top(
    options: Globals,
    channel: str | None = CHANNELS,
    interval: str = option("--interval", "SECONDS", "Seconds between two updates.", "1"),
    sort: str = option("--sort", "state|lag|rows|relay-log|name", "Order of the channels.", "state"),
) -> None:
    """Watch all channels; s, l, r, b, n sort them, q quits."""
    from rich.console import Console
    from rich.live import Live

    from rplctl.command.top import ORDERS, lines
    from rplctl.command.watching.watch import Watch

    pause = seconds(interval, "--interval") or 0.1
    if sort not in ORDERS:
        raise UsageError(f"--sort {sort}: the order must be one of {', '.join(ORDERS)}")
    each_channel(options, channel)  # reports a mistyped name before the terminal is used
    color = has_color(sys.stdout)
    console = Console(markup=False, highlight=False, emoji=False, force_terminal=color or None, no_color=not color)
    watch = Watch(lambda: each_channel(options, channel), checks=True)
    if options.format == "json":
        watch.look()
        return write(to_json([_row(line) for line in lines(watch.latest, sort)]))
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or is_dumb():
        watch.look()
        return console.print(picture(watch.latest, sort, console, None))
    with watch.running(), _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(picture(watch.latest, sort, console, console.height), refresh=True)
            key = _key(pause)
            if key in ("q", "\x1b"):
                return None
            sort = _KEYS.get(key, sort)


def _row(line: Line) -> dict[str, object]:
    from rplctl.command.check.verb import WORDS

    return {
        "Channel_Name": line.channel,
        "Level": WORDS[line.level],
        "Receiver": line.receiver,
        "Applier": line.applier,
        "Seconds_Behind_Master": line.lag_s,
        "Rows_Per_Second": round(line.rows_per_s, 1),
        "Relay_Log_Space": line.relay_log_bytes,
        "State": line.doing,
        "Trouble": line.incident,
    }


@contextmanager
def _keys() -> Iterator[None]:
    """Read single keys without echo within the block. After the block, restore the terminal."""
    before = termios.tcgetattr(sys.stdin)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGTSTP)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # a suspended `top` would hide the shell's output
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _key(patience: float) -> str:
    """Return the key that is pressed within `patience` seconds.

    Return '' if no key is pressed, or if the key sends more than one character. At the end of the input, return 'q'.
    """
    if not select.select([sys.stdin], [], [], patience)[0]:
        return ""
    pressed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
    return pressed if len(pressed) == 1 else "q" if not pressed else ""


def picture(moment: Moment, sort: str, console: Console, height: int | None) -> RenderableType:
    """Return the display of as many channels as fit into `height` lines. None means all channels.

    `sort` is a key of rplctl.command.top.ORDERS.
    """
    from rich.console import Group
    from rich.text import Text

    from rplctl.command.check.verb import WORDS
    from rplctl.command.top import lines

    found = lines(moment, sort)
    room = None if height is None else height - 4
    fitting = _fitting(found, room)
    counts = [f"{count} {word}" for word in WORDS if (count := sum(WORDS[line.level] == word for line in found))]
    head = f"rplctl  {time.strftime('%H:%M:%S', time.localtime(moment.at))}  {len(found)} channels: {', '.join(counts)}"
    if moment.error:
        head = f"rplctl  {moment.error.message}"
    left = len(found) - len(fitting)
    foot = f"by {sort}{f'; {left} more below' if left else ''}" + (
        "" if height is None else "   s l r b n: sort   q: quit"
    )
    return Group(
        Text(clean(head), style="bold", no_wrap=True, overflow="ellipsis"),
        *_rows(fitting, console.width),
        Text(foot, style="dim", no_wrap=True, overflow="ellipsis"),
    )


def _fitting(found: Sequence[Line], room: int | None) -> Sequence[Line]:
    if room is None:
        return found
    for count, line in enumerate(found):
        room -= 2 if line.incident else 1
        if room < 0:
            return found[:count]
    return found


def _rows(found: Sequence[Line], width: int) -> Iterator[RenderableType]:
    """Yield a heading, and one line for each channel. A channel with an incident has a second line about it."""
    from rich.cells import set_cell_size
    from rich.text import Text

    doing = width - 100 if width >= 120 else 0
    name = max(8, width - sum(size + 2 for _, size in _COLUMNS) - doing)
    titles = [set_cell_size("CHANNEL", name), *(_cell(title, title, size) for title, size in _COLUMNS)]
    yield Text("  ".join([*titles, *(["DOING"] if doing else [])]).ljust(width)[:width], style="bold reverse")
    for line in found:
        values = (
            line.receiver,
            line.applier,
            "?" if line.lag_s is None else _duration(line.lag_s),
            spark(line.lags),
            _figure(line.rows_per_s),
            _figure(line.relay_log_bytes),
        )
        cells = [_cell(value, title, size) for (title, size), value in zip(_COLUMNS, values, strict=True)]
        styles = [_STYLES.get(line.receiver, "bold red"), _STYLES.get(line.applier, "bold red"), "", "cyan", "", ""]
        row = Text(set_cell_size(clean(line.channel or "(default)"), name), style=_LEVELS[line.level])
        for cell, style in zip(cells, styles, strict=True):
            row.append("  ").append(cell, style=style or "none")
        if doing:
            row.append("  ").append(set_cell_size(clean(line.doing), doing - 2), style="dim")
        yield row
        if line.incident:
            style = "red" if line.level > 1 else "yellow"
            yield Text(f"  {clean(line.incident)}", style=style, no_wrap=True, overflow="ellipsis")


def _cell(value: str, title: str, size: int) -> str:
    return value.rjust(size) if title in _NUMBERS else value.ljust(size)


def spark(values: Sequence[int | None]) -> str:
    """Return a bar chart of the values in a fixed number of characters, the oldest first.

    Each character shows the highest value in its part of the time. The character is a blank if no value is known.
    """
    parts = [values[len(values) * at // _SPARK : len(values) * (at + 1) // _SPARK] for at in range(_SPARK)]
    known = [[value for value in part if value is not None] for part in parts]
    most = max((value for part in known for value in part), default=0)
    return "".join(_BARS[max(part) * (len(_BARS) - 1) // max(most, 1)] if part else " " for part in known)


def _duration(count: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if count >= 2 * size:
            return f"{count // size}{unit}"
    return f"{count}s"


def _figure(count: float) -> str:
    return short(count).replace(" ", "")
