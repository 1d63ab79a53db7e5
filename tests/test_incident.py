"""A trouble is told once, however often the thread tries or is started again, and told to be gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.durable import private_folder
from rplctl.errors import SourceError, TargetError
from rplctl.history import read_history
from rplctl.incident import Incident
from rplctl.status import ThreadStatus

AWAY = SourceError("error connecting to master, attempt 1", errno=2003, transient=True)
DUPLICATE = TargetError("Duplicate entry '1'", errno=1062, position="b.000001:4")


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    private_folder(Channel("c", tmp_path).run_folder)
    return Channel("c", tmp_path)


def begun(channel: Channel, before: ThreadStatus | None = None) -> Incident:
    incident = Incident(channel, "applier", None)
    incident.begins(before or ThreadStatus())
    return incident


def told(channel: Channel) -> list[tuple[str, int, str]]:
    return [(event.Event, event.Errno, event.Info) for event in read_history(channel.datadir)]


def test_an_error_is_told_once_and_again_when_it_is_another_or_was_gone(channel: Channel) -> None:
    for number in range(3):  # as cron does
        begun(channel).ends(TargetError(f"Duplicate entry '{number}'", errno=1062), ThreadStatus(last_errno=1062), "x")
    assert told(channel) == [("error", 1062, "stopped: Duplicate entry '0'")]
    begun(channel).ends(TargetError("no such row", errno=1032), ThreadStatus(last_errno=1032), "")
    begun(channel).gone()
    begun(channel).gone()
    begun(channel).ends(DUPLICATE, ThreadStatus(last_errno=1062), "")
    assert [event for event, _, _ in told(channel)] == ["error", "error", "well", "error"]
    assert told(channel)[2] == ("well", 0, "after 0 s: no such row")
    assert [*read_history(channel.datadir)][3].Position == "b.000001:4"


def test_attempts_are_one_trouble_and_their_end_is_told(channel: Channel) -> None:
    incident = begun(channel)
    for _ in range(3):
        incident.lasts(AWAY, ThreadStatus(last_errno=2003))
    incident.ends(AWAY, ThreadStatus(last_errno=2003), "")
    assert [info for _, _, info in told(channel)] == [AWAY.message, f"stopped: {AWAY.message}"]


def test_a_thread_that_was_killed_is_told_by_its_successor(channel: Channel) -> None:
    begun(channel, ThreadStatus(state="Reading", updated=0))
    ((event, _, info),) = told(channel)
    assert event == "killed" and "1970-01-01T00:00:00Z" in info


@pytest.mark.parametrize("junk", [b"", b"[1]", b'{"since": "x"}', b'{"errno": 1}', b"\xff"])
def test_a_damaged_file_is_as_none(channel: Channel, junk: bytes) -> None:
    channel.incident_path("applier").write_bytes(junk)
    assert not begun(channel).is_known
