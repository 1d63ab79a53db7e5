"""The names of rplctl's transactions in two-phase commit: `rplctl:INSTANCE:CHANNEL:NUMBER`, 49 ASCII characters.

    INSTANCE   12 random hex digits, stored in `<datadir>/xid.instance`, which distinguish this channel from one with
               the same name in another instance
    CHANNEL    12 hex digits of the channel name's digest
    NUMBER     16 hex digits of the digest of the position after the transaction: never 0

MySQL takes the name as gtrid (≤ 64 bytes), PostgreSQL as transaction identifier (< 200). Invariant: a transaction whose
name does not begin with the channel's prefix is never changed. The same step has the same name, so a position in a
table identifies the prepared transaction that it decided (WL#5125 variant 5).
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from rplctl.channel import Channel
from rplctl.durable import private_folder, replace_file
from rplctl.info import RelayLogInfo
from rplctl.plain_file import read_if_there

INSTANCE_FILE = "xid.instance"
_INSTANCE = re.compile(r"[0-9a-f]{12}\n")


def xid_prefix(channel: Channel) -> str:
    """Return `rplctl:INSTANCE:CHANNEL:`, with which the names of the channel's transactions begin. If the instance has
    no name yet, create one.
    """
    name = instance_name(channel.datadir)
    if not name:
        name = os.urandom(6).hex()
        replace_file(private_folder(channel.datadir) / INSTANCE_FILE, f"{name}\n".encode())
    return f"rplctl:{name}:{hashlib.sha256(channel.name.lower().encode()).hexdigest()[:12]}:"


def branch_prefix(channel: Channel) -> str:
    """Return the prefix for the names of the branches, which are the several transactions of one batch (branches.py).

    It differs from `xid_prefix`, so code that resolves the channel's other transactions does not find the branches.
    """
    return xid_prefix(channel).replace("rplctl:", "rplctl-branch:", 1)


def instance_name(datadir: Path) -> str:
    """Return the instance's name in transaction names; '' if the instance has never used two-phase commit."""
    text = read_if_there(datadir / INSTANCE_FILE).decode("ascii", "replace")
    return text.strip() if _INSTANCE.fullmatch(text) else ""


def xid_of(prefix: str, info: RelayLogInfo) -> str:
    """Return the name of the transaction that ends at the position in `info`."""
    place = f"{info.relay_log_position} {info.exec_position}".encode()
    number = int.from_bytes(hashlib.sha256(place).digest()[:8], "big") or 1
    return f"{prefix}{number:016x}"


def number_of(xid: str) -> int:
    """Return the number in a transaction's name (eight bytes), for the header of the shadow-page file."""
    return int(xid.rpartition(":")[2], 16)
