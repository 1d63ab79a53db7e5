"""Runs the commands of the options on_error and on_recovery. They get a report as JSON on standard input.

`call` starts a separate process, `python -m rplctl.hook`, and returns at once. This process runs the command, so the
command continues even if the calling thread ends. Invariants: only `wait_for_hooks` waits for a command. In one
instance, only one command runs at a time, for at most TIMEOUT_S. The output of a command is discarded; if the command
fails, the end of its output is in the log and in the history.
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
PATIENCE_S: Final = 120.0  # the longest wait for other commands, after which the command is not called
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ")  # variables for the command; others may contain passwords
_MOST_WORDS = 500  # characters
log = logging.getLogger("rplctl.hook")


def call(command: str, datadir: Path, report: Mapping[str, Any]) -> None:
    """Start the command, which reads `report` as a JSON object. Do not wait for the end of the command.

    `report` has at least the keys event, channel and thread. Raises OSError if the process cannot be started.
    """
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
    threading.Thread(target=runner.wait, name="rplctl-hook", daemon=True).start()  # avoids a zombie process


def wait_for_hooks(datadir: Path) -> None:
    """Wait until no command of the instance runs, but not longer than TIMEOUT_S + 5 seconds.

    A process calls this before it ends, because systemd would otherwise kill a command that still runs.
    """
    if _busy(datadir).exists():
        with closing(FileLock(_busy(datadir))) as busy:
            busy.acquire(patience_s=TIMEOUT_S + 5)


def _busy(datadir: Path) -> Path:
    return datadir / "run" / "hook.busy"


def main(arguments: list[str]) -> int:
    """Run a command in the process that `call` has started, and report a failure of the command.

    `arguments`: the instance folder. Standard input has the command and the report; standard error is the log of the
    calling thread.
    """
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
            failure = f"not called, because another command ran for {PATIENCE_S:g} s"
    if failure:
        text = f"on_{report['event']}: {failure}"
        log.warning("%s", text)
        note_event(datadir, report["channel"], "hook", text, thread=report["thread"])
    return 0


def run_command(command: str, document: bytes) -> str:
    """Run the command with `document` as its standard input, and return a description of its failure.

    Return '' if the command succeeds.
    """
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
    words: deque[bytes] = deque(maxlen=2)  # the last two parts of the output
    listening = threading.Thread(target=_listen, args=(reading, words), daemon=True)
    listening.start()
    with suppress(OSError), process.stdin as given:  # type: ignore[union-attr]  # the command may not read it
        given.write(document)
    try:
        code = process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"killed after {TIMEOUT_S:g} s"
    listening.join(1)  # a background process of the command may keep the pipe open
    said = masked(b"".join(words).decode(errors="replace").strip()[-_MOST_WORDS:])
    return f"ended with code {code}{f': {said}' if said else ''}" if code else ""


def _listen(descriptor: int, words: deque[bytes]) -> None:
    while piece := os.read(descriptor, 4096):
        words.append(piece)
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
