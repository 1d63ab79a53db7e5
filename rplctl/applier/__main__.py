"""The applier process: `python -m rplctl.applier DATADIR CHANNEL [START-OPTIONS-JSON]`, started by `rplctl start`, or
`python -m rplctl.applier DATADIR --shared FOLDER CHANNELS-JSON` by `rplctl start --shared-session`.

SIGTERM and SIGINT stop it: a batch in work is rolled back, a statement is waited for. The exit code is that of the
error it stopped with.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions
from rplctl.applier.report import log_error
from rplctl.applier.shared_process import SharedProcess
from rplctl.channel import Channel
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.log_file import log_on_stderr
from rplctl.own_process import serve_many_threads

LINE = "%(asctime)s %(levelname)s applier: %(message)s"
SHARED = "--shared"  # no channel's name: that is refused as an option long before


def main(arguments: list[str]) -> int:
    datadir, channel_name, *rest = arguments
    if channel_name == SHARED and len(rest) > 1:
        folder, channels = rest
        serve_many_threads()
        process = SharedProcess(Path(datadir), Path(folder), json.loads(channels))
        stop_on_signals(process.stop)
        try:
            return process.run()
        except RplError as error:
            return log_error(error)
    log_on_stderr(LINE, Channel(channel_name, Path(datadir)).log_path("applier"))
    try:
        config = load_config(Path(datadir), channel_name)
        options = StartOptions.from_json(rest[0] if rest else "")
        config = options.on(config)
        applier = Applier(config, Channel(channel_name, config.datadir), options)
        stop_on_signals(applier.end)
        applier.run()
    except RplError as error:
        return log_error(error)
    return 0


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
