"""The applier process: `python -m rplctl.applier DATADIR CHANNEL [START-OPTIONS-JSON]`, started by `rplctl start`, or
`python -m rplctl.applier DATADIR --shared FOLDER CHANNELS-JSON` by `rplctl start --shared-session`.

SIGTERM and SIGINT stop it: a batch in work is rolled back, a statement is waited for. The exit code is that of the
error it stopped with.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from rplctl.applier.options import OPTIONS_FOLLOW, StartOptions
from rplctl.applier.spark import session
from rplctl.channel import Channel, hold_lock
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.log_file import log_on_stderr
from rplctl.own_process import collect_seldom, serve_many_threads

LINE = "%(asctime)s %(levelname)s applier: %(message)s"
EARLY_PATIENCE_S = 30.0  # for an early applier whose command was killed, and that ends
SHARED = "--shared"  # no channel's name: that is refused as an option long before


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
    """Serve one channel with its applier.

    A Java that all rows wait for starts before the modules that decode them are loaded, which takes a second of CPU
    time. `are_early`: only the options of Spark are known, and the command that starts this process prepares the
    channel. It holds the channel's admin lock, writes all options to standard input when that is done, and else ends.
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
            spark.begin()
        if are_early:
            if not (options_text := sys.stdin.read()):
                os._exit(0)  # nothing was started after all; the JVM ends with this process
            options = StartOptions.from_json(options_text)
            config = options.on(load_config(datadir, channel_name))  # the command may have changed the repositories
            if spark is not None:
                held.enter_context(hold_lock(channel, "applier"))
        from rplctl.applier.job import Applier

        applier = Applier(config, channel, options, spark)
        stop_on_signals(applier.end)
        applier.run()


def serve_several(datadir: Path, folder: str, channels: str) -> int:
    """The appliers of several channels, which share this process; the exit code."""
    from rplctl.applier.shared_process import SharedProcess

    serve_many_threads()
    process = SharedProcess(datadir, Path(folder), json.loads(channels))
    stop_on_signals(process.stop)
    return process.run()


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Call `stop` at SIGTERM or SIGINT, also while the main thread is deep in a library's C code: handlers run between
    two steps of Python only, the byte that a signal writes arrives at once.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)  # open to the end of the process

    def wait() -> None:
        while True:
            if {signal.SIGTERM, signal.SIGINT} & set(receiving.recv(64)):
                stop()

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
