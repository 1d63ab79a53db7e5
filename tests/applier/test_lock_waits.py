"""The lock that a statement waits for is a state of a running applier only."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import cast

from rplctl.applier.options import Until
from rplctl.applier.outage import lock_waits_shown
from rplctl.applier.report import READING, Report
from rplctl.channel import Channel
from rplctl.durable import private_folder
from rplctl.status import read_status
from rplctl.target.base import Target


class SlowTarget:
    """Names the lock that a statement waits for only when the test lets it."""

    def __init__(self) -> None:
        self.is_asked, self.may_answer, self.watcher = threading.Event(), threading.Event(), threading.main_thread()

    def lock_wait(self) -> str:
        self.watcher = threading.current_thread()
        self.is_asked.set()
        assert self.may_answer.wait(30)
        return "Waiting for a lock of session 7"


def test_a_lock_that_the_target_names_after_the_end_is_not_the_state_of_a_stopped_applier(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    private_folder(channel.run_folder)
    report, target = Report.open(channel, Until()), SlowTarget()
    report.state(READING)
    with lock_waits_shown(cast(Target, target), report, lambda: 4):
        assert target.is_asked.wait(30)
    target.may_answer.set()
    target.watcher.join(30)
    assert "session 7" not in read_status(channel.status_path("applier")).state
