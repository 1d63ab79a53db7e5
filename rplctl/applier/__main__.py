"""The applier process: `python -m rplctl.applier DATADIR CHANNEL [START-OPTIONS-JSON]`, started by `rplctl start`.

SIGTERM and SIGINT stop it at the end of the batch in work. The exit code is that of the error it stopped with.
"""

from __future__ import annotations

import logging
import signal
import sys
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
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: applier.stop.set())
        applier.run()
    except RplError as error:
        where = f" (at {error.position})" if error.position else ""
        log.error("%s%s", error.message, where, exc_info=error.__cause__ if type(error) is RplError else None)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
