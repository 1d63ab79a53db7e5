"""Whatever stands in a file's place: bytes, or an error that names it, and nobody waits."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from rplctl.plain_file import UnfitFile, open_plain, parsed_json, read_plain


def test_files_are_read_whole_and_only_so_large(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"12345")
    link.symlink_to(path)
    assert read_plain(path, 5) == read_plain(link) == b"12345"
    with pytest.raises(UnfitFile, match="x: larger than 4 bytes"):
        read_plain(path, 4)
    with pytest.raises(UnfitFile, match="link is a symbolic link"):
        read_plain(link, follow=False)
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "missing")


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREAT])
def test_what_is_no_file_is_named(tmp_path: Path, flags: int) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, words in (("folder", "a folder"), ("fifo", "a FIFO"), ("socket", "a socket"), ("device", "a device")):
        with pytest.raises(UnfitFile, match=f"{name} is {words}, not a file") as refused:
            open_plain(tmp_path / name, flags)
        assert refused.value.hint


@pytest.mark.parametrize("data", [b"[" * 200_000, b"{", b"\xff", b"9" * 10_000])
def test_what_is_no_json_is_one_kind_of_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        parsed_json(data)
