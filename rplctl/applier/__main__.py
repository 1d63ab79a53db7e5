"""The applier process of one channel, or of several channels that share a process.

`rplctl start` runs `python -m rplctl.applier DATADIR CHANNEL [START-OPTIONS-JSON]`, and `rplctl start --shared-session`
runs `python -m rplctl.applier DATADIR --shared FOLDER CHANNELS-JSON`.

After SIGTERM or SIGINT, the process rolls back the current batch, or waits until the current statement is executed.
Then it ends. If an error ended the applier, the exit code is the code of this error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from rplctl.applier.options import OPTIONS_FOLLOW, StartOptions
from rplctl.applier.spark import session
from rplctl.applier.spark.own_gateway import kill_started
from rplctl.channel import Channel, hold_lock
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.log_file import log_on_stderr
from rplctl.own_process import collect_seldom, serve_many_threads, stop_on_signals

LINE = "%(asctime)s %(levelname)s applier: %(message)s"
EARLY_PATIENCE_S = 30.0  # the longest wait for an early applier (`serve_one`) that ends because its command was killed
SHARED = "--shared"  # never a channel's name: the command line refuses such a name


def main(arguments: list[str]) -> int:
    collect_seldom()
    datadir, channel_name, *rest = arguments
    try:
        if channel_name == SHARED and len(rest) > 1:
            return serve_several(Path(datadir), *rest)
        log_on_stderr(LINE, Channel(channel_name, Path(datadir)).log_path("applier"))
        serve_one(Path(datadir), channel_name, rest[0] if rest else "", are_early=OPTIONS_FOLLOW in rest[1:])
    except RplError as error:
        from rplctl.applier.report import log_error

        return log_error(error)
    return 0


def serve_one(datadir: Path, channel_name: str, options_text: str, *, are_early: bool = False) -> None:
    """Run the applier of one channel until it ends.

    If Spark decodes all rows, the applier needs Spark's JVM before the first row. The JVM therefore starts first,
    before this process imports the modules that decode rows. This import takes a second of CPU time.

    `options_text`: the start options as JSON. `are_early`: True if these are only the Spark options, because the
    command that started this process is still preparing the channel. The command holds the channel's admin lock
    meanwhile, and then writes all options to standard input. If the command fails, standard input ends without options,
    and this process ends, too.
    """
    config = load_config(datadir, channel_name)
    options = StartOptions.from_json(options_text)
    channel = Channel(channel_name, config.datadir)
    config = options.on(config)
    with ExitStack() as held:
        spark = None
        if session.keeps_tasks(config):
            if not are_early:
                held.enter_context(hold_lock(channel, "applier"))
            held.enter_context(hold_lock(channel, "spark", EARLY_PATIENCE_S))
            spark = session.OwnSpark(config, channel)
            signal.signal(signal.SIGTERM, _give_up)
            spark.begin()
        if are_early:
            if not (options_text := sys.stdin.read()):
                kill_started()
                os._exit(0)  # the command did not start the channel, and the JVM ends with this process
            options = StartOptions.from_json(options_text)
            config = options.on(load_config(datadir, channel_name))  # the command may have changed the repositories
            if spark is not None:
                held.enter_context(hold_lock(channel, "applier"))
        from rplctl.applier.job import Applier

        applier = Applier(config, channel, options, spark)
        stop_on_signals(applier.end, signal.SIGTERM, signal.SIGINT)
        applier.run()


def _give_up(*_: object) -> None:
    """Handle a SIGTERM that arrives before the applier begins: kill the JVM, and end this process by SIGTERM."""
    kill_started()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def serve_several(datadir: Path, folder: str, channels: str) -> int:
    """Run the appliers of several channels in this process until they end, and return the exit code."""
    from rplctl.applier.shared_process import SharedProcess

    serve_many_threads()
    process = SharedProcess(datadir, Path(folder), json.loads(channels))
    stop_on_signals(process.stop, signal.SIGTERM, signal.SIGINT)
    return process.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
