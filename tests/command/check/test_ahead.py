"""What `check` foresees: bounds, levels, and sentences that say how long it takes."""

from __future__ import annotations

import pytest

from rplctl.command.check.ahead import judge_purge, judge_skew, rough


@pytest.mark.parametrize(
    ("left", "keeps", "code"),
    [
        (7 * 3600, 30 * 86400, None), (5 * 3600, 30 * 86400, "source_purges_soon"),
        (1800, 30 * 86400, "source_purges_now"), (0, 0, "source_purges_now"),
        (3000, 3600, None), (1700, 3600, "source_purges_soon"), (800, 3600, "source_purges_now"),
    ],
)  # fmt: skip
def test_how_near_a_purge_is(left: float, keeps: float, code: str | None) -> None:
    assert [finding.code for finding in judge_purge(left, "b.000003", keeps)] == ([code] if code else [])


def test_it_says_which_log_goes_when() -> None:
    (finding,) = judge_purge(3 * 3600, "b.000003", 86400)
    assert "b.000003, which is read next, in about 3 h; it keeps its logs for 24 h" in finding.text


def test_clocks_that_differ_are_told_beyond_what_the_measurement_can_be_wrong_by() -> None:
    assert not [*judge_skew(None, None), *judge_skew(0.9, 0.0), *judge_skew(-1.4, 0.5)]
    (ahead,), (behind,) = judge_skew(4.0, 0.1), judge_skew(-4.0, None)
    assert "4.0 s ahead of ours (measured within 0.100 s)" in ahead.text and "behind" in behind.text


def test_durations_are_rough() -> None:
    assert [rough(s) for s in (3, 90, 2400, 3 * 3600, 86400, 10 * 86400)] == [
        "3 s", "2 min", "40 min", "3 h", "24 h", "10 d"
    ]  # fmt: skip
