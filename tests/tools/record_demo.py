"""Record the source of the demo.

`python -m tests.tools.record_demo` writes rplctl/demo/data from a private MariaDB server. The log is four days of a
small shop: a few hundred transactions with inserts, updates, deletes, an ALTER in the middle, decimals, dates, times
with fractions, unsigned numbers, NULLs and names in many scripts. Each recording runs the same SQL (fixed seed, fixed
clock), so two recordings differ only in what the server itself writes into its logs.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from rplctl.demo import BINLOG_FOLDER, STATE_FILE, SourceState, TableState
from rplctl.demo.checksum import rows_checksum
from tests.kit.servers import MariadbServer

MOST_BYTES = 400_000
CLOCK_START = 1_772_352_000  # 2026-03-01 08:00:00 UTC
DATABASE = "shop"
NAMES = (
    *("Ada Lovelace", "Jürgen Müller", "Žofie Nováková", "François Dupré", "Øystein Bråten", "Łukasz Wójcik"),
    *("Σωκράτης Παπαδόπουλος", "Ольга Смирнова", "محمد الأمين", "नीला शर्मा"),
    *("王小明", "田中 さくら", "김서연", "Zoë 🦄 O'Hara"),
)
CITIES = ("Praha", "København", "São Paulo", "Αθήνα", "東京", "Reykjavík", None)
GOODS = (
    *("Fahrradklingel", "Café crème", "茶碗", "Smørrebrød", "Tool\\box", "Tab\there"),
    *("Квас", "Stroopwafel", "☂ umbrella"),
)
STATUSES = ("new", "paid", "shipped", "returned")

SCHEMA = """
CREATE TABLE customers (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(80) NOT NULL, email VARCHAR(120) NOT NULL,
  city VARCHAR(40), born DATE, credit DECIMAL(12,2) NOT NULL DEFAULT 0.00, notes TEXT,
  created_at DATETIME(3) NOT NULL, UNIQUE KEY email (email));
CREATE TABLE products (
  id INT UNSIGNED NOT NULL PRIMARY KEY, sku CHAR(8) NOT NULL, title VARCHAR(60) NOT NULL,
  price DECIMAL(10,2) NOT NULL, stock SMALLINT NOT NULL, weight_kg DOUBLE, barcode BIGINT UNSIGNED NOT NULL,
  UNIQUE KEY sku (sku));
CREATE TABLE orders (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id INT UNSIGNED NOT NULL,
  status ENUM('new','paid','shipped','returned') NOT NULL DEFAULT 'new',
  ordered_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, deliver_at TIME, total DECIMAL(12,2) NOT NULL DEFAULT 0.00,
  KEY by_customer (customer_id), CONSTRAINT customer FOREIGN KEY (customer_id) REFERENCES customers (id));
CREATE TABLE order_items (
  order_id INT UNSIGNED NOT NULL, line TINYINT UNSIGNED NOT NULL, product_id INT UNSIGNED NOT NULL,
  quantity SMALLINT NOT NULL, price DECIMAL(10,2) NOT NULL, PRIMARY KEY (order_id, line),
  CONSTRAINT parent FOREIGN KEY (order_id) REFERENCES orders (id))
"""

Execute = Callable[..., Any]


class Shop:
    """Speaks SQL to the server, one transaction at a time, on a clock of its own."""

    def __init__(self, execute: Execute, dice: random.Random) -> None:
        self.execute = execute
        self.dice = dice
        self.clock = CLOCK_START
        self.transactions = 0
        self.order_lines: dict[int, int] = {}  # open orders → number of lines

    def transaction(self, *statements: tuple[str, tuple[object, ...]]) -> None:
        self.clock += self.dice.randint(60, 900)
        self.execute(f"SET timestamp={self.clock + self.dice.random():.3f}")
        self.execute("BEGIN")
        for sql, values in statements:
            self.execute(sql, values)
        self.execute("COMMIT")
        self.transactions += 1

    def ddl(self, sql: str) -> None:
        self.execute(sql)
        self.transactions += 1

    def customer(self, number: int) -> None:
        name = self.dice.choice(NAMES)
        born = self.dice.choice([None, f"19{self.dice.randint(40, 99)}-{self.dice.randint(1, 12):02}-28"])
        values = (
            number,
            name,
            f"customer{number}@example.org",
            self.dice.choice(CITIES),
            born,
            self.dice.choice([None, ""]),
        )
        sql = "INSERT INTO customers (id, name, email, city, born, notes, created_at) VALUES (%s,%s,%s,%s,%s,%s,NOW(3))"
        self.transaction((sql, values))

    def order(self, number: int, customers: int) -> None:
        lines = self.dice.randint(1, 4)
        order = (number, self.dice.randint(1, customers), self.dice.choice([None, "09:30:00", "-00:15:00", "26:00:00"]))
        statements: list[tuple[str, tuple[object, ...]]] = [
            ("INSERT INTO orders (id, customer_id, deliver_at) VALUES (%s,%s,%s)", order)
        ]
        for line in range(1, lines + 1):
            product, quantity = self.dice.randint(1, 30), self.dice.randint(1, 9)
            item = "INSERT INTO order_items SELECT %s, %s, id, %s, price FROM products WHERE id = %s"
            statements.append((item, (number, line, quantity, product)))
            statements.append(("UPDATE products SET stock = stock - %s WHERE id = %s", (quantity, product)))
        total = "(SELECT SUM(quantity * price) FROM order_items WHERE order_id = %s)"
        statements.append((f"UPDATE orders SET total = {total} WHERE id = %s", (number, number)))
        self.transaction(*statements)
        self.order_lines[number] = lines

    def progress(self) -> None:
        """An older order moves on, or is cancelled with all its lines."""
        number = self.dice.choice(list(self.order_lines))
        if self.dice.random() < 0.2:
            del self.order_lines[number]
            self.transaction(
                ("DELETE FROM order_items WHERE order_id = %s", (number,)),
                ("DELETE FROM orders WHERE id = %s", (number,)),
            )
        else:
            self.transaction(("UPDATE orders SET status = %s WHERE id = %s", (self.dice.choice(STATUSES), number)))


def life_of_the_shop(shop: Shop) -> Iterator[None]:
    """Yields where the recording starts a new binary log."""
    for statement in SCHEMA.split(";"):
        shop.ddl(statement)
    products = [
        (
            number,
            f"SKU{number:05}",
            f"{shop.dice.choice(GOODS)} {number}",
            f"{shop.dice.randint(99, 99_999) / 100:.2f}",
            500,
        )
        + (
            shop.dice.choice([None, 0.25, 1.5, 12.75]),
            2**64 - number if number % 7 == 0 else 4_000_000_000_000 + number,
        )
        for number in range(1, 31)
    ]
    shop.transaction(*(("INSERT INTO products VALUES (%s,%s,%s,%s,%s,%s,%s)", product) for product in products))
    for number in range(1, 61):
        shop.customer(number)
    for number in range(1, 101):
        shop.order(number, customers=60)
        if number % 3 == 0:
            shop.progress()
    yield
    shop.ddl("ALTER TABLE products ADD COLUMN discontinued TINYINT(1) NOT NULL DEFAULT 0 AFTER price")
    shop.ddl("ALTER TABLE customers MODIFY city VARCHAR(60), ADD KEY by_city (city)")
    shop.transaction(("UPDATE products SET discontinued = 1, price = price * 0.5 WHERE id %% 10 = 0", ()))
    shop.transaction(("UPDATE customers SET credit = credit + 12.345 - id WHERE city IS NOT NULL", ()))
    for number in range(101, 191):
        shop.order(number, customers=60)
        if number % 2 == 0:
            shop.progress()
    yield
    shop.transaction(("UPDATE customers SET notes = CONCAT(name, '\\\\', %s) WHERE id %% 5 = 0", ("\x1f line\nbreak",)))
    for _ in range(40):
        shop.progress()
    shop.transaction(("DELETE FROM customers WHERE id NOT IN (SELECT customer_id FROM orders)", ()))


def table_state(server: MariadbServer, table: str) -> TableState:
    where = f"table_schema = '{DATABASE}' AND table_name = '{table}'"
    columns = server.sql(f"SELECT column_name FROM information_schema.columns WHERE {where} ORDER BY ordinal_position")
    key = server.sql(
        f"SELECT column_name FROM information_schema.statistics WHERE {where}"
        " AND index_name = 'PRIMARY' ORDER BY seq_in_index"
    )
    names, primary_key = tuple(row[0] for row in columns), tuple(row[0] for row in key)
    ordered = server.sql(f"SELECT {', '.join(names)} FROM {DATABASE}.{table} ORDER BY {', '.join(primary_key)}")
    rows, sha256 = rows_checksum(ordered)
    return TableState(database=DATABASE, name=table, columns=names, primary_key=primary_key, rows=rows, sha256=sha256)


def record() -> SourceState:
    server = MariadbServer(["--server-id=1", "--binlog-annotate-row-events=0", "--character-set-server=utf8mb4"])
    with server:
        server.sql("RESET MASTER")
        server.sql(f"CREATE DATABASE {DATABASE}")
        with server.connect(DATABASE) as connection, connection.cursor() as cursor:
            shop = Shop(cursor.execute, random.Random(2775))
            for _ in life_of_the_shop(shop):
                cursor.execute("FLUSH BINARY LOGS")
        log, _ = server.master_status()
        tables = tuple(table_state(server, table) for table in server.tables(DATABASE))
        version = str(server.sql("SELECT VERSION()")[0][0])
        server.stop()
        shutil.rmtree(BINLOG_FOLDER, ignore_errors=True)
        BINLOG_FOLDER.mkdir()
        files = [path for path in server.binlog_files if path.name <= log]
        for path in files:
            shutil.copyfile(path, BINLOG_FOLDER / path.name)
        (BINLOG_FOLDER / "binlog.index").write_text("".join(f"./{path.name}\n" for path in files))
        end = files[-1].stat().st_size  # with the STOP event of a clean shutdown
    return SourceState(
        server=version,
        transactions=shop.transactions + 1,
        first_log=files[0].name,
        end_log=log,
        end_position=end,
        tables=tables,
    )


def main() -> None:
    state = record()
    STATE_FILE.write_text(json.dumps(asdict(state), indent=1) + "\n")
    size = sum(path.stat().st_size for path in BINLOG_FOLDER.iterdir())
    assert size <= MOST_BYTES, f"{size} bytes are too much for package data"
    print(f"{size} bytes, {state.transactions} transactions, {[(t.name, t.rows) for t in state.tables]}")


if __name__ == "__main__":
    main()
