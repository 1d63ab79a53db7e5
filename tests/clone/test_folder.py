"""What the two ends of a copy leave for each other: claims in the log's order, and nothing without its claim."""

from __future__ import annotations

from pathlib import Path

from rplctl.channel import Channel
from rplctl.clone.chunk_file import Place
from rplctl.clone.folder import CloneFolder, CopiedTable
from rplctl.schema.dump import load_catalog
from rplctl.schema.plan import DatabaseModel

CREATE = "CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`))"


def copied() -> CopiedTable:
    return CopiedTable(load_catalog(CREATE, "d").tables["d", "t"], DatabaseModel("d", "latin1"), CREATE)


def test_snapshots_are_seen_in_the_order_of_the_log_as_they_were_claimed(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")], 2: [("d", "u")]})
    assert folder.read_plan() == {1: [("d", "t")], 2: [("d", "u")]}
    later = folder.claim(1, 11, Place("log.000010:4", "0-1-9"), [copied()])
    sooner = folder.claim(2, 12, Place("log.000009:999"), [])
    assert folder.snapshots() == [sooner, later]
    assert later.chunk_counts() is None
    later.complete([3])
    assert folder.snapshots()[1].chunk_counts() == [3]


def test_without_its_claim_a_snapshot_is_nothing(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    found = folder.claim(1, 11, Place("log.000010:4"), [copied()])
    found.chunk_path(0, 0).write_bytes(b"12345")
    assert (folder.size(), found.is_claimed) == (5, True)
    found.remove()
    assert (folder.snapshots(), folder.size(), found.is_claimed) == ([], 0, False)
    folder.write_plan({})
    assert not folder.path.exists() and folder.read_plan() == {}


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
    claim = folder.claim(1, 11, Place("log.000010:4"), [copied()]).folder / "claim.json"
    plan = folder.path / "plan.json"
    for path in (claim, plan):
        whole = path.read_bytes()
        for size in range(len(whole)):
            path.write_bytes(whole[:size])
            assert (folder.snapshots() if path == claim else folder.read_plan()) in ([], {})
        path.write_bytes(whole)
    assert folder.read_plan() and len(folder.snapshots()) == 1
