"""A native replica and a channel of ours that receive the same SQL statements and follow the same source.

Ours is asked through `serve --mysql`, so that a statement is the same on both sides. Compared are the answer (the
number of the error), every column of SHOW SLAVE STATUS and the rows. A difference that DIFFERENCES of rplctl(1)
describes has a row in `EXPLAINED` (tests/kit/native_rows.py); each other one is a failure.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from rplctl.command.user import add_user
from rplctl.config import load_config
from rplctl.front.server import MysqlRequest, MysqlServer as FrontServer
from tests.kit.fork_server import children_forked
from tests.kit.replica import Replica, variables_set
from tests.kit.servers import MariadbServer

PASSWORD = "C4nary's"
PATIENCE_S = 12.0
TO_MYSQL = (
    ("MASTER TO", "REPLICATION SOURCE TO"),
    ("MASTER_USE_GTID=slave_pos", "MASTER_AUTO_POSITION=1"),
    ("MASTER_", "SOURCE_"),
    ("SLAVE", "REPLICA"),
)
# Only whether there is a value is compared: texts, times, names and sizes of files differ from server to server.
PRESENCE = re.compile(r"Last_(IO_|SQL_|)Error(_Timestamp)?|Relay_Log_(File|Pos|Space)")
NOT_COMPARED = {"Master_Info_File"}
Differences = dict[str, tuple[object, object]]  # what differs → the native replica's, ours
Status = dict[str, Any]


@dataclass(frozen=True)
class Explained:
    """Differences that an entry of DIFFERENCES describes. `what` and `row` are regular expressions."""

    sentence: str  # the entry's heading in rplctl(1)
    what: str  # a column, "answer", or a table
    row: str = ""  # found in "vendor kind: row"


class Comparison:
    """Counts equal rows and explained differences by kind, and lists the others."""

    def __init__(self, vendor: str, explained: tuple[Explained, ...]) -> None:
        self.vendor, self._explained = vendor, explained
        self.counts: Counter[tuple[str, str]] = Counter()
        self.unexplained: list[str] = []
        self._began = time.monotonic()

    def unexplained_of(self, kind: str, row: str, found: Differences) -> Differences:
        return {what: both for what, both in found.items() if self._reason(kind, row, what) is None}

    def add(self, kind: str, row: str, found: Differences) -> None:
        """Count one row of the table."""
        reasons = {what: self._reason(kind, row, what) for what in found}
        self.counts.update({(kind, reason.sentence) for reason in reasons.values() if reason})
        self.counts[kind, "rows"] += 1
        self.counts[kind, "equal"] += not found
        for what, reason in reasons.items():
            if reason is None:
                theirs, ours = found[what]
                self.unexplained.append(f"{self.vendor} {kind}: {row}: {what}: native {theirs!r}, ours {ours!r}")

    def _reason(self, kind: str, row: str, what: str) -> Explained | None:
        name = f"{self.vendor} {kind}: {row}"
        fits = (each for each in self._explained if re.fullmatch(each.what, what) and re.search(each.row, name))
        return next(fits, None)

    def summary(self) -> list[str]:
        """A line for each kind: rows, equal rows, and rows by the heading that explains a difference."""
        lines = []
        seconds = time.monotonic() - self._began
        for kind in sorted({kind for kind, _ in self.counts}):
            total, equal = self.counts[kind, "rows"], self.counts[kind, "equal"]
            reasons = {name: n for (of, name), n in self.counts.items() if of == kind and name not in ("rows", "equal")}
            listed = "".join(f"; {name}: {count}" for name, count in sorted(reasons.items()))
            lines.append(f"beside native {self.vendor}, {kind}: {total} rows, {equal} equal{listed}")
        rows = sum(count for (_, name), count in self.counts.items() if name == "rows")
        lines.append(f"beside native {self.vendor}: {seconds / max(1, rows):.2f} s a row")
        return lines


class Side:
    """One of the two: it answers statements and has a status."""

    def __init__(self, connection: pymysql.connections.Connection[Any], vendor: str) -> None:
        self.connection, self.vendor = connection, vendor

    def ask(self, statement: str) -> int:
        """Return the number of the statement's error, 0 if it succeeded."""
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(self.words(statement))
            except pymysql.MySQLError as error:
                return int(error.args[0])
        return 0

    def words(self, statement: str) -> str:
        if self.vendor == "mysql":
            for old, new in TO_MYSQL:
                statement = statement.replace(old, new)
        return statement

    def status(self) -> Status:
        """Return the status under MariaDB's column names, empty without a channel."""
        with self.connection.cursor() as cursor:
            cursor.execute(self.words("SHOW SLAVE STATUS"))
            names = (str(column[0]) for column in cursor.description or ())
            alike = [name.replace("Source", "Master").replace("Replica_", "Slave_") for name in names]
            return dict(zip(alike, cursor.fetchone() or (), strict=False))


class Pair:
    """`replica` is ours and applies into `target`."""

    def __init__(
        self, source: MariadbServer, native: MariadbServer, target: MariadbServer, replica: Replica, port: int
    ) -> None:
        self.source, self.native, self.target, self.replica = source, native, target, replica
        self.vendor = source.kind
        self.theirs = Side(native.connect(), self.vendor)
        ours = pymysql.connect(host="127.0.0.1", port=port, user="dba", password=PASSWORD, autocommit=True)
        self.ours = Side(ours, self.vendor)

    def close(self) -> None:
        self.theirs.connection.close()
        self.ours.connection.close()
        self.replica.close()

    def ask(self, statement: str) -> Differences:
        """Give both the statement; the answers, if they differ."""
        theirs, ours = self.theirs.ask(statement), self.ours.ask(statement)
        return {"answer": (theirs, ours)} if theirs != ours else {}

    def begin(self) -> tuple[str, int]:
        """Both get the channel anew, with the same options, at the end of the source's log. Returns that position."""
        for statement in ("STOP SLAVE", "RESET SLAVE ALL"):
            assert self.theirs.ask(statement) in (0, 1200) and self.ours.ask(statement) in (0, 1200)
        is_mysql = self.vendor == "mysql"
        self.native.sql("RESET BINARY LOGS AND GTIDS" if is_mysql else "SET GLOBAL gtid_slave_pos=''")
        log, position = self.source.master_status()
        change = (
            f"CHANGE MASTER TO MASTER_HOST='{self.source.host}', MASTER_PORT={self.source.port}, MASTER_USER='rpl',"
            f" MASTER_PASSWORD='rpl', MASTER_CONNECT_RETRY=1, MASTER_LOG_FILE='{log}', MASTER_LOG_POS={position},"
            " MASTER_SSL=0, MASTER_SSL_CA='', MASTER_SSL_CAPATH='', MASTER_SSL_CERT='', MASTER_SSL_KEY='',"
            " MASTER_SSL_CIPHER='', MASTER_SSL_CRL='', MASTER_SSL_CRLPATH='', MASTER_SSL_VERIFY_SERVER_CERT=0, "
            + ("GET_MASTER_PUBLIC_KEY=1" if is_mysql else "MASTER_USE_GTID=no")
        )
        assert self.theirs.ask(change) == self.ours.ask(change) == 0
        return log, position

    def status_differences(self) -> Differences:
        theirs, ours = self.theirs.status(), self.ours.status()
        shown = {name: (_shown(name, theirs), _shown(name, ours)) for name in theirs.keys() | ours.keys()}
        return {name: both for name, both in shown.items() if both[0] != both[1]}

    def wait_native(self, expected: Mapping[str, object]) -> str:
        """Wait until the native replica's columns have these values; "end" is the end of the source's log.

        Returns what is missing when the time is up, else ''.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            status = self.theirs.status()
            read = status.get("Master_Log_File"), status.get("Read_Master_Log_Pos")
            executed = status.get("Relay_Master_Log_File"), status.get("Exec_Master_Log_Pos")
            made = {**status, "read": "end", "executed": "end"}
            if "read" in expected and read != self.source.master_status():
                made["read"] = read
            if "executed" in expected and executed != self.source.master_status():
                made["executed"] = executed
            if all(made.get(name) == value for name, value in expected.items()):
                return ""
            if time.monotonic() > deadline:
                last = {name: value for name, value in status.items() if value and name.startswith(("Last_", "Slave_"))}
                return f"the native replica has not {expected}: {last}"
            time.sleep(0.05)

    def resolved(self, comparison: Comparison, kind: str, row: str) -> Differences:
        """Return the differences of the status, after ours had time to become as the native replica is."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = self.status_differences()
            if not comparison.unexplained_of(kind, row, found) or time.monotonic() > deadline:
                return found
            time.sleep(0.05)


def _shown(name: str, status: Status) -> object:
    if name in NOT_COMPARED:
        return None
    if not status or name not in status:
        return "no channel" if not status else "no such column"
    value = status[name]
    if name.startswith("Seconds_Behind"):
        return value is not None
    return bool(value) if PRESENCE.fullmatch(name) else value


@contextmanager
def native_pair(folder: Path, source: MariadbServer, native: MariadbServer, target: MariadbServer) -> Iterator[Pair]:
    target.sql("SET sql_log_bin=0; DROP DATABASE IF EXISTS rplctl")  # of the instance of an earlier test
    replica = Replica(folder, spark=False)
    replica.run("init", *replica.into(target))
    add_user(load_config(replica.datadir, ""), "dba", "admin", PASSWORD)
    request = MysqlRequest(listen="127.0.0.1:0", flavor=source.kind)
    with (
        variables_set(replica.variables),
        children_forked(),
        FrontServer(request, lambda name: load_config(replica.datadir, name)).running() as server,
    ):
        pair = Pair(source, native, target, replica, server.port)
        try:
            yield pair
        finally:
            pair.close()
