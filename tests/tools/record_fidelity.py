"""Record the logs that tests/applier/test_fidelity.py applies.

`python -m tests.tools.record_fidelity [KIND…]` writes tests/data/fidelity-KIND.xz.

One private server per vendor runs the same scenario once for each combination of the options that shape a binary log
(row image, JSON diffs, compression, metadata, checksums). Each combination has its own database. `state.txt`, next to
the logs, is what the server itself printed at the end, in the form that `tests/kit/neutral_state.py` reads.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tarfile
from pathlib import Path

from tests.kit.fidelity_scenario import (
    MARIADB_118_ONLY,
    MARIADB_ONLY,
    MYSQL_ONLY,
    SCENARIO,
    all_types,
    open_session,
    run,
    wide,
)
from tests.kit.neutral_state import state_of
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
