"""`rplctl repair`: exactly the rows that differ are mended, and what it wrote is taken back by its undo SQL."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.repair import RepairedTable
from rplctl.failpoint import REPAIR_POINTS
from rplctl.verify.report_file import read_report
from tests.cli.test_json_page import PAGE
from tests.command.test_verify import (
    ALL_TYPES,
    FAULTS,
    FILL,
    PLAIN,
    ROWS,
    SCHEMA,
    Target,
    target,
    verified,
)
from tests.kit.load import Work, working
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

__all__ = ["target"]
pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
MORE = (
    "INSERT INTO types (id) SELECT 100 + seq FROM seq_1_to_40",
    "CREATE TABLE traded (id INT PRIMARY KEY, u VARCHAR(9) NOT NULL UNIQUE, v INT)",
    "INSERT INTO traded SELECT seq, CONCAT('u', seq), seq FROM seq_1_to_40",
    "CREATE TABLE named (k ENUM('1', 'b', 'ä') NOT NULL, b BIGINT UNSIGNED, v INT, PRIMARY KEY (k, b))",
    "INSERT INTO named SELECT 1 + seq % 3, 18446744073709551600 + seq % 16, seq FROM seq_1_to_15",
    "INSERT INTO named VALUES (1, 5, 105)",
    "CREATE TABLE parent (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "INSERT INTO parent SELECT seq, seq FROM seq_1_to_20",
    "INSERT INTO child SELECT seq, 1 + seq % 20 FROM seq_1_to_60",
    "CREATE TABLE few (id INT PRIMARY KEY, v INT)",
    "INSERT INTO few VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "CREATE TABLE most (id INT PRIMARY KEY, v INT)",
    "INSERT INTO most SELECT seq, seq FROM seq_1_to_1001",
)
POINTS = ("crash_repair_after_commit", "crash_repair_after_undo", "crash_repair_before_commit")
MOVED = ((1, 501), ("'18446744073709551615'", 502), (4, 504))  # SQLite has it as text
MORE_FAULTS = (
    "UPDATE {db}words SET v = 0 WHERE v = 9",
    "DELETE FROM {db}words WHERE v = 10",
    "UPDATE {db}traded SET u = 'x' WHERE id = 3",
    "UPDATE {db}traded SET u = 'u3' WHERE id = 4",
    "UPDATE {db}traded SET u = 'u4' WHERE id = 3",
    "UPDATE {db}named SET v = -1 WHERE v IN (5, 7)",
    "UPDATE {db}types SET p = '' WHERE id = 3",
    *(f"UPDATE {{db}}types SET id = {there} WHERE id = {here}" for here, there in MOVED),
    "INSERT INTO {db}parent VALUES (99, 99)",
    "UPDATE {db}parent SET v = 0 WHERE id = 2",
    "INSERT INTO {db}keyless VALUES (77, 'more')",
    "UPDATE {db}few SET v = 0",
    "UPDATE {db}most SET v = 0",
)
Row = dict[str, Any]


def repaired(replica: Replica, *options: str, expect: int = 1) -> dict[str, Row]:
    rows = json.loads(replica.run("repair", "--json", *options, expect=expect).stdout)
    assert all(list(row) == PAGE["repair"] for row in rows)
    return {row["Table_name"]: row for row in rows}


def written(rows: dict[str, Row]) -> dict[str, tuple[int, int, int]]:
    return {name: (row["Inserted"], row["Deleted"], row["Updated"]) for name, row in rows.items()}


def differences(path: Path) -> Counter[str]:
    return Counter(
        f"{found.table} {found.kind} {found.key} {found.columns}" for found in read_report(path).differences()
    )


def test_page() -> None:
    assert PAGE["repair"] == list(RepairedTable.__dataclass_fields__)


@pytest.mark.long(
    "tests/command/test_verify_stopped.py::test_the_crontab_of_the_readme_verifies_and_repairs stays in make test."
)
@pytest.mark.parametrize(
    "target",
    [
        "sqlite",
        pytest.param("mariadb", marks=pytest.mark.torture),
        pytest.param("postgresql", marks=[pytest.mark.postgresql, pytest.mark.torture]),
    ],
    indirect=True,
)
def test_what_differs_is_mended_and_nothing_else(target: Target, replica: Replica, source: MariadbServer) -> None:
    filled(replica, source)
    target("ALTER TABLE {db}plain ADD COLUMN own INT DEFAULT 7")
    target("UPDATE {db}plain SET own = 1 WHERE id = 8")
    assert "to write a report, run: rplctl verify" in replica.run("repair", expect=2).stderr
    for sql in FAULTS:
        target(sql.format(t="{db}plain"))
    for sql in MORE_FAULTS:
        target(sql)
    report = replica.datadir.parent / "report"
    verified(replica, "--report", str(report), expect=1)
    planted = differences(report)
    mended = {"types": (3, 3, 1), "plain": (1, 1, 12), "words": (1, 0, 1), "traded": (0, 0, 2), "named": (0, 0, 2),
              "parent": (0, 1, 1), "few": (0, 0, 4), "most": (0, 0, 0), "keyless": (0, 0, 0)}  # fmt: skip
    for dry in (["--dry-run"], ["--dry-run", "--report", str(report)], []):  # the last one writes
        rows = repaired(replica, *dry)
        assert written(rows) == mended, dry
        left = {name: row["Note"] for name, row in rows.items() if row["Left_over"]}
        assert {*left} == {"most", "keyless"}
        assert "more than 20% of the rows differ: rplctl clone --tables living.most --replace" in left["most"]
        assert "the table has no key: rplctl clone --tables living.keyless --replace" in left["keyless"]
    found = verified(replica, expect=1)
    assert {name for name, row in found.items() if row["Equal"] < row["Row_count"] or row["Extra"]} == {
        "most",
        "keyless",
    }
    (undo,) = replica.channel.undo_folder.iterdir()
    for path in sorted(undo.iterdir()):
        text = path.read_text()
        target(text.replace("\nBEGIN;", "").replace("COMMIT;", "") if text.startswith("PRAGMA") else text)
    again = replica.datadir.parent / "again"
    verified(replica, "--report", str(again), expect=1)
    assert differences(again) == planted
    for here, there in MOVED:  # with all that was in them
        target(f"UPDATE {{db}}types SET id = {here} WHERE id = {there}")
    target("DELETE FROM {db}keyless WHERE a = 77")
    target("UPDATE {db}few SET v = id")
    target("UPDATE {db}most SET v = id")
    found = verified(replica, expect=1)
    assert [(found[name]["Missing"], found[name]["Extra"], found[name]["Different"]) for name in ("types", "few")] == [
        (0, 0, 1), (0, 0, 0),
    ]  # fmt: skip
    killed_and_repeated(replica)


@pytest.mark.long("tests/command/test_verify_stopped.py repairs in make test; a kill beside writers is rare.")
@pytest.mark.parametrize("target", ["sqlite"], indirect=True)
def test_killed_beside_writers_it_is_repeated(target: Target, replica: Replica, source: MariadbServer) -> None:
    """The report is an old one by then."""
    filled(replica, source)
    for sql in (*FAULTS, *MORE_FAULTS[:7]):
        target(sql.format(t="{db}plain", db="{db}"))
    verified(replica, expect=1)
    works: list[Work] = [heat, *(partial(write, random.Random(number)) for number in range(2))]
    with working(source, "living", works, harmless=(1213, 1205, 1020, 1062), pause_s=0.02):
        killed_and_repeated(replica)
    replica.wait_synced(source)
    verified(replica)


def filled(replica: Replica, source: MariadbServer) -> None:
    """The source's tables, and the channel that has copied them."""
    source.sql("; ".join((SCHEMA, ALL_TYPES, *PLAIN, ROWS, *FILL, *MORE)))
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "living"\n{options.read_text()}')
    replica.change_master(source)
    replica.run("start")
    replica.wait_synced(source)


def write(chance: random.Random, cursor: Any) -> None:
    """Not to rows that are missing or extra: the applier would stop at them."""
    a, b = chance.sample(range(30, 3000), 2)
    for statement in chance.choice(
        [
            [f"UPDATE plain SET v = 'other' WHERE id = {a}", f"UPDATE plain SET v = 'v{a}' WHERE id = {a}"],
            [f"DELETE FROM plain WHERE id = {a}", f"INSERT IGNORE INTO plain (id, v) VALUES ({b}, 'again')"],
            [f"UPDATE plain SET v = '{b}' WHERE id = {chance.randrange(7, 17)}"] * (chance.random() < 0.02),
            [f"UPDATE IGNORE words SET v = v + 1, k = CHAR({a % 256}) WHERE v = {20 + b % 280}"],
        ]
    ):
        cursor.execute(statement)


def heat(cursor: Any) -> None:
    """Rows that are different, fifty times a second; the log does not say in what."""
    time.sleep(0.02)
    cursor.execute("SET SESSION binlog_row_image = MINIMAL")
    cursor.execute("UPDATE traded SET v = v + 1 WHERE id = 3")
    cursor.execute("UPDATE plain SET g = g + 1 WHERE id = 12")


def killed_and_repeated(replica: Replica) -> None:
    assert {*POINTS} == REPAIR_POINTS
    for number, point in enumerate(POINTS, 1):
        replica.run("repair", expect=-9, environment={"RPLCTL_FAILPOINTS": f"{point}=kill@{number}"})
        replica.kill("applier")
        replica.run("start")
    rows = repaired(replica, expect=0)
    assert sum(row["Equal"] for row in rows.values()) > 0
    verified(replica)
    assert repaired(replica, expect=0) == {}
