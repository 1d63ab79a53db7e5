"""Statements about accounts from real MariaDB and MySQL, applied to targets that stop on them: no password and no hash
in anything that a command prints, in a status, a log, the journal or any other file of the instance but relay logs.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from rplctl.cli import run
from tests.kit.replica import Replica, new_log
from tests.kit.servers import MariadbServer, MysqlServer

pytestmark = pytest.mark.slow

CANARY = "C4nary-of-a-password"
SHA1 = hashlib.sha1(hashlib.sha1(CANARY.encode()).digest()).hexdigest().upper()
MARIADB = f"""
CREATE USER mask_a@h IDENTIFIED BY '{CANARY}';
CREATE USER mask_b@h IDENTIFIED /* why */ VIA mysql_native_password USING PASSWORD('{CANARY}') OR unix_socket;
/*!50000 ALTER USER mask_a@h IDENTIFIED BY "{CANARY}" */;
SET PASSWORD FOR mask_a@h = PASSWORD('{CANARY}');
GRANT SELECT ON *.* TO mask_c@h IDENTIFIED BY PASSWORD '*{SHA1}', mask_d@h IDENTIFIED BY '{CANARY}';
CREATE OR REPLACE SERVER mask FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', USER 'u', PASSWORD '{CANARY}');
CREATE PROCEDURE test.mask() CREATE USER mask_e@h IDENTIFIED BY '{CANARY}';
DROP PROCEDURE test.mask; DROP SERVER mask; DROP USER mask_a@h, mask_b@h, mask_c@h, mask_d@h
"""
MYSQL = f"""
CREATE USER mask_a@h IDENTIFIED BY '{CANARY}', mask_b@h IDENTIFIED WITH caching_sha2_password BY '{CANARY}';
ALTER USER mask_a@h IDENTIFIED BY '{CANARY}2' RETAIN CURRENT PASSWORD;
SET PASSWORD FOR mask_a@h = '{CANARY}';
CREATE SERVER mask FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', USER 'u', PASSWORD '{CANARY}');
CREATE PROCEDURE test.mask() CREATE USER mask_e@h IDENTIFIED BY '{CANARY}';
DROP PROCEDURE test.mask; DROP SERVER mask; DROP USER mask_a@h, mask_b@h
"""
LOOKS = (
    ("show-status", "--json"),
    ("show-status", "-E"),
    ("check",),
    ("check", "--json"),
    ("doctor",),
    ("show-channels", "--json"),
    ("show-relaylog-events", "--json", "--limit", "1000"),
    ("recover", "--dry-run"),
    ("log-status", "--json"),
)


def written(replica: Replica, server: MariadbServer, statements: str) -> Path:
    """The log that the source makes of them: all but what it keeps apart."""
    new_log(server)
    server.sql("CREATE DATABASE IF NOT EXISTS test")
    server.sql(statements)
    log = server.binlog_files[-1]
    archive = replica.datadir.parent / "archive"
    archive.mkdir()
    (archive / log.name).write_bytes(log.read_bytes())
    return archive


def secrets(archive: Path) -> list[bytes]:
    """The password, MariaDB's and MySQL's hashes of it as they are in the log."""
    logged = next(archive.glob("*.0*")).read_bytes()
    at = logged.find(b"$A$005$")
    found = [CANARY.encode(), SHA1.encode(), *([logged[at + 30 : at + 60]] if at >= 0 else [])]
    assert any(secret in logged for secret in found)
    return found


def stops_and_skips(replica: Replica, archive: Path, secret: list[bytes]) -> None:
    replica.run("change-master", "--master-binlog-dir", str(archive))
    said = [run_of(replica, "start", "--until-synced", "--max-time", "60")]
    said += [seen(replica, *look) for look in LOOKS]
    with (replica.datadir / "rplctl.toml").open("a") as options:
        options.write('\nreplica_skip_errors = "all"\non_unsupported_ddl = "skip"\n')
    said.append(run_of(replica, "start", "--until-synced", "--max-time", "60"))
    said += [seen(replica, *look) for look in LOOKS]
    assert "<secret>" in "".join(said), "the statements were met"
    for text in said:
        assert not [one for one in secret if one in text.encode("utf-8", "surrogateescape")], text
    for path in sorted(path for path in replica.datadir.rglob("*") if path.is_file()):
        if not path.name.startswith(("relay-bin", "target.db")):
            assert not [one for one in secret if one in path.read_bytes()], path


def seen(replica: Replica, *arguments: str) -> str:
    """A command in this process: most of them do no more than look."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        run(["--datadir", str(replica.datadir), *arguments])
    return said.getvalue()


def run_of(replica: Replica, *arguments: str) -> str:
    done = replica.run(*arguments, expect=None)
    return done.stdout + done.stderr


@pytest.mark.long("The log of MariaDB stays in make test.", keeps=r"^mariadb$")
@pytest.mark.parametrize("vendor", ["mariadb", "mysql"])
def test_a_sqlite_target_tells_no_password(vendor: str, replica: Replica, request: pytest.FixtureRequest) -> None:
    archive = written(replica, request.getfixturevalue(vendor), MARIADB if vendor == "mariadb" else MYSQL)
    replica.run("init", "--spark", "auto")  # what is read here are texts
    stops_and_skips(replica, archive, secrets(archive))


@pytest.mark.long("test_a_sqlite_target_tells_no_password masks the same statements.")
def test_a_server_that_refuses_them_tells_no_password(
    replica: Replica, mysql: MysqlServer, mariadb_factory: Callable[..., MariadbServer]
) -> None:
    archive = written(replica, mysql, MYSQL)
    replica.run("init", *replica.into(mariadb_factory()))
    stops_and_skips(replica, archive, secrets(archive))
