"""The shadow-page file: two-phase commit of a small record in place, in a file of fixed size (appendix of WL#3970).

    offset          bytes
    0               8    XID, big-endian; 0 = nothing is prepared
    8               1    committed: 0 or 1, the page with the last committed record
    9               P    page 0
    9 + P           P    page 1

    page: 0   8   sequence, big-endian: the newer page has the sequence of the other page + 1
          8   8   XID for which the page was prepared; 0 = the first record
          16  4   n, length of the record
          20  4   CRC-32 of the page with these four bytes zero
          24  n   record; zeros up to P, a multiple of 512 (the 20 bytes of WL#3970 hold no log name)

The page that is committed is never written. Each step is durable before the next step begins:
    prepare    write the other page, fsync; write the XID, fsync: from now on the record is prepared
    commit     write byte 8, fsync; write XID = 0 without fsync, because a page older than the committed one is ignored
    rollback   write XID = 0, fsync

Invariant: after a torn write at any byte, the file has the state before or after the step. This is also true if the
last write of XID = 0 is lost. The number of the committed page cannot be torn, because it is one byte. An XID that is
half written differs from the XID of the newer page, so nothing counts as prepared. This is correct, because the fsync
of the XID had not returned. WL#3970 clears the XID in the same write as the page number. In that order, a torn write
could lose a commit.
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
    """One open shadow-page file. Its operations have the names of WL#3970 (af_open, af_update, af_prepare, …)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1
        self._page_size = 0
        self._committed = 0
        self._xid = 0
        self._pages: list[Page | None] = [None, None]
        self._pending = b""

    def create(self, record: bytes, room: int = 0) -> None:
        """Replace the file by a new one, in which `record` is the committed record.

        `room`: the size in bytes to which a record may grow without a new file.
        """
        size = -(-(max(2 * len(record), room) + _PAGE_HEAD.size) // PAGE_UNIT) * PAGE_UNIT
        self.close()
        replace_file(
            self.path, bytes(HEADER_SIZE) + _page_bytes(Page(sequence=1, xid=0, record=record), size) + bytes(size)
        )
        self.open()

    def open(self) -> None:
        """Open an existing file and read it.

        Raises FileNotFoundError if the file is missing, and RplError 1872 if it is damaged.
        """
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
        """The bytes of the record that was committed last."""
        page = self._pages[self._committed]
        assert page is not None
        return page.record

    @property
    def prepared(self) -> Page | None:
        """The page with the record that is prepared but not committed, or None."""
        page, other = self._pages[self._committed], self._pages[1 - self._committed]
        assert page is not None
        if other is None or other.sequence != page.sequence + 1:
            return None
        return other if other.xid == self._xid else None

    def fits(self, record: bytes) -> bool:
        return _PAGE_HEAD.size + len(record) <= self._page_size

    def update(self, record: bytes) -> None:
        """Set the record that the next `prepare` will write. This changes only the memory."""
        self._pending = record

    def prepare(self, xid: int) -> None:
        """Write the record of the last `update` to the page that is not committed, and make it durable for this XID.

        After an OSError, `rollback` undoes the step.
        """
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
        """Make the prepared record the committed one. The call is durable when it returns."""
        assert self.prepared is not None
        self._write(bytes([1 - self._committed]), COMMITTED_OFFSET)
        self._sync()
        self._committed = 1 - self._committed
        self._clear_xid()

    def rollback(self) -> None:
        """Discard the prepared record, and keep the committed record. The call is durable when it returns."""
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
            hint="to continue at the position in relay-log.info, which may be before transactions that the target "
            f"already has, run: rm {self.path}; rplctl start",
        )


def _page_bytes(page: Page, size: int) -> bytes:
    body = page.record.ljust(size - _PAGE_HEAD.size, b"\0")
    empty = _PAGE_HEAD.pack(page.sequence, page.xid, len(page.record), 0)
    return _PAGE_HEAD.pack(page.sequence, page.xid, len(page.record), zlib.crc32(empty + body)) + body


def _read_page(data: bytes) -> Page | None:
    """Return the page in these bytes, or None if a torn write damaged the page or if it was never written."""
    sequence, xid, length, checksum = _PAGE_HEAD.unpack_from(data)
    if not sequence or length > len(data) - _PAGE_HEAD.size:
        return None
    empty = _PAGE_HEAD.pack(sequence, xid, length, 0)
    if zlib.crc32(empty + data[_PAGE_HEAD.size :]) != checksum:
        return None
    return Page(sequence=sequence, xid=xid, record=data[_PAGE_HEAD.size : _PAGE_HEAD.size + length])
