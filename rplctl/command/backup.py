"""`backup DIR`: copy a running instance into a folder from which `restore` and `start` continue (WL#9452).

The command first collects the coordinates of all channels at one moment: the ends of their relay logs and binary logs.
At the end, DIR contains these files:

    backup.json                  the list of all files with sizes and digests. It is written last: without it, DIR is
                                 not a backup.
    rplctl.toml, rplctl.key, …   unchanged copies
    master*.info                 MasterInfo, as it was at the collected coordinates
    relay-bin*.NNNNNN, *.index   the relay logs up to the collected coordinates
    LOG_BIN.NNNNNN, *.index      the binary log up to the collected coordinates. If log_bin names a folder outside of
                                 the instance, the copy is in binary-log/, and `restore` writes it back to that folder.
    target.db, target-CHAN.db    copies of SQLite targets at the same moment. target-CHAN.db is for a channel with a
                                 target of its own.
    relay-log*.info              RelayLogInfo with the position of the rows in these copies
    run/CHAN/…                   files that unfinished commands left for the next start

A TABLE repository is copied with the target. rplctl cannot copy a target that is a server: the operator dumps the
server, and rplctl prints the coordinates. Invariant: the copies contain every transaction up to the copied positions.
No thread is stopped: the locks for the coordinates are held for milliseconds, and the backup lock prevents purging and
changes of files during the copy. All files have mode 0600, because they contain data, perhaps passwords, and the key
with which stored passwords are encrypted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rplctl.applied_log.files import binary_log_files
from rplctl.channel import Channel
from rplctl.command.channel.context import APPLIER, no_engine, not_configured, refuse_lake, running
from rplctl.command.instance.manifest import MANIFEST, MANIFEST_VERSION
from rplctl.command.log_status import Configs, collected_logs, row_of, sqlite_file
from rplctl.config import INSTANCE_FILE, Config
from rplctl.durable import private_folder, replace_file, sync, write_all
from rplctl.errors import RplError, UsageError
from rplctl.history import HISTORY, note_event
from rplctl.info import RelayLogInfo
from rplctl.instance_id import INSTANCE_ID_FILE
from rplctl.locks import PATIENCE_S, InstanceLock, lock_wait_timeout, read_lock
from rplctl.log_status import ChannelLog, TargetLog
from rplctl.plain_file import closing_descriptor, open_plain
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository import RepositoryKind, open_relay_log_info, open_repository
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from rplctl.secret import KEY_FILE
from rplctl.target import open_engine

TARGET_FILE = "target.db"  # the target of the default channel
OUTSIDE = "binary-log"  # folder for binary logs that are not in the instance folder
_INSTANCE_FILES = (INSTANCE_FILE, INSTANCE_ID_FILE, KEY_FILE, HISTORY)
# The next start uses or finishes the first four. The last one has the source's time zone for each relay log.
_RUN_FILES = ("skip_counter", "skip_gtids", "change_master.pending", "switch-*.json", "source-zones.json")
_PIECE = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupResult:
    folder: Path
    files: int
    size: int = field(metadata={"column": "Bytes"})
    has_target: bool
    has_key: bool
    log_status: dict[str, Any]
    held_s: float = field(metadata={"column": ""})
    needs_dump: bool = field(metadata={"column": ""})


def backup(config: Configs, folder: Path, *, with_key: bool = True) -> BackupResult:
    """Copy the instance into `folder`, which is new or empty. `with_key=False` leaves out the key of the stored
    passwords.

    Raises UsageError if the folder is not empty, or if a target cannot be copied at the moment of its position. Raises
    LockBusy 1205 if the instance is locked, and the errors of `log-status`.
    """
    options = config("")
    if not options.datadir.is_dir():
        raise not_configured(Channel("", options.datadir))
    refuse_filled(folder)
    with closing(InstanceLock(options.datadir)) as lock:
        if not lock.acquire_backup(PATIENCE_S):
            raise lock_wait_timeout("a command that changes files runs", "rplctl backup")
        private_folder(folder)
        with collected_logs(config) as (collected, logs):
            for name in [log.name for log in collected.channels] or [""]:
                _refuse_lake(config(name), folder)
            snapshots = _snapshots(logs, folder)
            file_of = {channel: name for name, channels in snapshots.items() for channel in channels}
            _refuse_moving(config, [log for log in collected.channels if log.name not in file_of])
            outside: dict[str, str] = {}
            for channel in collected.channels:
                target = folder / file_of[channel.name] if channel.name in file_of else None
                outside |= _copy_channel(config(channel.name), channel, folder, target)
        names = [name for name in _INSTANCE_FILES if with_key or name != KEY_FILE]
        for name in names:
            _copy(options.datadir / name, folder / name)
    row, has_target, has_key = row_of(options, collected, ""), bool(snapshots), (folder / KEY_FILE).exists()
    without = [log.name for log in collected.channels if log.name not in file_of]
    if not collected.channels and not has_target:
        without = [""]
    # a SQLite file that does not exist yet holds no data
    needs_dump = any(sqlite_file(config(name)) is None for name in without)
    manifest = {
        "version": MANIFEST_VERSION,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "log_status": row,
        "has_target": has_target,
        "targets": {name: list(channels) for name, channels in snapshots.items()},
        "has_key": has_key,
        "needs_dump": needs_dump,
        "key_left_out": not with_key and (options.datadir / KEY_FILE).exists(),
        "binary_logs_outside": outside,
        "files": (files := dict(_described(folder))),
    }
    replace_file(folder / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")
    size = sum(entry["size"] for entry in files.values())
    note_event(options.datadir, None, "backup", f"{folder}: {len(files)} files, {size} bytes")
    return BackupResult(
        folder=folder,
        files=len(files),
        size=size,
        has_target=has_target,
        has_key=has_key,
        log_status=row,
        held_s=collected.held_s,
        needs_dump=needs_dump,
    )


def _snapshots(logs: list[TargetLog], folder: Path) -> dict[str, tuple[str, ...]]:
    """Copy each target that is a SQLite file, and return the name of each copy with the channels that write to this
    target.
    """
    found = {}
    for target in logs:
        name = TARGET_FILE if target.is_default else f"target{Channel(target.channels[0], folder).suffix}.db"
        if target.log.copy_to(folder / name):
            found[name] = target.channels
    return found


def refuse_filled(folder: Path, hint: str = "name a folder that does not exist yet") -> None:
    """Raise UsageError unless the folder is new or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder", hint=hint)


def _refuse_lake(config: Config, folder: Path) -> None:
    """Raise UsageError if the target is a lake, whose files cannot be copied at the moment of its position.

    The hint copies instance and lake into the backup `folder`. A lake in an object store has no path that it can name.
    """
    lake = config.target_place.partition("file://")[2].partition("?")[0] or "LAKE"
    names = " ".join(shlex.quote(str(name)) for name in (config.datadir, lake, folder))
    hint = (
        f"to copy instance and lake, run: rplctl stop --all; cp -a {names}; rplctl start --all\n"
        "To restore, copy both back to their old places while the channels are stopped"
    )
    refuse_lake(config, hint, f"cannot copy the lake {config.target_place} at the moment of its position")


def _refuse_moving(config: Configs, channels: list[ChannelLog]) -> None:
    """Raise UsageError for a channel that has RelayLogInfo in a FILE, if its applier runs and may commit at any time.

    The operator copies the target with a separate tool. The rows in that copy would not match the position in the FILE.
    If `rplctl lock-tables` stops the applier's commits, nothing is raised.
    """
    datadir = config("").datadir
    for log in channels:
        options, channel = config(log.name), Channel(log.name, datadir)
        if RELAY_LOG_INFO.kind(options) is not RepositoryKind.FILE or APPLIER not in running(channel):
            continue
        with closing(read_lock(datadir)) as lock:
            with lock.shared(0) as is_free:
                if is_free:
                    raise UsageError(
                        f"RelayLogInfo of channel '{log.name}' is a FILE and its applier runs: a dump of the target "
                        "would not be of the same moment",
                        channel=log.name,
                        hint="to stop all writes meanwhile, run: "
                        "rplctl lock-tables -- sh -c 'rplctl backup DIR && DUMP-THE-TARGET'",
                    )


def _copy_channel(config: Config, log: ChannelLog, folder: Path, target: Path | None) -> dict[str, str]:
    """Copy the files of one channel into the backup `folder`.

    `target` is the copy of the channel's SQLite target; None if there is no such copy. If the binary logs are outside
    of the instance folder, the result maps their folder in the backup to the original folder. Otherwise, it is empty.
    """
    here, there = Channel(log.name, config.datadir), Channel(log.name, folder)
    for name in log.relay_logs:
        is_last = name == log.relay_log_file
        if not _copy(config.datadir / name, folder / name, log.relay_log_position if is_last else None):
            raise RplError(
                f"relay log {name} was removed while it was copied",
                channel=log.name,
                hint="to begin the backup again, run: rplctl backup DIR",
            )
    if log.relay_logs:
        RelayLogIndex(there).replace(log.relay_logs)
    outside = _copy_binary_logs(config, log, here, folder)
    if MASTER_INFO.kind(config) is RepositoryKind.FILE and log.master_info is not None:
        open_repository(MASTER_INFO, RepositoryKind.FILE, config, there, no_engine).flush(log.master_info, force=True)
    if RELAY_LOG_INFO.kind(config) is RepositoryKind.FILE:
        stored = open_relay_log_info(config, here, no_engine)
        if stored.exists():
            info = stored.read()
            if target is not None:
                info = _at_snapshot(info, target)
            open_repository(RELAY_LOG_INFO, RepositoryKind.FILE, config, there, no_engine).flush(info, force=True)
    for pattern in _RUN_FILES:
        for path in sorted(here.run_folder.glob(pattern)):
            _copy(path, private_folder(there.run_folder) / path.name)
    return outside


def _copy_binary_logs(config: Config, log: ChannelLog, here: Channel, folder: Path) -> dict[str, str]:
    """Copy the binary logs of a channel, the last log up to the position that was collected with the coordinates.

    If the logs are outside of the instance folder, the result maps their folder in the backup to the original folder.
    Otherwise, it is empty. Raises RplError if a log is removed before it is copied.
    """
    files = binary_log_files(config, here)
    if files is None or not log.binary_logs:
        return {}
    is_inside = files.datadir.is_relative_to(config.datadir)
    part = files.datadir.relative_to(config.datadir) if is_inside else Path(OUTSIDE, files.base)
    there = replace(files, datadir=private_folder(folder / part))
    for name in log.binary_logs:
        is_last = name == log.binary_log_file
        if not _copy(files.datadir / name, there.datadir / name, log.binary_log_position if is_last else None):
            raise RplError(
                f"binary log {name} was removed while it was copied",
                channel=log.name,
                hint="to begin the backup again, run: rplctl backup DIR",
            )
    RelayLogIndex(there).replace(log.binary_logs)
    return {} if is_inside else {str(part): str(files.datadir)}


def _at_snapshot(info: RelayLogInfo, target: Path) -> RelayLogInfo:
    """Return RelayLogInfo with the position of the rows in the copied target, which the marker in the copy contains.

    `info` is the record of the FILE. If the copy has no marker for the channel, `info` is returned unchanged. It is
    also unchanged if the marker is in step with the FILE: then the applier stopped orderly, and has not run since.
    """
    from sqlalchemy import inspect

    from rplctl.commit.marker import read_marker

    engine = open_engine(f"sqlite:///{target}")
    try:
        if not inspect(engine).has_table("rplctl_commit_marker"):
            return info
        with engine.connect() as connection:
            marker, in_step = read_marker(connection, info.channel_name)
    finally:
        engine.dispose()
    return info if marker is None or in_step else info.moved_to(marker)


def _copy(source: Path, destination: Path, size: int | None = None) -> bool:
    """Copy the first `size` bytes of a file. Return False if the file does not exist.

    If the file is shorter, or if `size` is None, the whole file is copied. The copy is not durable yet; `_described`
    makes it durable later.
    """
    try:
        reader = open_plain(source, follow=False)
    except FileNotFoundError:
        return False
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with closing_descriptor(reader), closing_descriptor(os.open(destination, flags, 0o600)) as writer:
        at = 0
        while piece := os.pread(reader, _PIECE if size is None else min(_PIECE, size - at), at):
            write_all(writer, piece)
            at += len(piece)
    return True


def _described(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Make every file of the backup durable, and yield its relative name with its size and SHA-256."""
    for path in folder.glob(".*.synced"):  # second names of the files just written (repository/file.py)
        path.unlink()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with open(path, "rb") as file:
                sync(file.fileno(), path.name)
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                yield str(path.relative_to(folder)), {"size": file.tell(), "sha256": digest}
