"""What a power cut takes from this set-up, by what the target says of itself (`doctor`; design D3, WL#5125).

Rows and position are in one transaction of the target but for commit mode `xa`, so a target that loses its last
commits loses both: the channel goes on from the older position, and fetches what is missing while the source has it.
In mode `xa` the position is durable on our side when the target says that it has committed: what it loses then is
missing for good. A target that may be damaged, not only older, is named as such. The relay log only costs fetching.

Settings are read on a connection of its own, as the server has them for everybody; PostgreSQL's synchronous_commit
does not count: our sessions turn it on. SQLite's are ours. What is asked is in each kind's folder (`doctor`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rplctl.config import Config
from rplctl.target.doctor_line import OK, POWER_CUT, DoctorLine
from rplctl.target.registry import dialect_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

_TOGETHER = "rows and position together: they are fetched and applied again"
_APART = "rows without their position (commit_mode=xa): they are missing then"


def power_cut(connection: Connection, config: Config) -> Iterator[DoctorLine]:
    """One finding for each setting that lets a power cut take something; else one that says that none does."""
    lost = _APART if config.commit_mode == "xa" else _TOGETHER
    found = list(dialect_of(connection.dialect.name).power_cut(connection, lost))
    yield from found or [DoctorLine(POWER_CUT, OK, "takes no committed row from the target, nor its position")]
    yield relay_log(config)


def relay_log(config: Config) -> DoctorLine:
    """Ours: what is fetched again."""
    events = config.sync_relay_log
    part = f"up to {events} events" if events else "what came since its last rotation"
    return DoctorLine(
        f"{POWER_CUT}, relay log", OK, f"takes {part} from it, which are fetched again while the source has them"
    )
