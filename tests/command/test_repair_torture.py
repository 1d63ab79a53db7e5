"""`rplctl repair` on targets of each kind: a thousand faults at once, and channels of each kind."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.command.test_clone import wait_cloned
from tests.command.test_clone_ladder import HARMLESS, fill, writer
from tests.command.test_repair import repaired, written
from tests.command.test_verify import Target, opened, verified
from tests.command.test_verify_torture import (
    CHANNELS,
    KEY,
    LIVING,
    ROWS,
    TURNS,
    a_thousand_faults,
    begin,
    differing,
    found_in,
    from_its_server,
    killed,
)
from tests.kit.load import Work, working
from tests.kit.postgresql_state import connect, new_database
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, PostgresqlServer
from tests.kit.torture_page import count_torture

pytestmark = [pytest.mark.slow, pytest.mark.torture]


def take_back(replica: Replica, target: Target) -> None:
    """All that was repaired, as an operator does it."""
    for folder in sorted(replica.channel.undo_folder.iterdir(), reverse=True):
        for path in sorted(folder.iterdir()):
            text = path.read_text()
            target(text.replace("\nBEGIN;", "").replace("COMMIT;", "") if text.startswith("PRAGMA") else text)


@pytest.mark.parametrize("kind", ["sqlite", "mariadb", "postgresql", "mysql"])
def test_a_thousand_faults_are_mended_and_taken_back(
    kind: str, replica: Replica, request: pytest.FixtureRequest
) -> None:
    with a_thousand_faults(kind, replica, request) as (target, wanted):
        verified(replica, expect=1)
        for points in ([], ["before_commit", "after_undo", "after_commit"]):
            for point in points:
                armed = {"RPLCTL_FAILPOINTS": f"crash_repair_{point}=kill"}
                replica.run("repair", expect=-9, environment=armed)
            rows = repaired(replica, expect=0)
            assert points or written(rows) == {"many": (TURNS, TURNS, 10 * TURNS)}
            assert verified(replica)["many"]["Equal"] == ROWS
            take_back(replica, target)
            verified(replica, expect=1)
            assert found_in(replica.channel.verify_report_path) == wanted
        assert written(repaired(replica, "--dry-run", expect=0)) == {"many": (TURNS, TURNS, 10 * TURNS)}
    count_torture("repair", f"faults in {kind}", 0, len(wanted))


@contextmanager
def opened_as(into: str, replica: Replica, request: pytest.FixtureRequest) -> Iterator[Target]:
    """`xa into …`: the position lies in a file, and commits with the target in two phases."""
    if not into.startswith("xa into "):
        with opened(into, replica, request) as target:
            yield target
        return
    server: MariadbServer = request.getfixturevalue(into.removeprefix("xa into ") + "_factory")("--skip-log-bin")
    replica.run("init", *replica.into(server), "--commit-mode", "xa")
    yield lambda sql: server.sql(f"SET NAMES utf8mb4; {sql.replace('{db}', 'living.')}")


def heat(cursor: Any) -> None:
    time.sleep(0.02)
    cursor.execute("SET SESSION binlog_row_image = MINIMAL")
    cursor.execute("UPDATE plain SET n = n + 1 WHERE id = 1000")


XA = {f"xa into {kind}": ("mariadb", (), f"xa into {kind}", (), False) for kind in ("mariadb", "mysql")}


@pytest.mark.parametrize("channel", [*CHANNELS, *XA])
def test_what_differs_is_mended_beside_writers(channel: str, replica: Replica, request: pytest.FixtureRequest) -> None:
    """With rewritten databases and columns that only the target has; some rows never rest."""
    kind, options, into, change, is_rewritten = (CHANNELS | XA)[channel]
    source: MariadbServer = request.getfixturevalue(f"{kind}_factory")(*options)
    fill(source, "living", 3000)
    with opened_as(into, replica, request) as target:
        file = replica.datadir / "rplctl.toml"
        rules = 'replicate_rewrite_db = "living->copy"\nreplicate_do_db = "copy"\n' if is_rewritten else ""
        file.write_text(f"{rules}{file.read_text()}")
        replica.change_master(source, *KEY, *change)
        replica.run("clone")
        wait_cloned(replica, 300)
        name = "copy." if is_rewritten else "{db}"
        if into != "sqlite":
            target(f"ALTER TABLE {name}plain ADD own INT DEFAULT 7; UPDATE {name}plain SET own = id WHERE id > 900")
        target(f"INSERT INTO {name}plain (id, v) VALUES (99999, ''); DELETE FROM {name}plain WHERE id = 1500")
        target(f"UPDATE {name}plain SET v = 'fault' WHERE id BETWEEN 1000 AND 1020")
        target(f"UPDATE {name}swaps SET u = NULL WHERE id = 1000; UPDATE {name}swaps SET u = 1000 WHERE id = 1001")
        target(f"UPDATE {name}swaps SET u = 1001 WHERE id = 1000")
        verified(replica, expect=1)
        works: list[Work] = [writer(1), *([] if channel in XA else [heat])]
        with working(source, "living", works, harmless=HARMLESS, pause_s=0.02):
            assert written(repaired(replica, expect=0)) == {"plain": (1, 1, 21), "swaps": (0, 0, 2)}
            assert differing(json.loads(replica.run("verify", "--json", expect=None).stdout)) == []
        replica.wait_synced(source, 120)
        verified(replica)
        if into != "sqlite":  # what is the target's own is as it was
            target(f"UPDATE {name}plain SET v = CONCAT(v, '!') WHERE id > 900 AND own <> id AND id <> 1500")
            verified(replica)


@pytest.mark.parametrize("kind", LIVING)
def test_what_differs_is_mended_though_any_process_is_killed(
    kind: str, replica: Replica, request: pytest.FixtureRequest
) -> None:
    """The receiver, the applier and each second repair, beside a writer: repeated until it is done, nothing differs."""
    of, options = LIVING[kind]
    source = from_its_server(of, request)
    fill(source, "living", 3000)
    stop, chance = threading.Event(), random.Random(5)

    def killing() -> None:
        while not stop.wait(4):
            replica.kill(chance.choice(["receiver", "applier"]))
            replica.run("start", expect=None)

    with opened(kind, replica, request) as target:
        begin(replica, source, *options)
        replica.run("clone")
        wait_cloned(replica, 300)
        target("INSERT INTO {db}plain (id, v) VALUES (99999, ''); DELETE FROM {db}plain WHERE id = 1500")
        target("UPDATE {db}plain SET v = 'fault' WHERE id BETWEEN 1000 AND 1400")
        verified(replica, expect=1)
        killer = threading.Thread(target=killing)
        ends: list[int] = []
        killer.start()
        try:
            with working(source, "living", [writer(1)], harmless=HARMLESS, pause_s=0.02):
                while (not ends or ends[-1]) and len(ends) < 20:
                    killed(replica, "repair", chance.uniform(0.5, 3))
                    ends.append(replica.run("repair", expect=None).returncode)
        finally:
            stop.set()
            killer.join()
        assert ends[-1] == 0, ends
        replica.run("start", expect=None)
        replica.wait_synced(source, 300)
        verified(replica)
    count_torture("repair", f"beside kills into {kind}", 0, len(ends))


def test_parents_are_left_where_foreign_keys_may_not_rest(
    replica: Replica, postgresql: PostgresqlServer, request: pytest.FixtureRequest
) -> None:
    """A user of PostgreSQL without the right to say so; its tables without such children are mended."""
    url = new_database(postgresql)
    name = url.rpartition("/")[2]
    postgresql.sql("DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN PASSWORD 'p'")
    postgresql.sql(f"GRANT CREATE, TEMPORARY ON DATABASE {name} TO plain")
    password = replica.datadir.parent / "password"
    password.write_text("p\n")
    password.chmod(0o600)
    shown = url.replace("rpl:rpl@", "plain@").replace("+psycopg", "")
    replica.run("init", "--target", shown, "--target-password-file", str(password))
    file, position = request.getfixturevalue("mariadb").master_status()  # other tests' rows do not fit PostgreSQL
    source = from_its_server("mariadb", request)
    source.sql(
        "CREATE TABLE parent (id INT PRIMARY KEY, v INT); INSERT INTO parent SELECT seq, seq FROM seq_1_to_60;"
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);"
        "INSERT INTO child SELECT seq, seq FROM seq_1_to_60",
        "living",
    )
    begin(replica, source, "--master-log-file", file, "--master-log-pos", str(position))
    replica.run("start")
    replica.wait_synced(source)
    with connect(url) as connection:
        connection.execute("DELETE FROM living.child WHERE id = 7; INSERT INTO living.parent VALUES (99, 99)")
        connection.execute("UPDATE living.parent SET v = 0 WHERE id = 3; INSERT INTO living.child VALUES (99, 99)")
    verified(replica, expect=1)
    rows = repaired(replica)
    assert written(rows) == {"parent": (0, 0, 0), "child": (1, 1, 0)}
    assert "GRANT SET ON PARAMETER session_replication_role" in rows["parent"]["Note"]
    postgresql.sql("GRANT SET ON PARAMETER session_replication_role TO plain")
    assert written(repaired(replica, expect=0)) == {"parent": (0, 1, 1), "child": (0, 0, 0)}
    verified(replica)
