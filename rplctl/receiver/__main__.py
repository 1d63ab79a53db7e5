"""`python -m rplctl.receiver DATADIR CHANNEL`: the process of `rplctl start`. Notes and errors go to stderr."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from rplctl.channel import Channel
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.receiver.receiver import Receiver


def main(arguments: list[str]) -> int:
    """Exit code: 0 after SIGTERM, else that of the error (errors.py)."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m rplctl.receiver DATADIR CHANNEL\n")
        return 2
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s [%(levelname)s] %(name)s: %(message)s", stream=sys.stderr
    )
    datadir, name = Path(arguments[0]), arguments[1]
    try:
        Receiver(load_config(datadir, name), Channel(name, datadir)).run()
    except RplError as error:
        logging.getLogger("rplctl.receiver").error(
            "%s%s", error.message, f" (hint: {error.hint})" if error.hint else ""
        )
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
