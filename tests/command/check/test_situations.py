"""What `check`, `doctor` and `show-status` say of a channel in each of its situations: one row, one truth.

Promise (design D22): a state that was not seen fresh is not said to be good, and what one of the three knows the others
do not deny. Asserted are exit codes and the words that carry the meaning, not the sentences.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier.report import DELAYING, LOCKED, READING
from rplctl.command.check import progress as check_progress
from rplctl.command.check.findings import LEVELS
from rplctl.config import load_config
from rplctl.own_tables.clones import ClonedTable, CopyState, add_clones
from rplctl.own_tables.tables import create_own_tables
from rplctl.repository import create_tables, open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO
from rplctl.skipped_objects import SkippedObjects
from rplctl.target import open_engine
from rplctl.verify.report_file import Header, Totals, write_report
from tests.cli.conftest import no_other_files, program
from tests.cli.program import Program
from tests.command.check.situations import END, Situation, make_synced

__all__ = ["no_other_files", "program"]
OK, WARNING, CRITICAL, UNKNOWN = range(4)


@dataclass(frozen=True)
class Row:
    name: str
    befalls: Callable[[Situation], object]
    check: int  # exit code; doctor's follows from it unless told
    codes: tuple[str, ...] = ()  # findings above a note, all of them; their repairs are not empty
    words: str = ""  # in what check prints, each
    status: dict[str, Any] = field(default_factory=dict)  # show-status; a text is looked for in a longer one
    doctor: int = -1
    exit: int = 0  # of show-status
    options: tuple[str, ...] = ()  # of check


RUNS = {"Slave_IO_Running": "Yes", "Slave_SQL_Running": "Yes"}
STOPPED = {"Slave_IO_Running": "No", "Slave_SQL_Running": "No", "Seconds_Behind_Master": None}
WORKING: dict[str, Any] = {"state": READING, "is_waiting": False}


def frozen(s: Situation, *roles: str, pending: bool = False) -> None:
    """They hold their locks and write nothing since 95 seconds."""
    s.stays()
    for role in ("receiver", "applier"):
        s.runs(role, heard=95.0 if role in roles else 0.0, **(_ahead(role) if pending else {}))


def store(s: Situation, state: CopyState) -> None:
    engine = open_engine(load_config(s.datadir).target_url)
    create_own_tables(engine)
    with engine.begin() as connection:
        first = ClonedTable(
            Database_name="d",
            Table_name="first",
            Source_database="d",
            Family=1,
            State=CopyState.DONE,
            Epoch=1,
            Chunks=1,
            Row_count=10,
            Byte_count=1000,
            Expected_bytes=1000,
        )
        add_clones(
            connection,
            "",
            [
                first,
                ClonedTable(
                    Database_name="d",
                    Table_name="second",
                    Source_database="d",
                    Family=2,
                    State=state,
                    Expected_bytes=1000,
                ),
            ],
        )
    engine.dispose()


def verified(s: Situation, *totals: Totals) -> None:
    s.run_both(behind=0)
    write_report(
        s.channel.verify_report_path,
        Header(
            channel="",
            time=time.time() - 900,
            server_id=1,
            uuid="",
            position="",
            gtids="",
            tables=(),
            verified=time.time() - 900,
        ),
        [],
        totals,
    )


def verified_long_ago(s: Situation) -> None:
    verified(s)
    s.options(max_verify_age=600)


def cancelled(s: Situation) -> None:
    s.run_both()
    store(s, CopyState.LEFT_OUT)


def copying(s: Situation, moved: float = 5.0, **reader: Any) -> None:
    """A row of the second of two tables moved so many seconds ago."""
    s.run_both()
    store(s, CopyState.COPYING)
    since = time.time() - moved
    progress = {"clone_tables": 2, "clone_done": 1, "clone_percent": 50, "clone_left": 60, "clone_moved": since}
    s.says("applier", **_live(s, "applier", **progress))
    s.says("cloner", state="Reading d.second", clone_moved=since, clone_step="exact", **reader)


def _ahead(role: str) -> dict[str, Any]:
    return {"read_log_pos": END.log_pos + 1000} if role == "receiver" else {}


def hung(s: Situation, role: str) -> None:
    """The process lives, the thread in it says nothing."""
    s.run_both()
    s.says(role, **(_live(s, role) | {"worked": time.time() - 95}))
    if role == "applier":
        s.says("receiver", **_live(s, "receiver", read_log_pos=END.log_pos + 1000))


def _live(s: Situation, role: str, **more: Any) -> dict[str, Any]:
    said = json.loads(s.channel.status_path(role).read_text())
    return {**said, "updated": time.time(), **more}


def killed(s: Situation, *roles: str, **status: Any) -> None:
    s.stopped(**{role: {"state": "Reading", "connected": True, **status} for role in roles})


def one_runs(s: Situation, role: str) -> None:
    s.stopped()
    s.runs(role)


def connecting(s: Situation, seconds: float, **status: Any) -> None:
    s.run_both()
    s.says(
        "receiver", state="Connecting to master", lost=time.time() - seconds, last_errno=2003,
        last_error="Can't connect to db1", last_error_timestamp=time.time(),
    )  # fmt: skip


def delayed(s: Situation, behind: int, remaining: int | None) -> None:
    s.run_both(behind=behind, delay=3600)
    held: dict[str, Any] = (
        {"state": DELAYING, "is_waiting": True, "remaining_delay": remaining} if remaining else WORKING
    )
    s.says("applier", last_event_timestamp=int(time.time()) - behind, **held)


def busy(s: Situation, behind: int) -> None:
    """A statement that takes long: the process is well, the thread has no time to say anything."""
    s.run_both(behind=behind)
    s.says("applier", **_live(s, "applier", worked=time.time() - behind))


def until(s: Situation) -> None:
    s.stopped(applier={"is_done": True, "until_condition": "Master", "until_log_name": END.log_name})


def both_places(s: Situation, record: Any) -> None:
    s.stopped()
    config = load_config(s.datadir)
    engine = open_engine(config.target_url)
    create_tables(engine)
    table = open_repository(record, RepositoryKind.TABLE, config, s.channel, lambda: engine)
    file = open_repository(record, RepositoryKind.FILE, config, s.channel, lambda: engine)
    table.flush(file.read(), force=True)


def target(s: Situation, *statements: str) -> None:
    connection = sqlite3.connect(s.datadir / "target.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def key_for_all(s: Any) -> None:
    key = s.channel.datadir / "rplctl.key"
    key.write_text("k")
    key.chmod(0o644)


def newer(s: Situation) -> None:
    both_places(s, MASTER_INFO)
    target(s, "DELETE FROM slave_master_info", "UPDATE rplctl_version SET version_num = '9999'")


def relay_log(s: Situation) -> Path:
    return s.datadir / "relay-bin.000001"


def damage(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(data)


def source_has(s: Situation, *names: str) -> None:
    """No other logs than these, each with the newest one's content."""
    content = (s.source / END.log_name).read_bytes()
    for path in s.source.iterdir():
        path.unlink()
    for name in names:
        (s.source / name).write_bytes(content)


def elsewhere(s: Situation) -> None:
    s.stopped()
    s.options(relay_log_info_repository="TABLE")


def cron_in_section(s: Situation) -> None:
    (s.datadir / "rplctl.toml").write_text('[channel.""]\nrun_mode = "cron"\nmax_sync_age = 60\n')
    s.synced(90)


def running(change: Callable[[Situation], object]) -> Callable[[Situation], object]:
    """In step, and then that."""
    return lambda s: (s.run_both(), change(s))


def halted(change: Callable[[Situation], object]) -> Callable[[Situation], object]:
    return lambda s: (s.stopped(), change(s))


BOTH_STOPPED = ("receiver_stopped", "applier_stopped")
ONLINE = ("--online",)

ROWS = [
    # there is nothing yet
    Row("no instance", lambda s: shutil.rmtree(s.datadir), UNKNOWN, words="not configured", doctor=2, exit=4),
    Row("reset all", lambda s: s.ask("reset", "--all", "--yes"), UNKNOWN, words="not configured", doctor=1, exit=4),
    Row("never started", lambda s: shutil.rmtree(s.channel.run_folder), CRITICAL, ("never_started",), "rplctl start",
        STOPPED, doctor=0),
    Row("configured anew", lambda s: s.ask("change-master", "--master-host", "h", "--master-port", "1"), CRITICAL,
        ("never_started", "edited_by_hand"), doctor=2),
    # run from cron
    Row("cron, synced just now", lambda s: s.synced(5), OK, words="synced ago to binlog.000003:15490 'sync_age'=",
        status={**STOPPED, "Last_Synced_To": str(END), "Last_Error": ""}),
    Row("cron, synced of late", lambda s: s.synced(3500), OK, words="synced"),
    Row("cron, one run missed", lambda s: s.synced(5400), WARNING, ("sync_old",), "last synced ago within 3600 s"),
    Row("cron, two runs missed", lambda s: s.synced(10800), CRITICAL, ("sync_too_old",), "last synced ago"),
    Row("cron, age of the channel's section", cron_in_section, WARNING, ("sync_old",), "within 60 s"),
    Row("cron, age given by hand", lambda s: s.synced(90), CRITICAL, ("sync_too_old",), "within 30 s", doctor=0,
        options=("--max-sync-age", "30")),
    Row("cron, never synced", lambda s: (s.never_synced(), s.options(run_mode="cron")), CRITICAL,
        ("never_synced",), "start --until-synced", {"Last_Synced_To": "", "Last_Synced_Timestamp": ""}),
    Row("cron, a run under way", lambda s: (s.synced(50), s.runs("receiver"), s.runs("applier", **WORKING)), OK,
        words="synced ago", status=RUNS),
    Row("cron, a run that hangs", lambda s: (s.synced(50), s.runs("receiver"), s.runs("applier", heard=95)), CRITICAL,
        ("applier_silent",)),
    Row("cron, the last run failed", lambda s: s.says("applier", last_errno=1062, last_error="Duplicate entry"),
        CRITICAL, ("applier_error",), "Duplicate entry", {"Last_SQL_Errno": 1062, "Slave_SQL_Running": "No"}),
    Row("cron, the last run was killed", lambda s: s.says("applier", state="Reading"), CRITICAL, ("applier_killed",),
        "killed", {"Last_SQL_Errno": 1105, "Last_SQL_Error": "killed"}),
    Row("cron, and its threads are to run all the time", lambda s: s.options(run_mode="always"), CRITICAL,
        BOTH_STOPPED, doctor=1),
    Row("synced by hand and then started to stay", lambda s: s.stays(), CRITICAL, BOTH_STOPPED,
        "applied everything from the source", doctor=1),
    Row("the record of the last sync is rubbish", lambda s: (s.channel.run_folder / "synced.json").write_bytes(b"\xff"),
        CRITICAL, BOTH_STOPPED, doctor=1),
    # threads that run
    Row("in step", lambda s: s.run_both(), OK, words=f"0 s behind {END} 'lag'=0s;60;300;0",
        status={**RUNS, "Seconds_Behind_Master": 0}),
    Row("receiver frozen", lambda s: frozen(s, "receiver"), CRITICAL, ("receiver_silent",), "does not report since",
        {"Slave_IO_Running": "Connecting", "Slave_IO_State": "nothing reported since", "Seconds_Behind_Master": None}),
    Row("applier frozen, and more has come", lambda s: frozen(s, "applier", pending=True), CRITICAL,
        ("applier_silent", "lag_warning"), "does not report since",
        {"Slave_SQL_Running": "Yes", "Slave_SQL_Running_State": "nothing reported", "Seconds_Behind_Master": 95}),
    Row("applier frozen in step", lambda s: frozen(s, "applier"), CRITICAL, ("applier_silent",), "does not report",
        {"Seconds_Behind_Master": None}),
    Row("both frozen", lambda s: frozen(s, "receiver", "applier"), CRITICAL, ("receiver_silent", "applier_silent"),
        status={"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": None}),
    Row("receiver hangs in a process that lives", lambda s: hung(s, "receiver"), CRITICAL, ("receiver_silent",),
        status={"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": None}),
    Row("applier hangs in a process that lives", lambda s: hung(s, "applier"), CRITICAL,
        ("applier_silent", "lag_warning"), status={"Seconds_Behind_Master": 95}),
    Row("heard of in the future", lambda s: (s.stays(), s.runs("receiver"), s.runs("applier", heard=-7200)), CRITICAL,
        ("applier_silent",)),
    Row("started a moment ago, the status is of the run before",
        lambda s: (s.stays(), s.runs("receiver"), s.runs("applier", heard=9000, locked=1)), OK),
    Row("a long statement", lambda s: busy(s, 40), OK, words="s behind", status={"Seconds_Behind_Master": 40}),
    Row("a statement that takes too long", lambda s: busy(s, 400), CRITICAL, ("lag_critical",), "s behind"),
    Row("lagging", lambda s: s.run_both(behind=90), WARNING, ("lag_warning",), "s behind",
        {**RUNS, "Seconds_Behind_Master": 90}),
    Row("lagging far", lambda s: s.run_both(behind=400), CRITICAL, ("lag_critical",), "s behind"),
    Row("lagging, with limits of its own", lambda s: s.run_both(behind=400), OK, words="s;500;900;0",
        options=("--lag-warning", "500", "--lag-critical", "15m"), doctor=2),
    Row("tables are copied", copying, WARNING, ("cloning",), "1 of 2 tables are copied, 50 %",
        {"Slave_SQL_Running_State": "Cloning: 1 of 2 tables, 50 %", "Clone_Seconds_Left": 60, "Clone_Step": "exact"}),
    Row("a copy of tables stands still", lambda s: copying(s, 700), CRITICAL, ("clone_stuck",), "no row has moved"),
    Row("a copy of tables cannot read", lambda s: copying(s, 5, last_errno=1142, last_error="SELECT command denied"),
        WARNING, ("clone_reader_error", "cloning"), "SELECT command denied", {"Clone_Last_Errno": 1142}),
    Row("a copy of tables was cancelled", cancelled, WARNING, ("clone_left_out",),
        "left out: d.second", {"Clone_Tables": 0, "Slave_SQL_Running_State": "Slave has read"}),
    Row("verified, and rows differ",
        lambda s: verified(s, Totals(database="d", table="t", rows=9, equal=7, missing=2)), CRITICAL,
        ("verify_differs",), "2 rows that differ, in d.t"),
    Row("never verified", lambda s: s.run_both(behind=0), WARNING, ("verify_old",), "the channel was never verified",
        options=("--max-verify-age", "10m"), doctor=0),
    Row("verified long ago", verified_long_ago, WARNING, ("verify_old",), "the last complete verify was at"),
    Row("held by FLUSH TABLES WITH READ LOCK", lambda s: (s.run_both(behind=70), s.says("applier", state=LOCKED,
        last_event_timestamp=int(time.time()) - 70)), WARNING, ("lag_warning",),
        status={"Slave_SQL_Running_State": LOCKED}),
    Row("delayed, within its delay", lambda s: delayed(s, 3000, 600), OK, words="MASTER_DELAY 3600 s;3660;3900;0",
        status={"SQL_Delay": 3600, "SQL_Remaining_Delay": 600, "Seconds_Behind_Master": 3000}),
    Row("delayed, beyond its delay", lambda s: delayed(s, 3700, None), WARNING, ("lag_warning",), "MASTER_DELAY"),
    Row("delayed, far beyond", lambda s: delayed(s, 4000, None), CRITICAL, ("lag_critical",), "s behind"),
    Row("no connection for a moment", lambda s: connecting(s, 10), WARNING, ("receiver_connecting",), "Can't connect",
        {"Slave_IO_Running": "Connecting", "Last_IO_Errno": 2003, "Seconds_Behind_Master": None}),
    Row("no connection for long", lambda s: connecting(s, 900), CRITICAL, ("receiver_not_connected",), "Can't connect",
        {"Slave_IO_Running": "Connecting", "Seconds_Behind_Master": None}),
    Row("the applier waits for its target", running(lambda s: s.says("applier", state="Waiting for the target",
        last_errno=2002, last_error="target away", last_error_timestamp=time.time())), WARNING, ("applier_retrying",),
        "target away", {"Slave_SQL_Running": "Yes", "Last_SQL_Errno": 2002}),
    Row("the applier waits for executors", running(lambda s: s.says("applier", state="Waiting for executors: 0 of 2")),
        WARNING, ("no_executors",), "0 of 2", {"Slave_SQL_Running_State": "Waiting for executors: 0 of 2"}),
    # threads that do not
    Row("stopped by the operator", lambda s: s.stopped(), CRITICAL, BOTH_STOPPED, "was stopped at rplctl start",
        {**STOPPED, "Last_Error": "", "Slave_IO_State": ""}, doctor=1),
    Row("only the receiver stopped", lambda s: one_runs(s, "applier"), CRITICAL, ("receiver_stopped",),
        "start --receiver",
        {"Slave_IO_Running": "No", "Slave_SQL_Running": "Yes", "Seconds_Behind_Master": None}, doctor=1),
    Row("only the applier stopped", lambda s: one_runs(s, "receiver"), CRITICAL, ("applier_stopped",),
        "start --applier",
        {"Slave_IO_Running": "Yes", "Slave_SQL_Running": "No", "Seconds_Behind_Master": None}, doctor=1),
    Row("UNTIL reached", until, CRITICAL, BOTH_STOPPED, "reached its UNTIL", {"Until_Condition": "Master"}, doctor=1),
    Row("receiver killed", lambda s: killed(s, "receiver"), CRITICAL, ("receiver_killed", "applier_stopped"),
        "receiver was killed at about", {**STOPPED, "Last_IO_Errno": 1105, "Last_IO_Error": "killed"}),
    Row("applier killed", lambda s: (s.stays(), s.runs("receiver"), s.says("applier", heard=20, state="Reading")),
        CRITICAL, ("applier_killed",), "applier was killed at about",
        {"Slave_IO_Running": "Yes", "Last_SQL_Errno": 1105, "Last_SQL_Error": "killed", "Seconds_Behind_Master": None}),
    Row("both killed", lambda s: killed(s, "receiver", "applier"), CRITICAL, ("receiver_killed", "applier_killed"),
        status=STOPPED),
    Row("killed after an error", lambda s: killed(s, "receiver", last_errno=2003, last_error="no route"), CRITICAL,
        ("receiver_killed", "applier_stopped"), "killed last error was 2003 no route"),
    Row("wrong password", lambda s: s.failed("receiver", 1045, "Access denied for user 'repl'"), CRITICAL,
        ("receiver_error", "applier_stopped"), "Access denied", {**STOPPED, "Last_IO_Errno": 1045}),
    Row("what is needed is purged", lambda s: s.failed("receiver", 1236, "could not find first log file"), CRITICAL,
        ("receiver_error", "applier_stopped"), "could not find", {"Last_IO_Errno": 1236}),
    Row("a gap in the GTIDs", lambda s: s.failed("receiver", 1236, "requested GTID is not in the binlog"), CRITICAL,
        ("receiver_error", "applier_stopped"), "GTID is not in"),
    Row("a clone with our server id", lambda s: s.failed("receiver", 1236, "a slave with the same server_id"), CRITICAL,
        ("receiver_error", "applier_stopped"), "same server_id"),
    Row("duplicate key", lambda s: s.failed("applier", 1062, "Duplicate entry '1'"), CRITICAL,
        ("receiver_stopped", "applier_error"), "Duplicate entry", {"Last_SQL_Errno": 1062, "Last_Errno": 1062}),
    Row("row not found", lambda s: s.failed("applier", 1032, "Can't find record"), CRITICAL,
        ("receiver_stopped", "applier_error"), "Can't find record", {"Last_SQL_Errno": 1032}),
    Row("disk full at the last write", lambda s: s.failed("receiver", 1021, "Disk full"), CRITICAL,
        ("receiver_error", "applier_stopped"), "Disk full"),
    # what the operator has done
    Row("a skip is pending", running(lambda s: (s.channel.run_folder / "skip_counter").write_text("3\n")), OK,
        words="skip_pending 3 transactions rplctl stop --applier; rplctl skip 0", status={"Skip_Counter": 3}),
    Row("the target cannot have some objects", running(lambda s: SkippedObjects(s.channel).add(
        [("trigger", "d", "a"), ("trigger", "d", "b"), ("view", "d", "v")])), OK,
        words="not_carried_out: not carried out: 2 triggers, 1 view rplctl history"),
    Row("a GTID is to be skipped", running(lambda s: (s.channel.run_folder / "skip_gtids").write_text("0-1-9\n")), OK,
        words="skip_pending 0-1-9 skip 0; rplctl start --applier (cancels", status={"Skip_Gtids": "0-1-9"}),
    Row("a filter was changed", running(lambda s: s.options(replicate_ignore_db="test")), OK,
        status={"Replicate_Ignore_DB": "test"}),
    Row("a switch was cut off", halted(lambda s: (s.channel.run_folder / "switch-master-info.json").write_text("{}")),
        CRITICAL, (*BOTH_STOPPED, "switch_interrupted"), "finishes it", doctor=1),
    Row("a change was cut off", halted(lambda s: (s.channel.run_folder / "change_master.pending").write_text("{}")),
        CRITICAL, (*BOTH_STOPPED, "change_interrupted"), "finishes it", doctor=1),
    # repositories
    Row("MasterInfo in both places", lambda s: both_places(s, MASTER_INFO), CRITICAL,
        (*BOTH_STOPPED, "repository_both"), "the next start refuses"),
    Row("RelayLogInfo in both places", lambda s: both_places(s, RELAY_LOG_INFO), CRITICAL,
        (*BOTH_STOPPED, "repository_both"), "the next start refuses"),
    Row("RelayLogInfo in the other place", elsewhere, UNKNOWN, words="repository_elsewhere moves it", exit=1),
    Row("no RelayLogInfo", halted(lambda s: s.channel.relay_log_info_path.unlink()), CRITICAL,
        (*BOTH_STOPPED, "repository_missing"), f"position in the target is {END} start (creates the record)",
        {"Exec_Master_Log_Pos": 0}),
    Row("no MasterInfo", halted(lambda s: s.channel.master_info_path.unlink()), CRITICAL, ("repository_missing",),
        f"not configured no MasterInfo {END} change-master", exit=4),
    Row("MasterInfo damaged", halted(lambda s: s.channel.master_info_path.write_text("33\nrubbish")), CRITICAL,
        ("repository_damaged",), "master.info", exit=1),
    Row("RelayLogInfo damaged", halted(lambda s: s.channel.relay_log_info_path.write_text("9\n./../x\n")), CRITICAL,
        ("repository_damaged",), "relay-log.info", exit=1),
    Row("MasterInfo open to others", running(lambda s: s.channel.master_info_path.chmod(0o644)), CRITICAL,
        ("file_mode",), "others can read it chmod 600"),
    Row("key open to others", halted(key_for_all), CRITICAL, (*BOTH_STOPPED, "file_mode"),
        "rplctl.key others can read it chmod 600"),
    Row("tables of a newer rplctl", newer, CRITICAL, (*BOTH_STOPPED, "tables_newer"), "version 9999 install"),
    # relay log
    Row("relay log gone", halted(lambda s: relay_log(s).unlink()), CRITICAL, (*BOTH_STOPPED, "relay_log_missing"),
        "not on disk", doctor=1),
    Row("relay log not listed", halted(lambda s: shutil.copy(relay_log(s), s.datadir / "relay-bin.000007")), CRITICAL,
        (*BOTH_STOPPED, "relay_log_not_listed"), doctor=1),
    Row("index edited", halted(lambda s: s.channel.relay_log_index_path.write_text("/etc/x\n./relay-bin.000001\n")),
        CRITICAL, (*BOTH_STOPPED, "relay_index_edited"), doctor=1),
    Row("relay log torn", halted(lambda s: relay_log(s).write_bytes(relay_log(s).read_bytes() + b"half an event")),
        CRITICAL, (*BOTH_STOPPED, "relay_log_torn"), "13 bytes", doctor=1),
    Row("relay log's head damaged", halted(lambda s: damage(relay_log(s), 0)), CRITICAL,
        (*BOTH_STOPPED, "relay_position_inside_event", "relay_log_torn"), "uses Exec_Master_Log_Pos", doctor=1),
    Row("position past the end", halted(lambda s: s.relay(relay_log_pos=1 << 30)), CRITICAL,
        (*BOTH_STOPPED, "relay_position_past_end"), doctor=1),
    Row("position inside an event", halted(lambda s: s.relay(relay_log_pos=369_140)), CRITICAL,
        (*BOTH_STOPPED, "relay_position_inside_event"), doctor=1),
    Row("read is behind executed", halted(lambda s: s.master(master_log_pos=4)), CRITICAL,
        (*BOTH_STOPPED, "read_behind_executed"), doctor=1),
    Row("file behind the marker", halted(lambda s: target(s, "UPDATE rplctl_commit_marker SET File_in_step = 0",
        "UPDATE rplctl_commit_marker SET Master_log_pos = Master_log_pos + 100")), CRITICAL, BOTH_STOPPED, doctor=1),
    # target
    Row("target's file gone", halted(lambda s: (s.datadir / "target.db").unlink()), CRITICAL,
        (*BOTH_STOPPED, "target_lost"), "is lost", {"Target_State": "target_lost"}, doctor=2),
    Row("target away", running(lambda s: s.options(target="mysql://u@127.0.0.1:1/")), CRITICAL, ("target_away",),
        "127.0.0.1", doctor=2),
    Row("target is no database", halted(lambda s: (s.datadir / "target.db").write_bytes(b"rubbish" * 999)), CRITICAL,
        (*BOTH_STOPPED, "target_away")),
    Row("a table of the target is missing", running(lambda s: target(s, "DROP TABLE shop__products")), CRITICAL,
        ("table_missing",), "shop.products"),
    Row("a table of the target differs", running(lambda s: target(s, "DROP TABLE shop__products",
        "CREATE TABLE shop__products (other INT)")), CRITICAL, ("table_differs",)),
    # source
    Row("source's folder gone", running(lambda s: shutil.rmtree(s.source)), CRITICAL, ("source_away",), options=ONLINE),
    Row("source purged what is needed", running(lambda s: source_has(s, "binlog.000009")), CRITICAL,
        ("source_purged", "receiver_stuck"),
        "binlog.000003 folder", options=ONLINE),
    Row("source lost what it had sent", running(lambda s: os.truncate(s.source / "binlog.000003", 5000)), CRITICAL,
        ("source_past_end",), "past the end", options=ONLINE),
    Row("source is ahead and nobody reads", halted(lambda s: source_has(s, "binlog.000003", "binlog.000004")),
        CRITICAL, BOTH_STOPPED, f"source_ahead binlog.000004 read is {END}", doctor=1, options=ONLINE),
    Row("receiver reads nothing although there is more", lambda s: (s.stays(), s.runs("receiver", read_log_pos=5000),
        s.runs("applier")), CRITICAL, ("receiver_stuck",), f"ends at {END} 10490 bytes behind", options=ONLINE),
    # files
    Row("options are no TOML", lambda s: (s.datadir / "rplctl.toml").write_text("= 1"), UNKNOWN, words="rplctl.toml",
        doctor=2, exit=78),
    Row("an option that is none", lambda s: (s.datadir / "rplctl.toml").write_text("run_modus = 1"), UNKNOWN,
        words="unknown option", doctor=2, exit=78),
    Row("options open to others", lambda s: (s.datadir / "rplctl.toml").chmod(0o644), OK, doctor=2),
    Row("status files are rubbish", lambda s: (s.stays(), [s.channel.status_path(role).write_bytes(b"\xff{")
        for role in ("receiver", "applier")]), CRITICAL, BOTH_STOPPED, doctor=1),
    Row("instance folder open to others", lambda s: s.datadir.chmod(0o755), OK, doctor=1),
    Row("another channel is meant than there is", lambda s: None, UNKNOWN, words="does not exist", exit=4, doctor=2,
        options=("--channel", "nosuch")),
]  # fmt: skip
ASSERTED = {code for row in ROWS for code in row.codes} | {"skip_pending", "source_ahead"}


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_synced(tmp_path_factory.mktemp("synced"))


@pytest.fixture
def situation(synced: Path, tmp_path: Path, program: Program) -> Iterator[Situation]:
    made = Situation(synced, tmp_path, Program(tmp_path / "replica", program.capture))
    yield made
    made.held.close()


def test_the_table_has_sixty_situations_of_different_names() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 60


def _rows() -> Iterator[Any]:
    """Each row; those with the findings of an earlier one are in the long part."""
    long = pytest.mark.long("A row with the same findings stays in make test.")
    seen: set[tuple[object, ...]] = set()
    for row in ROWS:
        findings_of_row = (row.codes, row.check, row.exit)
        yield pytest.param(row, id=row.name, marks=[long] if findings_of_row in seen else [])
        seen.add(findings_of_row)


@pytest.mark.slow
@pytest.mark.parametrize("row", list(_rows()))
def test_check_doctor_and_show_status_say_what_is(
    situation: Situation, row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_progress, "PATIENCE_S", 0.2)
    row.befalls(situation)
    meant = row.options if row.options[:1] == ("--channel",) else ()
    printed = situation.ask("check", *row.options)
    assert printed.code == row.check, printed
    first = printed.out.partition(" - ")[0]
    assert first == f"RPLCTL {('OK', 'WARNING', 'CRITICAL', 'UNKNOWN')[row.check]}"
    for word in row.words.split():
        assert word in printed.out, (word, printed.out)
    found = findings(situation, row.options) if row.check != UNKNOWN else []
    assert {f["code"] for f in found if f["level"] != "OK"} == set(row.codes), printed.out
    assert all(f["text"] and f["repair"] for f in found)
    shown = situation.ask("show-status", "--json", *meant)
    assert shown.code == row.exit, shown
    if row.status:
        assert_fields(json.loads(shown.out)[0], row.status)
    doctored(situation, row, meant, found)


def findings(situation: Situation, options: tuple[str, ...]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(situation.ask("check", "--json", *options).out)[0]["findings"]
    return found


def assert_fields(shown: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        seen = shown[name]
        if isinstance(value, str) and value:
            assert value in seen, (name, seen)
        elif name == "Seconds_Behind_Master" and value:
            assert value <= seen < value + 60, (name, seen)
        else:
            assert seen == value, (name, seen)


def doctored(situation: Situation, row: Row, meant: tuple[str, ...], found: list[dict[str, Any]]) -> None:
    """Every finding of check is there, with its repair, and the exit code is that of the worst."""
    done = situation.ask("doctor", "--json", *meant)
    assert done.code == (row.doctor if row.doctor >= 0 else (0, 1, 2, 2)[row.check]), done.out
    if row.check == UNKNOWN:
        return
    rows = {entry["Check"]: entry for entry in json.loads(done.out)}
    limits = {"--max-sync-age", "--max-verify-age", "--lag-warning"}
    scope = () if limits.intersection(row.options) else row.options
    for finding in found if scope == row.options else findings(situation, scope):
        if scope or row.options == ():
            told = rows.get(f"channel '' {finding['code']}")
            if finding["code"] == "source_away":  # doctor asks by itself and says it so
                assert rows["channel '' source"]["Result"] == "FAIL"
            else:
                assert told and told["Hint"] == finding["repair"], (finding, rows)


@pytest.mark.long("The other situations of this file stay in make test.")
@pytest.mark.slow
def test_a_receiver_that_reads_and_cannot_keep_up_is_a_warning(situation: Situation) -> None:
    situation.run_both()
    is_over = threading.Event()

    def read_slowly() -> None:
        for position in range(5000, 10000):
            situation.says("receiver", **_live(situation, "receiver", read_log_pos=position))
            if is_over.wait(0.05):
                return

    reading = threading.Thread(target=read_slowly)
    situation.says("receiver", **_live(situation, "receiver", read_log_pos=4999))
    reading.start()
    try:
        found = {f["code"]: f for f in findings(situation, ("--online",))}
    finally:
        is_over.set()
        reading.join()
    assert found["receiver_behind"]["level"] == "WARNING" and f"ends at {END}" in found["receiver_behind"]["text"]


AS_NOBODY = """
import os, sys
from importlib import import_module
from pkgutil import walk_packages
from rplctl import cli, command
from rplctl.cli import run
import difflib, encodings.utf_16_be, getpass, shlex, sqlite3, typing
for package in (cli, command):
    for found in walk_packages(package.__path__, package.__name__ + "."):
        import_module(found.name)
os.setgroups([]), os.setgid(65534), os.setuid(65534)
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.long("tests/test_log_status.py has another user in make test.")
@pytest.mark.slow
def test_another_user_is_told_so_and_monitoring_gets_an_unknown_not_a_warning(situation: Situation) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    for verb, code, stream in (("check", UNKNOWN, "stdout"), ("doctor", 2, "stdout"), ("show-status", 1, "stderr")):
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, "--datadir", str(situation.datadir), verb],
            env={**os.environ, "HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        told = getattr(done, stream)
        assert done.returncode == code and "Permission denied" in told and "Traceback" not in done.stderr, done
        assert "UNKNOWN" in told if verb == "check" else "owner of the folder, who must run this command" in told


@pytest.mark.slow
def test_a_full_disk_is_critical_and_a_failure(situation: Situation) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    situation.run_both()
    situation.held.close()
    kept = situation.datadir.with_name("kept")
    situation.datadir.rename(kept)
    situation.datadir.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(situation.datadir)], check=True)
    try:
        shutil.copytree(kept, situation.datadir, dirs_exist_ok=True)
        situation.run_both()
        printed = situation.ask("check")
        assert printed.code == CRITICAL and "disk_full" in printed.out and "free some space" in printed.out
        rows = {row["Check"]: row["Result"] for row in json.loads(situation.ask("doctor", "--json").out)}
        assert rows["free space"] == rows["channel '' disk_full"] == "FAIL"
        assert situation.ask("show-status", "--exit-code").code == 0
    finally:
        situation.held.close()
        subprocess.run(["umount", "-l", str(situation.datadir)], check=False)


@pytest.mark.slow
def test_a_part_that_cannot_be_looked_at_is_a_finding_and_hides_no_other(situation: Situation) -> None:
    situation.run_both()
    situation.channel.relay_log_index_path.unlink()
    situation.channel.relay_log_index_path.mkdir()
    situation.channel.master_info_path.chmod(0o644)
    assert {"cannot_look", "file_mode"} <= {finding["code"] for finding in findings(situation, ())}
    assert "cannot_look" in situation.ask("doctor").out and situation.ask("check").code == CRITICAL


def test_every_finding_about_threads_is_in_the_table() -> None:
    about_threads = [code for code in LEVELS if code.startswith(("receiver_", "applier_", "lag_", "sync_", "never_"))]
    assert set(about_threads) - ASSERTED == {"receiver_behind"}  # the test above
