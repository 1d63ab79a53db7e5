"""Several channels on the command line: errors 3074 to 3086, one bad channel among good ones, 256 of them."""

from __future__ import annotations

import json
import sqlite3
import time
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from rplctl.channel import Channel, hold_lock
from rplctl.command.process.child import ServesOthers
from rplctl.command.stop import StopResult
from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.plain_file import read_plain
from rplctl.repository.file import FileRepository
from rplctl.repository.record import MASTER_INFO
from rplctl.target import open_engine
from tests.cli.program import Outcome, Program

SKIP_COUNTER = (
    "ERROR 3086: When sql_slave_skip_counter > 0, it is not allowed to start more than one SQL thread by using "
    "'START SLAVE [SQL_THREAD]'. Value of sql_slave_skip_counter can only be used by one SQL thread at a time. Please "
    "use 'START SLAVE [SQL_THREAD] FOR CHANNEL' to start the SQL thread which will use the value of "
    "sql_slave_skip_counter.\n"
)
SEVERAL = "ERROR 3079: Multiple channels exist on the slave. Please provide channel name as an argument.\n"


def make(program: Program, *names: str) -> None:
    for name in names:
        done = program("change-master", "--channel", name, "--master-host", "db1", "--master-log-file", "bin.000001")
        assert done.code == 0, done.err


@pytest.fixture
def several(program: Program) -> Program:
    make(program, "east", "north", "west")
    return program


def first_line(done: Outcome) -> tuple[int, str]:
    return done.code, done.err.splitlines(keepends=True)[0]


@pytest.mark.parametrize("kind", ["FILE", "TABLE"])
def test_a_channel_is_the_same_in_any_letter_case(program: Program, kind: str) -> None:
    """MariaDB and MySQL ignore the letter case of a channel's name. For SQLite, it makes two rows."""
    program("init", "--master-info-repository", kind, "--relay-log-info-repository", kind)
    make(program, "East")
    done = program("change-master", "--channel", "eAST", "--master-port", "3307")
    assert done.code == 0 and "channel 'East' reads from db1:3307" in done.out, done.out + done.err
    assert program("stop", "--channel", "east").code == 0
    for name, table in (("east", "a.b"), ("EAST", ""), ("East", "a.c"), ("east", "a.d")):
        assert program("change-filter", "--channel", name, "--replicate-ignore-table", table).code == 0
    shown = program("show-status", "--channel", "EAST", "--field", "Replicate_Ignore_Table")
    assert shown.out == "a.d\n"
    assert [row["Channel_Name"] for row in json.loads(program("show-channels", "--json").out)] == ["East"]
    assert program("reset", "--all", "--channel", "eaST", "--yes").code == 0
    assert program("show-channels", "--json").out == "[]\n"
    assert "channel" not in tomllib.loads((program.datadir / "rplctl.toml").read_text())


def test_each_error_of_channels_has_the_servers_number_text_and_one_exit_code(several: Program) -> None:
    found = first_line(several("stop", "--channel", "nope"))
    assert found == (4, "ERROR 3074: Slave channel 'nope' does not exist.\n")
    found = first_line(several("change-master", "--channel", "x" * 65, "--master-host", "h"))
    assert found == (2, "ERROR 3076: Couldn't create channel: Channel name is either invalid or too long.\n")
    for line in ("change-master --master-host h", "wait --state running", "show-relaylog-events", "skip --gtid 0-1-1"):
        assert first_line(several(*line.split())) == (2, SEVERAL), line
    assert first_line(several("skip", "1", "--yes")) == (2, SKIP_COUNTER)
    several("reset", "--channel", "north", "--yes")
    with hold_lock(Channel("west", several.datadir), "receiver"):
        for line in ("reset --yes", "switch-repo --to table", "change-master --master-auto-position 1"):
            found = first_line(several(*line.split(), "--channel", "west"))
            assert found == (
                2,
                "ERROR 3081: This operation cannot be performed with running replication threads; "
                "run STOP SLAVE FOR CHANNEL 'west' first\n",
            )


def test_several_channels_may_be_files(several: Program) -> None:
    """What the server refuses with 3077 is one of the things that work here (design D3)."""
    assert {path.name for path in several.datadir.glob("master-*.info")} == {
        *("master-east.info", "master-north.info", "master-west.info")
    }


def test_several_channels_may_read_one_server_as_in_mysql_9(several: Program) -> None:
    """3075, which MySQL keeps a text for, is raised by nobody."""
    for name in ("east", "west"):
        assert several("change-master", "--channel", name, "--master-host", "db9", "--master-port", "3399").code == 0
    assert [line["Source"] for line in json.loads(several("show-channels", "--json").out)].count("db9:3399") == 2


def test_a_command_for_all_does_what_it_can_and_names_the_channel_that_it_could_not(several: Program) -> None:
    (several.datadir / "master-north.info").write_bytes(b"rubbish\n")
    done = several("show-status", "--json")
    assert [row["Channel_Name"] for row in json.loads(done.out)] == ["east", "west"]
    error = json.loads(done.err)
    assert done.code != 0 and (error["Errno"], error["Channel_Name"]) == (1201, "north")
    done = several("stop", "--all")
    assert "channel 'east': nothing stopped" in done.out and "channel 'west': nothing stopped" in done.out
    lines = json.loads(several("show-channels", "--json").out)
    assert [bool(line["Last_Error"]) for line in lines] == [False, True, False]
    done = several("check")
    assert done.code == 2 and all(f"'{name}'" in done.out for name in ("east", "north", "west"))
    assert "repository_damaged" in done.out
    done = several("recover")
    assert "east" in done.out and "west" in done.out and "channel: 'north'" in done.err
    assert several("stop", "--all", "--channel", "east").code == 2


@pytest.mark.parametrize("damage", ["master", "both", "folder", "another channel's", "row"])
def test_a_record_that_is_damaged_keeps_no_new_channel_out_and_hides_no_other(several: Program, damage: str) -> None:
    record = several.datadir / "master-north.info"
    if damage == "row":
        assert several("switch-repo", "--to", "table", "--channel", "north").code == 0
        with closing(sqlite3.connect(several.datadir / "target.db")) as target:
            target.execute("UPDATE slave_master_info SET Master_log_pos='x' WHERE Channel_name='north'")
            target.commit()
    elif damage == "folder":
        record.unlink()
        record.mkdir()
    else:
        east = (several.datadir / "master-east.info").read_bytes()
        record.write_bytes(east if damage.startswith("another") else b"rubbish\n")
    if damage == "both":
        (several.datadir / "relay-log-north.info").write_bytes(b"rubbish\n")
    make(several, "south")
    lines = {line["Channel_Name"]: line["Last_Error"] for line in json.loads(several("show-channels", "--json").out)}
    assert [name for name, error in lines.items() if error] == ["north"]
    assert sorted(lines) == ["east", "north", "south", "west"]
    ids = [
        FileRepository(MASTER_INFO, Channel(name, several.datadir), 1).read().master_id
        for name in lines.keys() - {"north"}
    ]
    assert len(set(ids)) == 3
    assert several("reset", "--all", "--yes", "--channel", "east").code == 0
    done = several("stop")
    assert "'west': nothing stopped" in done.out and "'south': nothing stopped" in done.out and "'north'" in done.err


def test_a_target_that_is_away_hides_and_keeps_only_what_needs_it(several: Program) -> None:
    """A channel in a TABLE whose threads run is still known, shown as running, and stopped by a stop of all."""
    north = Channel("north", several.datadir)
    assert several("switch-repo", "--to", "table", "--channel", "north").code == 0
    (north.run_folder / "receiver.status.json").write_text("{}")
    for path in several.datadir.glob("target.db*"):
        path.unlink()
    (several.datadir / "target.db").mkdir()
    with hold_lock(north, "receiver"):
        done = several("show-channels", "--json")
        lines = {line["Channel_Name"]: line for line in json.loads(done.out)}
    assert [(name, line["Slave_IO_Running"]) for name, line in lines.items()] == [
        *(("east", "No"), ("north", "Yes"), ("west", "No"))
    ]
    assert lines["north"]["Last_Error"] and not lines["east"]["Last_Error"]
    done = several("show-status", "--json")
    assert [row["Channel_Name"] for row in json.loads(done.out)] == ["east", "west"]
    assert "Note: the target does not answer" in done.err and '"north"' in done.err
    done = several("stop", "--all")
    assert "channel 'east': nothing stopped" in done.out and "channel 'west': nothing stopped" in done.out
    assert several("change-master", "--channel", "new", "--master-host", "h").code == 7, "it may be there"


def test_a_stop_of_all_comes_back_to_the_channel_that_others_kept_alive(
    several: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, float]] = []

    def stop(config: Config, name: str, roles: tuple[str, ...], timeout_s: float) -> StopResult:
        asked.append((name, timeout_s))
        if name == "east" and len(asked) < 3:
            raise ServesOthers("does not stop; also serves 'north', 'west'", channel=name)
        return StopResult(channel=name, stopped=("applier",), killed=("applier",) if name == "east" else (), notes=())

    monkeypatch.setattr("rplctl.command.stop.stop", stop)
    done = several("stop", "--timeout", "7")
    assert asked == [("east", 7.0), ("north", 7.0), ("west", 7.0), ("east", 0.0)]
    assert (done.code, done.err, done.out.count("applier stopped")) == (0, "", 3)
    asked.clear()
    alone = several("stop", "--channel", "east", "--timeout", "7")
    assert (alone.code, asked) == (75, [("east", 7.0)]) and "also serves" in alone.err


def test_a_gtid_that_is_none_is_refused_before_anybody_is_asked(several: Program) -> None:
    for gtid, number in (("nonsense", 1941), ("3e11fa47-71ca-11e1-9e33-c80aa9429562:x", 1772)):
        done = several("skip", "--gtid", gtid, "--channel", "east")
        assert done.code == 2 and done.err.startswith(f"ERROR {number}") and "never be applied" not in done.err
        assert "hint: " in done.err


@pytest.mark.long("256 channels are rare.")
@pytest.mark.slow
def test_256_channels_are_shown_in_linear_time_and_the_next_is_3080(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {}
    for number in range(255):  # as CHANGE MASTER leaves them, without its looking at all others each time
        channel = Channel(f"c{number:03d}", program.datadir)
        info = MasterInfo(channel_name=channel.name, master_id=number + 1, host="db1", master_log_name="bin.000001")
        FileRepository(MASTER_INFO, channel, 1).flush(info, force=True)
        if number + 1 == 64:
            seconds[64] = time_to_show(program, 64)
    looks: list[Path] = []
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", _counted(Path.read_bytes, looks))
        patch.setattr("rplctl.repository.file.read_plain", _counted(read_plain, looks))
        make(program, "c255")
    read = len([path for path in looks if path.suffix == ".info"])
    assert 256 <= read < 2 * 256 + 16, "each other record twice at most"
    seconds[256] = time_to_show(program, 256)
    refused = program("change-master", "--channel", "c256", "--master-host", "h")
    assert first_line(refused) == (2, "ERROR 3080: Maximum number of replication channels allowed exceeded.\n")
    assert program("change-master", "--channel", "c000", "--master-connect-retry", "5").code == 0
    assert seconds[256] < 2 * 4 * seconds[64], f"not linear: {seconds}"


def _counted(read: Callable[..., Any], looks: list[Path]) -> Callable[..., Any]:
    def counted(*given: Any) -> Any:
        looks.append(given[-1])
        return read(*given)

    return counted


def time_to_show(program: Program, count: int) -> float:
    """Seconds of CPU for show-channels and show-status."""
    began = time.process_time()
    lines = json.loads(program("show-channels", "--json").out)
    assert len(lines) == count and not any(line["Last_Error"] for line in lines)
    assert len(json.loads(program("show-status", "--json").out)) == count
    return time.process_time() - began


def test_many_channels_of_one_target_are_one_connection_which_is_closed_after(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """256 channels in a TABLE are more than a server lets in at once."""
    monkeypatch.setenv("RPLCTL_MASTER_INFO_REPOSITORY", "TABLE")
    monkeypatch.setenv("RPLCTL_RELAY_LOG_INFO_REPOSITORY", "TABLE")
    make(program, "a", "b", "c")
    opened: list[Engine] = []

    def opening(url: str) -> Engine:
        opened.append(open_engine(url))
        return opened[-1]

    monkeypatch.setattr("rplctl.command.channel.context.open_engine", opening)
    shown = [line["Source"] for line in json.loads(program("show-channels", "--json").out)]
    assert shown == ["db1:3306"] * 3
    verdicts = json.loads(program("check", "--json").out)
    assert [verdict["channel"] for verdict in verdicts] == ["a", "b", "c"]
    assert len(opened) == 2
    assert [engine.pool.checkedin() for engine in opened] == [0, 0]  # type: ignore[attr-defined]


def test_check_asks_a_target_once_for_what_its_channels_share(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which tables of ours there are, and whether it takes our writes; a channel asks for its own rows only."""
    monkeypatch.setenv("RPLCTL_MASTER_INFO_REPOSITORY", "TABLE")
    monkeypatch.setenv("RPLCTL_RELAY_LOG_INFO_REPOSITORY", "TABLE")
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    def shared_questions() -> list[str]:
        asked.clear()
        assert "never_started" in program("check").out
        return sorted(sql for sql in asked if "Channel_name" not in sql and not sql.startswith("BEGIN"))

    make(program, "a")
    target = open_engine(f"sqlite:///{program.datadir / 'target.db'}")
    create_own_tables(target)
    target.dispose()
    event.listen(Engine, "before_cursor_execute", note)
    try:
        of_one = shared_questions()
        make(program, "b", "c")
        assert shared_questions() == of_one and any(sql.startswith("UPDATE") for sql in of_one)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
