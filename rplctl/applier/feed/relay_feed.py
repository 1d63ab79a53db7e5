"""Supplies groups (transactions) of the relay log after the committed position.

The receiver may rewrite the files at the same time. Invariant: `next` returns groups that begin at the position in its
argument, or directly after the groups that it returned before. No group is missed. The receiver's recovery can repair
some damage, for example an incomplete event at the end of the log. The applier waits for this repair, no matter whether
it finds the damage while it reads groups or while it decodes them. Damage that lasts is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from rplctl.channel import Channel, lock_holder
from rplctl.errors import BinlogFormatError, RelayLogError
from rplctl.info import RelayLogInfo
from rplctl.position import BinlogPosition
from rplctl.relay_log.reader import RelayGroups, RelayLogReader
from rplctl.source_zones import SourceZones
from rplctl.status import read_status


class RelayFeed:
    """Reads the relay logs of one channel, from the committed position on.

    `patience_s`: seconds to wait for the repair of damage. `source_place`: returns the source's address in MasterInfo.
    It is called again after an error, because CHANGE MASTER may change the address while the applier runs.
    """

    def __init__(
        self,
        channel: Channel,
        patience_s: float,
        *,
        by_gtid: bool = False,
        source_place: Callable[[], str] = str,
        zones: SourceZones | None = None,
    ) -> None:
        self._channel = channel
        self._zones = zones
        self._source_place = source_place
        # the reader verifies no checksums, because the tasks verify them in parallel
        self._reader = RelayLogReader(channel, verify_checksums=False, by_gtid=by_gtid, source_place=source_place())
        self._patience_s = patience_s
        self._damaged_since: float | None = None
        self._is_open = False
        self._undecodable: tuple[BinlogPosition, float] | None = None  # (position before the damage, time it was found)

    def next(self, info: RelayLogInfo, limit_bytes: int) -> RelayGroups | None:
        """Return the next groups after the position in `info`, or None if there are none yet.

        `limit_bytes`: the approximate size of the groups. Raises RelayLogError for damage that is not repaired in time,
        and TargetError if MasterInfo cannot be read.
        """
        try:
            self._is_open = self._is_open or self._reader.open(info)
            groups = self._reader.groups(limit_bytes) if self._is_open else None
        except RelayLogError as error:
            now = time.monotonic()
            self._damaged_since = self._damaged_since or now
            if not error.transient or now - self._damaged_since > self._patience_s:
                raise
            self._is_open = False
            self._reader.source_place = self._source_place()
            return None
        self._damaged_since = None
        return self._with_zone(groups)

    def next_open(self, limit_bytes: int) -> RelayGroups | None:
        """Return the groups directly after those that were returned last.

        Return None if there are none yet, or if the position must first be found again by `next`.
        """
        return self._with_zone(self._reader.groups(limit_bytes)) if self._is_open else None

    def _with_zone(self, groups: RelayGroups | None) -> RelayGroups | None:
        if groups is None or groups.format_description is None or self._zones is None:
            return groups
        zone = self._zones.at(groups.log_name)
        return replace(groups, format_description=replace(groups.format_description, system_zone=zone))

    def rewind(self) -> None:
        """Forget the position in the log, because not all groups were applied.

        The next call of `next` then begins at the position in its argument.
        """
        self._is_open = False

    def damaged(self, info: RelayLogInfo, error: BinlogFormatError) -> None:
        """Read again from the position in `info`, because an event after it could not be decoded.

        The receiver's recovery may have repaired the file meanwhile, or may be about to repair it. Raises `error` if
        the damage is found again while no recovery is in progress, or if it lasts too long.
        """
        self.rewind()
        now = time.monotonic()
        if self._undecodable is None or self._undecodable[0] != info.exec_position:
            self._undecodable = (info.exec_position, now)
        elif now - self._undecodable[1] > self._patience_s or not lock_holder(self._channel, "receiver"):
            raise error
        elif read_status(
            self._channel.status_path("receiver")
        ).connected:  # a connected receiver has already recovered the relay log
            raise error
