"""Print the GTIDs of all transactions in a piece of the log as text, in one pass over the piece."""

from __future__ import annotations

import numpy as np

from rplctl.event.gtid_arrays import numbers_by_source, unsigned
from rplctl.event.jit import ByteArray
from rplctl.event.rows import Ints
from rplctl.event.scan import GroupScan


def gtid_texts(data: ByteArray, scan: GroupScan, groups: Ints) -> list[str]:
    """Return the GTID of each of some transactions as text, or '' for a transaction without a GTID.

    `groups` has the indexes of these transactions in `scan`.
    """
    texts = [""] * len(groups)
    have = np.flatnonzero(scan.gtid_offset[groups] >= 0)
    offsets = scan.gtid_offset[groups[have]]
    for source, (which, numbers) in numbers_by_source(data, offsets, scan.description_at).items():
        if isinstance(source, int):
            servers = unsigned(data, offsets[which] + 5, 4).tolist()
            found = [f"{source}-{server}-{number}" for server, number in zip(servers, numbers.tolist(), strict=True)]
        else:
            prefix = f"{source[0]}:{source[1]}:" if source[1] else f"{source[0]}:"
            found = [f"{prefix}{number}" for number in numbers.tolist()]
        for index, text in zip(have[which].tolist(), found, strict=True):
            texts[index] = text
    return texts
