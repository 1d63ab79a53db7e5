"""An applier that stands where the next rows of a copy belong: events behind that place are not looked at meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rplctl.applier.feed.relay_feed import RelayFeed
from rplctl.applier.job import Applier
from rplctl.applier.options import StartOptions, Until
from rplctl.applier.report import Report
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.info import RelayLogInfo

HERE = Until("relay_pos", "relay-bin.000002", 4)


@pytest.mark.parametrize(("stands", "until", "reads"), [(True, Until(), 0), (False, Until(), 3), (True, HERE, 3)])
def test_no_event_is_read_while_rows_come_next_unless_until_may_end_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: bool, until: Until, reads: int
) -> None:
    """Each of them cost a look at all that was logged behind the place."""
    channel, looked = Channel("", tmp_path), []
    channel.run_folder.mkdir(parents=True)
    applier = Applier(Config(datadir=tmp_path), channel, StartOptions(until))
    applier._report = Report.open(channel, until)
    steps = iter(range(3))

    def step() -> bool:
        applier._woken.set()  # as the receiver does with each event
        if next(steps) == 2:
            applier.stop.set()
        return False

    clone: Any = SimpleNamespace(is_open=True, stands=stands, until=HERE, step=step, status=dict, look=lambda: None)
    monkeypatch.setattr(Applier, "_open_clone", lambda *_: clone)
    monkeypatch.setattr(RelayFeed, "next", lambda *_: looked.append(1))
    work: Any = SimpleNamespace(
        info=RelayLogInfo(relay_log_name="relay-bin.000001", relay_log_pos=4),
        bulk=SimpleNamespace(size=SimpleNamespace(batch_bytes=1 << 20)),
    )
    target: Any = None
    applier._loop(work, target, target)
    assert len(looked) == reads
