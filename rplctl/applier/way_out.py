"""The hint for every error that ends the applier: the operator's next action, and what this action loses (design D22).

Invariants:
* No error ends the applier without a hint.
* A hint that names `rplctl skip` says that the whole transaction is skipped.
* The commands in a hint are for the channel that stopped.
"""

from __future__ import annotations

import shlex
from typing import Final

from rplctl import mysql_errors as er
from rplctl.errors import IN_ROW_FORMAT, OR_SKIP, RelayLogError, RplError, another_way, for_channel

# The variable is for this start only. verify and repair then handle all rows that differ, also because of other errors
BACK_TO_EQUAL = (
    "RPLCTL_REPLICA_EXEC_MODE=IDEMPOTENT rplctl start --until-synced; rplctl verify; rplctl repair; rplctl verify; "
    "rplctl start"
)
_WIDEN = (
    "to see the column's type and size, run on the source: SHOW CREATE TABLE DB.TABLE; then give the target's column "
    f"the same type and size, and run: rplctl start{OR_SKIP}"
)
_CHECKED = f"drop the constraint that only the target's table has, then run: rplctl start{OR_SKIP}"
_PARENT = (
    "insert the missing parent row into the target, then run: rplctl start\n"
    f"Or drop the foreign key on the target, then run: rplctl start{OR_SKIP}"
)
_LOCKED = (
    "end the session that holds the locks on the target, then run: rplctl start. To list the sessions, run on MySQL "
    "or MariaDB: SHOW PROCESSLIST; on PostgreSQL: SELECT * FROM pg_stat_activity"
)

_ACCOUNT = (
    "create the account on the target with an authentication plugin of the target, because later statements may "
    "change the account. Then, to skip the whole transaction and to compare the tables, run: rplctl skip --yes; "
    "rplctl start; rplctl wait --state synced; rplctl verify"
)

_BY_NUMBER = {
    er.KEY_NOT_FOUND: f"the target lacks the row. To continue, and repair all rows that differ, run: {BACK_TO_EQUAL}",
    er.DUP_ENTRY: f"the target already has the row. To continue, and repair all rows that differ, run: {BACK_TO_EQUAL}",
    er.BAD_NULL_ERROR: _WIDEN,
    er.BAD_DB_ERROR: "create the database on the target, then run: rplctl start",
    er.LOCK_WAIT_TIMEOUT: _LOCKED,
    er.LOCK_DEADLOCK: _LOCKED,
    er.PLUGIN_IS_NOT_LOADED: _ACCOUNT,
    er.WARN_DATA_OUT_OF_RANGE: _WIDEN,
    er.TRUNCATED_WRONG_VALUE: _WIDEN,
    er.TRUNCATED_WRONG_VALUE_FOR_FIELD: _WIDEN,
    er.DATA_TOO_LONG: _WIDEN,
    er.ROW_IS_REFERENCED_2: f"delete the rows of the target that refer to this row, then run: rplctl start{OR_SKIP}",
    er.NO_REFERENCED_ROW_2: _PARENT,
    er.BINLOG_UNSAFE_STATEMENT: IN_ROW_FORMAT,
    er.CONSTRAINT_FAILED: _CHECKED,
}
# Errors of a table that does not match the log. Its events are skipped until a copy replaces the table
BY_COPY = frozenset({er.NO_SUCH_TABLE, er.SLAVE_CONVERSION_FAILED, er.TABLE_EXISTS_ERROR, er.BAD_FIELD_ERROR})
_SOME_TABLE: Final = "DB.TABLE"
_COPY_TABLE: Final = (
    "to copy the table again, which replaces all its rows in the target, run: "
    "rplctl clone --tables DB.TABLE --replace --yes; rplctl start; rplctl wait --state synced; rplctl verify"
)
_OF_RELAY_LOG = (
    "to fetch the relay logs from the source again, run: rplctl stop; rplctl recover --refetch; rplctl start"
)
_OTHERWISE = f"repair the cause of the error on the target or the source, then run: rplctl start{OR_SKIP}"


def way_out(error: RplError, *, copies: bool = True) -> str:
    """Return the hint for an error that ends the applier: the hint of the error itself, or else the one for its number.

    For an error in BY_COPY, the hint is to copy the table again. `copies`: False for a lake, whose tables cannot be
    copied again.
    """
    if copies and error.errno in BY_COPY:
        return for_channel(
            f"{_COPY_TABLE}{another_way(error.hint)}".replace(_SOME_TABLE, _shown(error.table)), error.channel or ""
        )
    if error.hint:
        return for_channel(error.hint.replace(_SOME_TABLE, _shown(error.table)), error.channel or "")
    if isinstance(error, RelayLogError):
        return for_channel(_OF_RELAY_LOG, error.channel or "")
    hint = _BY_NUMBER.get(error.errno, _OTHERWISE)
    return for_channel(hint.replace(_SOME_TABLE, _shown(error.table)), error.channel or "")


def _shown(table: tuple[str, str] | None) -> str:
    """Return the table as an argument of the option `--tables`.

    Return a placeholder if the table is unknown, or if a name contains a comma or a point, which separate names in this
    option.
    """
    if table is None or any("," in name or "." in name for name in table):
        return _SOME_TABLE
    return shlex.quote(".".join(table))
