"""Record the log that `rplctl crash-test` replays.

`python -m tests.tools.record_crash_log` writes rplctl/demo/crash from a private MariaDB server with a fixed clock.
The first two logs hold single transactions, many small ones, DDL and a table without a key. The third log holds what
only MySQL and MariaDB targets apply: a table without transactions, and statements. Every transaction of the first two
logs, DDL excepted, adds one to `probe`. A file next to the logs says what the tables held at each commit.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

from rplctl.demo.crash_log import DATABASE, FOLDER, TABLES, digest_of
from tests.kit.replica import new_log
from tests.kit.servers import MariadbServer

CLOCK = 1_772_352_000  # 2026-03-01 08:00:00 UTC
PADDING = "x" * 300


def transactions() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(kind, statements of one transaction); '' is on the way to the next kind."""
    yield "", (f"CREATE DATABASE {DATABASE}",)
    yield "", (f"CREATE TABLE {DATABASE}.probe (seq INT PRIMARY KEY, note VARCHAR(400)) ENGINE=InnoDB",)
    yield "", (f"CREATE TABLE {DATABASE}.keyless (v INT, note VARCHAR(20)) ENGINE=InnoDB",)
    seq = 0
    for kind, count in (("transaction", 3), ("batch", 12)):
        for _ in range(count):
            seq += 1
            yield kind, (probe(seq), f"UPDATE {DATABASE}.probe SET note='changed' WHERE seq={seq - 2}")
    yield "ddl", (f"ALTER TABLE {DATABASE}.probe ADD COLUMN extra INT NOT NULL DEFAULT 7",)
    yield "ddl", (f"INSERT INTO {DATABASE}.probe VALUES ({seq + 1}, 'after', 8)",)
    seq += 2
    keyless = f"{DATABASE}.keyless"
    yield "keyless", (f"INSERT INTO {keyless} VALUES (1,'a'),(1,'a'),(1,'a'),(NULL,'b')", probe(seq))
    yield "keyless", (f"DELETE FROM {keyless} WHERE v=1 LIMIT 1", probe(seq + 1))
    yield "keyless", (f"UPDATE {keyless} SET v=2 WHERE v=1 LIMIT 1", probe(seq + 2))
    yield "", ("FLUSH BINARY LOGS",)
    for more in range(3, 12):
        yield "", (probe(seq + more),)
    yield "", ("FLUSH BINARY LOGS",)
    yield "", (f"CREATE TABLE {DATABASE}.plain (seq INT PRIMARY KEY, note VARCHAR(20)) ENGINE=MyISAM",)
    for number in range(1, 4):
        yield "non-transactional", (f"INSERT INTO {DATABASE}.plain VALUES ({number}, 'a'), ({number + 10}, 'b')",)
    yield "", (f"CREATE TABLE {DATABASE}.counted (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(20)) ENGINE=InnoDB",)
    counted = f"INSERT INTO {DATABASE}.counted (note)"
    yield "statement", (f"{counted} VALUES ('INTVAR'), ('and a statement')",)
    yield "statement", ("SET @note = 'USER_VAR'", f"{counted} VALUES (@note)")
    yield "statement", (f"{counted} SELECT FLOOR(RAND() * 1000)",)
    yield "statement", (f"UPDATE {DATABASE}.counted SET note=CONCAT(note, id)", f"{counted} VALUES ('two at once')")
    names = (f"{DATABASE}.{name}" for name in ("probe", "aside", "counted", "probe", "aside", "counted"))
    yield "exchange", ("RENAME TABLE {} TO {}, {} TO {}, {} TO {}".format(*names),)
    yield "exchange", (f"INSERT INTO {DATABASE}.counted (seq, note) VALUES (1000, 'behind it')",)


def probe(seq: int) -> str:
    return f"INSERT INTO {DATABASE}.probe (seq, note) VALUES ({seq}, '{PADDING}')"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    states = []
    with MariadbServer(["--server-id=1", "--binlog-annotate-row-events=0"]) as server:
        server.sql("RESET MASTER")
        session = server.connect()
        for number, (kind, statements) in enumerate(transactions()):
            if statements[0].startswith("FLUSH"):
                new_log(server)  # with its checkpoint, which else comes when it likes
                continue
            with session.cursor() as cursor:
                cursor.execute(f"SET timestamp={CLOCK + number}")
                cursor.execute(f"SET binlog_format={'STATEMENT' if kind == 'statement' else 'ROW'}")
                for statement in ("BEGIN", *statements, "COMMIT") if len(statements) > 1 else statements:
                    cursor.execute(statement)
            there = {row[0] for row in server.sql("SHOW TABLES", DATABASE)}
            rows = {name: server.sql(f"SELECT * FROM {name}", DATABASE) for name in TABLES if name in there}
            log, position = server.master_status()
            states.append([kind, log, position, digest_of(rows)])
        session.close()
        logs = server.binlog_files  # the last one still in use: nothing points to a third
        for path in logs:
            shutil.copyfile(path, FOLDER / path.name)
    (FOLDER / "binlog.index").write_text("".join(f"./{path.name}\n" for path in logs))
    (FOLDER / "states.json").write_text("[\n" + ",\n".join(json.dumps(state) for state in states) + "\n]\n")


if __name__ == "__main__":
    main()
