"""Our decoding agrees with `mariadb-binlog -vv` and `mysqlbinlog -vv`, event by event and value by value.

The tools print the logs that their own vendor's servers wrote: every recorded corpus. Compared are the header of every
event (those inside compressed transactions too), what SHOW RELAYLOG EVENTS lists, GTIDs, statements with the session
they ran in, and every cell of every row.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rplctl.errors import BinlogFormatError
from rplctl.event.cells import cells_of, raw_cells
from rplctl.event.column import ColumnFormat, column_formats
from rplctl.event.events import (
    AnnotateRows,
    BinlogCheckpoint,
    Event,
    GtidList,
    Intvar,
    MariadbGtid,
    MysqlGtid,
    PreviousGtids,
    Query,
    Rand,
    Rotate,
    UserVar,
    XaPrepare,
    XidEvent,
    parse_event,
)
from rplctl.event.format_description import FormatDescription
from rplctl.event.gtid_event import MariadbGtidExtra, MariadbGtidFlag, Xid
from rplctl.event.header import parse_header
from rplctl.event.images import walk_images
from rplctl.event.payload import expand_event
from rplctl.event.query import ExecuteLoadQuery
from rplctl.event.rows import parse_rows_events
from rplctl.event.table_map import ColumnType, TableMap
from rplctl.event.types import COMPRESSED_ROWS, PLAIN_ROWS, EventType
from rplctl.event.values import decode_column
from rplctl.relay_log.event_list import events_of as listed_events
from tests.event.logs import described, events
from tests.kit.private_server import ServerUnavailable
from tests.kit.vendor_dump import Dump, DumpedEvent, DumpedRow, dump, tool_for
from tests.kit.vendor_values import diffs_printed, printed

DATA = Path(__file__).parents[1] / "data"
_ENCRYPTED = "mariadb-encrypted"
# its tool misreads temporal columns of the old format with a fraction, and stops there; the servers read them
_STOPS = {"ma1011-types"}
_LABELS = tuple(str(number) for number in range(1, 1 << 16))  # members by their numbers, as the tools print them
_SESSION = re.compile(rb"@@session\.(\w+)=('[^']*'|\w+)")


def _corpora() -> list[str]:
    names = [path.name.removesuffix(".xz") for path in (*DATA.glob("*.xz"), *(DATA / "binlog").glob("*.xz"))]
    logs = [name for name in names if "." not in name and not name.startswith("dump-") and name != _ENCRYPTED]
    return sorted(name for name in logs if recorded(name)[1])


@cache
def recorded(name: str) -> tuple[str, list[bytes]]:
    """(vendor, log files) of a corpus; no files when it holds something else."""
    path = next(path for path in (DATA / f"{name}.xz", DATA / "binlog" / f"{name}.xz") if path.exists())
    data = lzma.decompress(path.read_bytes())
    vendor = "mysql" if name.startswith("my") or "-mysql" in name else "mariadb"
    vendor += "118" if name.endswith("118") else ""
    if data.startswith(b"\xfebin"):
        return vendor, [data]
    logs = []
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                file = archive.extractfile(member)
                content = file.read() if file else b""
                logs += [content] if content.startswith(b"\xfebin") else []
    except tarfile.ReadError:
        return vendor, []
    return vendor, logs


OLDER = ("fidelity-mysql57", "fidelity-mysql80", "fidelity-mysql84", "fidelity-mariadb105")


def _marks(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.torture] * name.startswith(OLDER)


@pytest.mark.long(
    "One log of one vendor stays; tests/event/test_replay.py compares rows of both.",
    keeps=r"^my97-torture-rowsquery$",
)
@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in _corpora()])
def test_decoding_agrees_with_the_vendors_dump_tool(name: str, tmp_path: Path) -> None:
    vendor, logs = recorded(name)
    try:
        tool_for(vendor)
    except ServerUnavailable as error:
        pytest.skip(str(error))
    for number, log in enumerate(logs, 1):
        path = tmp_path / f"binlog.{number:06}"
        path.write_bytes(log)
        assert disagreements(vendor, path, stops=name in _STOPS) == []


def disagreements(vendor: str, path: Path, *, stops: bool = False) -> list[str]:
    """The first few of each kind; an empty list only when something was compared. `stops`: the tool ends early."""
    theirs, ours = dump(vendor, path, stops=stops), list(read_events(path.read_bytes()))
    assert theirs.events
    if stops:
        ours = ours[: len(theirs.events)]
    found = list(_header_differences(theirs.events, ours))[:3]
    if found:
        return found
    session: dict[str, str] = {}
    for dumped, event in zip(theirs.events, ours, strict=True):
        found += [f"{event.position}: {text}" for text in _content(vendor, dumped, event, session)]
    listed = list(listed_events(path))
    outer = [event for event in ours if not event.in_payload]
    found += [
        f"SHOW RELAYLOG EVENTS lists {one}"
        for one, event in zip(listed, outer, strict=not stops)
        if (one.Pos, one.Server_id, one.End_log_pos) != (event.position, event.server_id, event.end_log_pos)
        or one.Info.startswith("unreadable")
    ]
    return found[:9] if stops else found[:9] + list(row_differences(vendor, theirs, ours))[:9]


# our side


@dataclass(slots=True)
class ReadEvent:
    position: int
    raw: bytes
    description: FormatDescription
    in_payload: bool
    timestamp: int
    server_id: int
    end_log_pos: int

    @property
    def code(self) -> int:
        return self.raw[4]

    @property
    def parsed(self) -> Event:
        return parse_event(self.raw, self.description)

    def remember(self, maps: dict[int, TableMap]) -> None:
        """Parse it; what it says about a table is kept for the row events behind it."""
        parsed = self.parsed
        if isinstance(parsed, TableMap):
            maps[parsed.table_id] = parsed


def read_events(log: bytes) -> Iterator[ReadEvent]:
    """Every event; those inside a compressed transaction have its end position, as the tools show them."""
    position = 4
    for raw, description in described(log):
        header = parse_header(raw)
        event = ReadEvent(position, raw, description, False, header.timestamp, header.server_id, header.end_log_pos)
        yield event
        if event.code == EventType.TRANSACTION_PAYLOAD:
            plain = replace(description, checksum_algorithm=0)
            for inner in events(expand_event(raw, description, 1 << 30), 0):
                head = parse_header(inner)
                yield ReadEvent(position, inner, plain, True, head.timestamp, head.server_id, event.end_log_pos)
        position += len(raw)


def _header_differences(theirs: list[DumpedEvent], ours: list[ReadEvent]) -> Iterator[str]:
    for dumped, event in zip(theirs, ours, strict=False):
        crc = f"{int.from_bytes(event.raw[-4:], 'little'):08x}" if event.description.checksum_length else ""
        one = (dumped.timestamp, dumped.server_id, dumped.end_log_pos, dumped.crc if not event.in_payload else "")
        other = (event.timestamp, event.server_id, event.end_log_pos, crc)
        if one != other:
            yield f"{event.position}: the tool has {one} {dumped.text!r}, we {other} {event.code}"
    if len(theirs) != len(ours):
        yield f"the tool has {len(theirs)} events, we {len(ours)}"


# what an event says, as the tools' header line and statements say it


def _content(vendor: str, dumped: DumpedEvent, event: ReadEvent, session: dict[str, str]) -> Iterator[str]:
    """Differences of one event; `session` is what the tool's output has set so far."""
    if event.code in PLAIN_ROWS or event.code in COMPRESSED_ROWS:
        flags = int.from_bytes(event.raw[25:27], "little")
        table_id = int.from_bytes(event.raw[19:25], "little")
        said = re.match(rb"(\w+): table id (\d+)(?: flags: (.*))?$", dumped.text)
        if not said or int(said[2]) != table_id or (b"STMT_END_F" in (said[3] or b"")) != bool(flags & 1):
            yield f"the tool has {dumped.text!r}, we table id {table_id}, flags {flags:#x}"
        return
    if event.code == EventType.TRANSACTION_PAYLOAD:
        if not dumped.text.startswith(b"Transaction_Payload"):
            yield f"the tool has {dumped.text!r}"
        return
    parsed = event.parsed
    if isinstance(parsed, Query | ExecuteLoadQuery):
        query = parsed if isinstance(parsed, Query) else parsed.query
        yield from _query_differences(vendor, dumped, query, session)
        return
    expected = _TEXTS[type(parsed)](parsed) if type(parsed) in _TEXTS else b""
    shown = b"\n".join([dumped.text.replace(b"``", b"`"), *dumped.body])  # one vendor quotes names
    missing = [text for text in (expected if isinstance(expected, list) else [expected]) if text not in shown]
    if missing:
        yield f"{type(parsed).__name__}: we have {missing}, the tool {shown[:400]!r}"


def _query_differences(vendor: str, dumped: DumpedEvent, query: Query, session: dict[str, str]) -> Iterator[str]:
    *before, statement = dumped.statements or [b""]
    for text in before:
        if use := re.match(rb"use `(.*)`$", text):
            session["database"] = use[1].replace(b"``", b"`").decode()
        if stamp := re.match(rb"SET TIMESTAMP=([\d.]+)", text):
            session["timestamp"] = stamp[1].decode()
        session.update({name.decode(): value.decode() for name, value in _SESSION.findall(text)})
    words = re.match(rb"Query(?:_compressed)?\tthread_id=(\d+)\texec_time=(\d+)\terror_code=(\d+)", dumped.text)
    numbers = (query.thread_id, query.execution_time, query.error_code)
    if words and tuple(int(word) for word in words.groups()) != numbers:
        yield f"the tool has {dumped.text!r}, we {numbers}"
    if not words and not dumped.text.startswith(b"Execute_load_query"):
        yield f"the tool has {dumped.text!r}, we a query"
    if query.context.gtid_extra:  # START ALTER and its COMMIT are printed as BINLOG '…' only
        return
    sql = query.sql_bytes
    if statement.rstrip(b"\n") != sql.rstrip(b"\n") and words:
        yield f"the tool has the statement {statement!r}, we {sql!r}"
    expected = _session_of(vendor, query)
    for name, value in expected.items():
        if session.get(name) != value:
            yield f"the tool has {name} {session.get(name)}, we {value}: {sql[:80]!r}"


def _session_of(vendor: str, query: Query) -> dict[str, str]:
    """The variables that were logged, as the tools set them."""
    context = query.context
    named: dict[str, Any] = {
        "sql_mode": context.sql_mode,
        "collation_connection": context.connection_collation,
        "collation_server": context.server_collation,
        "character_set_client": context.client_collation if vendor == "mysql" else None,
        "lc_time_names": context.lc_time_names,
        "collation_database": context.database_collation,
        "default_collation_for_utf8mb4": context.default_collation_for_utf8mb4,
        "sql_require_primary_key": context.sql_require_primary_key,
        "default_table_encryption": context.default_table_encryption,
    }
    if context.flags2 is not None:
        named |= {name: bool(context.flags2 >> bit & 1) ^ inverse for name, bit, inverse in _FLAGS}
    if context.auto_increment is not None:
        named |= dict(zip(("auto_increment_increment", "auto_increment_offset"), context.auto_increment, strict=True))
    shown = {name: str(int(value)) for name, value in named.items() if value is not None}
    if context.time_zone:
        shown["time_zone"] = f"'{context.time_zone}'"
    if query.database and not query.suppress_use:
        shown["database"] = query.database
    fraction = f".{context.microseconds:06}" if context.microseconds else ""
    shown["timestamp"] = f"{query.timestamp}{fraction}"
    return shown


_FLAGS = (
    ("sql_auto_is_null", 14, False),
    ("autocommit", 19, True),
    ("foreign_key_checks", 26, True),
    ("unique_checks", 27, True),
)


def _mysql_gtid(gtid: MysqlGtid) -> list[bytes]:
    times = (
        f"last_committed={gtid.last_committed}\tsequence_number={gtid.sequence_number}\t",
        f"original_committed_timestamp={gtid.original_commit_time}\t",
        f"immediate_commit_timestamp={gtid.immediate_commit_time}\t",
        f"transaction_length={gtid.transaction_length}",
        f"immediate_server_version={gtid.immediate_server_version}*",
        f"original_server_version={gtid.original_server_version}*",
    )
    return [text.encode() for text in (f"SET @@SESSION.GTID_NEXT= '{gtid}'", *times)]


def _mariadb_gtid(gtid: MariadbGtid) -> list[bytes]:
    words = [f"GTID {gtid}"]
    if gtid.flags & MariadbGtidFlag.GROUP_COMMIT_ID:
        words.append(f" cid={gtid.commit_id}")
    words += [text for flag, text in _GTID_WORDS if gtid.flags & flag]
    if gtid.extra & MariadbGtidExtra.START_ALTER:
        words.append("START ALTER")
    if gtid.extra & (MariadbGtidExtra.COMMIT_ALTER | MariadbGtidExtra.ROLLBACK_ALTER):
        verb = "COMMIT" if gtid.extra & MariadbGtidExtra.COMMIT_ALTER else "ROLLBACK"
        words.append(f"{verb} ALTER id= {gtid.alter_sequence}")
    if gtid.xid and gtid.flags & MariadbGtidFlag.PREPARED_XA:
        words.append(_xid(gtid.xid))
    return [word.encode() for word in words]


_GTID_WORDS = (
    (MariadbGtidFlag.DDL, " ddl"),
    (MariadbGtidFlag.TRANSACTIONAL, " trans"),
    (MariadbGtidFlag.WAITED, " waited"),
)


def _xid(xid: Xid) -> str:
    return f"X'{xid.gtrid.hex()}',X'{xid.bqual.hex()}',{xid.format_id}"


def _user_var(variable: UserVar) -> list[bytes]:
    text = [variable.value.hex().encode()] if variable.kind == 0 and variable.value is not None else []
    return [f"SET @`{variable.name}`:=".encode(), *text]


_TEXTS: dict[type[Any], Callable[[Any], bytes | list[bytes]]] = {
    FormatDescription: lambda e: f"Start: binlog v {e.binlog_version}, server v {e.server_version} ".encode(),
    Rotate: lambda e: f"Rotate to {e.log_name}  pos: {e.log_pos}".encode(),
    XidEvent: lambda e: f"Xid = {e.xid}".encode(),
    XaPrepare: lambda e: _xid(e.xid).encode(),
    MysqlGtid: _mysql_gtid,
    MariadbGtid: _mariadb_gtid,
    GtidList: lambda e: [b"Gtid list", *(f"{d}-{s}-{n}".encode() for d, s, n in e.gtids)],
    PreviousGtids: lambda e: str(e.gtids).encode(),
    BinlogCheckpoint: lambda e: b"Binlog checkpoint " + e.log_name.encode(),
    AnnotateRows: lambda e: [line for line in e.sql_bytes.split(b"\n") if line],
    Intvar: lambda e: f"SET {'LAST_INSERT_ID' if e.kind == 1 else 'INSERT_ID'}={e.value}".encode(),
    Rand: lambda e: f"SET @@RAND_SEED1={e.seed1}, @@RAND_SEED2={e.seed2}".encode(),
    UserVar: _user_var,
    TableMap: lambda e: f"Table_map: `{e.database}`.`{e.table}` mapped to number {e.table_id}".encode(),
}


def _quoted(name: str) -> str:
    return name.replace("`", "``")


# rows


def row_differences(vendor: str, theirs: Dump, ours: list[ReadEvent]) -> Iterator[str]:
    rows = iter(theirs.rows)
    maps: dict[int, TableMap] = {}
    for event in ours:
        if event.code == EventType.TABLE_MAP:
            event.remember(maps)
        elif event.code in PLAIN_ROWS or event.code in COMPRESSED_ROWS:
            yield from _event_differences(vendor, rows, event, maps)
    left = list(rows)
    if left:
        yield f"{len(left)} rows that only the tool has: {left[0]}"


def _event_differences(
    vendor: str, rows: Iterator[DumpedRow], event: ReadEvent, maps: dict[int, TableMap]
) -> Iterator[str]:
    for kind, name, cells in rows_of(vendor, event, maps):
        dumped = next(rows, None)
        if dumped is None:
            yield f"{event.position}: a row of {name} that the tool does not have"
            return
        if (dumped.kind, dumped.table.decode()) != (kind, name):
            yield f"{event.position}: the tool has {dumped.kind} {dumped.table!r}, we {kind} {name}"
            return
        for image, their_cells in zip(cells, (dumped.before, dumped.after), strict=True):
            if not dumped.gave_up and image.keys() != their_cells.keys():
                yield f"{event.position}: {name} the tool has columns {list(their_cells)}, we {list(image)}"
            for column, (word, text) in their_cells.items():
                show = image.get(column)
                if show is not None and (mine := show(word)) != text:
                    at = f"{event.position}: {name} @{column + 1} {word}"
                    yield f"{at}: the tool has {text[:200]!r}, we {mine[:200]!r}"
        if dumped.gave_up:
            return


Cells = dict[int, Callable[[str], bytes] | None]  # None: there, but not compared


def rows_of(vendor: str, event: ReadEvent, maps: dict[int, TableMap]) -> Iterator[tuple[str, str, tuple[Cells, Cells]]]:
    raw, checksum = event.raw, event.description.checksum_length
    if event.code in COMPRESSED_ROWS:
        raw, checksum = expand_event(raw, event.description), 0
    data = np.frombuffer(raw, np.uint8)
    events_found = parse_rows_events(data, np.array([0]), np.array([len(raw)]), np.array([raw[4]], np.uint8), checksum)
    table_id = int(events_found.table_id[0])
    if table_id not in maps:
        raise BinlogFormatError(f"No table map for table id {table_id}", errno=1594)
    table_map = maps[table_id]
    formats = [_numbered(fmt) for fmt in column_formats(table_map)]
    images = walk_images(events_found, formats)
    everything = np.arange(len(images.cell_start))
    present = images.cell_start != -2
    shown: list[Cells] = [dict.fromkeys(np.flatnonzero(row).tolist()) for row in present]
    for column, fmt in list(enumerate(formats))[:: 1 + len(formats) // 250]:  # of very wide tables some
        is_diff = images.is_diff[:, column] if images.is_diff.size else np.zeros(len(everything), np.bool_)
        cells = cells_of(images, everything, column)
        values = decode_column(images, np.where(is_diff, -1, everything), column, fmt)
        raws = dict(zip(cells.valid.tolist(), raw_cells(cells), strict=True))
        for image in np.flatnonzero(present[:, column]).tolist():
            if is_diff[image]:
                shown[image][column] = _diffed(raws[image], column)
            else:
                shown[image][column] = _cell(values[image], raws.get(image), vendor)
    name = f"`{_quoted(table_map.database)}`.`{_quoted(table_map.table)}`"
    kinds = {1: "insert", 2: "update", 3: "delete"}
    for op, before, after in zip(images.ops.tolist(), images.before.tolist(), images.after.tolist(), strict=True):
        yield kinds[op], name, (shown[before] if before >= 0 else {}, shown[after] if after >= 0 else {})


def _cell(value: Any, raw: bytes | None, vendor: str) -> Callable[[str], bytes]:
    return lambda word: b"NULL" if raw is None else printed(word, value, raw, vendor)


def _diffed(raw: bytes, column: int) -> Callable[[str], bytes]:
    return lambda word: diffs_printed(raw, column)


def _numbered(fmt: ColumnFormat) -> ColumnFormat:
    if fmt.real_type == ColumnType.ENUM:
        return replace(fmt, labels=_LABELS)
    return replace(fmt, labels=_LABELS[:64]) if fmt.real_type == ColumnType.SET else fmt
