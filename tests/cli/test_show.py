"""What show-status, show-channels and check print, in every layout, for threads in every state."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import one_engine, open_repositories
from rplctl.command.show_status import COLUMNS, WORKLOG_COLUMNS
from rplctl.config import load_config
from rplctl.durable import private_folder
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.status import ThreadStatus
from tests.cli.program import Program

# SHOW SLAVE STATUS of MySQL 5.7 to 8.0.21
MYSQL_57 = """
Slave_IO_State Master_Host Master_User Master_Port Connect_Retry Master_Log_File Read_Master_Log_Pos Relay_Log_File
Relay_Log_Pos Relay_Master_Log_File Slave_IO_Running Slave_SQL_Running Replicate_Do_DB Replicate_Ignore_DB
Replicate_Do_Table Replicate_Ignore_Table Replicate_Wild_Do_Table Replicate_Wild_Ignore_Table Last_Errno Last_Error
Skip_Counter Exec_Master_Log_Pos Relay_Log_Space Until_Condition Until_Log_File Until_Log_Pos Master_SSL_Allowed
Master_SSL_CA_File Master_SSL_CA_Path Master_SSL_Cert Master_SSL_Cipher Master_SSL_Key Seconds_Behind_Master
Master_SSL_Verify_Server_Cert Last_IO_Errno Last_IO_Error Last_SQL_Errno Last_SQL_Error Replicate_Ignore_Server_Ids
Master_Server_Id Master_UUID Master_Info_File SQL_Delay SQL_Remaining_Delay Slave_SQL_Running_State Master_Retry_Count
Master_Bind Last_IO_Error_Timestamp Last_SQL_Error_Timestamp Master_SSL_Crl Master_SSL_Crlpath Retrieved_Gtid_Set
Executed_Gtid_Set Auto_Position Replicate_Rewrite_DB Channel_Name Master_TLS_Version
""".split()


def say(program: Program, role: str, **status: object) -> None:
    channel = Channel("", program.datadir)
    private_folder(channel.run_folder)
    ThreadStatus(**status).write(channel.status_path(role))  # type: ignore[arg-type]


def field(program: Program, name: str) -> str:
    return program("show-status", "--field", name).out.rstrip("\n")


def test_the_columns_are_mysqls_in_its_order() -> None:
    assert len(MYSQL_57) == 57
    assert list(WORKLOG_COLUMNS) == MYSQL_57


def test_a_pipe_gets_the_vertical_layout(configured: Program) -> None:
    out = configured("show-status").out
    names = re.findall(r"^ *(\w+):", out, flags=re.MULTILINE)
    assert out.startswith("*************************** 1. row ***************************\n")
    assert names == MYSQL_57
    assert "                  Master_Host: db1\n" in out
    assert "          Read_Master_Log_Pos: 1170\n" in out
    assert "        Seconds_Behind_Master: NULL\n" in out
    assert "               Relay_Log_File: relay-bin.000001\n" in out


def test_verbose_adds_columns_at_the_end(configured: Program) -> None:
    names = re.findall(r"^ *(\w+):", configured("-v", "show-status").out, flags=re.MULTILINE)
    assert names == list(COLUMNS)


def test_source_terminology_has_mysql_8s_names(configured: Program) -> None:
    out = configured("show-status", "--terminology", "source").out
    names = re.findall(r"^ *(\w+):", out, flags=re.MULTILINE)
    assert len(names) == 60
    assert names[:2] == ["Replica_IO_State", "Source_Host"] and names[-1] == "Network_Namespace"
    assert not [name for name in names if "aster" in name or "lave" in name]


@pytest.mark.parametrize("alias", ["show-slave-status", "show-replica-status", "status"])
@pytest.mark.parametrize("flags", [["--json"], ["-f", "json"], ["--format=json"]])
def test_json_is_a_list_keyed_by_the_columns(configured: Program, alias: str, flags: list[str]) -> None:
    rows = json.loads(configured(alias, *flags).out)
    assert list(rows[0]) == list(COLUMNS)
    assert rows[0]["Read_Master_Log_Pos"] == 1170 and rows[0]["Seconds_Behind_Master"] is None


def test_the_password_is_in_no_layout(configured: Program) -> None:
    stored = (configured.datadir / "master.info").read_text()
    assert "C4nary" not in stored and "fernet:" in stored
    for flags in (["-v"], ["--json"], ["-f", "tsv"], ["-f", "table"], ["-E"]):
        out = configured("show-status", *flags).out
        assert out and "C4nary" not in out and "fernet" not in out


def test_a_thread_runs_when_its_lock_is_held_whatever_its_status_says(configured: Program) -> None:
    say(configured, "receiver", state="Waiting for master to send event", connected=True)
    say(configured, "applier", state="Reading event from the relay log")
    assert (field(configured, "Slave_IO_Running"), field(configured, "Slave_IO_State")) == ("No", "")
    assert (field(configured, "Slave_SQL_Running"), field(configured, "Slave_SQL_Running_State")) == ("No", "")
    with ExitStack() as held:
        for role in ("receiver", "applier"):
            held.enter_context(hold_lock(Channel("", configured.datadir), role))
        assert (field(configured, "slave_io_running"), field(configured, "Slave_SQL_Running")) == ("Yes", "Yes")
        assert field(configured, "Slave_IO_State") == "Waiting for master to send event"
        done = configured("show-status", "--terminology", "source", "--field", "Replica_IO_State")
        assert done.out == "Waiting for source to send event\n"
        assert configured("show-status", "--exit-code").code == 0
    assert configured("show-status", "--exit-code").code == 3


def test_connecting_shows_the_last_error_in_one_line(configured: Program) -> None:
    say(
        configured, "receiver", state="Connecting to master", last_errno=2003, last_error="no\nroute \x1b[2J",
        last_error_timestamp=1_700_000_000.0,
    )  # fmt: skip
    with hold_lock(Channel("", configured.datadir), "receiver"):
        out = configured("show-status").out
    assert "             Slave_IO_Running: Connecting\n" in out
    assert "                Last_IO_Errno: 2003\n" in out
    assert "                Last_IO_Error: no\\nroute \\x1b[2J\n" in out
    assert re.search(r"      Last_IO_Error_Timestamp: 2311\d\d \d\d:\d\d:\d\d\n", out)


def test_an_applier_that_stopped_with_an_error_says_so(configured: Program) -> None:
    say(configured, "applier", last_errno=1062, last_error="Duplicate entry", last_error_timestamp=1.0)
    row = json.loads(configured("show-status", "--json").out)[0]
    assert [row[n] for n in ("Last_Errno", "Last_SQL_Errno", "Last_Error", "Slave_SQL_Running")] == [
        1062, 1062, "Duplicate entry", "No"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("applier", "read", "receiver", "last", "expected"),
    [
        (False, 1170, {}, 0, None),
        (True, 1170, {}, 0, 0),  # everything applied
        (True, 2000, {}, 0, None),  # more was read, and nothing is known of it
        (True, 2000, {"read_timestamp": -30}, 0, 30),
        (True, 2000, {"read_timestamp": 0, "transfer_timestamp": -50}, 0, 50),
        (True, 2000, {"read_timestamp": 0, "transfer_timestamp": -50}, -100, 100),
        (True, 2000, {}, 100, 0),  # clocks differ: never negative
    ],
)
def test_seconds_behind_follows_mysqls_rule(
    configured: Program, applier: bool, read: int, receiver: dict[str, int], last: int, expected: int | None
) -> None:
    now = int(time.time())
    times = {name: now + offset for name, offset in receiver.items()}
    say(configured, "receiver", connected=True, read_log_name="binlog.000003", read_log_pos=read, **times)
    say(configured, "applier", last_event_timestamp=now + last if last else 0)
    with ExitStack() as held:
        held.enter_context(hold_lock(Channel("", configured.datadir), "receiver"))
        if applier:
            held.enter_context(hold_lock(Channel("", configured.datadir), "applier"))
        row = json.loads(configured("show-status", "--json").out)[0]
    seen = row["Seconds_Behind_Master"]
    assert seen == expected or (expected and 0 <= seen - expected <= time.time() - now)
    assert row["Read_Master_Log_Pos"] == read


def test_nothing_is_shown_as_executed_that_is_not_shown_as_read(configured: Program) -> None:
    """The receiver's word is a moment older than the record of an applier that is past the relay log it speaks of."""
    place = RelayLogInfo(relay_log_name="relay-bin.000002", relay_log_pos=900)
    with one_engine():
        relay = open_repositories(load_config(configured.datadir, ""), "").relay_log_info
        relay.flush(place.at(place.relay_log_position, BinlogPosition("binlog.000003", 1170)), force=True)
    word = {"read_log_name": "binlog.000003", "read_log_pos": 400, "relay_log_name": "relay-bin.000002"}
    say(configured, "receiver", connected=True, **word, relay_log_pos=500)
    with hold_lock(Channel("", configured.datadir), "receiver"):
        row = json.loads(configured("show-status", "--json").out)[0]
        assert row["Read_Master_Log_Pos"] == row["Exec_Master_Log_Pos"] == 1170
        say(configured, "receiver", connected=True, **word, relay_log_pos=900)
        assert json.loads(configured("show-status", "--json").out)[0]["Read_Master_Log_Pos"] == 400


def test_a_lag_of_0_needs_a_receiver_that_is_connected(configured: Program) -> None:
    """More was read than is executed (a transaction without its end), and then an error stopped the receiver."""
    ended = {"read_log_name": "binlog.000003", "read_log_pos": 2000, "last_errno": 1236, "last_error": "purged"}
    configured("change-master", "--master-log-file", "binlog.000003", "--master-log-pos", "2000")
    configured("change-master", "--relay-log-file", "relay-bin.000001", "--relay-log-pos", "4")
    say(configured, "receiver", connected=False, **ended)
    say(configured, "applier")
    with hold_lock(Channel("", configured.datadir), "applier"):
        row = json.loads(configured("show-status", "--json").out)[0]
        assert (row["Slave_SQL_Running"], row["Seconds_Behind_Master"]) == ("Yes", None)
        assert "lag" not in configured("check").out


def test_an_event_of_this_second_is_no_lag_of_0_without_a_receiver(configured: Program) -> None:
    say(configured, "receiver", read_log_name="binlog.000003", read_log_pos=2000, last_errno=1236, last_error="purged")
    say(configured, "applier", last_event_timestamp=int(time.time()) + 100)
    with hold_lock(Channel("", configured.datadir), "applier"):
        row = json.loads(configured("show-status", "--json").out)[0]
    assert (row["Slave_SQL_Running"], row["Seconds_Behind_Master"]) == ("Yes", None)


def test_two_channels_are_two_rows_and_other_commands_ask_which(configured: Program) -> None:
    assert configured("change-source", "--for-channel", "East", "--source-host", "db2").code == 0
    assert [r["Channel_Name"] for r in json.loads(configured("show-status", "--json").out)] == ["", "East"]
    assert (configured.datadir / "master-east.info").exists()
    lines = configured("show-channels").out.splitlines()
    assert lines[0].startswith("Channel_Name\tSource\t") and lines[2].startswith("East\tdb2:3306\tNo\tNo\tNULL\t")
    done = configured("change-master", "--master-delay", "5")
    assert done.code == 2 and done.err.startswith("ERROR 3079: Multiple channels exist on the slave.")
    assert configured("wait", "--state", "stopped").code == 2
    assert configured("wait", "--state", "stopped", "--channel", "east").code == 0


def test_a_damaged_channel_does_not_hide_the_others_from_the_list(configured: Program) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    (configured.datadir / "master-east.info").write_text("33\nrubbish")
    done = configured("show-channels", "--json")
    assert done.code == 0 and len(json.loads(done.out)) == 2


def test_check_speaks_to_monitoring_systems(configured: Program) -> None:
    done = configured("check")
    first, second = done.out.splitlines()
    assert (done.code, first) == (2, "RPLCTL CRITICAL - io No, sql No; found never_started")
    assert second == "CRITICAL never_started: the channel was never started; repair: rplctl start"
    say(configured, "receiver", connected=True, read_log_name="binlog.000003", read_log_pos=1170)
    with ExitStack() as held:
        for role in ("receiver", "applier"):
            held.enter_context(hold_lock(Channel("", configured.datadir), role))
        done = configured("check")
        assert (done.code, done.out) == (0, "RPLCTL OK - 0 s behind, binlog.000003:1170 | 'lag'=0s;60;300;0\n")
        assert configured("check", "--lag-critical", "0").code == 2
        say(configured, "receiver", last_error="away", last_errno=2003)
        done = configured("check")
        assert done.code == 1 and "away" in done.out


def test_check_without_a_channel_is_unknown(program: Program) -> None:
    done = program("check")
    assert done.code == 3 and done.out.startswith("RPLCTL UNKNOWN - The server is not configured as slave")


def test_doctor_lists_findings_and_exits_by_the_worst(configured: Program, tmp_path: Path) -> None:
    configured("change-master", "--master-host", "127.0.0.1", "--master-port", "1")
    done = configured("doctor", "--json")
    rows = {row["Check"]: row for row in json.loads(done.out)}
    assert done.code == 2 and rows["channel '' source"]["Result"] == "FAIL"
    assert rows["python"]["Result"] == "OK" and rows["packages"]["Result"] == "OK"
    (configured.datadir / "rplctl.key").chmod(0o644)
    assert "others can read" in configured("doctor").out


@pytest.mark.parametrize("terminology", ["master", "source"])
def test_brief_is_three_lines_a_channel(configured: Program, terminology: str) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    lines = configured("show-status", "--brief", "--terminology", terminology).out.splitlines()
    assert [line.startswith("channel '") for line in lines] == [True, False, False] * 2
    assert lines[:3] == [
        "channel '': receiver No, applier No, lag unknown",
        "  read binlog.000003:1170, applied binlog.000003:1170, relay logs 0 B",
        "  no thread runs",
    ]
    assert lines[4] == "  read nothing yet, applied nothing yet, relay logs 0 B"


def test_status_of_no_channel_is_an_empty_document(program: Program) -> None:
    program("init")
    done = program("show-status", "--json")
    assert (done.code, done.out) == (4, "[]\n") and json.loads(done.err)["Errno"] == 1200


def test_domains_that_are_left_out_are_visible(program: Program) -> None:
    program("init")
    program("change-master", "--master-host", "h", "--ignore-domain-ids", "3,5")
    [row] = json.loads(program("show-status", "--json").out)
    assert (row["Replicate_Do_Domain_Ids"], row["Replicate_Ignore_Domain_Ids"]) == ("", "3, 5")
