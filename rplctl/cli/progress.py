"""Show the progress of `--until-synced` on stderr: a live line on a terminal, or else one line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal

from rplctl.cli.color import has_color, is_dumb
from rplctl.position import BinlogPosition

INTERVAL_S = 30.0
Report = Callable[[BinlogPosition, BinlogPosition], None]


@contextmanager
def progress_unless(silent: bool) -> Iterator[Report | None]:
    """Yield a function that shows the progress, or None if `silent`. Call it with the executed and the wanted
    position.
    """
    if silent:
        yield None
    elif sys.stderr.isatty() and not is_dumb():
        with _live(has_bar=True) as update:

            def report(executed: BinlogPosition, wanted: BinlogPosition) -> None:
                # The fraction is known only within one log, because the sizes of the logs in between are unknown.
                same = executed.log_name == wanted.log_name
                done, total = (executed.log_pos, wanted.log_pos) if same else (0, None)
                update(description=_text(executed, wanted), total=total, completed=done)

            yield report
    else:
        yield _lines()


def _text(executed: BinlogPosition, wanted: BinlogPosition) -> str:
    return f"applied to {executed.or_else('nothing yet')} of {wanted}"


def _lines() -> Report:
    last = time.monotonic()

    def report(executed: BinlogPosition, wanted: BinlogPosition) -> None:
        nonlocal last
        if time.monotonic() - last >= INTERVAL_S:
            last = time.monotonic()
            sys.stderr.write(_text(executed, wanted) + "\n")

    return report


@contextmanager
def live_text(*, silent: bool) -> Iterator[Callable[[str], None] | None]:
    """Yield a function that replaces the text in the live line.

    Yield None if `silent`, or if stderr is not a terminal.
    """
    if silent or not sys.stderr.isatty() or is_dumb():
        yield None
        return
    with _live() as update:
        yield lambda text: update(description=text)


@contextmanager
def _live(*, has_bar: bool = False) -> Iterator[Callable[..., None]]:
    """Yield a function that changes the live line, with the parameters of rich's Progress.update."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    system: Literal["standard"] | None = "standard" if has_color(sys.stderr) else None
    console = Console(stderr=True, markup=False, highlight=False, emoji=False, no_color=False, color_system=system)
    text, bar = TextColumn("{task.description}", markup=False), (BarColumn(24), TimeElapsedColumn())
    with Progress(text, *(bar if has_bar else ()), console=console, transient=True) as progress:
        yield partial(progress.update, progress.add_task("starting", total=None))
