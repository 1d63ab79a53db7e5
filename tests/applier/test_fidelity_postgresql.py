"""Everything a real binary log holds is in PostgreSQL exactly, value by value as the server that wrote it printed it.

The recordings of `test_fidelity`. Dates that PostgreSQL has not ('2024-00-07') stop the channel; the test does what the
error's hint says (that column becomes text) and goes on from the stored position, as an operator would. A table whose
text held a NUL on the source is left out from there on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.errors import RplError
from rplctl.relay_log.reader import RelayGroups
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.applier.test_fidelity import CRASHED, LARGE, SMALL, data_of, recorded, write_logs
from tests.kit.postgresql_state import connect, differences, new_database
from tests.kit.servers import PostgresqlServer

pytestmark = pytest.mark.postgresql
TOO_WIDE = "%.wmost,%.w2000"  # PostgreSQL takes 1600 columns
_AS_TEXT = re.compile(r"run on the target: (ALTER TABLE .* TYPE text.*)$", re.MULTILINE)
_TABLE = re.compile(r"event on table (\S+); Incorrect string value: .* the character NUL")


@dataclass
class Run:
    """An applier of recorded logs that does what its errors' hints say."""

    instance: Instance
    made_text: list[str] = field(default_factory=list)
    ignored: set[str] = field(default_factory=set)

    def apply(self, groups: RelayGroups) -> None:
        first = 0
        while first < len(groups.scan):
            try:
                return void(self.instance.apply_from(groups, first))
            except RplError as error:
                self.repair(error)
                applied = self.instance.applier.info.exec_position
                ends = (groups.scan.source_position(i) for i in range(len(groups.scan)))
                first = next(i for i, end in enumerate(ends) if applied.is_before(end))

    def repair(self, error: RplError) -> None:
        if (as_text := _AS_TEXT.search(error.hint)) and error.errno == 1292:
            self.instance.execute(as_text[1])
            self.made_text.append(as_text[1])
        elif (named := _TABLE.search(error.message)) and "rplctl init --nul-in-text replace" in error.hint:
            self.ignored.add(named[1])
            ignored = ",".join(filter(None, (self.instance.config.replicate_ignore_table, named[1])))
            self.instance.config = replace(self.instance.config, replicate_ignore_table=ignored)
            self.instance.applier = self.instance.reopen()
        else:
            raise error

    def different(self, state: str, without: frozenset[str] = frozenset()) -> list[str]:
        with connect(self.instance.config.target) as target:
            return differences(target, state, without | self.ignored)


Play = Callable[..., Run]


@pytest.fixture
def play(tmp_path: Path, postgresql: PostgresqlServer) -> Iterator[Play]:
    """Apply logs on a new, empty database."""
    runs: list[Run] = []

    def made(paths: list[Path], **options: Any) -> Run:
        options = {"on_unsupported_ddl": "skip", "target": new_database(postgresql)} | options
        runs.append(Run(Instance(tmp_path / "replica", groups_of(paths[0]), **options)))
        for path in paths:
            runs[-1].apply(groups_of(path))
        return runs[-1]

    yield made
    for run in runs:
        run.instance.target.close()


def void(_: object) -> None:
    return None


@pytest.mark.long(
    "A small log of each vendor stays; the large ones stay for SQLite in tests/applier/test_fidelity.py.",
    keeps=r"sysbench-mix-small$",
)
@pytest.mark.parametrize("case", [*SMALL, *(pytest.param(case, marks=pytest.mark.slow) for case in LARGE)])
def test_the_target_is_the_sources_final_state(tmp_path: Path, play: Play, case: str) -> None:
    run = play(write_logs(tmp_path / "source", data_of(case)))
    assert run.different(data_of(f"{case}.state").decode()) == []
    assert run.ignored <= {"tt_types.t_varchar_63"}, "held a NUL on the source"


def test_the_databases_owner_needs_no_more_rights(tmp_path: Path, play: Play, postgresql: PostgresqlServer) -> None:
    url = new_database(postgresql)
    postgresql.sql("DROP ROLE IF EXISTS owner; CREATE ROLE owner LOGIN PASSWORD 'o'")
    postgresql.sql(f"ALTER DATABASE {url.rpartition('/')[2]} OWNER TO owner")
    run = play(write_logs(tmp_path / "source", data_of(SMALL[2])), target=url.replace("rpl:rpl@", "owner:o@"))
    assert run.different(data_of(f"{SMALL[2]}.state").decode()) == []


@pytest.mark.long(
    "tests/applier/test_fidelity.py::test_a_source_that_was_killed_in_mid_transaction_is_followed_into_its_next_log "
    "holds it on SQLite."
)
@pytest.mark.parametrize("case", CRASHED)
def test_a_source_that_was_killed_in_mid_transaction_is_followed_into_its_next_log(
    tmp_path: Path, play: Play, case: str
) -> None:
    run = play(write_logs(tmp_path / "source", data_of(case), data_of(f"{case}-next")))
    assert run.different(data_of(f"{case}.state").decode()) == []


@pytest.mark.torture  # into SQLite by default: test_fidelity.py
def test_mysql_logs_of_every_option_give_the_sources_state(tmp_path: Path, play: Play) -> None:
    paths, state = recorded("mysql", tmp_path / "source")
    run = play(paths, replicate_wild_ignore_table=TOO_WIDE)
    assert run.made_text
    assert not run.ignored
    assert run.different(state, frozenset({"wmost", "w2000"})) == []


@pytest.mark.torture
def test_mariadb_logs_of_every_option_give_the_sources_state_but_for_virtual_columns_it_did_not_log(
    tmp_path: Path, play: Play
) -> None:
    paths, state = recorded("mariadb", tmp_path / "source")
    unlogged = frozenset({"minimal_none.gent", "minimal_zip.gent"})
    run = play(paths, replicate_wild_ignore_table=TOO_WIDE, replicate_ignore_table=",".join(unlogged))
    assert run.made_text
    assert not run.ignored
    assert run.different(state, frozenset({"wmost", "w2000"}) | unlogged) == []
