"""Define the options of `metrics`. Print the samples, or write them into a file for node_exporter."""

from __future__ import annotations

import time
from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNELS, end, in_time, names_of, option, switch
from rplctl.cli.output import report, write
from rplctl.cli.text import to_json


def metrics(
    options: Globals,
    channel: str | None = CHANNELS,
    textfile: Path | None = option("--textfile", "FILE.prom", "Write to this file, atomically, instead of printing."),
    alerts: bool = switch("--alerts", "Print alert rules for these metrics."),
) -> None:
    """Print the state of all channels for Prometheus."""
    from rplctl.command.channel.context import one_engine
    from rplctl.command.metrics import alert_rules, metrics as run, samples, write_textfile
    from rplctl.command.watching.seen import seen

    if alerts:
        return write(alert_rules())
    with one_engine():
        names = in_time(lambda: names_of(options, channel))
        found = in_time(lambda: [seen(options.config(name), name) for name in names])
    errors = [(each.channel, each.error) for each in found if each.error]
    if len(errors) == len(found) and not textfile:
        raise errors[0][1]
    now = time.time()
    if textfile:
        write_textfile(textfile, run(found, now))
    elif options.format == "json":
        write(to_json(samples(found, now)))
    else:
        write(run(found, now).decode())
    for name, error in errors:
        report(error, name if len(names) > 1 else None)
    end(errors[0][1].exit_code if errors else 0)
