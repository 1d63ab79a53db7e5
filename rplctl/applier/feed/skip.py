"""Transactions that the operator takes for done: found by their GTID, committed as empty ones (MySQL manual)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rplctl.event.gtid import MysqlGtidSet, is_executed
from rplctl.event.gtid_arrays import is_within, numbers_by_source, unsigned
from rplctl.relay_log.reader import RelayGroups
from rplctl.skip_list import read_gtids, write_count, write_gtids


class SkipList:
    """The transactions that one run of the applier skips. `count`: how many are still skipped whatever they are."""

    def __init__(self, run_folder: Path, count: int) -> None:
        self.count = count
        self._folder = run_folder
        self._gtids: tuple[str, ...] = ()

    def open(self) -> None:
        """Read which GTIDs are on it."""
        self._gtids = read_gtids(self._folder)

    def groups(self, groups: RelayGroups, stop: int) -> list[int]:
        """Those of the first `stop` groups that are on the list."""
        if not self._gtids:
            return []
        mysql = MysqlGtidSet.parse(",".join(gtid for gtid in self._gtids if ":" in gtid))
        mariadb = [gtid.split("-") for gtid in self._gtids if ":" not in gtid]
        offsets = groups.scan.gtid_offset[:stop]
        with_gtid = np.flatnonzero(offsets >= 0)
        found: list[int] = []
        by_source = numbers_by_source(groups.data, offsets[with_gtid], lambda _: groups.format_description)
        for source, (events, numbers) in by_source.items():
            if isinstance(source, tuple):
                listed = is_within(numbers, mysql.intervals.get(source, ()))
            else:
                servers = unsigned(groups.data, offsets[with_gtid[events]] + 5, 4)
                mine = [(int(server), int(number)) for domain, server, number in mariadb if int(domain) == source]
                listed = np.zeros(len(events), np.bool_)
                for server, number in mine:
                    listed |= (servers == server) & (numbers == number)
            found += with_gtid[events[listed]].tolist()
        return sorted(found)

    def committed(self, executed: str) -> tuple[str, ...]:
        """Forget, and return, what is behind us."""
        done = tuple(gtid for gtid in self._gtids if is_executed(gtid, executed))
        if done:
            self._gtids = tuple(gtid for gtid in self._gtids if gtid not in done)
            write_gtids(self._folder, self._gtids)
        return done

    def keep_rest(self) -> None:
        """An orderly stop: the next start goes on counting."""
        if self.count:
            write_count(self._folder, self.count)
