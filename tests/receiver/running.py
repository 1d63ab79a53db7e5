"""A receiver in a thread, for tests: start, wait for what it shall reach, stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.event.scan import scan_events
from rplctl.info import MasterInfo
from rplctl.receiver.receiver import Receiver
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository import create_tables, open_master_info
from rplctl.status import ThreadStatus, read_status
from rplctl.target import open_engine
from tests.kit.servers import MariadbServer

OWN_SERVER_ID = 77


class RunningReceiver:
    """One instance folder with the default channel; `info` are MasterInfo's fields."""

    def __init__(self, datadir: Path, *, config: dict[str, Any] | None = None, **info: Any) -> None:
        self.config = Config(datadir, **{"server_id": OWN_SERVER_ID, **(config or {})})
        self.channel = Channel("", datadir)
        self.repository = open_master_info(self.config, self.channel, self._engine)
        settings = {"connect_retry": 1, "heartbeat": 0.5, "user_name": "rpl", "user_password": "rpl", **info}
        self.repository.flush(MasterInfo(**settings), force=True)
        self.error: RplError | None = None
        self._receiver: Receiver | None = None
        self._thread: threading.Thread | None = None

    def _engine(self) -> Engine:
        if self.config.master_info_repository != "TABLE":
            _no_engine()
        engine = open_engine(self.config.target_url)
        create_tables(engine)
        return engine

    def __enter__(self) -> RunningReceiver:
        self._receiver = receiver = Receiver(self.config, self.channel)

        def run() -> None:
            try:
                receiver.run()
            except RplError as error:
                self.error = error

        self._thread = threading.Thread(target=run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        assert self._receiver is not None and self._thread is not None
        self._receiver.stop()
        self._thread.join(180)
        assert not self._thread.is_alive()

    def flush_logs(self) -> None:
        assert self._receiver is not None
        self._receiver.flush_logs()

    def wait(self, reached: Callable[[], bool], seconds: float = 600) -> None:
        assert self._thread is not None
        deadline = time.monotonic() + seconds
        while not reached():
            assert self._thread.is_alive(), f"the receiver ended: {self.error}"
            assert time.monotonic() < deadline, f"not reached: {self.status()}"
            time.sleep(0.02)

    def wait_for(self, log_name: str, log_pos: int) -> None:
        self.wait(lambda: (self.stored().master_log_name, self.stored().master_log_pos) == (log_name, log_pos))

    def catch_up(self, source: MariadbServer) -> None:
        """The end is asked for each time: MariaDB writes BINLOG_CHECKPOINT events when it likes."""

        def is_there() -> bool:
            stored = self.stored()
            return (stored.master_log_name, stored.master_log_pos) == source.master_status()

        self.wait(is_there)

    def wait_for_error(self) -> RplError:
        assert self._thread is not None
        self._thread.join(600)
        assert self.error is not None
        return self.error

    def stored(self) -> MasterInfo:
        return self.repository.read()

    def status(self) -> ThreadStatus:
        return read_status(self.channel.status_path("receiver"))

    def relay_logs(self) -> list[str]:
        return RelayLogIndex(self.channel).names()

    def relayed(self) -> list[bytes]:
        """All events in the relay logs that the source has in its binary logs too."""
        return log_events([self.channel.datadir / name for name in self.relay_logs()])


def log_events(paths: list[Path]) -> list[bytes]:
    """Events of log files but control events: a GTID dump leaves some of them out and repeats others."""
    events: list[bytes] = []
    for path in paths:
        data = path.read_bytes()
        index = scan_events(data, 4)
        for i, kind in enumerate(index.type_codes.tolist()):
            if kind not in (3, 4, 15, 35, 161, 163):
                events.append(data[int(index.offsets[i]) : int(index.offsets[i + 1])])
    return events


def _no_engine() -> Any:
    raise AssertionError("a FILE repository opened the target")
