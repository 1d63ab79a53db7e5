"""MySQL 9 for tests on a Debian machine, from sid (`tests/fetch_debian.py`)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.fetch_debian import fetch, runner
from tests.private_server import ServerUnavailable

PACKAGES = ("mysql-server-core", "mysql-client-core")


def mysql_programs(cache: Path) -> dict[str, list[str]]:
    """Command prefixes `server`, `client`, `mysqlbinlog`, and the `root` folder.

    Raises ServerUnavailable with the reason.
    """
    if os.environ.get("RPLCTL_TEST_MYSQL") == "0":
        raise ServerUnavailable("MySQL 9 tests are switched off by RPLCTL_TEST_MYSQL=0")
    root = fetch(cache, "mysql-9", "sid", PACKAGES)
    run = runner(root)
    return {
        "root": [str(root)],
        "server": [*run, str(root / "usr/sbin/mysqld")],
        "client": [*run, str(root / "usr/bin/mysql"), "--no-defaults"],
        "mysqlbinlog": [*run, str(root / "usr/bin/mysqlbinlog"), "--no-defaults"],
    }
