"""Comments, strings and names are read as servers read them: each text, and what we make of it, has the same value."""

from __future__ import annotations

import random
from contextlib import closing
from typing import Any

import pymysql
import pytest

from rplctl.errors import RplError
from rplctl.schema.context import ANSI_QUOTES, NO_BACKSLASH_ESCAPES, DdlContext
from rplctl.schema.lexer import opened
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import Mariadb105Server, Mariadb118Server, MariadbServer, Mysql57Server, Mysql80Server

PIECES = [
    b"+1 ", b",2", b"1", b"-1", b"/", b"*", b" ", b"\n", b"\0", b"$$", b"\xa0", b",N'x'", b",x'41'", b",_latin1'\xe9'",
    b"/*", b"*/", b"*/", b"*/", b"*/", b"/*!", b"/*!50000", b"/*!99999 ", b"/*!100000 ", b"/*!100000", b"/*!080000 ",
    b"/*!80028 ", b"/*M!", b"/*M!100100 ", b"/*M!999999 ", b"/* x */", b"/*!50000 +1 */", b"/*!99999 +1 */",
    b"/*M!100000 +1 */", b"--", b"-- ", b"--\x01", b"#", b"'", b"'", b'"', b"`", b"\\", b"+'3'", b",'a''b'", rb",'\''",
    b',"c"', b"\x81\x5c", b"\x81'", b"\xa1\x60", b",'\x81\x5c'", b",'\\\x81\x5c'",
]  # fmt: skip
ENDS = [b")", b"\n)", b"*/)", b"*/\n)", b"')", b"'*/)"]
SESSIONS = [
    (charset, mode)
    for charset in ("utf8mb4", "latin1", "gbk", "sjis", "cp932", "big5", "gb18030")
    for mode in (0, ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ANSI_QUOTES | NO_BACKSLASH_ESCAPES)
]
IN_DOUBT = ("Two dashes directly before a comment", "The start of a comment depends")


def value(cursor: Any, text: bytes) -> object:
    """What the server makes of the text; None if it does not execute it."""
    try:
        cursor.execute("SET @r=NULL")
        cursor.execute(text)
        cursor.execute("SELECT HEX(@r)")
        return cursor.fetchone()
    except pymysql.Error:
        return None


def compare(server: MariadbServer, each: int, seed: int) -> int:
    """How many texts the server executed, of all charsets and modes that it has."""
    chance, executed = random.Random(seed), 0
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@version")
        (version,) = cursor.fetchone() or ("",)
        for charset, mode in SESSIONS:
            try:
                cursor.execute(f"SET sql_mode={mode}, character_set_client={charset}")
            except pymysql.Error:
                continue  # MariaDB has no gb18030
            context = DdlContext(sql_mode=mode, server_version=version)
            for _ in range(each):
                middle = b"".join(chance.choice(PIECES) for _ in range(chance.randint(1, 9)))
                text = b"SET @r=CONCAT_WS(',', 1" + middle + chance.choice(ENDS)
                expected = value(cursor, text)
                try:
                    ours = opened(text.decode("latin-1"), context, charset=charset, keeps="/*M!").encode("latin-1")
                except RplError as error:
                    assert expected is None or error.message.startswith(IN_DOUBT), (text, charset, mode, error)
                    continue
                assert (value(cursor, ours), len(ours)) == (expected, len(text)), (text, ours, charset, mode)
                executed += expected is not None
    return executed


@pytest.mark.long("MariaDB stays; MySQL reads literals in the same way.", keeps=r"^mariadb$")
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_a_text_and_what_we_make_of_it_have_the_same_value(kind: str, request: pytest.FixtureRequest) -> None:
    assert compare(request.getfixturevalue(kind), 40, 4) > 40


@pytest.mark.torture
@pytest.mark.parametrize(
    "kind", [Mariadb105Server, Mariadb118Server, Mysql57Server, Mysql80Server], ids=lambda kind: kind.__name__
)
def test_many_texts_have_the_same_value_on_older_and_newer_servers(kind: type[MariadbServer]) -> None:
    try:
        server = kind()
    except ServerUnavailable as reason:
        pytest.skip(str(reason))
    with server:
        assert min(compare(server, 500, seed) for seed in range(5)) > 500
