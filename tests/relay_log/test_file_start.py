"""Where a relay log begins in the source's log: recorded heads of files fetched by GTID (log_file.start_of)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.position import BinlogPosition
from rplctl.relay_log.log_file import start_of

HEADS = Path(__file__).parents[1] / "data" / "relay_heads"


@pytest.mark.parametrize("head", ["mysql-gtid.bin", "mariadb-gtid.bin"])
def test_a_file_begins_where_its_first_rotate_says_wherever_the_dump_goes_on(head: str) -> None:
    assert start_of(HEADS / head) == BinlogPosition("binlog.000001", 4)


@pytest.mark.parametrize("head", ["mysql-gtid.bin", "mariadb-gtid.bin"])
def test_a_head_cut_anywhere_begins_at_one_of_its_own_positions_or_is_no_relay_log(head: str, tmp_path: Path) -> None:
    whole = (HEADS / head).read_bytes()
    last = start_of(HEADS / head)
    assert last is not None
    seen = []
    for size in range(720):
        (tmp_path / "cut").write_bytes(whole[:size])
        begins = start_of(tmp_path / "cut")
        if begins is not None and begins not in seen:
            seen.append(begins)
    assert seen == sorted(seen, key=BinlogPosition.order_key)
    assert seen[-1] == last
