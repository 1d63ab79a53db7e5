"""Which test holds which fault: by class and number, so that what is missing is seen.

A, the commit protocol, killed at each point
    A01-A09 A11 A18  commit/test_fault_matrix.py::test_no_crash_point, commit/test_two_phase.py::test_killed_at_a_crash
    A10  stories/test_target_faults.py::test_a_commit_without_an_answer, ::test_in_two_phases_one_that_is_not_answered
    A12 A13  applier/test_rolled_back.py::test_rows_of_a_logged, applier/test_interrupt.py::test_a_batch_that_stop
    A14 A15  stories/test_target_faults.py::test_a_deadlock_on_postgresql,
         stories/test_stop_and_until.py::test_lock_waits_are_tried
    A16  commit/test_commit_after.py::test_the_position_moves
    A17  applier/apply/test_savepoint_groups.py::test_savepoints_of_the_source
    A18  repository/test_shadow_page.py::test_torn_at_every_byte
B, killed processes
    B01 B09 B10  stories/test_fault_calls.py::test_killed_at_its_nth_call,
         repository/test_switch.py::test_killed_at_every_write
    B02  receiver/test_crash.py::test_a_killed_receiver, ::test_the_record_never_claims
    B03  stories/test_replication.py::test_kill_9_of_receiver_and_applier
    B04 B05 B13  applier/test_killed_parts.py::test_a_session_that_dies, ::test_a_worker_that_is_killed
    B06  applier/test_killed_parts.py::test_an_executor_that_is_killed
    B07  stories/test_fencing.py::test_one_that_was_stopped_and_replaced
    B08  command/process/test_child.py::test_a_signal_stops,
         receiver/test_receiver.py::test_the_process_stops_on_sigterm
    B11  stories/test_target_faults.py::test_a_target_killed_in_a_batch,
         commit/test_two_phase.py::test_the_target_killed
    B12  receiver/test_receiver.py::test_mariadb_is_received_whole, ::test_mysql_is_received_whole
    B14  stories/test_power_cut.py::test_a_power_cut_at_any_moment, stories/test_simulation.py::test_seeds_of_faults
C, disks and files
    C01 C02 C12  test_recovery.py::test_torn_at_every_byte, ::test_a_torn_page_from, ::test_one_flipped_bit,
         applier/test_damaged_type.py::test_it_stops_at_its_transaction
    C03  test_recovery.py::test_lost_relay_logs, ::test_a_damaged_index, ::test_the_stored_read_position,
         ::test_by_gtid_with_nothing_executed, ::test_relay_logs_that_have_changed_places,
         stories/test_failures.py::test_by_gtid_relay_logs_lost
    C04  repository/test_torn_files.py::test_cut_off_at_any_byte, ::test_an_old_beginning
    C05 C07 C08  stories/test_fault_calls.py::test_refused_its_nth_call,
         stories/test_failures.py::test_a_full_disk_stops_the_receiver
    C06  receiver/test_receiver.py::test_the_space_limit_holds
    C09  test_durable.py::test_a_short_write_is_continued
    C10 C11  stories/test_power_cut.py::test_a_power_cut_at_any_moment, ::test_a_copy_holds
    C13  test_recovery.py::test_positions_beyond_32_bits, test_position.py::test_numbers_go_past
    C14  target/sqlite/test_target.py::test_a_lock_of_another_program,
         stories/test_target_faults.py::test_sqlite_on_a_full
    C15  test_durable.py::test_a_file_is_replaced_at_once
D, network and source
    D01  receiver/test_network.py::test_a_dump_cut_after_any_byte
    D02  receiver/test_network.py::test_a_lost_connection_is_noticed
    D03  receiver/test_network.py::test_a_handshake_cut, ::test_a_handshake_that_stalls, ::test_a_source_without_a_free
    D04 D05  receiver/test_network.py::test_logs_begun_anew, receiver/test_receiver.py::test_a_purged_log
    D06  stories/test_gtid_failover.py::test_what_the_source_says
    D07 D08  receiver/test_network.py::test_of_two_replicas, ::test_a_source_with_our_own
    D09  receiver/test_network.py::test_an_event_above_our_limit
    D10  receiver/test_network.py::test_a_host_name_is_asked
    D11 D12  receiver/test_network.py::test_single_bytes, ::test_dump_threads_killed
    D13  stories/test_source_faults.py::test_clocks_that_jump
F, the target
    F01  commit/test_ambiguous_commit.py::test_it_asks_until, receiver/test_receiver.py::test_a_target_with_our_record
    F02  stories/test_target_faults.py::test_a_read_only_target, ::test_a_server_whose_disk, ::test_a_postgresql_whose,
         ::test_a_table_that_is_full, ::test_a_target_that_vanishes
    F03  stories/test_restored_target.py::test_what_a_restored,
         commit/test_position_store.py::test_in_two_phases_a_target_from
    F04  repository/test_table.py::test_a_changed_primary_key, ::test_a_missing_column, ::test_any_engine
    F05  commit/test_two_phase.py::test_postgresql_without_slots
    F06  command/test_doctor_power_cut.py::test_postgresql_is_asked, ::test_mariadb_is_asked, ::test_mysql_is_asked
G, several at once
    G01 G02  stories/test_fencing.py::test_of_appliers_that_start, ::test_on_sqlite_the_position
    G03  stories/test_fencing.py::test_a_lock_that_an_operator
    G04  stories/test_admin_races.py::test_one_wins, ::test_what_needs_it_stopped
    G05  stories/test_command_model.py::test_any_sequence
    G06 G07  command/test_deadlock.py::test_every_pair
    G08  relay_log/test_purge.py::test_only_logs_before
    G09  command/test_threads.py::test_channels_come_and_go, command/test_upkeep.py::test_a_damaged_channel
    G10  migrations/test_versions.py::test_creating_again

H, Spark
    H01 H02  applier/test_killed_parts.py::test_a_worker_that_is_killed,
         applier/spark/test_session.py::test_no_task_runs_twice
    H07 H10  applier/test_killed_parts.py::test_a_session_that_dies
    H08  applier/test_killed_parts.py::test_an_executor_that_is_killed

Not here, for there is nothing to break: H03 to H06 (tasks write nothing, no stream and no checkpoint: design D1), H09
(a task gets no connection; its catalog comes with it). Not tried: H11, a paused JVM (B07 pauses ours).
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_every_test_named_in_the_map_is_there() -> None:
    found, name = [], ""
    for path, test in re.findall(r"([\w/]+\.py)?::(test_\w+)", __doc__ or ""):
        name = path or name
        found += [f"{name}::{test}"] if f"def {test}" not in (TESTS / name).read_text() else []
    assert found == []
    assert set(re.findall(r"^    ([A-H])01", __doc__ or "", re.M)) == set("ABCDFGH")
