"""A transaction's undo is a file of its own, private and whole; the last one's name comes first."""

from __future__ import annotations

from pathlib import Path

from rplctl.verify.undo import UndoFolder


def test_the_last_transaction_comes_first(tmp_path: Path) -> None:
    undo = UndoFolder(tmp_path / "undo" / "1")
    assert not undo.is_used
    first, second = undo.write("1"), undo.write("2")
    assert sorted(undo.path.iterdir()) == [second, first]
    assert (first.stat().st_mode & 0o777, undo.path.stat().st_mode & 0o777) == (0o600, 0o700)
    undo.drop(second)
    assert [path.read_text() for path in undo.path.iterdir()] == ["1"]
