"""The receiver process, which writes notes and errors to stderr.

`rplctl start` runs `python -m rplctl.receiver DATADIR CHANNEL`, and `rplctl start --shared-session` runs `python -m
rplctl.receiver DATADIR --shared FOLDER CHANNELS-JSON`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.log_file import log_on_stderr
from rplctl.own_process import collect_seldom, serve_many_threads

LINE = "%(asctime)s [%(levelname)s] %(name)s: %(message)s"
SHARED = "--shared"  # never a channel's name: the command line refuses such a name


def main(arguments: list[str]) -> int:
    """Run the process, and return the exit code: 0 after SIGTERM, otherwise the code of the error (errors.py)."""
    collect_seldom()
    from rplctl.receiver.receiver import Receiver
    from rplctl.receiver.reporter import log_error
    from rplctl.receiver.shared_process import SharedReceivers

    if arguments[1:2] == [SHARED] and len(arguments) == 4:
        serve_many_threads()
        return SharedReceivers(Path(arguments[0]), json.loads(arguments[3])).run()
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m rplctl.receiver DATADIR CHANNEL\n")
        return 2
    datadir, name = Path(arguments[0]), arguments[1]
    log_on_stderr(LINE, Channel(name, datadir).log_path("receiver"))
    try:
        Receiver(load_config(datadir, name), Channel(name, datadir)).run()
    except RplError as error:
        return log_error(error)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
