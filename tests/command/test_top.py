"""What `top` puts first, and what it says of a channel (how it is drawn: tests/cli/test_top.py)."""

from __future__ import annotations

from rplctl.command.check.findings import Finding
from rplctl.command.check.verb import Verdict, worst_first
from rplctl.command.top import ORDERS, lines
from rplctl.command.watching.seen import Seen
from rplctl.command.watching.watch import Moment
from rplctl.errors import RplError

FINDINGS = (
    Finding(code="skip_pending", level=0, text="one is skipped", repair=""),
    Finding(code="lag_critical", level=2, text="far behind", repair="rplctl doctor"),
)


def moment(**levels: int) -> Moment:
    """Channels that cannot be read, with what check says of each."""
    error = RplError("damaged", hint="rplctl doctor")
    channels = tuple(Seen(name, 1.0, error=error) for name in levels)
    return Moment(
        1.0, channels, {name: Verdict(channel=name, level=level, text="", lag_s=None) for name, level in levels.items()}
    )


def test_the_worst_comes_first_and_unknown_is_less_bad_than_critical() -> None:
    assert sorted(range(4), key=worst_first) == [0, 1, 3, 2]
    assert [line.channel for line in lines(moment(a=0, b=2, c=3, d=1, e=2))] == ["b", "e", "c", "d", "a"]
    assert [line.channel for line in lines(moment(b=0, a=2), "name")] == ["a", "b"]


def test_each_order_takes_channels_of_which_nothing_is_known() -> None:
    for order in ORDERS:
        assert len(lines(moment(a=0, b=2), order)) == 2


def test_what_cannot_be_read_says_why_and_what_repairs_it() -> None:
    (line,) = lines(moment(a=3))
    assert (line.receiver, line.applier, line.incident) == ("unknown", "unknown", "damaged: rplctl doctor")
