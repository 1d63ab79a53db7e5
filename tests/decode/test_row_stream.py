"""Reading a piece of log: checksums first, table maps in force, damage named with its place."""

from __future__ import annotations

import numpy as np
import pytest

from rplctl.decode.row_stream import read_run, read_tables
from rplctl.errors import BinlogFormatError, TargetError
from rplctl.event.scan import GroupKind
from rplctl.schema.plan import Catalog
from tests.applier.demo_log import demo_groups

GROUPS = demo_groups()
ROWS = int(np.flatnonzero(GROUPS.scan.kind == GroupKind.ROWS)[0])
START, END = int(GROUPS.scan.start[ROWS]), int(GROUPS.scan.end[ROWS])
assert GROUPS.format_description is not None
DESCRIPTION = GROUPS.format_description


def test_every_flipped_byte_is_caught_by_the_checksum() -> None:
    for at in range(START + 19, END, 7):
        damaged = GROUPS.data.copy()
        damaged[at] ^= 0x10
        with pytest.raises(BinlogFormatError):
            read_run(damaged, START, END, DESCRIPTION)


def test_a_range_that_ends_inside_an_event_is_refused() -> None:
    with pytest.raises(BinlogFormatError) as caught:
        read_run(GROUPS.data, START, END - 1, DESCRIPTION)
    assert caught.value.errno == 1594


def test_rows_of_an_unknown_table_name_it_and_the_way_out() -> None:
    with pytest.raises(TargetError) as caught:
        list(read_tables(read_run(GROUPS.data, START, END, DESCRIPTION), Catalog()))
    assert caught.value.errno == 1146
    assert "shop." in caught.value.message


def test_rows_without_a_table_map_are_refused() -> None:
    run = read_run(GROUPS.data, START, END, DESCRIPTION)
    rows = np.flatnonzero(np.isin(run.types, (23, 24, 25)))[0]
    with pytest.raises(BinlogFormatError, match="has no table map"):
        list(read_tables(read_run(GROUPS.data, int(run.starts[rows]), END, DESCRIPTION), Catalog()))
