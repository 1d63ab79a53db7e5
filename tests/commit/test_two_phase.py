"""Two-phase commit on real servers: killed at every crash point of WL#3970, data and position agree after the start."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import Channel
from rplctl.commit import ambiguous_commit as in_doubt
from rplctl.commit.participants.choice import pages_path
from rplctl.commit.position_store import open_position_store, resolve, shown_mode
from rplctl.commit.resolve import finish_prepared, terminate_predecessor
from rplctl.commit.step import CommitMode, CommitStep
from rplctl.commit.transaction import commit_after, commit_group
from rplctl.commit.two_phase import XaPositionStore
from rplctl.commit.xid import xid_prefix
from rplctl.config import Config
from rplctl.errors import ConfigError, LockBusy, RplError, TargetError
from rplctl.repository import open_relay_log_info
from rplctl.target import open_engine, open_target
from rplctl.target.base import Target
from tests.commit.xa_probe import TABLE, apply_next, at, config_of, insert, killed_at, numbers, prepare
from tests.kit.private_server import PrivateServer
from tests.kit.servers import MariadbServer, MysqlServer, PostgresqlServer

ROLLED_BACK = ("crash_commit_before", "crash_commit_after_prepare")
COMMITTED = (
    "crash_commit_after_log",
    "crash_commit_between_engines",
    "crash_commit_before_unlog",
    "crash_commit_after",
)
KINDS = [pytest.param(kind, marks=getattr(pytest.mark, kind)) for kind in ("mariadb", "mysql", "postgresql")]
EACH_SIDE = [  # of the decision; test_fault_matrix has the others
    pytest.param(point, marks=[] if point.endswith(("_prepare", "_log")) else pytest.mark.torture)
    for point in ROLLED_BACK + COMMITTED
]
FOREIGN = "someone-else"  # a prepared transaction that is not ours


@pytest.fixture
def server(request: pytest.FixtureRequest) -> PrivateServer:
    found: PrivateServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def own_mariadb(mariadb_factory: Callable[..., MariadbServer]) -> MariadbServer:
    """One that tests may kill."""
    return mariadb_factory()


def prepared(server: PrivateServer) -> list[str]:
    if isinstance(server, PostgresqlServer):
        return [row[0] for row in server.sql("SELECT gid FROM pg_prepared_xacts")]
    return [row[3] if isinstance(row[3], str) else row[3].decode() for row in server.sql("XA RECOVER")]


@pytest.fixture
def foreign(server: PrivateServer) -> Iterator[str]:
    """Prepared by somebody else, on a table of its own, and still there afterwards."""
    is_postgresql = isinstance(server, PostgresqlServer)
    schema = "SCHEMA" if is_postgresql else "DATABASE"
    server.sql(f"CREATE {schema} IF NOT EXISTS other")
    server.sql("CREATE TABLE IF NOT EXISTS other.t (a INTEGER)")
    if is_postgresql:
        server.sql(f"BEGIN; INSERT INTO other.t VALUES (1); PREPARE TRANSACTION '{FOREIGN}'")
        end = f"ROLLBACK PREPARED '{FOREIGN}'"
    else:
        server.sql(f"XA START '{FOREIGN}'; INSERT INTO other.t VALUES (1); XA END '{FOREIGN}'; XA PREPARE '{FOREIGN}'")
        end = f"XA ROLLBACK '{FOREIGN}'"
    yield FOREIGN
    still_there = prepared(server)
    deadline = time.monotonic() + 180
    while True:  # MariaDB: 1397 until the connection that prepared it is gone
        try:
            server.sql(end)
            break
        except Exception:
            if time.monotonic() > deadline:
                raise
    assert still_there == [FOREIGN]


@pytest.mark.long(
    "One crash point of MariaDB stays; `crash-test` walks the others.",
    keeps=r"^crash_commit_after_log-mariadb$",
)
@pytest.mark.parametrize("server", KINDS, indirect=True)
@pytest.mark.parametrize("point", ROLLED_BACK + COMMITTED)
def test_killed_at_a_crash_point_it_is_rolled_back_or_committed_everywhere(
    server: PrivateServer, foreign: str, tmp_path: Path, point: str
) -> None:
    config = config_of(tmp_path, server.url())
    prepare(config)
    assert apply_next(config) == 1
    killed_at(point, lambda: apply_next(config))
    left = [xid for xid in prepared(server) if xid != foreign]
    assert len(left) == (point in ("crash_commit_after_prepare", "crash_commit_after_log"))
    assert apply_next(config) == (2 if point in ROLLED_BACK else 3)
    assert numbers(config) == ([1, 2] if point in ROLLED_BACK else [1, 2, 3])
    assert prepared(server) == [foreign]


@pytest.mark.mariadb
@pytest.mark.parametrize("point", EACH_SIDE)
def test_a_shadow_page_file_decides_as_the_line_does(mariadb: MariadbServer, tmp_path: Path, point: str) -> None:
    config = config_of(tmp_path, mariadb.url(), prepared_position="pages")
    prepare(config)
    apply_next(config)
    killed_at(point, lambda: apply_next(config))
    assert pages_path(Channel("", tmp_path)).exists()
    assert apply_next(config) == (2 if point in ROLLED_BACK else 3)
    assert numbers(config) == ([1, 2] if point in ROLLED_BACK else [1, 2, 3])
    assert prepared(mariadb) == []
    assert not pages_path(Channel("", tmp_path)).exists(), "it is there only while an applier runs"


@pytest.mark.long("One crash point stays.", keeps=r"^crash_commit_after_log$")
@pytest.mark.mariadb
@pytest.mark.parametrize("point", ROLLED_BACK + COMMITTED)
def test_a_table_in_a_crash_safe_engine_is_the_last_participant(
    mariadb: MariadbServer, tmp_path: Path, point: str
) -> None:
    """WL#5125 variant 5: the row in Aria says by its position which prepared transaction it decided."""
    config = config_of(tmp_path, mariadb.url(), relay_log_info_repository="TABLE")
    prepare(config, "Aria")
    apply_next(config)
    killed_at(point, lambda: apply_next(config))
    assert apply_next(config) == (2 if point in ROLLED_BACK else 3)
    assert numbers(config) == ([1, 2] if point in ROLLED_BACK else [1, 2, 3])
    assert prepared(mariadb) == []


@pytest.mark.long("One form of the decision stays.", keeps=r"^True$")
@pytest.mark.mariadb
@pytest.mark.parametrize("decided", [False, True])
def test_the_target_killed_between_prepare_and_commit(
    own_mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: bool
) -> None:
    """kill -9 of the server, not of us: what is decided is finished by the retry, without applying again."""
    server = own_mariadb
    config = config_of(tmp_path, server.url())
    prepare(config)
    apply_next(config)
    target = open_target(config.target_url)
    store = open_position_store(config, Channel("", tmp_path), target.engine)
    assert isinstance(store, XaPositionStore)
    info = store.open()
    really_prepare = store.participant.prepare

    def kill_and_prepare(*arguments: Any) -> None:
        if decided:
            really_prepare(*arguments)
        server.kill()
        if not decided:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.participant, "prepare", kill_and_prepare)
    monkeypatch.setattr(in_doubt, "ASKED_FOR_S", 1.0)
    applied: list[int] = []

    def apply() -> None:
        applied.append(1)
        insert(target, 2)

    def step() -> None:
        commit_group(target, store, CommitStep(info, at(2)), apply)

    with pytest.raises((TargetError, OSError)):
        step()
    server.start()
    monkeypatch.undo()
    if decided:
        with pytest.raises(TargetError, match="decided and not finished"):
            commit_group(target, store, CommitStep(info, at(3)), lambda: None)
        step()
        assert (applied, store.decided) == ([1], "")
    target.close()
    assert apply_next(config) == (3 if decided else 2)
    assert numbers(config) == list(range(1, 4 if decided else 3))
    assert prepared(server) == []


@pytest.mark.mariadb
def test_a_frozen_predecessor_that_holds_a_prepared_transaction_is_ended(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    """MariaDB answers 1397 to XA COMMIT while the owner's connection lives."""
    config = config_of(tmp_path, mariadb.url())
    prepare(config)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        target = open_target(config.target_url)
        target.fence("")
        store = open_position_store(config, Channel("", tmp_path), target.engine)
        assert isinstance(store, XaPositionStore)
        info = store.open()
        store.participant.prepare = lambda *_: (os.write(write, b"x"), signal.pause())  # type: ignore[method-assign,func-returns-value,assignment]
        commit_group(target, store, CommitStep(info, at(1)), lambda: insert(target, 1))
        os._exit(1)
    try:
        assert os.read(read, 1) == b"x"
        os.kill(child, signal.SIGSTOP)
        assert len(prepared(mariadb)) == 1
        engine = open_engine(config.target_url)
        terminate_predecessor(Channel("", tmp_path), engine)
        engine.dispose()
        assert apply_next(config) == 1
        assert (numbers(config), prepared(mariadb)) == ([1], [])
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.mariadb
def test_a_full_disk_at_the_decision_rolls_both_back(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(tmp_path, mariadb.url())
    prepare(config)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    def apply(target: Target, number: int) -> None:
        insert(target, number)
        monkeypatch.setattr("rplctl.durable.write_all", full)

    with pytest.raises(RplError, match="No space left"):
        apply_next(config, apply)
    monkeypatch.undo()
    assert (numbers(config), prepared(mariadb)) == ([], [])
    assert apply_next(config) == 1


@pytest.mark.mariadb
def test_rollback_of_a_failed_transaction_does_not_move_the_position(mariadb: MariadbServer, tmp_path: Path) -> None:
    """WL#3970: the rollback of STOP SLAVE or a duplicate key; the next start begins at the transaction's start."""
    config = config_of(tmp_path, mariadb.url())
    prepare(config)
    apply_next(config)

    def duplicate(target: Target, _: int) -> None:
        insert(target, 7)
        insert(target, 7)

    with pytest.raises(Exception, match="Duplicate entry '7'"):
        apply_next(config, duplicate)
    assert (numbers(config), prepared(mariadb)) == ([1], [])
    assert apply_next(config) == 2


@pytest.mark.mariadb
def test_without_two_phases_the_position_follows_without_a_prepare_line(mariadb: MariadbServer, tmp_path: Path) -> None:
    """WL#3970: a participant (MyISAM) cannot do it."""
    config = config_of(tmp_path, mariadb.url())
    prepare(config)
    mariadb.sql(f"ALTER TABLE {TABLE} ENGINE=MyISAM")
    target = open_target(config.target_url)
    channel = Channel("", tmp_path)
    store = open_position_store(config, channel, target.engine)
    seen: list[bytes] = []

    def apply() -> None:
        insert(target, 1)
        seen.append(channel.relay_log_info_path.read_bytes())

    commit_after(target, store, CommitStep(store.open(), at(1)), apply)
    assert b"prepared:" not in seen[0] and prepared(mariadb) == []
    assert open_relay_log_info(config, channel, lambda: target.engine).read().is_at(at(1))
    store.close(at(1))
    target.close()


@pytest.mark.mariadb
def test_an_operators_edit_of_the_file_stops_the_applier_and_the_target_is_rolled_back(
    mariadb: MariadbServer, tmp_path: Path
) -> None:
    config = config_of(tmp_path, mariadb.url())
    prepare(config)
    engine = open_engine(config.target_url)
    repository = open_relay_log_info(config, Channel("", tmp_path), lambda: engine)

    def edited(target: Target, number: int) -> None:
        insert(target, number)
        repository.flush(at(9), force=True)

    with pytest.raises(LockBusy, match="nothing was applied"):
        apply_next(config, edited)
    engine.dispose()
    assert (numbers(config), prepared(mariadb)) == ([], [])
    assert apply_next(config) == 10, "the edited position counts at the next start (WL#5125)"


@pytest.mark.long("A change-master right after a kill between PREPARE and COMMIT is rare.")
@pytest.mark.mariadb
@pytest.mark.parametrize("position", ["line", "pages"])
def test_what_was_decided_is_settled_before_the_position_goes_elsewhere(
    mariadb: MariadbServer, tmp_path: Path, position: str
) -> None:
    """Killed past the decision; CHANGE MASTER, switch-repo and another commit mode find it done."""
    config = config_of(tmp_path, mariadb.url(), prepared_position=position)
    channel = Channel("", tmp_path)
    auto = replace(config, commit_mode="auto")
    engine = open_engine(config.target_url)
    moves: tuple[Callable[[], None], ...] = (
        lambda: resolve(config, channel, engine),
        lambda: finish_prepared(config, channel, lambda: engine),
        lambda: resolve(auto, channel, engine),
    )
    for number, move in enumerate(moves):
        prepare(config)
        killed_at("crash_commit_after_log", lambda: apply_next(config))
        move()
        assert (numbers(config), prepared(mariadb)) == ([1], []), number
        stored = open_relay_log_info(config, channel, lambda: engine).read()
        assert replace(stored, left_at="") == at(1), number
        assert not pages_path(channel).exists()
    assert apply_next(auto) == 2
    assert apply_next(config) == 3, "from mode marker back to xa"
    engine.dispose()


@pytest.mark.mariadb
def test_xa_is_not_used_where_it_adds_nothing_or_decides_nothing(mariadb: MariadbServer, tmp_path: Path) -> None:
    channel = Channel("", tmp_path)
    for rep_engine, mode in (("InnoDB", CommitMode.TRANSACTION), ("MyISAM", CommitMode.MARKER)):
        config = config_of(tmp_path, mariadb.url(), relay_log_info_repository="TABLE")
        prepare(config, rep_engine)
        engine = open_engine(config.target_url)
        store = open_position_store(config, channel, engine)
        assert store.mode is mode
        assert shown_mode(config, store).startswith(f"{mode.value} (not xa: ")
        engine.dispose()


def test_sqlite_cannot_prepare(tmp_path: Path) -> None:
    config = Config(tmp_path, commit_mode="xa")
    with pytest.raises(ConfigError, match="sqlite cannot prepare"):
        open_position_store(config, Channel("", tmp_path), open_engine(config.target_url))


@pytest.mark.long("The cases of the other kinds hold the promise; those of MySQL repeat it.")
@pytest.mark.mysql
def test_a_user_who_may_not_recover_is_told_the_grant(mysql: MysqlServer, tmp_path: Path) -> None:
    config = config_of(tmp_path, mysql.url())
    prepare(config)
    mysql.sql("DROP USER IF EXISTS plain; CREATE USER plain IDENTIFIED BY 'plain'; GRANT ALL ON rplctl.* TO plain")
    plain = replace(config, target=mysql.url().replace("rpl:rpl@", "plain:plain@") + "?ssl_mode=REQUIRED")
    engine = open_engine(plain.target_url)
    with pytest.raises(RplError) as caught:
        open_position_store(plain, Channel("", tmp_path), engine)
    assert "XA_RECOVER_ADMIN" in caught.value.hint
    engine.dispose()


@pytest.mark.postgresql
def test_postgresql_without_slots_is_told_the_setting(
    postgresql_factory: Callable[..., PostgresqlServer], tmp_path: Path
) -> None:
    server = postgresql_factory("-c", "max_prepared_transactions=0")
    config = config_of(tmp_path, server.url())
    prepare(config)
    engine = open_engine(config.target_url)
    with pytest.raises(ConfigError) as caught:
        open_position_store(config, Channel("", tmp_path), engine)
    assert "max_prepared_transactions" in caught.value.hint
    engine.dispose()


def test_names_are_short_ours_and_the_same_for_the_same_step(tmp_path: Path) -> None:
    from rplctl.commit.xid import number_of, xid_of

    prefix = xid_prefix(Channel("", tmp_path))
    assert prefix == xid_prefix(Channel("", tmp_path)) != xid_prefix(Channel("west", tmp_path))
    xid = xid_of(prefix, at(1))
    assert xid == xid_of(prefix, at(1)) != xid_of(prefix, at(2))
    assert (len(xid), 0 < number_of(xid) < 1 << 64) == (49, True)
