"""Report the transactions that a channel has applied, and the table definitions at this point, to `verify` and
`repair`.

Invariant: the reported position is never newer than the rows. A marker in the target has exactly the position of the
rows, but a file may have an older position.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from rplctl.command.channel.context import APPLIER, RECEIVER, Repositories, running
from rplctl.command.channel.position_applied import is_applied
from rplctl.command.process.brought_up import BroughtUp
from rplctl.own_tables.models import load_models
from rplctl.position import BinlogPosition
from rplctl.repository.base import RepositoryKind
from rplctl.schema.model import TableModel
from rplctl.schema.statement import TableName
from rplctl.target import mapped_errors, statement_target
from rplctl.verify.target_side import TargetSide

_RESTART_S: Final = 20.0  # seconds that a killed applier has to come back


class ChannelTransactions:
    """The state of one channel, in the form of the protocol `AppliedTransactions` in rplctl/verify/resolve.py.

    `threads` are the threads that the command has started for its own work; None if it has started none.
    """

    def __init__(self, repositories: Repositories, threads: BroughtUp | None = None) -> None:
        self._repositories, self._threads, self._ran_at = repositories, threads, float("-inf")

    def has(self, position: BinlogPosition) -> bool:
        return is_applied(self._repositories, position)

    def executed(self) -> BinlogPosition:
        """Return the executed position: from the marker in the target if there is one, because a file may be older than
        the rows.
        """
        position = self._repositories.relay().exec_position
        if self._repositories.relay_log_info.kind is RepositoryKind.TABLE:
            return position
        marker, _ = self._repositories.marker()
        return marker.exec_position if marker is not None else position

    def runs(self) -> bool:
        """True if both threads run, or ran within the last 20 s. Raises the error of a thread that the command has
        started.
        """
        now = time.monotonic()
        if {RECEIVER, APPLIER}.issubset(running(self._repositories.channel)):
            self._ran_at = now
        elif self._threads is not None:
            self._threads.keep()
        return now - self._ran_at < _RESTART_S

    def model(self, side: TargetSide, name: TableName) -> TableModel | None:
        """Return the definition by which the applier writes the table. Return None if the table is unknown.

        A target that is a MySQL or MariaDB server is asked for its own definition. Other targets store the source's
        definition.
        """
        server = statement_target(side.target)
        if server is not None:
            return server.table_model(*name)
        return self.models().get(name)

    def models(self) -> Mapping[TableName, TableModel]:
        """Return the stored definitions of all tables at the executed position, for a target that is not a MySQL or
        MariaDB server.
        """
        engine = self._repositories.engine()
        with mapped_errors(engine.dialect.name), engine.connect() as connection:
            return load_models(connection, self._repositories.channel.name, self.executed()).tables
