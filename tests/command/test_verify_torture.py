"""`rplctl verify` from and into servers of each kind: a thousand faults, every type, and writers with kills and DDL."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rplctl.verify.report_file import read_report
from tests.command.test_clone import wait_cloned
from tests.command.test_clone_ladder import HARMLESS, beside, change, fill
from tests.command.test_verify import Target, opened, verified
from tests.kit.load import Work, working
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import count_torture
from tests.stories.test_bulk_types import COMMON, MARIADB

pytestmark = [pytest.mark.slow, pytest.mark.torture]
KEY = "--get-master-public-key", "1"
ROWS, TURNS = 20_000, 100
RUNS, RATE = 15, 1000  # verifies of each target; rows a second
CHANGES, ROWS_OF_CHANGE = 10, 3  # of a transaction; about
MANY = (
    "CREATE TABLE many (id INT PRIMARY KEY, v VARCHAR(60), n DECIMAL(12,3), g DOUBLE, m DATETIME(3), x LONGTEXT,"
    " l VARCHAR(30) CHARACTER SET latin1, f FLOAT) DEFAULT CHARSET utf8mb4"
)
MINUS_ZERO = {"sqlite": "0.0001", "mariadb": "0.0001", "postgresql": "'-0'"}  # the first two make it 0
Found = set[tuple[str, str, tuple[str, ...]]]  # kind, key, columns


def row(number: int) -> str:
    """`v` is NULL of some and '' of others, `g` and `f` are 0 of some."""
    last = number % 10
    v = "NULL" if last == 1 else "''" if last == 2 else f"'v{number}'"
    g, f = ("0", "0") if last == 3 else (repr(number / 7), repr(number / 8))
    return (
        f"({number}, {v}, {number}.5, {g}, '2024-01-01 00:00:00.{number % 1000:03}', '{document(number, 'ab')}',"
        f" 'é{number}', {f})"
    )


def document(number: int, names: str) -> str:
    return "{" + ", ".join(f'"{name}": {number}' for name in names) + "}"


def planted(chance: random.Random, minus_zero: str) -> tuple[list[str], Found]:
    """SQL of a target, and what is to be found."""
    ids = [chance.sample(range(100 + last, ROWS, 10), 2 * TURNS) for last in range(10)]
    statements: list[str] = []
    found: Found = set()

    def change(number: int, column: str, value: str) -> None:
        statements.append(f"UPDATE {{db}}many SET {column} = {value} WHERE id = {number}")
        found.add(("different", str(number), (column,)))

    for turn in range(TURNS):
        one, other, nulls, empty, zero, *rest = (ids[last][turn] for last in (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
        other = ids[0][turn + TURNS]
        change(one, "v", f"'v{other}'")
        change(other, "v", f"'v{one}'")
        change(nulls, "v", "''")
        change(empty, "v", "NULL")
        change(zero, "gf"[turn % 2], minus_zero)
        change(rest[0], "l", f"'Ã©{rest[0]}'")
        change(rest[1], "v", f"'w{rest[1]}'")
        change(rest[2], "v", f"'V{rest[2]}'" if turn % 2 else f"'v{rest[2]} '")
        change(rest[3], "m", f"'2024-01-01 00:00:00.{(rest[3] + 1) % 1000:03}'")
        change(rest[4], "x", f"'{document(rest[4], 'ba')}'")
        statements.append(f"DELETE FROM {{db}}many WHERE id = {rest[5]}")
        found.add(("missing", str(rest[5]), ()))
        statements.append(f"INSERT INTO {{db}}many (id, v) VALUES ({ROWS + turn}, 'v')")
        found.add(("extra", str(ROWS + turn), ()))
    return statements, found


def from_its_server(kind: str, request: pytest.FixtureRequest) -> MariadbServer:
    server: MariadbServer = request.getfixturevalue("mysql" if kind == "mysql" else "mariadb")
    server.sql("DROP DATABASE IF EXISTS living; CREATE DATABASE living CHARACTER SET utf8mb4")
    return server


def begin(replica: Replica, source: MariadbServer, *options: str) -> None:
    file = replica.datadir / "rplctl.toml"
    file.write_text(f'replicate_do_db = "living"\n{file.read_text()}')
    replica.change_master(source, *KEY, *options)


@contextmanager
def a_thousand_faults(kind: str, replica: Replica, request: pytest.FixtureRequest) -> Iterator[tuple[Target, Found]]:
    """In a copy of ROWS rows."""
    source = from_its_server(kind, request)
    source.sql(MANY, "living")
    with opened(kind, replica, request) as target:
        begin(replica, source)
        for at in range(0, ROWS, 1000):
            rows = ", ".join(map(row, range(at, at + 1000)))
            source.sql(f"SET NAMES utf8mb4; INSERT INTO many VALUES {rows}", "living")
        replica.run("clone")
        wait_cloned(replica, 120)
        statements, wanted = planted(random.Random(7), MINUS_ZERO.get(kind, "-0e0"))
        assert len(wanted) == 12 * TURNS
        assert verified(replica)["many"]["Equal"] == ROWS
        target("; ".join(statements))
        yield target, wanted


def found_in(report: Path) -> Found:
    return {(found.kind, str(found.key["id"]), found.columns) for found in read_report(report).differences()}


@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql", "mysql"])
def test_all_of_a_thousand_faults_are_found(kind: str, replica: Replica, request: pytest.FixtureRequest) -> None:
    with a_thousand_faults(kind, replica, request) as (_, wanted):
        report = replica.datadir / "report"
        verified(replica, "--report", str(report), expect=1)
        found = found_in(report)
        assert found == wanted, (list(found - wanted)[:5], list(wanted - found)[:5])
    count_torture("verify", f"faults in {kind}", 0, len(wanted))


@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql", "mysql"])
def test_every_type_that_was_copied_and_replicated_is_equal(
    kind: str, replica: Replica, request: pytest.FixtureRequest
) -> None:
    source = from_its_server(kind, request)
    types = COMMON | ({} if kind == "mysql" else MARIADB)
    if kind == "postgresql":  # its text holds no NUL
        types = {declared: values for declared, values in types.items() if "\\0" not in values[0]}
    script = [f"CREATE TABLE n (id INT PRIMARY KEY); INSERT INTO n VALUES {', '.join(f'({n})' for n in range(90))}"]
    rows = []
    for number, (declared, (one, other)) in enumerate(types.items()):
        script.append(f"CREATE TABLE t{number} (id INT PRIMARY KEY, v {declared}, w {declared})")
        value = f"IF(id % 3, IF(id % 3 = 1, {one}, {other}), NULL)"
        script.append(f"INSERT INTO t{number} SELECT id, {value}, {one} FROM n")
        rows.append(f"UPDATE t{number} SET w = {other} WHERE id < 40")
        rows.append(f"INSERT INTO t{number} SELECT id + 100, {value}, {other} FROM n")
    source.sql("SET sql_mode=''; " + ";".join(script), "living")
    with opened(kind, replica, request):
        begin(replica, source)
        replica.run("clone")
        wait_cloned(replica, 120)
        source.sql("SET sql_mode=''; " + ";".join(rows), "living")
        replica.wait_synced(source, 120)
        found = verified(replica)
    assert {name: (row["Equal"], row["Note"]) for name, row in found.items()} == {
        "n": (90, ""), **{f"t{number}": (180, "") for number in range(len(types))},
    }  # fmt: skip


CHANNELS = {  # source, its options, target, options of the channel, whether the target calls the database otherwise
    "MariaDB by GTID": ("mariadb", (), "mariadb", ("--master-use-gtid", "slave_pos"), True),
    "MySQL by GTID": ("mysql", (), "mysql", ("--master-auto-position", "1"), True),
    "MySQL without GTIDs": ("mysql", ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"), "sqlite", (), False),
    "MySQL into MariaDB": ("mysql", (), "mariadb", (), False),
    "MariaDB into MySQL": ("mariadb", (), "mysql", (), False),
}


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_copy_is_verified_at_once_and_beside_writers(
    channel: str, replica: Replica, request: pytest.FixtureRequest
) -> None:
    kind, options, into, change, is_rewritten = CHANNELS[channel]
    source: MariadbServer = request.getfixturevalue(f"{kind}_factory")(*options)
    fill(source, "living", 3000)
    with opened(into, replica, request) as target:
        file = replica.datadir / "rplctl.toml"
        rules = 'replicate_rewrite_db = "living->copy"\nreplicate_do_db = "copy"\n' if is_rewritten else ""
        file.write_text(f'{rules}replicate_wild_ignore_table = "%.tool"\n{file.read_text()}')
        replica.change_master(source, *KEY, *change)
        with beside(source, "living", paced(1, RATE / 2), paced(2, RATE / 2)):
            replica.run("clone")
            wait_cloned(replica, 300)
            for _ in range(3):
                found = json.loads(replica.run("verify", "--json", expect=None).stdout)
                assert differing(found) == [] and "tool" not in {row["Table_name"] for row in found}
        replica.wait_synced(source, 120)
        found = verified(replica)
        assert {row["Note"] for row in found.values()} == {""}
        name = "copy." if is_rewritten else "{db}"
        target(f"INSERT INTO {name}plain (id, v) VALUES (99999, ''); DELETE FROM {name}swaps WHERE id = 1500")
        if into != "sqlite":
            target(f"ALTER TABLE {name}child ADD own INT DEFAULT 7")
        found = verified(replica, expect=1)
        assert differing(found.values()) == [("plain", "Extra", 1), ("swaps", "Missing", 1)]


def differing(rows: Any) -> list[tuple[str, str, Any]]:
    kinds = ("Missing", "Extra", "Different", "Drift")
    return sorted((row["Table_name"], kind, row[kind]) for row in rows for kind in kinds if row[kind])


MOVING = "", "changed during each attempt", "while it was verified", "no such table any more"  # notes
LIVING = {  # target: its source, options of the channel
    "sqlite": ("mariadb", ()),
    "mariadb": ("mariadb", ()),
    "postgresql": ("mariadb", ()),
    "mysql": ("mysql", ("--master-auto-position", "1")),
}


@pytest.mark.parametrize("kind", LIVING)
def test_nothing_but_faults_is_told_beside_writers_kills_and_ddl(
    kind: str, replica: Replica, request: pytest.FixtureRequest
) -> None:
    """A thousand rows a second; the receiver, the applier and each fifth verify are killed; each third has a fault."""
    of, options = LIVING[kind]
    source = from_its_server(of, request)
    fill(source, "living", 3000)
    stop, chance = threading.Event(), random.Random(3)

    def killing() -> None:
        while not stop.wait(8):
            replica.kill(chance.choice(["receiver", "applier"]))
            replica.run("start", expect=None)

    def altering(cursor: Any) -> None:
        cursor.execute("ALTER TABLE tool ADD z INT DEFAULT 3")
        time.sleep(1)
        cursor.execute("ALTER TABLE tool DROP z")
        cursor.execute("TRUNCATE doomed")
        cursor.execute("INSERT INTO doomed SELECT id, v FROM tool")
        cursor.execute("CREATE TABLE passing (id INT PRIMARY KEY)")
        cursor.execute("INSERT INTO passing SELECT id FROM tool")
        time.sleep(1)
        cursor.execute("DROP TABLE passing")

    with opened(kind, replica, request) as target:
        begin(replica, source, *options)
        replica.run("clone")
        wait_cloned(replica, 120)
        killer = threading.Thread(target=killing)
        killer.start()
        before, began, aborted = writes(source), time.monotonic(), []
        try:
            with (
                beside(source, "living", *(paced(seed, RATE / 2) for seed in range(2))),
                working(source, "living", [altering], harmless=HARMLESS, pause_s=0.5),
            ):
                for number in range(RUNS):
                    if is_faulty := number % 3 == 1:
                        target("INSERT INTO {db}plain (id, v) VALUES (99999, '')")
                    if number % 5 == 2:
                        killed(replica, "verify", chance.uniform(0.3, 1.5))
                    while (told := replica.run("verify", "--json", expect=None)).returncode not in (0, 1):
                        aborted.append(told.stderr)
                        assert len(aborted) < RUNS, aborted
                    wanted = [("plain", "Extra", 1)] if is_faulty else []
                    rows = json.loads(told.stdout)
                    assert differing(rows) == wanted, told.stdout
                    assert all(row["Note"].endswith(MOVING) for row in rows), told.stdout
                    if is_faulty:
                        target("DELETE FROM {db}plain WHERE id = 99999")
                took = time.monotonic() - began
                rate = (writes(source) - before) / took
        finally:
            stop.set()
            killer.join()
        replica.run("start", expect=None)
        replica.wait_synced(source, 300)
        assert differing(verified(replica).values()) == []
    count_torture("verify", f"beside writers into {kind}", 0, RUNS)
    assert rate > RATE / 2, (rate, took, aborted)


def paced(seed: int, rate: float) -> Work:
    """Transactions of some changes each, as many as are due by now."""
    chance, began, done = random.Random(seed), time.monotonic(), 0

    def work(cursor: Any) -> None:
        nonlocal done
        if done < rate * (time.monotonic() - began):
            done += CHANGES * ROWS_OF_CHANGE
            cursor.execute("BEGIN")
            for _ in range(CHANGES):
                for statement in change(chance):
                    cursor.execute(statement)
            cursor.execute("COMMIT")

    return work


def killed(replica: Replica, verb: str, seconds: float) -> None:
    """So long after it began."""
    command = [sys.executable, "-m", "rplctl", "--datadir", str(replica.datadir), verb]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.kill()


def writes(source: MariadbServer) -> int:
    wanted = "('Handler_write', 'Handler_update', 'Handler_delete')"
    return sum(int(value) for _, value in source.sql(f"SHOW GLOBAL STATUS WHERE Variable_name IN {wanted}"))
