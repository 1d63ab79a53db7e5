"""A target that can prepare, in memory: rows, one connection, and what is prepared whatever becomes of that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rplctl.errors import TargetError

AWAY = TargetError("Lost connection", errno=2013, transient=True)


class TwoPhaseServer:
    """Target, its engine and its verbs in one; `said` is what it was asked, `failures` what it answers once instead."""

    kind = "mysql"

    def __init__(self) -> None:
        self.engine: Any = self
        self.rows: list[int] = []
        self.prepared: dict[str, list[int]] = {}
        self.said: list[str] = []
        self.failures: dict[str, list[BaseException]] = {}
        self._connect()

    def _connect(self) -> None:
        driver = SimpleNamespace(driver_connection=object())
        self.connection: Any = SimpleNamespace(connection=driver)
        self._xid, self._changes = "", list[int]()

    def _say(self, what: str) -> None:
        self.said.append(what)
        if waiting := self.failures.get(what.split()[0]):
            raise waiting.pop(0)

    def insert(self, row: int) -> None:
        self._say(f"insert {row}")
        self._changes.append(row)

    # the target
    def begin(self, *, foreign_keys: bool, xid: str = "") -> None:
        self._say(f"begin {xid} {foreign_keys}")
        self._xid, self._changes = xid, []

    def prepare(self) -> None:
        self._say("prepare")
        self.prepared[self._xid] = self._changes

    def commit(self) -> None:
        self._say("commit")
        self.rows += self.prepared.pop(self._xid)

    def rollback(self) -> None:
        self._say("rollback")
        self.prepared.pop(self._xid, None)

    def reconnect(self) -> None:
        self._say("reconnect")
        self._connect()

    # its verbs
    def prepared_xids(self, engine: Any, prefix: str) -> list[str]:
        return [xid for xid in self.prepared if xid.startswith(prefix)]

    def end_prepared(self, engine: Any, verb: str, xid: str) -> None:
        self._say(f"{verb.lower()}_prepared {xid}")
        changes = self.prepared.pop(xid, [])
        self.rows += changes if verb == "COMMIT" else []

    def claim(self, connection: Any, prefix: str) -> None:
        self._say(f"claim {prefix}")

    def wait_at_most(self, connection: Any, seconds: int) -> None:
        self._say(f"wait_at_most {seconds}")

    def check(self, engine: Any, option: str, branches: int = 1) -> list[str]:
        return []

    def terminate_sessions(self, engine: Any, prefix: str) -> None:
        self._say(f"evict {prefix}")
