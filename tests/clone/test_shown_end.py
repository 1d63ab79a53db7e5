"""Where in the source's log the rows of a replica's snapshot are: by the GTIDs that it shows, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.clone.shown_end import ShownEnd
from rplctl.position import BinlogPosition
from tests.relay_log.stream import SOURCE_UUID
from tests.relay_log.test_received import OTHER, OURS, Log, gtid


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def found(log: Log, surely: str, shown: str, tables: frozenset[tuple[str, str]] = OURS) -> ShownEnd:
    """In all that the log has."""
    begin = log.received.position
    end = ShownEnd(
        surely=f"{SOURCE_UUID}:{surely}", shown=f"{SOURCE_UUID}:{shown}", position=begin, names=tables, plain=tables
    )
    end.look(log.new())
    return end


def transactions(log: Log, count: int) -> list[BinlogPosition]:
    """Where each ends."""
    places = []
    for _ in range(count):
        log.add(log.source.transaction())
        places.append(log.source.position)
    return places


def test_it_is_behind_the_last_that_is_shown(log: Log) -> None:
    places = transactions(log, 3)
    end = found(log, "1-2", "1-2")
    assert end.fits and end.position == places[1]


def test_a_replica_that_shows_nothing_new_is_where_we_began(log: Log) -> None:
    begin = log.received.position
    log.source.sent += 5
    transactions(log, 2)
    end = found(log, "1-5", "1-5")
    assert end.fits and end.position == begin


def test_one_that_is_missing_between_those_that_are_shown_fits_nowhere(log: Log) -> None:
    transactions(log, 3)
    assert not found(log, "1:3", "1:3").fits


@pytest.mark.parametrize(("tables", "fits"), [(OURS, False), (OTHER, True)])
def test_one_that_may_be_shown_must_be_about_other_tables(
    log: Log, tables: frozenset[tuple[str, str]], fits: bool
) -> None:
    places = transactions(log, 3)
    end = found(log, "1", "1-2", tables)
    assert end.fits is fits and end.position == places[1]


def test_a_statement_behind_must_not_name_the_tables(log: Log) -> None:
    transactions(log, 1)
    log.add(gtid(log) + log.source.query("ALTER TABLE t ADD x INT"))
    assert not found(log, "1", "1").fits
