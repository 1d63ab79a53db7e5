"""Fifty channels of one instance: 47 that replicate, by recorded statuses, and three that stopped, each for its reason.

The three are real ones, which read a folder of binary logs: one whose applier met an error, one whose receiver lost its
source, one whose applier was killed. The others are files, and locks that this process holds: they run as long as the
block lasts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rplctl.channel import Channel, hold_lock
from rplctl.demo import BINLOG_FOLDER
from rplctl.status import ThreadStatus, read_status
from tests.kit.replica import Replica, wait_until

STOPPED = {"billing": "applier_error", "orders": "applier_killed", "west": "receiver_error"}  # what check finds
FINE = tuple(f"shard{number:02}" for number in range(47))


@contextmanager
def fifty_channels(folder: Path, fine: Sequence[str] = FINE) -> Iterator[Path]:
    """The instance folder. `fine`: the names of those that replicate."""
    replica = Replica(folder, spark=False)
    with ExitStack() as held:
        held.callback(replica.close)
        replica.run("init")
        for name in fine:
            replica.run("change-master", "--channel", name, "--master-host", f"db-{name}", "--master-user", "repl",
                        "--master-log-file", "binlog.000003", "--master-log-pos", "1170")  # fmt: skip
        _stop_three(replica, folder, held)
        channels = [Channel(name, replica.datadir) for name in fine]
        for channel in channels:
            for role in ("receiver", "applier"):
                held.enter_context(hold_lock(channel, role))
        _write(channels, 120)  # whoever looks now sees them run
        over = threading.Event()
        telling = threading.Thread(target=_tell, args=(channels, over), daemon=True)
        telling.start()
        held.callback(telling.join)
        held.callback(over.set)
        yield replica.datadir


def _stop_three(replica: Replica, folder: Path, held: ExitStack) -> None:
    log = folder / "logs"
    shutil.copytree(BINLOG_FOLDER, log)
    for name, source in (("orders", BINLOG_FOLDER), ("billing", BINLOG_FOLDER), ("west", log)):
        replica.run("change-master", "--channel", name, "--master-binlog-dir", os.fspath(source))
        channel = Channel(name, replica.datadir)
        three = Replica(folder, name, spark=False)
        held.callback(three.close)
        if name == "west":  # its tables, and its source, are gone before it begins
            shutil.rmtree(log)
            replica.run("start", "--channel", name, "--receiver", expect=None)
            wait_until(lambda channel=channel: read_status(channel.status_path("receiver")).last_errno, 60)  # type: ignore[misc]
            continue
        replica.run("start", "--channel", name, expect=None)
        if name == "orders":
            wait_until(lambda: has_customers(replica), 60)
            three.kill("applier")
        else:  # the table of orders is in its way
            wait_until(lambda channel=channel: read_status(channel.status_path("applier")).last_errno, 60)  # type: ignore[misc]


def has_customers(replica: Replica) -> bool:
    """True if a channel has made the recorded shop's first table in the target: the next channel cannot."""
    with contextlib.suppress(sqlite3.OperationalError):  # there is no target yet
        return bool(replica.query("SELECT 1 FROM sqlite_master WHERE name = 'shop__customers'"))
    return False


def _tell(channels: list[Channel], over: threading.Event) -> None:
    """As the threads of 47 channels do, each second."""
    rows = 120
    while not over.wait(1):
        rows += 120
        _write(channels, rows)


def _write(channels: list[Channel], rows: int) -> None:
    for number, channel in enumerate(channels):
        now = time.time()
        ThreadStatus(
            state="Waiting for master to send event", connected=True, is_waiting=True, worked=now,
            clock_error=0.001,
            read_log_name="binlog.000003", read_log_pos=1170,
        ).write(channel.status_path("receiver"))  # fmt: skip
        ThreadStatus(
            state="Slave has read all relay log; waiting for more updates", is_waiting=True, worked=now,
            commit_mode="transaction", row_changes=rows * number, transactions=rows,
            heartbeats=f"7:{now - 0.3:.6f}",
        ).write(channel.status_path("applier"))  # fmt: skip
