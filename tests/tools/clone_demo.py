"""The second part of `make demo`: `rplctl clone` copies a running source.

A recorded source cannot answer queries, so this part starts a private MariaDB. If MariaDB is not installed, it prints
that this part was left out.
"""

from __future__ import annotations

import random
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.kit.load import working
from tests.kit.private_server import ServerUnavailable
from tests.kit.replica import Replica, assert_same_tables, new_log, purge_logs
from tests.kit.servers import MariadbServer

ROWS = 100_000


def write(cursor: Any) -> None:
    one, other = random.sample(range(1, ROWS), 2)
    cursor.execute("BEGIN")
    cursor.execute(f"UPDATE orders SET note = 'changed meanwhile' WHERE id = {one}")
    cursor.execute(f"REPLACE INTO orders SELECT {ROWS} + id, customer, total, 'new' FROM orders WHERE id = {other}")
    cursor.execute(f"DELETE FROM customers WHERE id = {one % 1000}")
    cursor.execute("COMMIT")


def fill(source: MariadbServer) -> None:
    source.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40));"
        "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, total DECIMAL(9,2), note VARCHAR(100), KEY (customer),"
        " FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE);"
        "INSERT INTO customers SELECT seq, CONCAT('customer ', seq) FROM seq_1_to_1000; INSERT INTO orders"
        f" SELECT seq, seq % 1000 + 1, seq / 7, REPEAT('x', seq % 100) FROM seq_1_to_{ROWS}"
    )
    purge_logs(source, new_log(source))


def show(replica: Replica, *words: str) -> None:
    print(f"$ rplctl {shlex.join(words)}", flush=True)
    done = replica.run(*words)
    print(done.stdout + done.stderr, end="", flush=True)


def main() -> None:
    print("\nA source that lives, whose first logs are purged, copied without a lock while it is written:")
    try:
        source = MariadbServer()
    except ServerUnavailable as reason:
        return print(f"not shown, it needs a server: {reason}")
    with source, tempfile.TemporaryDirectory(prefix="rplctl-demo-") as folder:
        replica = Replica(Path(folder))
        try:
            fill(source)
            replica.run("init")
            replica.change_master(source)
            options = replica.datadir / "rplctl.toml"
            options.write_text(f'replicate_do_db = "shop"\n{options.read_text()}')
            with working(source, "shop", [write], harmless=(1213, 1020)):
                show(replica, "clone", "--dry-run")
                show(replica, "clone")
                time.sleep(1)
                show(replica, "show-clone")
                show(replica, "wait", "--state", "synced", "--timeout", "120")
            replica.wait_synced(source, 120)
            show(replica, "show-clone")
            assert_same_tables(source, replica, "shop")
            print("every row of both tables is the source's: OK")
        finally:
            replica.close()


if __name__ == "__main__":
    main()
