"""What a task gets that does not see the relay log is what lies there; a changed archive is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.applier.spark.carried import Archived, Piece, archived, as_file, carried, table_maps
from rplctl.applier.spark.cluster import Cluster
from rplctl.applier.spark.in_process import InProcessPipeline
from rplctl.applier.spark.split_task import Split
from rplctl.event.format_description import parse_format_description
from rplctl.event.types import EventType
from rplctl.position import BinlogPosition
from rplctl.schema.plan import Catalog
from tests.event.logs import events, log

DATA = log("ma1011-torture-row")
AHEAD = 500  # bytes that the relay log has, and the source's log had not


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A relay log, and the folder of the archive."""
    relay, archive = tmp_path / "relay-bin.000002", tmp_path / "archive"
    archive.mkdir()
    relay.write_bytes(bytes(AHEAD) + DATA)
    (archive / "mysql-bin.000001").write_bytes(DATA)
    return relay, archive


def in_archive(places: tuple[Path, Path], start: int = 1000, end: int = 9000) -> Archived:
    relay, archive = places
    found = archived(str(relay), start, end, archive, BinlogPosition("mysql-bin.000001", start - AHEAD))
    assert found is not None
    return found


def test_the_archive_has_the_same_bytes_as_the_relay_log(places: tuple[Path, Path]) -> None:
    brought = carried(str(places[0]), 1000, 9000)
    assert brought == DATA[500:8500]
    for piece in (brought, in_archive(places)):
        found = as_file([(1000, piece)], 9000)
        assert found is not None and found[1000:9000].tobytes() == brought
        assert not found[:1000].any(), "nothing else"


def cut(path: Path) -> None:
    path.write_bytes(DATA[:8000])


def flipped(path: Path) -> None:
    path.write_bytes(DATA[:7000] + bytes([DATA[7000] ^ 1]) + DATA[7001:])


def shifted(path: Path) -> None:
    path.write_bytes(DATA[:4] + b"!" + DATA[4:])


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [cut, flipped, shifted, a_folder, Path.unlink])
def test_an_archive_that_is_not_what_the_relay_log_was_made_of_does_not_count(
    places: tuple[Path, Path], change: Callable[[Path], object]
) -> None:
    piece = in_archive(places)
    change(places[1] / "mysql-bin.000001")
    assert piece.read() is None
    assert as_file([(1000, piece)], 9000) is None


@pytest.mark.parametrize("name", ["", "../mysql-bin", "no-number"])
def test_what_is_no_name_of_a_log_is_looked_for_nowhere(places: tuple[Path, Path], name: str) -> None:
    assert archived(str(places[0]), 1000, 9000, places[1], BinlogPosition(name, 500)) is None


def test_table_maps_that_stand_before_the_split_come_with_it(places: tuple[Path, Path]) -> None:
    at, offsets = AHEAD + 4, []
    for event in events(DATA):
        if event[4] == EventType.TABLE_MAP:
            offsets.append((at, event))
        at += len(event)
    start = offsets[2][0]
    maps: tuple[Piece, ...] = table_maps(str(places[0]), [at for at, _ in offsets[:4]], start)
    assert maps == tuple(offsets[:2])


class NoneSeesOurs(InProcessPipeline):
    """On executors of which none sees our files."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster = cluster


def test_splits_that_the_archive_has_not_are_carried_and_an_archive_nobody_sees_is_asked_once(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    relay, archive = places
    cluster = Cluster(tmp_path, {}, print, archive)
    cluster.carries = True
    pipeline = NoneSeesOurs(cluster)
    first = next(events(DATA))
    split = Split(
        path=str(relay),
        start=AHEAD + 4,
        end=AHEAD + 4 + len(first),
        table_maps=(),
        description=parse_format_description(first),
        spool_folder="",
    )
    known = replace(split, source=BinlogPosition("mysql-bin.000001", 4))
    other = replace(split, source=BinlogPosition("mysql-bin.000009", 4))

    def jobs(*splits: Split) -> tuple[int, bool]:
        before = pipeline.jobs
        pipeline.decode(splits, Catalog())
        return pipeline.jobs - before, cluster.archive is not None

    assert jobs(known, known) == (1, True)
    assert jobs(known, other) == (2, True)
    assert jobs(other, other) == (2, False)
    assert jobs(known, other) == (1, False)
