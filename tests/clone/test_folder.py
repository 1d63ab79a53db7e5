"""What the two ends of a copy leave for each other: claims in the log's order, and nothing without its claim."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.clone.chunk_file import Place
from rplctl.clone.folder import CloneFolder, CopiedTable, Part, Snapshot
from rplctl.clone.throttle import read_limits
from rplctl.plain_file import UnfitFile
from rplctl.schema.dump import load_catalog
from rplctl.schema.plan import DatabaseModel

CREATE = "CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`))"


def copied() -> CopiedTable:
    return CopiedTable(load_catalog(CREATE, "d").tables["d", "t"], DatabaseModel("d", "latin1"), CREATE)


def claimed(folder: CloneFolder, family: int, low: Place, *tables: CopiedTable) -> Snapshot:
    begun = folder.begin(family, 10 + family, low, list(tables))
    assert begun not in folder.snapshots()
    begun.claim()
    return begun


def test_snapshots_are_seen_in_the_order_of_the_log_as_they_were_claimed(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")], 2: [("d", "u")]})
    assert folder.read_plan() == {1: [("d", "t")], 2: [("d", "u")]}
    later = claimed(folder, 1, Place("log.000010:4", "0-1-9"), copied())
    sooner = claimed(folder, 2, Place("log.000009:999"))
    assert folder.snapshots() == [sooner, later]
    assert later.chunk_counts() is None
    later.complete([3])
    assert folder.snapshots()[1].chunk_counts() == [3]


def test_without_its_claim_a_snapshot_is_nothing(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    found = claimed(folder, 1, Place("log.000010:4"), copied())
    found.chunk_path(0, 0).write_bytes(b"12345")
    assert (folder.size(), found.is_claimed) == (5, True)
    found.remove()
    assert (folder.snapshots(), folder.size(), found.is_claimed) == ([], 0, False)
    folder.write_plan({})
    assert not folder.path.exists() and folder.read_plan() == {}


def test_what_was_not_claimed_goes_with_its_reader_and_what_was_not_read_to_its_end_is_gone_on_with(
    tmp_path: Path,
) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    whole = claimed(folder, 1, Place("log.000010:4"), copied())
    whole.complete([0])
    half = claimed(folder, 2, Place("log.000011:4"), copied())
    assert half.parts() == []
    half.tell_read([Part(2, ("'7'",), 80)])
    folder.begin(3, 13, Place("log.000012:4"), [copied()]).complete([0])
    folder.sweep()
    assert folder.snapshots() == [whole, half] and len(list(folder.path.glob("*/"))) == 2
    assert (folder.unfinished(1), folder.unfinished(2), folder.unfinished(3)) == (None, half, None)
    assert half.parts() == [Part(2, ("'7'",), 80)] and not half.parts()[0].is_whole and Part(2).is_whole
    heir = replace(folder.begin(2, 14, Place("log.000013:4"), [copied()]), continues=half.epoch, counts=(2,))
    heir.claim()
    assert folder.unfinished(2) == heir and heir.keeps(0) and not half.keeps(0)
    folder.forget_unfinished(2)
    assert folder.snapshots() == [whole]


def test_the_applier_stands_still_for_a_while_only(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    seen = [folder.is_held]
    folder.hold()
    seen.append(folder.is_held)
    folder.let_go()
    assert [*seen, folder.is_held] == [False, True, False]


def test_a_claim_or_a_plan_that_is_cut_at_any_byte_is_none(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    claim = claimed(folder, 1, Place("log.000010:4"), copied()).folder / "claim.json"
    plan = folder.path / "plan.json"
    for path in (claim, plan):
        whole = path.read_bytes()
        for size in range(len(whole)):
            path.write_bytes(whole[:size])
            assert (folder.snapshots() if path == claim else folder.read_plan()) in ([], {})
        path.write_bytes(whole)
    for junk in (b"[]", b"7", b'{"1": 2}', b'{"x": [["d", "t"]]}'):
        plan.write_bytes(junk)
        assert folder.read_plan() == {}
    plan.write_bytes(json.dumps({1: [("d", "t")]}).encode())
    assert folder.read_plan() and len(folder.snapshots()) == 1


def test_a_fifo_in_a_file_s_place_is_told_and_never_waited_for(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    folder = CloneFolder(channel)
    folder.write_plan({1: [("d", "t")]})
    found = claimed(folder, 1, Place("log.000010:4"), copied())
    for path, read in (
        (channel.clone_plan, folder.read_plan),
        (found.folder / "claim.json", folder.snapshots),
        (found.folder / "complete.json", found.chunk_counts),
        (channel.clone_orders_path, lambda: read_limits(channel)),
    ):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        with pytest.raises(UnfitFile, match="a FIFO"):
            read()
        path.unlink()
