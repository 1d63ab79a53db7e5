"""`top`: the worst channel first, why in its second line, within 80 columns, and a terminal that is as it was."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import termios

import pytest

from rplctl.cli.top import spark
from tests.cli.program import Program
from tests.cli.terminal import on_terminal, until


def test_the_last_hour_is_drawn_by_the_highest_of_each_part() -> None:
    assert spark([]) == " " * 10
    assert spark([0] * 50) == "▁" * 10
    assert spark([None] * 5 + [1, 2, 4, 7, 7]) == "     ▂▃▅██"
    assert spark([*range(10)])[0] == "▁" and len(spark([*range(1000)])) == 10


def test_elsewhere_than_on_a_terminal_one_picture_is_printed(configured: Program) -> None:
    configured("change-master", "--channel", "east", "--master-host", "db2")
    done = configured("top")
    lines = done.out.splitlines()
    assert done.code == 0 and "2 channels: 2 CRITICAL" in lines[0]
    assert [word for word in ("(default)", "east") if not any(line.startswith(word) for line in lines)] == []
    assert sum("never started: rplctl start" in line for line in lines) == 2
    assert max(map(len, lines)) <= 80
    rows = json.loads(configured("top", "--json", "--sort", "name").out)
    assert [row["Channel_Name"] for row in rows] == ["", "east"] and rows[0]["Applier"] == "stopped"


def test_an_order_that_is_none_is_refused(configured: Program) -> None:
    done = configured("top", "--sort", "size")
    assert done.code == 2 and "--sort size" in done.err


@pytest.mark.long("One end stays; a signal restores the terminal in the same way.", keeps=r"^q$")
@pytest.mark.slow
@pytest.mark.parametrize("end", ["q", "\x03", signal.SIGTERM])
def test_keys_sort_and_quit_and_the_terminal_is_as_it_was(configured: Program, end: str | signal.Signals) -> None:
    ours, its = pty.openpty()
    before = termios.tcgetattr(its)
    command = [sys.executable, "-m", "rplctl", "--datadir", str(configured.datadir), "top", "--interval", "0.1"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env=environment, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )  # fmt: skip
    try:
        shown = until(ours, "by state")
        assert "\x1b[?1049h" in shown, "on a screen of its own"
        os.write(ours, b"l")
        until(ours, "by lag")
        os.write(ours, b"\x1b[A")  # an arrow: three characters, and no Escape
        until(ours, "by lag")
        if isinstance(end, str) and end != "\x03":
            os.write(ours, end.encode())
        else:
            process.send_signal(end if isinstance(end, signal.Signals) else signal.SIGINT)
        shown = until(ours, "\x1b[?1049l")
        assert process.wait(10) == (130 if end == "\x03" else 0) and "Traceback" not in shown
        assert termios.tcgetattr(its) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(its)


def test_on_a_terminal_of_any_width_each_line_fits(configured: Program) -> None:
    shown = on_terminal(configured.datadir, "top", "--json", columns=60)
    assert json.loads(shown.out)[0]["Trouble"]
