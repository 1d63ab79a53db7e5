"""Everything a real binary log holds is in the target exactly, value by value as the server that wrote it printed it.

Recorded from MariaDB 10.5, 10.11 and 11.8, MySQL 5.7, 8.0, 8.4 and 9.7: every column type and charset, every event and
row image, and the scenario of `tests/kit/fidelity_scenario.py` under every combination of options that shapes a log
(`tests/tools/record_fidelity.py`).
"""

from __future__ import annotations

import io
import lzma
import re
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rplctl.applier.feed.plan import Batch, BatchKind, plan_batches
from rplctl.errors import RplError
from rplctl.event.scan import GroupKind
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.neutral_state import differences, parse_state
from tests.kit.replica import Replica

LONG = pytest.mark.long(
    "The recorded cases that stay hold it for one log of each vendor.",
    keeps=r"^(ma1011-torture-row|my97-torture-row|fidelity-mariadb|fidelity-mysql)$",
)

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
# `db-with-dash`.T1 and .t1 are one name in SQLite; DDL without a meaning there is passed over
OPTIONS = {"replicate_ignore_table": "db-with-dash.T1", "on_unsupported_ddl": "skip"}
LEFT_OUT = frozenset({"db-with-dash.T1"})
SMALL = ["ma1011-encrypted-no", "ma1011-sysbench-mix-small", "my97-sysbench-mix-small", "my97-torture-compress-l1"]
CLUSTER = "local-cluster[1,1,1024]"  # its executor is a process of its own, and gets all jobs, however small
LARGE = ["ma1011-torture-row", "my97-torture-row", "my97-torture-rowsquery", "my97-torture-nogtid"]
CRASHED = ["ma1011-crash-inuse", "my97-crash-inuse"]  # the source was killed and went on in the next file


def data_of(name: str) -> bytes:
    path = next(path for path in (DATA / f"{name}.xz", DATA / "binlog" / f"{name}.xz") if path.exists())
    return lzma.decompress(path.read_bytes())


def write_logs(folder: Path, *logs: bytes) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"binlog.{number:06}" for number in range(1, len(logs) + 1)]
    for path, log in zip(paths, logs, strict=True):
        path.write_bytes(log)
    (folder / "binlog.index").write_text("".join(f"./{path.name}\n" for path in paths))
    return paths


def instance_before(folder: Path, paths: list[Path], options: dict[str, Any]) -> Instance:
    """Not waiting for a disk."""
    instance = Instance(folder / "replica", groups_of(paths[0]), **{**OPTIONS, **options})
    driver = instance.target.connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    driver.execute("PRAGMA synchronous=OFF")
    return instance


def apply_all(folder: Path, paths: list[Path], **options: Any) -> Instance:
    """A new instance that has applied the logs."""
    instance = instance_before(folder, paths, options)
    for path in paths:
        instance.apply(groups_of(path))
    return instance


def different(instance: Instance, state: str, without: frozenset[str] = LEFT_OUT) -> list[str]:
    with closing(sqlite3.connect(instance.config.datadir / "target.db")) as target:
        return differences(target, state, without)


@pytest.mark.long(
    "The large log of MariaDB and one of each vendor stay.",
    keeps=r"^(ma1011-torture-row|fidelity-mariadb|fidelity-mysql)$",
)
@LONG
@pytest.mark.parametrize("case", [*SMALL, *(pytest.param(case, marks=pytest.mark.slow) for case in LARGE)])
def test_the_target_is_the_sources_final_state(tmp_path: Path, case: str) -> None:
    instance = apply_all(tmp_path, write_logs(tmp_path / "source", data_of(case)))
    assert different(instance, data_of(f"{case}.state").decode()) == []
    instance.target.close()


@LONG
@pytest.mark.parametrize("case", CRASHED)
def test_a_source_that_was_killed_in_mid_transaction_is_followed_into_its_next_log(tmp_path: Path, case: str) -> None:
    instance = apply_all(tmp_path, write_logs(tmp_path / "source", data_of(case), data_of(f"{case}-next")))
    assert different(instance, data_of(f"{case}.state").decode()) == []
    instance.target.close()


def recorded(vendor: str, folder: Path) -> tuple[list[Path], str]:
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress((DATA / f"fidelity-{vendor}.xz").read_bytes()))) as archive:
        files = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        contents = {name: file.read() for name, file in files.items() if file is not None}
    state = contents.pop("state.txt").decode()
    return write_logs(folder, *(contents[name] for name in sorted(contents))), state


@LONG
@pytest.mark.slow
def test_mysql_logs_of_every_option_give_the_sources_state(tmp_path: Path) -> None:
    paths, state = recorded("mysql", tmp_path / "source")
    instance = apply_all(tmp_path, paths, replicate_wild_ignore_table="%.wmost")
    assert different(instance, state, frozenset({"wmost"})) == []
    instance.target.close()


@LONG
@pytest.mark.slow
def test_mariadb_logs_of_every_option_give_the_sources_state_but_for_virtual_columns_it_did_not_log(
    tmp_path: Path,
) -> None:
    paths, state = recorded("mariadb", tmp_path / "source")
    unlogged = frozenset({"minimal_none.gent", "minimal_zip.gent"})
    ignored = ",".join(unlogged | LEFT_OUT)
    instance = apply_all(tmp_path, paths, replicate_wild_ignore_table="%.wmost", replicate_ignore_table=ignored)
    assert different(instance, state, frozenset({"wmost"}) | unlogged) == []
    instance.target.close()


@LONG
@pytest.mark.slow
@pytest.mark.parametrize("release", ["57", "80", "84"])
def test_logs_of_older_mysql_give_the_sources_state(tmp_path: Path, release: str) -> None:
    paths, state = recorded(f"mysql{release}", tmp_path / "source")
    instance = apply_all(tmp_path, paths, replicate_wild_ignore_table="%.wmost")
    assert sum(1 for _ in parse_state(state)) > 150
    assert different(instance, state, frozenset({"wmost"})) == []
    instance.target.close()


@LONG
@pytest.mark.slow
def test_logs_of_mariadb_105_give_the_sources_state_but_for_virtual_columns_it_did_not_log(tmp_path: Path) -> None:
    paths, state = recorded("mariadb105", tmp_path / "source")
    unlogged = frozenset({"minimal_zip.gent"})
    ignored = ",".join(unlogged | LEFT_OUT)
    instance = apply_all(tmp_path, paths, replicate_wild_ignore_table="%.wmost", replicate_ignore_table=ignored)
    assert different(instance, state, frozenset({"wmost"}) | unlogged) == []
    instance.target.close()


@LONG
@pytest.mark.slow
def test_logs_of_mariadb_118_give_the_sources_state_but_for_virtual_columns_it_did_not_log(tmp_path: Path) -> None:
    """End positions of 0, VECTOR, UUIDs of all versions, ALTERs in two phases, FULL_NODUP images, later TIMESTAMPs."""
    paths, state = recorded("mariadb118", tmp_path / "source")
    unlogged = frozenset({"minimal_alter.gent", "full_dup.gent"})
    ignored = ",".join(unlogged | LEFT_OUT)
    instance = apply_all(tmp_path, paths, replicate_wild_ignore_table="%.wmost", replicate_ignore_table=ignored)
    assert different(instance, state, frozenset({"wmost"}) | unlogged) == []
    instance.target.close()


@LONG
@pytest.mark.slow
@pytest.mark.parametrize(("vendor", "database"), [("mariadb", "minimal_none"), ("mysql", "minimal_json")])
def test_minimal_images_do_without_what_earlier_batches_knew(tmp_path: Path, vendor: str, database: str) -> None:
    """Every transaction is a batch of its own, so that updates, moves and JSON diffs meet rows of the target."""
    paths, state = recorded(vendor, tmp_path / "source")
    paths = [path for path in paths if database.encode() in path.read_bytes()]
    instance = instance_before(tmp_path, paths, {"replicate_wild_ignore_table": "%.wmost,%.gent,%.t0__,%.t1__"})
    for path in paths:
        groups = groups_of(path)
        for batch in plan_batches(groups, len(groups.scan)):
            for first in range(batch.first, batch.last):
                kind = batch.kind if groups.scan.kind[first] == GroupKind.ROWS else BatchKind.SKIP
                alone = Batch(
                    kind=kind if batch.kind is BatchKind.BULK else batch.kind,
                    groups=groups,
                    first=first,
                    last=first + 1,
                )
                instance.applier.apply(alone)
    tables = [table for table in parse_state(state) if table.database == database]
    types = {table.name for table in tables if re.fullmatch(r"t\d\d\d", table.table)}
    others = {table.name for table in parse_state(state)} - {table.name for table in tables}
    assert different(instance, state, frozenset({"wmost", "gent"} | types | others)) == []
    instance.target.close()


@pytest.fixture
def mariadb_logs(tmp_path: Path) -> Iterator[list[Path]]:
    yield recorded("mariadb", tmp_path / "source")[0]


def stopped(folder: Path, paths: list[Path], **options: Any) -> tuple[RplError, Instance]:
    """What the logs stop with, and the instance as it is then."""
    instance = instance_before(folder, paths, options)
    with pytest.raises(RplError) as caught:
        for path in paths:
            instance.apply(groups_of(path))
    return caught.value, instance


@LONG
def test_a_virtual_column_that_mariadb_does_not_log_stops_with_its_name(
    tmp_path: Path, mariadb_logs: list[Path]
) -> None:
    """Sums and products of integers are computed; a text is not."""
    minimal = [path for path in mariadb_logs if b"minimal_none" in path.read_bytes()]
    error, instance = stopped(tmp_path, minimal[:1])
    assert error.errno == 1364 and "minimal_none.gent, which lacks column 'v'" in error.message
    assert "binlog_row_image=FULL" in error.hint
    assert instance.query("SELECT count(*) FROM minimal_none__gent") == [(0,)]
    instance.target.close()


@LONG
def test_a_virtual_column_that_an_after_image_leaves_out_is_not_kept_from_an_earlier_image(tmp_path: Path) -> None:
    """FULL_NODUP: the INSERT in the same batch has its value, the UPDATE of what it hangs on does not."""
    paths, _ = recorded("mariadb118", tmp_path / "source")
    error, instance = stopped(
        tmp_path,
        [path for path in paths if b"CREATE DATABASE full_dup" in path.read_bytes()],
        replicate_wild_ignore_table="%.wmost,%.t0__,%.t1__",
    )
    assert error.errno == 1364 and "full_dup.gent, which lacks column 'v'" in error.message
    assert instance.query("SELECT v FROM full_dup__gent") == [("x!",)]
    instance.target.close()


@LONG
@pytest.mark.slow
def test_a_table_wider_than_sqlite_allows_stops_with_the_way_out(tmp_path: Path, mariadb_logs: list[Path]) -> None:
    first = [path for path in mariadb_logs if b"full_full" in path.read_bytes()]
    error, instance = stopped(tmp_path, first[:1])
    assert error.errno == 1117 and "full_full__wmost" in error.message and "--replicate-ignore-table" in error.hint
    instance.target.close()


@LONG
@pytest.mark.parametrize("policy", ["stop", "skip"])
@pytest.mark.parametrize("case", ["ma1011-torture-mixed", "ma1011-torture-statement", "my97-torture-mixed"])
def test_a_logged_statement_stops_exactly_before_its_transaction_whatever_the_policy_on_ddl(
    tmp_path: Path, case: str, policy: str
) -> None:
    paths = write_logs(tmp_path / "source", data_of(case))
    error, instance = stopped(tmp_path, paths, on_unsupported_ddl=policy)
    assert error.errno == 1592 and "INSERT INTO nopk" in error.message and "binlog_format=ROW" in error.hint
    groups = groups_of(paths[0])
    applied = instance.applier.info.exec_position
    following = next(
        batch for batch in plan_batches(groups, len(groups.scan)) if applied.is_before(batch.source_position)
    )
    assert following.last == following.first + 1  # the statement's own group is the next one
    assert b"INSERT INTO nopk" in groups.data[following.start : following.end].tobytes()
    assert applied.log_pos < int(error.position) <= following.source_position.log_pos
    instance.target.close()


@LONG
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "case", ["my97-torture-compress-l1", pytest.param("ma1011-torture-row", marks=pytest.mark.torture)]
)
def test_an_archive_of_logs_goes_through_receiver_relay_log_and_spark(tmp_path: Path, case: str) -> None:
    write_logs(tmp_path / "source", data_of(case))
    replica = Replica(tmp_path)
    try:
        replica.run("init", "--relay-log-info-repository", "table")
        (replica.datadir / "rplctl.toml").write_text(
            "".join(f'{name} = "{value}"\n' for name, value in (OPTIONS | {"spark_master": CLUSTER}).items())
        )
        replica.run("change-master", "--master-binlog-dir", str(tmp_path / "source"))
        replica.run("start", "--until-synced")
        with closing(sqlite3.connect(replica.datadir / "target.db")) as target:
            assert differences(target, data_of(f"{case}.state").decode(), LEFT_OUT) == []
        status = replica.status()
        assert status["Spark_Jobs"] > 0 and status["Jobs_Without_Spark"] == 0
    finally:
        replica.close()
