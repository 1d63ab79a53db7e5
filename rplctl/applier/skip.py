"""Transactions that the operator takes for done: found by their GTID, committed as empty ones (mission map 2.6)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rplctl.applier.until import gtid_at
from rplctl.binlog.events import MariadbGtid
from rplctl.binlog.gtid import MysqlGtidSet, is_executed
from rplctl.relay_log.reader import RelayGroups
from rplctl.skip_list import read_gtids, write_count, write_gtids


class SkipList:
    """Of one run of the applier. `count`: transactions still to be passed over, whatever they are."""

    def __init__(self, run_folder: Path, count: int) -> None:
        self.count = count
        self._folder = run_folder
        self._gtids = read_gtids(run_folder)

    def groups(self, groups: RelayGroups, stop: int) -> list[int]:
        """Those of the first `stop` groups that are on the list."""
        if not self._gtids:
            return []
        mysql = MysqlGtidSet.parse(",".join(gtid for gtid in self._gtids if ":" in gtid))
        found = []
        for number in np.flatnonzero(groups.scan.gtid_offset[:stop] >= 0).tolist():
            gtid = gtid_at(groups, int(groups.scan.gtid_offset[number]))
            if isinstance(gtid, MariadbGtid):
                if f"{gtid.domain}-{gtid.server_id}-{gtid.sequence}" in self._gtids:
                    found.append(number)
            elif not gtid.is_anonymous and mysql.contains(gtid.server_uuid, gtid.number, gtid.tag):
                found.append(number)
        return found

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
