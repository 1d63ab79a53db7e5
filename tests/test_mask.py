"""No text that leaves the process holds a password, whatever the statement looks like that it came in."""

from __future__ import annotations

import logging
import time

import pytest
from hypothesis import given, settings, strategies as st

from rplctl.errors import RplError
from rplctl.mask import SECRET, masked
from rplctl.schema.context import DdlContext
from rplctl.schema.parse import parse_ddl

CANARY = "Canary7f3a"
HASH = "*" + "0123456789ABCDEF" * 2 + "01234567"

# {s}: a literal that holds the secret, {_}: whatever may stand between two words
FORMS = (
    "CREATE USER{_}u@h{_}IDENTIFIED{_}BY{_}{s}",
    "CREATE OR REPLACE USER 'u'@'%' IDENTIFIED{_}BY{_}PASSWORD{_}{s} WITH MAX_QUERIES_PER_HOUR 3",
    "CREATE USER a IDENTIFIED BY 'x', b{_}IDENTIFIED{_}BY{_}{s}, c IDENTIFIED BY {s} REQUIRE NONE",
    "CREATE USER u IDENTIFIED{_}VIA{_}ed25519{_}USING{_}{s} OR mysql_native_password USING{_}{s}",
    "CREATE USER u IDENTIFIED VIA ed25519 USING{_}PASSWORD{_}({_}{s}{_}) OR unix_socket",
    "ALTER USER u IDENTIFIED{_}WITH{_}'caching_sha2_password'{_}BY{_}{s}{_}REPLACE{_}{s} RETAIN CURRENT PASSWORD",
    "ALTER USER u IDENTIFIED WITH 'caching_sha2_password'{_}AS{_}{s} PASSWORD EXPIRE NEVER COMMENT 'x'",
    "ALTER USER u ADD 2 FACTOR IDENTIFIED WITH authentication_fido BY{_}{s} ADD 3 FACTOR IDENTIFIED BY {s}",
    "ALTER USER u 2 FACTOR FINISH REGISTRATION SET CHALLENGE_RESPONSE{_}AS{_}{s}",
    "CREATE USER u IDENTIFIED WITH fido INITIAL AUTHENTICATION IDENTIFIED{_}BY{_}{s}",
    "SET{_}PASSWORD{_}={_}{s}",
    "SET PASSWORD{_}FOR{_}'u'@'h'{_}={_}{s}",
    "SET PASSWORD FOR `u`@`h` ={_}PASSWORD{_}({_}{s}{_})",
    "SET PASSWORD FOR 'u'@'h' ={_}{s}{_}REPLACE{_}{s}",
    "SET STATEMENT max_statement_time=1 FOR SET PASSWORD FOR u@h = OLD_PASSWORD({s})",
    "GRANT ALL ON *.* TO 'u'@'%'{_}IDENTIFIED{_}BY{_}{s}{_}WITH GRANT OPTION",
    "GRANT SELECT ON d.* TO u IDENTIFIED BY{_}PASSWORD{_}{s}, v IDENTIFIED{_}WITH mysql_native_password AS {s}",
    "CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD{_}={_}{s}, MASTER_PORT=3306",
    "CHANGE REPLICATION SOURCE TO SOURCE_USER='u',{_}SOURCE_PASSWORD{_}={_}{s} FOR CHANNEL 'c'",
    "START SLAVE USER='u'{_}PASSWORD={_}{s}",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u',{_}PASSWORD{_}{s}, PORT 3306)",
    "ALTER SERVER s OPTIONS (PASSWORD{_}{s})",
    "CREATE PROCEDURE p() BEGIN CREATE USER u IDENTIFIED{_}BY{_}{s}; END",
    "/*!80000 CREATE USER u IDENTIFIED{_}BY{_}{s} */",
    "CREATE USER u /*!50000 IDENTIFIED BY */ {s}",
)
GAPS = (" ", "\n\t", "/* a 'comment' */", " /**/ ", "-- x\n", " # it's\n", "  ")
LITERALS = (
    f"'{CANARY}'",
    f'"{CANARY}"',
    f"'it''s {CANARY}'",
    f"'a\\'b {CANARY}'",
    f"_utf8mb4'{CANARY}'",
    f"N'{CANARY}'",
    f"'x' '{CANARY}'",
    f"'x'\n  \"{CANARY}\"",
    "0x" + CANARY.encode().hex(),
    f"x'{CANARY.encode().hex()}'",
    f"'{HASH}{CANARY}'",
    f"'$A$005$ab\x01\"`{CANARY}/.'",
    f"'ünïcøde {CANARY} 密码'",
)
TRACES = (CANARY, CANARY.encode().hex(), CANARY.encode().hex().upper())

statements = st.builds(
    lambda form, gap, literal: form.format(_=gap, s=literal),
    st.sampled_from(FORMS),
    st.sampled_from(GAPS),
    st.sampled_from(LITERALS),
)


def assert_hidden(text: str) -> None:
    assert not [trace for trace in TRACES if trace in text], text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("lower", [False, True])
def test_each_form_with_each_gap_and_each_literal(form: str, lower: bool) -> None:
    for gap in GAPS:
        for literal in LITERALS:
            words = form.lower() if lower else form
            shown = masked(words.format(_=gap, s=literal))
            assert_hidden(shown)
            assert SECRET in shown


@given(statements, st.integers(0, 300))
@settings(max_examples=500)
def test_a_statement_that_is_cut_anywhere_tells_no_part(statement: str, end: int) -> None:
    cut = statement[:end]
    assert CANARY[:4] not in masked(cut) or CANARY[:4] not in cut


@pytest.mark.long("The other tests of this file mask whole statements; a quoted middle is cut from them.")
@given(statements, st.integers(0, 200), st.integers(0, 200))
@settings(max_examples=500)
def test_nor_does_what_a_server_quotes_out_of_its_middle(statement: str, start: int, length: int) -> None:
    said = f"You have an error in your SQL syntax near '{statement[start : start + length]}' at line 1"
    assert CANARY not in masked(said, statement)
    shown = masked(statement)[:200]
    error = RplError(f"Error '{masked(said, statement)}' on query. Query: '{shown}'", hint=f"see {statement}")
    assert_hidden(f"{error} {error.message} {error.hint} {error!r} {error.args}")


@given(statements)
@settings(max_examples=300)
def test_nor_do_the_refusals_of_the_parser(statement: str) -> None:
    try:
        actions = parse_ddl(statement, "d", DdlContext(server_version="8.0.40"))
    except RplError as error:
        error.hide(statement)
        assert_hidden(f"{error} {error.hint}")
    else:
        assert actions is not None


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://u:{CANARY}@db/x",
        f"postgresql+psycopg://u:{CANARY}@[::1]:5432/x?sslmode=require",
        f"mysql://u:p@{CANARY}/@db",
        f"ENGINE=FEDERATED CONNECTION='mysql://u:{CANARY}@h:3306/d/t'",
        f"host=db password={CANARY} user=u",
        f"password = {CANARY}",
    ],
)
def test_urls_and_connection_strings(url: str) -> None:
    assert_hidden(masked(f"could not connect to {url}: refused"))


@pytest.mark.parametrize(
    "text",
    [
        "Access denied for user 'rpl'@'localhost' (using password: YES)",
        "hint: rplctl change-master --ask-password or --password-file FILE",
        "CREATE TABLE t (a INT COMMENT 'x', password VARCHAR(20) DEFAULT NULL) SELECT 1 AS 'a'",
        "LOAD DATA INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ','",
        "see https://example.org:8080/a and mysql://db:3306/ and the password in env:NAME",
        "UPDATE t SET a='b' WHERE c = 'd'",
        "password file:/etc/x is missing",
        "CREATE USER 'u'@'h' PASSWORD EXPIRE INTERVAL 3 DAY",
        "Relay_log_name: '/etc/passwd' is not the name of a log, as 'relay-bin.000001' is",
    ],
)
def test_what_holds_no_secret_stays_as_it_is(text: str) -> None:
    assert masked(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "/* */",
        "IDENTIFIED BY ",
        "''",
        "'x' ",
        "\\'",
        "set password = ",
        "://a:",
        "a",
        "password ",
        "by ",
        "near '",
        "#",
        "=(",
    ],
)
def test_a_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    began = time.process_time()
    masked("SET PASSWORD IDENTIFIED BY " + piece * (200_000 // len(piece)))
    assert time.process_time() - began < 5


def test_the_rest_of_a_statement_can_still_be_read() -> None:
    text = "CREATE USER 'a'@'%' IDENTIFIED BY 'x', 'b'@'%' IDENTIFIED BY \"y\" REQUIRE SSL"
    assert masked(text) == f"CREATE USER 'a'@'%' IDENTIFIED BY {SECRET}, 'b'@'%' IDENTIFIED BY {SECRET} REQUIRE SSL"


def test_an_error_that_is_logged_with_its_traceback_is_masked() -> None:
    from rplctl.log_file import LineFormatter

    try:
        raise ValueError(f"SET PASSWORD = '{CANARY}'\n\x1b[31m")
    except ValueError as error:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "at %s", (f"IDENTIFIED BY '{CANARY}'\n\x1b",), None)
        record.exc_info = (type(error), error, error.__traceback__)
    shown = LineFormatter("%(levelname)s: %(message)s").format(record)
    assert_hidden(shown)
    assert shown.startswith(f"ERROR: at IDENTIFIED BY {SECRET}\\n\\u001b\n  Traceback")
    assert "\x1b" not in shown
