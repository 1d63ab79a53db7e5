"""Write and read master.info and relay-log.info exactly as each server writes them, byte for byte.

    server     file            lines  count in line 1
    mysql-5.6  master.info     23     23
               relay-log.info  8      7
    mysql-5.7  master.info     25     25
               relay-log.info  9      7, because the line with the channel's name is not counted
    mysql-8.0  master.info     33     33
               relay-log.info  15     14
    mariadb    master.info     33     33; then three lines `key=value` and END_MARKER
               relay-log.info  6      5

In master.info of MariaDB, line 17, line 19 and the lines 23 to 33 are empty, and line 20 is 0.

These files have passwords in clear text. So the MasterInfo for the export must have its password in clear text, and the
import returns a MasterInfo with such a password. If a format has no line for a setting, `InfoFiles.lost` names the
setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rplctl import mysql_errors as er
from rplctl.errors import UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.fields import MARIADB_KEYS, MASTER_INFO_LINES, RELAY_LOG_INFO_LINES, Field, FieldError
from rplctl.repository.lines import END_MARKER, parse_master_info, parse_relay_log_info


class Server(StrEnum):
    MYSQL_5_6 = "mysql-5.6"
    MYSQL_5_7 = "mysql-5.7"
    MYSQL_8_0 = "mysql-8.0"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    master_count: str
    master: tuple[Field, ...]
    relay_count: str
    relay: tuple[Field, ...]


_FORMS = {
    Server.MYSQL_5_6: _Form(
        master_count="23", master=MASTER_INFO_LINES[:22], relay_count="7", relay=RELAY_LOG_INFO_LINES[:7]
    ),
    Server.MYSQL_5_7: _Form(
        master_count="25", master=MASTER_INFO_LINES[:24], relay_count="7", relay=RELAY_LOG_INFO_LINES[:8]
    ),
    Server.MYSQL_8_0: _Form(master_count="33", master=MASTER_INFO_LINES, relay_count="14", relay=RELAY_LOG_INFO_LINES),
    Server.MARIADB: _Form(
        master_count="33", master=MASTER_INFO_LINES[:21], relay_count="5", relay=RELAY_LOG_INFO_LINES[:5]
    ),
}
_MARIADB_FIXED = {"bind": "", "uuid": "", "retry_count": "0"}  # MariaDB writes these lines always with the same value
_MARIADB_RESERVED = 11  # empty lines, 23 to 33
_OURS = frozenset(
    {"master_id", "master_server_id", "master_binlog_dir", "flushed_relay_log_name", "flushed_relay_log_pos"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoFiles:
    """The contents of both files, and the names of the settings for which the server's format has no line."""

    master_info: bytes
    relay_log_info: bytes
    lost: tuple[str, ...]


_COPY_OF_SERVER = (
    "to import master.info and relay-log.info after you have copied them, unchanged, from the replica's data folder to "
    "a new folder DIR, run: rplctl import-info DIR"
)


def export_info(master: MasterInfo, relay: RelayLogInfo, server: Server) -> InfoFiles:
    """Return the two files as `server` would have written them.

    Raises UsageError if a line cannot represent a value.
    """
    form = _FORMS[server]
    is_mariadb = server is Server.MARIADB
    fixed = _MARIADB_FIXED if is_mariadb else {}
    try:
        master_lines = [form.master_count, *_lines(master, form.master, fixed)]
        if is_mariadb:
            master_lines += [""] * _MARIADB_RESERVED
            master_lines += [f"{f.name}={f.notation.to_line(getattr(master, f.name))}" for f in MARIADB_KEYS]
            master_lines.append(END_MARKER)
        relay_lines = [form.relay_count, *_lines(relay, form.relay, {})]
    except FieldError as error:
        raise UsageError(
            f"cannot write the positions as files of {server}: {error}", channel=master.channel_name
        ) from None
    held = {f.name for f in form.master} - set(fixed) | ({f.name for f in MARIADB_KEYS} if is_mariadb else set())
    lost = [f"master.info {name}" for name in _changed(master, MasterInfo(), held | _OURS)]
    relay_held = {f.name for f in form.relay} | {"master_id", "gtid_executed", "left_at"}
    lost += [f"relay-log.info {name}" for name in _changed(relay, RelayLogInfo(), relay_held)]
    return InfoFiles(master_info=_join(master_lines), relay_log_info=_join(relay_lines), lost=tuple(lost))


def import_info(master_info: bytes, relay_log_info: bytes, channel: str) -> tuple[MasterInfo, RelayLogInfo]:
    """Return the records of `channel` from the two files, which any server may have written.

    Raises UsageError, with the file and the line, if a record is invalid.
    """
    try:
        master = parse_master_info(master_info)
    except FieldError as error:
        raise UsageError(
            f"cannot read master.info: {error}", errno=er.MASTER_INFO, channel=channel, hint=_COPY_OF_SERVER
        ) from None
    try:
        relay = parse_relay_log_info(relay_log_info)
    except FieldError as error:
        raise UsageError(
            f"cannot read relay-log.info: {error}",
            errno=er.SLAVE_RLI_INIT_REPOSITORY,
            channel=channel,
            hint=_COPY_OF_SERVER,
        ) from None
    return replace(master, channel_name=channel), replace(relay, channel_name=channel)


def without_relay_logs(master: MasterInfo, relay: RelayLogInfo) -> tuple[MasterInfo, RelayLogInfo]:
    """Return the records without positions in the relay log, for a replica that does not have the relay log files.

    The read position is set to the executed position, so that the replica fetches the later events again (REQ-4).
    """
    if relay.master_log_name:
        master = master.with_read_position(relay.exec_position)
    master = replace(master, flushed_relay_log_name="", flushed_relay_log_pos=0)
    return master, replace(relay, relay_log_name="", relay_log_pos=0)


def _lines(info: object, fields: Sequence[Field], fixed: dict[str, str]) -> list[str]:
    return [fixed[f.name] if f.name in fixed else f.notation.to_line(getattr(info, f.name)) for f in fields]


def _changed(info: MasterInfo | RelayLogInfo, default: MasterInfo | RelayLogInfo, held: set[str]) -> list[str]:
    """Return the names of the settings that differ from their default and that the server's format cannot store.

    `held`: the names that the format can store. The name of the channel is omitted, because the file name contains it.
    """
    names = [name for name in type(info).__slots__ if name not in held and name not in ("channel_name", "uuid")]
    return [name for name in names if getattr(info, name) != getattr(default, name)]


def _join(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
