"""The applier process: `python -m rplctl.applier DATADIR CHANNEL [START-OPTIONS-JSON]`, started by `rplctl start`.

SIGTERM and SIGINT stop it: a batch in work is rolled back, a statement is waited for. The exit code is that of the
error it stopped with.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path

from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions
from rplctl.channel import Channel
from rplctl.config import load_config
from rplctl.errors import RplError

log = logging.getLogger("rplctl.applier")


def main(arguments: list[str]) -> int:
    datadir, channel_name, *rest = arguments
    logging.basicConfig(format="%(asctime)s %(levelname)s applier: %(message)s", level=logging.INFO)
    try:
        config = load_config(Path(datadir), channel_name)
        options = StartOptions.from_json(rest[0] if rest else "")
        if options.spark_master:
            config = replace(config, spark_master=options.spark_master)
        applier = Applier(config, Channel(channel_name, config.datadir), options)
        stop_on_signals(applier.stop)
        applier.run()
    except RplError as error:
        where = f" (at {error.position})" if error.position else ""
        log.error("%s%s", error.message, where, exc_info=error.__cause__ if type(error) is RplError else None)
        return error.exit_code
    return 0


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` at SIGTERM or SIGINT, also while this thread is deep in a library's C code: handlers run between two
    steps of Python only, the byte that a signal writes arrives at once.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)  # open to the end of the process

    def wait() -> None:
        while not {signal.SIGTERM, signal.SIGINT} & set(receiving.recv(64)):
            pass
        stop.set()

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
