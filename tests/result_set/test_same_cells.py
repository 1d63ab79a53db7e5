"""On real servers: a row is the same bytes for every target, whether it comes as WRITE_ROWS or by SELECT.

Named after what others lost: FLOAT (mydumper #2153), ENUM's charset (mydumper #1974), BINARY's padding (vitess #9207),
zero dates (airbyte #67623).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rplctl.config import Config
from rplctl.decode.row_stream import TableRows, read_run, read_tables
from rplctl.event.column import ColumnFormat
from rplctl.event.fields import EncodedText, TextForm, fields_of
from rplctl.event.images import Images
from rplctl.event.scan import GroupKind, scan_groups
from rplctl.event.values import decode_column
from rplctl.info import MasterInfo
from rplctl.position import BinlogPosition
from rplctl.result_set.columns import SESSION, selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog
from rplctl.schema.source_catalog import read_catalog
from rplctl.source.connection import log_in
from rplctl.source.select import SelectedRows
from rplctl.source.survey import survey
from rplctl.sql_text import Sql
from rplctl.target.registry import value_form
from tests.kit.fidelity_scenario import typed_columns
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer, MysqlServer

KINDS = ("sqlite", "postgresql", "mysql")


@pytest.fixture(
    scope="module",
    params=[pytest.param(MariadbServer, marks=pytest.mark.mariadb), pytest.param(MysqlServer, marks=pytest.mark.mysql)],
)
def server(request: pytest.FixtureRequest) -> Iterator[MariadbServer]:
    try:
        made: MariadbServer = request.param(("--max-allowed-packet=256M",))
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    with made:
        yield made


def info_of(server: MariadbServer) -> MasterInfo:
    return MasterInfo(host=server.host, port=server.port, user_name="rpl", get_public_key=True)


def selected(server: MariadbServer, model: TableModel, target: str) -> tuple[list[ColumnFormat], list[Images]]:
    columns = selected_columns(model.columns, takes_numbers=target == "mysql")
    mysql = log_in(info_of(server), "rpl", 60)
    try:
        mysql.query(SESSION)
        what = ", ".join(column.expression for column in columns)
        rows = SelectedRows(mysql, Sql(f"SELECT {what} FROM `{model.database}`.`{model.name}` ORDER BY 1"), "test")
        packets = np.concatenate([np.empty(0, np.uint8), *(piece.copy() for piece in rows.pieces())])
        mysql.query("SELECT 1")  # the session goes on
    finally:
        mysql._force_close()
    return [column.format for column in columns], list(read_images(packets, columns, rows.wire_types))


def logged(server: MariadbServer, catalog: Catalog) -> dict[str, TableRows]:
    found: dict[str, TableRows] = {}
    for path in server.binlog_files:
        data = np.fromfile(path, np.uint8)
        scan = scan_groups(data, 4, BinlogPosition(path.name, 4), 1 << 40)
        for group in np.flatnonzero(scan.kind == GroupKind.ROWS).tolist():
            start, end = int(scan.start[group]), int(scan.end[group])
            description = scan.description_at(start)
            assert description is not None
            for rows in read_tables(read_run(data, start, end, description), catalog, "sqlite"):
                found[rows.model.name] = rows
    return found


def encoded(images: Images, formats: Sequence[ColumnFormat], model: TableModel, kind: str) -> list[object]:
    """What a task makes of the rows: texts in both forms, and plain values."""
    form, everything = value_form(kind), np.arange(len(images.cell_start))
    columns = range(len(model.columns))
    how = [form.format_for(formats[c], model.columns[c]) for c in columns]
    fields = [
        fields_of(images, everything, c, how[c], TextForm(partial(form.field_text, model.columns[c]), form.takes_bytes))
        for c in columns
    ]
    values = [form.stored(decode_column(images, everything, c, how[c])) for c in columns]
    return [b"".join(EncodedText(fields)), b"".join(EncodedText(fields, length_prefixed=True)), values]


@pytest.mark.long("The types of MariaDB stay in make test.", keeps="MariadbServer")
@pytest.mark.slow
def test_every_type_gives_the_same_bytes_to_every_target(server: MariadbServer, tmp_path: Path) -> None:
    kind = server.kind
    statements = [
        "SET SESSION sql_mode='ALLOW_INVALID_DATES', SESSION time_zone='+00:00'",
        "CREATE DATABASE x",
        "USE x",
    ]
    types = [name for name, _ in typed_columns(kind, server.version)]
    for number, (column_type, values) in enumerate(typed_columns(kind, server.version)):
        statements.append(f"CREATE TABLE t{number:03} (id INT PRIMARY KEY, v {column_type})")
        rows = ", ".join(f"({key}, {value})" for key, value in enumerate((*values, "NULL"), 1))
        statements.append(f"INSERT INTO t{number:03} VALUES {rows}")
    server.sql(";\n".join(statements))
    with survey(info_of(server), "rpl", Config(tmp_path)) as query:
        catalog = read_catalog(query, ["x"])
    events = logged(server, catalog)
    wrong = []
    for number, column_type in enumerate(types):
        model = catalog.tables["x", f"t{number:03}"]
        of_events = events[model.name]
        for target in KINDS:
            formats, (images,) = selected(server, model, target)
            of_log = encoded(of_events.images, of_events.formats, model, target)
            of_select = encoded(images, formats, model, target)
            if of_log != of_select:
                wrong.append((column_type, target, of_log[0], of_select[0]))
    assert len(types) > 80
    assert wrong == []


@pytest.mark.long("test_every_type_gives_the_same_bytes_to_every_target stays in make test.")
@pytest.mark.slow
def test_a_row_of_many_packets_is_the_same_and_is_received_in_small_pieces(
    server: MariadbServer, tmp_path: Path
) -> None:
    server.sql(
        "CREATE DATABASE big; USE big; CREATE TABLE b (id INT PRIMARY KEY, v LONGBLOB, t LONGTEXT);"
        " INSERT INTO b VALUES (1, REPEAT(x'00ff17', 16000000), REPEAT('é', 9000000)), (2, '', NULL)"
    )
    with survey(info_of(server), "rpl", Config(tmp_path)) as query:
        model = read_catalog(query, ["big"]).tables["big", "b"]
    formats, batches = selected(server, model, "sqlite")
    assert [len(images.cell_start) for images in batches] == [1, 1]
    (blob,), (text,) = (decode_column(batches[0], np.array([0]), column, formats[column]) for column in (1, 2))
    assert blob == b"\x00\xff\x17" * 16_000_000
    assert text == "é" * 9_000_000
