"""`<datadir>/rplctl.log`: who changed what, one line each, as a server notes it in its error log. No secrets in it."""

from __future__ import annotations

import getpass
import os
import time

from rplctl.config import Config
from rplctl.errors import file_error
from rplctl.mask import masked
from rplctl.plain_file import closing_descriptor, open_plain

JOURNAL = "rplctl.log"


def append_journal(config: Config, text: str) -> None:
    """One line in `<datadir>/rplctl.log`: when, process, who, what. Raises RplError when it cannot be written."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + "Z"
    line = f"{stamp} {os.getpid()} [{_who()}] {_one_line(masked(text))}\n"
    try:
        descriptor = open_plain(config.datadir / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_APPEND, follow=False)
    except OSError as error:
        raise file_error(error) from error
    with closing_descriptor(descriptor):
        os.write(descriptor, line.encode(errors="replace"))


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
