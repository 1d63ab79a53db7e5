"""Locks of an instance: who keeps out whom, nobody starves, a killed holder frees them (WL#9452, design D8)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rplctl.errors import LockBusy
from rplctl.locks import FileLock, InstanceLock, RwLock, lock_wait_timeout
from tests.kit.replica import wait_until


def test_a_lock_taken_twice_is_free_after_two_releases(tmp_path: Path) -> None:
    mine, other = FileLock(tmp_path / "run" / "x.lock"), FileLock(tmp_path / "run" / "x.lock")
    assert mine.acquire() and mine.acquire()
    mine.release()
    assert not other.acquire(patience_s=0)
    mine.release()
    assert other.acquire(patience_s=0)
    other.close()
    mine.close()


def test_a_wait_ends_when_it_is_told_to(tmp_path: Path) -> None:
    mine, other = FileLock(tmp_path / "x.lock"), FileLock(tmp_path / "x.lock")
    with mine.held():
        told = threading.Event()
        threading.Timer(0.1, told.set).start()
        assert not other.acquire(stop=told.is_set)
        assert not other.acquire(patience_s=0.1)
    other.close()


def test_shared_holders_stand_together_and_keep_an_exclusive_one_out(tmp_path: Path) -> None:
    one, two, writer = (RwLock(tmp_path, "x") for _ in range(3))
    assert one.acquire_shared() and two.acquire_shared()
    assert not writer.acquire_exclusive(0)
    one.release_shared()
    assert not writer.acquire_exclusive(0)
    two.release_shared()
    assert writer.acquire_exclusive(0)
    with one.shared(0) as is_held:
        assert not is_held
    writer.close()
    with one.shared(0) as is_held:
        assert is_held
    for lock in (one, two, writer):
        lock.close()


def test_an_exclusive_waiter_is_not_starved_by_a_stream_of_shared_ones(tmp_path: Path) -> None:
    """Two that overlap all the time would keep a third out for ever without the gate."""
    done = threading.Event()
    rounds = [0, 0]

    def share(number: int) -> None:
        lock = RwLock(tmp_path, "x")
        while not done.is_set():
            with lock.shared():
                rounds[number] += 1
                time.sleep(0.02)
        lock.close()

    threads = [threading.Thread(target=share, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    writer = RwLock(tmp_path, "x")
    try:
        wait_until(lambda: min(rounds) >= 1)
        for _ in range(10):
            assert writer.acquire_exclusive(180), rounds
            writer.close()
    finally:
        done.set()
        for thread in threads:
            thread.join()
        writer.close()


def test_backups_stand_together_and_keep_commands_out_and_the_reverse(tmp_path: Path) -> None:
    first, second, verb, other_verb = (InstanceLock(tmp_path) for _ in range(4))
    assert first.acquire_backup(0) and second.acquire_backup(0)
    assert not verb.acquire_verb(0)
    first.close()
    assert not verb.acquire_verb(0)
    second.close()
    assert verb.acquire_verb(0) and other_verb.acquire_verb(0)
    assert not first.acquire_backup(0)
    verb.close()
    other_verb.close()
    assert first.acquire_backup(0)
    first.close()


def test_a_killed_holder_frees_its_locks(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from rplctl.locks import RwLock\n"
        "lock = RwLock(Path(sys.argv[1]), 'x'); lock.acquire_exclusive(); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    mine = RwLock(tmp_path, "x")
    assert not mine.acquire_shared(0)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert mine.acquire_shared(0)
    mine.close()


def test_a_wait_that_is_over_has_mysqls_number_and_words() -> None:
    error = lock_wait_timeout("a backup", "rplctl unlock-instance")
    assert (error.errno, error.exit_code) == (1205, LockBusy.exit_code)
    assert error.message == "Lock wait timeout exceeded; try restarting transaction (a backup)"
    with pytest.raises(LockBusy):
        raise error


def test_a_lock_whose_owner_is_gone_leaves_no_open_file(tmp_path: Path) -> None:
    """An applier makes a ledger, with its lock, behind each outage of its target: for days, each minute."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        with RwLock(tmp_path, "x").shared():
            pass
    assert len(os.listdir("/proc/self/fd")) == before
