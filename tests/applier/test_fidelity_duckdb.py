"""Everything a real binary log holds is in DuckDB exactly, value by value as the server that wrote it printed it.

The recordings of `test_fidelity`. Dates that DuckDB has not ('2024-00-07') stop the channel; the test does what the
error's hint says (that column becomes text) and goes on from the stored position, as an operator would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import RplError
from rplctl.relay_log.reader import RelayGroups
from rplctl.target.duckdb.connection import driver_of
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.test_fidelity import CRASHED, LARGE, LEFT_OUT, OPTIONS, SMALL, data_of, recorded, write_logs
from tests.kit.duckdb_state import differences

MORE_LOGS = pytest.mark.long("The recorded case that stays holds it for one log.", keeps=r"^(ma1011-torture-row)$")

pytestmark = pytest.mark.slow

_AS_TEXT = re.compile(r"on the target: (ALTER TABLE .* TYPE VARCHAR.*)$", re.MULTILINE)


@dataclass
class Run:
    """An applier of recorded logs that does what its errors' hints say."""

    instance: Instance
    made_text: list[str] = field(default_factory=list)

    def apply(self, groups: RelayGroups) -> None:
        first = 0
        while first < len(groups.scan):
            try:
                self.instance.apply_from(groups, first)
                return
            except RplError as error:
                self.repair(error)
                applied = self.instance.applier.info.exec_position
                ends = (groups.scan.source_position(i) for i in range(len(groups.scan)))
                first = next(i for i, end in enumerate(ends) if applied.is_before(end))

    def repair(self, error: RplError) -> None:
        if not (as_text := _AS_TEXT.search(error.hint)) or error.errno != 1292:
            raise error
        self.instance.execute(as_text[1])
        self.instance.target.reconnect()
        self.made_text.append(as_text[1])

    def different(self, state: str, without: frozenset[str] = LEFT_OUT) -> list[str]:
        driver = driver_of(self.instance.target.connection)
        return differences(driver, self.instance.applier.catalog.tables, state, without)


Play = Callable[..., Run]


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Play]:
    """Apply logs on a new, empty file."""
    runs: list[Run] = []

    def made(paths: list[Path], **options: Any) -> Run:
        options = {**OPTIONS, "target": f"duckdb:///{tmp_path / 'target.duckdb'}"} | options
        runs.append(Run(Instance(tmp_path / "replica", groups_of(paths[0]), **options)))
        for path in paths:
            runs[-1].apply(groups_of(path))
        return runs[-1]

    yield made
    for run in runs:
        run.instance.target.close()


IN_SUITE = "my97-torture-row"
LONG = [pytest.param(case, marks=pytest.mark.slow if case == IN_SUITE else pytest.mark.torture) for case in LARGE]


@MORE_LOGS
@pytest.mark.parametrize("case", [*SMALL, *LONG])
def test_the_target_is_the_sources_final_state(tmp_path: Path, play: Play, case: str) -> None:
    run = play(write_logs(tmp_path / "source", data_of(case)))
    assert run.different(data_of(f"{case}.state").decode()) == []


@MORE_LOGS
@pytest.mark.parametrize("case", CRASHED)
def test_a_source_that_was_killed_in_mid_transaction_is_followed_into_its_next_log(
    tmp_path: Path, play: Play, case: str
) -> None:
    run = play(write_logs(tmp_path / "source", data_of(case), data_of(f"{case}-next")))
    assert run.different(data_of(f"{case}.state").decode()) == []


@pytest.mark.torture  # into SQLite by default: test_fidelity.py
@pytest.mark.parametrize(("vendor", "unlogged"), [("mysql", ""), ("mariadb", "minimal_none.gent,minimal_zip.gent")])
def test_logs_of_every_option_give_the_sources_state(tmp_path: Path, play: Play, vendor: str, unlogged: str) -> None:
    """But for virtual columns that MariaDB did not log."""
    paths, state = recorded(vendor, tmp_path / "source")
    run = play(paths, replicate_ignore_table=",".join(filter(None, ("db-with-dash.T1", unlogged))))
    assert run.made_text
    assert run.different(state, LEFT_OUT | frozenset(unlogged.split(","))) == []
