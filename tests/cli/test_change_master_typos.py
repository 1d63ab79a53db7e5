"""What a tired operator types into CHANGE MASTER: each wrong value has its error, and changes nothing (map 2.5)."""

from __future__ import annotations

import pytest

from rplctl.command.channel.change_options import CHANGE_OPTIONS
from tests.cli.program import Program

# value → MySQL's number, for every option of a kind
NOT_A_NUMBER = ["", "x", "-1", "1.5", "1e3", "0x10", "١", " 7", "7 ", "99999999999999999999999"]
NOT_A_SWITCH = ["", "yes", "no", "2", "-1", "true", "ON", " 1"]
NOT_IDS = ["x", "1;2", "1,,2", "-1", "4294967296", "1 2", "(1,2"]
NOT_A_PATH = ["ca.pem", "./ca.pem", "~/ca.pem", "a\tb"]
OWN_NUMBER = {"master_delay": (1729, 1210), "master_zstd_compression_level": (3921, 1210)}
NOT_A_PERIOD = [("", 1210), ("x", 1210), ("-0.5", 1624), ("4294967.001", 1624), ("30s", 1210), ("1,5", 1210)]
TEXTS = [
    ("master_host", "", 1210), ("master_host", "h\n", 1210), ("master_host", "ü", 1210),
    ("master_host", "h" * 256, 1210), ("master_user", "u" * 33, 1470), ("master_user", "u\x7f", 1210),
    ("master_bind", "a\x01", 1210),
    ("master_log_file", "binlog", 1210), ("master_log_file", "/var/binlog.000001", 1210),
    ("master_log_file", "binlog.1x", 1210), ("master_log_file", "..", 1210), ("relay_log_file", "relay", 1210),
    ("relay_log_file", "../relay-bin.000001", 1210), ("relay_log_file", "relay-bin.000042", 1380),
    ("master_use_gtid", "1", 1210), ("master_use_gtid", "slave-pos", 1210), ("master_use_gtid", "", 1210),
    ("require_table_primary_key_check", "yes", 1210), ("assign_gtids_to_anonymous_transactions", "UUID", 1525),
    ("assign_gtids_to_anonymous_transactions", "1234", 1525), ("master_compression_algorithms", "lz4", 3920),
    ("master_compression_algorithms", "", 3920), ("master_compression_algorithms", "zlib,zlib,zlib,zlib", 3924),
    ("master_ssl_cipher", "A" * 4097, 1210), ("network_namespace", "a\nb", 1210),
    ("privilege_checks_user", "u@h", 1235), ("source_connection_auto_failover", "1", 1235), ("gtid_only", "1", 1235),
    ("master_compression_algorithms", "zstd,zlib", 1235), ("master_zstd_compression_level", "9", 1235),
]  # fmt: skip


def cases() -> list[tuple[str, str, tuple[int, ...]]]:
    found: list[tuple[str, str, tuple[int, ...]]] = [(name, value, (errno,)) for name, value, errno in TEXTS]
    for row in CHANGE_OPTIONS.values():
        values = {
            "number": [*NOT_A_NUMBER, str(row.high + 1)], "switch": NOT_A_SWITCH, "ids": NOT_IDS, "file": NOT_A_PATH,
            "folder": NOT_A_PATH,
        }.get(row.kind, [])  # fmt: skip
        found += [(row.name, value, OWN_NUMBER.get(row.name, (1210,))) for value in values]
        if row.kind == "seconds":
            found += [(row.name, value, (errno,)) for value, errno in NOT_A_PERIOD]
    return found


CASES = cases()


def test_there_are_at_least_150_of_them() -> None:
    assert len(CASES) >= 150
    assert {name for name, _, _ in CASES} >= {row.name for row in CHANGE_OPTIONS.values() if row.kind != "text"}


@pytest.mark.parametrize("option", sorted({name for name, _, _ in CASES}))
def test_each_wrong_value_has_its_error_and_changes_nothing(configured: Program, option: str) -> None:
    before = {p.name: p.read_bytes() for p in configured.datadir.iterdir() if p.is_file()}
    for name, value, errnos in CASES:
        if name != option:
            continue
        done = configured("change-master", f"--{name.replace('_', '-')}={value}")
        shown = f"{name} = {value!r}: {done.err}"
        assert done.code == 2, shown
        assert any(f"ERROR {errno}:" in done.err for errno in errnos), shown
        assert "Traceback" not in done.err and done.out == "", shown
        assert {p.name: p.read_bytes() for p in configured.datadir.iterdir() if p.is_file()} == before, shown
