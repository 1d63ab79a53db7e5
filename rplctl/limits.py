"""Raises limits of this process that a shell or a service has set too low (`ulimit`), as far as the hard limits permit.

Invariant: if a limit stays too low, a command reports the limit before it changes anything, instead of failing later.
"""

from __future__ import annotations

import resource
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError

_LEAST: Final = (  # limit, minimum, option of ulimit, unit of that option, limited resource
    (resource.RLIMIT_NOFILE, 64, "-n", 1, "open files"),
    (resource.RLIMIT_FSIZE, 64 << 20, "-f", 1024, "file size in KiB"),
    (resource.RLIMIT_STACK, 1 << 20, "-s", 1024, "stack size in KiB"),
)


def raise_low_limits() -> None:
    """Raise the limits that are too low for rplctl. Raises RplError 1041 if a hard limit is too low."""
    for limit, least, option, unit, what in _LEAST:
        soft, hard = resource.getrlimit(limit)
        if soft == resource.RLIM_INFINITY or soft >= least:
            continue
        if hard != resource.RLIM_INFINITY and hard < least:
            raise RplError(
                f"the limit of {what} is {hard // unit}; rplctl needs {least // unit}",
                errno=er.OUT_OF_RESOURCES,
                hint="to raise this limit, which only root can raise, run in a shell of root: "
                f"ulimit {option} {least // unit}\n"
                "Then run the rplctl command again in this shell",
            )
        resource.setrlimit(limit, (hard, hard))
