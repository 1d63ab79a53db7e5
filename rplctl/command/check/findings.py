"""Define the findings of `check`: one row for each code, with its level for monitoring.

A code never changes, but a text may change.

level 0 OK         information that needs no action
level 1 WARNING    a problem that the next start repairs, or a setting that is weaker than possible
level 2 CRITICAL   replication is stopped, or will stop
"""

from __future__ import annotations

from dataclasses import dataclass

from rplctl.errors import in_one_line

NOTE, WARNING, CRITICAL = 0, 1, 2

LEVELS: dict[str, int] = {
    # threads
    "never_started": CRITICAL,
    "receiver_stopped": CRITICAL,
    "applier_stopped": CRITICAL,
    "receiver_error": CRITICAL,
    "applier_error": CRITICAL,
    "receiver_killed": CRITICAL,
    "applier_killed": CRITICAL,
    "receiver_silent": CRITICAL,
    "applier_silent": CRITICAL,
    "receiver_connecting": WARNING,
    "receiver_not_connected": CRITICAL,
    "applier_retrying": WARNING,
    "no_executors": WARNING,
    "lag_warning": WARNING,
    "lag_critical": CRITICAL,
    "never_synced": CRITICAL,
    "sync_old": WARNING,
    "sync_too_old": CRITICAL,
    "skip_pending": NOTE,
    "relay_disk_filling": WARNING,
    "relay_disk_full_soon": CRITICAL,
    "clock_skew": WARNING,
    "heartbeat_old": WARNING,
    # instance
    "cannot_look": CRITICAL,
    "disk_full": CRITICAL,
    # repositories
    "repository_both": CRITICAL,
    "repository_damaged": CRITICAL,
    "repository_missing": CRITICAL,
    "repository_elsewhere": WARNING,
    "repository_old_layout": WARNING,
    "repository_not_transactional": WARNING,
    "file_mode": CRITICAL,
    "file_behind_marker": NOTE,
    "edited_by_hand": WARNING,
    "target_gone_back": WARNING,
    "target_lost": CRITICAL,
    "target_of_another": CRITICAL,
    "switch_interrupted": WARNING,
    "change_interrupted": WARNING,
    "rename_interrupted": WARNING,
    "option_ignored": WARNING,
    # relay log and index
    "relay_log_missing": WARNING,
    "relay_log_not_listed": WARNING,
    "relay_index_edited": WARNING,
    "relay_log_torn": WARNING,
    "relay_log_damaged": CRITICAL,
    "relay_position_past_end": WARNING,
    "relay_position_inside_event": WARNING,
    "positions_disagree": WARNING,
    "relay_logs_begin_later": WARNING,
    "read_behind_executed": WARNING,
    # target
    "tables_newer": CRITICAL,
    "target_away": CRITICAL,
    "target_refuses_writes": CRITICAL,
    "table_missing": CRITICAL,
    "rows_never_copied": WARNING,
    "table_differs": CRITICAL,
    # copy of tables
    "cloning": WARNING,
    "clone_stuck": CRITICAL,
    "clone_reader_error": WARNING,
    "clone_left_out": WARNING,
    # objects that the target cannot have
    "not_carried_out": NOTE,
    # the last verify
    "verify_differs": CRITICAL,
    "verify_old": WARNING,
    # source
    "source_ahead": NOTE,
    "receiver_behind": WARNING,
    "receiver_stuck": CRITICAL,
    "source_away": CRITICAL,
    "source_changed": CRITICAL,
    "source_same_server_id": CRITICAL,
    "source_binlog_off": CRITICAL,
    "source_purged": CRITICAL,
    "source_purges_soon": WARNING,
    "source_purges_now": CRITICAL,
    "source_past_end": CRITICAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem: its permanent code, its level, a sentence about it, and the command that repairs it."""

    code: str
    level: int
    text: str
    repair: str


def found(code: str, text: str, repair: str) -> Finding:
    """Return the finding with this code, and with its level from LEVELS. Several lines in `repair` become one line."""
    return Finding(code=code, level=LEVELS[code], text=text, repair=in_one_line(repair))
