"""The shadow-page file: torn at every byte of every write it says the state before or after, and never a third."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.durable import sync_count
from rplctl.errors import RplError
from rplctl.repository import shadow_page
from rplctl.repository.shadow_page import HEADER_SIZE, PAGE_UNIT, ShadowPageFile

OLD, NEW, NEXT = b"position 1", b"position 2", b"position 3"
XID = 0x0123456789ABCDEF


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = ShadowPageFile(tmp_path / "relay-log.pages")
    made.create(OLD)
    made.close()
    return made.path


def opened(path: Path) -> ShadowPageFile:
    pages = ShadowPageFile(path)
    pages.open()
    return pages


def state(path: Path) -> tuple[bytes, int]:
    """(committed record, XID of the prepared one or 0)."""
    pages = opened(path)
    found = pages.record, pages.prepared.xid if pages.prepared else 0
    pages.close()
    return found


def test_update_is_memory_prepare_is_a_second_page_commit_swaps_them(path: Path) -> None:
    before = path.read_bytes()
    pages = opened(path)
    pages.update(NEW)
    assert path.read_bytes() == before
    pages.prepare(XID)
    data = path.read_bytes()
    assert (data[:8], data[8]) == (XID.to_bytes(8, "big"), 0)
    first_page = slice(HEADER_SIZE, HEADER_SIZE + PAGE_UNIT)
    assert data[first_page] == before[first_page], "the committed page is never overwritten"
    assert state(path) == (OLD, XID)
    pages.commit()
    data = path.read_bytes()
    assert (data[:8], data[8]) == (bytes(8), 1)
    assert state(path) == (NEW, 0)
    pages.update(NEXT)
    pages.prepare(XID + 1)
    pages.rollback()
    assert state(path) == (NEW, 0)
    pages.close()


def test_prepare_costs_two_fsyncs_and_commit_one(path: Path) -> None:
    pages = opened(path)
    before = sync_count[path.name]
    pages.update(NEW)
    pages.prepare(XID)
    assert sync_count[path.name] - before == 2
    pages.commit()
    assert sync_count[path.name] - before == 3
    pages.close()


def prepare(pages: ShadowPageFile, record: bytes, xid: int) -> None:
    pages.update(record)
    pages.prepare(xid)


STEPS: dict[str, tuple[Callable[[ShadowPageFile], None], set[tuple[bytes, int]]]] = {
    "prepare": (lambda pages: prepare(pages, NEW, XID), {(OLD, 0), (OLD, XID)}),
    "commit": (lambda pages: pages.commit(), {(OLD, XID), (NEW, 0)}),
    "rollback": (lambda pages: pages.rollback(), {(OLD, XID), (OLD, 0)}),
    "prepare the next": (lambda pages: prepare(pages, NEXT, XID + 1), {(NEW, 0), (NEW, XID + 1)}),
    "commit the next": (lambda pages: pages.commit(), {(NEW, XID + 1), (NEXT, 0)}),
    "prepare after a rollback": (
        lambda pages: prepare(pages, NEXT, XID + 1),
        {(OLD, 0), (OLD, XID + 1)},
    ),
}
BEFORE = {
    "prepare": [],
    "commit": ["prepare"],
    "rollback": ["prepare"],
    "prepare the next": ["prepare", "commit"],
    "commit the next": ["prepare", "commit", "prepare the next"],
    "prepare after a rollback": ["prepare", "rollback"],
}


@pytest.mark.parametrize("step", list(STEPS))
def test_torn_at_every_byte_of_every_write_it_is_old_or_new(
    path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every prefix and every suffix of each write, over what the writes before it left."""
    pages = opened(path)
    for earlier in BEFORE[step]:
        STEPS[earlier][0](pages)
    written: list[tuple[int, bytes]] = []
    synced: list[int] = []

    def write_all(descriptor: int, data: bytes) -> None:
        written.append((os.lseek(descriptor, 0, os.SEEK_CUR), data))

    monkeypatch.setattr(shadow_page, "write_all", write_all)
    monkeypatch.setattr(shadow_page, "sync", lambda *_: synced.append(len(written)))
    disk = path.read_bytes()
    action, allowed = STEPS[step]
    action(pages)
    pages.close()
    seen = {state(path)}
    for number, (offset, data) in enumerate(written):
        for cut in range(len(data) + 1):
            for torn, at in ((data[:cut], offset), (data[cut:], offset + cut)):
                path.write_bytes(disk[:at] + torn + disk[at + len(torn) :])
                seen.add(state(path))
        disk = disk[:offset] + data + disk[offset + len(data) :]
        assert number + 1 in synced or number + 1 == len(written), "one write at a time may be on its way to the disk"
    assert seen <= allowed
    path.write_bytes(disk)
    assert state(path) in allowed and len(seen) == 2


@pytest.mark.parametrize("fails", [0, 1])
def test_what_failed_to_be_prepared_is_not_prepared_after_a_power_cut(
    path: Path, fails: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit before needs no fsync for clearing its XID, so the disk may have it still beside the next page."""
    pages = opened(path)
    prepare(pages, NEW, XID)
    pages.commit()
    left = iter([None] * fails)

    def sync(*_: object) -> None:
        if next(left, OSError) is OSError:
            raise OSError

    monkeypatch.setattr(shadow_page, "sync", sync)
    with pytest.raises(OSError):
        prepare(pages, NEXT, XID + 1)
    pages.close()
    data = path.read_bytes()
    path.write_bytes(XID.to_bytes(8, "big") + data[8:])
    assert state(path) == (NEW, 0)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-1], "its size"),
        (lambda data: data[:8] + b"\x02" + data[9:], "names page 2"),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "checksum"),
        (lambda data: b"", "its size"),
    ],
)
def test_damage_is_an_error_and_never_a_position(path: Path, damage: Callable[[bytes], bytes], words: str) -> None:
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RplError, match=words) as caught:
        opened(path)
    assert caught.value.errno == 1872


def test_pages_are_whole_sectors_with_room_to_grow(tmp_path: Path) -> None:
    pages = ShadowPageFile(tmp_path / "p")
    pages.create(bytes(600))
    assert (tmp_path / "p").stat().st_size == HEADER_SIZE + 2 * 3 * shadow_page.PAGE_UNIT
    assert pages.fits(bytes(1200)) and not pages.fits(bytes(1600))
    pages.create(bytes(600), room=4000)
    assert pages.fits(bytes(4000))
    pages.remove()
    assert not (tmp_path / "p").exists()
