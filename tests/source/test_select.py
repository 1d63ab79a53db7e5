"""A prepared SELECT on real servers: an error behind some rows, no rows, and the session afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.source.connection import log_in
from rplctl.source.select import SelectedRows
from rplctl.sql_text import Sql
from tests.kit.servers import MariadbServer

LONG = pytest.mark.long(
    "The cases of the other kinds hold the promise; those of MySQL repeat it.", keeps=r"^(?!.*mysql)"
)


@pytest.fixture(
    params=[pytest.param("mariadb", marks=pytest.mark.mariadb), pytest.param("mysql", marks=pytest.mark.mysql)]
)
def session(request: pytest.FixtureRequest) -> Iterator[Any]:
    server: MariadbServer = request.getfixturevalue(request.param)
    mysql = log_in(MasterInfo(host=server.host, port=server.port, user_name="rpl", get_public_key=True), "rpl", 60)
    yield mysql
    mysql._force_close()


@LONG
def test_an_error_in_the_middle_of_the_rows_is_the_servers(session: Any) -> None:
    three = "(SELECT 1 AS id UNION ALL SELECT 2 UNION ALL SELECT 3) AS t"
    rows = SelectedRows(session, Sql(f"SELECT id, IF(id = 3, (SELECT 1 UNION SELECT 2), 0) FROM {three}"), "test")
    with pytest.raises(SourceError) as caught:
        list(rows.pieces())
    assert caught.value.errno == 1242
    session.query("SELECT 1")


@LONG
def test_a_select_of_no_rows_has_no_pieces_and_the_session_goes_on(session: Any) -> None:
    for _ in range(2):
        rows = SelectedRows(session, Sql("SELECT 1, 'a' FROM DUAL WHERE 1 = 0"), "test")
        assert len(rows.wire_types) == 2
        assert list(rows.pieces()) == [] and rows.rows == 0


@LONG
def test_a_statement_that_is_wrong_says_so(session: Any) -> None:
    with pytest.raises(SourceError) as caught:
        SelectedRows(session, Sql("SELECT * FROM nowhere.nothing"), "test")
    assert caught.value.errno in (1146, 1049)
