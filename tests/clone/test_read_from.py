"""Where in the source's log the rows of a replica's snapshot are: by the GTIDs that it shows, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.clone.read_from import ShownEnd, refuse_foreign, with_address
from rplctl.errors import SourceError, UsageError
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from tests.clone.test_received import OTHER, OURS, Log, gtid
from tests.relay_log.stream import SOURCE_UUID

INFO = MasterInfo(host="src", port=3310, user_name="repl")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def found(log: Log, surely: str, shown: str, tables: frozenset[tuple[str, str]] = OURS) -> ShownEnd:
    """In all that the log has."""
    begin = log.received.position
    end = ShownEnd(f"{SOURCE_UUID}:{surely}", f"{SOURCE_UUID}:{shown}", begin, tables, tables)
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


@pytest.mark.parametrize(
    ("there", "source", "foreign"),
    [
        ("0-1-5,1-1-2", "0-1-7,1-1-2", ""),
        ("0-1-8", "0-1-7", "0-1-8"),
        ("0-2-7", "0-1-7", "0-2-7"),  # the last number of a domain is one server's only
        ("0-1-1,9-2-1", "0-1-1", "9-2-1"),
        (f"{SOURCE_UUID}:1-5", f"{SOURCE_UUID}:1-9", ""),
        (f"{SOURCE_UUID}:1-11", f"{SOURCE_UUID}:1-9", f"{SOURCE_UUID}:10-11"),
        ("", "0-1-1", ""),
    ],
)
def test_what_the_source_has_not_is_named(there: str, source: str, foreign: str) -> None:
    if not foreign:
        return refuse_foreign(there, source, "r:1")
    with pytest.raises(SourceError, match=f"r:1 has transactions that the source has not: {foreign}$"):
        refuse_foreign(there, source, "r:1")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("r", "r", 3310), ("r:7", "r", 7), ("[::1]:7", "::1", 7), ("[::1]", "::1", 3310), ("::1", "::1", 3310)],
)
def test_the_port_is_the_channels_where_none_is_given(text: str, host: str, port: int) -> None:
    read = with_address(INFO, text)
    assert (read.host, read.port, read.user_name) == (host, port, "repl")


@pytest.mark.parametrize("text", ["u@r", "r:x", "r:0", "r:65536", "mysql://r", ":3306"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write HOST or HOST:PORT"):
        with_address(INFO, text)
