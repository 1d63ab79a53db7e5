"""export-info and import-info as an operator types them: files, notes, exit codes, secrets, nothing half done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import open_repositories
from rplctl.config import load_config
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.exchange.servers import Server, import_info
from rplctl.repository.fields import MASTER_INFO_LINES, RELAY_LOG_INFO_LINES
from rplctl.secret import reveal
from tests.cli.program import Program

DATA = Path(__file__).parents[1] / "data" / "infofiles"
MARIADB = DATA / "mariadb10.11/02-running"
TOOLS = {
    "maxwell": "server_id\tbinlog_file\tbinlog_position\tgtid_set\n1\tmysql-bin.000007\t4711\tNULL\n",
    "debezium": '{"file": "mysql-bin.000007", "pos": 4711, "event": 0, "row": 0}',
    "canal": json.dumps(
        {
            "clientDatas": [
                {
                    "cursor": {
                        "identity": {"sourceAddress": {"address": "db9", "port": 3307}},
                        "postion": {"journalName": "mysql-bin.000007", "position": 4711, "gtid": ""},
                    }
                }
            ]
        }
    ),
    "tungsten": "seqno\teventid\tlast_frag\n9\tmysql-bin.000007:0000000000004711;-1\t1\n",
}


@pytest.fixture
def replica(tmp_path: Path) -> Path:
    """A MariaDB replica's files with a password that can be looked for, using_gtid=2 besides file positions."""
    folder = tmp_path / "mysql"
    folder.mkdir()
    real = (MARIADB / "master.info").read_bytes()
    changed = real.replace(b"\nrpl\nrpl\n", b"\nrpl\nC4nary\n").replace(b"using_gtid=0", b"using_gtid=2")
    (folder / "master.info").write_bytes(changed)
    (folder / "relay-log.info").write_bytes((MARIADB / "relay-log.info").read_bytes())
    (folder / "master.info").chmod(0o660)  # as the server makes it
    return folder


def stored(program: Program, channel: str = "") -> tuple[MasterInfo, RelayLogInfo]:
    repositories = open_repositories(load_config(program.datadir, channel), channel)
    return repositories.master_info.read(), repositories.relay_log_info.read()


def files_of(program: Program) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in program.datadir.iterdir() if p.is_file() and p.suffix != ".log"}


@pytest.mark.parametrize("repository", ["file", "table"])
def test_a_real_mariadb_replicas_folder_configures_a_channel(program: Program, repository: str, replica: Path) -> None:
    init = ("--master-info-repository", repository, "--relay-log-info-repository", repository)
    assert program("init", *init).code == 0
    done = program("import-info", str(replica))
    assert done.code == 0, done.err
    assert "other users can read the file" in done.err
    theirs, their_relay = import_info(
        (replica / "master.info").read_bytes(), (replica / "relay-log.info").read_bytes(), ""
    )
    master, relay = stored(program)
    assert (master.host, master.port, master.user_name) == (theirs.host, theirs.port, theirs.user_name)
    assert master.read_position == relay.exec_position == their_relay.exec_position, "what is not executed is fetched"
    assert master.user_password.startswith("fernet:") and reveal(master.user_password, program.datadir) == "C4nary"
    assert (relay.relay_log_name, relay.relay_log_pos) == ("relay-bin.000001", 4)
    assert relay.sql_delay == their_relay.sql_delay


def test_the_clear_text_password_is_nowhere_after_the_import(program: Program, replica: Path) -> None:
    program("import-info", str(replica))
    for path in program.datadir.rglob("*"):
        assert not path.is_file() or b"C4nary" not in path.read_bytes(), path


def test_the_journal_says_what_was_imported_from_where(program: Program, replica: Path) -> None:
    program("import-info", str(replica))
    line = (program.datadir / "history.jsonl").read_text()
    assert f"'IMPORT INFO folder {replica} executed'. Previous state master_host=''" in line


def test_a_replica_that_went_by_gtid_needs_the_set_or_goes_by_position(program: Program, replica: Path) -> None:
    done = program("import-info", str(replica))
    assert "without --gtid the channel continues by file and position" in done.err
    assert stored(program)[0].using_gtid == 0
    assert program("import-info", str(replica), "--gtid", "0-1-9", "--yes").code == 0
    master, relay = stored(program)
    assert (master.using_gtid != 0, relay.gtid_executed) == (True, "0-1-9")


def test_a_dry_run_shows_the_position_and_changes_nothing(program: Program) -> None:
    before = files_of(program) if program.datadir.exists() else {}
    done = program("import-info", str(MARIADB), "--dry-run", "--json")
    row = json.loads(done.out)[0]
    assert (done.code, row["Dry_Run"], row["Master_Host"]) == (0, True, "127.0.0.1")
    after = files_of(program)
    after.pop("rplctl.key", None)  # the password was encrypted to see whether it can be
    assert after == before


def test_mysqls_rows_are_read_in_both_layouts_of_its_client(program: Program, tmp_path: Path) -> None:
    for layout in ("E", "B"):
        (tmp_path / "rows").write_text(printed(layout))
        (tmp_path / "rows").chmod(0o600)
        done = program("import-info", "--mysql-tables", str(tmp_path / "rows"), "--yes")
        assert done.code == 0, done.err
        master, relay = stored(program)
        assert (master.host, master.user_name, master.retry_count) == ("127.0.0.1", "rpl", 10)
        assert (relay.exec_position.log_pos, relay.require_table_primary_key_check) == (1559, "STREAM")


def printed(layout: str) -> str:
    """The recorded rows of MySQL 9.7 as its client prints them."""
    text = ""
    recorded = (DATA / "mysql97-repositories.tsv").read_text().splitlines()
    for record, line in zip((MASTER_INFO_LINES, RELAY_LOG_INFO_LINES), recorded, strict=False):
        names = ["Number_of_lines", *(field.column for field in record)]
        cells = line.split("\t")
        if layout == "B":
            text += "\t".join(names) + "\n" + "\t".join(cells) + "\n"
        else:
            rows = "".join(f"{name:>45}: {cell}\n" for name, cell in zip(names, cells, strict=True))
            text += f"{'*' * 27} 1. row {'*' * 27}\n{rows}"
    return text


@pytest.mark.parametrize("tool", list(TOOLS))
def test_a_tools_position_moves_a_configured_channel(configured: Program, tool: str, tmp_path: Path) -> None:
    (tmp_path / "offset").write_text(TOOLS[tool])
    before = stored(configured)[0]
    done = configured("import-info", f"--{tool}", str(tmp_path / "offset"), "--yes")
    assert done.code == 0, done.err
    master, relay = stored(configured)
    assert str(master.read_position) == str(relay.exec_position) == "mysql-bin.000007:4711"
    assert (master.host, master.user_password) == ("db1", before.user_password), "a tool does not know the connection"


@pytest.mark.parametrize("tool", list(TOOLS))
def test_a_tools_position_for_a_channel_that_is_not_there_is_refused(
    program: Program, tool: str, tmp_path: Path
) -> None:
    (tmp_path / "offset").write_text(TOOLS[tool])
    done = program("import-info", f"--{tool}", str(tmp_path / "offset"))
    assert (done.code, "must be configured first" in done.err) == (2, True)
    assert "hint: to set the source, run: rplctl change-master" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "requires DIR or exactly one FILE option"),
        (("x", "--canal", "y"), 2, "requires DIR or exactly one FILE option"),
        (("/no/such",), 2, "holds no master.info"),
        (("--maxwell", "/no/such"), 1, "No such file"),
        (("--debezium", "/dev/null"), 2, "not JSON"),
        (("--tungsten", "/dev/null"), 2, "no row found"),
        (("--mysql-tables", "/dev/null"), 2, "0 rows of slave_master_info"),
        ((str(MARIADB), "--channel", "a\tb"), 2, "ERROR 3076"),
    ],
)
def test_what_cannot_be_imported_is_named_and_nothing_changes(
    configured: Program, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = files_of(configured)
    done = configured("import-info", *arguments, "--yes")
    assert (done.code, words in done.err, "Traceback" in done.err) == (code, True, False), done.err
    assert files_of(configured) == before


def test_a_damaged_file_is_named_with_its_line(configured: Program, tmp_path: Path) -> None:
    for name in ("master.info", "relay-log.info"):
        (tmp_path / name).write_bytes((MARIADB / name).read_bytes())
    (tmp_path / "relay-log.info").write_text("5\n./relay.000001\nx\nb.000001\n4\n0\n")
    done = configured("import-info", str(tmp_path), "--yes")
    assert (done.code, "ERROR 1872: cannot read relay-log.info: line 3 (Relay_log_pos)" in done.err) == (2, True)


def test_an_import_over_a_configured_channel_needs_a_confirmation(configured: Program) -> None:
    done = configured("import-info", str(MARIADB))
    assert (done.code, "--yes" in done.err) == (2, True)
    assert stored(configured)[0].host == "db1"


@pytest.mark.parametrize("verb", [("import-info", str(MARIADB), "--yes"), ("export-info", "--server", "mariadb", "x")])
def test_both_are_refused_while_a_thread_runs(configured: Program, verb: tuple[str, ...]) -> None:
    with hold_lock(Channel("", configured.datadir), "applier"):
        done = configured(*verb)
    assert (done.code, "ERROR 3081" in done.err) == (2, True)


@pytest.mark.parametrize("server", list(Server))
def test_an_export_is_what_that_server_writes_and_reads_back(configured: Program, server: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    done = configured("export-info", "--server", server, str(folder))
    assert done.code == 0, done.err
    master, relay = import_info((folder / "master.info").read_bytes(), (folder / "relay-log.info").read_bytes(), "")
    assert (master.host, master.user_password, str(relay.exec_position)) == ("db1", "C4nary", "binlog.000003:1170")
    assert master.read_position == relay.exec_position
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert "C4nary" not in done.out + done.err + (configured.datadir / "history.jsonl").read_text()
    statement = (folder / "change-master.sql").read_text()
    assert statement.startswith("CHANGE REPLICATION SOURCE TO" if server == "mysql-8.0" else "CHANGE MASTER TO")
    prefix = "SOURCE" if server == "mysql-8.0" else "MASTER"
    assert f"{prefix}_LOG_FILE='binlog.000003'" in statement and f"{prefix}_LOG_POS=1170" in statement
    assert "export-info --server" in (configured.datadir / "history.jsonl").read_text()


def test_an_export_overwrites_only_when_told_to(configured: Program, tmp_path: Path) -> None:
    (tmp_path / "master.info").write_text("keep")
    done = configured("export-info", "--server", "mariadb", str(tmp_path))
    assert (done.code, (tmp_path / "master.info").read_text()) == (2, "keep")
    assert configured("export-info", "--server", "mariadb", str(tmp_path), "--dry-run", "--yes").code == 0
    assert (tmp_path / "master.info").read_text() == "keep"
    assert configured("export-info", "--server", "mariadb", str(tmp_path), "--yes").code == 0
    assert (tmp_path / "master.info").read_text() != "keep"


def test_what_a_server_has_no_place_for_is_named(configured: Program, tmp_path: Path) -> None:
    assert configured("change-master", "--master-tls-version", "TLSv1.3").code == 0
    done = configured("export-info", "--server", "mariadb", str(tmp_path / "o"))
    assert "master.info tls_version is not supported by mariadb" in done.err


def test_a_channel_of_mariadb_has_its_own_file_names(configured: Program, tmp_path: Path) -> None:
    assert configured("change-master", "--channel", "We st/1", "--master-host", "db2").code == 0
    done = configured("export-info", "--server", "mariadb", "--channel", "We st/1", str(tmp_path / "o"))
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "o").iterdir()}
    assert {"master-we@0020st@002f1.info", "relay-log-we@0020st@002f1.info", "multi-master.info"} <= names
    assert (tmp_path / "o/multi-master.info").read_text() == "We st/1\n"
    done = configured("import-info", "--channel", "We st/1", str(tmp_path / "o"), "--yes")
    assert done.code == 0, done.err
    assert stored(configured, "We st/1")[0].host == "db2"


def test_a_folder_of_binary_logs_cannot_be_exported(program: Program, tmp_path: Path) -> None:
    assert program("change-master", "--master-binlog-dir", str(tmp_path)).code == 0
    done = program("export-info", "--server", "mariadb", str(tmp_path / "o"))
    assert (done.code, "which no server can do" in done.err) == (2, True)


def test_an_unknown_server_is_named_with_those_there_are(configured: Program) -> None:
    done = configured("export-info", "--server", "mysql-4", "o")
    assert (done.code, "mysql-5.6, mysql-5.7, mysql-8.0, mariadb" in done.err) == (2, True)
