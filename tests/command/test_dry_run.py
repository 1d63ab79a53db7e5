"""--dry-run changes nothing: not a file, not even what another command left half-way; it says what it would finish."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import open_repositories
from rplctl.command.export_info import Destination, export_info
from rplctl.command.import_info import FOLDER, Origin, import_info
from rplctl.config import Config
from rplctl.secret import KEY_FILE
from tests.cli.program import Program

FIRST = MasterChanges(master_host="db1", master_user="repl", master_log_file="b.000003", master_log_pos=1170)
NOTE = "an interrupted change-master would be finished first"


class Killed(BaseException):
    """The command dies here."""


def contents(folder: Path) -> dict[Path, bytes]:
    """Every folder, and every file but the locks, which hold who asked last."""
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*") if path.suffix != ".lock"}


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(tmp_path / "instance", capsys)


@pytest.fixture
def cut_off(program: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The second change-master died before it wrote a record."""
    config = Config(program.datadir)
    change_master(config, "", FIRST)

    def dies(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(type(open_repositories(config, "").master_info), "flush", dies)
        with pytest.raises(Killed):
            change_master(config, "", MasterChanges(master_host="db2", master_log_file="c.000001", master_log_pos=4))
    return program


@pytest.mark.parametrize(
    "line",
    [
        "change-master --master-connect-retry 7",
        "switch-repo --to file",
        "reset --yes",
        "skip 1",
        "recover",
    ],
)
def test_a_dry_run_leaves_an_unfinished_change_as_it_is(cut_off: Program, line: str) -> None:
    before = contents(cut_off.datadir)
    done = cut_off(*line.split(), "--dry-run")
    assert contents(cut_off.datadir) == before, done
    if line.split()[0] in ("change-master", "switch-repo", "reset"):
        assert done.code == 0 and NOTE in done.out + done.err, done


def test_a_dry_run_judges_by_the_change_that_would_be_finished(cut_off: Program) -> None:
    done = cut_off("change-master", "--master-connect-retry", "7", "--dry-run", "--json")
    (row,) = json.loads(done.out)
    assert (row["Master_Host"], row["Master_Log_File"]) == ("db2", "c.000001")
    assert cut_off("change-master", "--master-connect-retry", "7").code == 0
    assert open_repositories(Config(cut_off.datadir), "").master_info.read().host == "db2"


def test_a_dry_run_of_switch_repo_leaves_a_switch_that_was_cut_off(program: Program) -> None:
    change_master(Config(program.datadir), "", FIRST)
    journal = Channel("", program.datadir).run_folder / "switch-master-info.json"
    intent = {"repository": "master-info", "to": "TABLE", "state": "copying", "digest": "", "store": True}
    journal.write_text(json.dumps(intent))
    before = contents(program.datadir)
    done = program("switch-repo", "--to", "file", "--dry-run", "--json")
    assert contents(program.datadir) == before
    assert [row["Action"] for row in json.loads(done.out)] == ["resume", "read"]


def test_a_dry_run_of_a_first_change_master_makes_no_table(program: Program) -> None:
    program.datadir.mkdir(mode=0o700)
    options = program.datadir / "rplctl.toml"
    options.write_text('master_info_repository = "TABLE"\nrelay_log_info_repository = "TABLE"\n')
    done = program("change-master", "--master-host", "db1", "--dry-run")
    assert done.code == 0, done
    assert {path.suffix for path in contents(program.datadir) if path.is_file()} <= {".toml", ".gate"}


def test_a_dry_run_with_a_password_makes_no_key(tmp_path: Path) -> None:
    datadir, other = tmp_path / "instance", tmp_path / "other"
    datadir.mkdir(mode=0o700)
    change_master(Config(datadir), "", replace(FIRST, password="secret"), dry_run=True)
    assert not (datadir / KEY_FILE).exists()
    change_master(Config(other), "", replace(FIRST, password="secret"))
    exported = tmp_path / "exported"
    export_info(Config(other), "", Destination("mysql-8.0", exported))
    result = import_info(Config(datadir), "", Origin(kind=FOLDER, path=exported), dry_run=True)
    assert result.password_set and "secret" not in str(result)
    assert not (datadir / KEY_FILE).exists()


@pytest.mark.parametrize("line", ["rename-channel {} west", "change-target {}/other.db", "import-info {}/exported"])
def test_a_dry_run_of_what_moves_a_channel_changes_no_file_or_folder(
    program: Program, tmp_path: Path, line: str
) -> None:
    change_master(Config(program.datadir), "", FIRST)
    exported = program("export-info", "--server", "mysql-8.0", str(tmp_path / "exported"))
    assert exported.code == 0, exported
    program("show-status")
    before = contents(tmp_path)
    words = [word.format("" if line.startswith("rename") else tmp_path) for word in line.split()]
    done = program(*words, "--dry-run")
    assert contents(tmp_path) == before, done
    assert done.code == 0 or line.startswith("change-target"), done  # the other file is not there
