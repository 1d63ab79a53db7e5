"""Prepared XA transactions wait in the target, per channel, until they are taken out once."""

from __future__ import annotations

from pathlib import Path

from rplctl.binlog.format_description import FormatDescription
from rplctl.commit.prepared import forget_prepared, keep_prepared, take_prepared
from rplctl.commit.tables import create_own_tables
from rplctl.target import open_engine

DESCRIPTION = FormatDescription(4, "10.11.19-MariaDB", 0, (56, 13, 0), 1, True)
XID = "X'6162',X'',1"


def test_what_was_kept_is_taken_once_and_rolled_back_with_its_transaction(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_own_tables(engine)
    with engine.begin() as connection:
        keep_prepared(connection, "", XID, b"\x00events\xff", DESCRIPTION)
        keep_prepared(connection, "other", XID, b"theirs", DESCRIPTION)
    with engine.connect() as connection:
        assert take_prepared(connection, "", XID) == (b"\x00events\xff", DESCRIPTION)
        connection.rollback()
    with engine.begin() as connection:
        assert take_prepared(connection, "", XID) == (b"\x00events\xff", DESCRIPTION)
        assert take_prepared(connection, "", XID) is None
    with engine.begin() as connection:
        forget_prepared(connection, "other")
        assert take_prepared(connection, "other", XID) is None
    engine.dispose()
