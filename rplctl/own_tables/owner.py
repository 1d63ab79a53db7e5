"""The owner of a channel's rows in the target: one row per channel in rplctl_channel_owner.

Invariant: everything that rplctl stores in a target under a channel's name belongs to the instance and the source in
this row. This is the position, models, states of copies, prepared transactions and decided batches. Only an applier of
that instance, or an operator who takes over the target, changes the row.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection, Engine, Insert, Update, delete, insert, select, update

from rplctl.info import MasterInfo
from rplctl.own_tables.tables import channel_owner
from rplctl.repository.tables import own_table_exists
from rplctl.target.dialect import TO_WRITE


@dataclass(frozen=True, slots=True)
class Owner:
    """The instance and the source that own a channel's rows. Field names are columns.

    An unknown source has no uuid and the server id 0.
    """

    Instance_id: str
    Instance_place: str = ""  # HOST:FOLDER, for people
    Source_uuid: str = ""
    Source_server_id: int = 0
    Source_place: str = ""  # HOST:PORT, or a folder, for people
    Kept_by: str = ""  # the commit mode in which the position was last stored

    @property
    def shown(self) -> str:
        identity = self.Source_uuid or (f"server id {self.Source_server_id}" if self.Source_server_id else "")
        source = f"{self.Source_place} ({identity})" if identity else self.Source_place
        return f"instance {self.Instance_id or 'without an id'} in {self.Instance_place}, source {source or 'unknown'}"

    def is_same_source(self, other: Owner) -> bool:
        """True unless both sources are known and differ. A MariaDB server has no uuid."""
        if self.Source_uuid and other.Source_uuid:
            return self.Source_uuid == other.Source_uuid
        if self.Source_server_id and other.Source_server_id:
            return self.Source_server_id == other.Source_server_id
        return True

    def is_known_source(self, other: Owner) -> bool:
        """True if both owners have the same source, by its ids, or by its address if the ids are unknown."""
        if not self.is_same_source(other):
            return False
        return (
            bool(self.Source_place)
            and self.Source_place == other.Source_place
            or (bool(self.Source_uuid) and self.Source_uuid == other.Source_uuid)
        )


def owner_of(instance_id: str, place: str, master: MasterInfo | None) -> Owner:
    """Return the owner that this instance writes: itself, with the channel's source."""
    master = master or MasterInfo()
    return Owner(
        Instance_id=instance_id,
        Instance_place=place,
        Source_uuid=master.uuid,
        Source_server_id=master.master_server_id,
        Source_place=master.place[:512],
    )


def read_owner(connection: Connection, channel: str) -> Owner | None:
    """Return the owner of the channel's rows; None if no applier of this version has worked with the target.

    The errors of the driver are not converted.
    """
    table = channel_owner(connection.dialect.name)
    if not own_table_exists(connection, table.name):
        return None
    columns = [table.c[name] for name in Owner.__dataclass_fields__]
    row = connection.execute(select(*columns).where(table.c.Channel_name == channel)).first()
    return None if row is None else Owner(*row)


def claim_channel(connection: Connection, channel: str, owner: Owner | None, kept_by: str = "") -> None:
    """Store `owner`, with the commit mode `kept_by`, in the channel's row. If `owner` is None, do nothing.

    The caller's transaction commits the change; an equal row is not written. A missing row is inserted without a
    previous UPDATE: InnoDB would lock the gap, and one of two new channels would fail with 1213.
    """
    if (statement := _claim(connection, channel, owner, kept_by)) is not None:
        connection.execute(statement)


def claim_alone(engine: Engine, channel: str, owner: Owner | None, kept_by: str) -> None:
    """Store the owner as `claim_channel` does, in a transaction of its own. If the row is equal, no lock is taken."""
    with engine.connect() as connection:
        if _claim(connection, channel, owner, kept_by) is None:
            return
    with engine.connect() as plain, (connection := plain.execution_options(**TO_WRITE)).begin():
        claim_channel(connection, channel, owner, kept_by)


def _claim(connection: Connection, channel: str, owner: Owner | None, kept_by: str) -> Insert | Update | None:
    """Return the statement that writes the owner's row; None if there is nothing to write."""
    table = channel_owner(connection.dialect.name)
    if owner is None or not own_table_exists(connection, table.name):
        return None  # a target of an older rplctl: the next applier creates the table
    owner, found = replace(owner, Kept_by=kept_by), read_owner(connection, channel)
    if found is None:
        return insert(table).values(Channel_name=channel, **asdict(owner))
    return None if found == owner else update(table).where(table.c.Channel_name == channel).values(**asdict(owner))


def forget_source(connection: Connection, channel: str) -> None:
    """Remove the source from the owner's row after CHANGE MASTER: the next applier stores the identity of
    its source.
    """
    table = channel_owner(connection.dialect.name)
    unknown = {"Source_uuid": "", "Source_server_id": 0}
    connection.execute(update(table).where(table.c.Channel_name == channel).values(**unknown))


def disown_channel(connection: Connection, channel: str) -> None:
    """Delete the owner's row after RESET REPLICA: the position is deleted, and the next applier begins like the first
    one.
    """
    table = channel_owner(connection.dialect.name)
    if own_table_exists(connection, table.name):
        connection.execute(delete(table).where(table.c.Channel_name == channel))
