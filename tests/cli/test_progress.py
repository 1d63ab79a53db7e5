"""Progress of --until-synced: a live line on a terminal, a line now and then in a log, nothing when quiet."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from rplctl.cli import progress
from rplctl.cli.progress import progress_unless
from rplctl.position import BinlogPosition

NOTHING = BinlogPosition("", 0)
HALF = BinlogPosition("binlog.000003", 500)
END = BinlogPosition("binlog.000003", 1000)


def test_quiet_shows_nothing() -> None:
    with progress_unless(True) as report:
        assert report is None


def test_a_log_gets_a_line_every_interval_not_every_call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_unless(False) as report:
        assert report is not None
        for _ in range(100):
            report(NOTHING, END)
        assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "INTERVAL_S", 0.0)
    with progress_unless(False) as report:
        assert report is not None
        report(NOTHING, END)
        report(HALF, END)
    assert capsys.readouterr().err == (
        "applied to nothing yet of binlog.000003:1000\napplied to binlog.000003:500 of binlog.000003:1000\n"
    )


def test_a_terminal_gets_a_live_line_that_is_gone_afterwards() -> None:
    """Runs in a process of its own: stderr is a terminal there."""
    code = (
        "from rplctl.cli.progress import progress_unless\nfrom rplctl.position import BinlogPosition as P\n"
        "with progress_unless(False) as report:\n"
        "    report(P('', 0), P('b.000003', 1000)); report(P('b.000003', 500), P('b.000003', 1000))\n"
    )
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:
        pass  # the other side is closed
    os.close(master)
    assert process.wait(180) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert "applied to b.000003:500 of b.000003:1000" in text
    assert b"\x1b[2K" in shown, "the line is erased at the end"
