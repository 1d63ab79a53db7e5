"""Every testable statement of WL#4621 → the tests that hold it; here too are those that had none."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from rplctl.command.selftest.crash_run import configure, in_child, receive, received, recorded
from rplctl.config import Config
from tests.repository.test_statements import exists

WL4621: dict[int, tuple[str, ...]] = {
    1: (
        "stories/test_replication.py::test_kill_9_of_receiver_and_applier_at_random_moments_loses_and_repeats_nothing",
        "receiver/test_crash.py::test_a_killed_receiver_goes_on_and_every_transaction_is_there_once",
        "stories/test_fault_calls.py::test_killed_at_its_nth_call_it_goes_on",
    ),
    2: ("test_recovery.py::test_the_stored_read_position_is_not_believed",),
    3: (
        "test_recovery.py::test_torn_at_every_byte",
        "command/test_upkeep.py::test_recover_says_what_it_would_do_and_changes_nothing_with_dry_run",
        "repository/test_next_event.py::test_it_moves_with_the_rows_commit_and_with_nothing_else",
    ),
    4: (
        "test_recovery.py::test_the_next_log_of_the_source_is_followed",
        "receiver/test_pull.py::test_the_sources_next_log_moves_the_position_to_it",
    ),
    5: (
        "test_recovery.py::test_a_whole_relay_log_is_left_alone",
        "test_recovery.py::test_what_was_cut_is_fetched_again_once",
        "test_recovery.py::test_positions_are_ordered_by_number_not_as_text",
    ),
    6: ("test_recovery.py::test_an_applier_ahead_of_the_relay_log_goes_on_where_it_stopped",),
    7: ("test_recovery_statements.py::test_07_without_any_sync_a_killed_receiver_ends_with_the_same_relay_log",),
    8: ("test_recovery.py::test_torn_at_every_byte",),
    9: (
        "test_recovery.py::test_killed_while_recovering",
        "stories/test_fault_calls.py::test_killed_at_its_nth_call_it_goes_on",
    ),
    10: (
        "test_recovery.py::test_a_last_log_without_one_whole_event_gives_way_to_the_one_before",
        "test_recovery.py::test_torn_inside_the_header_is_fetched_from_where_it_began",
        "test_recovery.py::test_a_damaged_index_is_repaired_without_loss",
        "test_recovery.py::test_one_flipped_bit_anywhere_is_found",
        "test_recovery.py::test_positions_beyond_32_bits",
        "test_recovery.py::test_noise_never_raises_anything_but_keeps_whole_transactions",
        "receiver/test_event_runs.py::test_events_without_a_position_count_by_their_length_unless_artificial",
    ),
    11: (
        "test_recovery.py::test_lost_relay_logs_are_fetched_from_the_executed_position",
        "test_recovery.py::test_without_anything_the_configured_position_is_asked_for",
        "receiver/test_receiver.py::test_a_purged_log_and_an_impossible_position_are_final",
    ),
}


def test_each_statement_has_its_tests() -> None:
    assert set(WL4621) == set(range(1, 12))
    assert [place for places in WL4621.values() for place in places if not exists(place)] == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["crash_after_relay_log_append=kill@3", "crash_before_flush_master_info=kill@2"])
def test_07_without_any_sync_a_killed_receiver_ends_with_the_same_relay_log(tmp_path: Path, point: str) -> None:
    """sync_master_info, sync_relay_log: the result hangs on neither (relay_log_recovery is no option here at all)."""
    config = Config(tmp_path, sync_master_info=0, sync_relay_log=0, max_relay_log_size=4096)
    assert not in_child(partial(configure, config)).error
    assert in_child(partial(receive, config), point).killed
    done = in_child(partial(receive, config))
    assert (done.error, received(config) == recorded()) == ("", True)
