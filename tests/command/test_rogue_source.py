"""What a rogue source answers is never executed on the target: not by `clone`, not by `verify`, not by `repair`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rplctl.applier.apply.clone_pieces import MOST_TRIES
from rplctl.status import read_status
from tests.kit.replica import Replica, wait_until
from tests.kit.rogue import Lie, RogueSource
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
EVIL = "; DROP DATABASE other; -- "
OF_DATABASES = "default_character_set_name"
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9) COMMENT 'a;b', UNIQUE KEY u (v)) COMMENT='it''s; --'",
    "CREATE TABLE p (n DECIMAL(9,2), d DATE, v INT, PRIMARY KEY (n, d))",
    "CREATE SEQUENCE s",
    "INSERT INTO t SELECT seq, seq FROM seq_1_to_1500",
    "INSERT INTO p VALUES (1.50, '2024-01-01', 1), (2.50, '2024-01-02', 2)"
    + "".join(f", ({n}, '2024-02-01', 1)" for n in range(10, 30)),
)
LIES = {
    "charset": [Lie(OF_DATABASES, "utf8mb4", f"utf8mb4{EVIL}")],
    "collation": [Lie(OF_DATABASES, "utf8mb4_general_ci", f"utf8mb4_general_ci{EVIL}")],
    "sequence": [Lie("SHOW CREATE SEQUENCE", "(CREATE SEQUENCE.*)", rf"\1{EVIL}")],
    "sequence_in_a_comment": [Lie("SHOW CREATE SEQUENCE", "(CREATE SEQUENCE.*)", r"\1 /*! ; DROP DATABASE other */")],
    "table": [Lie("SHOW CREATE TABLE `shop`.`t`", "(CREATE TABLE.*)", rf"\1{EVIL}")],
    "table_of_another_version": [
        Lie("@@version", r"[0-9.]+-MariaDB.*", "8.0.36"),
        Lie("SHOW CREATE TABLE `shop`.`t`", "(CREATE TABLE.*)", r"\1 /*M! ; DROP DATABASE other; */"),
    ],
    "key": [
        Lie("@@version", r"[0-9.]+-MariaDB.*", "8.0.36"),
        Lie("SHOW CREATE TABLE `shop`.`t`", r"(.*KEY `u` \(`v`\))(.*)", r"\1 /*M! ; DROP DATABASE other; */\2"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def source(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    made = mariadb_factory()
    made.sql("CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE shop; " + "; ".join(TABLES))
    return made


@pytest.fixture(scope="module")
def target_server(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    return mariadb_factory("--skip-log-bin")


@pytest.fixture
def target(target_server: MariadbServer) -> MariadbServer:
    target_server.sql("DROP DATABASE IF EXISTS shop; DROP DATABASE IF EXISTS rplctl; CREATE OR REPLACE DATABASE other")
    return target_server


@pytest.fixture
def rogue(source: MariadbServer) -> Iterator[RogueSource]:
    with RogueSource(source.port) as made:
        yield made


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    made = Replica(tmp_path, spark=False)
    yield made
    made.close()


def set_up(replica: Replica, source: MariadbServer, rogue: RogueSource, target: MariadbServer) -> None:
    replica.run("init", *replica.into(target))
    options = replica.datadir / "rplctl.toml"
    options.write_text(f'replicate_do_db = "shop"\n{options.read_text()}')
    replica.change_master(source, "--master-port", str(rogue.port))


def has_other(target: MariadbServer) -> bool:
    return bool(target.sql("SHOW DATABASES LIKE 'other'"))


def copied(replica: Replica) -> bool:
    rows = json.loads(replica.run("show-clone", "--json").stdout)
    return bool(rows) and all(row["State"] == "done" for row in rows)


@pytest.mark.long("Such a row is rare, and three tries take twenty seconds.")
def test_a_row_that_cannot_be_decoded_is_an_error_after_some_equal_tries(
    replica: Replica, source: MariadbServer, rogue: RogueSource, target: MariadbServer
) -> None:
    set_up(replica, source, rogue, target)
    rogue.damage = (b"\x03777", b"\xfa777")
    replica.run("clone")

    def said() -> str:
        return "".join(replica.run("show-status", "--field", f"Last_SQL_{part}").stdout for part in ("Error", "Hint"))

    status = replica.channel.status_path("applier")
    wait_until(lambda: "shop.t is not copied" in read_status(status).last_error, 120)
    assert f"chunk 0 could not be used {MOST_TRIES} times" in said()
    assert f"chunk 0 of shop.t is read again ({MOST_TRIES - 1} of {MOST_TRIES})" in replica.run("show-clone").stderr
    rogue.damage = None
    typed = said().partition("on the source, run: ")[2].partition("\\n")[0]
    for command in typed.split("; "):
        replica.run(*command.split()[1:])
    wait_until(lambda: copied(replica), 120)


@pytest.mark.long("One rogue answer stays; every answer is quoted by the same function.", keeps=r"^charset$")
@pytest.mark.parametrize("what", LIES)
def test_clone_executes_nothing_of_the_source(
    what: str, replica: Replica, source: MariadbServer, rogue: RogueSource, target: MariadbServer
) -> None:
    set_up(replica, source, rogue, target)
    rogue.lies = LIES[what]
    done = replica.run("clone", expect=None)

    def is_over() -> bool:
        status = replica.status()
        is_stopped = replica.pid("applier") is None or status["Last_SQL_Errno"] or "shop" in _clone_error(replica)
        return done.returncode != 0 or not has_other(target) or bool(is_stopped) or copied(replica)

    wait_until(is_over, 120)
    assert has_other(target), "the source's text was executed"
    assert all(lie.told for lie in rogue.lies), f"{rogue.lies}{done.stderr}"
    told = done.stderr if done.returncode else replica.status()["Last_SQL_Error"] + _clone_error(replica)
    assert "Traceback" not in done.stderr + replica.logs()
    assert "cannot execute a text" in told or "does not understand" in told, told


def _clone_error(replica: Replica) -> str:
    return str([row.get("Last_Error", "") for row in json.loads(replica.run("show-clone", "--json").stdout)])


@pytest.mark.parametrize("command", ["check --online", "doctor", "heartbeat", "start --until-synced"])
def test_an_answer_that_is_no_number_is_an_error_of_the_source(
    replica: Replica, source: MariadbServer, rogue: RogueSource, target: MariadbServer, command: str
) -> None:
    set_up(replica, source, rogue, target)
    rogue.lies += [
        Lie("UNIX_TIMESTAMP(NOW(6))", r"[0-9.]+", "soon"),
        Lie("SHOW BINARY LOGS", r"[0-9]+", "long"),
        Lie("SHOW MASTER STATUS", r"[0-9]+", "far"),
        Lie("SHOW BINLOG STATUS", r"[0-9]+", "far"),
    ]
    done = replica.run(*command.split(), expect=None)
    output = done.stdout + done.stderr
    assert done.returncode in (2, 6) and "Traceback" not in output and "bug" not in output, output
    assert "rplctl doctor" in output and ("ConversionSyntax" in output or "far" in output), output


def test_verify_and_repair_execute_nothing_of_source_and_files(
    replica: Replica, source: MariadbServer, rogue: RogueSource, target: MariadbServer
) -> None:
    set_up(replica, source, rogue, target)
    replica.run("clone")
    wait_until(lambda: copied(replica), 120)
    large = Lie("avg_row_length", r"\d+", str(1 << 30))  # rows of a gigabyte: a table of many pieces
    bound = Lie("LIMIT 1 OFFSET", r"\d+", f"1{EVIL}")
    rogue.lies = [large, bound]
    failed = replica.run("verify", "--tables", "shop.t", expect=None)
    assert has_other(target) and bound.told and "cannot execute a text" in failed.stderr, failed.stderr
    rogue.lies = []
    target.sql("UPDATE shop.p SET v = 9 WHERE n < 2")
    report = replica.datadir.parent / "report"
    replica.run("verify", "--report", str(report), expect=1)
    whole = report.read_text()
    for cell, evil in (("1.50", f"1) {EVIL}"), ("2024-01-01", f"' OR 1) {EVIL}")):
        report.write_text(whole.replace(cell, evil.ljust(len(cell))[: len(evil)]))
        _fit_totals(report)
        replica.run("repair", "--report", str(report), expect=None)
        assert has_other(target), evil
        assert target.sql("SELECT v FROM shop.p WHERE n < 2") == [(9,)]
    report.write_text(whole)
    replica.run("repair", "--report", str(report))
    assert target.sql("SELECT v FROM shop.p WHERE n < 2") == [(1,)]


def _fit_totals(report: Path) -> None:
    """The last line says where the totals begin."""
    lines = report.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"rows"' in line)
    last = json.loads(lines[-1]) | {"totals": sum(map(len, lines[:at]))}
    report.write_bytes(b"".join(lines[:-1]) + json.dumps(last).encode() + b"\n")
