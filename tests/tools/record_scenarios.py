"""Record the statements that a bulk batch cannot hold.

`python -m tests.tools.record_scenarios` writes tests/data/scenarios from a private MariaDB server with a fixed clock.
Each scenario is one binary log, which creates its own databases and tables.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.kit.servers import MariadbServer

FOLDER = Path(__file__).parents[1] / "data/scenarios"
MOST_BYTES = 100_000
CLOCK = 1_772_352_000  # 2026-03-01 08:00:00 UTC

ITEMS = "CREATE TABLE items (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB"
SCENARIOS: dict[str, tuple[str, ...]] = {
    "ddl": (
        ITEMS,
        "INSERT INTO items VALUES (1, 'one'), (2, 'two')",
        "ALTER TABLE items ADD COLUMN price DECIMAL(6,2) NOT NULL DEFAULT 1.50 AFTER id",
        "INSERT INTO items VALUES (3, 2.25, 'three')",
        "RENAME TABLE items TO goods",
        "UPDATE goods SET name = UPPER(name) WHERE id < 3",
        "CREATE TABLE gone (id INT PRIMARY KEY)",
        "INSERT INTO gone VALUES (1)",
        "DROP TABLE gone",
        "CREATE TABLE emptied (id INT PRIMARY KEY)",
        "INSERT INTO emptied VALUES (1)",
        "TRUNCATE TABLE emptied",
    ),
    "savepoints": (
        ITEMS,
        "CREATE TABLE journal (line INT PRIMARY KEY) ENGINE=MyISAM",
        "BEGIN",
        "INSERT INTO items VALUES (1, 'kept')",
        "SAVEPOINT `a b`",
        "INSERT INTO items VALUES (2, 'taken back')",
        "INSERT INTO journal VALUES (1)",
        "UPDATE items SET name = 'taken back' WHERE id = 1",
        "ROLLBACK TO `a b`",
        "INSERT INTO items VALUES (2, 'instead')",
        "COMMIT",
        "BEGIN",
        "INSERT INTO items VALUES (3, 'three')",
        "SAVEPOINT a",
        "INSERT INTO items VALUES (4, 'four')",
        "COMMIT",
    ),
    "xa": (
        ITEMS,
        "XA START 'kept', 'branch', 7",
        "INSERT INTO items VALUES (1, 'prepared')",
        "XA END 'kept', 'branch', 7",
        "XA PREPARE 'kept', 'branch', 7",
        "-- other session",
        "INSERT INTO items VALUES (2, 'between')",
        "XA START 'dropped'",
        "INSERT INTO items VALUES (3, 'never')",
        "XA END 'dropped'",
        "XA PREPARE 'dropped'",
        "-- other session",
        "XA ROLLBACK 'dropped'",
        "XA COMMIT 'kept', 'branch', 7",
        "XA START 'at once'",
        "INSERT INTO items VALUES (4, 'one phase')",
        "XA END 'at once'",
        "XA COMMIT 'at once' ONE PHASE",
    ),
    "statements": (
        "CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20))",
        "INSERT INTO items (name) VALUES ('a row')",
        "SET binlog_format=STATEMENT",
        "INSERT INTO items (name) VALUES ('a statement')",
        "SET binlog_format=ROW",
        "INSERT INTO items (name) VALUES ('after it')",
    ),
    "unreplicated": (
        ITEMS,
        "CREATE VIEW names AS SELECT name FROM items",
        "CREATE TRIGGER capital BEFORE INSERT ON items FOR EACH ROW SET NEW.name = UPPER(NEW.name)",
        "INSERT INTO items VALUES (1, 'one')",
    ),
    "cascades": (
        "CREATE TABLE parents (id INT PRIMARY KEY)",
        "CREATE TABLE children (id INT PRIMARY KEY, parent INT,"
        " FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO parents VALUES (1), (2)",
        "INSERT INTO children VALUES (10, 1), (11, 1), (20, 2)",
        "DELETE FROM parents WHERE id = 1",
        "UPDATE parents SET id = 3 WHERE id = 2",
        "INSERT INTO parents VALUES (1)",
        "INSERT INTO children VALUES (10, 1)",
        "SET foreign_key_checks=0",
        "INSERT INTO children VALUES (99, 999)",
    ),
    "filters": (
        "CREATE DATABASE other",
        ITEMS,
        "CREATE TABLE skipped (id INT PRIMARY KEY, name VARCHAR(20))",
        "CREATE TABLE other.items (id INT PRIMARY KEY)",
        "BEGIN",
        "INSERT INTO items VALUES (1, 'one')",
        "INSERT INTO other.items VALUES (1)",
        "INSERT INTO skipped VALUES (1, 'one')",
        "UPDATE items SET name = 'uno'",
        "COMMIT",
        "USE other",
        "CREATE TABLE filters.across (id INT PRIMARY KEY)",  # current database other, table of filters
        "CREATE PROCEDURE nothing() SELECT 1",
        "SET binlog_format=STATEMENT",
        "INSERT INTO items VALUES (2)",
        "SET @two = 2, binlog_format=STATEMENT",
        "DELETE FROM items WHERE id = @two",
        "SET binlog_format=ROW",
        "USE filters",
        "ALTER TABLE skipped ADD COLUMN more INT",
        "INSERT INTO skipped VALUES (2, 'two', 2)",
        "DROP TABLE across, skipped",
        "INSERT INTO items VALUES (2, 'two')",
    ),
}


def record_scenario(server: MariadbServer, name: str) -> None:
    """Runs the statements in a database of the scenario's name; `-- other session` changes the connection."""
    server.sql(f"DROP DATABASE IF EXISTS {name}; DROP DATABASE IF EXISTS other; RESET MASTER; CREATE DATABASE {name}")
    session = server.connect(name)
    for i, statement in enumerate(SCENARIOS[name]):
        if statement == "-- other session":
            session.close()
            session = server.connect(name)
        else:
            with session.cursor() as cursor:
                cursor.execute(f"SET timestamp={CLOCK + i}")
                cursor.execute(statement)
    session.close()
    log, _ = server.master_status()
    server.sql("FLUSH BINARY LOGS")
    shutil.copyfile(server.data / log, FOLDER / f"{name}.binlog")


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with MariadbServer(["--server-id=1", "--binlog-annotate-row-events=0"]) as server:
        for name in SCENARIOS:
            record_scenario(server, name)
    size = sum(path.stat().st_size for path in FOLDER.iterdir())
    assert size <= MOST_BYTES, f"{size} bytes are too much"
    print(f"{size} bytes in {len(SCENARIOS)} binary logs")


if __name__ == "__main__":
    main()
