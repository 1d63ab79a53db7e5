"""Creates connections to the source in another network namespace of this host (option NETWORK_NAMESPACE).

A socket belongs to the namespace in which it was created, even if its thread leaves this namespace later. Invariant: at
the end of the block, the thread is in its own namespace again. MySQL looks for namespaces in the same folder, and
reports the same errors. Sources: network_namespaces(7), setns(2).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from rplctl import mysql_errors as er
from rplctl.errors import ConfigError, another_way

FOLDER = Path("/var/run/netns")  # the folder of `ip netns add`
HOME = Path("/proc/thread-self/ns/net")
_CLONE_NEWNET = 0x40000000
_WAY_OUT = "to use rplctl's own namespace, run: rplctl change-master --network-namespace ''; rplctl start"


@contextlib.contextmanager
def network_namespace(name: str) -> Iterator[None]:
    """Move this thread into the network namespace `name` during the block. '' changes nothing.

    Raises ConfigError if the namespace does not exist, or if this account cannot enter it.
    """
    if not name:
        yield
        return
    home, there = _open(HOME), -1
    try:
        there = _open(_path(name))
        _enter(there)
        try:
            yield
        finally:
            _enter(home)
    finally:
        os.close(home)
        if there >= 0:
            os.close(there)


def check_network_namespace(name: str) -> None:
    """Raise ConfigError if the namespace does not exist, or if this account cannot enter it. '' is accepted."""
    with network_namespace(name):
        pass


def _path(name: str) -> Path:
    if "/" in name or name in (".", ".."):
        raise ConfigError(f"Unknown network namespace '{name}'", errno=er.UNKNOWN_NETWORK_NAMESPACE, hint=_known())
    return FOLDER / name


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.parent != FOLDER:
            raise ConfigError(
                "Network Namespaces is not supported on this platform",
                errno=er.NETWORK_NAMESPACES_NOT_SUPPORTED,
                hint=_WAY_OUT,
            ) from None
        raise ConfigError(
            f"Unknown network namespace '{path.name}'", errno=er.UNKNOWN_NETWORK_NAMESPACE, hint=_known()
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}", errno=er.SETNS_FAILED, hint=_WAY_OUT) from error


def _known() -> str:
    names = sorted(entry.name for entry in FOLDER.iterdir()) if FOLDER.is_dir() else []
    return (
        f"existing namespaces: {', '.join(names)}"
        if names
        else f"to create one, run: ip netns add NAME{another_way(_WAY_OUT)}"
    )


def _enter(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise ConfigError(
            f"setns() failed with error '{os.strerror(number)}'",
            errno=er.SETNS_FAILED,
            hint="to use the namespace, run as root, or with AmbientCapabilities=CAP_SYS_ADMIN in the systemd unit: "
            f"rplctl start{another_way(_WAY_OUT)}",
        )
