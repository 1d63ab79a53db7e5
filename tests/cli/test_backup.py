"""`backup` and `restore` as typed: what is in the folder, who can read it, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rplctl.channel import Channel
from rplctl.command.instance.manifest import MANIFEST
from rplctl.config import Config, load_config
from rplctl.repository import open_master_info, open_relay_log_info
from rplctl.secret import reveal
from tests.cli.program import Program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def stored(datadir: Path) -> tuple[object, object]:
    config, channel = load_config(datadir), Channel("", datadir)

    def engine() -> object:
        from rplctl.target import open_engine

        return open_engine(config.target_url)

    return open_master_info(config, channel, engine).read(), open_relay_log_info(config, channel, engine).read()  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["file", "table"])
def test_what_is_restored_is_what_was_there(configured: Program, folder: Path, kind: str, tmp_path: Path) -> None:
    if kind == "table":
        configured("switch-repo", "--to", kind)
    configured("skip", "3", "--yes")
    configured("skip", "--gtid", "0-1-9", "--yes")
    before = stored(configured.datadir)
    (made,) = json.loads(configured("backup", str(folder), "--json").out)
    assert (made["Has_Target"], made["Has_Key"]) == (kind == "table", True)
    assert made["Log_Status"]["CHANNELS"]["channels"][0]["channel_name"] == ""
    again = tmp_path / "again"
    original = configured.datadir
    configured.datadir = again
    done = configured("restore", str(folder))
    assert done.code == 0 and "to continue, run: rplctl start" in done.out
    assert stored(again) == before
    for name in ("skip_counter", "skip_gtids"):
        text = (again / "run" / "@" / name).read_text()
        assert text and text == (original / "run" / "@" / name).read_text()
    password = before[0].user_password  # type: ignore[attr-defined]
    assert reveal(password, again) == "C4nary"


def test_only_the_owner_can_read_a_backup(configured: Program, folder: Path) -> None:
    configured("switch-repo", "--to", "table")
    configured("backup", str(folder))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o600}


def test_the_key_is_left_out_when_it_is_not_wanted(configured: Program, folder: Path, tmp_path: Path) -> None:
    assert (configured.datadir / "rplctl.key").exists()
    configured("backup", str(folder), "--without-key")
    assert not (folder / "rplctl.key").exists()
    configured.datadir = tmp_path / "again"
    assert "no rplctl.key" in configured("restore", str(folder)).err


def test_a_target_file_elsewhere_comes_into_the_new_folder(program: Program, folder: Path, tmp_path: Path) -> None:
    """Never into the original's place: that one may still be running."""
    elsewhere = tmp_path / "elsewhere.db"
    program("init", "--target", f"sqlite:///{elsewhere}", "--relay-log-info-repository", "table")
    program("change-master", "--master-host", "db1", "--master-user", "u", "--master-log-file", "b.000001",
            "--master-log-pos", "4")  # fmt: skip
    assert program("backup", str(folder)).code == 0
    program.datadir = tmp_path / "again"
    program("restore", str(folder))
    assert load_config(tmp_path / "again").target_url == f"sqlite:///{tmp_path / 'again' / 'target.db'}"
    assert load_config(tmp_path / "again").relay_log_info_repository == "TABLE"
    assert isinstance(Config(tmp_path), Config) and program("show-status").code == 0


def test_filled_folders_are_refused_on_both_ends(configured: Program, folder: Path) -> None:
    folder.mkdir()
    (folder / "x").write_text("mine")
    assert configured("backup", str(folder)).code == 2
    assert [path.name for path in folder.iterdir()] == ["x"]
    (folder / "x").unlink()
    assert configured("backup", str(folder)).code == 0
    assert configured("restore", str(folder)).code == 2


def test_an_unfinished_or_damaged_backup_is_refused(configured: Program, folder: Path, tmp_path: Path) -> None:
    configured("backup", str(folder))
    manifest = (folder / MANIFEST).read_bytes()

    def refused(text: str) -> None:
        configured.datadir = tmp_path / f"again{len(text)}"
        done = configured("restore", str(folder))
        assert done.code in (1, 2) and text in done.err
        assert not (configured.datadir / "master.info").exists()

    (folder / MANIFEST).unlink()
    refused("is not a complete backup")
    (folder / MANIFEST).write_bytes(manifest[:40])
    refused("damaged")
    (folder / MANIFEST).write_bytes(manifest.replace(b'"master.info"', b'"../master.info"'))
    refused("outside of the backup")
    (folder / MANIFEST).write_bytes(manifest)
    info = folder / "master.info"
    whole = info.read_bytes()
    info.write_bytes(whole.replace(b"db1", b"db2"))
    refused("SHA-256 differs")
    info.unlink()
    refused("is missing from the backup")


def test_nobody_is_sent_for_a_dump_or_a_key_that_never_was(program: Program, folder: Path, tmp_path: Path) -> None:
    """A SQLite target that no applier has made yet, no stored password, a channel that has received nothing."""
    (tmp_path / "archive").mkdir()
    program("change-master", "--channel", "new", "--master-binlog-dir", str(tmp_path / "archive"))
    assert not (program.datadir / "target.db").exists() and not (program.datadir / "rplctl.key").exists()
    made = program("backup", str(folder))
    assert (made.code, made.err) == (0, "") and made.out.endswith("relay logs up to none\n")
    program.datadir = tmp_path / "restored"
    restored = program("restore", str(folder))
    assert (restored.code, restored.err) == (0, "")
