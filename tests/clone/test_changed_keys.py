"""What the log touched, on real servers: each touched row is found by its condition, whatever its key, and no other;
a table whose name is in other letters is another table.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.clone.changed_keys import MOST_KEYS, changed_keys
from rplctl.position import BinlogPosition
from rplctl.relay_log.received import Received
from rplctl.schema.source_catalog import read_catalog
from rplctl.source.survey import Ask
from rplctl.sql_text import Sql
from tests.kit.replica import Replica, wait_until
from tests.kit.servers import MariadbServer
from tests.schema.test_bounds import MODE, insert, keys_of, make, query, server

__all__ = ["query", "server"]
pytestmark = pytest.mark.slow
ALIKE = "a VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY"
ODD = {  # of which nothing is sure
    "cascades": ("a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES t0 (a) ON DELETE CASCADE", "(0)"),
    "lengthy": ("a TEXT, PRIMARY KEY (a(9))", "(REPEAT('x', 9000))"),
    "many": ("a INT PRIMARY KEY", ", ".join(f"({n})" for n in range(MOST_KEYS + 1))),
    "keyless": ("a INT", "(1), (1)"),
}


def place(server: MariadbServer) -> BinlogPosition:
    return BinlogPosition(*server.master_status())


@pytest.mark.long("tests/clone/test_rules.py follows touched rows in make test.")
def test_touched_rows_are_found_by_their_keys(server: MariadbServer, query: Ask, tmp_path: Path) -> None:
    keys = keys_of(server)
    tables = {f"t{n}": what for n, what in enumerate(keys)} | {name: what for name, (what, _) in ODD.items()}
    rows = {f"t{n}": now for n, (now, _) in enumerate(keys.values())} | {"cascades": ODD["cascades"][1]}
    tables["T0"], rows["T0"] = "a VARCHAR(9) PRIMARY KEY", "('0'), ('1x'), ('2')"
    later = {f"t{n}": more for n, (_, more) in enumerate(keys.values())} | {n: more for n, (_, more) in ODD.items()}
    del later["cascades"]
    alike = f"t{list(keys).index(ALIKE)}"
    make(server, [f"CREATE TABLE {name} ({what}, v VARCHAR(9) DEFAULT 'old')" for name, what in tables.items()])
    server.sql(f"{MODE}; USE k; {';'.join(insert(n, tables[n], some) for n, some in rows.items())}")
    server.sql("; ".join([MODE, "USE k", *(f"ALTER TABLE {name} ALTER v SET DEFAULT 'new'" for name in tables)]))
    replica = Replica(tmp_path, spark=False)
    try:
        replica.run("init")
        replica.change_master(server, *(["--get-master-public-key", "1"] if server.kind == "mysql" else []))
        replica.run("change-master", "--master-log-file", server.master_status()[0], "--master-log-pos", "4")
        replica.run("start", "--receiver")
        low = place(server)
        changes = [
            *(
                f"SET binlog_row_image={('FULL', 'MINIMAL')[(n + (server.kind == 'mysql')) % 2]};"
                f"UPDATE t{n} SET v = 'new' LIMIT 2; DELETE FROM t{n} WHERE v = 'old' LIMIT 1"
                for n in range(len(keys))
            ),
            *(insert(n, tables[n], some) for n, some in later.items()),
            f"UPDATE {alike} SET a = UPPER(a), v = 'new' WHERE a = 'a'; UPDATE {alike} SET a = LOWER(a) WHERE a = 'a'",
            "DELETE FROM t0 WHERE a = 1; UPDATE t0 SET v = 'new'",
            "UPDATE T0 SET v = 'new' WHERE a <> '2'",
        ]
        server.sql(f"{MODE}; USE k; {';'.join(changes)}")
        high = place(server)
        server.sql("UPDATE k.t0 SET v = 'after'")
        models = list(read_catalog(query, ["k"]).tables.values())
        found = {}
        for kind in ("sqlite", "mysql"):
            received = Received(replica.channel, server.server_id, by_gtid=False)
            wait_until(lambda received=received: received.begin_after(low), 60)  # type: ignore[misc]
            found[kind] = changed_keys(
                received.until(high, 30, lambda _: False), low, high, models, kind, folds_names=False
            )
    finally:
        replica.close()
    for of_kind in found.values():
        assert {str(key[0]).strip("b'") for key in of_kind.pop(("k", "T0"))} == {"0", "1x"}
    assert set(found["sqlite"]) == {("k", f"t{n}") for n in range(len(keys))} == set(found["mysql"])
    server.sql(f"{MODE}; USE k; UPDATE t0 SET v = 'new'")
    for name, changed in found["sqlite"].items():
        assert len(changed) == len(found["mysql"][name])
        counts = [int(query(Sql(f"SELECT COUNT(*) FROM k.{name[1]} WHERE {one}"))[0][0]) for one in changed.values()]
        assert set(counts) == {0, 1}, (name, counts)
        wanted = int(query(Sql(f"SELECT COUNT(*) FROM k.{name[1]} WHERE v = 'new'"))[0][0])
        news = query(Sql(f"SELECT COUNT(*) FROM k.{name[1]} WHERE v = 'new' AND ({' OR '.join(changed.values())})"))
        assert sum(counts) == wanted == int(news[0][0]), (tables[name[1]], changed)
