"""Import the positions of other replication tools as MasterInfo and RelayLogInfo without relay logs.

    Maxwell    a row of `maxwell.positions`        binlog_file, binlog_position, gtid_set
    Debezium   the connector's offset, JSON        file, pos, gtids; `event`, `row`: progress inside a transaction;
                                                   `snapshot`: true until the first snapshot is finished
    Canal      conf/DESTINATION/meta.dat, JSON     clientDatas[].cursor.postion (sic): journalName, position, gtid
    Tungsten   a row of `trep_commit_seqno`        eventid `mysql-bin.000004:0000000000000123;-1`, last_frag

A row may have each form in which a database client prints it: JSON, `\\G`, or tab-separated with a line of names.
Invariant: a text is refused if it does not contain exactly one position, and the error names the missing part.
`Imported.notes` contains remarks that rplctl prints for the operator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rplctl.errors import UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.position import FIRST_EVENT_POSITION, is_log_name
from rplctl.repository.fields import MAX_POSITION

_EVENT_ID = re.compile(r"([^:;\s]+):([0-9]{1,19})(?:;-?[0-9]+)?")
_MARIADB_GTIDS = re.compile(r"[0-9]+-[0-9]+-[0-9]+(,[0-9]+-[0-9]+-[0-9]+)*")
_VERTICAL = re.compile(r"^\s*(\w+): ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Imported:
    master_info: MasterInfo
    relay_log_info: RelayLogInfo
    notes: tuple[str, ...] = ()


def import_maxwell(text: str, channel: str) -> Imported:
    """Return the position in the text of one row of `maxwell.positions`. Raises UsageError if the row is not valid."""
    row = read_row(text, "maxwell.positions")
    gtids = "" if row.get("gtid_set") in (None, "NULL") else str(row["gtid_set"])
    return _imported(channel, "maxwell.positions", (row.get("binlog_file"), row.get("binlog_position")), gtids)


def import_debezium(text: str, channel: str) -> Imported:
    """Return the position in the offset of a Debezium connector for MySQL or MariaDB.

    `text`: the value of the offset, or `KEY<tab>VALUE` as a dump of the offset topic prints it. Raises UsageError if
    the offset is not valid, or if the connector has not finished its snapshot.
    """
    offset = _json_object(text.rpartition("\t")[2], "Debezium offset")
    if offset.get("snapshot") not in (None, False, "false", ""):
        raise UsageError(
            "Debezium offset: the snapshot is not finished, so the position is its start",
            channel=channel,
            hint="let the connector finish its snapshot, or load a dump and set the position of the dump",
        )
    gtids = str(offset.get("gtids") or "")
    notes = []
    if any(_number(offset.get(key), f"Debezium offset: {key}") for key in ("event", "row")):
        notes.append("The connector stopped inside a transaction, which is applied again from its start.")
    imported = _imported(channel, "Debezium offset", (offset.get("file"), offset.get("pos")), gtids)
    return Imported(imported.master_info, imported.relay_log_info, tuple(notes))


def import_canal(text: str, channel: str) -> Imported:
    """Return the position in the meta.dat of one Canal destination.

    Raises UsageError if the file is not valid, or if it does not have exactly one client with a cursor.
    """
    meta = _json_object(text, "Canal meta.dat")
    clients = [c for c in meta.get("clientDatas") or [] if isinstance(c, dict) and c.get("cursor")]
    if len(clients) != 1:
        raise UsageError(f"Canal meta.dat: {len(clients)} clients with a cursor, expected one", channel=channel)
    cursor = clients[0]["cursor"]
    position = cursor.get("postion") or cursor.get("position")
    if not isinstance(position, dict):
        raise UsageError("Canal meta.dat: the cursor holds no position", channel=channel)
    address = (cursor.get("identity") or {}).get("sourceAddress") or {}
    gtids = str(position.get("gtid") or "")
    where = (position.get("journalName"), position.get("position"))
    imported = _imported(channel, "Canal meta.dat", where, gtids)
    host, port = str(address.get("address") or ""), _number(address.get("port") or 3306, "Canal meta.dat: port")
    note = "Canal stores the start of the last event it delivered. Check that this position begins a transaction."
    return Imported(replace(imported.master_info, host=host, port=port), imported.relay_log_info, (note,))


def import_tungsten(text: str, channel: str) -> Imported:
    """Return the position in one row of Tungsten's table `trep_commit_seqno`.

    Raises UsageError if the row is not valid, or if the last transaction is only partly applied.
    """
    row = read_row(text, "trep_commit_seqno")
    event_id = _EVENT_ID.fullmatch(str(row.get("eventid", "")).strip())
    if event_id is None:
        raise UsageError(f"trep_commit_seqno: eventid '{row.get('eventid', '')}' is not FILE:POS;ID", channel=channel)
    if str(row.get("last_frag", "1")).lower() not in ("1", "true", "t", "y"):
        raise UsageError(
            "trep_commit_seqno: the last transaction is applied in part (last_frag is not set)",
            channel=channel,
            hint="to take the Tungsten replicator offline cleanly, run: trepctl offline",
        )
    return _imported(channel, "trep_commit_seqno", (event_id[1], event_id[2]), "")


def read_row(text: str, what: str) -> dict[str, Any]:
    """Return the only table row in a text in JSON, `\\G` or tab-separated form, with column names in lower case.

    `what`: the name of the table for errors. Raises UsageError if there is no row or more than one.
    """
    stripped = text.strip()
    if stripped.startswith("{"):
        row: Mapping[str, Any] = _json_object(stripped, what)
    elif "\t" in stripped:
        lines = stripped.splitlines()
        if len(lines) != 2:
            raise UsageError(f"{what}: {len(lines) - 1} rows, expected one below the column names")
        row = dict(zip(lines[0].split("\t"), lines[1].split("\t"), strict=False))
    else:
        row = dict(_VERTICAL.findall(stripped))
    if not row:
        raise UsageError(
            f"{what}: no row found", hint="pass the row as JSON, in \\G format, or tab-separated with column names"
        )
    return {name.lower(): value for name, value in row.items()}


def _json_object(text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{what}: not a JSON object")
    return value


def _number(value: object, what: str) -> int:
    digits = str(value if value not in (None, "") else 0)
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        raise UsageError(f"{what}: '{digits[:40]}' is not a number")
    return int(digits)


def _imported(channel: str, what: str, position: tuple[object, object], gtids: str) -> Imported:
    name, log_pos = str(position[0] or ""), _number(position[1], what)
    if not is_log_name(name):
        raise UsageError(f"{what}: '{name[:80]}' is not the name of a binary log", channel=channel)
    if not FIRST_EVENT_POSITION <= log_pos <= MAX_POSITION:
        raise UsageError(f"{what}: {log_pos} is not a position in a binary log", channel=channel)
    compact = re.sub(r"\s", "", gtids)
    is_mariadb = bool(_MARIADB_GTIDS.fullmatch(compact))
    master = MasterInfo(
        master_log_name=name,
        master_log_pos=log_pos,
        channel_name=channel,
        enabled_auto_position=bool(compact) and not is_mariadb,
        using_gtid=2 if is_mariadb else 0,
    )
    relay = RelayLogInfo(master_log_name=name, master_log_pos=log_pos, channel_name=channel, gtid_executed=compact)
    return Imported(master, relay)
