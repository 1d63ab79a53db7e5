"""What the two ends of a copy leave for each other: claims in the log's order, and nothing without its claim."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rplctl.channel import Channel
from rplctl.clone.chunk_file import SnapshotPosition
from rplctl.clone.folder import CloneFolder, CopiedTable, Part, StoredSnapshot
from rplctl.clone.throttle import read_limits
from rplctl.errors import RelayLogError
from rplctl.plain_file import UnfitFile
from rplctl.schema.dump import load_catalog
from rplctl.schema.plan import DatabaseModel

CREATE = "CREATE TABLE `t` (`id` int NOT NULL, PRIMARY KEY (`id`))"


def copied() -> CopiedTable:
    return CopiedTable(load_catalog(CREATE, "d").tables["d", "t"], DatabaseModel(name="d", charset="latin1"), CREATE)


def claimed(folder: CloneFolder, family: int, low: SnapshotPosition, *tables: CopiedTable) -> StoredSnapshot:
    begun = folder.begin(family, 10 + family, low, list(tables))
    assert begun not in folder.snapshots()
    begun.claim()
    return begun


def test_snapshots_are_seen_in_the_order_of_the_log_as_they_were_claimed(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")], 2: [("d", "u")]})
    assert folder.read_plan() == {1: [("d", "t")], 2: [("d", "u")]}
    later = claimed(folder, 1, SnapshotPosition("log.000010:4", "0-1-9"), copied())
    sooner = claimed(folder, 2, SnapshotPosition("log.000009:999"))
    assert folder.snapshots() == [sooner, later]
    assert later.chunk_counts() is None
    later.complete([3])
    assert folder.snapshots()[1].chunk_counts() == [3]


def test_without_its_claim_a_snapshot_is_nothing(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    found = claimed(folder, 1, SnapshotPosition("log.000010:4"), copied())
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
    whole = claimed(folder, 1, SnapshotPosition("log.000010:4"), copied())
    whole.complete([0])
    half = claimed(folder, 2, SnapshotPosition("log.000011:4"), copied())
    assert half.parts() == []
    half.tell_read([Part(count=2, upto=("'7'",), rows=80)])
    folder.begin(3, 13, SnapshotPosition("log.000012:4"), [copied()]).complete([0])
    folder.sweep()
    assert folder.snapshots() == [whole, half] and len(list(folder.path.glob("*/"))) == 2
    assert (folder.unfinished(1), folder.unfinished(2), folder.unfinished(3)) == (None, half, None)
    assert (
        half.parts() == [Part(count=2, upto=("'7'",), rows=80)]
        and not half.parts()[0].is_whole
        and Part(count=2).is_whole
    )
    heir = replace(folder.begin(2, 14, SnapshotPosition("log.000013:4"), [copied()]), continues=half.epoch, counts=(2,))
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
    claim = claimed(folder, 1, SnapshotPosition("log.000010:4"), copied()).folder / "claim.json"
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
    found = claimed(folder, 1, SnapshotPosition("log.000010:4"), copied())
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


_ODD: tuple[object, ...] = (
    None,
    -1,
    1 << 70,
    "x",
    [],
    [[]],
    {},
    [None],
    [{"a": 1}],
    [["x", 1, 2]],
    [[1, [2], 3]],
    True,
)


def _changed(content: object) -> Iterator[object]:
    """The content with one value, at any depth, in another form."""
    yield from _ODD
    inside: Iterable[tuple[Any, object]] = ()
    if isinstance(content, dict):
        inside = content.items()
    elif isinstance(content, list):
        inside = enumerate(content)
    for key, value in inside:
        for odd in _changed(value):
            other: Any = dict(content) if isinstance(content, dict) else list(cast("list[object]", content))
            other[key] = odd
            yield other


def test_a_tampered_file_of_the_folder_is_no_snapshot_or_an_error_that_names_it(tmp_path: Path) -> None:
    folder = CloneFolder(Channel("", tmp_path))
    folder.write_plan({1: [("d", "t")]})
    found = replace(claimed(folder, 1, SnapshotPosition("log.000010:4", "0-1-9"), copied()), counts=(2,))
    found.claim()
    found.complete([2])
    found.tell_read([Part(count=2, upto=("'7'",), rows=80)])
    refused = 0
    for name, look in (
        ("claim.json", folder.snapshots),
        ("complete.json", found.chunk_counts),
        ("read.json", found.parts),
        ("../plan.json", folder.read_plan),
    ):
        path = found.folder / name
        whole = path.read_bytes()
        cut = [whole[:at] for at in range(len(whole))]
        flipped = [whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :] for at in range(len(whole))]
        for data in (*cut, *flipped, *(json.dumps(content).encode() for content in _changed(json.loads(whole)))):
            path.write_bytes(data)
            try:
                cast("Callable[[], object]", look)()
            except RelayLogError as error:
                assert str(path.resolve()) in error.message and "rplctl clone" in error.hint
                refused += 1
        path.write_bytes(whole)
    assert refused > 100
