"""What a statement's session is on another server, and that nothing of ours is said in it."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from rplctl.errors import TargetError
from rplctl.event.events import Intvar, Rand, UserVar
from rplctl.event.query import Query, QueryContext
from rplctl.sql_text import Sql
from rplctl.target.mysql.session import (
    ServerKind,
    Session,
    collations_sql,
    primary_key_settings,
    statement_settings,
)
from rplctl.target.mysql.settings import ROWS

MYSQL9, MYSQL57 = ServerKind(False, 90700), ServerKind(False, 50744)
MARIADB, OLD_MARIADB = ServerKind(True, 101119), ServerKind(True, 100500)
QUERY = Query(
    timestamp=1_700_000_000,
    thread_id=7,
    execution_time=0,
    error_code=0,
    database="shop",
    sql_bytes=b"",
    context=QueryContext(flags2=0, sql_mode=0),
    uses_temporary_tables=False,
    suppress_use=False,
)


def settings(source: ServerKind, target: ServerKind, **context: object) -> dict[str, Sql]:
    query = replace(QUERY, context=QueryContext(**context))  # type: ignore[arg-type]
    return statement_settings(query, source, target, lambda number: f"collation_{number}")


def test_flags_of_the_event_are_the_sessions() -> None:
    found = settings(MYSQL9, MYSQL9, flags2=1 << 26 | 1 << 14)
    assert (found["foreign_key_checks"], found["unique_checks"], found["sql_auto_is_null"]) == ("0", "1", "1")
    assert settings(MYSQL9, MYSQL9, flags2=1 << 27)["unique_checks"] == "0"
    of_mariadb = settings(MARIADB, MARIADB, flags2=1 << 15 | 1 << 28)
    assert (of_mariadb["check_constraint_checks"], of_mariadb["sql_if_exists"]) == ("0", "1")
    assert of_mariadb["explicit_defaults_for_timestamp"] == "0"
    assert "sql_if_exists" not in settings(MARIADB, OLD_MARIADB, flags2=1 << 28)
    assert "check_constraint_checks" not in settings(MARIADB, MYSQL9, flags2=1 << 15)


@pytest.mark.parametrize(
    ("source", "target", "mode", "expected"),
    [
        (MARIADB, MARIADB, 1 << 9 | 1 << 34, 1 << 9 | 1 << 34),
        (MYSQL57, MYSQL57, 1 << 28 | 4, 1 << 28 | 4),
        (MYSQL57, MYSQL9, 1 << 28 | 1 << 8 | 4, 4),
        (MARIADB, MYSQL9, 4, 1 << 32 | 4),  # it must cut fractions as MariaDB does
        (MARIADB, MYSQL9, 1 << 34 | 4, 4),
        (MYSQL9, MARIADB, 4, 1 << 34 | 4),
        (MYSQL9, MARIADB, 1 << 32 | 4, 4),
    ],
)
def test_modes_mean_on_the_target_what_they_meant(
    source: ServerKind, target: ServerKind, mode: int, expected: int
) -> None:
    assert int(settings(source, target, sql_mode=mode)["sql_mode"]) == expected


@pytest.mark.parametrize(
    ("source", "context", "expected"),
    [
        (MYSQL9, {"explicit_defaults_for_timestamp": False}, "0"),
        (MYSQL9, {}, "1"),
        (ServerKind(False, 50744), {}, "0"),
        (ServerKind(True, 101119), {"flags2": 1 << 24}, "1"),
        (ServerKind(True, 101119), {"flags2": 0}, "0"),
        (ServerKind(True, 100528), {"flags2": 1 << 24}, "0"),
    ],
)
def test_timestamps_have_the_defaults_of_the_sources_session(
    source: ServerKind, context: dict[str, object], expected: str
) -> None:
    for target in (ServerKind(True, 101119), MYSQL9):
        assert settings(source, target, **context)["explicit_defaults_for_timestamp"] == expected
    assert "explicit_defaults_for_timestamp" not in settings(source, ServerKind(True, 100528), **context)


@pytest.mark.parametrize("bit", [9, 32, 33])
def test_a_mode_that_changes_statements_is_not_left_out(bit: int) -> None:
    assert settings(MARIADB, MARIADB, sql_mode=1 << bit)["sql_mode"] == str(1 << bit)
    with pytest.raises(TargetError, match="does not have") as caught:
        settings(MARIADB, MYSQL9, sql_mode=1 << bit)
    assert caught.value.errno == 1231


def test_a_statement_without_a_mode_does_not_take_the_one_before_it() -> None:
    assert settings(MARIADB, MARIADB)["sql_mode"] == ROWS["sql_mode"]


def test_time_names_and_charsets() -> None:
    found = settings(MYSQL9, MYSQL9, microseconds=25, time_zone="a'b\\", auto_increment=(3, 2), lc_time_names=5)
    assert found["timestamp"] == "1700000000.000025" and found["pseudo_thread_id"] == "7"
    assert found["time_zone"] == "_utf8mb4 0x6127625c"
    assert (found["auto_increment_increment"], found["auto_increment_offset"], found["lc_time_names"]) == (
        "3",
        "2",
        "5",
    )
    assert settings(MYSQL9, MYSQL9)["timestamp"] == "1700000000"
    assert settings(MYSQL9, MYSQL9)["time_zone"] == "DEFAULT"
    same = settings(MYSQL9, MYSQL9, server_collation=8, connection_collation=255, client_collation=8)
    assert (same["collation_server"], same["collation_connection"]) == ("8", "255")
    assert (same["character_set_client"], same["collation_database"]) == ("latin1", "DEFAULT")
    assert list(same)[-1] == "character_set_client"  # it changes how the rest is read
    other = settings(MYSQL9, MARIADB, connection_collation=255)
    assert other["collation_connection"] == "collation_255"


@pytest.mark.parametrize(
    ("policy", "server", "expected"),
    [
        ("OFF", MYSQL9, {"sql_require_primary_key": "0", "sql_generate_invisible_primary_key": "0"}),
        ("ON", MYSQL9, {"sql_require_primary_key": "1", "sql_generate_invisible_primary_key": "0"}),
        ("GENERATE", MYSQL9, {"sql_require_primary_key": "0", "sql_generate_invisible_primary_key": "1"}),
        ("STREAM", MYSQL9, {"sql_generate_invisible_primary_key": "0"}),
        ("ON", ServerKind(False, 80029), {"sql_require_primary_key": "1"}),
        ("ON", ServerKind(False, 80012), {}),
        ("ON", MARIADB, {}),
    ],
)
def test_the_policy_of_primary_keys(policy: str, server: ServerKind, expected: dict[str, str]) -> None:
    assert primary_key_settings(policy, server) == expected


@pytest.mark.parametrize("server", [MARIADB, ServerKind(False, 80029)])
def test_keys_are_generated_by_servers_that_can(server: ServerKind) -> None:
    with pytest.raises(TargetError) as caught:
        primary_key_settings("GENERATE", server)
    assert caught.value.errno == 1235


def session(server: ServerKind = MARIADB) -> tuple[Session, list[bytes]]:
    sent: list[bytes] = []
    return Session(sent.append, server, lambda number: f"collation_{number}", 42), sent


def test_only_what_differs_is_sent_and_all_of_it_after_a_statement() -> None:
    one, sent = session()
    one.rows(foreign_keys=True)
    assert len(sent) == 1 and b"@@session.foreign_key_checks=1" in sent[0]
    one.rows(foreign_keys=True)
    assert len(sent) == 1
    one.rows(foreign_keys=False)
    assert sent[1] == b"SET @@session.foreign_key_checks=0"
    with one.foreign():
        one.statement(QUERY, [], MARIADB, is_ddl=False)
        one.before_own()
        assert sent[2] == b"USE `shop`" and len(sent) == 4
    one.before_own()
    rest = sent[4]
    assert rest.startswith(
        b"SET @@session.character_set_client=utf8mb4, @@session.collation_connection=utf8mb4_general_ci, "
    )
    assert b";" not in rest and b"'" not in rest and rest.isascii()
    assert b"@@session.timestamp=DEFAULT" in rest and b"@@session.pseudo_thread_id=42" in rest
    for name in ROWS.keys() - {"character_set_client", "collation_connection"}:
        assert f"@@session.{name}={ROWS[name]}".encode() in rest
    one.before_own()
    assert len(sent) == 5


def test_variables_of_a_statement_come_with_their_type() -> None:
    one, sent = session()
    variables: list[Intvar | Rand | UserVar] = [
        Intvar(1, 5),
        Intvar(2, 6),
        Rand(7, 8),
        UserVar(name="a`b", kind=0, collation=8, value=None, unsigned=False),
        UserVar(name="f", kind=1, collation=63, value=struct.pack("<d", 0.5), unsigned=False),
        UserVar(name="i", kind=2, collation=63, value=(2**64 - 1).to_bytes(8, "little"), unsigned=True),
        UserVar(name="n", kind=2, collation=63, value=(2**64 - 1).to_bytes(8, "little"), unsigned=False),
        UserVar(name="s", kind=0, collation=8, value=b"\xe9'", unsigned=False),
        UserVar(name="x", kind=0, collation=63, value=b"\0", unsigned=False),
    ]
    with one.foreign():
        one.statement(QUERY, variables, MARIADB, is_ddl=False)
    assert sent[-1].decode().partition("character_set_client=utf8mb4, ")[2] == (
        "@@session.last_insert_id=5, @@session.insert_id=6, @@session.rand_seed1=7, @@session.rand_seed2=8,"
        " @`a``b`=NULL, @`f`=0.5e0, @`i`=18446744073709551615, @`n`=-1,"
        " @`s`=_latin1 X'e927' COLLATE collation_8, @`x`=X'00'"
    )


def test_a_default_database_is_asked_for_again_after_it_may_have_gone() -> None:
    one, sent = session()
    one.use("a`b")
    one.use("a`b")
    one.use("")
    assert sent == [b"USE `a``b`"]
    one.forget_database()
    one.use("a`b")
    assert len(sent) == 2


def test_ddl_commits_by_itself_where_it_is_asked_to() -> None:
    one, sent = session()
    with pytest.raises(KeyError), one.own_commits(wanted=True):
        raise KeyError
    assert sent == [b"SET autocommit=1", b"SET autocommit=0"]
    with one.own_commits(wanted=False):
        pass
    assert len(sent) == 2


def test_collations_of_several_charsets_have_a_name_for_each() -> None:
    assert "FULL_COLLATION_NAME" in collations_sql(ServerKind(True, 101001))
    assert "FULL_COLLATION_NAME" not in collations_sql(ServerKind(True, 101000))
    assert "FULL_COLLATION_NAME" not in collations_sql(MYSQL9)
