"""Servers that Debian or Ubuntu have in another release: packages and all their libraries unpacked beside the system.

Nothing is installed: the programs run through the unpacked dynamic loader with the unpacked libraries. Fetched once
(about 60 MB) into `<cache>/<name>`; every wait on the network is bounded, and a machine without it just skips.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kit.private_server import ServerUnavailable

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
# keys 790B…C0B21F32 (2012), F6EC…991BC93C (2018)
UBUNTU_KEYRING = Path(__file__).parents[1] / "data/ubuntu-archive.gpg"
FETCH_TIMEOUT_S = 240.0
SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")


def runner(root: Path) -> list[str]:
    """The command prefix that runs an unpacked program with its own libraries. Raises ServerUnavailable."""
    found = [path for pattern in ("*/lib", "lib") for path in root.glob(f"{pattern}/*-linux-gnu*/*.so.*")]
    libraries = sorted({str(path.parent) for path in found} | {str(root / "usr/lib/mysql/private")})
    loaders = [*root.glob("usr/lib/*-linux-gnu/ld-linux-*.so.*"), *root.glob("lib/*-linux-gnu/ld-linux-*.so.*")]
    if not loaders:
        raise ServerUnavailable(f"{root} holds no dynamic loader; delete it to fetch again")
    return [str(loaders[0]), "--library-path", ":".join(libraries)]


def fetch(cache: Path, name: str, suite: str, packages: Sequence[str], mirror: str = "") -> Path:
    """The unpacked file tree, downloaded at the first call. Raises ServerUnavailable with the reason."""
    folder = cache / name
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".done").exists():
            _download(folder, suite, packages, mirror)
    return folder / "root"


def _download(folder: Path, suite: str, packages: Sequence[str], mirror: str) -> None:
    missing = [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]
    keyring = UBUNTU_KEYRING if mirror == UBUNTU else Path(KEYRING)
    mirror = mirror or _mirror()
    if missing or not mirror or not keyring.exists():
        raise ServerUnavailable(
            f"{folder.name} is fetched with apt-get from a Debian mirror, and this machine has none configured"
        )
    for part in ("apt/lists/partial", "apt/cache/archives/partial", "root"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "apt/status").touch()
    (folder / "apt/sources.list").write_text(f"deb [signed-by={keyring}] {mirror} {suite} main\n")
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
        for words in (["update"], ["--download-only", "install", *packages]):
            subprocess.run([*apt, *words], check=True, capture_output=True, timeout=FETCH_TIMEOUT_S)
        for package in (folder / "apt/cache/archives").glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, folder / "root"], check=True, capture_output=True)
    except subprocess.TimeoutExpired:
        raise ServerUnavailable(f"{folder.name} did not arrive from {mirror} within {FETCH_TIMEOUT_S:.0f} s") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise ServerUnavailable(
            f"{folder.name} cannot be fetched from {mirror}: {said[0] if said else error}"
        ) from None
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
