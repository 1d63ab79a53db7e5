"""A folder that cannot be written: every command that changes something says which path, and what to do; exit code 1.

Those that only look still work, and once the folder can be written again nothing is found changed.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl.errors import file_error
from rplctl.repository import create_tables
from tests.cli.program import Program
from tests.kit.small_disk import fill, release, small_disk

CHANGING = (
    "switch-repo --to table",
    "change-master --master-connect-retry 5",
    "purge-relay-logs",
    "purge-binary-logs --to bin.000009",
    "change-filter --replicate-do-db shop",
    "reset --yes",
    "reset --all --yes",
    "skip 1 --yes",
    "recover",
    "start",
)
LOOKING = ("show-status", "show-channels", "check")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk(tmp_path_factory.mktemp("disk"), 4) as folder:
        yield folder


@pytest.fixture(scope="module")
def configured(disk: Path) -> Path:
    from rplctl.command.change_master import change_master
    from rplctl.command.channel.change_options import MasterChanges
    from rplctl.command.channel.context import engine_of
    from rplctl.config import Config

    config = Config(disk / "instance")
    change_master(config, "", MasterChanges(master_host="db1", master_user="u"))
    create_tables(engine_of(config)())
    return config.datadir


@pytest.fixture(scope="module")
def read_only(configured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same folder seen through a mount that takes no writes."""
    folder = tmp_path_factory.mktemp("read-only")
    subprocess.run(["mount", "--bind", "-o", "ro", configured, folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("command", CHANGING)
def test_on_a_read_only_disk_a_change_names_the_path_and_the_way_on(
    read_only: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    done = Program(read_only, capsys)(*command.split())
    assert done.code == 1
    assert f"{read_only}/" in done.err and "Read-only file system" in done.err
    assert "is read-only, run: dmesg" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("command", LOOKING)
def test_on_a_read_only_disk_one_can_look(read_only: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    done = Program(read_only, capsys)(*command.split())
    assert "Read-only" not in done.err and done.code in (0, 2), done.err  # `check` finds threads that do not run


def test_afterwards_nothing_is_changed(read_only: Path, configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (configured / "master.info").read_bytes()
    for command in CHANGING:
        assert Program(read_only, capsys)(*command.split()).code == 1
    assert (configured / "master.info").read_bytes() == before
    assert Program(configured, capsys)("change-master", "--master-connect-retry", "5").code == 0


def test_on_a_full_disk_a_change_says_so_and_leaves_no_half(
    disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Program(disk / "another", capsys)
    assert program("init", "--target", f"sqlite:///{tmp_path}/target.db").code == 0
    assert program("change-master", "--master-host", "db1").code == 0
    before = (program.datadir / "master.info").read_bytes()
    fill(disk)
    try:
        done = program("change-master", "--master-host", "db2", "--master-port", "3307")
        assert (done.code, "ERROR 1021" in done.err, f"df {program.datadir}" in done.err) == (1, True, True), done.err
        assert (program.datadir / "master.info").read_bytes() == before
        assert not list(program.datadir.rglob(".*.tmp*"))
    finally:
        release(disk)
    assert program("change-master", "--master-host", "db2", "--master-port", "3307").code == 0


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EIO, errno.ELOOP])
def test_every_refusal_has_a_path_a_hint_and_one_exit_code(tmp_path: Path, code: int) -> None:
    shown = file_error(OSError(code, os.strerror(code), str(tmp_path / "master.info")))
    assert shown.exit_code == 1 and shown.message == f"{tmp_path / 'master.info'}: {os.strerror(code)}"
    assert str(tmp_path) in shown.hint
