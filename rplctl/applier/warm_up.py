"""Load and compile what a task needs before the first real batch, so that the first row does not wait for it.

Runs once in every Python worker, over a few recorded events of the demo; the result is thrown away.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import rplctl.demo
from rplctl.applier.row_stream import read_run
from rplctl.binlog.column import column_formats
from rplctl.binlog.header import EventType
from rplctl.binlog.images import walk_images
from rplctl.binlog.net_change import net_changes
from rplctl.binlog.rows import ROWS_EVENT_TYPES, parse_rows_events
from rplctl.binlog.scan import GroupKind, scan_groups
from rplctl.binlog.table_map import parse_table_map
from rplctl.binlog.values import decode_column
from rplctl.position import BinlogPosition


def warm_up(_: object = None) -> None:
    data = np.fromfile(Path(rplctl.demo.__file__).parent / "data" / "binlog.000001", np.uint8)
    scan = scan_groups(data, 4, BinlogPosition("binlog.000001", 4), 1 << 16)
    group = int(np.flatnonzero(scan.kind == GroupKind.ROWS)[0])
    description = scan.description_at(int(scan.start[group]))
    assert description is not None
    run = read_run(data, int(scan.start[group]), int(scan.end[group]), description)
    is_rows = np.flatnonzero(np.isin(run.types, list(ROWS_EVENT_TYPES)))[:1]
    maps = np.flatnonzero(run.types == EventType.TABLE_MAP)
    table_map = parse_table_map(run.event(int(maps[maps < is_rows[0]][-1])), description)
    events = parse_rows_events(
        data, run.starts[is_rows], run.lengths[is_rows], run.types[is_rows], description.checksum_length
    )
    formats = column_formats(table_map)
    images = walk_images(events, formats)
    net_changes(images, [0])
    everything = np.arange(len(images.cell_start))
    for column, column_format in enumerate(formats):
        decode_column(images, everything, column, column_format)
