"""Status files: whole or absent, readable by older and newer programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rplctl.status import ThreadStatus, read_status


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "applier.status.json"
    ThreadStatus(state="Reading", last_errno=1062, last_error="x: 'Zoë'", remaining_delay=3).write(path)
    found = read_status(path)
    assert (found.state, found.last_errno, found.last_error, found.remaining_delay) == ("Reading", 1062, "x: 'Zoë'", 3)


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff\xfe"])
def test_no_status_is_an_empty_status(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "s.json"
    if content is not None:
        path.write_bytes(content)
    assert read_status(path).state == ""


def test_fields_of_a_newer_program_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"state": "x", "invented_later": 1}))
    assert read_status(path).state == "x"
