"""`export-info`: write a channel's position and connection as the files of a server, so that the server can continue.

    master.info, relay-log.info       byte for byte as that server writes them (exchange/servers.py)
    change-master.sql                 the same settings as a statement, for a running server or for MySQL ≥ 8.4, which
                                      has no such files

All three files contain the password in clear text, as on a server, and have mode 0600. They name the executed position
as the read position, because the relay logs are not exported. Invariant: the channel does not change. The only
exception is a RelayLogInfo file that is older than the marker: it receives the marker's position.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from rplctl.channel import Channel
from rplctl.command.channel.change_store import after_pending_change, resolve_position
from rplctl.command.channel.context import Note, administer, refuse_while_running
from rplctl.config import Config
from rplctl.durable import private_folder, replace_file
from rplctl.errors import RplError, UsageError
from rplctl.history import note_event
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.plain_file import read_plain
from rplctl.position import FIRST_EVENT_POSITION, BinlogPosition
from rplctl.repository.exchange.servers import Server, export_info as format_files, without_relay_logs
from rplctl.repository.exchange.statement import change_master_statement
from rplctl.secret import reveal

STATEMENT = "change-master.sql"
CONNECTIONS = "multi-master.info"  # MariaDB's list of channels, with one name per line
FIRST_RELAY_LOG = "relay-bin.000001"


@dataclass(frozen=True, slots=True)
class Destination:
    server: str  # one of Server
    folder: Path
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    channel: str
    server: str
    files: tuple[str, ...]
    position: BinlogPosition = field(metadata={"column": "Exec_Master_Log_Pos"})
    dry_run: bool
    notes: tuple[Note, ...]


def export_info(config: Config, channel_name: str, destination: Destination, *, dry_run: bool = False) -> ExportResult:
    """Write the channel's records as files of a server into `destination.folder`.

    Raises UsageError if threads run (3081) or the files already exist. Raises NotConfigured if the channel does not
    exist, and ConfigError if the password cannot be read.
    """
    server, folder = destination.server, destination.folder
    if server not in set(Server):
        raise UsageError(f"--server {server}: the server must be one of {', '.join(Server)}")
    with administer(config, channel_name, dry_run=dry_run) as repositories:
        config, channel = repositories.config, repositories.channel
        repositories, finished = after_pending_change(repositories, dry_run=dry_run)
        refuse_while_running(channel)
        master = repositories.master()
        if master.master_binlog_dir:
            raise UsageError(
                f"channel '{channel_name}' reads the folder {master.master_binlog_dir}, which no server can do"
            )
        repositories.refuse_unfit_target()
        resolve_position(repositories, dry_run=dry_run)  # design D3: the newer position is exported
        relay = repositories.relay()
        contents, notes = _contents(config, channel, (master, relay), Server(server), folder)
        existing = [name for name in contents if (folder / name).exists() and name != CONNECTIONS]
        if existing and not destination.overwrite:
            raise UsageError(f"{folder / existing[0]} exists", hint="name another folder, or add --yes")
        if not dry_run:
            _write(folder, contents)
            note_event(config.datadir, channel_name, "export-info", f"export-info --server {server} {folder}")
        position = relay.exec_position if relay.master_log_name else master.read_position
        paths = tuple(str(folder / name) for name in contents)
        return ExportResult(
            channel=channel_name,
            server=server,
            files=paths,
            position=position,
            dry_run=dry_run,
            notes=(*finished, *notes),
        )


def _contents(
    config: Config, channel: Channel, stored: tuple[MasterInfo, RelayLogInfo], server: Server, folder: Path
) -> tuple[dict[str, bytes], tuple[Note, ...]]:
    master, relay = without_relay_logs(*stored)
    master = replace(master, user_password=reveal(master.user_password, config.datadir))
    relay = replace(relay, relay_log_name=FIRST_RELAY_LOG, relay_log_pos=FIRST_EVENT_POSITION)
    files = format_files(master, relay, server)
    is_mariadb = server is Server.MARIADB
    named = is_mariadb and channel.name
    names = (
        (channel.master_info_path.name, channel.relay_log_info_path.name)
        if named
        else ("master.info", "relay-log.info")
    )
    contents = {names[0]: files.master_info, names[1]: files.relay_log_info}
    contents[STATEMENT] = change_master_statement(master, relay, server).encode()
    if named:
        contents[CONNECTIONS] = _connections(folder / CONNECTIONS, channel.name)
    notes = [Note(f"{name} is not supported by {server} and is left out") for name in files.lost]
    text = "start the server once with relay_log_recovery=ON, because its old relay logs do not belong to these files, "
    notes.append(Note(f"{text}or execute {STATEMENT}"))
    if channel.name and not is_mariadb:
        notes.append(Note(f"{server} stores named channels in tables: execute {STATEMENT}"))
    if relay.gtid_executed and (master.using_gtid or master.enabled_auto_position):
        notes.append(Note(f"the files do not contain GTIDs; {STATEMENT} shows how to set {relay.gtid_executed}"))
    return contents, tuple(notes)


def _connections(path: Path, channel: str) -> bytes:
    names = read_plain(path).decode(errors="surrogateescape").splitlines() if path.exists() else []
    return "".join(f"{name}\n" for name in dict.fromkeys([*names, channel])).encode(errors="surrogateescape")


def _write(folder: Path, contents: dict[str, bytes]) -> None:
    try:
        private_folder(folder)
        for name, data in contents.items():
            replace_file(folder / name, data)
    except OSError as error:
        raise RplError(f"{folder}: {error.strerror}", hint="name a folder that you can write to") from error
