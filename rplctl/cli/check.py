"""Define the options of `check`, and print the verdict in the format of monitoring plugins.

The exit code is the level of the worst verdict: 0 OK, 1 WARNING, 2 CRITICAL or 3 UNKNOWN.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from rplctl.cli.color import as_level
from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, each_channel, end, option, seconds, switch
from rplctl.cli.output import show_rows, write
from rplctl.cli.text import clean
from rplctl.deadline import Deadline
from rplctl.errors import RplError, TargetError, UsageError, as_rpl_error

if TYPE_CHECKING:
    from rplctl.command.check.verb import Verdict

_MOST_NAMED: Final = 5  # if there are more channels, those that are OK are only counted


def check(
    options: Globals,
    channel: str | None = CHANNELS,
    lag_warning: str = option("--lag-warning", "SECONDS", "Lag in seconds at which check warns.", "60"),
    lag_critical: str = option("--lag-critical", "SECONDS", "Lag in seconds at which check is critical.", "300"),
    offline: bool = switch(
        "--offline", "Check stored files only, not threads and lag; read every relay log completely."
    ),
    online: bool = switch("--online", "Also connect to the source and check it."),
    max_sync_age: str | None = option(
        "--max-sync-age", "SECONDS", "Use this value instead of the option max_sync_age, for channels that cron runs."
    ),
    max_verify_age: str | None = option(
        "--max-verify-age",
        "SECONDS",
        "Use this value instead of the option max_verify_age: warn if the last verify is older.",
    ),
) -> None:
    """Print a verdict for a monitoring system, with reasons.

    The exit code is 0 for OK, 1 for WARNING, 2 for CRITICAL, 3 for UNKNOWN.
    """
    from rplctl.command.channel.context import one_engine
    from rplctl.command.check.verb import UNKNOWN, WORDS, Scope, Verdict, check_each, limits_of, worst, worst_first

    if offline and online:
        raise UsageError("--offline and --online are mutually exclusive")
    scope = Scope.OFFLINE if offline else Scope.ONLINE if online else Scope.LOCAL
    try:
        low, high = (
            int(seconds(t, f) or 0) for t, f in ((lag_warning, "--lag-warning"), (lag_critical, "--lag-critical"))
        )
        age = seconds(max_sync_age, "--max-sync-age")
        verified = seconds(max_verify_age, "--max-verify-age")
        deadline = Deadline()
        with one_engine():
            channels = deadline.ask("the target", TargetError, partial(each_channel, options, channel))
            found = partial(limits_of, warning_s=low, critical_s=high, sync_age_s=age, verify_age_s=verified)
            verdicts = check_each(channels, found, scope, deadline)
    except UsageError:
        raise
    except (RplError, OSError) as error:  # the exit code is the verdict, and the error's own code 1 would mean WARNING
        if options.format != "json":
            write(_laid_out(options, f"RPLCTL UNKNOWN - {as_rpl_error(error).message}", "UNKNOWN"))
            return end(UNKNOWN)
        verdicts = [Verdict(channel=channel or "", level=UNKNOWN, text=as_rpl_error(error).message, lag_s=None)]
    level = worst(v.level for v in verdicts)
    if options.format == "json":
        rows: list[dict[str, Any]] = [{**asdict(v), "level": WORDS[v.level], "findings": v.shown} for v in verdicts]
        show_rows(options, tuple(rows[0]), rows)
        return end(level)
    verdicts.sort(key=lambda v: -worst_first(v.level))
    details = _details(verdicts)
    of = {v.channel: f"_{v.channel}" if v.channel else "" for v in verdicts}
    lags = [(of[v.channel], v.lag_s, v.delay_s) for v in verdicts if v.lag_s is not None]
    data = [f"'lag{name}'={lag}s;{low + delay};{high + delay};0" for name, lag, delay in lags]
    data += [f"'sync_age{of[v.channel]}'={v.sync_age_s}s" for v in verdicts if v.sync_age_s is not None]
    line = " | ".join(filter(None, [f"RPLCTL {WORDS[level]} - {details}", " ".join(data)]))
    text = _laid_out(options, line, WORDS[level])
    for v in verdicts:
        where = f"channel '{v.channel}' " if len(verdicts) > 1 or v.channel else ""
        for f in v.findings:
            found_text = f.text.replace(v.error, "as above") if v.error else f.text
            repair = f"; repair: {f.repair}" if f.repair else ""
            line = f"{where}{WORDS[f.level]} {f.code}: {found_text}{repair}".replace("|", "/")
            text += _laid_out(options, line, WORDS[f.level])
    write(text)
    end(level)


def _laid_out(options: Globals, line: str, level: str) -> str:
    """Return a line of the output, with the level in colour. On a terminal, fold the line to the terminal's width."""
    line = clean(line)
    if options.is_terminal:
        width = get_terminal_size().columns
        line = fill(line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return line.replace(level, as_level(level, sys.stdout), 1) + "\n"


def _details(verdicts: Sequence[Verdict]) -> str:
    """Return the texts of the verdicts in their order. If there are many channels, those that are OK are only
    counted.
    """
    counted = [v for v in verdicts if not v.level] if len(verdicts) > _MOST_NAMED else []
    lines = [f"'{v.channel}' {v.text}" if len(verdicts) > 1 or v.channel else v.text for v in verdicts]
    shown = lines[: len(lines) - len(counted)]
    if counted:
        lags = [v.lag_s for v in counted if v.lag_s is not None]
        behind = f", at most {max(lags)} s behind" if lags else ""
        shown.append(f"{len(counted)} of {len(verdicts)} channels OK{behind}")
    return "; ".join(shown)
