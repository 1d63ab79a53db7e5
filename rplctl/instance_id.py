"""The id with which an instance recognizes its rows in a target: 16 random hex digits in `<datadir>/instance.id`.

`init` creates the id. An instance that an older rplctl created gets an id at its first start. A copy of the instance
folder, and a restored backup, have the same id as the original. But their prepared transactions get other names
(commit/xid.py), because a copy may run at the same time as the original.
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
    """Return the instance's id. Return '' if the file with the id is missing or damaged."""
    text = read_if_there(datadir / INSTANCE_ID_FILE).decode("ascii", "replace")
    return text.strip() if _ID.fullmatch(text) else ""


def made_instance_id(datadir: Path) -> str:
    """Return the instance's id, and create the id if it is missing. Simultaneous callers get the same id."""
    if name := instance_id(datadir):
        return name
    with closing(FileLock(private_folder(datadir) / LOCK_FILE)) as lock, lock.held():
        if not (name := instance_id(datadir)):
            name = os.urandom(8).hex()
            replace_file(datadir / INSTANCE_ID_FILE, f"{name}\n".encode())
    return name


def instance_place(datadir: Path) -> str:
    """Return the host and the folder of the instance as HOST:FOLDER, for messages."""
    return f"{socket.gethostname()}:{datadir.resolve()}"[:512]
