"""The rules of the initial copy in a model: with all of them no life goes wrong, and each is missed when left out.

`SEEDS=17 pytest tests/clone/test_rules.py` replays seed 17, `SEEDS=0-100000` runs that many.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.clone.model import ALL_RULES, Ladder, Wrong, run
from tests.kit.torture_page import count_torture

pytestmark = pytest.mark.slow

IN_THE_SUITE, TORTURE, LOOKED_AT = 500, 100_000, 1500


def asked_seeds() -> range:
    first, _, last = os.environ.get("SEEDS", f"0-{IN_THE_SUITE - 1}").partition("-")
    return range(int(first), int(last or first) + 1)


def live(seed: int) -> None:
    try:
        run(seed)
        run(seed, whole=True)
    except Wrong as error:
        error.add_note(f"replay: SEEDS={seed} pytest {__file__}")
        raise


@pytest.mark.long("tests/command/test_clone.py copies a real source while it changes; this is its model.")
def test_a_copy_made_by_all_rules_is_the_source_where_it_becomes_strict_and_at_the_end() -> None:
    for seed in asked_seeds():
        live(seed)


@pytest.mark.torture
def test_a_copy_made_by_all_rules_is_the_source_for_as_many_seeds_as_a_night_allows() -> None:
    for seed in range(IN_THE_SUITE, TORTURE):
        live(seed)
        count_torture("clone model", "seed", 0)


@pytest.mark.parametrize("ladder", ["exact", "window", "locked"])
def test_a_load_that_overwrites_rows_is_as_right(ladder: Ladder) -> None:
    """The applier's later images decide; R4 leaves rows alone because that is cheaper and fires no cascade."""
    for seed in range(60):
        run(seed, replace(ALL_RULES, inserts_missing_only=False), ladder=ladder)


@pytest.mark.parametrize(
    ("left_out", "table_groups", "ladder"),
    [
        (("waits_until_visible", "checks_low"), "s", None),
        (("low_is_visible",), "s", "window"),
        (("holds_applier", "checks_low"), "s", None),
        (("checks_low",), "pc", None),
        (("checks_epoch",), "s", None),
        (("replaces_missing",), "s", None),
        (("unique_after",), "s", None),
        (("waits_for_high",), "s", "window"),
        (("compares_definition",), "s", None),
        (("distrusts_early_chunks",), "s", None),
        (("rename_begins_again",), "s", None),
        (("parents_first",), "pc", None),
        (("children_follow",), "pc", None),
        (("cycles_in_snapshot",), "r", None),
        (("partial_in_snapshot",), "m", None),
        (("snapshot_waits",), "m", None),
        (("snapshot_sees_parents",), "pc", "window"),
    ],
)
def test_a_rule_that_is_left_out_is_missed(left_out: tuple[str, ...], table_groups: str, ladder: Ladder | None) -> None:
    rules = replace(ALL_RULES, **dict.fromkeys(left_out, False))
    with pytest.raises(Wrong):
        for seed in range(LOOKED_AT):
            run(seed, rules, table_groups, ladder)


@pytest.mark.long("One rule stays; each is missed by the same comparison.", keeps=r"^left_out3-")
@pytest.mark.parametrize(
    ("left_out", "table_groups", "ladder"),
    [
        (("waits_until_visible", "checks_low"), "s", "exact"),
        (("low_is_visible",), "s", "window"),
        (("looks_into_window",), "s", "window"),
        (("snapshot_sees_parents",), "pc", "window"),
        (("parents_first",), "pc", "exact"),
        (("holds_applier", "checks_low"), "m", "exact"),
        (("checks_low",), "s", "exact"),
        (("checks_epoch",), "s", "exact"),
        (("snapshot_waits",), "s", "exact"),
        (("watches_names",), "s", "exact"),
        (("watches_what_is_away",), "s", "exact"),
        (("draws_in",), "s", "exact"),
        (("takes_before_keys",), "s", "exact"),
        (("takes_after_keys",), "s", "exact"),
        (("files_before_patch",), "s", "exact"),
        (("patch_before_claim",), "s", "exact"),
        (("patch_of_what_is_read",), "s", "exact"),
        (("begins_again_after_ddl",), "s", "window"),
        (("begins_again_of_children",), "r", "exact"),
    ],
)
def test_a_rule_of_whole_tables_that_is_left_out_is_missed(
    left_out: tuple[str, ...], table_groups: str, ladder: Ladder
) -> None:
    rules = replace(ALL_RULES, **dict.fromkeys(left_out, False))
    with pytest.raises((Wrong, KeyError)):
        for seed in range(LOOKED_AT):
            run(seed, rules, table_groups, ladder, whole=True)
