"""The ledger of a copy, on every kind of target: a step is taken once, from where the one before left it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.errors import LockBusy, TargetError
from rplctl.own_tables.clones import ClonedTable, CopyState, add_clones, move_clone, read_clones
from rplctl.own_tables.statement_note import NoteState, StatementNote, keep_note, kept_note
from rplctl.own_tables.tables import create_own_tables, forget_channel
from rplctl.position import BinlogPosition
from rplctl.target import open_engine
from tests.repository.conftest import Target, target as target


@pytest.mark.parametrize("kept", ["clone", "statement_note"])
def test_a_state_that_no_rplctl_has_written_is_an_error_with_a_remedy(tmp_path: Path, kept: str) -> None:
    """An operator may edit the tables, and a newer rplctl may have written them."""
    engine = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_own_tables(engine)
    with engine.begin() as connection:
        if kept == "clone":
            table = ClonedTable(Database_name="d", Table_name="t", Source_database="d", Family=1)
            add_clones(connection, "", [table])
        else:
            before = BinlogPosition("binlog.000001", 4)
            note = StatementNote(
                before=before, executed="", state=NoteState.SENT, events_done=0, statement_hash="", definitions={}
            )
            keep_note(connection, "", note)
        connection.exec_driver_sql(f"UPDATE rplctl_{kept} SET State = 'moving'")
        with pytest.raises(TargetError, match=f"rplctl_{kept} in the target has the unknown state 'moving'") as caught:
            read_clones(connection, "") if kept == "clone" else kept_note(connection, "")
    assert "rplctl start" in caught.value.hint and caught.value.errno == 1593
    engine.dispose()


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
