"""`log-status`: return the row of the table log_status, which WL#9452 specifies, if this user may read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rplctl import mysql_errors as er
from rplctl.channel import Channel
from rplctl.command.channel.context import engine_of, one_engine
from rplctl.command.instance.backup_lock import check_folder
from rplctl.config import Config
from rplctl.errors import LockBusy, RplError, UsageError
from rplctl.log_status import CHANNELS, STORAGE_ENGINES, Collected, TargetLog, collect_log_status, unable
from rplctl.repository import list_channels
from rplctl.repository.channels import TargetKey, target_key
from rplctl.source.replica_id import replica_identity
from rplctl.target import open_engine_log
from rplctl.target.engine_log import EngineLog, access_denied
from rplctl.target.registry import dialect_of, target_kind

# value of --format → the names of columns 2 and 3, and the JSON key of the relay log position
FORMATS: dict[str, tuple[str, str, str]] = {
    "": ("MASTER", "CHANNELS", "relay_log_position"),  # the sample output of the worklog
    "seed": ("MASTER", "CHANNELS", "relay_log_pos"),  # the text of the worklog
    "mysql8": ("LOCAL", "REPLICATION", "relay_log_position"),
}

Configs = Callable[[str], Config]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    row: dict[str, Any]  # column → text or JSON document
    held_s: float  # seconds for which receivers and appliers were blocked
    map_held_s: float  # seconds for which commands on channels were blocked
    waited_s: float  # seconds of waiting for these locks


@one_engine()
def log_status(config: Configs, layout: str = "") -> LogStatus:
    """Return the row of performance_schema.log_status, one row that covers all channels.

    `config`: returns the options of a channel. `layout`: a key of FORMATS, which names the row's columns.

    Raises RplError 1227 if this user may not read the row, and RplError 3722 if a part cannot be collected. Raises
    LockBusy 1205 if a lock is not free in time, and NotConfigured if the instance does not exist.
    """
    if layout not in FORMATS:
        raise UsageError(f"--format {layout}: the format must be seed or mysql8")
    with collected_logs(config) as (collected, _):
        row = row_of(config(""), collected, layout)
        return LogStatus(row=row, held_s=collected.held_s, map_held_s=collected.map_held_s, waited_s=collected.waited_s)


@contextmanager
def collected_logs(config: Configs) -> Iterator[tuple[Collected, list[TargetLog]]]:
    """Yield the collected positions of all channels, and the logs of their targets.

    Snapshots of the targets at the moment of the collection exist until the block ends. Raises the errors of
    `log_status`.
    """
    try:
        options = config("")
        check_folder(options)
    except PermissionError as error:
        raise access_denied(f"run as the owner of {error.filename}") from None
    with ExitStack() as opened:
        try:
            targets = _targets(config)
            logs = list(_open_logs(config, targets, opened))
            collected = collect_log_status(config, engine_of, logs)
        except PermissionError:
            raise access_denied(f"run as the owner of {options.datadir}") from None
        for log in collected.channels:
            if target_key(config(log.name)) not in targets:
                raise LockBusy(
                    f"channel '{log.name}' was created at this moment",
                    channel=log.name,
                    hint="run the same command again",
                )
        yield collected, logs


def _targets(config: Configs) -> dict[TargetKey, list[str]]:
    """Return the channels of each target. If no channel exists, the result has only the default channel and its target.

    Raises RplError 3722 if the channels cannot be listed.
    """
    targets: dict[TargetKey, list[str]] = {}
    try:
        names = list_channels(config(""), engine_of)
    except RplError as error:
        raise unable(CHANNELS, error, "rplctl doctor") from None
    for name in names or [""]:
        targets.setdefault(target_key(config(name)), []).append(name)
    return targets


def _open_logs(config: Configs, targets: dict[TargetKey, list[str]], opened: ExitStack) -> Iterator[TargetLog]:
    """Yield the log of each target, the one of the default channel first. A SQLite file that does not exist yet has no
    log.

    Raises RplError 1227 if this user may not read a log, and RplError 3722 if a log cannot be opened.
    """
    default = target_key(config(""))
    for key in sorted(targets, key=lambda key: key != default):
        names = targets[key]
        log = _open_log(config(names[0]), "" if len(targets) == 1 else f"channel '{names[0]}': ")
        if log is not None:
            opened.callback(log.close)
            opened.callback(log.unlock)
            yield TargetLog(log, tuple(names), key == default)


def _open_log(config: Config, whose: str) -> EngineLog | None:
    try:
        file = sqlite_file(config)
        # opening a SQLite file that does not exist would create it
        return open_engine_log(engine_of(config)()) if file is None or file.exists() else None
    except RplError as error:
        if error.errno == er.SPECIFIC_ACCESS_DENIED_ERROR:
            raise access_denied(error.hint) from None
        raise unable(STORAGE_ENGINES, error, "rplctl doctor", whose) from None


def sqlite_file(config: Config) -> Path | None:
    """Return the path of the target's file if the target is SQLite. Otherwise, return None."""
    is_file = dialect_of(target_kind(config.target_place)).is_one_file
    return Path(config.target_url.partition(":///")[2].partition("?")[0]) if is_file else None


def row_of(config: Config, collected: Collected, layout: str) -> dict[str, Any]:
    """Return the row of log_status. `layout` is a key of FORMATS, where the names of the columns are."""
    master, channels, position = FORMATS[layout]
    rows = [
        {"channel_name": log.name, "relay_log_file": log.relay_log_file, position: log.relay_log_position}
        for log in collected.channels
    ]
    return {
        "SERVER_UUID": replica_identity(config, Channel("", config.datadir)).uuid,
        master: collected.master,
        channels: {"channels": rows},
        "STORAGE_ENGINES": collected.storage_engines,
    }
