"""A lake in an object store: the same tables, in a bucket of a private server that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rplctl.errors import LockBusy
from rplctl.target.delta.place import place_of
from rplctl.target.delta.tables import DeltaTables
from tests.kit.bucket import BUCKET, KEYS, bucket_server, words_of
from tests.kit.replica import Replica
from tests.kit.servers import MariadbServer
from tests.target.delta.test_tables import APP, pending

pytestmark = [
    pytest.mark.long("tests/applier/test_lake.py holds it on a local disk."),
    pytest.mark.slow,
    pytest.mark.mariadb,
]


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address; the keys are in the environment, where rplctl wants them."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with bucket_server(tmp_path) as address:
        yield address


def test_each_change_is_in_the_bucket_once_though_the_applier_was_killed_between_two_tables(
    endpoint: str, tmp_path: Path, mariadb: MariadbServer
) -> None:
    replica = Replica(tmp_path, spark=False)
    options = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    words = "&".join(f"{name}={value}" for name, value in options.items())
    name, position = mariadb.master_status()
    replica.run("init", "--target", f"delta+s3://{BUCKET}/copy?state={tmp_path}/state.db&{words}")
    replica.change_master(mariadb, "--master-log-file", name, "--master-log-pos", str(position))
    mariadb.sql("DROP DATABASE IF EXISTS s; CREATE DATABASE s; CREATE TABLE s.a (id INT PRIMARY KEY, v TEXT);"
                "CREATE TABLE s.b (id INT PRIMARY KEY)")  # fmt: skip
    mariadb.sql("BEGIN; INSERT INTO s.a VALUES (1, 'one'), (2, 'two'); INSERT INTO s.b VALUES (1); COMMIT")
    replica.run("start", "--until-synced", "--crash-points", "crash_per_table_between_tables=kill", expect=None)
    assert replica.pid("applier") is None
    mariadb.sql("UPDATE s.a SET v = 'new' WHERE id = 2")
    replica.run("start", "--until-synced")
    found = {
        table: DeltaTable(f"s3://{BUCKET}/copy/s/{table}", storage_options=options).to_pyarrow_table().to_pylist()
        for table in "ab"
    }
    told = {table: sorted((row["pos"], row["row_number"], row["op"]) for row in rows) for table, rows in found.items()}
    assert all(len(rows) == len(set(rows)) for rows in told.values())
    assert sorted(op for *_, op in told["a"]).count("insert") == 2 and [op for *_, op in told["a"]][-1] == "update"
    assert [op for *_, op in told["b"]].count("insert") == 1
    assert {"id": 2, "v": "new"} in [row["after"] for row in found["a"]]
    kept = [path for path in replica.datadir.rglob("*") if path.is_file() and b"not-in-the-url" in path.read_bytes()]
    assert kept == []
    replica.close()


def test_who_commits_second_at_the_same_moment_is_kept_out_by_a_put_that_replaces_nothing(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit is put with If-None-Match, which a store must know."""
    place = place_of(f"delta+s3://{BUCKET}/fence?state={tmp_path}/state.db&{words_of(endpoint)}")
    opened = DeltaTables.open_table
    DeltaTables(place).publish(pending(place, 1), APP, 1)
    ours, theirs = pending(place, 100), pending(place, 200)

    def open_before_the_other(self: DeltaTables, folder: str) -> DeltaTable | None:
        found = opened(self, folder)
        monkeypatch.setattr(DeltaTables, "open_table", opened)
        DeltaTables(place).publish(theirs, APP, 2)
        return found

    monkeypatch.setattr(DeltaTables, "open_table", open_before_the_other)
    with pytest.raises(LockBusy):
        DeltaTables(place).publish(ours, APP, 2)
    rows = DeltaTable(place.uri("d/t"), storage_options=place.options).to_pyarrow_table().to_pylist()
    assert sorted(row["after"]["id"] for row in rows) == [1, 200]
    log = (tmp_path / "s3.log").read_text()
    assert all(f"PUT /{BUCKET}/fence/d/t/_delta_log/{number:020}.json *" in log for number in range(2))
