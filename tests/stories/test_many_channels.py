"""256 channels of one instance, 40 of them alive in one process with one Spark (WL#2775).

Each follows a database of its own on one real source while that is written to. A wrong password and a damaged relay log
are told of their channels and change nothing for the others; in the end every table is what the source has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rplctl.channel import MAX_CHANNELS, Channel
from rplctl.command.change_filter import change_filter
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.config import load_config
from rplctl.info import MasterInfo
from rplctl.relay_log.index import RelayLogIndex
from rplctl.repository.file import FileRepository
from rplctl.repository.record import MASTER_INFO
from tests.kit.load import Load
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.torture, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

LIVE = [f"c{number:02d}" for number in range(40)]
BAD, DAMAGED = "c17", "c23"
WITH_TABLES = LIVE[::5]
PATIENCE_S = 600
TABLE = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, note VARCHAR(60) CHARACTER SET utf8mb4)"
WRITE = (
    "BEGIN; UPDATE {0}.counter SET n=n+1; INSERT INTO {0}.t (n, note) SELECT n, REPEAT('äx', n % 20) FROM {0}.counter; "
    "UPDATE {0}.t SET note='seen' WHERE id=(SELECT n-3 FROM {0}.counter); COMMIT"
)


class Instance:
    """256 channels; those of LIVE read `source`, the others a host that is nowhere and are never started."""

    def __init__(self, folder: Path, source: MariadbServer, init: Sequence[str]) -> None:
        self.source = source
        self.of = {name: Replica(folder, name) for name in LIVE}
        self.datadir = self.of[BAD].datadir
        self("init", *init)
        log_name, position = source.master_status()
        for name in LIVE:
            source.sql(f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; USE {name}; {TABLE}")
            source.sql("CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT); INSERT INTO counter VALUES (1, 0)", name)
            changes = MasterChanges(
                master_host=source.host,
                master_port=source.port,
                master_user="rpl",
                password="wrong" if name == BAD else "rpl",
                master_log_file=log_name,
                master_log_pos=position,
                master_connect_retry=1,
            )
            change_master(load_config(self.datadir, name), name, changes)
            change_filter(load_config(self.datadir, name), name, {"replicate_do_db": name})
        for number in range(len(LIVE), MAX_CHANNELS):
            idle = MasterInfo(
                channel_name=f"idle{number}", master_id=number + 1, host="h", master_log_name="bin.000001"
            )
            FileRepository(MASTER_INFO, Channel(idle.channel_name, self.datadir), 1).flush(idle, force=True)
        for name in WITH_TABLES:
            self("switch-repo", "--to", "table", "--channel", name)

    def __call__(self, *arguments: str, **options: Any) -> str:
        return self.of[BAD].run(*arguments, **options).stdout

    def channels(self) -> dict[str, dict[str, Any]]:
        """What show-status says of each; every one of them is there."""
        rows = {row["Channel_Name"]: row for row in json.loads(self("show-status", "--json"))}
        assert len(rows) == MAX_CHANNELS
        return {name: rows[name] for name in LIVE}

    def applied(self) -> dict[str, tuple[str, int]]:
        return {
            name: (row["Relay_Master_Log_File"], row["Exec_Master_Log_Pos"]) for name, row in self.channels().items()
        }

    def wait_for_progress(self, *but: str) -> None:
        """Every channel applies, but these."""
        before = self.applied()
        names = set(LIVE) - set(but)

        def all_went_on() -> bool:
            now = self.applied()
            names.difference_update(name for name in list(names) if now[name] > before[name])
            return not names

        self.wait_until(all_went_on)

    def wait_until(self, condition: Callable[[], object]) -> None:
        try:
            wait_until(condition, PATIENCE_S, 0.5)
        except AssertionError:
            lines = "\n".join(f"{name} {row}" for name, row in self.channels().items())
            raise AssertionError(lines + self.of[LIVE[0]].logs()) from None

    def pids(self) -> dict[str, int | None]:
        return {name: replica.pid("applier") for name, replica in self.of.items()}


@pytest.fixture(params=["sqlite", "mariadb"])
def instance(
    request: pytest.FixtureRequest, tmp_path: Path, mariadb_factory: Callable[..., MariadbServer]
) -> Iterator[tuple[Instance, Callable[[str, str], list[Any]]]]:
    """And who reads a table of its target."""
    source = mariadb_factory()
    source.sql("RESET MASTER")
    init: tuple[str, ...] = ()
    target = mariadb_factory() if request.param == "mariadb" else None
    if target is not None:
        init = Replica(tmp_path).into(target)
    made = Instance(tmp_path, source, init)
    rows_of = target.rows if target else lambda db, table: made.of[BAD].query(f'SELECT * FROM "{db}__{table}"')
    yield made, rows_of
    with suppress(Exception):
        made("stop", "--all", expect=None)
    for replica in made.of.values():
        replica.close()
    source.close()


def damage(instance: Instance) -> None:
    """One bit of what DAMAGED has received, in a finished relay log, and not yet applied."""
    channel = instance.of[DAMAGED].channel
    instance("stop", "--applier", "--channel", DAMAGED)
    at = instance.channels()[DAMAGED]
    path = RelayLogIndex(channel).path(at["Relay_Log_File"])
    wait_until(lambda: path.stat().st_size > at["Relay_Log_Pos"] + 20_000, PATIENCE_S)
    instance("flush-relay-logs", "--channel", DAMAGED)
    wait_until(lambda: RelayLogIndex(channel).names()[-1] != at["Relay_Log_File"], PATIENCE_S)
    with path.open("r+b") as file:
        file.seek(at["Relay_Log_Pos"] + 10_000)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0x10]))
    instance("start", "--applier", "--channel", DAMAGED, expect=None)
    wait_until(lambda: instance.of[DAMAGED].pid("applier") is None, PATIENCE_S)


def test_40_of_256_channels_share_one_spark_and_what_is_wrong_with_two_is_their_own(
    instance: tuple[Instance, Callable[[str, str], list[Any]]],
) -> None:
    made, rows_of = instance
    loads = [Load(made.source, [WRITE.format(name) for name in LIVE[part::4]], pause_s=2) for part in range(4)]
    try:
        those = [part for name in LIVE for part in ("--channel", name)]
        made("start", "--shared-session", *those, expect=None)
        made.wait_for_progress(BAD)
        (pid,) = {number for name, number in made.pids().items()}
        told = made.channels()
        assert [name for name in LIVE if told[name]["Last_IO_Errno"]] == [BAD]
        assert told[BAD]["Last_IO_Errno"] == 1045 and "Access denied" in told[BAD]["Last_IO_Error"]

        damage(made)
        made.wait_for_progress(BAD, DAMAGED)
        told = made.channels()
        assert [name for name in LIVE if told[name]["Slave_SQL_Running"] != "Yes"] == [DAMAGED]
        assert told[DAMAGED]["Last_SQL_Errno"] in (1594, 1743)
        lines = {line["Channel_Name"]: line["Last_Error"] for line in json.loads(made("show-channels", "--json"))}
        assert {name for name in LIVE if lines[name]} == {BAD, DAMAGED}
        split_by_kind = made("check", "--json", expect=2)
        assert all(f'"{name}"' in split_by_kind for name in LIVE)

        made("stop", "--channel", DAMAGED)
        made("recover", "--refetch", "--channel", DAMAGED)
        made("start", "--channel", DAMAGED)
        made("stop", "--receiver", "--channel", BAD)
        made("change-master", "--channel", BAD, "--password-stdin", password="rpl")
        made("start", "--receiver", "--channel", BAD)
        made.wait_for_progress()
        assert {number for name, number in made.pids().items() if name != DAMAGED} == {pid}, "nobody was started anew"
    finally:
        for load in loads:
            load.finish()
    end = made.source.master_status()
    made.wait_until(lambda: set(made.applied().values()) == {end})
    for name in LIVE:
        for table in ("counter", "t"):
            expected = sorted(made.source.rows(name, table))
            assert len(expected) > (20 if table == "t" else 0)
            assert sorted(map(tuple, rows_of(name, table))) == expected, f"{name}.{table}"
    assert "applier stopped" in made("stop", "--all", "--timeout", "300")
