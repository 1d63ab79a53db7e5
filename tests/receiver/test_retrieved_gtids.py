"""Retrieved_Gtid_Set as events come in, in both vendors' notation."""

from __future__ import annotations

import time

from rplctl.event.format_description import parse_format_description
from rplctl.receiver.retrieved_gtids import RetrievedGtids
from tests.receiver.test_event_runs import batch, xid
from tests.source.binlogs import description, mariadb_gtid, mysql_gtid, query

FORMAT = parse_format_description(description())
UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def add(gtids: RetrievedGtids, *events: bytes) -> int:
    return gtids.add(batch(*events), 0, len(events), FORMAT)


def done(*numbers: int) -> list[bytes]:
    """Whole transactions of MySQL."""
    return [event for number in numbers for event in (mysql_gtid(number, 0), query("BEGIN", 0), xid(0))]


def test_a_gtid_counts_when_the_end_of_its_transaction_is_here_also_in_a_later_batch() -> None:
    gtids = RetrievedGtids(f"{UUID}:1", is_mariadb=False)
    add(gtids, *done(2), mysql_gtid(3, 0), query("BEGIN", 0))
    assert (gtids.text, gtids.open_since) == (f"{UUID}:1-2", 1700000000)
    add(gtids, query("INSERT INTO t VALUES (1)", 0))
    assert (gtids.text, gtids.open_since) == (f"{UUID}:1-2", 1700000000)
    add(gtids, xid(0), mysql_gtid(4, 0))
    assert (gtids.text, gtids.open_since) == (f"{UUID}:1-3", 1700000000)
    add(gtids, query("CREATE TABLE t (a INT)", 0))
    assert (gtids.text, gtids.open_since) == (f"{UUID}:1-4", 0)


def test_a_transaction_that_the_source_left_without_an_end_never_counts() -> None:
    gtids = RetrievedGtids("0-9-1", is_mariadb=True)
    add(gtids, mariadb_gtid(0, 2, 0, standalone=False))
    gtids.cut()
    add(gtids, mariadb_gtid(1, 5, 0, standalone=False), xid(0))
    assert (gtids.text, gtids.open_since) == ("0-9-1,1-4711-5", 0)


def test_consecutive_numbers_make_one_interval() -> None:
    gtids = RetrievedGtids("", is_mariadb=False)
    assert add(gtids, *done(1, 2, 3, 7)) > 0
    assert gtids.text == f"{UUID}:1-3:7"
    add(gtids, *done(4, 5, 6))
    assert gtids.text == f"{UUID}:1-7"


def test_what_recovery_found_is_kept() -> None:
    gtids = RetrievedGtids(f"{UUID}:1-4", is_mariadb=False)
    add(gtids, *done(5))
    assert gtids.text == f"{UUID}:1-5"


def test_mariadb_shows_the_last_of_each_domain() -> None:
    gtids = RetrievedGtids("2-9-9", is_mariadb=True)
    add(gtids, mariadb_gtid(0, 1, 0), mariadb_gtid(0, 2, 0), mariadb_gtid(1, 8, 0), mariadb_gtid(0, 3, 0), xid(0))
    assert gtids.text == "0-4711-3,1-4711-8,2-9-9"


def test_events_without_gtids_change_nothing() -> None:
    gtids = RetrievedGtids("", is_mariadb=True)
    assert add(gtids, xid(1), xid(2)) == 2
    assert gtids.text == ""


def test_a_hundred_thousand_domains_at_once_are_noted_in_seconds() -> None:
    """Each copy of the state is as long as all that is known: one for each domain took minutes, and no signal."""
    many = 100_000
    gtids = RetrievedGtids("", is_mariadb=True)
    begin = time.process_time()
    add(gtids, *(mariadb_gtid(domain, 7, 0) for domain in range(many)), xid(0))
    assert gtids.text.count(",") == many - 1 and gtids.text.startswith("0-4711-7,1-4711-7,")
    assert time.process_time() - begin < 120
