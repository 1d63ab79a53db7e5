"""Channels: files that cannot collide or escape the instance folder, and locks that die with their holder."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from rplctl.channel import (
    OWED_SECONDS,
    Channel,
    SignalsOfChannels,
    check_channel_name,
    decode_channel_name,
    encode_channel_name,
    hold_lock,
    lock_holder,
)
from rplctl.errors import LockBusy, RplError, UsageError
from rplctl.locks import FileLock

HOLD = """
import sys, time
from pathlib import Path
from rplctl.channel import Channel, hold_lock
with hold_lock(Channel("", Path(sys.argv[1])), "applier"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_file_names_are_those_of_a_mariadb_server(tmp_path: Path) -> None:
    channel = Channel("ch A", tmp_path)
    assert channel.master_info_path.name == "master-ch@0020a.info"
    assert channel.relay_log_info_path.name == "relay-log-ch@0020a.info"
    assert channel.relay_log_index_path.name == "relay-bin-ch@0020a.index"
    assert Channel("", tmp_path).master_info_path.name == "master.info"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=64))
def test_an_encoded_name_is_a_plain_file_name_and_comes_back(name: str) -> None:
    encoded = encode_channel_name(name)
    assert all(c.isascii() and (c.isalnum() or c in "_@") for c in encoded)
    assert decode_channel_name(encoded) == name.lower()


@pytest.mark.parametrize("name", ["x" * 65, "a\nb", "a\x7fb", " a", "tail "])
def test_a_name_that_the_server_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_channel_name(name)
    assert caught.value.errno == 3076


def test_a_second_holder_is_told_who_has_the_lock(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    with hold_lock(channel, "applier"):
        assert lock_holder(channel, "applier") == os.getpid()
        with pytest.raises(LockBusy, match=str(os.getpid())), hold_lock(channel, "applier"):
            pass
        with hold_lock(channel, "receiver"):
            pass
    assert lock_holder(channel, "applier") is None


def test_a_disk_without_room_for_the_holder_names_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    channel = Channel("", tmp_path)
    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(RplError, match=f"^{channel.lock_path('receiver')}: No space left") as failed:
        with hold_lock(channel, "receiver"):
            pass
    assert failed.value.errno == 1021
    assert lock_holder(channel, "receiver") is None
    lock = FileLock(tmp_path / "noted.lock")
    with lock.held(), pytest.raises(OSError, match=r"noted\.lock"):
        lock.note("somebody")


def test_a_killed_holder_frees_the_lock_at_once(tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert lock_holder(channel, "applier") == holder.pid
        holder.send_signal(signal.SIGKILL)
    assert lock_holder(channel, "applier") is None
    with hold_lock(channel, "applier"):
        pass


def ask(channel: Channel, words: str) -> None:
    channel.run_folder.mkdir(parents=True, exist_ok=True)
    channel.stop_path.write_text(words)


def test_two_stops_at_once_stop_two_channels_and_no_third(tmp_path: Path) -> None:
    """The first signal finds the files of both; the second one finds none, and is not for all."""
    a, b, c = channels = [Channel(name, tmp_path) for name in "abc"]
    signals = SignalsOfChannels("applier")
    ask(a, f"{os.getpid()} now")
    ask(b, f"{os.getpid()}")
    assert signals.meant(channels) == {a: [str(os.getpid()), "now"], b: [str(os.getpid())]}
    assert signals.meant(channels) == {}
    assert signals.meant(channels) == {a: [], b: [], c: []}, "one that nobody wrote a file for"


def test_a_file_for_another_process_is_none_for_this_one(tmp_path: Path) -> None:
    channel = Channel("a", tmp_path)
    ask(channel, f"{os.getpid() + 1}")
    assert SignalsOfChannels("applier").meant([channel]) == {channel: []}
    assert channel.stop_path.exists()


def test_a_signal_that_never_came_is_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channels = [Channel(name, tmp_path) for name in "ab"]
    signals, clock = SignalsOfChannels("applier"), [100.0]
    monkeypatch.setattr("rplctl.channel.time.monotonic", lambda: clock[0])
    for channel in channels:
        ask(channel, f"{os.getpid()}")
    assert len(signals.meant(channels)) == 2
    clock[0] += OWED_SECONDS
    assert signals.meant(channels) == dict.fromkeys(channels, [])
