"""Run the command line in a process of its own on a terminal of any width, as an operator sees it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.cli.program import Outcome

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(datadir: Path, *arguments: str, columns: int = 100, typed: str = "", plain: bool = True) -> Outcome:
    """`out` is all that appeared on the screen, both streams; with `plain` without colours."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    command = [sys.executable, "-m", "rplctl", "--datadir", str(datadir), *arguments]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")} | {"TERM": "xterm"}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
    )
    os.close(slave)
    shown = b""
    try:
        while piece := _read(master):
            shown += piece
            if typed and shown.rstrip().endswith((b":", b"]")):  # asked: what is typed before is thrown away
                os.write(master, typed.encode())
                typed = ""
        code = process.wait(180)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    text = shown.decode().replace("\r\n", "\n")
    return Outcome(code, _ESCAPES.sub("", text) if plain else text, "")


def until(terminal: int, text: str) -> str:
    """Read what appears on a terminal until that text is in it."""
    shown, deadline, told = "", time.monotonic() + 30, select.poll()  # a run has more files open than select() takes
    told.register(terminal, select.POLLIN)
    while text not in shown:
        assert time.monotonic() < deadline, shown
        if told.poll(200):
            shown += os.read(terminal, 65536).decode(errors="replace")
    return shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""
