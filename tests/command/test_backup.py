"""`backup` at any moment under load, `restore`, `start`: nothing lost, nothing applied twice (WL#9452)."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.kit.replica import Replica, assert_same_tables, wait_until
from tests.kit.servers import MariadbServer
from tests.kit.torture_page import walk

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCHEMA = """
CREATE DATABASE {db};
CREATE TABLE {db}.account (id INT PRIMARY KEY, balance BIGINT NOT NULL, note VARCHAR(200));
CREATE TABLE {db}.history (id BIGINT AUTO_INCREMENT PRIMARY KEY, account INT NOT NULL, amount INT NOT NULL);
USE {db};
INSERT INTO account SELECT seq, 1000, '' FROM seq_1_to_200
"""
LAYOUTS = {
    "file": [],
    "table": ["--master-info-repository", "table", "--relay-log-info-repository", "table"],
    "mixed": ["--master-info-repository", "table"],
}
OPTIONS = {"max_relay_log_size": 65536, "sync_master_info": 40}


class Load:
    """Transfers between accounts, a transaction each, now and then a large one; history rows have no fixed value."""

    def __init__(self, server: MariadbServer, database: str) -> None:
        self._server, self._database = server, database
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.count = 0

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def has_done(self, transactions: int) -> bool:
        assert self._thread.is_alive(), "the load has failed"
        return self.count > transactions

    def _run(self) -> None:
        chance = random.Random(self._database)
        connection = self._server.connect(self._database)
        with connection.cursor() as cursor:
            while not self._done.is_set():
                rows = 400 if chance.random() < 0.01 else chance.randint(1, 6)
                cursor.execute("BEGIN")
                for _ in range(rows):
                    account, amount = chance.randint(1, 200), chance.randint(-50, 50)
                    cursor.execute(f"UPDATE account SET balance=balance+{amount}, note='{'x' * 60}' WHERE id={account}")
                    cursor.execute(f"INSERT INTO history (account, amount) VALUES ({account}, {amount})")
                cursor.execute("COMMIT")
                self.count += 1
                self._done.wait(0.002)
        connection.close()


@contextmanager
def replica_of(server: MariadbServer, folder: Path, layout: str, database: str) -> Iterator[Replica]:
    ours = Replica(folder, spark=False)
    ours.run("init", *LAYOUTS[layout])
    options = ours.datadir / "rplctl.toml"
    lines = [f"{name} = {value}" for name, value in OPTIONS.items()] + [f'replicate_do_db = "{database}"']
    options.write_text("\n".join([*lines, options.read_text()]))
    name, position = server.master_status()
    ours.change_master(server, "--master-log-file", name, "--master-log-pos", str(position))
    server.sql(SCHEMA.format(db=database))
    try:
        yield ours
    finally:
        ours.close()


def go_on(source: MariadbServer, folder: Path, moment: Path, database: str) -> Replica:
    """Restore into a folder of its own and apply all that the source has."""
    restored = Replica(folder, spark=False)
    restored.run("restore", str(moment))
    restored.run("start", "--until-synced", "--max-time", "280")
    assert_same_tables(source, restored, database)
    return restored


def backups_under_load(
    source: MariadbServer, folder: Path, layout: str, moments: int, pause: Callable[[], float]
) -> None:
    database = f"bank_{layout}_{moments}"
    with replica_of(source, folder, layout, database) as ours:
        ours.run("start")
        with Load(source, database) as load:
            ours.run("wait", "--state", "running", "--timeout", "120")
            wait_until(lambda: (ours.datadir / "target.db").exists() and load.has_done(20), 120)
            for number in range(moments):
                threading.Event().wait(pause())
                ours.run("backup", str(folder / f"moment{number}"), "--json")
        for number in range(moments):
            restored = go_on(source, folder / f"again{number}", folder / f"moment{number}", database)
            assert restored.query(f"SELECT 1000*200 + sum(amount) FROM {database}__history") == restored.query(
                f"SELECT sum(balance) FROM {database}__account"
            )
            shutil.rmtree(folder / f"again{number}")
        ours.run("stop")


# mixed: test_backup_servers, and at a hundred moments below
@pytest.mark.long("tests/command/instance/test_backup_lock.py holds the lock; moments at random take minutes.")
@pytest.mark.parametrize("layout", [pytest.param("file", marks=pytest.mark.torture), "table"])
def test_a_backup_at_any_moment_goes_on_without_loss_and_without_repetition(
    mariadb: MariadbServer, tmp_path: Path, layout: str
) -> None:
    chance = random.Random(layout)
    backups_under_load(mariadb, tmp_path, layout, 1, lambda: chance.uniform(0, 2))


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_backups_at_a_hundred_moments(mariadb: MariadbServer, tmp_path: Path, layout: str) -> None:
    moments = len(walk("backups", f"moments, {layout}", range(34)))
    backups_under_load(mariadb, tmp_path, layout, moments, lambda: random.uniform(0, 1.5))


@pytest.mark.parametrize("has_channel", [False, True])
def test_a_lake_is_refused_before_anything_is_copied(tmp_path: Path, has_channel: bool) -> None:
    """Its files cannot be copied at the moment of the position, and `restore` took its database for a SQLite target."""
    ours = Replica(tmp_path, spark=False)
    ours.run("init", "--target", f"delta+file://{tmp_path}/lake")
    if has_channel:
        ours.run("change-master", "--master-host", "127.0.0.1", "--master-user", "x")
    refused = ours.run("backup", str(tmp_path / "moment"), expect=2)
    copy = f"cp -a {ours.datadir} {tmp_path}/lake {tmp_path}/moment"
    assert (
        "cannot copy the lake" in refused.stderr and f"rplctl stop --all; {copy}; rplctl start --all" in refused.stderr
    )
    assert not any((tmp_path / "moment").iterdir())
    (tmp_path / "lake").mkdir(exist_ok=True)
    subprocess.run(copy.split(), check=True)
    assert {path.name for path in (tmp_path / "moment").iterdir()} == {ours.datadir.name, "lake"}
    ours.close()
