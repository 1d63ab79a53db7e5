"""on_error and on_recovery: the operator's commands, called with JSON on standard input beside what they are told of.

`call` returns at once; what runs the command is a process of its own, `python -m rplctl.hook`, which outlives a thread
that has ended. Invariants: nobody waits for the command but who asks (`wait_for_hooks`); of an instance one runs at a
time, TIMEOUT_S at most; whatever it writes is read and forgotten but for its last words, when it fails.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from rplctl.history import note_event
from rplctl.locks import FileLock
from rplctl.log_file import LineFormatter
from rplctl.mask import masked
from rplctl.own_process import OWN_FOLDER, OWN_UMASK, own_environment, own_python

TIMEOUT_S: Final = 30.0
PATIENCE_S: Final = 120.0  # for others that run; then it is not called
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ")  # of the environment, which may hold passwords
_MOST_WORDS = 500  # characters
log = logging.getLogger("rplctl.hook")


def call(command: str, datadir: Path, report: Mapping[str, Any]) -> None:
    """Begin it. `report` goes to it as one JSON object; event, channel and thread are in it. Raises OSError."""
    with closing(FileLock(_busy(datadir))) as busy:
        busy.acquire(shared=True)
        runner = subprocess.Popen(
            own_python("-m", "rplctl.hook", str(datadir.resolve())),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=own_environment(),
            pass_fds=(busy.descriptor,),
            start_new_session=True,
            cwd=OWN_FOLDER,
            umask=OWN_UMASK,
        )
    with suppress(BrokenPipeError):
        assert runner.stdin is not None
        runner.stdin.write(json.dumps({"command": command, "report": dict(report)}).encode())
        runner.stdin.close()
    threading.Thread(target=runner.wait, name="rplctl-hook", daemon=True).start()  # no zombie of a thread that goes on


def wait_for_hooks(datadir: Path) -> None:
    """Until those that were begun have ended, where the end of this process would end them (systemd)."""
    if _busy(datadir).exists():
        with closing(FileLock(_busy(datadir))) as busy:
            busy.acquire(patience_s=TIMEOUT_S + 5)


def _busy(datadir: Path) -> Path:
    return datadir / "run" / "hook.busy"


def main(arguments: list[str]) -> int:
    """The runner; its standard error is the log of the thread that called it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s [%(levelname)s] %(name)s: %(message)s"))
    log.addHandler(handler)
    datadir = Path(arguments[0])
    asked = json.load(sys.stdin)
    report = asked["report"]
    with closing(FileLock(datadir / "run" / "hook.lock")) as turn:
        if turn.acquire(patience_s=PATIENCE_S):
            failure = run_command(asked["command"], json.dumps(report).encode() + b"\n")
        else:
            failure = f"it was not called, for another one ran for {PATIENCE_S:g} s"
    if failure:
        text = f"on_{report['event']}: {failure}"
        log.warning("%s", text)
        note_event(datadir, report["channel"], "hook", text, thread=report["thread"])
    return 0


def run_command(command: str, document: bytes) -> str:
    """Run the command; return what went wrong, or ''."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=writing,
        stderr=writing,
        cwd=OWN_FOLDER,
        env={name: os.environ[name] for name in _KEPT if name in os.environ},
        start_new_session=True,
    )
    os.close(writing)
    words: deque[bytes] = deque(maxlen=2)  # the last two pieces
    listening = threading.Thread(target=_listen, args=(reading, words), daemon=True)
    listening.start()
    with suppress(OSError), process.stdin as given:  # type: ignore[union-attr]  # it may not want to know
        given.write(document)
    try:
        code = process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"it was killed after {TIMEOUT_S:g} s"
    listening.join(1)  # what it left in the background may hold the pipe
    said = masked(b"".join(words).decode(errors="replace").strip()[-_MOST_WORDS:])
    return f"it ended with {code}{f': {said}' if said else ''}" if code else ""


def _listen(descriptor: int, words: deque[bytes]) -> None:
    while piece := os.read(descriptor, 4096):
        words.append(piece)
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
