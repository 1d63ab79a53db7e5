"""The log of `crash-test`: a state for every transaction, a range for every kind, digests that tell rows apart."""

from __future__ import annotations

from rplctl.command.selftest.crash_run import recorded
from rplctl.demo.crash_log import KINDS, digest_of, states


def test_every_transaction_of_the_log_has_its_state_at_its_end() -> None:
    ends = [position for position, _ in recorded()]
    assert [f"{state.log_name}:{state.log_pos}" for state in states()] == ends


def test_every_kind_has_its_groups_and_each_changes_what_the_tables_hold() -> None:
    found = states()
    assert {state.kind for state in found} == {"", *KINDS}
    digests = [state.digest for state in found]
    assert len(set(digests)) == len(digests)


def test_a_digest_knows_rows_and_their_number_but_not_their_order() -> None:
    one = digest_of({"probe": [(1, "a"), (2, None)], "keyless": []})
    assert one == digest_of({"keyless": [], "probe": [(2, None), (1, "a")]})
    others: list[list[tuple[object, ...]]] = [[(1, "a")], [(1, "a"), (2, "")], [(1, "a"), (2, None), (2, None)]]
    assert one not in [digest_of({"probe": rows, "keyless": []}) for rows in others]
