"""Records what tests/applier/test_fidelity.py applies: `python -m tests.kit.record_fidelity`, tests/data/fidelity-*.xz.

One private server per vendor runs the same scenario once per combination of the options that shape a binary log (row
image, JSON diffs, compression, metadata, checksums), each in a database of its own. Beside the logs lies `state.txt`:
what the server itself printed at the end, as neutral as `tests/kit/neutral_state.py` reads it.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pymysql

from tests.kit.fidelity_scenario import MARIADB_118_ONLY, MARIADB_ONLY, MYSQL_ONLY, SCENARIO, all_types, wide
from tests.kit.servers import (
    Mariadb105Server,
    Mariadb118Server,
    MariadbServer,
    Mysql57Server,
    Mysql80Server,
    Mysql84Server,
    MysqlServer,
)

DATA = Path(__file__).parents[1] / "data"
MOST_BYTES = 600_000
MOST_COLUMNS = {"mariadb": 2500, "mysql": 4096}
# database → global options, session options. Every option's every value is in one of them.
MARIADB = {
    "full_full": ({"binlog_row_metadata": "FULL", "binlog_checksum": "CRC32"}, {"binlog_row_image": "FULL"}),
    "minimal_none": ({"binlog_row_metadata": "NO_LOG"}, {"binlog_row_image": "MINIMAL"}),
    "noblob_minimal": (
        {"binlog_row_metadata": "MINIMAL", "binlog_checksum": "NONE"},
        {"binlog_row_image": "NOBLOB", "binlog_alter_two_phase": "ON"},
    ),
    "minimal_zip": (
        {"log_bin_compress": "ON", "log_bin_compress_min_len": "10", "binlog_row_metadata": "FULL"},
        {"binlog_row_image": "MINIMAL", "binlog_alter_two_phase": "ON"},
    ),
    "full_zip": ({"log_bin_compress": "ON", "binlog_checksum": "CRC32"}, {"binlog_row_image": "FULL"}),
}
MARIADB_105 = {
    "full_none": ({"binlog_row_metadata": "NO_LOG", "binlog_checksum": "NONE"}, {"binlog_row_image": "FULL"}),
    "minimal_zip": (
        {"binlog_row_metadata": "FULL", "log_bin_compress": "ON", "log_bin_compress_min_len": "10"},
        {"binlog_row_image": "MINIMAL"},
    ),
    "noblob": (
        {"binlog_row_metadata": "MINIMAL", "log_bin_compress": "OFF", "binlog_checksum": "CRC32"},
        {"binlog_row_image": "NOBLOB"},
    ),
}
MARIADB_118 = {  # end positions are 0 inside groups (binlog_legacy_event_pos=OFF) in all of them
    "full_none": ({"binlog_row_metadata": "NO_LOG"}, {"binlog_row_image": "FULL"}),
    "minimal_alter": (
        {"binlog_row_metadata": "FULL", "log_bin_compress": "ON", "log_bin_compress_min_len": "10"},
        {"binlog_row_image": "MINIMAL", "binlog_alter_two_phase": "ON"},
    ),
    "full_dup": ({"binlog_row_metadata": "MINIMAL", "log_bin_compress": "OFF"}, {"binlog_row_image": "FULL_NODUP"}),
}
MYSQL = {
    "full_full": ({"binlog_row_metadata": "FULL", "binlog_checksum": "CRC32"}, {"binlog_row_image": "FULL"}),
    "minimal_json": (
        {"binlog_row_metadata": "MINIMAL"},
        {"binlog_row_image": "MINIMAL", "binlog_row_value_options": "PARTIAL_JSON"},
    ),
    "noblob_none": ({"binlog_checksum": "NONE"}, {"binlog_row_image": "NOBLOB"}),
    "full_json": ({"binlog_checksum": "CRC32"}, {"binlog_row_value_options": "PARTIAL_JSON"}),
    "full_payload": ({}, {"binlog_transaction_compression": "ON"}),
    "minimal_payload": (
        {"binlog_row_metadata": "FULL"},
        {
            "binlog_row_image": "MINIMAL",
            "binlog_row_value_options": "PARTIAL_JSON",
            "binlog_transaction_compression": "ON",
            "binlog_transaction_compression_level_zstd": "19",
        },
    ),
}
MYSQL_8 = {
    "noblob_none": ({"binlog_checksum": "NONE"}, {"binlog_row_image": "NOBLOB"}),
    "minimal_payload": (
        {"binlog_row_metadata": "MINIMAL", "binlog_checksum": "CRC32"},
        {
            "binlog_row_image": "MINIMAL",
            "binlog_row_value_options": "PARTIAL_JSON",
            "binlog_transaction_compression": "ON",
        },
    ),
}
MYSQL_57: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "full": ({}, {"binlog_row_image": "FULL"}),
    "minimal": ({}, {"binlog_row_image": "MINIMAL"}),
}

Session: TypeAlias = "pymysql.connections.Connection[Any]"


def run(session: Session, text: str, *, may_fail: bool = False) -> None:
    """Statements one by one; one that starts with `!` must fail on the server.

    `may_fail`: others too, on a server that lacks what they ask for: then they are in no log.
    """
    for statement in filter(None, (part.strip() for part in text.split(";\n"))):
        with session.cursor() as cursor:
            must_fail = statement.startswith("!")
            try:
                cursor.execute(statement.removeprefix("!"))
            except pymysql.MySQLError:
                if must_fail or may_fail:
                    continue
                raise
            if not must_fail:
                continue
            raise AssertionError(f"did not fail: {statement}")


def play(server: MariadbServer, database: str, options: tuple[dict[str, str], dict[str, str]]) -> None:
    settings, session_settings = options
    quoted = ", ".join(f"{name}={value}" for name, value in session_settings.items())
    run(open_session(server), ";\n".join(f"SET GLOBAL {name}={value}" for name, value in settings.items()))
    own = MARIADB_ONLY if server.kind == "mariadb" else MYSQL_ONLY
    parts = [all_types(server.kind, server.version), SCENARIO, wide(MOST_COLUMNS[server.kind]), own]
    is_old = server.version.startswith(("5.", "8.0."))
    if server.version.startswith("11."):
        parts.append(MARIADB_118_ONLY)
    for number, part in enumerate(parts):
        first, second = open_session(server), open_session(server)
        for session in (first, second):
            run(session, f"SET {quoted}" if quoted else "")
        if not number:
            run(first, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        for session in (first, second):
            run(session, f"USE {database}")
        for paragraph in part.split("\n\n"):  # `@2`: said by the second session
            text = paragraph.strip()
            run(second if text.startswith("@2\n") else first, text.removeprefix("@2\n"), may_fail=is_old)
        first.close()
        second.close()
    run(open_session(server), "FLUSH BINARY LOGS")


def open_session(server: MariadbServer) -> Session:
    session = server.connect()
    with session.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode=''")  # zero and partial dates, cut values
    return session


def neutral_class(data_type: str, character_set: str | None) -> tuple[str, str]:
    """(class, SQL of the value as text) of a column; `{}` stands for its name."""
    if data_type in ("tinyint", "smallint", "mediumint", "int", "bigint"):
        return "int", "{}"
    if data_type == "bit":
        return "bit", "HEX({}+0)"
    if data_type in ("float", "double"):
        return data_type, "{}*1e0"  # 5.7 has no CAST to DOUBLE
    if data_type in ("date", "time", "datetime", "timestamp", "year"):
        return "tmp", "CONCAT({})"  # YEAR 0 is 0000
    if data_type == "json":
        return "json", "HEX(CAST({} AS CHAR CHARACTER SET utf8mb4))"
    if character_set:
        return "txt", "HEX(CONVERT({} USING utf8mb4))"
    if data_type in ("decimal", "uuid", "inet4", "inet6"):
        return "dec", "CAST({} AS CHAR)"
    return "bin", "HEX({})"


def state_of(server: MariadbServer, databases: list[str]) -> Iterator[str]:
    for database in databases:
        found = server.sql(
            "SELECT table_name, table_type FROM information_schema.tables WHERE "
            f"table_schema='{database}' AND table_type <> 'SEQUENCE' ORDER BY 1"
        )
        for table, kind in found:
            columns = server.sql(
                "SELECT column_name, data_type, character_set_name FROM information_schema.columns WHERE "
                f"table_schema='{database}' AND table_name='{table}' ORDER BY ordinal_position"
            )
            rows = f"`{database}`.`{table}`"
            if kind == "SYSTEM VERSIONED":
                columns += [(name, "timestamp", None) for name in ("row_start", "row_end")]
                rows += " FOR SYSTEM_TIME ALL"
            classes = [neutral_class(row[1], row[2]) for row in columns]
            yield f"#TABLE\t{database}\t{table}\n"
            yield "\t".join(f"{row[0].encode().hex()}:{c}" for row, (c, _) in zip(columns, classes, strict=True)) + "\n"
            values = ", ".join(sql.format(f"`{row[0]}`") for row, (_, sql) in zip(columns, classes, strict=True))
            for row in server.sql(f"SELECT {values} FROM {rows}"):
                yield "\t".join("NULL" if value is None else repr_of(value) for value in row) + "\n"


def repr_of(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def record(name: str, server: MariadbServer, cases: dict[str, tuple[dict[str, str], dict[str, str]]]) -> None:
    for database, options in cases.items():
        play(server, database, options)
    state = "".join(state_of(server, list(cases)))
    path = DATA / f"fidelity-{name}.xz"
    with tarfile.open(path, "w:xz", preset=9) as archive:
        files = {log.name: log.read_bytes() for log in server.binlog_files}
        for name, content in {**files, "state.txt": state.encode()}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    assert path.stat().st_size < MOST_BYTES, f"{path} is {path.stat().st_size} bytes"


def main(kinds: list[str]) -> None:
    with contextlib.ExitStack() as stack:
        if "mariadb" in kinds:
            record("mariadb", stack.enter_context(MariadbServer(["--binlog-row-metadata=NO_LOG"])), MARIADB)
        if "mariadb118" in kinds:
            record("mariadb118", stack.enter_context(Mariadb118Server()), MARIADB_118)
        if "mariadb105" in kinds:
            record("mariadb105", stack.enter_context(Mariadb105Server()), MARIADB_105)
        for name, kind in (("mysql84", Mysql84Server), ("mysql80", Mysql80Server), ("mysql57", Mysql57Server)):
            if name in kinds:
                record(name, stack.enter_context(kind()), MYSQL_57 if name == "mysql57" else MYSQL_8)
        if "mysql" in kinds:
            record("mysql", stack.enter_context(MysqlServer(["--binlog-row-metadata=MINIMAL"])), MYSQL)


if __name__ == "__main__":
    main(sys.argv[1:] or ["mariadb", "mariadb105", "mariadb118", "mysql", "mysql84", "mysql80", "mysql57"])
