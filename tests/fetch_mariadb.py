"""MariaDB 11.8 for tests on a Debian machine, from trixie (`tests/fetch_debian.py`)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.fetch_debian import fetch, runner
from tests.private_server import ServerUnavailable

PACKAGES = ("mariadb-server-core", "mariadb-client", "mariadb-common")


def mariadb_programs(cache: Path) -> dict[str, list[str]]:
    """Command prefixes `server` and `mariadb-binlog`, and the `root` folder. Raises ServerUnavailable."""
    if os.environ.get("RPLCTL_TEST_MYSQL") == "0":
        raise ServerUnavailable("servers that must be fetched are switched off by RPLCTL_TEST_MYSQL=0")
    root = fetch(cache, "mariadb-11.8", "trixie", PACKAGES)
    run = runner(root)
    return {
        "root": [str(root)],
        "server": [*run, str(root / "usr/sbin/mariadbd")],
        "mariadb-binlog": [*run, str(root / "usr/bin/mariadb-binlog"), "--no-defaults"],
    }
