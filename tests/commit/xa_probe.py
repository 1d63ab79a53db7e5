"""One channel in commit mode `xa` on a real server: apply numbered transactions, be killed, look at what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import text

from rplctl import failpoint
from rplctl.channel import Channel
from rplctl.commit.position_store import open_position_store
from rplctl.commit.step import CommitStep
from rplctl.commit.transaction import commit_group
from rplctl.config import Config
from rplctl.failpoint import ENVIRONMENT
from rplctl.info import RelayLogInfo
from rplctl.own_tables.tables import create_own_tables
from rplctl.position import BinlogPosition, RelayLogPosition
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.target import open_engine, open_target
from rplctl.target.base import Target

DATABASE = "xa_probe"
TABLE = f"{DATABASE}.probe"


def at(number: int) -> RelayLogInfo:
    info = RelayLogInfo(gtid_executed=f"0-1-{number}" if number else "")
    return info.at(RelayLogPosition("relay-bin.000001", 10 * number + 4), BinlogPosition("bin.000001", number))


def config_of(folder: Path, url: str, **options: str) -> Config:
    return Config(folder, target=url, commit_mode="xa", **options)  # type: ignore[arg-type]  # names of options


def prepare(config: Config, rep_engine: str = "") -> None:
    """A fresh table of numbers and a channel at number 0."""
    engine = open_engine(config.target_url)
    schema = "SCHEMA" if engine.dialect.name == "postgresql" else "DATABASE"
    cascade = " CASCADE" if schema == "SCHEMA" else ""
    with engine.begin() as connection:
        for name in (DATABASE, "rplctl"):
            connection.execute(text(f"DROP {schema} IF EXISTS {name}{cascade}"))
        connection.execute(text(f"CREATE {schema} {DATABASE}"))
        connection.execute(text(f"CREATE TABLE {TABLE} (seq INTEGER PRIMARY KEY)"))
    create_own_tables(engine)
    create_tables(engine, rep_engine)
    repository = open_relay_log_info(config, Channel("", config.datadir), lambda: engine)
    repository.flush(at(0), force=True)
    engine.dispose()


def insert(target: Target, number: int) -> None:
    target.connection.exec_driver_sql(f"INSERT INTO {TABLE} VALUES ({number})")


def apply_next(config: Config, apply: Callable[[Target, int], None] = insert) -> int:
    """Start, apply one more transaction that writes its number, stop; the number."""
    target = open_target(config.target_url)
    try:
        target.fence("")
        store = open_position_store(config, Channel("", config.datadir), target.engine)
        info = store.open()
        number = info.master_log_pos + 1
        commit_group(target, store, CommitStep(info, at(number)), lambda: apply(target, number))
        store.close(at(number))
    finally:
        target.close()
    return number


def killed_at(point: str, work: Callable[[], object]) -> None:
    """A child process does the work and is killed at the crash point (`NAME` or `NAME=kill@N`)."""
    child = os.fork()
    if not child:
        os.environ[ENVIRONMENT] = point if "=" in point else f"{point}=kill"
        failpoint.rearm()
        try:
            work()
        finally:
            os._exit(1)  # not reached: the point was not passed, or the work failed before it
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"{point} was not passed"


def program_killed_at(point: str, program: str) -> None:
    """As `killed_at` for work whose kernels have threads: they do not outlive a fork."""
    environment = {**os.environ, ENVIRONMENT: f"{point}=kill"}
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


def numbers(config: Config) -> list[int]:
    engine = open_engine(config.target_url)
    try:
        with engine.connect() as connection:
            return [int(n) for n in connection.execute(text(f"SELECT seq FROM {TABLE} ORDER BY 1")).scalars()]
    finally:
        engine.dispose()
