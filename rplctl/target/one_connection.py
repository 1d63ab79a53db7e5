"""The base class of targets that use one connection. It ends transactions and closes the connection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, Engine

from rplctl.target.aborted import abort

if TYPE_CHECKING:
    from sqlalchemy.engine import TwoPhaseTransaction


class OneConnection(ABC):
    """The base class of a target that uses one connection. It implements those methods of `target.base.Target` that end
    a transaction or the connection.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._connection: Connection | None = None

    @property
    @abstractmethod
    def connection(self) -> Connection: ...

    @staticmethod
    @abstractmethod
    def mapped_errors() -> AbstractContextManager[None]: ...

    def commit(self) -> None:
        assert self._connection is not None
        transaction = self._connection.get_transaction()
        assert transaction is not None
        with self.mapped_errors():
            transaction.commit()

    def prepare(self) -> None:
        """Prepare the open transaction, so that it outlives the connection (two-phase commit)."""
        assert self._connection is not None
        with self.mapped_errors():
            cast("TwoPhaseTransaction", self._connection.get_transaction()).prepare()

    def rollback(self) -> None:
        if self._connection is not None and (transaction := self._connection.get_transaction()) is not None:
            with self.mapped_errors():
                transaction.rollback()

    def reconnect(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()  # ends the session with its locks, temporary tables and settings
            self._connection.close()
        self._connection = None

    def close(self) -> None:
        self.reconnect()
        self.engine.dispose()

    def abort(self) -> None:
        abort(self.engine)

    def is_idle(self) -> bool:
        """True at all times, because `rollback` returns only after the changes are undone."""
        return True
