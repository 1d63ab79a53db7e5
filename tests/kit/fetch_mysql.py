"""MySQL 9, 8.4, 8.0 and 5.7 for tests on a Debian machine, from Debian sid and Ubuntu (`tests/kit/fetch_debian.py`)."""

from __future__ import annotations

import os
from pathlib import Path

from tests.kit.fetch_debian import UBUNTU, fetch, runner
from tests.kit.private_server import ServerUnavailable

RELEASES = {  # suite, what its packages' names end in, mirror
    "9": ("sid", "", ""),
    "8.4": ("questing", "", UBUNTU),
    "8.0": ("jammy", "-8.0", UBUNTU),
    "5.7": ("bionic", "-5.7", UBUNTU),
}


def mysql_programs(cache: Path, release: str = "9") -> dict[str, list[str]]:
    """Command prefixes `server`, `client`, `mysqlbinlog`, and the `root` folder.

    Raises ServerUnavailable with the reason.
    """
    if os.environ.get("RPLCTL_TEST_MYSQL") == "0":
        raise ServerUnavailable("MySQL 9 tests are switched off by RPLCTL_TEST_MYSQL=0")
    suite, ending, mirror = RELEASES[release]
    packages = (f"mysql-server-core{ending}", f"mysql-client-core{ending}")
    root = fetch(cache, f"mysql-{release}", suite, packages, mirror)
    run = runner(root)
    return {
        "root": [str(root)],
        "server": [*run, str(root / "usr/sbin/mysqld")],
        "client": [*run, str(root / "usr/bin/mysql"), "--no-defaults"],
        "mysqlbinlog": [*run, str(root / "usr/bin/mysqlbinlog"), "--no-defaults"],
    }
