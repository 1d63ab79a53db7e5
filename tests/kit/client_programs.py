"""Clients that tests of `serve --mysql` run and nobody installs: Debian's packages, unpacked, and modules of Node.

Each is fetched once into the cache of the test servers, in a version that is pinned: by Debian's release, or by
tests/data/front/package-lock.json with a hash of every module. A machine that cannot fetch them skips.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.kit.fetch_debian import FETCH_TIMEOUT_S, fetch, runner
from tests.kit.private_server import CACHE, ServerUnavailable, cache_lock
from tests.kit.programs import required_program

SUITE = "bookworm"
DATA = Path(__file__).parents[1] / "data/front"
MYSQLD_EXPORTER, MONITORING_PLUGINS = "prometheus-mysqld-exporter", "monitoring-plugins-standard"
PERCONA_TOOLKIT, MARIADB_JAVA = "percona-toolkit", "libmariadb-java"
_PERL = ("usr/lib/*/perl5/5.*", "usr/share/perl5", "usr/lib/*/perl/5.*", "usr/share/perl/5.*", "usr/lib/*/perl-base")


def unpacked(package: str) -> Path:
    """Return the file tree of the Debian package and of what it depends on. Skips the test if it cannot be fetched."""
    try:
        return fetch(CACHE, f"client-{package}", SUITE, (package,))
    except ServerUnavailable as reason:
        pytest.skip(str(reason))


def program(package: str, path: str, *, perl: bool = False) -> tuple[list[str], dict[str, str]]:
    """Return the command prefix of an unpacked program, and its environment."""
    root = unpacked(package)
    command, environment = runner(root), dict(os.environ)
    if perl:
        command.append(str(root / "usr/bin/perl"))
        environment["PERL5LIB"] = ":".join(str(found) for pattern in _PERL for found in root.glob(pattern))
    return [*command, str(root / path)], environment


def node_modules() -> Path:
    """Return a folder with the modules of package-lock.json. Skips the test if they cannot be fetched."""
    npm = required_program("npm")
    folder = CACHE / "client-node"
    with cache_lock(folder.name):
        lock = (DATA / "package-lock.json").read_bytes()
        done = folder / ".done"
        if not done.exists() or done.read_bytes() != lock:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(DATA / name, folder)
            command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            try:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=FETCH_TIMEOUT_S)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                pytest.skip(f"the modules of {DATA.name}/package-lock.json cannot be fetched: {error}")
            done.write_bytes(lock)
    return folder / "node_modules"
