"""`history`: list the events of the channels, and who caused them. rplctl/history.py writes them."""

from __future__ import annotations

import time
from collections import deque

from rplctl.config import Config
from rplctl.errors import file_error
from rplctl.history import Event, read_history, stamp


def history(config: Config, channel: str | None = None, last: int = 0, since_s: float | None = None) -> list[Event]:
    """Return the recorded events, oldest first.

    * `channel`: only the events of this channel; None = all channels and the instance
    * `last`: only this number of newest events; 0 = all
    * `since_s`: only the events of the last `since_s` seconds; None = all

    Raises UnfitFile if the history is not a regular file, and RplError if the operating system refuses access to it.
    """
    name = None if channel is None else channel.lower()
    since = "" if since_s is None else stamp(time.time() - since_s)
    try:
        found = (
            event
            for event in read_history(config.datadir)
            if event.Time >= since and (name is None or event.Channel_Name is not None)
            if name is None or str(event.Channel_Name).lower() == name
        )
        return list(deque(found, maxlen=last or None))
    except OSError as error:
        raise file_error(error) from error
