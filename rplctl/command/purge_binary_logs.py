"""PURGE BINARY LOGS: remove old files of the binary log in which rplctl logs applied transactions (design D9)."""

from __future__ import annotations

from datetime import datetime

from rplctl import mysql_errors as er
from rplctl.applied_log.files import binary_log_files
from rplctl.applied_log.purge import logs_before, logs_older_than, remove_logs, unread
from rplctl.command.channel.context import Note, administer
from rplctl.command.purge_relay_logs import RemovedLogs
from rplctl.config import Config
from rplctl.errors import UsageError


def purge_binary_logs(
    config: Config, channel_name: str, *, to: str = "", before: str = "", dry_run: bool = False
) -> RemovedLogs:
    """Remove the binary logs before the log `to`, or those last written before the time `before`. The last log is kept.

    If a replica reads a log from `serve --mysql`, this log and all later ones are kept (note 1867). rplctl does not
    know whether a disconnected replica needs a log. Raises UsageError 1381 without `log_bin`, UsageError 1373 if the
    index does not list `to`, and NotConfigured if the channel does not exist.
    """
    if bool(to) == bool(before):
        raise UsageError(
            "purge-binary-logs requires --to LOG or --before TIME",
            hint="to see the options and their values, run: rplctl purge-binary-logs --help",
        )
    moment = _moment(before) if before else 0.0
    with administer(config, channel_name, dry_run=dry_run) as repositories:
        repositories.master()
        files = binary_log_files(repositories.config, repositories.channel)
        if files is None:
            raise UsageError(
                "You are not using binary logging",
                errno=er.NO_BINARY_LOGGING,
                hint="to write a binary log from the next start on (init changes only this setting), run: rplctl init "
                "--log-bin binlog",
            )
        names = logs_before(files, to) if to else logs_older_than(files, moment)
        gone = unread(names, files) if dry_run else remove_logs(files, names)
        notes = tuple(_in_use(name, len(gone), len(names)) for name in names[len(gone) : len(gone) + 1])
        return RemovedLogs(channel_name, tuple(gone), dry_run, notes)


def _in_use(name: str, removed: int, asked: int) -> Note:
    text = f"file {name} was not purged because a replica reads it, purged only {removed} out of {asked} files."
    return Note(text, er.WARN_PURGE_LOG_IN_USE)


def _moment(text: str) -> float:
    """Return the Unix time of a text in ISO 8601 or in MySQL's format. Without a time zone, the text is local time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(f"--before {text}: the time must be YYYY-MM-DD or 'YYYY-MM-DD HH:MM:SS'") from None
