"""`check`: every finding there is, made real, named, with its repair; and nothing is changed by asking."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of, one_look, open_repositories
from rplctl.command.check.ends import judge_beginning, judge_gtids, judge_identity, judge_position
from rplctl.command.check.findings import LEVELS, found
from rplctl.command.check.relay_log import check_relay_log
from rplctl.command.check.repository import Stored, check_repositories
from rplctl.command.check.verb import CheckLimits, Scope, Verdict, check, worst
from rplctl.commit.position_store import open_position_store
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import in_one_line
from rplctl.info import MasterInfo
from rplctl.own_tables.models import mark_made_empty, rows_are_loaded, store_models
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository import create_tables, open_repository
from rplctl.repository.base import RepositoryKind
from rplctl.repository.record import MASTER_INFO, RELAY_LOG_INFO, Record
from rplctl.schema.model import Column, TableModel
from tests.kit.replica import purge_logs
from tests.kit.servers import MariadbServer
from tests.relay_log.stream import FakeSource, new_writer, write_relay_log

STRAY = "relay-bin.000009"
MODEL = TableModel(database="d", name="t", columns=(Column(name="c", type="int"),))


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


class Instance:
    """A channel that stopped in an orderly way: three transactions received, two applied."""

    def __init__(self, folder: Path, kind: str = "FILE", **options: Any) -> None:
        self.config = Config(folder, master_info_repository=kind, relay_log_info_repository=kind, **options)
        self.channel = Channel("", folder)
        change_master(
            self.config, "", MasterChanges(master_host="db1", master_log_file="binlog.000001", master_log_pos=4)
        )
        source = FakeSource()
        self.end = write_relay_log(self.channel, source, 3)
        self.source = source
        size = (folder / self.end.log_name).stat().st_size
        step = source.ends[2].log_pos - source.ends[1].log_pos
        self.relay = RelayLogPosition(self.end.log_name, size - step)
        self.set_positions(self.relay, source.ends[1], source.ends[2])

    def set_positions(self, relay: RelayLogPosition, executed: BinlogPosition, read: BinlogPosition) -> None:
        repositories = open_repositories(self.config, "")
        info = repositories.relay_log_info.read()
        repositories.relay_log_info.flush(info.at(relay, executed), force=True)
        repositories.master_info.flush(repositories.master_info.read().with_read_position(read), force=True)

    def engine(self) -> Any:
        return engine_of(self.config)()

    def check(self, scope: Scope = Scope.OFFLINE) -> Verdict:
        before = self.contents()
        verdict = check(self.config, "", CheckLimits(warning_s=60, critical_s=300), scope)
        assert self.contents() == before, "check changes nothing"
        return verdict

    def contents(self) -> dict[str, bytes]:
        files = (p for p in self.config.datadir.rglob("*") if p.is_file() and "target.db" not in p.name)
        return {str(p): p.read_bytes() for p in files}

    def expect(self, code: str, words: str = "", repair: str = "rplctl", scope: Scope = Scope.OFFLINE) -> Verdict:
        verdict = self.check(scope)
        finding = next((f for f in verdict.findings if f.code == code), None)
        assert finding is not None, verdict.findings
        assert words in finding.text and repair in finding.repair, finding
        assert finding.level == LEVELS[code] <= verdict.level
        return verdict


@pytest.fixture(params=["FILE", "TABLE"])
def instance(tmp_path: Path, request: pytest.FixtureRequest) -> Instance:
    return Instance(tmp_path, request.param)


@pytest.fixture
def in_file(tmp_path: Path) -> Instance:
    return Instance(tmp_path)


def test_a_channel_in_order_has_no_finding(instance: Instance) -> None:
    verdict = instance.check()
    assert (verdict.findings, verdict.level, verdict.text) == ((), 0, "the stored state agrees")


def test_both_repositories_with_data_is_critical(in_file: Instance) -> None:
    create_tables(in_file.engine())
    table = open_repository(MASTER_INFO, RepositoryKind.TABLE, in_file.config, in_file.channel, in_file.engine)
    table.flush(MasterInfo(host="other"), force=True)
    in_file.expect("repository_both", "the next start refuses", repair="DELETE the channel's row")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("ALTER TABLE slave_master_info DROP COLUMN Heartbeat", "Corrupted table"),
        ("UPDATE slave_relay_log_info SET Relay_log_pos = 'x'", "is not a number"),
        ("DROP TABLE slave_relay_log_info", "no RelayLogInfo"),
        (
            "CREATE TABLE copy AS SELECT * FROM slave_master_info; DROP TABLE slave_master_info;"
            "ALTER TABLE copy RENAME TO slave_master_info",
            "expected field #1 to be 'Channel_name' but found 'no key'",
        ),
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, damage: str, words: str) -> None:
    instance = Instance(tmp_path, "TABLE")
    connection = sqlite3.connect(tmp_path / "target.db")
    connection.executescript(damage)
    connection.close()
    verdict = instance.expect(
        "repository_missing" if "DROP TABLE slave_relay" in damage else "repository_damaged", words
    )
    assert verdict.level == 2


@pytest.mark.parametrize("record", [MASTER_INFO, RELAY_LOG_INFO])
def test_the_repair_of_a_damaged_table_makes_every_channels_row_again(tmp_path: Path, record: Record[Any]) -> None:
    instance = Instance(tmp_path, "TABLE")
    other = MasterChanges(master_host="db2", master_log_file="binlog.000007", master_log_pos=4)
    change_master(instance.config, "other one", other)
    connection = sqlite3.connect(tmp_path / "target.db")
    lost = "Heartbeat" if record is MASTER_INFO else "Sql_delay"
    connection.executescript(f"ALTER TABLE {record.table} DROP COLUMN {lost}")
    connection.close()
    what = "--master-host db2" if record is MASTER_INFO else "--master-log-file binlog.000007"
    instance.expect("repository_damaged", repair=f"rplctl change-master --channel 'other one' {what}")


def test_a_damaged_file_is_named_with_its_line(in_file: Instance) -> None:
    path = in_file.channel.relay_log_info_path
    path.write_text(path.read_text().replace("relay-bin.000001", "/etc/passwd"))
    in_file.expect("repository_damaged", "line 2", repair="correct")


def test_a_record_in_the_other_place_is_told(in_file: Instance) -> None:
    config = replace(in_file.config, relay_log_info_repository="TABLE")
    create_tables(in_file.engine())
    in_file.config = config
    in_file.expect("repository_elsewhere", "the next start moves it", repair="rplctl start")


def test_an_older_layout_is_told(tmp_path: Path) -> None:
    instance = Instance(tmp_path, "TABLE")
    connection = sqlite3.connect(tmp_path / "target.db")
    connection.executescript(
        "DROP TABLE slave_master_info; CREATE TABLE slave_master_info (Master_id INTEGER PRIMARY KEY)"
    )
    connection.close()
    instance.expect("repository_old_layout", repair="rplctl start")


@pytest.mark.mariadb
def test_an_engine_without_transactions_is_told(tmp_path: Path, mariadb: MariadbServer) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS rplctl")
    instance = Instance(tmp_path, "TABLE", target=mariadb.url(), rep_engine="Aria")
    instance.expect("repository_not_transactional", repair="ALTER TABLE rplctl.slave_master_info ENGINE=InnoDB")
    mariadb.sql("ALTER TABLE rplctl.slave_relay_log_info ENGINE=InnoDB")
    mariadb.sql("ALTER TABLE rplctl.slave_master_info ENGINE=InnoDB")
    assert instance.check().findings == ()


def test_a_file_that_others_can_read_is_critical(in_file: Instance) -> None:
    in_file.channel.master_info_path.chmod(0o640)
    in_file.expect("file_mode", "others can read it", repair="chmod 600")


def applied(instance: Instance, *, orderly: bool) -> None:
    """One more transaction in the target; the file follows only when the applier stops in an orderly way."""
    engine = instance.engine()
    create_own_tables(engine)
    store = open_position_store(instance.config, instance.channel, engine)
    info = store.open()
    new = info.at(instance.end, instance.source.ends[2])
    with engine.begin() as connection:
        store.advance(connection, info, new)
    if orderly:
        store.committed(new)
        store.close(new)


def test_a_file_behind_its_marker_is_told_and_no_alarm(in_file: Instance) -> None:
    applied(in_file, orderly=False)
    assert in_file.expect("file_behind_marker", "older than the position that was committed").level == 0


def test_a_file_edited_by_hand_is_told_with_what_it_was(in_file: Instance) -> None:
    applied(in_file, orderly=True)
    in_file.set_positions(in_file.relay, in_file.source.ends[1], in_file.source.ends[2])
    applied_at = f"--master-log-pos {in_file.source.ends[2].log_pos}"
    in_file.expect("edited_by_hand", "the next start uses", repair=applied_at)


def test_a_target_from_an_older_backup_is_told(in_file: Instance) -> None:
    applied(in_file, orderly=True)
    path = in_file.channel.relay_log_info_path
    path.write_text(path.read_text().replace(f"\n{in_file.source.ends[2].log_pos}\n", "\n99999\n"))
    place = f"{in_file.end} {in_file.source.ends[2]}"
    assert place in path.read_text()
    path.write_text(path.read_text().replace(place, place.rpartition(":")[0] + ":99999"))
    in_file.expect("target_gone_back", "was not edited", repair="rplctl start (uses the position in the target)")


def test_an_interrupted_switch_or_change_is_told(in_file: Instance) -> None:
    private_folder(in_file.channel.run_folder)
    (in_file.channel.run_folder / "switch-master-info.json").write_text("{}")
    (in_file.channel.run_folder / "change_master.pending").write_text("{}")
    in_file.expect("switch_interrupted", repair="rplctl start")
    in_file.expect("change_interrupted", repair="rplctl start")


def test_what_a_servers_files_brought_and_nobody_carries_out_is_told(in_file: Instance) -> None:
    repositories = open_repositories(in_file.config, "")
    master = replace(repositories.master_info.read(), gtid_only=True, source_connection_auto_failover=True)
    repositories.master_info.flush(master, force=True)
    relay = replace(repositories.relay_log_info.read(), privilege_checks_username="u", privilege_checks_hostname="%")
    repositories.relay_log_info.flush(relay, force=True)
    verdict = in_file.expect(
        "option_ignored", "no effect here", repair="rplctl change-master --privilege-checks-user ''"
    )
    assert [f.text.split()[0] for f in verdict.findings if f.code == "option_ignored"] == [
        "PRIVILEGE_CHECKS_USER", "SOURCE_CONNECTION_AUTO_FAILOVER", "GTID_ONLY",
    ]  # fmt: skip
    off = MasterChanges(privilege_checks_user="", source_connection_auto_failover=False, gtid_only=False)
    change_master(in_file.config, "", off)
    assert "option_ignored" not in [finding.code for finding in in_file.check().findings]


Damage = Callable[[Instance], object]


def index_path(i: Instance) -> Path:
    return i.channel.relay_log_index_path


def relay_path(i: Instance) -> Path:
    return i.config.datadir / i.end.log_name


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def moved(i: Instance, relay: RelayLogPosition, executed: BinlogPosition) -> None:
    i.set_positions(relay, executed, i.source.ends[2])


def add_relay_log(i: Instance) -> None:
    writer = new_writer(i.channel)
    writer.open_new(i.source.position)
    writer.append(i.source.begin() + i.source.transaction(), 7)
    writer.sync()
    writer.close()


def second_relay_log(i: Instance) -> None:
    add_relay_log(i)
    data = bytearray(relay_path(i).read_bytes())
    data[-30] ^= 0xFF
    relay_path(i).write_bytes(data)


RELAY_LOG: list[tuple[str, Damage, str]] = [
    ("relay_log_missing", lambda i: append(index_path(i), b"./relay-bin.000002\n"), "not on disk"),
    ("relay_log_not_listed", lambda i: (i.config.datadir / STRAY).write_bytes(b"\xfebin"), "on disk and not"),
    ("relay_index_edited", lambda i: append(index_path(i), b"/etc/passwd\n"), "did not write"),
    ("relay_log_torn", lambda i: append(relay_path(i), b"half an event"), "13 bytes"),
    ("relay_log_damaged", second_relay_log, "is damaged at offset"),
    (
        "relay_position_past_end",
        lambda i: i.set_positions(RelayLogPosition(i.end.log_name, 99999), i.source.ends[1], i.source.ends[2]),
        "past the end",
    ),
    (
        "relay_position_inside_event",
        lambda i: moved(i, RelayLogPosition(i.end.log_name, i.relay.log_pos + 5), i.source.ends[1]),
        "inside an event",
    ),
    (
        "positions_disagree",
        lambda i: i.set_positions(i.relay, i.source.ends[0], i.source.ends[2]),
        "Exec_Master_Log_Pos is",
    ),
    (
        "read_behind_executed",
        lambda i: i.set_positions(i.relay, i.source.ends[1], i.source.ends[0]),
        "is before Exec_Master_Log_Pos",
    ),
    (
        "relay_logs_begin_later",
        lambda i: moved(i, RelayLogPosition("relay-bin.000007", 4), BinlogPosition("binlog.000000", 4)),
        "the relay logs begin at",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("code", "damage", "words"), RELAY_LOG, ids=[row[0] for row in RELAY_LOG])
def test_relay_log_and_positions_that_do_not_agree(instance: Instance, code: str, damage: Damage, words: str) -> None:
    damage(instance)
    instance.expect(code, words)


def test_relay_logs_that_come_and_go_during_a_look_at_many_channels_are_no_findings(in_file: Instance) -> None:
    with one_look():
        assert in_file.check().findings == ()
        first = in_file.end.log_name
        add_relay_log(in_file)
        assert in_file.check().findings == ()
        RelayLogIndex(in_file.channel).remove([first])
        (in_file.config.datadir / first).unlink()
        assert not {"relay_log_missing", "relay_log_not_listed"} & {f.code for f in in_file.check().findings}


def test_a_torn_tail_is_the_running_receivers_own(in_file: Instance) -> None:
    append(relay_path(in_file), b"half an event")
    with hold_lock(in_file.channel, "receiver"):
        assert in_file.check().findings == ()


def with_model(instance: Instance) -> None:
    engine = instance.engine()
    create_own_tables(engine)
    with engine.begin() as connection:
        store_models(connection, "", BinlogPosition("binlog.000001", 4), {("d", "t"): MODEL})


def test_a_table_that_is_missing_or_different_in_the_target(in_file: Instance) -> None:
    with_model(in_file)
    in_file.expect("table_missing", "d.t", repair="load-schema")
    with in_file.engine().begin() as connection:
        connection.exec_driver_sql('CREATE TABLE "d__t" (other INTEGER)')
    in_file.expect("table_differs", "", repair="")


def test_a_table_that_was_made_empty_until_its_rows_are_said_to_be_there(in_file: Instance) -> None:
    with_model(in_file)
    with in_file.engine().begin() as connection:
        mark_made_empty(connection, "", BinlogPosition("binlog.000001", 4), {("d", "t"): MODEL})
    in_file.expect("rows_never_copied", "d.t", repair="--rows-loaded")
    with in_file.engine().begin() as connection:
        rows_are_loaded(connection, "", [("d", "t")])
    assert "rows_never_copied" not in {finding.code for finding in in_file.check().findings}


def test_a_target_that_is_away(tmp_path: Path) -> None:
    instance = Instance(tmp_path)
    instance.config = replace(instance.config, target="mysql://u@127.0.0.1:1/")
    instance.expect("target_away", repair="rplctl")


@pytest.mark.mariadb
def test_a_target_that_refuses_our_writes(tmp_path: Path, mariadb: MariadbServer) -> None:
    mariadb.sql("DROP DATABASE IF EXISTS rplctl")
    mariadb.sql("DROP USER IF EXISTS looker@'%'; CREATE USER looker@'%' IDENTIFIED BY 'x'")
    instance = Instance(tmp_path, target=mariadb.url())
    with_model(instance)
    mariadb.sql("GRANT SELECT ON *.* TO looker@'%'")
    instance.config = replace(instance.config, target=f"mysql://looker:x@{mariadb.host}:{mariadb.port}/")
    instance.expect("target_refuses_writes", "denied", repair="PRIVILEGES")
    mariadb.sql("DROP USER looker@'%'")


def test_the_source_in_a_folder(tmp_path: Path) -> None:
    instance = Instance(tmp_path / "i")
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "binlog.000005").write_bytes(b"\xfebin")
    change_master(instance.config, "", MasterChanges(master_binlog_dir=str(archive)))
    instance.set_positions(instance.relay, instance.source.ends[1], instance.source.ends[2])
    instance.expect("source_purged", "its first log is binlog.000005", "backup", Scope.ONLINE)
    (archive / "binlog.000005").rename(archive / "binlog.000001")
    instance.expect("source_past_end", "past the end", "backup", Scope.ONLINE)
    (archive / "binlog.000001").unlink()
    archive.rmdir()
    instance.expect("source_away", "", "--master-binlog-dir", Scope.ONLINE)


@pytest.mark.mariadb
def test_a_live_source_that_purged_changed_or_lost_what_is_needed(
    tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    source = mariadb_factory()
    source.sql("RESET MASTER; FLUSH BINARY LOGS; FLUSH BINARY LOGS")
    instance = Instance(tmp_path, server_id=source.server_id)
    connection = MasterChanges(
        master_host=source.host, master_port=source.port, master_user="rpl", password="rpl",
        master_log_file="binlog.000001", master_log_pos=4,
    )  # fmt: skip
    change_master(instance.config, "", connection)
    assert "source_purged" not in [f.code for f in instance.check(Scope.ONLINE).findings]
    purge_logs(source, "binlog.000003")
    instance.expect("source_purged", "binlog.000001", "rplctl clone --replace", Scope.ONLINE)
    instance.expect("source_same_server_id", "also the server_id of this instance", "rplctl init", Scope.ONLINE)
    repositories = open_repositories(instance.config, "")
    master = repositories.master_info.read()
    repositories.master_info.flush(replace(master, master_server_id=999), force=True)
    instance.expect("source_changed", "999", "rplctl change-master", Scope.ONLINE)
    source.restart(["--skip-log-bin", "--skip-log-slave-updates"])
    instance.expect("source_binlog_off", "", "log_bin", Scope.ONLINE)
    source.stop()
    instance.expect("source_away", "", "", Scope.ONLINE)


@pytest.mark.parametrize(
    ("purged", "executed", "retrieved", "is_missed"),
    [
        ("", "", "", False),
        ("0-1-5", "0-1-5", "", False),
        ("0-1-5", "0-1-4", "0-1-5", False),
        ("0-1-5", "0-1-4", "", True),
        ("0-1-5,1-1-2", "0-1-9", "", True),
        (f"{UUID}:1-5", f"{UUID}:1-5", "", False),
        (f"{UUID}:1-5", f"{UUID}:1-3", f"{UUID}:4-5", False),
        (f"{UUID}:1-5", f"{UUID}:1-3", f"{UUID}:5", True),
        ("0-1-5", f"{UUID}:1-3", "", False),
    ],
)
def test_a_purge_of_gtids_is_found(purged: str, executed: str, retrieved: str, is_missed: bool) -> None:
    codes = [finding.code for finding in judge_gtids(purged, executed, retrieved)]
    assert codes == (["source_purged"] if is_missed else [])


def test_a_channel_that_never_began_is_told_to_clone_where_logs_are_purged() -> None:
    assert list(judge_beginning({"binlog.000001": 9})) == []
    (finding,) = judge_beginning({"binlog.000010": 9, "binlog.000009": 9})
    assert (finding.code, finding.repair) == ("source_purged", "rplctl clone")


def test_a_position_that_the_source_has_is_no_finding() -> None:
    sizes = {"binlog.000002": 500, "binlog.000003": 200}
    assert list(judge_position(sizes, BinlogPosition("binlog.000003", 200))) == []
    assert list(judge_position(sizes, BinlogPosition("", 4))) == []
    assert list(judge_position(sizes, BinlogPosition("binlog.000004", 4)))[0].code == "source_past_end"


def test_the_same_server_is_no_finding_and_another_uuid_is() -> None:
    master = MasterInfo(host="db1", uuid="a", master_server_id=3)
    assert list(judge_identity({"server_id": "3", "server_uuid": "a"}, master, 9)) == []
    assert [f.code for f in judge_identity({"server_id": "3", "server_uuid": "b"}, master, 9)] == ["source_changed"]


def test_a_target_that_was_never_made_is_not_made_by_looking(tmp_path: Path) -> None:
    config = Config(tmp_path)
    assert list(check_repositories(config, Channel("", tmp_path), Stored())) == []
    change_master(config, "", MasterChanges(master_host="db1"))
    for scope in Scope:
        check(config, "", CheckLimits(warning_s=60, critical_s=300), Scope.OFFLINE if scope is Scope.ONLINE else scope)
    assert not (tmp_path / "target.db").exists()


def test_an_empty_channel_has_no_relay_log_to_judge(tmp_path: Path) -> None:
    found = check_relay_log(Channel("", tmp_path), MasterInfo(host="db1"), None, deep=True)
    assert list(found) == []


def test_the_worst_counts_and_critical_is_worse_than_unknown() -> None:
    assert (worst([]), worst([0, 1]), worst([1, 3]), worst([3, 2])) == (0, 1, 3, 2)


@pytest.mark.parametrize("loss", ["all", "swapped", "header"])
def test_relay_logs_that_are_gone_swapped_or_cut_to_the_header_are_told(in_file: Instance, loss: str) -> None:
    """Every file that is left is intact, and the index agrees with the folder."""
    first = in_file.config.datadir / in_file.end.log_name
    index = RelayLogIndex(in_file.channel)
    second = in_file.config.datadir / write_relay_log(in_file.channel, in_file.source, 1).log_name
    assert index.names() == [first.name, second.name]
    size = second.stat().st_size if loss != "header" else second.stat().st_size + 100
    repositories = open_repositories(in_file.config, "")
    flushed = replace(repositories.master_info.read(), flushed_relay_log_name=second.name, flushed_relay_log_pos=size)
    repositories.master_info.flush(flushed, force=True)
    if loss == "all":
        for path in (first, second, in_file.channel.relay_log_index_path):
            path.unlink()
    elif loss == "swapped":
        data = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(data)
    assert in_file.check().level > 0


def test_every_code_is_named_by_a_test() -> None:
    texts = [path.read_text() for path in Path(__file__).parents[2].rglob("*.py")]
    assert [code for code in LEVELS if not any(code in text for text in texts)] == []


def test_several_ways_to_repair_are_one_line() -> None:
    ways = "mount it: rplctl start\nor begin again: rplctl reset; rplctl start"
    assert found("target_lost", "it is lost", ways).repair == in_one_line(ways)
