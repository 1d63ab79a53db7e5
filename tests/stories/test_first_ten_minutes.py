"""The README's first lines are run as they stand, with each vendor: only host, account and folders are put in.

What they print must be what they promise, and the rows must be in the target.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer, MysqlServer

README = Path(__file__).parents[2] / "README.md"


def command_lines(vendor: str) -> list[list[str]]:
    """Of "Sixty seconds", without comments; of two lines for two vendors the one that is meant."""
    section = README.read_text().split("## Sixty seconds", 1)[1].split("```")[1]
    found = []
    for line in section.splitlines():
        words, comment = shlex.split(line, comments=True), line.partition("#")[2]
        other = {"MariaDB": "MySQL", "MySQL": "MariaDB"}[vendor]
        if words and not re.match(rf"\s*{other}\b", comment):
            assert words[0] == "rplctl"
            found.append(words[1:])
    return found


def follow(replica: Replica, source: MariadbServer, vendor: str, backup: Path) -> list[str]:
    """Each line in its turn; the verbs that were run."""
    verbs = []
    for words in command_lines(vendor):
        password = ""
        if "--ask-password" in words:
            words[words.index("--ask-password")] = "--password-stdin"  # nobody types here
            words[words.index("src")] = source.host
            words += ["--master-port", str(source.port)]
            password = "repl-pw"
        words = [str(backup) if word.startswith("/backup/") else word for word in words]
        replica.run(*words, password=password)
        verbs.append(words[0])
        if words == ["clone"]:
            replica.run("wait", "--state", "synced", "--timeout", "120")
    return verbs


def prepare(source: MariadbServer, grants: str) -> None:
    account = f"CREATE USER repl@'%' IDENTIFIED BY 'repl-pw'; GRANT {grants} ON *.* TO repl@'%'"
    source.sql(account)  # in the logs, and passed over where the target has no accounts
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, what VARCHAR(20))")
    source.sql("INSERT INTO shop.orders VALUES (1, 'tea'), (2, 'cake')")


def orders(replica: Replica) -> list[tuple[int, str]]:
    database = sqlite3.connect(replica.datadir / "target.db")
    try:
        return database.execute("SELECT id, what FROM shop__orders ORDER BY id").fetchall()
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("vendor", ["MariaDB", "MySQL"])
def test_the_lines_of_the_readme_work_as_they_stand(
    tmp_path: Path,
    mariadb_factory: Callable[..., MariadbServer],
    mysql_factory: Callable[..., MysqlServer],
    vendor: str,
) -> None:
    source = mariadb_factory() if vendor == "MariaDB" else mysql_factory()
    client = "BINLOG MONITOR" if vendor == "MariaDB" else "REPLICATION CLIENT"
    prepare(source, f"SELECT, REPLICATION SLAVE, {client}")
    replica = Replica(tmp_path)
    try:
        verbs = follow(replica, source, vendor, tmp_path / "backup")
    finally:
        replica.close()
    assert verbs[:4] == ["init", "change-master", "clone", "clone"] and verbs[-1] == "check" and len(verbs) >= 9
    assert orders(replica) == [(1, "tea"), (2, "cake")]
    assert (tmp_path / "backup").is_dir()
