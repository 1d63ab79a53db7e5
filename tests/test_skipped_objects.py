"""The set of skipped objects: whole after a crash at any byte, small however often an object comes and goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.history import read_history
from rplctl.skipped_objects import SkippedObjects, in_words


def noted(folder: Path) -> int:
    return sum(event.Event == "not-carried-out" for event in read_history(folder))


def test_a_statement_that_comes_again_after_a_crash_counts_once(tmp_path: Path) -> None:
    for _ in range(2):
        objects = SkippedObjects(Channel("c", tmp_path))
        objects.note("trigger", [("d", "t")], is_drop=False, text="CREATE TRIGGER t")
    assert (in_words(objects.read()), noted(tmp_path)) == ("1 trigger", 1)
    objects.note("trigger", [("d", "other")], is_drop=True, text="DROP TRIGGER IF EXISTS other")
    assert (in_words(objects.read()), noted(tmp_path)) == ("1 trigger", 1)


def test_a_torn_line_costs_only_itself(tmp_path: Path) -> None:
    objects = SkippedObjects(channel := Channel("", tmp_path))
    objects.add([("view", "d", "first")])
    whole = channel.skipped_objects_path.read_bytes()
    for length in range(len(whole)):
        channel.skipped_objects_path.write_bytes(whole[:length])
        objects.add([("view", "d", "second\n\u2028")])
        assert ("view", "d", "second\n\u2028") in objects.read() and len(objects.read()) <= 2


@pytest.mark.long("An object that comes and goes for ever is rare.")
def test_an_object_that_comes_and_goes_does_not_fill_the_disk(tmp_path: Path) -> None:
    objects = SkippedObjects(channel := Channel("", tmp_path))
    objects.add([("event", "d", "stays"), ("event", "gone", "e")])
    objects.forget("gone")
    for _ in range(700):
        for is_drop in (False, True):
            objects.note("event", [("d", "e")], is_drop=is_drop, text="e")
    assert objects.read() == {("event", "d", "stays")}
    assert channel.skipped_objects_path.read_bytes().count(b"{") < 1100
    objects.clear()
    assert objects.read() == set()
