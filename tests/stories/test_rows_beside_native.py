"""The table of tests/kit/native_rows.py and native_filters.py on a native replica and on ours: equal, or explained.

The quick part compares some rows of each kind beside MariaDB. The full table runs in `make torture`, with a summary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.kit.beside import Beside
from tests.kit.native_filters import FILTERS, QUICK_FILTERS, FilterTable
from tests.kit.native_pair import Comparison, Differences, Pair, native_pair
from tests.kit.native_rows import (
    EXPLAINED,
    OF_MARIADB,
    OPTIONS,
    OPTIONS_OF_VENDOR,
    QUICK_OPTIONS,
    QUICK_SCRIPTS,
    SCRIPTS,
    STATES,
)
from tests.kit.servers import MariadbServer, MysqlServer
from tests.kit.torture_page import LINES, walk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]
Servers = tuple[MariadbServer, MariadbServer, MariadbServer]
QUICK_FORMS = ("CREATE TABLE", "CREATE DATABASE", "INSERT as row", "UPDATE", "transaction")


@pytest.fixture(scope="module")
def mariadb_servers(mariadb_factory: Callable[..., MariadbServer]) -> Servers:
    return mariadb_factory(), mariadb_factory(), mariadb_factory()


@pytest.fixture(scope="module")
def mysql_servers(mysql_factory: Callable[..., MysqlServer]) -> Servers:
    return mysql_factory(), mysql_factory(), mysql_factory()


@pytest.fixture(params=["mariadb", "mysql"])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    yield request.getfixturevalue(f"{request.param}_servers")


def options_of(vendor: str) -> dict[str, str]:
    return OPTIONS | OPTIONS_OF_VENDOR[vendor]


def begun(pair: Pair, state: str) -> None:
    """Both have the channel anew, and their threads are in this state."""
    pair.begin()
    statement, expected = STATES[state]
    if statement:
        assert pair.ask(statement) == {}
    assert pair.wait_native(expected) == ""


def compare_options(pair: Pair, comparison: Comparison, state: str, rows: Sequence[tuple[str, ...]]) -> None:
    """Each row has the channel as it was at first; it is made anew only if a statement may have changed it."""
    values = options_of(pair.vendor)
    is_new = False
    for row in rows:
        if not is_new:
            begun(pair, state)
        statement = "CHANGE MASTER TO " + ", ".join(f"{name}={values[name]}" for name in row)
        theirs, ours = pair.theirs.ask(statement), pair.ours.ask(statement)
        name = f"{state}, {', '.join(row)}"
        found: Differences = {"answer": (theirs, ours)} if theirs != ours else {}
        if not found or comparison.unexplained_of("option", name, found):  # else one of them has changed nothing
            found |= pair.resolved(comparison, "option", name)
        comparison.add("option", name, found)
        is_new = bool(theirs and ours)


def compare_script(pair: Pair, comparison: Comparison, title: str, database: str) -> None:
    kind, name = title.split(": ", 1)
    log, position = pair.begin()
    names = {"d": database, "log": log, "pos": str(position)}
    locks: list[Any] = []
    for number, (step, expected) in enumerate(SCRIPTS[title], 1):
        text = step.format(**names)
        whose, _, what = text.partition(": ")
        found: Differences = {}
        if whose == "source":
            pair.source.sql(what)
        elif whose == "replicas":
            for server in (pair.native, pair.target):
                server.sql(f"SET sql_log_bin=0; {what}")
        elif whose == "mark":
            names[what] = str(pair.source.master_status()[1])
        elif whose == "source killed":
            pair.source.kill()
        elif whose == "source again":
            pair.source.start()
        elif whose == "quiet":
            time.sleep(float(what))  # nothing may change in it: that is what is compared
        elif whose == "locked":
            locks.extend(locked(server, what) for server in (pair.native, pair.target))
        elif whose == "unlocked":
            for lock in locks:
                lock.close()
        else:
            found = pair.ask(text)
        row = f"{name}, {number}. {text[:60]}"
        if missing := pair.wait_native(expected):
            comparison.unexplained.append(f"{pair.vendor} {kind}: {row}: {missing}")
            return
        comparison.add(kind, row, found | pair.resolved(comparison, kind, row))


def locked(server: MariadbServer, statement: str) -> Any:
    """A session that holds the locks of the statement until it is closed."""
    session = server.connect()
    session.begin()
    with session.cursor() as cursor:
        cursor.execute(statement)
    return session


def test_options_verbs_and_errors_beside_mariadb_are_equal_or_explained(
    mariadb_servers: Servers, tmp_path: Path
) -> None:
    comparison = Comparison("mariadb", EXPLAINED)
    with native_pair(tmp_path, *mariadb_servers) as pair:
        compare_options(pair, comparison, "stopped", [(name,) for name in QUICK_OPTIONS])
        for title in QUICK_SCRIPTS:
            compare_script(pair, comparison, title, f"quick{QUICK_SCRIPTS.index(title)}")
    assert comparison.unexplained == []


def test_filters_beside_mariadb_are_equal_or_explained(mariadb_servers: Servers, tmp_path: Path) -> None:
    comparison = Comparison("mariadb", EXPLAINED)
    table = FilterTable(Beside(tmp_path, *mariadb_servers), QUICK_FORMS)
    for text in QUICK_FILTERS:
        table.compare(comparison, text)
    assert comparison.unexplained == []


@pytest.mark.torture
def test_every_filter_is_equal_or_explained(
    servers: Servers, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    comparison = Comparison(servers[0].kind, EXPLAINED)
    table = FilterTable(Beside(tmp_path, *servers))
    for text in FILTERS:
        table.compare(comparison, text)
    reported(comparison, record_property)


@pytest.mark.torture
@pytest.mark.parametrize("state", STATES)
def test_every_option_and_pair_of_options_is_equal_or_explained(
    servers: Servers, tmp_path: Path, state: str, record_property: Callable[[str, object], None]
) -> None:
    vendor = servers[0].kind
    comparison = Comparison(vendor, EXPLAINED)
    names = options_of(vendor)
    pairs = walk("beside native", f"{vendor}, pairs of options, {state}", list(combinations(names, 2)))
    with native_pair(tmp_path, *servers) as pair:
        compare_options(pair, comparison, state, [*((name,) for name in names), *pairs])
    reported(comparison, record_property)


@pytest.mark.torture
def test_every_verb_status_and_error_is_equal_or_explained(
    servers: Servers, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    comparison = Comparison(servers[0].kind, EXPLAINED)
    with native_pair(tmp_path, *servers) as pair:
        for number, title in enumerate(SCRIPTS):
            if pair.vendor == "mariadb" or title not in OF_MARIADB:
                compare_script(pair, comparison, title, f"s{number}")
    reported(comparison, record_property)


def reported(comparison: Comparison, record_property: Callable[[str, object], None]) -> None:
    """Put the summary on the page of `make torture`."""
    record_property(LINES, comparison.summary())
    assert comparison.unexplained == [], "\n".join(comparison.unexplained)
