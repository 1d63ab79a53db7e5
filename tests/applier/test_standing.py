"""An applier that stands where the next rows of a copy belong: events behind that place are not looked at meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.applier import copying
from rplctl.applier.apply import clone_load
from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions, Until
from rplctl.channel import Channel
from rplctl.config import Config
from tests.applier.test_job import channel
from tests.kit.no_spark import without_spark

__all__ = ["channel", "without_spark"]
HERE = Until(kind="relay_pos", log_name="relay-bin.000002", log_pos=4)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(("stands", "until", "reads"), [(True, Until(), 0), (False, Until(), 3), (True, HERE, 3)])
def test_no_event_is_read_while_rows_come_next_unless_until_may_end_there(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, stands: bool, until: Until, reads: int
) -> None:
    """Each of them cost a look at all that was logged behind the place."""
    looked: list[int] = []
    applier = Applier(Config(datadir=channel.datadir, spark="auto"), channel, StartOptions(until=until))
    steps = iter(range(3))

    def step() -> bool:
        if next(steps) == 2:
            applier.stop.set()
        return False

    counted = {"rows_by_spark": 0, "rows_by_driver": 0}
    clone: Any = SimpleNamespace(
        is_open=True, stands=stands, until=HERE, step=step, status=dict, close=lambda: None, **counted
    )
    monkeypatch.setattr(copying, "is_copying", lambda *_: True)
    monkeypatch.setattr(clone_load, "CloneLoader", lambda *_, **__: clone)
    monkeypatch.setattr(RelayFeed, "next", lambda *_: looked.append(1))
    applier.run()
    assert (next(steps, None), len(looked)) == (None, reads)
