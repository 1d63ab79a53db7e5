"""Many events are verified at once as they would be one by one, and the first wrong one is named."""

from __future__ import annotations

import random
import zlib

import numpy as np
import numpy.typing as npt
import pytest

from rplctl.event.checksum import RESIDUE, verify_events
from rplctl.event.checksum_trailer import append_checksum
from rplctl.event.format_description import build_format_description
from tests.event import logs


def events(count: int, seed: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Of lengths from the shortest to 70 kB; (bytes, offsets)."""
    chosen = random.Random(seed)
    made = []
    for _ in range(count):
        body = bytearray(chosen.randbytes(19 + chosen.choice([0, 1, 7, 230, 70_000 * chosen.randrange(2)])))
        body[4], body[9:13] = 30, (len(body) + 4).to_bytes(4, "little")
        made.append(append_checksum(bytes(body)))
    assert all(zlib.crc32(event) == RESIDUE for event in made)
    return np.frombuffer(b"".join(made), np.uint8), np.cumsum([0, *map(len, made)])


@pytest.mark.parametrize("seed", range(5))
def test_good_events_are_good_wherever_they_begin(seed: int) -> None:
    data, offsets = events(50, seed)
    for first in (0, 1, 49, 50):
        assert verify_events(data, offsets[first:]) == -1


@pytest.mark.parametrize("seed", range(20))
def test_one_bit_anywhere_is_found_in_its_event(seed: int) -> None:
    data, offsets = events(40, seed)
    chosen = random.Random(seed)
    broken = data.copy()
    number = chosen.randrange(40)
    at = chosen.randrange(int(offsets[number]) + 5, int(offsets[number + 1]))
    broken[at] ^= 1 << chosen.randrange(8)
    assert verify_events(broken, offsets) == number


def test_events_that_trade_their_places_are_good_and_with_each_others_checksums_are_not() -> None:
    data, offsets = events(2, 3)
    first, second = data[: offsets[1]], data[offsets[1] :]
    swapped = np.concatenate([second, first])
    assert verify_events(swapped, np.array([0, len(second), len(swapped)])) == -1
    mixed = np.concatenate([first[:-4], second[-4:], second[:-4], first[-4:]])
    assert verify_events(mixed, offsets) == 0


def test_an_event_too_short_for_a_checksum_is_wrong() -> None:
    data, offsets = events(1, 1)
    assert verify_events(np.concatenate([data, data[:20]]), np.array([0, len(data), len(data) + 20])) == 1


def test_a_format_description_that_is_cut_short_is_bad_and_nothing_behind_it_is_read() -> None:
    whole = next(logs.events(logs.log("ma1011-crash-inuse")))
    for length in range(23, 81):
        short = append_checksum(whole[:9] + length.to_bytes(4, "little") + whole[13 : length - 4])
        assert verify_events(short, np.array([0, length]), 0) == 0


def described(algorithm: int, version: str = "8.0.40") -> npt.NDArray[np.uint8]:
    return np.frombuffer(build_format_description(1, 0, algorithm, version, relay_log=False), np.uint8).copy()


@pytest.mark.parametrize(
    ("algorithm", "created", "version", "is_taken"),
    [(0, 0, "8.0.40", True), (0, 1, "8.0.40", False), (1, 0, "8.0.40", False), (0, 1, "5.5.62", True)],
)
def test_only_a_description_without_checksums_that_was_sent_again_may_have_a_stale_one(
    algorithm: int, created: int, version: str, is_taken: bool
) -> None:
    event = described(algorithm, version)
    event[71], event[-1] = created, event[-1] ^ 1
    offsets = np.array([0, len(event)])
    assert [verify_events(event, offsets, before) for before in (0, 1)] == ([-1, -1] if is_taken else [0, 0])


def test_a_description_cut_short_is_wrong() -> None:
    event = described(0)[:70]
    assert verify_events(event, np.array([0, 70]), 0) == 0
