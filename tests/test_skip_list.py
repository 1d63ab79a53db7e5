"""The skip files: what is written is read, nothing is nothing, RESET leaves none."""

from __future__ import annotations

from pathlib import Path

from rplctl.skip_list import clear, read_count, read_gtids, write_count, write_gtids


def test_a_number_and_gtids_come_back_until_they_are_cleared(tmp_path: Path) -> None:
    assert (read_count(tmp_path), read_gtids(tmp_path)) == (0, ())
    write_count(tmp_path, 3)
    write_gtids(tmp_path, ["0-1-7", "1-2-3"])
    assert (read_count(tmp_path), read_gtids(tmp_path)) == (3, ("0-1-7", "1-2-3"))
    clear(tmp_path)
    assert (read_count(tmp_path), read_gtids(tmp_path)) == (0, ())


def test_a_file_that_holds_no_number_skips_nothing(tmp_path: Path) -> None:
    (tmp_path / "skip_counter").write_text("many\n")
    assert read_count(tmp_path) == 0
