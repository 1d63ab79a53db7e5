"""`python -m rplctl.receiver DATADIR CHANNEL`: the process of `rplctl start`. Notes and errors go to stderr."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.log_file import log_on_stderr
from rplctl.receiver.receiver import Receiver

LINE = "%(asctime)s [%(levelname)s] %(name)s: %(message)s"


def main(arguments: list[str]) -> int:
    """Exit code: 0 after SIGTERM, else that of the error (errors.py)."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m rplctl.receiver DATADIR CHANNEL\n")
        return 2
    datadir, name = Path(arguments[0]), arguments[1]
    log_on_stderr(LINE, Channel(name, datadir).log_path("receiver"))
    try:
        Receiver(load_config(datadir, name), Channel(name, datadir)).run()
    except RplError as error:
        logging.getLogger("rplctl.receiver").error(
            "%s%s",
            error.message,
            f" (hint: {error.hint})" if error.hint else "",
            exc_info=error.__cause__ if type(error) is RplError and not error.transient else None,  # nobody foresaw it
        )
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
