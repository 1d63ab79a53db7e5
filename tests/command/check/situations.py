"""A channel in a situation: a real instance that has applied a recorded shop, copied for each, and then what befell it.

Threads are what the program takes them for: a lock that is held and a status file that was written some time ago.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from rplctl import demo
from rplctl.applier.report import READING, WAITING
from rplctl.channel import Channel, hold_lock
from rplctl.command.channel.context import open_repositories
from rplctl.command.check.sync_record import forget_sync, note_stays, note_synced
from rplctl.config import load_config
from rplctl.durable import private_folder, replace_file
from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.option_file import store_options
from rplctl.position import BinlogPosition
from rplctl.receiver.reporter import WAITING as RECEIVING
from rplctl.relay_log.origin import move_origin
from rplctl.status import ThreadStatus
from tests.cli.program import Outcome, Program
from tests.kit.replica import Replica

END = BinlogPosition(demo.source_state().end_log, demo.source_state().end_position)


def make_synced(folder: Path) -> Path:
    """An instance folder whose channel was synced once, by a real receiver and applier, from a folder of its own."""
    source = folder / "source"
    shutil.copytree(demo.BINLOG_FOLDER, source, ignore=shutil.ignore_patterns("*.json"))
    replica = Replica(folder, spark=False)
    try:
        replica.run("init")
        replica.run("change-master", "--master-binlog-dir", str(source))
        replica.run("start", "--until-synced", "--max-time", "280")
    finally:
        replica.close()
    return replica.datadir


class Situation:
    """What befalls a channel, and how the three commands are asked about it."""

    def __init__(self, synced: Path, folder: Path, program: Program) -> None:
        self.datadir = folder / "replica"
        self.source = folder / "source"
        shutil.copytree(synced, self.datadir)
        shutil.copytree(synced.parent / "source", self.source)
        self.channel = Channel("", self.datadir)
        self.held = ExitStack()
        self._program = program
        self.master(master_binlog_dir=str(self.source))
        for role in ("receiver", "applier"):
            self.channel.lock_path(role).unlink(missing_ok=True)

    def ask(self, *arguments: str) -> Outcome:
        return self._program(*arguments)

    def options(self, **values: str | int) -> Self:
        store_options(self.datadir, "", values)
        return self

    def master(self, **fields: Any) -> Self:
        repository = open_repositories(load_config(self.datadir), "").master_info
        stored = repository.read() if repository.exists() else MasterInfo()
        changed = replace(stored, **fields)
        repository.flush(changed, force=True)
        move_origin(self.channel, changed)
        return self

    def relay(self, **fields: Any) -> Self:
        repository = open_repositories(load_config(self.datadir), "").relay_log_info
        stored = repository.read() if repository.exists() else RelayLogInfo()
        repository.flush(replace(stored, **fields), force=True)
        return self

    def synced(self, seconds_ago: float) -> Self:
        note_synced(self.channel, time.time() - seconds_ago, str(END))
        return self

    def never_synced(self) -> Self:
        forget_sync(self.channel)
        return self

    def stays(self) -> Self:
        """The last start was one that goes on."""
        note_stays(self.channel)
        return self

    def says(self, role: str, *, heard: float = 0.0, **status: Any) -> Self:
        """The status file as its thread left it `heard` seconds ago."""
        private_folder(self.channel.run_folder)
        said = ThreadStatus(**{"updated": time.time() - heard, "worked": time.time() - heard, **status})
        replace_file(self.channel.status_path(role), json.dumps(asdict(said)).encode(), durable=False)
        os.utime(self.channel.status_path(role), (said.updated, said.updated))
        return self

    def runs(self, role: str, *, heard: float = 0.0, locked: float = 3600.0, **status: Any) -> Self:
        """A thread that has its lock since `locked` seconds and was heard of `heard` seconds ago."""
        usual: dict[str, Any] = {
            "receiver": {"state": RECEIVING, "connected": True, "is_waiting": True, "read_log_name": END.log_name}
            | {"read_log_pos": END.log_pos},
            "applier": {"state": WAITING, "is_waiting": True, "commit_mode": "marker"},
        }[role]
        self.says(role, heard=heard, **{**usual, **status})
        self.held.enter_context(hold_lock(self.channel, role))
        past = time.time() - locked
        os.utime(self.channel.lock_path(role), (past, past))
        return self

    def run_both(self, *, behind: int | None = None, delay: int = 0) -> Self:
        """In step with the source, or with a transaction of `behind` seconds ago in work."""
        self.stays()
        self.runs("receiver", **({} if behind is None else {"read_log_pos": END.log_pos + 1000}))
        working: dict[str, Any] = {
            "state": READING,
            "is_waiting": False,
            "last_event_timestamp": int(time.time()) - (behind or 0),
        }
        self.runs("applier", **({} if behind is None else working))
        if delay:
            self.relay(sql_delay=delay)
        return self

    def stopped(self, *, receiver: dict[str, Any] | None = None, applier: dict[str, Any] | None = None) -> Self:
        """By the operator, of a channel that is to run; or with what they say."""
        self.stays()
        self.says("receiver", heard=20.0, **(receiver or {}))
        self.says("applier", heard=20.0, **(applier or {}))
        return self

    def failed(self, role: str, errno: int, text: str) -> Self:
        self.stopped(**{role: {"last_errno": errno, "last_error": text, "last_error_timestamp": time.time() - 20}})
        return self
