"""What goes wrong in an operator's life: a clear error with a hint and its exit code, nothing lost, and a way on."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import rplctl.demo
from rplctl.demo import BINLOG_FOLDER
from tests.kit.process_memory import family_of
from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.small_disk import BALLAST, fill, small_disk

pytestmark = pytest.mark.slow

SCHEMA = """
DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop;
CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(200));
"""


def insert_rows(source: MariadbServer, first: int, last: int, width: int = 50) -> None:
    for start in range(first, last + 1, 200):
        rows = ", ".join(f"({n}, '{'x' * width}')" for n in range(start, min(start + 200, last + 1)))
        source.sql(f"INSERT INTO shop.t VALUES {rows}")


def test_a_second_start_is_a_note_and_changes_nothing(replica: Replica, source: MariadbServer) -> None:
    replica.set_up(source)
    replica.run("start")
    pids = replica.pid("receiver"), replica.pid("applier")
    again = replica.run("start", expect=0)
    assert "3083" in again.stderr
    assert "already running" in again.stderr
    assert (replica.pid("receiver"), replica.pid("applier")) == pids


def test_a_wrong_password_is_mysqls_1045_and_a_right_one_goes_on(replica: Replica, source: MariadbServer) -> None:
    replica.run("init")
    where = ["--master-host", source.host, "--master-port", str(source.port), "--master-user", "rpl"]
    replica.run("change-master", *where, "--password-stdin", "--master-connect-retry", "1", password="wrong")
    synced = replica.run("start", "--until-synced", expect=6)
    assert "1045" in synced.stderr
    replica.run("start", "--receiver")
    wait_until(lambda: replica.status()["Last_IO_Errno"] == 1045)
    status = replica.status()
    assert status["Slave_IO_Running"] == "Connecting"
    assert "retry-time: 1" in status["Last_IO_Error"]
    replica.run("stop")
    replica.change_master(source)
    replica.run("start", "--until-synced")
    assert_same_tables(source, replica, "shop")


def test_a_missing_folder_of_binary_logs_is_named_with_a_hint(replica: Replica, tmp_path: Path) -> None:
    replica.run("init")
    missing = tmp_path / "archive"
    answer = replica.run("change-master", "--master-binlog-dir", str(missing), expect=None)
    if answer.returncode == 0:
        answer = replica.run("start", "--until-synced", expect=6)
    assert answer.returncode in (2, 6)
    assert str(missing) in answer.stderr
    assert "hint:" in answer.stderr


@pytest.mark.long("test_a_wrong_password_is_mysqls_1045_and_a_right_one_goes_on stops at a source and goes on.")
def test_a_binary_log_that_cannot_be_read_stops_and_goes_on_once_it_can(replica: Replica, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    shutil.copytree(rplctl.demo.BINLOG_FOLDER, archive)
    second = archive / "binlog.000002"
    kept = second.read_bytes()
    second.unlink()
    second.mkdir()  # root reads everything else
    replica.run("init")
    replica.run("change-master", "--master-binlog-dir", str(archive))
    failed = replica.run("start", "--until-synced", expect=6)
    assert "binlog.000002" in failed.stderr
    second.rmdir()
    second.write_bytes(kept)
    replica.run("start", "--until-synced")
    assert replica.status()["Relay_Master_Log_File"] == "binlog.000003"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk_stops_the_receiver_and_space_lets_it_go_on(
    replica: Replica, source: MariadbServer, tmp_path: Path
) -> None:
    small = replica.datadir
    small.mkdir(mode=0o700)
    mounted = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", str(small)]
    subprocess.run(mounted, check=True)
    try:
        replica.set_up(source, "--target", f"sqlite:///{tmp_path / 'target.db'}", "--relay-log-purge", "false")
        insert_rows(source, 1, 20_000, width=150)
        replica.run("start", "--receiver")
        wait_until(lambda: "space" in replica.status()["Last_IO_Error"].lower())
        replica.run("stop", expect=None)
        subprocess.run(["mount", "-o", "remount,size=200m", str(small)], check=True)
        replica.run("start", "--until-synced")
        (small / "target.db").symlink_to(tmp_path / "target.db")
        assert_same_tables(source, replica, "shop")
    finally:
        replica.close()
        subprocess.run(["umount", "-l", str(small)], check=False)


@pytest.mark.long("test_a_full_disk_stops_the_receiver_and_space_lets_it_go_on has a full disk.")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.parametrize("free_pages", [0, 1])
def test_start_on_a_full_disk_says_so_leaves_nothing_and_starts_when_there_is_space(
    replica: Replica, tmp_path: Path, free_pages: int
) -> None:
    small = replica.datadir
    small.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k,mode=0700", "tmpfs", str(small)], check=True)
    try:
        replica.run("init", "--target", f"sqlite:///{tmp_path / 'target.db'}")
        replica.run("change-master", "--master-binlog-dir", str(BINLOG_FOLDER))
        old = replica.channel.log_path("receiver")
        old.write_text("of an earlier run\n")
        os.utime(old, (1, 1))
        room = os.statvfs(small)
        (small / "filler").write_bytes(bytes((room.f_bavail - free_pages) * room.f_frsize))
        before = {path.name for path in small.rglob("*") if path.is_file()}
        failed = replica.run("start", expect=1)
        assert failed.stderr.startswith("ERROR 1021: ") or "\nERROR 1021: " in failed.stderr, failed.stderr
        assert "No space left on device" in failed.stderr and f"df {small}" in failed.stderr
        replica.run("stop", expect=None)
        made = {path.name for path in small.rglob("*") if path.is_file()} - before
        assert not [name for name in made if not name.endswith((".lock", ".gate", ".log", ".status.json"))], made
        (small / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,size=100m", str(small)], check=True)
        if not free_pages:  # once will do: it is a Spark
            replica.run("start", "--until-synced")
            assert replica.status()["Exec_Master_Log_Pos"] > 4
    finally:
        replica.close()
        subprocess.run(["umount", "-l", str(small)], check=False)


@pytest.mark.long("tests/test_recovery.py::test_torn_at_every_byte cuts the tail everywhere.")
@pytest.mark.parametrize("damage", ["torn", pytest.param("flipped", marks=pytest.mark.torture)])
def test_a_damaged_relay_log_tail_is_fetched_again(replica: Replica, source: MariadbServer, damage: str) -> None:
    replica.set_up(source)
    replica.run("start", "--until-synced")
    insert_rows(source, 1, 500)
    replica.run("start", "--receiver")
    name, position = source.master_status()
    wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == position)
    replica.kill("receiver")
    newest = max(replica.datadir.glob("relay-bin.0*"))
    content = bytearray(newest.read_bytes())
    if damage == "torn":
        content = content[:-37]
    else:
        content[-100] ^= 4
    newest.write_bytes(content)
    replica.run("start", "--until-synced")
    assert_same_tables(source, replica, "shop")
    assert (replica.status()["Relay_Master_Log_File"], replica.status()["Exec_Master_Log_Pos"]) == (name, position)


@pytest.mark.long(
    "tests/test_recovery.py::test_relay_logs_that_have_changed_places_are_fetched_again_or_refused stays in make test.",
)
def test_by_gtid_relay_logs_lost_or_exchanged_before_anything_is_applied_are_fetched_again(
    replica: Replica, source: MariadbServer
) -> None:
    """No position says from where: the empty set of what is executed does (WL#4621)."""
    replica.set_up(source, change=["--master-use-gtid", "slave_pos"])
    insert_rows(source, 1, 400)
    replica.run("start", "--receiver")
    fetched = partial(is_fetched, replica, source)
    wait_until(fetched)
    replica.run("flush-relay-logs")
    insert_rows(source, 401, 600)
    wait_until(fetched)
    replica.run("stop")
    for path in replica.datadir.glob("relay-bin.0*"):
        path.unlink()
    replica.run("start", "--receiver")
    wait_until(fetched)
    replica.run("flush-relay-logs")
    insert_rows(source, 601, 800)
    wait_until(fetched)
    replica.run("stop")
    first, second = sorted(replica.datadir.glob("relay-bin.0*"))[:2]
    first_bytes = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(first_bytes)
    replica.run("start", "--until-synced")
    assert_same_tables(source, replica, "shop")
    assert replica.status()["Exec_Master_Log_Pos"] == source.master_status()[1]


def is_fetched(replica: Replica, source: MariadbServer) -> bool:
    status = replica.status()
    return (status["Master_Log_File"], status["Read_Master_Log_Pos"]) == source.master_status()


@pytest.mark.long("tests/stories/test_differing_tables.py has other columns in make test.")
def test_a_target_table_with_other_columns_stops_before_anything_is_written(
    replica: Replica, source: MariadbServer
) -> None:
    replica.set_up(source)
    replica.run("start", "--until-synced")
    import sqlite3

    connection = sqlite3.connect(replica.datadir / "target.db")
    connection.execute('ALTER TABLE "shop__t" RENAME COLUMN "note" TO "remark"')
    connection.commit()
    connection.close()
    before = replica.status()["Exec_Master_Log_Pos"]
    insert_rows(source, 1, 10)
    failed = replica.run("start", "--until-synced", expect=7)
    assert "1677" in failed.stderr
    assert '"note"' in failed.stderr
    assert "hint:" in failed.stderr
    status = replica.status()
    assert (status["Last_SQL_Errno"], status["Slave_SQL_Running"], status["Exec_Master_Log_Pos"]) == (
        1677,
        "No",
        before,
    )
    assert replica.query('SELECT count(*) FROM "shop__t"') == [(0,)]


def test_a_row_that_is_already_there_stops_where_mysql_would_and_skip_goes_on(
    replica: Replica, source: MariadbServer
) -> None:
    replica.set_up(source)
    replica.run("start", "--until-synced")
    import sqlite3

    connection = sqlite3.connect(replica.datadir / "target.db")
    connection.execute("INSERT INTO \"shop__t\" VALUES (2, 'mine')")
    connection.commit()
    connection.close()
    for number in (1, 2, 3):
        source.sql(f"INSERT INTO shop.t VALUES ({number}, 'theirs')")
    failed = replica.run("start", "--until-synced", expect=7)
    assert "1062" in failed.stderr
    status = replica.status()
    assert (
        "Could not execute Write_rows_v1 event on table shop.t; Duplicate entry '2' for key 'PRIMARY'"
        in (status["Last_SQL_Error"])
    )
    assert replica.query("SELECT id, note FROM shop__t ORDER BY 1") == [(1, "theirs"), (2, "mine")]
    replica.run("skip", "--yes")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id, note FROM shop__t ORDER BY 1") == [(1, "theirs"), (2, "mine"), (3, "theirs")]


@pytest.mark.spark
def test_a_full_disk_where_spark_starts_is_named_and_the_channel_goes_on_once_there_is_room(
    tmp_path: Path, source: MariadbServer
) -> None:
    """Positions are in the target, on another disk: the first that needs room is Spark's folder."""
    disk, numbers = tmp_path / "disk", "SELECT id FROM shop__t ORDER BY id"
    disk.mkdir()
    with small_disk(disk, 60):
        replica = Replica(disk)
        tables = ("--relay-log-info-repository", "table", "--master-info-repository", "table")
        replica.set_up(source, "--target", f"sqlite:///{tmp_path}/target.db", *tables)
        source.sql(SCHEMA)
        try:
            replica.run("start")
            replica.wait_synced(source)
            family = family_of([replica.pid("applier") or 0])
            replica.run("stop", "--applier")
            source.sql("INSERT INTO shop.t VALUES (1, '')")
            wait_until(lambda: replica.status()["Read_Master_Log_Pos"] == source.master_status()[1])
            replica.run("stop")
            wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))  # they remove files to the end
            fill(disk)
            replica.run("start", "--applier")
            wait_until(lambda: replica.pid("applier") is None)
            status = replica.status()
            assert (status["Last_SQL_Errno"], status["Slave_SQL_Running"]) == (1021, "No")
            assert re.search("/run/@/spark[^:]*: No space left on device$", status["Last_SQL_Error"])
            assert f"df {replica.datadir}" in status["Last_SQL_Hint"]
            assert "Traceback" not in replica.logs()
            for ballast in disk.glob(f"{BALLAST}*"):
                ballast.unlink()
            replica.run("start")
            replica.wait_synced(source)
            with closing(sqlite3.connect(tmp_path / "target.db")) as target:
                assert target.execute(numbers).fetchall() == [(1,)]
        finally:
            replica.close()


def test_half_a_character_stops_sqlite_at_its_row(replica: Replica, source: MariadbServer) -> None:
    """UCS-2 has no pairs: each half of a character is a character of its own, which UTF-8 cannot represent."""
    source.sql("CREATE TABLE shop.half (id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET ucs2)")
    replica.set_up(source)
    replica.run("start", "--until-synced")
    for number, value in ((1, "'ok'"), (2, "x'D800'"), (3, "'ok'")):
        source.sql(f"INSERT INTO shop.half VALUES ({number}, {value})")
    failed = replica.run("start", "--until-synced", expect=7)
    assert "ERROR 1366" in failed.stderr and "shop.half" in failed.stderr and "unexpected" not in failed.stderr
    assert replica.query("SELECT id, c FROM shop__half") == [(1, "ok")]
    replica.run("skip", "--yes")
    replica.run("start", "--until-synced")
    assert replica.query("SELECT id, c FROM shop__half") == [(1, "ok"), (3, "ok")]
