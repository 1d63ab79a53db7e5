"""Skips transactions: nothing is applied, but the position moves past them and their GTIDs count as executed.

The transactions that the operator lists are skipped. From a MySQL source, transactions whose GTIDs are already executed
are skipped, too (MySQL manual). For example, they come again after a change to an earlier position.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np

from rplctl.applier.feed.plan import Batch, BatchKind
from rplctl.event.gtid import MysqlGtidSet, is_executed
from rplctl.event.gtid_arrays import is_within, numbers_by_source, unsigned
from rplctl.info import RelayLogInfo
from rplctl.relay_log.reader import RelayGroups
from rplctl.skip_list import read_count, read_gtids, write_count, write_gtids

log = logging.getLogger(__name__)


class SkipList:
    """The transactions that one run of the applier skips.

    `count`: how many of the next transactions are skipped, regardless of their GTIDs. `note`: called if executed
    transactions came again, with a text and the position after them.
    """

    def __init__(self, run_folder: Path, note: Callable[[str, str], None] = lambda _text, _at: None) -> None:
        self.count = 0
        self._folder = run_folder
        self._note = note
        self._gtids: tuple[str, ...] = ()
        self._repeated: frozenset[int] = frozenset()  # executed groups in the last call of `groups`
        self._passed, self._passed_to = 0, ""

    def open(self) -> None:
        """Take the operator's number of transactions and read the list of GTIDs from the channel's run folder."""
        self._gtids = read_gtids(self._folder)
        self.count = read_count(self._folder)
        if self.count:
            write_count(self._folder, 0)  # `keep_rest` writes the remaining number

    def groups(self, groups: RelayGroups, stop: int, executed: str = "") -> list[int]:
        """Return the indexes of those of the first `stop` groups that must be skipped, in ascending order.

        The reason is that the operator has listed a group's GTID or, with a MySQL source, that it is in the set
        `executed`.
        """
        done = MysqlGtidSet.parse(executed if ":" in executed else "")
        self._repeated = frozenset()
        if not (self._gtids or done):
            return []
        mysql = MysqlGtidSet.parse(",".join(gtid for gtid in self._gtids if ":" in gtid))
        mariadb = [gtid.split("-") for gtid in self._gtids if ":" not in gtid]
        offsets = groups.scan.gtid_offset[:stop]
        with_gtid = np.flatnonzero(offsets >= 0)
        found: list[int] = []
        repeated: list[int] = []
        by_source = numbers_by_source(groups.data, offsets[with_gtid], lambda _: groups.format_description)
        for source, (events, numbers) in by_source.items():
            if isinstance(source, tuple):
                listed = is_within(numbers, mysql.intervals.get(source, ()))
                repeated += with_gtid[events[is_within(numbers, done.intervals.get(source, ()))]].tolist()
            else:
                servers = unsigned(groups.data, offsets[with_gtid[events]] + 5, 4)
                mine = [(int(server), int(number)) for domain, server, number in mariadb if int(domain) == source]
                listed = np.zeros(len(events), np.bool_)
                for server, number in mine:
                    listed |= (servers == server) & (numbers == number)
            found += with_gtid[events[listed]].tolist()
        self._repeated = frozenset(repeated)
        return sorted({*found, *repeated})

    def took(self, batch: Batch, info: RelayLogInfo) -> None:
        """Count the skipped transactions of a batch, and remove them from the operator's list.

        The caller does this after the position has moved past the batch. `info`: the position after the batch.
        """
        at = str(info.exec_position)
        if batch.kind is BatchKind.SKIP and batch.first in self._repeated:
            self._passed, self._passed_to = self._passed + 1, at
        elif batch.transaction_count:
            self.report_repeated()
        counted = min(self.count, batch.transaction_count)
        self.count -= counted
        gtids = self.committed(info.gtid_executed)
        if counted or gtids:
            what = f"{counted} transactions" if counted else f"GTID {', '.join(gtids)}"
            log.warning("the operator skipped %s; the position is now %s", what, at)

    def report_repeated(self) -> None:
        """Report the executed transactions that came again since the last report, in the log and to `note`."""
        if self._passed:
            text = f"skipped {self._passed} transactions whose GTIDs are executed"
            log.warning("%s; the position is now %s", text, self._passed_to)
            self._note(text, self._passed_to)
            self._passed = 0

    def committed(self, executed: str) -> tuple[str, ...]:
        """Remove the GTIDs that are in the set `executed` from the operator's list, and return them."""
        done = tuple(gtid for gtid in self._gtids if is_executed(gtid, executed))
        if done:
            self._gtids = tuple(gtid for gtid in self._gtids if gtid not in done)
            write_gtids(self._folder, self._gtids)
        return done

    def keep_rest(self) -> None:
        """Store how many transactions are still to be skipped, for the next start. Called at an orderly stop."""
        self.report_repeated()
        if self.count:
            write_count(self._folder, self.count)
