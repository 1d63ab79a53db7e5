"""Names rplctl's transactions in two-phase commit: `rplctl:INSTANCE:CHANNEL:NUMBER`, 49 ASCII characters.

    INSTANCE   12 random hex digits, stored in `<datadir>/xid.instance`, which distinguish this channel from one with
               the same name in another instance
    CHANNEL    12 hex digits of the digest of the channel's name
    NUMBER     16 hex digits of the digest of the position after the transaction: never 0

In MySQL, the name is the gtrid (≤ 64 bytes). In PostgreSQL, it is the transaction identifier (< 200 bytes). Invariant:
rplctl never changes a transaction whose name begins with another prefix than the channel's. Two attempts at the same
step have the same name. So a position in a table identifies the prepared transaction that ends there (WL#5125
variant 5).
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
    """Return `rplctl:INSTANCE:CHANNEL:`, the beginning of the names of all prepared transactions of the channel.

    If the instance has no random name yet, it is created and stored.
    """
    name = instance_name(channel.datadir)
    if not name:
        name = os.urandom(6).hex()
        replace_file(private_folder(channel.datadir) / INSTANCE_FILE, f"{name}\n".encode())
    return f"rplctl:{name}:{hashlib.sha256(channel.name.lower().encode()).hexdigest()[:12]}:"


def branch_prefix(channel: Channel) -> str:
    """Return the beginning of the names of branches: the transactions of several connections for one batch.

    The prefix differs from the one that `xid_prefix` returns. So a search for the transactions of mode xa does not find
    the branches.
    """
    return xid_prefix(channel).replace("rplctl:", "rplctl-branch:", 1)


def instance_name(datadir: Path) -> str:
    """Return the 12 hex digits of the instance in transaction names.

    The result is '' if the instance has never used two-phase commit.
    """
    text = read_if_there(datadir / INSTANCE_FILE).decode("ascii", "replace")
    return text.strip() if _INSTANCE.fullmatch(text) else ""


def xid_of(prefix: str, info: RelayLogInfo) -> str:
    """Return the name of the transaction that ends at the position in `info`. `prefix`: see `xid_prefix`."""
    place = f"{info.relay_log_position} {info.exec_position}".encode()
    number = int.from_bytes(hashlib.sha256(place).digest()[:8], "big") or 1
    return f"{prefix}{number:016x}"


def number_of(xid: str) -> int:
    """Return the NUMBER of a transaction's name as an integer (64 bits), for the header of the shadow-page file."""
    return int(xid.rpartition(":")[2], 16)
