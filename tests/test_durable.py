"""Durable writes: whole files or none, private, and every fsync counted."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rplctl.durable import (
    is_readable_by_others,
    private_folder,
    remove_file,
    remove_leftovers,
    rename,
    replace_file,
    replacing,
    sync_count,
    write_all,
)


def test_a_file_is_replaced_at_once_and_private_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "master.info"
    old = os.umask(0)
    try:
        replace_file(path, b"one")
        replace_file(path, b"two")
    finally:
        os.umask(old)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["master.info"]


def test_a_durable_replacement_costs_two_fsyncs_the_other_none(tmp_path: Path) -> None:
    before = sync_count.total()
    replace_file(tmp_path / "a", b"x")
    assert sync_count.total() == before + 2
    replace_file(tmp_path / "a", b"y", durable=False)
    assert sync_count.total() == before + 2


def test_a_failed_write_leaves_the_old_file_and_no_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "master.info"
    replace_file(path, b"old")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_short_write_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def three_at_most(_: int, data: memoryview) -> int:
        written.append(bytes(data[:3]))
        return len(written[-1])

    monkeypatch.setattr(os, "write", three_at_most)
    write_all(0, b"abcdefgh")
    monkeypatch.undo()
    assert written == [b"abc", b"def", b"gh"]


def test_a_folder_never_takes_the_name_of_one_that_has_files(tmp_path: Path) -> None:
    made, there = tmp_path / "made", tmp_path / "there"
    for folder in (made, there):
        folder.mkdir()
        (folder / folder.name).touch()
    with pytest.raises(FileExistsError, match="there"):
        rename(made, there)
    assert (made / "made").exists() and os.listdir(there) == ["there"]
    rename(made, tmp_path / "new")
    assert os.listdir(tmp_path / "new") == ["made"]


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    remove_file(tmp_path / "nothing")


def test_folders_are_private_and_secrets_others_can_read_are_seen(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    secret = folder / "s"
    secret.write_text("x")
    secret.chmod(0o640)
    assert is_readable_by_others(secret)
    secret.chmod(0o600)
    assert not is_readable_by_others(secret)


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    dead, alive, young = (tmp_path / f".master.info.tmp{pid}.7" for pid in ("4194999", os.getpid(), "4194998"))
    others = [tmp_path / name for name in ("master.info", ".master.info.synced", ".x.tmpfile")]
    for path in (dead, tmp_path / f"{dead.name}.keep", alive, young, *others):
        path.write_text("x")
        os.utime(path, (1, 1))
    os.utime(young)
    assert sorted(remove_leftovers(tmp_path)) == [dead.name, f"{dead.name}.keep"]
    assert sorted(tmp_path.iterdir()) == sorted([alive, young, *others])


def test_threads_that_replace_one_file_at_once_do_not_meet(tmp_path: Path) -> None:
    path, gate = tmp_path / "a", threading.Barrier(8)

    def replace(number: int) -> None:
        gate.wait()
        for _ in range(200):
            replace_file(path, f"{number}".encode() * 1000, durable=False)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(replace, range(8)))
    assert len(set(path.read_bytes())) == 1 and os.listdir(tmp_path) == ["a"]


def test_content_that_comes_in_pieces_takes_the_files_place_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with replacing(path) as descriptor:
        os.write(descriptor, b"ne")
        assert path.read_text() == "old"
        os.write(descriptor, b"w")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a"]
    with pytest.raises(ValueError), replacing(path):
        raise ValueError
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a"]


def test_a_file_that_has_the_temporary_files_name_is_not_written_to(tmp_path: Path) -> None:
    """Who may write to the folder may have it open, or have linked it to another file."""
    planted = tmp_path / f".a.tmp{os.getpid()}.{threading.get_native_id()}"
    kept = tmp_path / "theirs"
    for plant in (lambda: planted.write_text("theirs"), lambda: planted.symlink_to(kept)):
        plant()
        with planted.open("a+") as theirs:
            replace_file(tmp_path / "a", b"ours")
            theirs.seek(0)
            assert theirs.read() in ("", "theirs")
        assert (tmp_path / "a").read_bytes() == b"ours" and not planted.exists()
