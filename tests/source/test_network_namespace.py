"""NETWORK_NAMESPACE: connections are made in it, the process stays outside, what cannot be entered is told at once."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rplctl import mysql_errors as er
from rplctl.errors import ConfigError
from rplctl.source import network_namespace as module
from rplctl.source.network_namespace import check_network_namespace, network_namespace
from tests.cli.conftest import configured, program
from tests.cli.program import Program
from tests.kit.proxy import Proxy
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer

__all__ = ["configured", "program"]  # fixtures
NAME = f"rplctl-{os.getpid()}"
SCHEMA = "DROP DATABASE IF EXISTS d; CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)"


@pytest.fixture(scope="module")
def namespace() -> Iterator[str]:
    made = subprocess.run(["ip", "netns", "add", NAME], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no network namespace can be made here: {made.stderr.strip()} (needs root and iproute2)")
    try:
        subprocess.run(["ip", "-n", NAME, "link", "set", "lo", "up"], check=True)
        yield NAME
    finally:
        subprocess.run(["ip", "netns", "del", NAME], check=True)


def here() -> int:
    return Path("/proc/thread-self/ns/net").stat().st_ino


def test_a_socket_belongs_to_the_namespace_and_the_thread_comes_back(namespace: str) -> None:
    before = here()
    with network_namespace(namespace):
        assert here() != before
        listener = socket.create_server(("127.0.0.1", 0))
    assert here() == before
    with contextlib.closing(listener):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listener.getsockname(), 5)
        with network_namespace(namespace):
            socket.create_connection(listener.getsockname(), 5).close()
    with pytest.raises(ZeroDivisionError), network_namespace(namespace):
        raise ZeroDivisionError
    assert here() == before


@pytest.mark.parametrize("name", ["nowhere", "../../../proc/self/ns/net", ".", "..", "a/b"])
def test_an_unknown_name_is_refused_and_changes_nothing(configured: Program, name: str) -> None:
    before = configured("show-status", "--json").out
    done = configured("change-master", "--network-namespace", name)
    assert done.code == 78 and "ERROR 13406: Unknown network namespace" in done.err
    assert configured("show-status", "--json").out == before


def test_without_the_right_to_enter_it_is_refused(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    child = os.fork()
    if not child:  # as another account, in a process that ends at once
        os.setuid(65534)
        with contextlib.suppress(BaseException):
            try:
                check_network_namespace(namespace)
            except ConfigError as error:
                os._exit(0 if error.errno == er.SETNS_FAILED and "CAP_SYS_ADMIN" in error.hint else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_namespaces_the_platform_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HOME", tmp_path / "none")
    with pytest.raises(ConfigError, match="not supported on this platform") as caught:
        check_network_namespace("any")
    assert caught.value.errno == 13405


@pytest.mark.slow
def test_a_source_that_only_the_namespace_reaches_is_replicated(
    source: MariadbServer, replica: Replica, namespace: str
) -> None:
    source.sql("INSERT INTO d.t VALUES (1), (2)")
    with network_namespace(namespace):
        proxy = Proxy(source.port)
    with proxy:
        replica.set_up(source, change=["--master-port", str(proxy.port), "--network-namespace", namespace])
        replica.run("start", "--until-synced")
    assert replica.query("SELECT a FROM d__t ORDER BY a") == [(1,), (2,)]
    assert replica.status()["Network_Namespace"] == namespace
