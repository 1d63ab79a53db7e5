"""An exception that nobody foresaw is an error of one statement: the client is told, and the log has the traceback."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mysql.connector
import pymysql
import pytest

from rplctl.front.sign_in import SignIns
from tests.command.test_serve import self_signed
from tests.front.test_front import PASSWORD, connect, datadir, errno_of, executed, prepared, served

__all__ = ["datadir"]


def raising(error: Exception) -> Callable[..., Any]:
    def raise_it(*_: object) -> Any:
        raise error

    return raise_it


def test_a_bug_is_an_error_of_its_statement_and_the_connection_goes_on(datadir: Path) -> None:
    with served(datadir) as server, connect(server, "monitor") as connection, connection.cursor() as cursor:
        server.front.looks.names = raising(ZeroDivisionError("a bug"))  # type: ignore[method-assign]
        statement = prepared(connection, "SHOW REPLICA STATUS")
        for ask in (
            lambda: cursor.execute("SHOW REPLICA STATUS"),
            lambda: cursor.execute("SELECT * FROM performance_schema.replication_applier_status"),
            lambda: executed(connection, b"%c\0\0\0\0\1\0\0\0" % statement),
        ):
            with pytest.raises(pymysql.MySQLError, match="ZeroDivisionError in rplctl: this is a bug") as refused:
                ask()
            assert refused.value.args[0] == 1105
            assert str(datadir / "run" / "front.log") in refused.value.args[1]
            cursor.execute("SHOW WARNINGS")
            assert cursor.fetchall()[0][:2] == ("Error", 1105)
    log = datadir / "run" / "front.log"
    text = log.read_text()
    assert text.count("ERROR front: unexpected ZeroDivisionError") == 3
    assert text.count("Traceback (most recent call last)") == 1, "a bug has one traceback"
    assert "the statement was: SHOW REPLICA STATUS" in text
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_bug_in_a_function_of_select_is_no_syntax_error(datadir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.front.functions.uuid1", raising(KeyError("a bug")))
    with served(datadir) as server:
        assert errno_of(server, "monitor", "SELECT UUID()") == 1105
        assert errno_of(server, "monitor", "SELECT SLEEP()") == 1582
        assert errno_of(server, "monitor", "SELECT UNIX_TIMESTAMP('nonsense')") == 1210


def test_a_bug_hides_the_password_of_its_statement(datadir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rplctl.front.administer.change_master", raising(ZeroDivisionError("a bug")))
    with served(datadir) as server:
        assert errno_of(server, "dba", "CHANGE MASTER TO MASTER_PASSWORD = 'tops3cret'") == 1105
    assert "tops3cret" not in (datadir / "run" / "front.log").read_text()


def test_a_bug_during_a_sign_in_is_an_error_and_admits_nobody(datadir: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "server.pem"
    certificate.write_bytes(self_signed())
    with served(datadir, tls_cert=certificate) as server:
        client: Any = mysql.connector.connect(
            host="127.0.0.1", port=server.port, user="dba", password=PASSWORD, use_pure=True
        )
        SignIns.account, account = raising(ZeroDivisionError("a bug")), SignIns.account  # type: ignore[method-assign]
        try:
            assert errno_of(server, "dba", "SELECT 1") == 1105
            with pytest.raises(mysql.connector.Error) as refused:
                client.cmd_change_user("old", PASSWORD)
            assert refused.value.errno == 1105
            with pytest.raises(mysql.connector.Error):
                client.cmd_query("SELECT 1")
        finally:
            SignIns.account = account  # type: ignore[method-assign]
        vars(client)["_socket"].sock.close()
        assert errno_of(server, "dba", "SELECT 1") == 0


def test_a_bug_is_reported_even_if_its_log_cannot_be_written(datadir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (datadir / "run" / "front.log").mkdir()
    with served(datadir) as server:
        server.front.looks.names = raising(ZeroDivisionError("a bug"))  # type: ignore[method-assign]
        assert errno_of(server, "monitor", "SHOW REPLICA STATUS") == 1105
    assert "ZeroDivisionError" in capsys.readouterr().err
