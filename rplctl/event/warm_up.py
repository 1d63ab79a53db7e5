"""Compile every kernel once per machine with a few recorded events. Later calls load the kernels from the cache.

Compilation takes some seconds of CPU time. Receiver, applier and Spark's workers all need the kernels and start
together. So one process compiles under a lock, and the others wait for its result (Spark's JVM starts in the meantime).
Invariant: only the cache changes. Without the cache, everything works, but starts later.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from rplctl.event.checksum import verify_events
from rplctl.event.column import column_formats
from rplctl.event.distinct_ranges import distinct_ranges
from rplctl.event.fields import EncodedText, TextForm, field_spans, fields_of, row_ends
from rplctl.event.images import walk_images
from rplctl.event.jit import byte_view
from rplctl.event.kernel_cache import LOCK_FILE, STAMP_FILE, is_compiled, made_folder
from rplctl.event.maps_in_force import maps_in_force
from rplctl.event.multiset import multiset_changes
from rplctl.event.net_change import net_changes
from rplctl.event.open_group import OpenGroup
from rplctl.event.packets import as_packets, deframe
from rplctl.event.relocate import relocated
from rplctl.event.rows import parse_rows_events
from rplctl.event.scan import scan_events, scan_groups, split_rows
from rplctl.event.table_map import parse_table_map
from rplctl.event.types import PLAIN_ROWS, EventType
from rplctl.event.values import decode_column
from rplctl.locks import flock
from rplctl.plain_file import closing_descriptor
from rplctl.position import BinlogPosition

_RECORDING: Final = Path(__file__).parents[1] / "demo/data/binlog.000001"


def warm_up() -> None:
    """Load every kernel into this process, and compile the kernels if the cache lacks them."""
    folder = made_folder()
    if folder is None or is_compiled():
        run_kernels()
        return
    with closing_descriptor(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as descriptor:
        flock(descriptor)
        run_kernels()
        (folder / STAMP_FILE).touch()


def run_kernels() -> None:
    """Run the kernels that a receiver, a task and a binlog server need.

    Their input is the first transactions of a recorded log, which is a part of rplctl.
    """
    data = np.fromfile(_RECORDING, np.uint8)[: 1 << 15]
    scan = scan_groups(data, 4, BinlogPosition("binlog.000001", 4), 1 << 14)
    end = int(scan.end[-1])
    description = scan.description_at(end)
    assert description is not None
    index = scan_events(data[4:end])
    verify_events(data[4:end], index.offsets)
    OpenGroup().follow(data[4:end], index.offsets, description.checksum_length)
    deframe(np.zeros(1 << 10, np.uint8), 0, 0)
    as_packets(byte_view(data[4:end].tobytes()), index.offsets[:-1], np.diff(index.offsets), 0, strips=False)
    starts, lengths = index.offsets[:-1] + 4, np.diff(index.offsets)
    relocated(data, starts[-1:], lengths[-1:], 4, has_checksum=True)
    is_rows = np.flatnonzero(np.isin(index.type_codes, list(PLAIN_ROWS)))[:1]
    is_map = np.flatnonzero(index.type_codes == EventType.TABLE_MAP)
    before = int(starts[is_map[is_map < is_rows[0]][-1]])
    split_rows(data, before, end, 1 << 10, description)
    length = int.from_bytes(data[before + 9 : before + 13].tobytes(), "little")
    table_map = parse_table_map(data[before : before + length].tobytes(), description)
    types = index.type_codes[is_rows]
    events = parse_rows_events(data, starts[is_rows], lengths[is_rows], types, description.checksum_length)
    formats = column_formats(table_map)
    images = walk_images(events, formats)
    net_changes(images, [0])
    multiset_changes(replace(images, before=images.after))
    everything = np.arange(len(images.cell_start))
    for column, column_format in enumerate(formats):
        decode_column(images, everything, column, column_format)
    _, kinds = distinct_ranges(data, starts[is_map], lengths[is_map])
    maps_in_force(starts[is_map], kinds, np.arange(len(kinds)), events.event_start, events.table_id)
    form = TextForm(lambda value: str(value).encode(), takes_bytes=True)
    columns = [fields_of(images, everything, c, f, form) for c, f in enumerate(formats)]
    list(EncodedText(columns))
    length_prefixed = byte_view(b"".join(EncodedText(columns, length_prefixed=True)))
    row_ends(length_prefixed, len(columns), length_prefixed=True)
    field_spans(length_prefixed, len(columns) * len(everything))


if __name__ == "__main__" and not is_compiled():
    warm_up()
