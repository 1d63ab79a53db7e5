"""The name by which an instance knows its own rows in a target: 16 random hex digits in `<datadir>/instance.id`.

`init` makes the name; an instance of an older rplctl gets one at its first start. A copy of the data directory, and a
restored backup, keep it: they are the same instance at another place. The names of transactions (commit/xid.py) differ
there, because a copy may run next to its original.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import closing
from pathlib import Path

from rplctl.durable import private_folder, replace_file
from rplctl.locks import FileLock
from rplctl.plain_file import read_if_there

INSTANCE_ID_FILE = "instance.id"
LOCK_FILE = ".instance.id.lock"
_ID = re.compile(r"[0-9a-f]{16}\n")


def instance_id(datadir: Path) -> str:
    """The name; '' while the instance has none."""
    text = read_if_there(datadir / INSTANCE_ID_FILE).decode("ascii", "replace")
    return text.strip() if _ID.fullmatch(text) else ""


def made_instance_id(datadir: Path) -> str:
    """The name, made when there is none: once, whoever else makes it at the same time."""
    if name := instance_id(datadir):
        return name
    with closing(FileLock(private_folder(datadir) / LOCK_FILE)) as lock, lock.held():
        if not (name := instance_id(datadir)):
            name = os.urandom(8).hex()
            replace_file(datadir / INSTANCE_ID_FILE, f"{name}\n".encode())
    return name


def instance_place(datadir: Path) -> str:
    """Where the instance is, for people: HOST:FOLDER."""
    return f"{socket.gethostname()}:{datadir.resolve()}"[:512]
