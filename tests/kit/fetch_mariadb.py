"""MariaDB 11.8 and 10.5 for tests on a Debian machine, from trixie and bullseye (`tests/kit/fetch_debian.py`)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.kit.fetch_debian import fetch, runner
from tests.kit.private_server import ServerUnavailable

RELEASES = {
    "11.8": ("trixie", ("mariadb-server-core", "mariadb-client", "mariadb-common")),
    "10.5": ("bullseye", ("mariadb-server-core-10.5", "mariadb-client-10.5", "mariadb-common")),
}


def mariadb_programs(cache: Path, release: str) -> dict[str, list[str]]:
    """Command prefixes `server` and `mariadb-binlog`, and the `root` folder. Raises ServerUnavailable."""
    if os.environ.get("RPLCTL_TEST_MYSQL") == "0":
        raise ServerUnavailable("servers that must be fetched are switched off by RPLCTL_TEST_MYSQL=0")
    suite, packages = RELEASES[release]
    root = fetch(cache, f"mariadb-{release}", suite, packages)
    run = runner(root)
    return {
        "root": [str(root)],
        "server": [*run, str(root / "usr/sbin/mariadbd")],
        "mariadb-binlog": [*run, str(root / "usr/bin/mariadb-binlog"), "--no-defaults"],
    }
