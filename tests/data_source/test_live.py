"""A live server's logs, copied: byte for byte, whoever is killed, and read as any folder is."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rplctl.data_source.live import LiveLogs
from rplctl.data_source.options import QueryOptions
from rplctl.errors import RplError, SourceError, UsageError
from rplctl.event.header import FLAG_BINLOG_IN_USE
from tests.data_source.test_walk import all_of
from tests.kit.private_server import PASSWORD, USER
from tests.kit.servers import MariadbServer, MysqlServer

LONG = pytest.mark.long("tests/data_source/test_source.py reads a live server once, by the manual page.")

_FLAGS_AT = 4 + 17  # of a log's first event


def options(server: MariadbServer | MysqlServer, folder: Path, **more: str) -> QueryOptions:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    given = {"spool": str(folder / "spool"), "password_file": str(secret), "get_public_key": "true"}
    return QueryOptions.parse({"path": f"mysql://{USER}@{server.host}:{server.port}", **given, **more})


def copied(server: MariadbServer | MysqlServer, folder: Path) -> Path:
    found = options(server, folder).server
    assert found is not None
    live = LiveLogs(found)
    try:
        return live.copy_until_now()
    finally:
        live.close()


def logs(folder: Path) -> dict[str, bytes]:
    """Of a folder of a server's or of a copy; the flag that a server sets while it writes is cleared."""
    found = {}
    for path in sorted(folder.glob("binlog.0*")):
        data = bytearray(path.read_bytes())
        data[_FLAGS_AT] &= ~FLAG_BINLOG_IN_USE
        found[path.name] = bytes(data)
    return found


def write(server: MariadbServer | MysqlServer, number: int) -> None:
    server.sql(f"INSERT INTO t SELECT {number} + id, REPEAT('x', 1000) FROM ten; FLUSH BINARY LOGS", "s")
    server.sql(f"UPDATE t SET v = '{number}' WHERE id > {number}; DELETE FROM t WHERE id = {number + 3}", "s")
    if not isinstance(server, MysqlServer):
        _await_checkpoint(server)


def _await_checkpoint(server: MariadbServer) -> None:
    """A thread of MariaDB's own writes into a new log, some time after FLUSH, that no older one is needed."""
    name, _ = server.master_status()
    done = ("Binlog_checkpoint", name)
    for _ in range(500):
        if done in [(row[2], row[5]) for row in server.sql(f"SHOW BINLOG EVENTS IN '{name}'")]:
            return
        time.sleep(0.02)
    raise AssertionError(f"no checkpoint in {name}")


def prepare(server: MariadbServer | MysqlServer) -> None:
    server.sql("DROP DATABASE IF EXISTS s; CREATE DATABASE s")
    server.sql("CREATE TABLE t (id INT PRIMARY KEY, v TEXT); CREATE TABLE ten (id INT)", "s")
    server.sql(f"INSERT INTO ten VALUES {', '.join(f'({number})' for number in range(1, 11))}", "s")


@LONG
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(MariadbServer, marks=pytest.mark.mariadb),
        pytest.param(MysqlServer, marks=pytest.mark.mysql),
    ],
)
def test_a_copy_is_the_servers_logs_byte_for_byte_also_after_it_was_cut_anywhere(
    kind: type[MariadbServer | MysqlServer], tmp_path: Path
) -> None:
    with kind(["--log-bin=binlog"]) as server:
        prepare(server)
        write(server, 0)
        folder = copied(server, tmp_path)
        own = server.binlog_files[0].parent
        assert logs(folder) == logs(own) and len(logs(own)) > 1
        rows = all_of(folder)
        assert rows == all_of(own) and len(rows) > 20
        last = folder / max(logs(folder))
        size = last.stat().st_size
        for left in (size - 1, size - 40, size // 2, 200, 5, 4, 2, 0):
            os.truncate(last, left)
            assert copied(server, tmp_path) == folder and logs(folder) == logs(own), left
        write(server, 100)
        write(server, 200)
        copied(server, tmp_path)
        assert logs(folder) == logs(own)
        time.sleep(1.1)  # a log's time has whole seconds
        with pytest.raises(SourceError) as refused:
            server.reset_binary_log()
            prepare(server)
            for number in range(3):
                write(server, 100 * number)
            copied(server, tmp_path)
        assert "spool" in refused.value.hint


@LONG
@pytest.mark.slow
@pytest.mark.mariadb
def test_a_stream_takes_what_comes_and_connects_again(tmp_path: Path) -> None:
    with MariadbServer(["--log-bin=binlog"]) as server:
        prepare(server)
        found = options(server, tmp_path).server
        assert found is not None
        live, other = LiveLogs(found), LiveLogs(found)
        own = server.binlog_files[0].parent
        for number in range(6):
            write(server, 1000 * number)
            if number == 3:
                server.sql("KILL " + str(server.sql(
                    "SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'")[0][0]))  # fmt: skip
            if number == 4:
                other.copy_until_now()
            for _ in range(500):
                folder = live.copy_new_bytes()
                if logs(folder) == logs(own):
                    break
            assert logs(folder) == logs(own), number
        live.close()
        other.close()


@LONG
@pytest.mark.slow
@pytest.mark.mariadb
def test_logs_that_the_server_encrypts_are_read(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("1;" + "ab" * 32 + "\n")
    with MariadbServer(
        ["--log-bin=binlog", "--plugin-load-add=file_key_management", f"--file-key-management-filename={keys}",
         "--encrypt-binlog=ON"]
    ) as server:  # fmt: skip
        prepare(server)
        write(server, 0)
        folder = copied(server, tmp_path)
        assert len(all_of(folder, table="s.t")) >= 19
        with pytest.raises(RplError, match="encrypted"):
            all_of(server.binlog_files[0].parent)


@LONG
@pytest.mark.slow
@pytest.mark.mariadb
def test_who_may_not_read_the_logs_is_told_what_is_missing(tmp_path: Path) -> None:
    with MariadbServer(["--log-bin=binlog"]) as server:
        server.sql("CREATE USER poor@'%' IDENTIFIED BY 'x'")
        found = options(server, tmp_path).server
        assert found is not None
        wrong = replace(found, info=replace(found.info, user_name="nobody"))
        with pytest.raises(SourceError, match="Access denied") as denied:
            LiveLogs(wrong).copy_until_now()
        assert "--master" not in denied.value.hint
        (tmp_path / "password").write_text("x")
        poor = replace(found, info=replace(found.info, user_name="poor"))
        with pytest.raises(SourceError) as denied:
            LiveLogs(poor).copy_until_now()
        assert "GRANT REPLICATION CLIENT" in denied.value.hint


@pytest.mark.parametrize(
    "url", ["mysql://host", "mysql://u:secret@host", "mysql://u@host/db", "mysql://u@host:x", "mysql://u@host?ssl=1"]
)
def test_an_address_that_says_more_or_less_than_the_server_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="option path") as refused:
        QueryOptions.parse({"path": url})
    assert "secret" not in str(refused.value)
