"""Random pairs of rows and DDL of a real source: each table is equal on the target, or its statement stops.

`make test` has a few pairs of one seed. `make torture` has thousands with a seed of its own, and prints the share that
stops by reason; PAIRS is their number for each vendor and kind of target.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import BinlogFormatError
from tests.kit.ddl_pairs import Pairs
from tests.kit.ddl_rounds import Outcomes, carried_out, record
from tests.kit.postgresql_state import new_database
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import LINES, count_torture, every, run_seed

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SEED = 43
A_ROUND = 250  # pairs in one log
MOST_STOPS = 10  # reasons that the page shows
LONG = pytest.mark.long("test_random_pairs_are_equal_or_stop of SQLite and MariaDB stays; others repeat it.")
CASES = [
    pytest.param("mariadb", "sqlite", id="mariadb-sqlite"),
    *(
        pytest.param(vendor, kind, id=f"{vendor}-{kind}", marks=LONG)
        for vendor in ("mariadb", "mysql")
        for kind in ("sqlite", "postgresql", "duckdb")
        if (vendor, kind) != ("mariadb", "sqlite")
    ),
]


def options(request: pytest.FixtureRequest, kind: str, folder: Path) -> dict[str, Any]:
    """The options of an instance on a new target of the kind."""
    folder.mkdir(parents=True)
    if kind == "postgresql":
        return {"target": new_database(request.getfixturevalue("postgresql"))}
    return {"target": f"duckdb:///{folder}/target.duckdb"} if kind == "duckdb" else {}


def reason(error: Exception) -> str:
    """The text of a stop without its names and numbers."""
    return re.sub(r"'[^']*'|\S*\.t\d+|\d+", "…", str(error))[:110]


def is_other_stop(error: Exception) -> bool:
    """True if the stop is not about the DDL of the pair.

    MariaDB stores bytes that are not text in a column of the character set ascii after SET NAMES binary: no target can
    express such a row, whatever DDL precedes it.
    """
    return isinstance(error, BinlogFormatError) and str(error).startswith("Bytes that are not ")


def one_round(
    request: pytest.FixtureRequest, source: MariadbServer, kind: str, pairs: Pairs, count: int, folder: Path
) -> tuple[Outcomes, list[str]]:
    """Return what became of the pairs, and each pair that is different, with its statements."""
    recorded = record(source, pairs, count)
    found = carried_out(recorded, folder, options(request, kind, folder))
    wrong = [
        "\n".join([why, *(f"    {sql}" for sql in recorded.statements[table])])
        for table, why in found.different.items()
    ]
    return found, wrong


@pytest.mark.parametrize(("vendor", "kind"), CASES)
def test_random_pairs_are_equal_or_stop(request: pytest.FixtureRequest, vendor: str, kind: str, tmp_path: Path) -> None:
    source: MariadbServer = request.getfixturevalue(vendor)
    found, wrong = one_round(request, source, kind, Pairs(SEED, vendor), 40, tmp_path / "round")
    assert wrong == [], "\n".join(wrong)
    assert found.equal > 20


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "duckdb"])
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_thousands_of_random_pairs_are_equal_or_stop(
    request: pytest.FixtureRequest,
    vendor: str,
    kind: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    source: MariadbServer = request.getfixturevalue(vendor)
    pairs, wanted = Pairs(hash_of(vendor, kind), vendor), int(os.environ.get("PAIRS") or 20_000 // every())
    equal, wrong, stops, others = 0, list[str](), Counter[str](), 0
    for number in range(-(-wanted // A_ROUND)):
        found, different = one_round(request, source, kind, pairs, A_ROUND, tmp_path / str(number))
        equal, wrong = equal + found.equal, [*wrong, *different]
        stops.update(reason(error) for error in found.stops.values() if not is_other_stop(error))
        others += sum(map(is_other_stop, found.stops.values()))
    count_torture("random DDL", f"{vendor} to {kind}", len(wrong), equal + len(wrong) + stops.total())
    share = 100 * stops.total() / (equal + len(wrong) + stops.total())
    lines = [f"random DDL, {vendor} to {kind}: {share:.1f} % stop; {others} pairs have rows that no target can store"]
    record_property(LINES, [*lines, *(f"    {count} {why}" for why, count in stops.most_common(MOST_STOPS))])
    assert wrong == [], "\n".join(wrong)


def hash_of(vendor: str, kind: str) -> int:
    """A seed of the run's own that is the same in every process."""
    return int.from_bytes(f"{run_seed()} {vendor} {kind}".encode(), "big")
