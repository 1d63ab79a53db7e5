"""Named crash points, at which a test can kill the process. The released program also has them (WL#3970 test matrix).

`crash_commit_after=kill@3` kills the process with SIGKILL when it passes this point for the third time. `@N` defaults
to 1, and commas separate several points. There are three ways to arm a point, as in WL#3970: the environment variable
RPLCTL_FAILPOINTS, `start --crash-points`, and `crash-test --arm` at run time.
`crash-test --arm` writes a file into the channel's run folder. A running thread checks this file whenever it passes a
point. The kill removes the file, so that the next start is not affected.
An unknown name raises an error, which lists the known names, before any point is armed. The names are those of WL#3970
and the server; rplctl's own names follow the same pattern.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from pathlib import Path

from rplctl.errors import ConfigError

ENVIRONMENT = "RPLCTL_FAILPOINTS"
RUN_TIME_FILE = "failpoints"  # in a channel's run folder

RECEIVER_POINTS = (
    "crash_after_relay_log_append",
    "crash_before_flush_master_info",
    "crash_before_rotate_relaylog",
    "crash_create_non_critical_before_update_index",
    "crash_create_critical_before_update_index",
    "crash_create_after_update_index",
)
RECOVERY_POINTS = (  # WL#4621
    "crash_recovery_after_update_index",
    "crash_recovery_before_truncate",
    "crash_recovery_after_truncate",
)
PURGE_POINTS = (
    "crash_before_purge_logs",
    "crash_purge_before_update_index",
    "crash_purge_critical_after_update_index",
    "crash_purge_non_critical_after_update_index",
)
TASK_POINTS = ("crash_task_with_range",)  # the applier passes the point, but the Spark task is killed
CLONE_POINTS = frozenset(  # these need a live source: `crash-test --clone`
    {
        "crash_clone_after_ledger",
        "crash_clone_before_claim",
        "crash_clone_after_claim",
        "crash_clone_after_chunk",
        "crash_clone_before_begin",
        "crash_clone_after_begin",
        "crash_clone_before_load",
        "crash_clone_after_load",
        "crash_clone_before_end",
        "crash_clone_after_end",
        "crash_clone_cancel_before_ledger",
    }
)
REPAIR_POINTS = frozenset(  # these need a live source, too: tests/command/test_repair.py
    {"crash_repair_after_undo", "crash_repair_before_commit", "crash_repair_after_commit"}
)
EXPORT_POINTS = frozenset(  # only a DuckDB target passes these: tests/target/duckdb/test_export.py
    {
        "crash_export_before_rename",
        "crash_export_after_rename",
    }
)
RENAME_POINTS = frozenset(  # only `rename-channel` passes these: tests/test_renaming.py
    {
        "rename_after_journal",
        "rename_after_rows",
        "rename_after_relay_logs",
        "rename_after_records",
        "rename_after_options",
        "rename_after_folder",
    }
)
CRASH_POINTS = frozenset(
    {
        # commit (WL#3970), and its recovery
        "crash_commit_before",
        "crash_commit_after_prepare",
        "crash_commit_after_log",
        "crash_commit_between_engines",
        "crash_commit_before_unlog",
        "crash_commit_after",
        "crash_before_update_pos",
        "crash_after_update_pos_before_apply",
        "crash_after_apply",
        "crash_after_commit_before_update_pos",
        "crash_after_commit_and_update_pos",
        "crash_recovery_between_engines",
        # statements with an implicit commit (design D28)
        "crash_statement_after_note",
        "crash_statement_after_commit",
        # commit mode per-table
        "crash_per_table_after_intent",
        "crash_per_table_after_claim",
        "crash_per_table_between_tables",
        "crash_per_table_before_update_pos",
        # switch-repo (design D6)
        "switch_after_journal",
        "switch_after_write",
        "switch_after_mark",
        "switch_after_delete",
        *(*RECEIVER_POINTS, *RECOVERY_POINTS, *PURGE_POINTS, *TASK_POINTS),
    }
)

_KNOWN = CRASH_POINTS | CLONE_POINTS | REPAIR_POINTS | EXPORT_POINTS | RENAME_POINTS
_armed: dict[str, int] | None = None  # point → remaining passes before the kill
_watched: tuple[Path, ...] = ()  # files of the channels, which may arm more points at run time
_seen: dict[Path, int | None] = {}  # modification time of each watched file when it was last read
_here = threading.local()  # its attribute `path` is the file that arms points for this thread's channel

log = logging.getLogger(__name__)


def watch(run_folder: Path, *, beside_others: bool = False) -> None:
    """Read the armed points when a thread of a channel starts, and check the channel's file at each later point.

    `beside_others`: True if the process also serves other channels, which a kill ends, too. Each thread checks only the
    file of its own channel, because a check of 64 files at each point took longer than a commit. Raises ConfigError if
    the text of the points is not valid.
    """
    global _watched, _seen, _armed
    path = run_folder / RUN_TIME_FILE
    parse_failpoints(_read(path))
    others = tuple(other for other in _watched if other != path) if beside_others else ()
    if not others:
        _armed = parse_failpoints(os.environ.get(ENVIRONMENT, ""))
    _watched, _seen, _here.path = (*others, path), {}, path


def rearm() -> None:
    """Make a child process read the points in its environment again, with new counts."""
    global _watched, _armed
    _watched, _armed = (), None


def arm(run_folder: Path, text: str) -> None:
    """Arm the points in `text` for the channel's running threads.

    If `text` is '', all points that were armed in this way are disarmed. Raises ConfigError if the text is not valid.
    """
    parse_failpoints(text)
    path = run_folder / RUN_TIME_FILE
    if text:
        path.write_text(text)
        path.chmod(0o600)
    else:
        path.unlink(missing_ok=True)


def crash_point(name: str) -> None:
    """Kill this process if the point `name` is armed and its count is reached. Each call counts as one pass."""
    if is_due(name):
        os.kill(os.getpid(), signal.SIGKILL)


def is_due(name: str) -> bool:
    """True if the point `name` is armed and its count is reached, so that the caller must kill a process.

    Each call counts as one pass of the point.
    """
    assert name in _KNOWN, name
    armed = _armed_now()
    if name not in armed:
        return False
    armed[name] -= 1
    if armed[name]:
        return False
    for path in _watched:
        path.unlink(missing_ok=True)
    return True


def parse_failpoints(text: str) -> dict[str, int]:
    """Return the count of each point: {a: 3, b: 1} for `a=kill@3,b=kill`.

    Raises ConfigError for an unknown point or action.
    """
    armed: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, action = part.partition("=")
        verb, _, count = action.partition("@")
        if name not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            raise ConfigError(f"'{name}' is not a crash point", hint=f"known crash points: {known}")
        if verb != "kill" or not (count or "1").isdecimal() or count == "0":
            raise ConfigError(f"crash points: '{part}' has no action", hint="write NAME=kill or NAME=kill@N")
        armed[name] = int(count or "1")
    return armed


def _armed_now() -> dict[str, int]:
    global _armed, _seen
    if _armed is None:
        _armed = parse_failpoints(os.environ.get(ENVIRONMENT, ""))
    own = getattr(_here, "path", None)
    if any(_seen.get(path) != _changed(path) for path in ([own] if own in _watched else _watched)):
        _seen = {path: _changed(path) for path in _watched}
        given = ",".join(filter(None, map(_read, _watched)))
        try:
            _armed = parse_failpoints(given or os.environ.get(ENVIRONMENT, ""))
        except ConfigError as error:  # somebody edited a file; to raise an error during a commit would cause damage
            log.error("%s is ignored: %s", " ".join(map(str, _watched)), error.message)
    return _armed


def _changed(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
