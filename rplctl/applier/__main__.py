"""The applier process of one channel, or of several channels that share a process.

`rplctl start` runs `python -m rplctl.applier DATADIR CHANNEL [START-OPTIONS-JSON]`, and `rplctl start --shared-session`
runs `python -m rplctl.applier DATADIR --shared FOLDER CHANNELS-JSON`.

SIGTERM and SIGINT stop the process: it rolls back the current batch, or waits for the current statement. If an error
ended the applier, the exit code is the one of that error.
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
EARLY_PATIENCE_S = 30.0  # to wait for the lock of an early applier that ends because its command was killed
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

    If Spark decodes all rows, every row needs the JVM. The JVM then starts before this process imports the modules that
    decode, which takes a second of CPU time. `are_early`: True if only the Spark options are known yet, because the
    command that started this process still prepares the channel and holds its admin lock. The command then writes all
    options to standard input. If it fails, standard input ends without options, and so does this process.
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
                os._exit(0)  # the command did not start the channel; the JVM ends with this process
            options = StartOptions.from_json(options_text)
            config = options.on(load_config(datadir, channel_name))  # the command may have changed the repositories
            if spark is not None:
                held.enter_context(hold_lock(channel, "applier"))
        from rplctl.applier.job import Applier

        applier = Applier(config, channel, options, spark)
        stop_on_signals(applier.end, signal.SIGTERM, signal.SIGINT)
        applier.run()


def _give_up(*_: object) -> None:
    """End this process by SIGTERM before the applier has begun, and kill its JVM."""
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
