"""The limits that a shell or a service has set for this process (`ulimit`): raised where that is allowed.

Invariant: below these a command does nothing at all and says which limit it is, instead of failing somewhere within.
"""

from __future__ import annotations

import resource
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import RplError

_LEAST: Final = (  # limit, at least, what ulimit calls it, its unit there, what it limits
    (resource.RLIMIT_NOFILE, 64, "-n", 1, "open files"),
    (resource.RLIMIT_FSIZE, 64 << 20, "-f", 1024, "KiB of a file"),
    (resource.RLIMIT_STACK, 1 << 20, "-s", 1024, "KiB of stack"),
)


def raise_low_limits() -> None:
    """Raise what is lower than rplctl needs. Raises RplError 1041 where the hard limit forbids that."""
    for limit, least, option, unit, what in _LEAST:
        soft, hard = resource.getrlimit(limit)
        if soft == resource.RLIM_INFINITY or soft >= least:
            continue
        if hard != resource.RLIM_INFINITY and hard < least:
            raise RplError(
                f"this process may have {hard // unit} {what}; rplctl needs {least // unit}",
                errno=er.OUT_OF_RESOURCES,
                hint=f"ulimit {option} {least // unit} (or unlimited), then run the command again",
            )
        resource.setrlimit(limit, (hard, hard))
