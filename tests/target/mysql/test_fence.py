"""One committer: who gets the lock, whose old connection is ended, and what is said of the others."""

from __future__ import annotations

from typing import Any, Self, cast

import pytest

from rplctl.errors import LockBusy, TargetError
from rplctl.target.mysql.connection import LoadingConnection
from rplctl.target.mysql.fence import take


class Server:
    """A driver and its cursor; `owner` has the lock, `leaves`: it goes when it is killed."""

    def __init__(self, owner: int | None = None, *, leaves: bool = False) -> None:
        self.owner, self.leaves = owner, leaves
        self.asked: list[str] = []
        self.answer: int | None = None

    def thread_id(self) -> int:
        return 42

    def rollback(self) -> None:
        self.asked.append("ROLLBACK")

    def cursor(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, sql: str) -> None:
        self.asked.append(sql)
        if sql.startswith("KILL") and self.leaves:
            self.owner = None
        if "GET_LOCK" in sql:
            self.answer = int(self.owner is None)
        elif "IS_USED_LOCK" in sql:
            self.answer = self.owner

    def fetchone(self) -> tuple[Any]:
        return (self.answer,)


def taken(server: Server, channel: str, predecessor: int) -> int:
    return take(cast("LoadingConnection", server), channel, predecessor)


def test_a_free_lock_is_taken() -> None:
    server = Server()
    assert taken(server, "c", 0) == 42
    assert server.asked == ["SELECT GET_LOCK('rplctl:c', 10)", "ROLLBACK"]


def test_our_own_connection_of_before_is_ended_and_no_other() -> None:
    assert taken(gone := Server(7, leaves=True), "c", 7) == 42
    assert "KILL 7" in gone.asked
    with pytest.raises(TargetError) as caught:
        taken(Server(7), "c", 7)
    assert (caught.value.errno, caught.value.transient) == (2013, True)
    with pytest.raises(LockBusy):
        taken(other := Server(8, leaves=True), "c", 7)
    assert not any(sql.startswith("KILL") for sql in other.asked)
    with pytest.raises(LockBusy, match="another applier of channel 'c'"):
        taken(Server(7), "c", 0)


def test_a_long_channel_has_a_lock_of_its_own_that_servers_taken() -> None:
    names = []
    for channel in ("x" * 57, "x" * 58, "x" * 57 + "y"):
        taken(server := Server(), channel, 0)
        names.append(server.asked[0].split("'")[1])
    assert names[0] == "rplctl:" + "x" * 57
    assert len(set(names)) == 3 and max(map(len, names)) <= 64
