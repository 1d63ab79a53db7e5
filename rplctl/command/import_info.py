"""`import-info`: import a position from another replica or tool, and also a connection if the files have one.

The files or rows of a server configure a channel as CHANGE MASTER does: settings, executed position and password, which
is stored encrypted. Relay logs are not imported: the receiver fetches the events after the executed position again
(WL#2775 REQ-4). The files of a tool have only a position, which moves a channel that is already configured. Invariant:
either both records change or neither, as in change_master.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from rplctl import mysql_errors as er
from rplctl.channel import Channel, check_channel_name
from rplctl.command.channel.change_options import ignored_settings
from rplctl.command.channel.change_plan import first_place
from rplctl.command.channel.change_store import (
    CONNECTION,
    ChangeResult,
    after_pending_change,
    resolve_position,
    store_change,
    stored_records,
)
from rplctl.command.channel.context import Note, administer, open_repositories, refuse_while_running
from rplctl.config import Config
from rplctl.durable import is_readable_by_others
from rplctl.errors import RplError, UsageError
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.exchange import servers, tools
from rplctl.repository.exchange.rows import import_rows
from rplctl.secret import protect

TOOLS: dict[str, Callable[[str, str], tools.Imported]] = {
    "maxwell": tools.import_maxwell,
    "debezium": tools.import_debezium,
    "canal": tools.import_canal,
    "tungsten": tools.import_tungsten,
}
FOLDER, ROWS = "folder", "mysql-tables"
KINDS = (FOLDER, ROWS, *TOOLS)
MAX_BYTES = 64 << 20
_PLACE = ("host", "port", "master_log_name", "master_log_pos")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The files from which to import. `gtids` contains the GTIDs applied so far, for a channel that uses GTIDs."""

    kind: str  # one of KINDS
    path: Path
    gtids: str = ""


@dataclass(frozen=True, slots=True)
class _Found:
    """The content of the imported files. `is_connection` is True if the files have settings, too, and not only a
    position.
    """

    master: MasterInfo
    relay: RelayLogInfo
    notes: tuple[Note, ...]
    is_connection: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    channel: str
    kind: str = field(metadata={"column": "Imported"})
    master_info: MasterInfo = field(metadata={"column": {name: CONNECTION[name] for name in _PLACE}})
    relay_log_info: RelayLogInfo = field(metadata={"column": {"gtid_executed": "Executed_Gtid_Set"}})
    password_set: bool
    created: bool
    dry_run: bool
    notes: tuple[Note, ...]


def import_info(config: Config, channel_name: str, origin: Origin, *, dry_run: bool = False) -> ImportResult:
    """Import the position, and the connection if the files have one, into a channel.

    Raises UsageError if threads run (3081), or if a file is not valid (1201, 1872; the text names file and line).
    Raises RplError if a file cannot be read.
    """
    kind, path = origin.kind, origin.path
    check_channel_name(channel_name)
    with administer(config, channel_name, makes=True, dry_run=dry_run) as repositories:
        config, channel = repositories.config, repositories.channel
        repositories, finished = after_pending_change(repositories, dry_run=dry_run)
        refuse_while_running(channel)
        found = _read(kind, path, channel)
        created = not repositories.master_info.exists()
        if created and not found.is_connection:
            raise UsageError(
                f"{kind} has only the position: channel '{channel_name}' must be configured first",
                hint="to set the source, run: rplctl change-master --master-host HOST --master-user USER "
                "--ask-password",
            )
        resolve_position(repositories, dry_run=dry_run)
        master, relay = stored_records(repositories, dry_run=dry_run)
        new_master, new_relay, gtid_notes = _merge(channel, (master, relay), found, origin)
        ignored = (
            Note(f"{row.sql_name} is stored and has no effect here: {row.refused}", er.NOT_SUPPORTED_YET)
            for row in ignored_settings(new_master, new_relay)
        )
        notes = (*finished, *found.notes, *gtid_notes, *ignored)
        has_password = new_master.has_password
        if found.is_connection:  # a dry run stores no password and creates no key
            safe = "" if dry_run else protect(new_master.user_password, config.datadir)
            new_master = replace(new_master, user_password=safe)
        if not dry_run:
            change = ChangeResult(
                channel=channel_name,
                previous=master,
                master_info=new_master,
                relay_log_info=new_relay,
                created=created,
                purges_relay_logs=True,
                dry_run=dry_run,
                notes=notes,
            )
            store_change(repositories, change, f"IMPORT INFO {kind} {path}")
        return ImportResult(
            channel=channel_name,
            kind=kind,
            master_info=new_master,
            relay_log_info=new_relay,
            password_set=has_password,
            created=created,
            dry_run=dry_run,
            notes=notes,
        )


def is_configured(config: Config, channel_name: str) -> bool:
    """True if the channel already has settings, which an import would overwrite. The command line then asks for
    confirmation.
    """
    return open_repositories(config, channel_name).master_info.exists()


def _read(kind: str, path: Path, channel: Channel) -> _Found:
    if kind == FOLDER:
        return _read_folder(path, channel)
    text = _load(path).decode("utf-8", "replace")
    notes = _open_password_note(path) if kind == ROWS else ()
    if kind == ROWS:
        master, relay = import_rows(text, channel.name)
        return _Found(master=master, relay=relay, notes=notes, is_connection=True)
    imported = TOOLS[kind](text, channel.name)
    notes = tuple(Note(note) for note in imported.notes)
    return _Found(master=imported.master_info, relay=imported.relay_log_info, notes=notes, is_connection=False)


def _read_folder(folder: Path, channel: Channel) -> _Found:
    """Read the files of the channel in a server's data folder. If there are none, read those of the server's default
    channel.
    """
    names = [(channel.master_info_path.name, channel.relay_log_info_path.name), ("master.info", "relay-log.info")]
    present = [pair for pair in names if (folder / pair[0]).exists()]
    if not folder.is_dir() or not present:
        raise UsageError(
            f"{folder} holds no {names[0][0]}",
            hint="name the server's data folder; for a server that stores its positions in tables, use --mysql-tables",
        )
    master_path, relay_path = (folder / name for name in present[0])
    master, relay = servers.import_info(_load(master_path), _load(relay_path), channel.name)
    return _Found(master=master, relay=relay, notes=_open_password_note(master_path), is_connection=True)


def _load(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RplError(f"{path}: {error.strerror}", hint="name a file that you can read") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} has more than {MAX_BYTES} bytes, so it is not an info file")
    return data


def _open_password_note(path: Path) -> tuple[Note, ...]:
    if not is_readable_by_others(path):
        return ()
    return (Note(f"{path} may hold the password in clear text, and other users can read the file"),)


def _add_gtids(channel: Channel, variable: str, origin: Origin) -> str:
    words = ["rplctl", "import-info", *(("--channel", channel.name) if channel.name else ())]
    words += [str(origin.path)] if origin.kind == FOLDER else [f"--{origin.kind}", str(origin.path)]
    return (
        f"to see the applied GTIDs, run on the replica whose position you import: SELECT @@GLOBAL.{variable}\n"
        f"To import them, too, replace GTIDS by the result and run: {shlex.join(words)} --gtid GTIDS"
    )


def _merge(
    channel: Channel, stored: tuple[MasterInfo, RelayLogInfo], found: _Found, origin: Origin
) -> tuple[MasterInfo, RelayLogInfo, tuple[Note, ...]]:
    master, relay = servers.without_relay_logs(found.master, found.relay)
    notes: tuple[Note, ...] = ()
    executed = origin.gtids or relay.gtid_executed
    if (master.enabled_auto_position or master.using_gtid) and not executed:
        if not master.master_log_name:
            raise UsageError(
                "cannot import a position that uses GTIDs: the files do not contain the applied GTIDs",
                channel=channel.name,
                errno=er.BAD_SLAVE_AUTO_POSITION,
                hint=_add_gtids(channel, "gtid_slave_pos" if master.using_gtid else "gtid_executed", origin),
            )
        master = replace(master, enabled_auto_position=False, using_gtid=0)
        notes = (Note("the replica used GTIDs; without --gtid the channel continues by file and position"),)
    if not found.is_connection:
        moved = ("master_log_name", "master_log_pos", "enabled_auto_position", "using_gtid")
        master = replace(stored[0], **{name: getattr(master, name) for name in moved})
    master = replace(
        master,
        channel_name=channel.name,
        master_id=stored[0].master_id,
        flushed_relay_log_name="",
        flushed_relay_log_pos=0,
    )
    base = relay if found.is_connection else stored[1]
    base = replace(base, channel_name=channel.name, master_id=stored[1].master_id, gtid_executed=executed, left_at="")
    return master, base.at(first_place(channel), master.read_position), notes
