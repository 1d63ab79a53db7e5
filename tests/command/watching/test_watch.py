"""Looking again and again: points five seconds apart, rates between them, channels that come and go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.cli import run
from rplctl.command.watching import watch as module
from rplctl.command.watching.document import document
from rplctl.command.watching.seen import Seen, seen, state_of
from rplctl.command.watching.watch import Watch
from rplctl.config import Config, load_config
from rplctl.errors import RplError


@pytest.fixture
def config(tmp_path: Path) -> Config:
    for channel in ("", "east"):
        assert (
            run(["-q", "--datadir", str(tmp_path), "change-master", "--master-host", "db", "--channel", channel]) == 0
        )
    return load_config(tmp_path)


def test_a_rate_is_that_between_two_points_and_never_negative(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    first = seen(config, "")
    assert first.status
    rows = iter([(0.0, 100), (2.0, 150), (5.0, 400), (10.0, 30)])  # the applier was started again at the end

    def looked(_: Config, channel: str) -> Seen:
        after, count = next(rows)
        assert first.status
        return replace(first, at=first.at + after, status=replace(first.status, Row_Changes_Applied=count))

    monkeypatch.setattr(module, "seen", looked)
    watch = Watch(lambda: [("", config)])
    for _ in range(4):
        watch.look()
    assert [(p.at - first.at, p.rows_per_s) for p in watch.latest.history[""]] == [(0.0, 0.0), (5.0, 60.0), (10.0, 0.0)]


def test_channels_come_and_go_and_what_cannot_be_found_is_said(config: Config) -> None:
    named = [("", config), ("east", config)]
    is_there = True

    def find() -> list[tuple[str, Config]]:
        if not is_there:
            raise RplError("no folder", hint="rplctl init")
        return named

    watch = Watch(find, checks=True)
    watch.look()
    assert [each.channel for each in watch.latest.channels] == ["", "east"] == list(watch.latest.verdicts)
    assert all(each.threads and state_of(each.threads.applier) == "stopped" for each in watch.latest.channels)
    del named[1]
    watch.look()
    assert [each.channel for each in watch.latest.channels] == [""]
    is_there = False
    watch.look()
    told = document(watch.latest, "0")
    assert told["error"] == {"text": "no folder", "hint": "rplctl init"} and told["channels"] == []


def test_while_it_runs_there_is_always_a_moment(config: Config) -> None:
    with Watch(lambda: [("", config)]).running() as watch:
        assert watch.latest.at
