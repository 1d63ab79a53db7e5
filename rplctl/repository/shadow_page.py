"""The shadow-page file: two-phase commit of a small record, in place, in a file of fixed size (WL#3970's appendix).

    offset          bytes
    0               8    XID, big-endian; 0 = nothing is prepared
    8               1    committed: 0 or 1, the page that holds the last committed record
    9               P    page 0
    9 + P           P    page 1

    page: 0   8   sequence, big-endian: 1 more than the other page's when this one is the newer
          8   8   XID it was prepared for; 0 = the first record
          16  4   n, length of the record
          20  4   CRC-32 of the page with these four bytes zero
          24  n   record; zeros up to P, a multiple of 512 (the worklog's 20 bytes hold no log name)

The committed page is never written. Order, each step durable before the next begins:
    prepare    the other page, fsync; XID, fsync: from here on the record is decided
    commit     byte 8, fsync; then XID = 0, which needs none: a page older than the committed one counts for nothing
    rollback   XID = 0, fsync
Invariant: after a tear of any write at any byte, and with the last clearing lost or not, the file says the state before
or after it. The header cannot be torn into another committed page (one byte). A half-written XID, or one that was to be
cleared, is not that of the newer page, so nothing is prepared: no fsync had returned. Where the worklog cleared the XID
in the same write as the pointer, a tear between the two would lose a commit.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from rplctl import mysql_errors as er
from rplctl.durable import remove_file, replace_file, sync, write_all
from rplctl.errors import RplError
from rplctl.plain_file import open_plain

HEADER_SIZE = 9
XID_SIZE = COMMITTED_OFFSET = 8
PAGE_UNIT = 512
_PAGE_HEAD = struct.Struct(">QQII")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    sequence: int
    xid: int
    record: bytes


class ShadowPageFile:
    """One open file. Names of the operations are the worklog's (af_open, af_update, af_prepare, …)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._page_size = 0
        self._committed = 0
        self._xid = 0
        self._pages: list[Page | None] = [None, None]
        self._pending = b""

    def create(self, record: bytes, room: int = 0) -> None:
        """A file whose committed record is this one, in place of any other; `room`: bytes that a record may grow to."""
        size = -(-(max(2 * len(record), room) + _PAGE_HEAD.size) // PAGE_UNIT) * PAGE_UNIT
        self.close()
        replace_file(
            self.path, bytes(HEADER_SIZE) + _page_bytes(Page(sequence=1, xid=0, record=record), size) + bytes(size)
        )
        self.open()

    def open(self) -> None:
        """Read an existing file. Raises FileNotFoundError, RplError 1872 when no state can be told from it."""
        self.close()
        self._descriptor = open_plain(self.path, os.O_RDWR, follow=False)
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        self._page_size, odd = divmod(len(data) - HEADER_SIZE, 2)
        if odd or self._page_size < PAGE_UNIT:
            raise self._damaged("its size is not that of a header and two pages")
        self._xid = int.from_bytes(data[:XID_SIZE], "big")
        self._committed = data[COMMITTED_OFFSET]
        if self._committed not in (0, 1):
            raise self._damaged(f"byte {COMMITTED_OFFSET} names page {self._committed}")
        starts = (HEADER_SIZE, HEADER_SIZE + self._page_size)
        self._pages = [_read_page(data[start : start + self._page_size]) for start in starts]
        if self._pages[self._committed] is None:
            raise self._damaged("the committed page's checksum is wrong")

    @property
    def record(self) -> bytes:
        """Return the record that is committed."""
        page = self._pages[self._committed]
        assert page is not None
        return page.record

    @property
    def prepared(self) -> Page | None:
        """The decided record that is not committed yet."""
        page, other = self._pages[self._committed], self._pages[1 - self._committed]
        assert page is not None
        if other is None or other.sequence != page.sequence + 1:
            return None
        return other if other.xid == self._xid else None

    def fits(self, record: bytes) -> bool:
        return _PAGE_HEAD.size + len(record) <= self._page_size

    def update(self, record: bytes) -> None:
        """Change the pending record in memory only."""
        self._pending = record

    def prepare(self, xid: int) -> None:
        """Make the pending record durable beside the committed one. Raises OSError; `rollback` then undoes it."""
        page = self._pages[self._committed]
        assert page is not None and 0 < xid < 1 << 64 and self.fits(self._pending)
        new, number = Page(sequence=page.sequence + 1, xid=xid, record=self._pending), 1 - self._committed
        self._pages[number] = None
        self._write(_page_bytes(new, self._page_size), HEADER_SIZE + number * self._page_size)
        self._sync()
        self._pages[number] = new
        self._xid = xid
        self._write(xid.to_bytes(XID_SIZE, "big"), 0)
        self._sync()

    def commit(self) -> None:
        """The prepared record becomes the committed one."""
        assert self.prepared is not None
        self._write(bytes([1 - self._committed]), COMMITTED_OFFSET)
        self._sync()
        self._committed = 1 - self._committed
        self._clear_xid()

    def rollback(self) -> None:
        """The prepared record is forgotten."""
        self._clear_xid()
        self._sync()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def remove(self) -> None:
        self.close()
        if self.path.exists():
            remove_file(self.path)

    def _clear_xid(self) -> None:
        self._write(bytes(XID_SIZE), 0)
        self._xid = 0

    def _write(self, data: bytes, offset: int) -> None:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        write_all(self._descriptor, data)

    def _sync(self) -> None:
        sync(self._descriptor, self.path.name)

    def _damaged(self, why: str) -> RplError:
        return RplError(
            f"{self.path} is damaged: {why}",
            errno=er.SLAVE_RLI_INIT_REPOSITORY,
            hint=f"rm {self.path}: relay-log.info is gone by then",
        )


def _page_bytes(page: Page, size: int) -> bytes:
    body = page.record.ljust(size - _PAGE_HEAD.size, b"\0")
    empty = _PAGE_HEAD.pack(page.sequence, page.xid, len(page.record), 0)
    return _PAGE_HEAD.pack(page.sequence, page.xid, len(page.record), zlib.crc32(empty + body)) + body


def _read_page(data: bytes) -> Page | None:
    """None when it was torn or never written."""
    sequence, xid, length, checksum = _PAGE_HEAD.unpack_from(data)
    if not sequence or length > len(data) - _PAGE_HEAD.size:
        return None
    empty = _PAGE_HEAD.pack(sequence, xid, length, 0)
    if zlib.crc32(empty + data[_PAGE_HEAD.size :]) != checksum:
        return None
    return Page(sequence=sequence, xid=xid, record=data[_PAGE_HEAD.size : _PAGE_HEAD.size + length])
