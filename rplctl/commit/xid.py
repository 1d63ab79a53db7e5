"""Names of our transactions in two-phase commit: `rplctl:INSTANCE:CHANNEL:NUMBER`, 49 ASCII characters.

    INSTANCE   12 hex digits, made once and kept in `<datadir>/xid.instance`: another instance's channel of the same
               name is not ours
    CHANNEL    12 hex digits of the channel name's digest
    NUMBER     16 hex digits of the digest of the position that the transaction leads to: never 0

MySQL takes it as gtrid (≤ 64 bytes), PostgreSQL as transaction identifier (< 200). Invariant: whatever does not begin
with the channel's prefix belongs to somebody else and is never touched. The same step has the same name, so a
position in a table says by itself which prepared transaction it decided (WL#5125 variant 5).
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
    """`rplctl:INSTANCE:CHANNEL:`; names the instance when it has no name yet."""
    name = instance_name(channel.datadir)
    if not name:
        name = os.urandom(6).hex()
        replace_file(private_folder(channel.datadir) / INSTANCE_FILE, f"{name}\n".encode())
    return f"rplctl:{name}:{hashlib.sha256(channel.name.lower().encode()).hexdigest()[:12]}:"


def branch_prefix(channel: Channel) -> str:
    """Return the prefix of the names of a batch's several transactions (branches.py).

    A program that resolves the channel's other transactions does not see these.
    """
    return xid_prefix(channel).replace("rplctl:", "rplctl-branch:", 1)


def instance_name(datadir: Path) -> str:
    """Return the instance's name; '' if the instance has not begun a transaction in two phases yet."""
    text = read_if_there(datadir / INSTANCE_FILE).decode("ascii", "replace")
    return text.strip() if _INSTANCE.fullmatch(text) else ""


def xid_of(prefix: str, info: RelayLogInfo) -> str:
    """The name of the transaction that leads to that position."""
    place = f"{info.relay_log_position} {info.exec_position}".encode()
    number = int.from_bytes(hashlib.sha256(place).digest()[:8], "big") or 1
    return f"{prefix}{number:016x}"


def number_of(xid: str) -> int:
    """The eight bytes that the shadow-page file's header has for it."""
    return int(xid.rpartition(":")[2], 16)
