"""Another user of this machine against a running Spark of ours: every socket that listens, with real messages.

The second user is the kernel's (setuid to nobody), so it needs root. That the attack is one is seen where our defence
is taken away: there it stops the executor, and what remains is the limit of attempts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier.spark import session as spark
from rplctl.applier.spark.failure import TasksFailed
from rplctl.applier.spark.own_gateway import ForeignListener, OwnSocket, listeners
from rplctl.applier.spark.pipeline import Pipeline
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.schema.plan import Catalog
from tests.applier import stranger

NOBODY = 65534
IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="becoming another user needs root")
pytestmark = [pytest.mark.spark, pytest.mark.slow]
REFUSALS = {"", "ConnectionResetError", "BrokenPipeError", "PermissionError"}
RPC_FAILURES = {2, 5, 8}  # ChunkFetchFailure, RpcFailure, StreamFailure
PY4J_ERROR = b"!"


@dataclass
class Session:
    context: Any
    channel: Channel
    java: int


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    from pyspark import SparkContext

    channel = Channel("", tmp_path)
    context = spark.open_session(Config(datadir=tmp_path), "", channel.run_folder, "-Xshare:auto")
    try:
        assert context.parallelize(range(4), 2).map(lambda value: value * value).collect() == [0, 1, 4, 9]
        assert SparkContext._gateway is not None
        yield Session(context, channel, SparkContext._gateway.proc.pid)
    finally:
        spark.close_session(context, channel.run_folder)


def family_of(pid: int) -> set[int]:
    """The process and all that come from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def sockets_of(pids: set[int]) -> set[str]:
    """Inodes."""
    found = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[8:-1])
    return found


def listening(pids: set[int]) -> tuple[set[tuple[str, int]], set[str]]:
    """(address, port) of TCP, paths of Unix sockets."""
    inodes = sockets_of(pids)
    tcp = set()
    for name in ("tcp", "tcp6"):
        for line in Path("/proc/net", name).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, _, port = fields[1].rpartition(":")
                tcp.add((address, int(port, 16)))
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    accepts = {row[7] for row in rows if len(row) > 7 and row[6] in inodes and int(row[3], 16) & 0x10000}
    return tcp, accepts


def tried_by_nobody(places: list[str]) -> list[tuple[str, str, str]]:
    command = [sys.executable, str(Path(stranger.__file__)), str(NOBODY), *places]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return [(place, what, came) for place, what, came in json.loads(done.stdout)]


def is_refusal(came: str) -> bool:
    """Nothing, a closed connection, a failure of Spark's protocol, or py4j's error."""
    if came in REFUSALS:
        return True
    data = bytes.fromhex(came)
    return data.startswith(PY4J_ERROR) or (len(data) > 8 and data[8] in RPC_FAILURES)


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.mark.long(
    "test_a_port_that_another_user_listens_on_is_not_spoken_to holds it for the port; a second user is rare."
)
@needs_root
def test_another_user_gets_nothing_from_any_socket_and_stops_nothing(session: Session) -> None:
    tcp, unix = listening(family_of(session.java) | {os.getpid()})
    assert {address for address, _ in tcp} <= LOOPBACK and len(tcp) >= 3, "py4j, RPC and blocks"
    assert unix, "workers are spoken to by Unix sockets"
    assert all(path.startswith("/") for path in unix), "an abstract one is everybody's"
    came = tried_by_nobody([*(str(port) for _, port in tcp), *unix])
    assert [row for row in came if not is_refusal(row[2])] == []
    assert {row[2] for row in came if row[0] in unix} == {"PermissionError"}
    assert session.context.parallelize(range(6), 3).map(lambda value: value + 1).collect() == [1, 2, 3, 4, 5, 6]


@pytest.mark.long("test_a_port_that_another_user_listens_on_is_not_spoken_to stays; modes are set at one place.")
def test_files_are_private_and_what_authenticates_is_nowhere_to_be_read(session: Session) -> None:
    folder = session.channel.run_folder / "spark"
    modes = {}
    for path in [folder, *folder.rglob("*")]:
        with suppress(FileNotFoundError):  # a task's socket comes and goes
            modes[path] = path.lstat().st_mode & 0o077
    assert [path for path, open_to in modes.items() if open_to and not path.is_symlink()] == []
    assert len(modes) > 3
    conf = dict(session.context.getConf().getAll())
    assert conf["spark.authenticate"] == "true"
    assert not [name for name in conf if "secret" in name or "token" in name]
    for pid in family_of(session.java):
        for part in ("cmdline", "environ"):
            with suppress(ProcessLookupError, FileNotFoundError):  # it has ended
                assert b"secret" not in Path(f"/proc/{pid}/{part}").read_bytes().lower()


@needs_root
@pytest.mark.torture  # the control: of the attack, not of us
def test_without_our_defence_the_attack_stops_the_executor_and_the_job_ends_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rplctl.applier.spark.cluster.KEEP_OUT", {})
    channel = Channel("", tmp_path)
    context = spark.open_session(Config(datadir=tmp_path), "", channel.run_folder, "-Xshare:auto")
    try:
        pipeline = Pipeline(lambda: context)
        pipeline.begin()
        tried_by_nobody([str(context.getConf().get("spark.driver.port"))])
        with pytest.raises(TasksFailed, match=r"^\d+ attempts at 2 tasks failed: "):
            pipeline.run(range(2), Catalog(), lambda *_: None)
    finally:
        spark.close_session(context, channel.run_folder)
    assert len(capfd.readouterr().err) < 16 << 20


@needs_root
def test_a_port_that_another_user_listens_on_is_not_spoken_to() -> None:
    program = (
        f"import os, socket; os.setuid({NOBODY}); s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True); c, _ = s.accept(); print(repr(c.recv(100)), flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        assert listeners(port) == {NOBODY}
        with pytest.raises(ForeignListener, match=f"another user listens on port {port} of Spark's Java process"):
            OwnSocket().connect(("127.0.0.1", port))
        assert other.stdout.readline() == "b''\n", "not even the token was said"
