"""A lake in an object store: the same tables, in a bucket of a private server that speaks S3."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.kit.private_server import HOST, free_port
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer

pytestmark = [pytest.mark.slow, pytest.mark.mariadb]
BUCKET = "lake"


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Its address; the keys are in the environment, where rplctl wants them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "rplctl")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-in-the-url")
    address = f"http://{HOST}:{(port := free_port())}"
    with (tmp_path / "s3.log").open("wb") as log:
        words = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)]
        server = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        wait_until(lambda: _is_made(address))
        yield address
    finally:
        server.kill()
        server.wait()


def _is_made(address: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(f"{address}/{BUCKET}", method="PUT"), timeout=5).close()
    except OSError:
        return False
    return True


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
