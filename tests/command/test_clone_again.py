"""Tables are added to a channel that runs, and copied again, whatever is killed meanwhile: the ledger's steps are cut
at every named place, and each time the table ends as the source's, strictly.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rplctl.failpoint import CLONE_POINTS
from tests.command.test_clone import Compare, compare, fill, only, replica, wait_cloned, writing
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

__all__ = ["compare", "replica"]
pytestmark = [
    pytest.mark.long(
        "tests/command/test_clone.py::test_a_living_source_is_copied_and_followed_strictly holds a copy without "
        "faults; tests/clone/test_rules.py the rules."
    ),
    pytest.mark.slow,
    pytest.mark.mariadb,
]
IN_VERB = ("crash_clone_after_ledger", "crash_clone_cancel_before_ledger")
IN_RECEIVER = ("crash_clone_before_claim", "crash_clone_after_claim", "crash_clone_after_chunk")
IN_APPLIER = (
    "crash_clone_before_begin", "crash_clone_after_begin", "crash_clone_before_load", "crash_clone_after_load",
    "crash_clone_before_end", "crash_clone_after_end",
)  # fmt: skip
ALL_POINTS = (*IN_RECEIVER, *IN_APPLIER)
SOME_POINTS = ("crash_clone_after_chunk", "crash_clone_after_begin", "crash_clone_after_load", "crash_clone_before_end")


def on(*, suite: str) -> pytest.MarkDecorator:
    """`compare` of that target in the suite, of the others in a long run."""
    kinds: dict[str, list[pytest.MarkDecorator]] = {"sqlite": [], "mariadb": [], "postgresql": [pytest.mark.postgresql]}
    more = {kind: marks if kind == suite else [*marks, pytest.mark.torture] for kind, marks in kinds.items()}
    return pytest.mark.parametrize("compare", [pytest.param(k, marks=m) for k, m in more.items()], indirect=True)


def states(replica: Replica) -> dict[str, str]:
    return {row["Table_name"]: row["State"] for row in json.loads(replica.run("show-clone", "--json").stdout)}


@on(suite="mariadb")
def test_tables_are_added_and_copied_again_while_the_channel_runs(
    mariadb: MariadbServer, replica: Replica, compare: Compare
) -> None:
    fill(mariadb, "living", 500)
    replica.change_master(mariadb)
    only(replica, "living")
    replica.run("clone")
    replica.run("wait", "--state", "synced", "--timeout", "300")
    assert set(states(replica).values()) == {"done"}
    with writing(mariadb, "living", 7, 0.3):
        pids = [replica.pid(role) for role in ("receiver", "applier")]
        assert "--replace" in replica.run("clone", "--tables", "living.plain", expect=2).stderr
        refused = replica.run("clone", "--tables", "living.parent", "--replace", "--yes", expect=2).stderr
        assert "living.child references living.parent" in refused
        assert "add --yes" in replica.run("clone", "--tables", "living.plain", "--replace", expect=2).stderr
        names = "living.plain,living.parent,living.child,living.keyless"
        said = json.loads(replica.run("clone", "--tables", names, "--replace", "--yes", "--json").stdout)
        assert said[0]["Tables"] == 4
        assert wait_cloned(replica) and [replica.pid(role) for role in ("receiver", "applier")] == pids
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "living")
    mariadb.sql("USE living; DELETE FROM parent WHERE id < 100; ALTER TABLE plain ADD more INT DEFAULT 1")
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "living")


@pytest.mark.parametrize(
    "points", [SOME_POINTS, pytest.param(ALL_POINTS, marks=pytest.mark.torture)], ids=["some", "all"]
)
@on(suite="sqlite")
def test_cut_at_any_step_the_ledger_the_rows_and_the_position_are_of_one(
    mariadb: MariadbServer, replica: Replica, compare: Compare, points: Sequence[str]
) -> None:
    fill(mariadb, "living", 500)
    replica.change_master(mariadb)
    only(replica, "living")
    again = ("clone", "--tables", "living.swaps,living.self", "--replace", "--yes")
    with writing(mariadb, "living", 8, 0.3):
        replica.run("clone")
        wait_cloned(replica)
        done = replica.run(*again, expect=-9, environment={"RPLCTL_FAILPOINTS": f"{IN_VERB[0]}=kill"})
        assert done.stdout == "" and states(replica)["swaps"] != "done"
        assert replica.run("clone").returncode == 0  # looks again
        wait_cloned(replica)
        assert {*IN_VERB, *ALL_POINTS} == CLONE_POINTS
        for point in points:
            role = "receiver" if point in IN_RECEIVER else "applier"
            replica.run("crash-test", "--arm", f"{point}=kill")
            replica.run(*again)
            wait_until(lambda role=role: not replica.pid(role), 120)  # type: ignore[misc]
            replica.run("start")
            wait_cloned(replica)
    replica.wait_synced(mariadb, 120)
    compare(mariadb, "living")
    assert replica.status()["Passed_Over_Errors"] == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "replica"
    folder.mkdir(mode=0o700)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=56m,mode=0700", "tmpfs", str(folder)], check=False)
    if done.returncode:
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_makes_the_reading_end_wait_and_never_the_receiver(
    mariadb: MariadbServer, small_disk: Path, replica: Replica, tmp_path: Path
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS big; CREATE DATABASE big; CREATE TABLE big.t (id INT PRIMARY KEY, v TEXT)")
    mariadb.sql("USE big; INSERT INTO t SELECT seq, REPEAT(MD5(seq), 31) FROM seq_1_to_80000; ANALYZE TABLE t")
    replica.run("init", "--target", f"sqlite:///{tmp_path}/target.db")
    replica.change_master(mariadb)
    only(replica, "big")
    replica.run("clone")
    wait_until(lambda: list(replica.channel.clone_folder.glob("*/claim.json")), 60)
    replica.kill("applier")
    wait_until(lambda: "MiB are free" in replica.status()["Clone_Reader_State"], 60)
    assert not any(row.startswith("ERROR") for row in replica.run("show-clone").stderr.splitlines())
    mariadb.sql("CREATE TABLE big.later (id INT PRIMARY KEY)")
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == mariadb.master_status()[1], 60)
    replica.run("start")
    wait_cloned(replica)
    replica.wait_synced(mariadb, 120)
    with closing(sqlite3.connect(tmp_path / "target.db")) as target:
        assert target.execute("SELECT COUNT(*), MAX(v) FROM big__t").fetchone() == tuple(
            mariadb.sql("SELECT COUNT(*), MAX(v) FROM big.t")[0]
        )
    mariadb.sql("DROP DATABASE big")


def test_a_busy_source_is_waited_for_and_an_error_of_it_is_told_with_number_and_time(
    mariadb: MariadbServer, replica: Replica
) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS shown; CREATE DATABASE shown; CREATE TABLE shown.t (id INT PRIMARY KEY)")
    mariadb.sql(
        "INSERT INTO shown.t VALUES (1); DROP USER IF EXISTS taken@'%'; CREATE USER taken@'%' IDENTIFIED BY 'rpl'"
    )
    mariadb.sql("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO taken@'%'; GRANT SELECT ON shown.t TO taken@'%'")
    replica.run("init")
    replica.change_master(mariadb)
    replica.run("change-master", "--master-user", "taken")
    replica.run("change-filter", "--replicate-do-table", "shown.t")
    with ThreadPoolExecutor(1) as beside, closing(mariadb.connect()) as busy, busy.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        (number,) = cursor.fetchone()
        beside.submit(cursor.execute, "SELECT SLEEP(100)")
        replica.run("clone", "--max-load", "2")  # our dump of the log is one of them
        wait_until(lambda: "Threads_running is 3" in replica.status()["Clone_Reader_State"], 60)
        status = replica.status()
        assert (status["Clone_Tables"], status["Clone_Step"]) == (1, "exact")
        assert status["Slave_SQL_Running_State"].startswith("Cloning: 0 of 1 tables, ")
        mariadb.sql("REVOKE SELECT ON shown.t FROM taken@'%'")
        replica.run("clone", expect=6)
        mariadb.sql(f"KILL QUERY {number}")
    wait_until(lambda: replica.status()["Clone_Last_Errno"] == 1142, 60)
    said = replica.run("show-clone").stderr
    assert re.search(r"Note: ERROR 1142 at 20\d\d-.*SELECT", said) and "0 of 1 tables" in said, said
    found = json.loads(replica.run("check", "--json", expect=None).stdout)[0]["findings"]
    assert {"cloning", "clone_reader_error"} <= {each["code"] for each in found}
    assert replica.status()["Slave_IO_Running"] == "Yes" and replica.status()["Clone_Last_Error_Timestamp"]
    mariadb.sql("GRANT SELECT ON shown.t TO taken@'%'")
    wait_cloned(replica)
    wait_until(lambda: replica.status()["Clone_Tables"] == 0, 60)
    assert replica.status()["Clone_Last_Errno"] == 0
    doctor = replica.run("doctor", expect=None).stdout
    assert "clone reads by exact: the server reports the position" in doctor
    mariadb.sql("DROP DATABASE shown; DROP USER taken@'%'")
