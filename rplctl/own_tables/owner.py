"""The owner of a channel's rows in the target: one row per channel in the table rplctl_channel_owner.

Invariant: everything that rplctl stores in a target under a channel's name belongs to the instance and the source in
this row. This includes the position, models, states of copies, prepared transactions and decided batches. Only an
applier of that instance, or an operator who gives the target to another instance, can change the row.
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
    """The instance and the source that own a channel's rows in the target. The field names are column names.

    If the source is unknown, its uuid is '' and its server id is 0.
    """

    Instance_id: str
    Instance_place: str = ""  # HOST:FOLDER, for messages only
    Source_uuid: str = ""
    Source_server_id: int = 0
    Source_place: str = ""  # HOST:PORT, or a folder, for messages
    Kept_by: str = ""  # the commit mode in which the position was last stored

    @property
    def shown(self) -> str:
        identity = self.Source_uuid or (f"server id {self.Source_server_id}" if self.Source_server_id else "")
        source = f"{self.Source_place} ({identity})" if identity else self.Source_place
        return f"instance {self.Instance_id or 'without an id'} in {self.Instance_place}, source {source or 'unknown'}"

    def is_same_source(self, other: Owner) -> bool:
        """True if both owners may have the same source. False only if the ids of both sources are known and differ.

        If both sources have a uuid, the uuids are compared. Otherwise, the server ids are compared, because a MariaDB
        server has no uuid.
        """
        if self.Source_uuid and other.Source_uuid:
            return self.Source_uuid == other.Source_uuid
        if self.Source_server_id and other.Source_server_id:
            return self.Source_server_id == other.Source_server_id
        return True

    def is_known_source(self, other: Owner) -> bool:
        """True if both owners certainly have the same source. Their uuids or their addresses are equal, and no ids
        differ.
        """
        if not self.is_same_source(other):
            return False
        return (
            bool(self.Source_place)
            and self.Source_place == other.Source_place
            or (bool(self.Source_uuid) and self.Source_uuid == other.Source_uuid)
        )


def owner_of(instance_id: str, place: str, master: MasterInfo | None) -> Owner:
    """Return the owner that this instance stores for a channel: the instance itself, with the source in MasterInfo.

    `place`: the HOST:FOLDER of the instance. `master`: None if the source is unknown.
    """
    master = master or MasterInfo()
    return Owner(
        Instance_id=instance_id,
        Instance_place=place,
        Source_uuid=master.uuid,
        Source_server_id=master.master_server_id,
        Source_place=master.place[:512],
    )


def read_owner(connection: Connection, channel: str) -> Owner | None:
    """Return the owner of the channel's rows. Return None if rplctl_channel_owner has no row for the channel.

    Without such a row, no applier of this version of rplctl has worked with the target. Errors of the driver are not
    converted.
    """
    table = channel_owner(connection.dialect.name)
    if not own_table_exists(connection, table.name):
        return None
    columns = [table.c[name] for name in Owner.__dataclass_fields__]
    row = connection.execute(select(*columns).where(table.c.Channel_name == channel)).first()
    return None if row is None else Owner(*row)


def claim_channel(connection: Connection, channel: str, owner: Owner | None, kept_by: str = "") -> None:
    """Store `owner` in the channel's row, with the commit mode `kept_by`. If `owner` is None, do nothing.

    The caller's transaction commits the change. A row that is already equal is not written. A missing row is inserted
    without a previous UPDATE, because this UPDATE would lock a gap in InnoDB. Two new channels would then have a
    deadlock (1213).
    """
    if (statement := _claim(connection, channel, owner, kept_by)) is not None:
        connection.execute(statement)


def claim_alone(engine: Engine, channel: str, owner: Owner | None, kept_by: str) -> None:
    """Store the owner in the channel's row as `claim_channel` does, but in a transaction of its own.

    If the row is already equal, no lock is taken.
    """
    with engine.connect() as connection:
        if _claim(connection, channel, owner, kept_by) is None:
            return
    with engine.connect() as plain, (connection := plain.execution_options(**TO_WRITE)).begin():
        claim_channel(connection, channel, owner, kept_by)


def _claim(connection: Connection, channel: str, owner: Owner | None, kept_by: str) -> Insert | Update | None:
    """Return the statement that writes the owner's row, or None if there is nothing to write."""
    table = channel_owner(connection.dialect.name)
    if owner is None or not own_table_exists(connection, table.name):
        return None  # an older rplctl created the tables of this target; the next applier creates this table
    owner, found = replace(owner, Kept_by=kept_by), read_owner(connection, channel)
    if found is None:
        return insert(table).values(Channel_name=channel, **asdict(owner))
    return None if found == owner else update(table).where(table.c.Channel_name == channel).values(**asdict(owner))


def forget_source(connection: Connection, channel: str) -> None:
    """Remove the identity of the source from the owner's row after CHANGE MASTER.

    The next applier then stores the identity of its own source.
    """
    table = channel_owner(connection.dialect.name)
    unknown = {"Source_uuid": "", "Source_server_id": 0}
    connection.execute(update(table).where(table.c.Channel_name == channel).values(**unknown))


def disown_channel(connection: Connection, channel: str) -> None:
    """Delete the owner's row after RESET REPLICA.

    RESET REPLICA also deletes the position. So the next applier begins as if no applier had worked with the target.
    """
    table = channel_owner(connection.dialect.name)
    if own_table_exists(connection, table.name):
        connection.execute(delete(table).where(table.c.Channel_name == channel))
