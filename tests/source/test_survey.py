"""Plain questions to a live server: its log's end, and errors in MySQL's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.config import Config
from rplctl.errors import SourceError
from rplctl.info import MasterInfo
from rplctl.source.survey import log_end, survey
from rplctl.sql_text import written
from tests.kit.servers import MariadbServer, MysqlServer


def info_of(server: MariadbServer, user: str = "rpl") -> MasterInfo:
    return MasterInfo(host=server.host, port=server.port, user_name=user)


def test_the_end_of_mariadbs_log_is_what_the_server_says(mariadb: MariadbServer, tmp_path: Path) -> None:
    mariadb.sql("FLUSH LOGS")  # a checkpoint follows in its own time
    with survey(info_of(mariadb), "rpl", Config(tmp_path)) as query:
        before = None
        while before != mariadb.master_status():
            before, end = mariadb.master_status(), log_end(query)
        assert query(written("SELECT 1 + 1")) == [(2,)]
    assert (end.log_name, end.log_pos) == before


def test_mysql_9_has_other_words_for_the_same_question(mysql: MysqlServer, tmp_path: Path) -> None:
    with survey(info_of(mysql), "rpl", Config(tmp_path)) as query:
        end = log_end(query)
    assert (end.log_name, end.log_pos) == mysql.master_status()


def test_an_account_that_may_not_ask_is_told_what_to_grant(mariadb: MariadbServer, tmp_path: Path) -> None:
    mariadb.sql("CREATE OR REPLACE USER poor@'%' IDENTIFIED BY 'poor'")
    with survey(info_of(mariadb, "poor"), "poor", Config(tmp_path)) as query, pytest.raises(SourceError) as caught:
        log_end(query)
    assert caught.value.errno == 1227
    assert "GRANT" in caught.value.hint


def test_a_wrong_password_is_1045(mariadb: MariadbServer, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught, survey(info_of(mariadb), "wrong", Config(tmp_path)):
        pass
    assert caught.value.errno == 1045
