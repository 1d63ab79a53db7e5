"""Threads as processes: spawned, waited for, judged by what they left behind, stopped, killed when they do not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl import demo
from rplctl.channel import Channel, hold_lock, lock_holder
from rplctl.cli.start import Turns
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.check.source_end import SourceEnd
from rplctl.command.process import child as process, supervise
from rplctl.command.process.child import Child, error_of, last_line, spawn, stop_running, terminate
from rplctl.command.process.start_request import StartRequest, environment_of
from rplctl.command.process.supervise import SupervisedRun
from rplctl.config import Config
from rplctl.durable import private_folder
from rplctl.errors import LockBusy, NotRunning, RplError, SourceError, TargetError, WaitTimeout
from rplctl.position import BinlogPosition
from rplctl.secret import PASSWORD_VARIABLE
from rplctl.status import ThreadStatus
from tests.kit.replica import wait_until

pytestmark = pytest.mark.slow

DIES = "import sys; sys.stderr.write('first\\nlast words\\n'); sys.exit({code})"
HOLDS = (
    "import signal, sys, time; from pathlib import Path; from rplctl.channel import Channel, hold_lock\n"
    "{ignore}"
    "with hold_lock(Channel('', Path(sys.argv[1])), 'receiver'):\n    time.sleep(600)\n"
)
IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    made = Channel("", tmp_path)
    private_folder(made.run_folder)
    return made


@pytest.fixture
def children() -> Iterator[list[Child]]:
    started: list[Child] = []
    yield started
    for child in started:
        child.popen.kill()
        child.popen.wait()


def run(channel: Channel, code: str, children: list[Child]) -> Child:
    """A process of our own writing in the receiver's place."""
    with channel.log_path("receiver").open("ab") as log:
        popen = subprocess.Popen([sys.executable, "-c", code, str(channel.datadir)], stderr=log)
    children.append(Child("receiver", channel, popen, time.time()))
    return children[-1]


def until_held(channel: Channel, role: str = "receiver") -> int:
    deadline = time.monotonic() + 180
    while not (pid := lock_holder(channel, role)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return pid


@pytest.mark.parametrize(
    ("code", "kind"), [(6, SourceError), (7, TargetError), (75, LockBusy), (1, RplError), (9, WaitTimeout)]
)
def test_an_exit_code_comes_back_as_its_error_with_the_last_line_of_the_log(
    channel: Channel, children: list[Child], code: int, kind: type[RplError]
) -> None:
    child = run(channel, DIES.format(code=code), children)
    with pytest.raises(kind) as caught:
        process.wait_until_it_runs(child)
    assert type(caught.value) is kind
    assert caught.value.message == f"the receiver of channel '' ended with exit code {code}: last words"
    assert str(channel.log_path("receiver")) in caught.value.hint


def test_the_status_file_knows_better_than_the_log_when_it_is_of_this_run(
    channel: Channel, children: list[Child]
) -> None:
    child = run(channel, DIES.format(code=6), children)
    child.popen.wait(180)
    old = ThreadStatus(last_errno=1236, last_error="of an earlier run", last_error_timestamp=child.started - 100)
    old.write(channel.status_path("receiver"))
    assert "last words" in error_of(child, 6).message
    replace(old, last_errno=1236, last_error="purged", last_error_timestamp=time.time()).write(
        channel.status_path("receiver")
    )
    error = error_of(child, 6)
    assert (type(error), error.errno, error.message) == (SourceError, 1236, "purged")
    assert error.position == "", "it never said where it was"


@pytest.mark.parametrize(("role", "at"), [("receiver", "binlog.000002:700"), ("applier", "binlog.000001:4")])
def test_the_error_of_a_thread_names_how_far_it_came(
    channel: Channel, children: list[Child], role: str, at: str
) -> None:
    child = replace(run(channel, DIES.format(code=6), children), role=role)
    child.popen.wait(180)
    ended = ThreadStatus(last_errno=1062, last_error="x", last_error_timestamp=time.time())
    ended = replace(ended, read_log_name="binlog.000002", read_log_pos=700)
    ended = replace(ended, exec_log_name="binlog.000001", exec_log_pos=4)
    ended.write(channel.status_path(role))
    assert error_of(child, 1).position == at


def test_a_killed_child_is_told_by_its_signal(channel: Channel, children: list[Child]) -> None:
    child = run(channel, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", children)
    with pytest.raises(RplError, match="was killed by SIGKILL: its log has no message"):
        process.wait_until_it_runs(child)


def test_a_child_that_never_takes_its_lock_is_ended_after_the_timeout(channel: Channel, children: list[Child]) -> None:
    child = run(channel, "import time; time.sleep(600)", children)
    with pytest.raises(RplError, match="did not start within 0 s"):
        process.wait_until_it_runs(child, 0.3)
    assert child.exit_code() == -signal.SIGTERM


def test_whoever_holds_the_lock_is_stopped_and_nobody_is_none(channel: Channel, children: list[Child]) -> None:
    assert stop_running(channel, "receiver", 5) is None
    child = run(channel, HOLDS.format(ignore=""), children)
    assert until_held(channel) == child.popen.pid
    assert stop_running(channel, "receiver", 180) is False
    assert child.popen.wait(180) == -signal.SIGTERM


def test_one_that_does_not_listen_is_killed_after_the_timeout_and_its_lock_is_free(
    channel: Channel, children: list[Child]
) -> None:
    child = run(channel, HOLDS.format(ignore=IGNORES), children)
    until_held(channel)
    begun = time.monotonic()
    assert stop_running(channel, "receiver", 0.3) is True
    assert child.popen.wait(180) == -signal.SIGKILL and time.monotonic() - begun >= 0.3
    with hold_lock(channel, "receiver"):
        pass
    stubborn = run(channel, HOLDS.format(ignore=IGNORES), children)
    until_held(channel)
    assert terminate(stubborn, 0.2) is True


def test_one_that_does_not_listen_is_not_killed_while_its_process_serves_other_channels(
    channel: Channel, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "ABORT_TIMEOUT_S", 0.2)
    east = Channel("east", channel.datadir)
    both = HOLDS.replace("'receiver'):", "'applier'), hold_lock(Channel('east', Path(sys.argv[1])), 'applier'):")
    pid = run(channel, both.format(ignore=IGNORES), children).popen.pid
    until_held(east, "applier")
    with pytest.raises(LockBusy, match=f"its process {pid} was not killed because it also serves 'east'"):
        stop_running(channel, "applier", 0.2)
    assert lock_holder(channel, "applier") == lock_holder(east, "applier") == pid
    assert not channel.stop_path.exists()


def test_the_applier_in_a_shared_process_is_told_when_patience_is_at_its_end(
    channel: Channel, children: list[Child]
) -> None:
    east = Channel("east", channel.datadir)
    serves = (
        "import signal, sys, time; from pathlib import Path; from rplctl.channel import Channel, hold_lock\n"
        "channel = Channel('', Path(sys.argv[1]))\n"
        "held = hold_lock(channel, 'applier')\n"
        "def heed(*_):\n"
        "    told = channel.stop_path.read_text() if channel.stop_path.exists() else ''\n"
        "    if told.split()[1:] == ['now']: held.__exit__(None, None, None)\n"
        "signal.signal(signal.SIGTERM, heed)\n"
        "held.__enter__()\n"
        "with hold_lock(Channel('east', Path(sys.argv[1])), 'applier'):\n    time.sleep(600)\n"
    )
    pid = run(channel, serves, children).popen.pid
    until_held(east, "applier")
    assert stop_running(channel, "applier", 0.2) is True
    assert lock_holder(channel, "applier") is None and lock_holder(east, "applier") == pid


def test_a_stop_says_which_channel_of_the_process_it_means(channel: Channel, children: list[Child]) -> None:
    heeds = (
        f"signal.signal(signal.SIGTERM, lambda *_: sys.exit(Path({str(channel.stop_path)!r}).read_text() "
        "!= f'{__import__(\"os\").getpid()}\\n'))\n"
    )
    child = run(channel, HOLDS.format(ignore=heeds).replace("'receiver'", "'applier'"), children)
    until_held(channel, "applier")
    assert stop_running(channel, "applier", 180) is False
    assert child.popen.wait(180) == 0 and not channel.stop_path.exists()


def test_a_childs_environment_has_no_password_unless_it_is_the_stored_reference(
    channel: Channel, children: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "C4nary")
    monkeypatch.setenv("RPLCTL_CONFIG", "/old.toml")
    own = channel.datadir / "own.toml"
    os.mkfifo(own)  # nobody writes into it: there the child waits, to be looked at
    config = Config(channel.datadir, config_file=own)
    for expected in (False, True):
        environment = environment_of(config, StartRequest(), keeps_password=expected)
        child = spawn(channel, "receiver", [], environment)
        children.append(child)
        while not (found := Path(f"/proc/{child.popen.pid}/environ").read_bytes()):
            assert child.exit_code() is None, "it ended before it could be looked at"
        arguments = Path(f"/proc/{child.popen.pid}/cmdline").read_bytes()
        assert (b"C4nary" in found) == expected and b"C4nary" not in arguments
        assert f"RPLCTL_CONFIG={own}".encode() in found
        assert os.getsid(child.popen.pid) == child.popen.pid


def test_what_a_batch_has_freed_goes_back_to_the_system_unless_the_operator_says_otherwise(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setenv("MALLOC_ARENA_MAX", "8")
    environment = environment_of(Config(channel.datadir), StartRequest(), keeps_password=False)
    assert environment["MALLOC_MMAP_THRESHOLD_"] == "1048576" and environment["MALLOC_ARENA_MAX"] == "8"


def test_a_log_is_appended_private(channel: Channel, children: list[Child]) -> None:
    log = channel.log_path("receiver")
    for _ in range(2):
        with process.open_log(log) as file:
            file.write(b"x")
    assert (log.read_bytes(), log.stat().st_mode & 0o777) == (b"xx", 0o600)


def test_the_last_line_of_a_log_is_its_last_line(tmp_path: Path) -> None:
    assert last_line(tmp_path / "none") == ""
    (tmp_path / "log").write_bytes(b"\n".join([b"x" * 9000, b"the last", b""]))
    assert last_line(tmp_path / "log") == "the last"


# staying with a started channel


@pytest.fixture
def config(tmp_path: Path) -> Config:
    made = Config(tmp_path)
    change_master(made, "", MasterChanges(master_binlog_dir=os.fspath(demo.BINLOG_FOLDER)))
    return made


END = SourceEnd(BinlogPosition(demo.source_state().end_log, demo.source_state().end_position))


def test_a_thread_that_fails_ends_the_command_with_its_error_and_the_others_are_stopped(
    config: Config, channel: Channel, children: list[Child]
) -> None:
    other = run(channel, "import time; time.sleep(600)", children)
    failing = run(channel, DIES.format(code=6), children)
    with pytest.raises(SourceError, match="last words"):
        supervise.supervise(SupervisedRun(config, channel, [other, failing], None), 180, None)
    assert other.exit_code() == -signal.SIGTERM


def test_a_receiver_that_is_still_ending_is_waited_for_as_its_exit_code_says_why(
    config: Config, channel: Channel, children: list[Child]
) -> None:
    """Its lock is free before its process has ended, long before where the machine is busy."""
    waits = ThreadStatus(is_waiting=True, worked=time.time() + 3600)
    waits.write(channel.status_path("applier"))
    with hold_lock(channel, "applier"), pytest.raises(SourceError, match="last words"):
        failing = run(channel, f"import time; time.sleep(1.5); {DIES.format(code=6)}", children)
        supervise.supervise(SupervisedRun(config, channel, [failing], END), 180, None)


def test_time_up_is_an_error_only_when_something_was_to_be_reached(
    config: Config, channel: Channel, children: list[Child]
) -> None:
    for wanted in (None, END):
        with hold_lock(channel, "applier"):  # somebody else's applier, which does nothing
            child = run(channel, "import time; time.sleep(600)", children)
            here = SupervisedRun(config, channel, [child], wanted)
            if wanted is None:
                supervise.supervise(here, 0.2, None)
            else:
                with pytest.raises(WaitTimeout) as caught:
                    supervise.supervise(here, 0.2, None)
                assert caught.value.exit_code == 9 and "run: rplctl start" in caught.value.hint
            assert child.exit_code() == -signal.SIGTERM


def test_waiting_for_an_applier_that_is_not_there_fails_with_its_last_error(
    config: Config, channel: Channel, children: list[Child]
) -> None:
    ThreadStatus(last_errno=1062, last_error="Duplicate entry").write(channel.status_path("applier"))
    child = run(channel, "import time; time.sleep(600)", children)
    with pytest.raises(NotRunning, match="Duplicate entry") as caught:
        supervise.supervise(SupervisedRun(config, channel, [child], END), 180, None)
    assert caught.value.errno == 1062


def test_an_applier_that_another_command_stopped_in_good_order_is_a_lock_that_cron_comes_back_to(
    config: Config, channel: Channel, children: list[Child]
) -> None:
    ThreadStatus(exec_log_name="binlog.000001", exec_log_pos=500).write(channel.status_path("applier"))
    child = run(channel, "import time; time.sleep(600)", children)
    with pytest.raises(LockBusy, match="another command stopped the applier") as caught:
        supervise.supervise(SupervisedRun(config, channel, [child], END), 180, None)
    assert caught.value.exit_code == 75 and caught.value.hint == "to continue, run: rplctl start --until-synced"


@pytest.mark.parametrize(("number", "is_error"), [(signal.SIGTERM, False), (signal.SIGINT, True)])
def test_a_signal_stops_what_was_started_and_puts_the_handlers_back(
    config: Config, channel: Channel, children: list[Child], number: signal.Signals, is_error: bool
) -> None:
    before = signal.getsignal(number)
    child = run(channel, "import time; time.sleep(600)", children)

    def send() -> None:
        wait_until(lambda: signal.getsignal(number) is not before)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        if is_error:
            with pytest.raises(KeyboardInterrupt):
                supervise.supervise(SupervisedRun(config, channel, [child], None), 180, None)
        else:
            supervise.supervise(SupervisedRun(config, channel, [child], None), 180, None)
    finally:
        sender.join()
    assert child.exit_code() == -signal.SIGTERM and signal.getsignal(number) is before


def test_ctrl_c_says_how_far_it_came(
    config: Config, channel: Channel, children: list[Child], capsys: pytest.CaptureFixture[str]
) -> None:
    ThreadStatus(exec_log_name="binlog.000001", exec_log_pos=500).write(channel.status_path("applier"))
    with hold_lock(channel, "applier"), pytest.raises(KeyboardInterrupt), Turns(StartRequest()).watched():
        child = run(channel, "import time; time.sleep(600)", children)
        supervise.supervise(
            SupervisedRun(config, channel, [child], END), 180, lambda *_: os.kill(os.getpid(), signal.SIGINT)
        )
    assert capsys.readouterr().err == (
        f"ERROR: channel '' was stopped by SIGINT before it was at {END.position}\n"
        "position: binlog.000001:500\nhint: to continue from this position, run: rplctl start\n"
    )


def test_progress_is_the_appliers_own_word(config: Config, channel: Channel, children: list[Child]) -> None:
    ThreadStatus(exec_log_name="binlog.000001", exec_log_pos=500).write(channel.status_path("applier"))
    seen: list[tuple[BinlogPosition, BinlogPosition]] = []
    with hold_lock(channel, "applier"), pytest.raises(WaitTimeout):
        child = run(channel, "import time; time.sleep(600)", children)
        here = SupervisedRun(config, channel, [child], END)
        supervise.supervise(here, 0.2, lambda executed, wanted: seen.append((executed, wanted)))
    assert set(seen) == {(BinlogPosition("binlog.000001", 500), END.position)}
