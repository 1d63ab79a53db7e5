"""The front answers the statements that DBAs and monitors type as a replica of either vendor does.

Compared are the number and the SQLSTATE of an error, the names of the columns, whether there is a result set, and the
numbers of notes. Each difference has its reason in tests/kit/dba_differences.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Factory
from tests.front.test_front import PASSWORD, datadir, served
from tests.kit.answers import AnsweringConnection, ServerAnswer
from tests.kit.dba_differences import DIFFERENCES
from tests.kit.dba_statements import OF_MARIADB, OF_MYSQL, SHARED
from tests.kit.private_server import PASSWORD as SERVER_PASSWORD, USER
from tests.kit.servers import MariadbServer, MysqlServer

__all__ = ["datadir"]
COM_STMT_SEND_LONG_DATA = 24


@pytest.mark.usefixtures("children_forked")
def test_statements_are_answered_as_by_a_replica_of_mysql(datadir: Path, mysql_factory: Factory[MysqlServer]) -> None:
    server = mysql_factory("--skip-log-bin", "--read-only", "--super-read-only")
    server.sql("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = 1, SOURCE_USER = 'repl'")
    assert_only_explained(datadir, server, [*SHARED, *OF_MYSQL])


@pytest.mark.usefixtures("children_forked")
def test_statements_are_answered_as_by_a_replica_of_mariadb(
    datadir: Path, mariadb_factory: Factory[MariadbServer]
) -> None:
    server = mariadb_factory("--skip-log-bin", "--read-only")
    server.sql("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'repl'")
    assert_only_explained(datadir, server, [*SHARED, *OF_MARIADB])


def assert_only_explained(datadir: Path, server: MariadbServer, script: list[str]) -> None:
    explained = {statement for row in DIFFERENCES for statement in row.of(server.kind)} & set(script)
    with (
        served(datadir, flavor=server.kind) as front,
        closing(connected(front.port, "dba", PASSWORD)) as ours,
        closing(connected(server.port, USER, SERVER_PASSWORD)) as theirs,
    ):
        found = dict(differences(script, theirs, ours))
    assert {statement: both for statement, both in found.items() if statement not in explained} == {}
    assert explained - found.keys() == set(), "these are answered alike"


@pytest.mark.usefixtures("children_forked")
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_long_data_of_an_unknown_statement_has_no_answer_as_on_a_server(
    datadir: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    """The client reads none: an error packet would be taken for the answer to its next command."""
    factory: Factory[MariadbServer] = request.getfixturevalue(f"{kind}_factory")
    with (
        served(datadir, flavor=kind) as front,
        closing(connected(front.port, "dba", PASSWORD)) as ours,
        closing(connected(factory().port, USER, SERVER_PASSWORD)) as theirs,
    ):
        connection: Any
        for connection in (theirs, ours):
            connection._execute_command(COM_STMT_SEND_LONG_DATA, struct.pack("<IH", 99, 0) + b"x")
            assert connection.answer("SELECT 1").compared == (0, "", ("1",), ())


def connected(port: int, user: str, password: str) -> AnsweringConnection:
    return AnsweringConnection(host="127.0.0.1", port=port, user=user, password=password, autocommit=True)


def differences(
    script: list[str], theirs: AnsweringConnection, ours: AnsweringConnection
) -> Iterator[tuple[str, tuple[ServerAnswer, ServerAnswer]]]:
    for statement in script:
        both = theirs.answer(statement), ours.answer(statement)
        if both[0].compared != both[1].compared:
            yield statement, both


def test_every_reason_is_for_a_statement_of_the_script() -> None:
    for row in DIFFERENCES:
        for flavor in row.flavors.split():
            script = {*SHARED, *(OF_MYSQL if flavor == "mysql" else OF_MARIADB)}
            assert row.of(flavor) & script, row.reason
        assert set(row.statements.strip().splitlines()) <= {*SHARED, *OF_MYSQL, *OF_MARIADB}
