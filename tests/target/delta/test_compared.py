"""`rplctl verify` of a mirror: every type is told as equal, and what somebody else changed in the lake is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rplctl.verify.report_file import read_report
from tests.command.test_verify import ALL_TYPES, FILL, ODD, PLAIN, ROWS, SCHEMA, verified
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def set_up(replica: Replica, source: MariadbServer, url: str) -> None:
    name, position = source.master_status()
    replica.run("init", "--target", url)
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "living"\nreplicate_ignore_table = "living.keyless"\n{options.read_text()}')
    replica.change_master(source, "--master-log-file", name, "--master-log-pos", str(position))


def found_by(replica: Replica, expect: int = 0) -> dict[str, tuple[Any, ...]]:
    found = verified(replica, expect=expect)
    return {name: tuple(row[n] for n in ("Equal", "Missing", "Extra", "Different", "Note")) for name, row in
            found.items()}  # fmt: skip


@pytest.mark.long("tests/command/test_verify.py plants faults in a table of SQLite in make test.")
def test_planted_faults_are_all_that_is_found_in_a_mirror(
    replica: Replica, mariadb: MariadbServer, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    set_up(replica, mariadb, f"delta+file://{lake}?layer=mirror&zero_dates=null")
    mariadb.sql("; ".join((SCHEMA, ALL_TYPES, *PLAIN, ROWS, *FILL)))
    replica.run("start")
    replica.wait_synced(mariadb)
    equal = {"types": 4, "plain": 3000, "words": 300, "empty": 0, **dict.fromkeys(ODD, 3)}
    assert found_by(replica) == {name: (count, 0, 0, 0, "") for name, count in equal.items()}
    plain, words = (DeltaTable(str(lake / "living" / name)) for name in ("plain", "words"))
    plain.update(predicate="id = 7", updates={"v": "'V7'"})
    plain.update(predicate="id = 14", updates={"m": "m + INTERVAL '1 millisecond'", "n": "0"})
    plain.delete("id = 17")
    schema = pa.schema(plain.schema().to_arrow())
    more = {"id": 5000, **dict.fromkeys(schema.names[1:])}
    write_deltalake(plain, pa.Table.from_pylist([more], schema=schema), mode="append")
    words.update(predicate="v = 9", updates={"v": "0"})
    found = found_by(replica, expect=1)
    assert found["plain"] == (2997, 1, 1, 2, "") and found["words"] == (299, 0, 0, 1, "")
    differences = read_report(replica.channel.verify_report_path).differences()
    told = {(d.kind, d.key.get("id", ""), d.columns) for d in differences}
    assert told == {
        ("different", "7", ("v",)), ("different", "14", ("n", "m")), ("missing", "17", ()), ("extra", "5000", ()),
        ("different", "", ("v",)),
    }  # fmt: skip
    assert not (lake / "rplctl").exists()  # nothing was staged there


def test_a_lake_of_changes_has_no_rows_to_verify(replica: Replica, mariadb: MariadbServer, tmp_path: Path) -> None:
    set_up(replica, mariadb, f"delta+file://{tmp_path / 'lake'}")
    assert "stores changes, not rows" in replica.run("verify", expect=2).stderr
