"""A signal goes to the process that holds the lock, and to no other, whatever number the file holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rplctl.channel import Channel, hold_lock
from rplctl.command.process import child as process
from rplctl.errors import LockBusy, RplError
from rplctl.own_process import ended_how, signal_holder

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_process_that_does_not_hold_the_lock_gets_no_signal(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    lock.touch()
    with subprocess.Popen(SLEEPER) as other:
        try:
            with pytest.raises(
                LockBusy, match=f"names process {other.pid}, which does not hold it: no signal was sent"
            ):
                signal_holder(other.pid, signal.SIGKILL, lock, "the applier")
            time.sleep(0.05)
            assert other.poll() is None
        finally:
            other.kill()


@pytest.mark.parametrize("number", ["1", "0", "junk", "-1", "9" * 30, "٣", "", "x" * 5000])
def test_a_lock_file_with_junk_ends_stop_with_an_error_and_signals_nobody(
    tmp_path: Path, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "POLL_S", 0.0001)
    channel = Channel("", tmp_path)
    with hold_lock(channel, "applier"):
        channel.lock_path("applier").write_text(number)
        with pytest.raises(RplError, match="unknown process|does not hold it|did not stop|another user"):
            if process.stop_running(channel, "applier", 0) is not None:
                raise RplError("did not stop")


def test_the_holder_gets_it(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    with open(lock, "w") as held, subprocess.Popen(SLEEPER, pass_fds=[held.fileno()]) as holder:
        assert signal_holder(holder.pid, signal.SIGTERM, lock, "the applier")
        assert holder.wait(60) == -signal.SIGTERM
        assert not signal_holder(holder.pid, signal.SIGTERM, lock, "the applier"), "it is gone"


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_users_process_is_said_to_be_that(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    lock.touch()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            signal_holder(os.getppid(), signal.SIGTERM, Path("/proc/self/status"), "the applier")
        except RplError as error:
            os.write(write, error.message.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    assert os.read(read, 1000).decode() == f"process {os.getpid()}, the applier, belongs to another user"
    os.close(read)


@pytest.mark.parametrize(
    ("code", "words"),
    [(3, "ended with exit code 3"), (-signal.SIGBUS, "was killed by SIGBUS"), (-40, "was killed by 40")],
)
def test_how_a_process_ended_is_said_in_words(code: int, words: str) -> None:
    """40 is a real-time signal, which has no name."""
    assert ended_how(code) == words


STOPPED = """
import os, signal, threading
from rplctl.own_process import stop_on_signals
stopped, real = threading.Event(), signal.signal

def at_once(number, handler):
    real(number, handler)
    os.kill(os.getpid(), number)

signal.signal = at_once
stop_on_signals(stopped.set, signal.SIGTERM, signal.SIGINT)
print(stopped.wait(60))
"""


def test_a_signal_that_comes_right_after_its_handler_is_not_lost() -> None:
    """The applier ignored such a SIGTERM, and `stop` killed it after 60 s."""
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
