"""`user`: the accounts of `serve --mysql` come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.program import Program


def test_user_and_serve_make_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "typo", capsys)
    assert program("user", "add", "x").code == 4
    assert program("user", "list").code == 4
    assert program("serve", "--listen", "", "--mysql", "127.0.0.1:0").code == 4
    assert not program.datadir.exists()


def test_user_adds_lists_and_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path, capsys)
    assert "password" in program("user", "add", "new", "--role", "admin").out
    assert program("user", "add", "new").code == 2 and program("user", "add", "y", "--role", "king").code == 2
    assert "new\tadmin" in program("user", "list").out
    assert program("user", "remove", "new").code == 0 and program("user", "remove", "new").code == 2
