"""Reads the rows of pt-heartbeat in the target for the status of the appliers (man rplctl, heartbeat).

All appliers of a process that read the same table share one reader. The reader has its own connection, because the
appliers' connections are in transactions most of the time. If the table is missing, as in most instances, the reader
checks for it every 15 seconds. Invariant: the reader never ends an applier, and never makes it wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rplctl.config import Config
from rplctl.errors import RplError
from rplctl.status import ThreadStatus
from rplctl.target import dialect_of, open_engine

if TYPE_CHECKING:
    from sqlalchemy import Engine

READ_S: Final = 1.0
MISSING_S: Final = 15.0
FIRST_S: Final = 3.0  # before the first read; most runs from cron have ended by then
_MOST_ROWS: Final = 32
log = logging.getLogger(__name__)


@contextmanager
def reading_heartbeats(config: Config, status: ThreadStatus) -> Iterator[None]:
    """Read the target's heartbeats while the block runs, and store the latest values in `status.heartbeats`."""
    if not config.heartbeat_table:
        yield
        return
    table = config.target_url, config.heartbeat_table, config.heartbeat_utc
    with _changing:
        reader = _readers.setdefault(table, _Reader(config))
        reader.statuses[id(status)] = status
        if len(reader.statuses) == 1:
            reader.start()
    try:
        yield
    finally:
        with _changing:
            del reader.statuses[id(status)]
            if is_last := not reader.statuses:
                del _readers[table]
                reader.ended.set()
        if is_last:
            reader.join(READ_S)  # a reader that hangs on an unreachable target ends with the process


class _Reader(threading.Thread):
    """A thread that reads one heartbeat table for all appliers of the process."""

    def __init__(self, config: Config) -> None:
        super().__init__(name="rplctl-heartbeat", daemon=True)
        self.statuses: dict[int, ThreadStatus] = {}
        self.ended = threading.Event()
        self._config = config

    def run(self) -> None:
        from sqlalchemy.exc import SQLAlchemyError

        config, pause, engine = self._config, FIRST_S, None
        while not self.ended.wait(pause):
            try:
                engine = engine or open_engine(config.target_url)
                found = read_heartbeats(engine, config.heartbeat_table, is_utc=config.heartbeat_utc)
                with _changing:
                    for status in self.statuses.values():
                        status.heartbeats = found
                pause = READ_S
            except (SQLAlchemyError, RplError, OSError, ValueError, TypeError) as error:
                log.debug("no heartbeat: %s", error)
                pause = MISSING_S
                if engine is not None:
                    engine.dispose()
        if engine is not None:
            engine.dispose()


_changing = threading.Lock()
_readers: dict[tuple[str, str, bool], _Reader] = {}


def read_heartbeats(engine: Engine, name: str, *, is_utc: bool) -> str:
    """Return all heartbeats in the table as one text, in the form of `ThreadStatus.heartbeats`.

    `name`: the table, as DATABASE.TABLE. `is_utc`: False if its times are in the time zone of this process. Raises
    SQLAlchemy's error if the table is missing, and ValueError if the target does not exist or a time is malformed.
    """
    from sqlalchemy import Integer, String, column, select, table

    dialect = dialect_of(engine.dialect.name)
    if dialect.is_missing(engine):
        raise ValueError("there is no target yet")
    database, _, plain = name.partition(".")
    schema, stored = dialect.place_of(database, plain)
    place = table(stored, schema=schema)
    with engine.connect() as connection:
        question = select(column("server_id", Integer), column("ts", String)).select_from(place).limit(_MOST_ROWS)
        rows = [(row[0], row[1]) for row in connection.execute(question)]
    return ",".join(f"{int(server)}:{unix_time(str(ts), is_utc=is_utc):.6f}" for server, ts in rows)


def unix_time(text: str, *, is_utc: bool) -> float:
    """Return the Unix time, in seconds, of a time such as `2026-11-24T03:00:00.000820`.

    A space may replace the `T`, which pt-heartbeat writes. `is_utc`: False if the time is in the time zone of this
    process. Raises ValueError if the text is not a time.
    """
    moment = datetime.fromisoformat(text)
    return (moment.replace(tzinfo=UTC) if is_utc else moment.astimezone()).timestamp()
