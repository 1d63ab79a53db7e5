"""MySQL 9 for tests on a Debian machine: its packages and all their libraries from sid, unpacked beside the system.

Nothing is installed: the programs run through the unpacked dynamic loader with the unpacked libraries. Fetched once
(about 60 MB) into `<cache>/mysql-9`; every wait on the network is bounded, and a machine without it just skips.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.private_server import ServerUnavailable

SUITE = "sid"
PACKAGES = ("mysql-server-core", "mysql-client-core")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FETCH_TIMEOUT_S = 240.0
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")


def mysql_programs(cache: Path) -> dict[str, list[str]]:
    """Command prefixes `server`, `client`, `mysqlbinlog`, and the `root` folder.

    Raises ServerUnavailable with the reason.
    """
    if os.environ.get("RPLCTL_TEST_MYSQL") == "0":
        raise ServerUnavailable("MySQL 9 tests are switched off by RPLCTL_TEST_MYSQL=0")
    root = fetch_mysql(cache)
    libraries = sorted(
        {str(path.parent) for path in root.glob("*/lib/*-linux-gnu*/*.so.*")} | {str(root / "usr/lib/mysql/private")}
    )
    loaders = [*root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"), *root.glob("lib/*-linux-gnu/ld-linux-*.so.*")]
    if not loaders:
        raise ServerUnavailable(f"{root} holds no dynamic loader; delete it to fetch again")
    run = [str(loaders[0]), "--library-path", ":".join(libraries)]
    return {
        "root": [str(root)],
        "server": [*run, str(root / "usr/sbin/mysqld")],
        "client": [*run, str(root / "usr/bin/mysql"), "--no-defaults"],
        "mysqlbinlog": [*run, str(root / "usr/bin/mysqlbinlog"), "--no-defaults"],
    }


def fetch_mysql(cache: Path) -> Path:
    """The unpacked file tree, downloaded at the first call."""
    folder = cache / "mysql-9"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".mysql-9.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            _download(folder)
    return folder / "root"


def _download(folder: Path) -> None:
    missing = [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]
    mirror = _mirror()
    if missing or not mirror or not Path(KEYRING).exists():
        raise ServerUnavailable(
            "MySQL 9 is fetched with apt-get from a Debian mirror, and this machine has none configured"
        )
    for part in ("apt/lists/partial", "apt/cache/archives/partial", "root"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "apt/status").touch()
    (folder / "apt/sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror} {SUITE} main\n")
    settings = {
        "Dir::Etc::SourceList": folder / "apt/sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": folder / "apt/lists",
        "Dir::State::status": folder / "apt/status",
        "Dir::Cache": folder / "apt/cache",
        "APT::Install-Recommends": 0,
        "APT::Sandbox::User": "root",
        "Acquire::http::Timeout": 20,
        "Acquire::https::Timeout": 20,
        "Acquire::Retries": 1,
        "Debug::NoLocking": 1,
    }
    apt = ["apt-get", "-qq", "-y", *(f"-o{name}={value}" for name, value in settings.items())]
    try:
        for words in (["update"], ["--download-only", "install", *PACKAGES]):
            subprocess.run([*apt, *words], check=True, capture_output=True, timeout=FETCH_TIMEOUT_S)
        for package in (folder / "apt/cache/archives").glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder / "root"], check=True, capture_output=True)
    except subprocess.TimeoutExpired:
        raise ServerUnavailable(f"MySQL 9 did not arrive from {mirror} within {FETCH_TIMEOUT_S:.0f} s") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise ServerUnavailable(f"MySQL 9 cannot be fetched from {mirror}: {said[0] if said else error}") from None
    shutil.rmtree(folder / "apt")
    (folder / ".done").touch()


def _mirror() -> str:
    """The first Debian mirror this machine uses, '' when none is configured."""
    for path in SOURCES:
        if Path(path).exists() and (
            found := re.search(r"^(?:URIs:|deb(?:\s+\[.*?\])?)\s+(\S+)", Path(path).read_text(), re.M)
        ):
            return found[1]
    return ""
