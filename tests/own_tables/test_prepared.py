"""Prepared XA transactions wait in the target, per channel, until they are taken out once."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, text

from rplctl.event.format_description import FormatDescription
from rplctl.own_tables import prepared
from rplctl.own_tables.prepared import keep_prepared, take_prepared
from rplctl.own_tables.tables import create_own_tables, forget_channel
from rplctl.target import open_engine

DESCRIPTION = FormatDescription(
    binlog_version=4,
    server_version="10.11.19-MariaDB",
    created=0,
    header_lengths=(56, 13, 0),
    checksum_algorithm=1,
    is_mariadb=True,
)
XID = "X'6162',X'',1"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_engine(f"sqlite:///{tmp_path / 'target.db'}")
    create_own_tables(made)
    yield made
    made.dispose()


def taken(connection: Connection, channel: str) -> tuple[bytes, FormatDescription | None]:
    out = io.BytesIO()
    description = take_prepared(connection, channel, XID, out)
    return out.getvalue(), description


def test_what_was_kept_is_taken_once_and_rolled_back_with_its_transaction(engine: Engine) -> None:
    with engine.begin() as connection:
        keep_prepared(connection, "", XID, [b"\x00events\xff"], DESCRIPTION)
        keep_prepared(connection, "other", XID, [b"theirs"], DESCRIPTION)
    with engine.connect() as connection:
        assert taken(connection, "") == (b"\x00events\xff", DESCRIPTION)
        connection.rollback()
    with engine.begin() as connection:
        assert taken(connection, "") == (b"\x00events\xff", DESCRIPTION)
        assert taken(connection, "") == (b"", None)
    with engine.begin() as connection:
        forget_channel(connection, "other")
        assert taken(connection, "other") == (b"", None)


@pytest.mark.parametrize("sizes", [(0,), (10,), (11,), (9, 1, 9), (3, 47, 3), (20,)])
def test_events_are_stored_in_pieces_of_a_bounded_size(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(prepared, "PIECE_BYTES", 10)
    events = [bytes([number]) * size for number, size in enumerate(sizes)]
    with engine.begin() as connection:
        keep_prepared(connection, "", XID, [b"left over " * 9], DESCRIPTION)
        keep_prepared(connection, "", XID, iter(events), DESCRIPTION)
        rows = connection.execute(text("SELECT Piece, length(Events) FROM rplctl_prepared_xa ORDER BY Piece")).all()
        assert [row[0] for row in rows] == list(range(max(1, -(-sum(sizes) // 10))))
        assert max(row[1] for row in rows) <= 10
        assert taken(connection, "") == (b"".join(events), DESCRIPTION)
        assert connection.execute(text("SELECT count(*) FROM rplctl_prepared_xa")).scalar() == 0


def test_a_rolled_back_transaction_is_removed_unread(engine: Engine) -> None:
    with engine.begin() as connection:
        keep_prepared(connection, "", XID, [b"events"], DESCRIPTION)
        assert take_prepared(connection, "", XID, None) == DESCRIPTION
        assert taken(connection, "") == (b"", None)
