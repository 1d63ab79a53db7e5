"""Fixtures shared by all tests: private servers (tests/kit/servers.py), one of each kind a session, more on demand.

A server that is not on the machine skips its tests, and the skip says what to install (`make test` prints the list).
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.kit import fork_server, progress, times
from tests.kit.private_server import PrivateServer, ServerUnavailable, remove_left_folders, short_folder
from tests.kit.replica import Replica
from tests.kit.servers import Mariadb105Server, Mariadb118Server, MariadbServer, MysqlServer, PostgresqlServer
from tests.kit.torture_page import PROPERTY, drained, run_seed, write_page

# A run starts hundreds of Pythons: each would compile all of rplctl again where nothing may be kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The folders of tests, too, are in memory where there is enough: a run waits for thousands of syncs otherwise.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(short_folder()))

# The same examples each time, and none is an error for the time it takes: a run must not end well or badly by chance.
settings.register_profile(
    "suite", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

Server = TypeVar("Server", bound=PrivateServer)
Factory = Callable[..., Server]

# Which fixture makes a test a server test: such tests get the marker by themselves, so that `-m` never misses one.
MARKER_OF_FIXTURE = {
    "mariadb": "mariadb",
    "mariadb_factory": "mariadb",
    "mariadb_105_factory": "mariadb",
    "mariadb_118_factory": "mariadb",
    "mysql": "mysql",
    "mysql_factory": "mysql",
    "postgresql": "postgresql",
    "postgresql_factory": "postgresql",
}


NOT_QUICK = {"slow", "spark", *MARKER_OF_FIXTURE.values()}  # what `make quick` leaves out

LONG_TESTS: set[str] = set()
STARTED: list[PrivateServer] = []  # servers that run, each for several tests
_VARIABLES = pytest.StashKey[dict[str, str]]()


def wants_torture(config: pytest.Config) -> bool:
    return "torture" in config.option.markexpr.replace("not torture", "")


def pytest_configure(config: pytest.Config) -> None:
    if wants_torture(config):
        run_seed()  # before there are workers
    if not hasattr(config, "workerinput"):
        remove_left_folders()
    progress.install(config)
    times.install(config)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Each report tells what the test's matrices did: it gets here from a worker, too, and from one that dies later."""
    report = yield
    if call.when == "call" and (counted := drained()):
        report.user_properties.append((PROPERTY, counted))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    item.stash[_VARIABLES] = _variables()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """A test that leaves a variable behind changes what all programs that later tests begin do."""
    yield
    if left := dict(item.stash[_VARIABLES].items() ^ _variables().items()):
        for name in left:
            os.environ.pop(name, None)
        os.environ.update(**item.stash[_VARIABLES])
        raise AssertionError(f"environment variables were left changed: {sorted(left)}")


def _variables() -> dict[str, str]:
    """But for what a Spark in this process sets for its own programs."""
    own = ("PYTEST_", "SPARK_", "PYSPARK_", "JAVA_HOME", "PYTHONSAFEPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    LONG_TESTS.update(getattr(node, "workeroutput", {}).get("long tests", ()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if wants_torture(config):
        terminalreporter.section("torture")
        outcomes = ("passed", "failed", "error", "skipped")
        reports = {outcome: terminalreporter.getreports(outcome) for outcome in outcomes}
        write_page(terminalreporter.write_line, LONG_TESTS, reports)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is made here lives as long as the run: no collection of garbage looks for any among it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no items of functions that the run leaves out as a whole: half of the cases, in each worker."""
    config = collector.config
    if any("::" in argument for argument in config.args):
        return None
    left_out = {name for name in ("huge", "torture") if name not in config.option.markexpr}
    marks = [mark for mark in getattr(obj, "pytestmark", ()) if isinstance(obj, FunctionType)]
    if config.option.markexpr == "not long":
        left_out |= {mark.name for mark in marks if mark.name == "long" and "keeps" not in mark.kwargs}
    return [] if left_out.intersection(mark.name for mark in marks) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    LONG_TESTS.update(item.nodeid for item in items if item.get_closest_marker("torture"))
    if hasattr(config, "workeroutput"):
        config.workeroutput["long tests"] = sorted(LONG_TESTS)
    for marker in ("huge", "torture"):  # gigabytes and minutes: only when asked for
        if marker not in config.option.markexpr:
            items[:] = [item for item in items if item.get_closest_marker(marker) is None]
    for item in items:
        _keep_in_make_test(item)
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in MARKER_OF_FIXTURE:
                item.add_marker(MARKER_OF_FIXTURE[fixture])
    turns = {item: _turn(item) for item in items}
    first: dict[Path, int] = {}
    for item, turn in turns.items():
        if turn:
            first[item.path] = min(turn, first.get(item.path, turn))
    items.sort(key=lambda item: first[item.path] if turns[item] else 0)


def _keep_in_make_test(item: pytest.Item) -> None:
    """Take the marker `long` off the cases that its `keeps`, a regular expression of their names, leaves in."""
    case = getattr(getattr(item, "callspec", None), "id", "")
    item.own_markers = [
        mark
        for mark in item.own_markers
        if mark.name != "long" or not re.search(mark.kwargs.get("keeps", "(?!)"), case)
    ]


def _turn(item: pytest.Item) -> int:
    """Quick tests first: failures show early. Then whole modules, so that each starts its servers once, the long ones
    before the short: at the end no worker is busy for a minute with the last test.
    """
    marks = {mark.name for mark in item.iter_markers()}
    order = [{"timeout"}, {"spark"}, {"slow"}, {*MARKER_OF_FIXTURE.values()}]  # own timeouts: what takes longest
    return next((turn for turn, names in enumerate(order, 1) if names & marks and marks & NOT_QUICK), 0)


def servers_of(kind: type[Server]) -> Iterator[Factory[Server]]:
    """`factory("--option", …)` → a started server; all are killed and deleted at the end of the fixture's life."""
    servers: list[Server] = []

    def make(*options: str) -> Server:
        try:
            server = kind(options)
        except ServerUnavailable as reason:
            pytest.skip(str(reason))
        servers.append(server)
        server.start()
        STARTED.append(server)
        return server

    yield make
    for server in servers:
        STARTED.remove(server)
        server.close()


@pytest.fixture(autouse=True)
def rows_without_owner(request: pytest.FixtureRequest) -> None:
    """An instance adopts what the test before left in a server that both use: its rows have no owner (design D29)."""
    if set(MARKER_OF_FIXTURE.values()) & {mark.name for mark in request.node.iter_markers()}:
        for server in STARTED:
            if server.is_running:
                server.forget_owners()


@pytest.fixture(scope="module", autouse=True)
def _binary_log_of_this_module() -> Iterator[None]:
    """No module reads a binary log that another has written or purged: a test may read from the log's beginning."""
    yield
    for server in STARTED:
        if isinstance(server, MariadbServer) and server.is_running and not server.is_log_new():
            server.reset_binary_log()


@pytest.fixture(scope="module")
def mariadb_factory() -> Iterator[Factory[MariadbServer]]:
    yield from servers_of(MariadbServer)


@pytest.fixture(scope="module")
def mariadb_105_factory() -> Iterator[Factory[Mariadb105Server]]:
    yield from servers_of(Mariadb105Server)


@pytest.fixture(scope="module")
def mariadb_118_factory() -> Iterator[Factory[Mariadb118Server]]:
    yield from servers_of(Mariadb118Server)


@pytest.fixture(scope="module")
def mysql_factory() -> Iterator[Factory[MysqlServer]]:
    yield from servers_of(MysqlServer)


@pytest.fixture(scope="module")
def postgresql_factory() -> Iterator[Factory[PostgresqlServer]]:
    yield from servers_of(PostgresqlServer)


def _shared(kind: type[Server]) -> Iterator[Server]:
    """One started server for the whole session: tests make databases of their own in it and must not stop it."""
    factory = servers_of(kind)
    yield next(factory)()
    next(factory, None)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    yield from _shared(MariadbServer)


@pytest.fixture(scope="session")
def mysql() -> Iterator[MysqlServer]:
    yield from _shared(MysqlServer)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresqlServer]:
    yield from _shared(PostgresqlServer)


@pytest.fixture
def replica(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Replica]:
    """An instance folder, with a Spark where the test is marked so; nothing of it runs on."""
    made = Replica(tmp_path, spark=request.node.get_closest_marker("spark") is not None)
    yield made
    made.close()


@pytest.fixture
def children_forked() -> Iterator[None]:
    """What a verb starts that a test calls in its own process is forked from a program that is loaded already."""
    with fork_server.children_forked():
        yield


@pytest.fixture
def source(mariadb: MariadbServer, request: pytest.FixtureRequest) -> MariadbServer:
    """The session's MariaDB with an empty binary log and the SCHEMA of the test's module."""
    mariadb.sql("RESET MASTER")
    mariadb.sql(request.module.SCHEMA)
    return mariadb


@pytest.fixture(scope="session", autouse=True)
def _kernels() -> None:
    """Compiled before the first test, once for all workers: a receiver that a test starts and stops at once would else
    compile for so long on a slow machine that it is killed.
    """
    from rplctl.event.kernel_cache import is_compiled
    from rplctl.event.warm_up import warm_up

    if not is_compiled():
        warm_up()
    fork_server.os_environment()  # as it is before a test changes it


def processes_of_this_worker() -> list[str]:
    """Return the commands of the receivers and appliers that tests of this worker have started."""
    ours = f"PYTEST_XDIST_TESTRUNUID={os.environ.get('PYTEST_XDIST_TESTRUNUID')}\0".encode()
    worker = f"PYTEST_XDIST_WORKER={os.environ.get('PYTEST_XDIST_WORKER')}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command, variables = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
            if b"\0-m\0rplctl." in command and ours in variables and worker in variables:
                found.append(command.replace(b"\0", b" ").decode())
    return found


@pytest.fixture(scope="session", autouse=True)
def _no_process_left() -> Iterator[None]:
    """A receiver or applier that outlives the tests of its worker would work on in folders that are gone."""
    yield
    deadline = time.monotonic() + 60  # one that was stopped has let go of its lock before it ends
    while (left := processes_of_this_worker()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left, "these processes still run"


@pytest.fixture(autouse=True)
def _no_half_started_spark() -> Iterator[None]:
    """An applier in a test's own process does not wait for the Spark that it starts; the next test must not meet it."""
    yield
    for thread in threading.enumerate():
        if thread.name == "rplctl-spark":
            thread.join()


@pytest.fixture(autouse=True)
def _hermetic_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The operator's own settings must not leak into tests: no RPLCTL_* option, no personal configuration."""
    for name in [
        name
        for name in os.environ
        if name.startswith("RPLCTL_") and name not in ("RPLCTL_SERVERS", "RPLCTL_TEST_MYSQL")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
