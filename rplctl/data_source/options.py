"""Parse and check the options of a query with `spark.read.format("binlog")`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rplctl.data_source.live import LIVE_OPTIONS, SCHEMES, LiveServer, live_server
from rplctl.errors import UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.position import BinlogPosition
from rplctl.schema.statement import TableName

PARTITION_BYTES: Final = 32 << 20
_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True)
class Gtids:
    """A set of GTIDs of MySQL or of MariaDB. The field of the other vendor is empty."""

    mysql: MysqlGtidSet
    mariadb: MariadbGtidState

    @classmethod
    def parse(cls, text: str) -> Gtids:
        """Parse a GTID set of MySQL or a GTID list of MariaDB. Raises UsageError if the text is neither."""
        if ":" in text:
            return cls(MysqlGtidSet.parse(text), MariadbGtidState.parse(""))
        return cls(MysqlGtidSet.parse(""), MariadbGtidState.parse(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The options of a query.

    `table` is the table whose rows become columns. None means all tables, as JSON. Times are in seconds since 1970.
    With `carry`, the driver sends the bytes of the logs to the tasks. `server` is the server to read. Its logs are
    copied to a folder below `path`.
    """

    path: Path
    table: TableName | None = None
    schema_file: Path | None = None
    start: BinlogPosition | None = None
    end: BinlogPosition | None = None
    start_gtid: Gtids | None = None
    end_gtid: Gtids | None = None
    start_time: float | None = None
    end_time: float | None = None
    zero_dates: str = "error"
    statements: str = "error"
    partition_bytes: int = PARTITION_BYTES
    max_bytes_per_trigger: int | None = None
    carry: bool = False
    server: LiveServer | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> QueryOptions:
        """Parse and check the options.

        The letter case of names is ignored, as in Spark, and an option with an empty value is ignored. Raises
        UsageError if an option is unknown, `path` is missing, or a value is not valid.
        """
        options = {name.lower(): value for name, value in given.items()}
        names = {"path", *_READ, *LIVE_OPTIONS}
        if unknown := sorted(options.keys() - names):
            raise UsageError(f"format binlog has no option {', '.join(unknown)}: {', '.join(sorted(names))}")
        path = options.get("path")
        if not path:
            raise UsageError(
                "format binlog needs the option path: a folder of binary logs, its index, one log, or mysql://USER@HOST:PORT"
            )
        server = live_server(path, options) if path.startswith(SCHEMES) else None
        found = {name: _read(name, text) for name, text in options.items() if name in _READ and text}
        return cls(path=server.spool if server else Path(path.removeprefix("file://")), server=server, **found)


def _read(name: str, text: str) -> Any:
    try:
        return _READ[name](text)
    except ValueError as error:
        raise UsageError(f"option {name}: '{text}' is not valid") from error
    except UsageError as error:
        raise UsageError(f"option {name}: {error.message}") from error


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise UsageError(f"'{text.lower()}' is not one of {', '.join(words)}")
        return text.lower()

    return read


def _count(text: str) -> int:
    if (value := int(text)) <= 0:
        raise ValueError(text)
    return value


def _table(text: str) -> TableName:
    """Parse shop.orders, or `shop`.`orders` for names with a dot. Raises ValueError for any other text."""
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1].replace("``", "`"), quoted[2].replace("``", "`")
    database, dot, table = text.partition(".")
    if not dot or not database or not table:
        raise ValueError(text)
    return database, table


def _time(text: str) -> float:
    """Parse a time in ISO 8601. Without a zone, the time is UTC."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "table": _table,
    "schema_file": Path,
    "start": BinlogPosition.parse,
    "end": BinlogPosition.parse,
    "start_gtid": Gtids.parse,
    "end_gtid": Gtids.parse,
    "start_time": _time,
    "end_time": _time,
    "zero_dates": _one_of("error", "null"),
    "statements": _one_of("error", "skip"),
    "partition_bytes": _count,
    "max_bytes_per_trigger": _count,
    "carry": lambda text: _one_of("true", "false")(text) == "true",
}
