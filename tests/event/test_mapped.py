"""A log file that another process extends and cuts is mapped up to the end of the part that is read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from rplctl.event.mapped import mapped_to

END = 4096


def test_a_file_is_mapped_while_its_writer_cuts_it_after_the_end(tmp_path: Path) -> None:
    """Of 3,000 maps of the whole file, some hundreds failed while another thread cut it."""
    path, has_ended = tmp_path / "relay-bin.000001", threading.Event()
    path.write_bytes(b"x" * END)

    def write_and_cut() -> None:
        descriptor = os.open(path, os.O_RDWR)
        while not has_ended.is_set():
            os.ftruncate(descriptor, 1 << 20)
            os.ftruncate(descriptor, END)
        os.close(descriptor)

    writer = threading.Thread(target=write_and_cut)
    writer.start()
    try:
        assert {len(mapped_to(str(path), END)) for _ in range(3000)} == {END}
    finally:
        has_ended.set()
        writer.join()


def test_a_shorter_file_is_mapped_whole_and_a_missing_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"abc")
    assert mapped_to(str(path), END).tobytes() == b"abc"
    with pytest.raises(FileNotFoundError):
        mapped_to(str(tmp_path / "nothing"), END)
