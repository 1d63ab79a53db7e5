"""What a query asks for: the options of `spark.read.format("binlog")`, checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from rplctl.data_source.live import SCHEMES, LiveServer, live_server
from rplctl.errors import UsageError
from rplctl.event.gtid import MariadbGtidState, MysqlGtidSet
from rplctl.position import BinlogPosition
from rplctl.schema.statement import TableName

PARTITION_BYTES: Final = 32 << 20
T = TypeVar("T")
ZERO_DATES: Final = ("error", "null")
STATEMENTS: Final = ("error", "skip")
_QUOTED: Final = re.compile(r"`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`")
_NAMES: Final = frozenset(
    "path table schema_file start end start_gtid end_gtid start_time end_time zero_dates statements partition_bytes "
    "max_bytes_per_trigger spool password_file ssl ssl_ca ssl_cert ssl_key ssl_verify_server_cert "
    "get_public_key".split()
)


@dataclass(frozen=True, slots=True)
class Gtids:
    """Of MySQL or of MariaDB, whichever the text was of."""

    mysql: MysqlGtidSet
    mariadb: MariadbGtidState

    @classmethod
    def parse(cls, text: str) -> Gtids:
        """Raises UsageError."""
        if ":" in text:
            return cls(MysqlGtidSet.parse(text), MariadbGtidState.parse(""))
        return cls(MysqlGtidSet.parse(""), MariadbGtidState.parse(text))


@dataclass(frozen=True, slots=True)
class Options:
    """`server`: the one that is read, its logs below `path`. `table`: whose rows become columns; None for all, as JSON.
    Times: seconds since 1970.
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
    server: LiveServer | None = None

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Options:
        """Names ignore case, as Spark's do. Raises UsageError."""
        options = {name.lower(): value for name, value in given.items()}
        if unknown := sorted(options.keys() - _NAMES):
            raise UsageError(f"format binlog has no option {', '.join(unknown)}: {', '.join(sorted(_NAMES))}")
        if not options.get("path"):
            raise UsageError(
                "format binlog wants the option path: a folder of binary logs, its index, one log, or mysql://USER@HOST:PORT"
            )
        path = options["path"]
        server = live_server(path, options) if path.startswith(SCHEMES) else None
        return cls(
            server.spool if server else Path(path.removeprefix("file://")),
            _given(options, "table", _table),
            _given(options, "schema_file", Path),
            _given(options, "start", BinlogPosition.parse),
            _given(options, "end", BinlogPosition.parse),
            _given(options, "start_gtid", Gtids.parse),
            _given(options, "end_gtid", Gtids.parse),
            _given(options, "start_time", _time),
            _given(options, "end_time", _time),
            _one_of(options, "zero_dates", ZERO_DATES),
            _one_of(options, "statements", STATEMENTS),
            _given(options, "partition_bytes", _count) or PARTITION_BYTES,
            _given(options, "max_bytes_per_trigger", _count),
            server,
        )


def _given(options: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T | None:
    text = options.get(name)
    try:
        return parse(text) if text else None
    except ValueError as error:
        raise UsageError(f"option {name}: '{text}' cannot be read") from error
    except UsageError as error:
        raise UsageError(f"option {name}: {error.message}") from error


def _one_of(options: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    if (word := options.get(name, words[0]).lower()) not in words:
        raise UsageError(f"option {name}: '{word}' is none of {', '.join(words)}")
    return word


def _count(text: str) -> int:
    if (value := int(text)) <= 0:
        raise ValueError(text)
    return value


def _table(text: str) -> TableName:
    """shop.orders, or `shop`.`orders` where a name has a dot."""
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1].replace("``", "`"), quoted[2].replace("``", "`")
    database, dot, table = text.partition(".")
    if not dot or not database or not table:
        raise ValueError(text)
    return database, table


def _time(text: str) -> float:
    """ISO 8601; UTC where it names no zone."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
