"""A server in memory whose transactions can be prepared, for several connections that commit one batch together.

Every call to it is numbered; at one of them the process that calls ends, whatever its other threads do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Engine

from rplctl.commit.branches import Branches

PREFIX = "rplctl-branch:0123456789ab:0123456789ab:"


class Cut(BaseException):
    """The process is dead."""


@dataclass
class Work:
    """Of one transaction."""

    rows: list[int] = field(default_factory=list)
    moves: bool = False


class BranchServer:
    """Its verbs and its rows; `cut_at`: the call that does not return, which arrives all the same if it `is_late`."""

    prefix = PREFIX

    def __init__(self, engine: Engine, *, cut_at: int = 0, is_late: bool = False) -> None:
        self.engine = engine
        self.rows: list[int] = []
        self.has_moved = False
        self.prepared: dict[str, Work] = {}
        self.said: list[str] = []
        self.first = BranchTarget(self)
        self._cut_at, self._is_late = cut_at, is_late
        self._is_armed = self._is_dead = False
        self._calls = 0
        self._lock = threading.Lock()

    def branches(self, count: int) -> Branches:
        made = Branches(self.first, lambda: BranchTarget(self), "", PREFIX, self, count)  # type: ignore[arg-type,return-value]
        decide = made.swap_decision
        made.swap_decision = lambda name: self.call("decide", partial(decide, name))  # type: ignore[method-assign]
        return made

    def store(self, branches: Branches) -> Any:
        moved = SimpleNamespace(log=None, branches=branches, guard=nullcontext)
        moved.advance = lambda *_: self.first.move()
        moved.committed = lambda _: None
        return moved

    def insert_on_each(self, branches: Branches) -> None:
        branches.apply({number: partial(_insert, number) for number in range(branches.count)})

    def call(self, what: str, act: Callable[[], Any] = lambda: None) -> Any:
        with self._lock:
            if self._is_dead:
                raise Cut
            self._calls += 1
            self.said.append(what)
            if self._is_armed and self._calls == self._cut_at:
                self._is_dead = True
                if self._is_late:
                    act()
                raise Cut
            return act()

    def arm(self) -> None:
        self._is_armed, self._calls = True, 0

    def restart(self) -> None:
        """The process; what was not prepared went with its connections."""
        self._is_armed = self._is_dead = False

    def end(self, verb: str, xid: str) -> None:
        work = self.prepared.pop(xid, Work())
        if verb == "COMMIT":
            self.rows = sorted(self.rows + work.rows)
            self.has_moved |= work.moves

    # its verbs

    def prepared_xids(self, engine: Engine, prefix: str) -> list[str]:
        return [xid for xid in self.prepared if xid.startswith(prefix)]

    def end_prepared(self, engine: Engine, verb: str, xid: str) -> None:
        self.call(f"{verb} {xid}", partial(self.end, verb, xid))

    def check(self, engine: Engine, option: str, branches: int = 1) -> list[str]:
        return []

    def wait_at_most(self, connection: Any, seconds: int) -> None: ...

    def claim(self, connection: Any, prefix: str) -> None: ...

    def terminate_sessions(self, engine: Engine, prefix: str) -> None: ...


class BranchTarget:
    """One connection."""

    loads_prepared = True

    def __init__(self, server: BranchServer) -> None:
        self.engine = server.engine
        self._server = server
        self.reconnect()

    def reconnect(self) -> None:
        self.connection = SimpleNamespace(connection=SimpleNamespace(driver_connection=object()))
        self._xid, self._work = "", Work()

    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        self._server.call("begin")
        self._xid, self._work = xid, Work()

    def insert(self, row: int) -> None:
        self._server.call("insert", lambda: self._work.rows.append(row))

    def move(self) -> None:
        self._server.call("move", lambda: setattr(self._work, "moves", True))

    def prepare(self) -> None:
        self._server.call("prepare", lambda: self._server.prepared.update({self._xid: self._work}))

    def commit(self) -> None:
        self._server.call("commit", partial(self._server.end, "COMMIT", self._xid))

    def rollback(self) -> None:
        self._server.call("rollback", partial(self._server.end, "ROLLBACK", self._xid))

    def interrupt(self) -> None: ...


def _insert(row: int, target: Any) -> None:
    target.insert(row)
