"""The ledger of a copy, on every kind of target: a step is taken once, from where the one before left it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rplctl.errors import LockBusy
from rplctl.own_tables.clones import ClonedTable, CopyState, add_clones, move_clone, read_clones
from rplctl.own_tables.tables import create_own_tables, forget_channel
from tests.repository.conftest import Target, target as target


@pytest.mark.long("SQLite and one server stay.", keeps=r"^(sqlite|mariadb)")
def test_a_chunk_is_counted_once_and_channels_do_not_meet(target: Target) -> None:
    engine = target.engine()
    create_own_tables(engine)
    waits = ClonedTable(Database_name="d", Table_name="T", Source_database="source", Family=2)
    other = ClonedTable(Database_name="d", Table_name="t", Source_database="source", Family=1)
    with engine.begin() as connection:
        add_clones(connection, "east", [waits, other])
        add_clones(connection, "west", [waits])
        assert read_clones(connection, "east") == [other, waits]
    begun = replace(waits, State=CopyState.COPYING, Epoch=1 << 50, Chunks=1, Row_count=1 << 40, Position="log.000001:4")
    with engine.begin() as connection:
        move_clone(connection, "east", waits, begun)
    with engine.begin() as connection, pytest.raises(LockBusy):
        move_clone(connection, "east", waits, begun)
    with engine.begin() as connection:
        assert read_clones(connection, "east") == [other, begun]
        forget_channel(connection, "east")
        assert read_clones(connection, "east") == []
        assert read_clones(connection, "west") == [waits]
        forget_channel(connection, "west")
