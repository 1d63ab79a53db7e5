"""Named crash points, compiled into the released program (WL#3970 test matrix).

`RPLCTL_FAILPOINTS=crash_commit_after=kill@3` kills the process with SIGKILL the third time it passes that point;
`@N` defaults to 1, several are separated by commas. Unknown names are an error at start, never ignored.
The names are the worklog's and the server's, letter for letter; ours follow the same pattern.
"""

from __future__ import annotations

import os
import signal

from rplctl.errors import ConfigError

ENVIRONMENT = "RPLCTL_FAILPOINTS"

CRASH_POINTS = frozenset(
    {
        # commit (WL#3970, mission map 1.3 and 2.10)
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
        # relay log and receiver
        "crash_before_rotate_relaylog",
        "crash_create_critical_before_update_index",
        "crash_create_after_update_index",
        "crash_before_purge_logs",
        "crash_purge_before_update_index",
        "crash_purge_critical_after_update_index",
        "crash_after_relay_log_append",
        "crash_before_flush_master_info",
        "crash_recovery_before_truncate",
        "crash_recovery_after_truncate",
        # switch-repo (design D6)
        "switch_after_journal",
        "switch_after_write",
        "switch_after_mark",
        "switch_after_delete",
    }
)

_armed: dict[str, int] | None = None  # point → passes left until it kills


def crash_point(name: str) -> None:
    """Kill this process here if the point is armed and its count is reached."""
    global _armed
    if _armed is None:
        _armed = parse_failpoints(os.environ.get(ENVIRONMENT, ""))
    assert name in CRASH_POINTS, name
    if name in _armed:
        _armed[name] -= 1
        if _armed[name] == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def parse_failpoints(text: str) -> dict[str, int]:
    """`a=kill@3,b=kill` → {a: 3, b: 1}. Raises ConfigError."""
    armed: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, action = part.strip().partition("=")
        verb, _, count = action.partition("@")
        if name not in CRASH_POINTS or verb != "kill" or not (count or "1").isdecimal():
            raise ConfigError(f"{ENVIRONMENT}: '{part}' is not a crash point", hint="write NAME=kill or NAME=kill@N")
        armed[name] = int(count or "1")
    return armed
