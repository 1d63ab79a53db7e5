"""The way out of every stop of the applier: what its operator does next, and what that costs (design D22).

Invariants: no error ends the applier without a hint; a hint that names `rplctl skip` says that the whole transaction is
left out; its commands are those of the channel that stopped.
"""

from __future__ import annotations

from rplctl.errors import RelayLogError, RplError, for_channel

SKIP = "or `rplctl skip`, which leaves the whole transaction out: all its changes are lost here"
_LATER = "so does replica_exec_mode=IDEMPOTENT for such rows, from the next start on"
_WIDEN = f"give the target's column the source's type and size, then rplctl start; {SKIP}"
_PARENT = f"put the row that is missing into the target, or drop its foreign key there, then rplctl start; {SKIP}"
_LOCKED = "end the session that holds the locks on the target, then rplctl start: nothing is lost"

_BY_NUMBER = {
    1032: f"the target lacks the row: put it there as it was before this change, then rplctl start; {SKIP}; {_LATER}",
    1062: f"the target has the row already: compare it with the source, delete it there if it is to come from the "
    f"source, then rplctl start; {SKIP}; {_LATER}",
    1048: _WIDEN,
    1049: "make the database on the target, then rplctl start",
    1205: _LOCKED,
    1213: _LOCKED,
    1264: _WIDEN,
    1292: _WIDEN,
    1366: _WIDEN,
    1406: _WIDEN,
    1451: f"delete the rows on the target that hang on it, then rplctl start; {SKIP}",
    1452: _PARENT,
    1592: f"set binlog_format=ROW on the source, and load its tables again; {SKIP}",
    4025: _WIDEN,
}
_OF_RELAY_LOG = "rplctl stop; rplctl recover --refetch; rplctl start (fetches the relay logs from the source again)"
_OTHERWISE = f"mend what the error says, on the target or on the source, then rplctl start: it begins there; {SKIP}"


def way_out(error: RplError) -> str:
    """The hint of an error that ends the applier: its own, else by its number."""
    if error.hint:
        return for_channel(error.hint, error.channel or "")
    if isinstance(error, RelayLogError):
        return for_channel(_OF_RELAY_LOG, error.channel or "")
    return for_channel(_BY_NUMBER.get(error.errno, _OTHERWISE), error.channel or "")
