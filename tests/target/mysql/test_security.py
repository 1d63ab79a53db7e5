"""The words behind the question mark of a MySQL or MariaDB target's URL: what each means, on a real MySQL 9."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import make_url

from rplctl.errors import ConfigError, TargetError
from rplctl.handshake import TlsMode
from rplctl.target import mapped_errors, open_engine
from rplctl.target.mysql.connection import protection
from rplctl.target.mysql.security import connection_options
from tests.kit.servers import MariadbServer, MysqlServer


@pytest.mark.parametrize(
    ("words", "mode"),
    [
        ("", TlsMode.PREFERRED),
        ("ssl_mode=required", TlsMode.REQUIRED),
        ("ssl-mode=DISABLED", TlsMode.DISABLED),
        ("ssl_cert=a&ssl_key=b", TlsMode.REQUIRED),
        ("tls_version=TLSv1.3", TlsMode.REQUIRED),
        ("ssl_ca=a", TlsMode.VERIFY_IDENTITY),
        ("ssl_crl=a", TlsMode.VERIFY_IDENTITY),
        ("ssl_capath=a&ssl_check_hostname=0", TlsMode.VERIFY_CA),
        ("ssl_verify_cert=1", TlsMode.VERIFY_CA),
        ("ssl_verify_identity=true", TlsMode.VERIFY_IDENTITY),
        ("ssl_mode=VERIFY_CA&ssl_ca=a", TlsMode.VERIFY_CA),
        ("get_server_public_key=1", TlsMode.DISABLED),
        ("server_public_key_path=a&ssl_mode=PREFERRED", TlsMode.PREFERRED),
        ("unix_socket=/s&connect_timeout=3", TlsMode.PREFERRED),
    ],
)
def test_words_imply_a_mode_that_is_never_weaker_than_they_say(words: str, mode: TlsMode) -> None:
    security, _ = connection_options(make_url(f"mysql://u@h/?{words}"))
    assert security.tls.mode is mode


@pytest.mark.parametrize(
    "words",
    [
        "sslca=a", "ssl_mode=ON", "ssl_mode=REQUIRED&ssl_ca=a", "ssl_check_hostname=maybe", "local_infile=1",
        "read_default_file=/etc/my.cnf", "connect_timeout=soon", "charset=latin1", "ssl_disabled=1",
    ],
)  # fmt: skip
def test_a_word_that_is_unknown_or_means_nothing_is_refused(words: str) -> None:
    with pytest.raises(ConfigError, match="target's URL"):
        open_engine(f"mysql://u@h/?{words}")


@pytest.mark.parametrize(
    "words", ["ssl_ca=/no/such", "ssl_cipher=NONE-SUCH", "tls_version=SSLv3", "tls_ciphersuites=X"]
)
def test_a_setting_that_cannot_be_used_is_named(words: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl_\*|tls_"), open_engine(f"mysql://u@127.0.0.1:1/?{words}").connect():
        pass


@pytest.fixture(scope="module")
def account(mysql: MysqlServer) -> Iterator[MysqlServer]:
    mysql.sql("CREATE USER told@'%' IDENTIFIED BY 'pw'; GRANT ALL ON *.* TO told@'%'")
    yield mysql
    mysql.sql("DROP USER told@'%'")


def sign_in(server: MysqlServer, words: str) -> tuple[bool, bool]:
    """With the server's cache of hashes emptied: it needs the password. (encrypted, verified)."""
    server.sql("FLUSH PRIVILEGES")
    engine = open_engine(f"mysql://told:pw@{server.host}:{server.port}/?{words}")
    try:
        with mapped_errors("mysql"), engine.connect() as connection:
            found = protection(connection)
            assert not found.is_remote
            return found.encrypted, found.verified
    finally:
        engine.dispose()


def test_a_password_that_nobody_may_hear_is_not_told_and_the_hint_says_how_to(account: MysqlServer) -> None:
    with pytest.raises(TargetError, match="requires secure connection") as caught:
        sign_in(account, "")
    assert caught.value.errno == 2061 and not caught.value.transient
    assert "ssl_ca=FILE" in caught.value.hint and "ssl_mode=REQUIRED" in caught.value.hint


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ssl_mode=REQUIRED", (True, False)),
        ("ssl_ca={data}/ca.pem&ssl_check_hostname=0", (True, True)),
        ("ssl_mode=VERIFY_CA&ssl_ca={data}/ca.pem&tls_version=TLSv1.2", (True, True)),
        ("get_server_public_key=1", (False, False)),
        ("server_public_key_path={data}/public_key.pem", (False, False)),
        ("unix_socket={socket}", (True, False)),
        ("unix_socket={socket}&ssl_mode=DISABLED", (False, False)),
    ],
)
def test_each_way_that_is_said_to_work_does(account: MysqlServer, words: str, found: tuple[bool, bool]) -> None:
    assert sign_in(account, words.format(data=account.data, socket=account.socket)) == found


@pytest.mark.parametrize("words", ["ssl_ca={data}/ca.pem", "ssl_ca={data}/client-cert.pem&ssl_check_hostname=0"])
def test_another_host_or_authority_is_refused(account: MysqlServer, words: str) -> None:
    with pytest.raises(TargetError, match="certificate verify failed"):
        sign_in(account, words.format(data=account.data))


def test_mariadbs_ed25519_signs_in_source_and_target(mariadb: MariadbServer) -> None:
    """Passwords shorter and longer than the 32 bytes of an Ed25519 seed, and with letters of no code page."""
    for number, password in enumerate(("pw", "x" * 40, "päß€")):
        user = f"signs{number}"
        mariadb.sql("INSTALL SONAME 'auth_ed25519'" if number == 0 else "SELECT 1")
        mariadb.sql(f"CREATE USER {user}@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{password}')")
        url = make_url(f"mysql://{mariadb.host}:{mariadb.port}/").set(username=user, password=password)
        for given, is_right in ((url, True), (url.set(password="wrong"), False)):
            engine = open_engine(given.render_as_string(hide_password=False))
            try:
                with mapped_errors("mysql"), engine.connect() as connection:
                    assert is_right and connection.exec_driver_sql("SELECT 1").scalar() == 1
            except TargetError as error:
                assert not is_right and error.errno == 1045
            finally:
                engine.dispose()
        mariadb.sql(f"DROP USER {user}@'%'")
    mariadb.sql("UNINSTALL SONAME 'auth_ed25519'")
