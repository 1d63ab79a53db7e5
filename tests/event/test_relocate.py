"""Events at another place: end_log_pos and checksum are new and right, all else is as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rplctl.demo
from rplctl.event.checksum_trailer import has_valid_checksum
from rplctl.event.relocate import relocated
from rplctl.event.scan import scan_events

DEMO = Path(rplctl.demo.__file__).parent / "data" / "binlog.000001"


@pytest.mark.parametrize("position", [4, 1 << 20, (1 << 32) - 1000])
@pytest.mark.parametrize("has_checksum", [True, False])
def test_place_and_checksum_are_new_and_nothing_else(position: int, has_checksum: bool) -> None:
    data = np.fromfile(DEMO, np.uint8)
    index = scan_events(data, 4)
    chosen = np.arange(1, len(index), 3)
    starts, lengths = index.offsets[:-1][chosen], np.diff(index.offsets)[chosen]
    copy = relocated(data, starts, lengths, position, has_checksum=has_checksum)
    at = 0
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        old, new = data[start : start + length].tobytes(), copy[at : at + length].tobytes()
        at += length
        assert int.from_bytes(new[13:17], "little") == (position + at) & 0xFFFFFFFF
        assert new[:13] == old[:13] and new[17:-4] == old[17:-4]
        assert has_valid_checksum(new) if has_checksum else new[-4:] == old[-4:]
    assert at == len(copy)
