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
from rplctl.errors import IN_ROW_FORMAT, OR_SKIP, SHOW_TRANSACTION, RelayLogError, RplError, another_way, for_channel

# The variable is for this start only. verify and repair then handle all rows that differ, also because of other errors
BACK_TO_EQUAL = (
    "RPLCTL_REPLICA_EXEC_MODE=IDEMPOTENT rplctl start --until-synced; rplctl verify; rplctl repair; rplctl verify; "
    "rplctl start"
)
_WIDEN = (
    "to see the column's type and size, run on the source: SHOW CREATE TABLE DB.TABLE\n"
    "To continue after you have given the target's column the same type and size, run: rplctl start"
    f"{OR_SKIP}"
)
_NULLABLE = (
    "to see which columns allow NULL, run on the source: SHOW CREATE TABLE DB.TABLE\n"
    f"To continue after you have allowed NULL in the target's column, run: rplctl start{OR_SKIP}"
)
_CHECKED = (
    "to continue after you have dropped the constraint, which the source's table does not have, run: rplctl start"
    f"{OR_SKIP}"
)
_PARENT = (
    f"{SHOW_TRANSACTION}\n"
    "To continue after you have inserted the missing parent row into the target, run: rplctl start\n"
    f"To continue after you have dropped the foreign key on the target, run: rplctl start{OR_SKIP}"
)
_CHILDREN = (
    f"{SHOW_TRANSACTION}\n"
    "To continue after you have deleted the target's rows that refer to the row that the error names, run: "
    f"rplctl start{OR_SKIP}"
)
_LOCKED = (
    "to list the sessions of a MySQL or MariaDB target, run on the target: SHOW PROCESSLIST\n"
    "To list those of a PostgreSQL target, run on the target: SELECT * FROM pg_stat_activity\n"
    "To continue after you have ended the session that holds the locks, run: rplctl start"
)

_ACCOUNT = (
    "first create the account on the target with an authentication plugin of the target, because later statements may "
    "change the account\n"
    "To skip the whole transaction after that and to compare the tables, run: rplctl skip --yes; "
    "rplctl start; rplctl wait --state synced; rplctl verify"
)

_BY_NUMBER = {
    er.KEY_NOT_FOUND: "to continue although the target lacks the row, and to repair all rows that differ, run: "
    f"{BACK_TO_EQUAL}",
    er.DUP_ENTRY: "to continue although the target already has the row, and to repair all rows that differ, run: "
    f"{BACK_TO_EQUAL}",
    er.BAD_NULL_ERROR: _NULLABLE,
    er.BAD_DB_ERROR: "to continue after you have created the database on the target, run: rplctl start",
    er.LOCK_WAIT_TIMEOUT: _LOCKED,
    er.LOCK_DEADLOCK: _LOCKED,
    er.PLUGIN_IS_NOT_LOADED: _ACCOUNT,
    er.WARN_DATA_OUT_OF_RANGE: _WIDEN,
    er.TRUNCATED_WRONG_VALUE: _WIDEN,
    er.TRUNCATED_WRONG_VALUE_FOR_FIELD: _WIDEN,
    er.DATA_TOO_LONG: _WIDEN,
    er.ROW_IS_REFERENCED_2: _CHILDREN,
    er.NO_REFERENCED_ROW_2: _PARENT,
    er.BINLOG_UNSAFE_STATEMENT: IN_ROW_FORMAT,
    er.CONSTRAINT_FAILED: _CHECKED,
}
# Errors of a table that does not match the log. Its events are skipped until a copy replaces the table
BY_COPY = frozenset({er.NO_SUCH_TABLE, er.SLAVE_CONVERSION_FAILED, er.TABLE_EXISTS_ERROR, er.BAD_FIELD_ERROR})
_SOME_TABLE: Final = "DB.TABLE"
_COPY_TABLE: Final = (
    "to create the table again as on the source, which replaces all its rows in the target, run: "
    "rplctl clone --tables DB.TABLE --replace --yes; rplctl start; rplctl wait --state synced; rplctl verify"
)
_OF_RELAY_LOG = (
    "to fetch the relay logs from the source again, run: rplctl stop; rplctl recover --refetch; rplctl start"
)
_OTHERWISE = f"to continue after you have repaired the cause on the target or the source, run: rplctl start{OR_SKIP}"


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
