"""Each filter × default database × form of a statement, on a native replica and on an applier of ours.

One log has every form in every default database; each has tables of its own, which both replicas have before, so no
form depends on another one. The log is applied once for each filter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rplctl.applier.feed.plan import plan_batches
from rplctl.command.channel.context import open_repositories
from rplctl.errors import RplError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.beside import SYSTEM, Beside
from tests.kit.native_pair import Comparison, Differences
from tests.kit.servers import MariadbServer

DATABASES = ("shop", "other", "store")
DEFAULTS = ("none", "shop", "other", "lacking")  # none: no default database; lacking: the replicas do not have it
STATEMENT = "SET binlog_format=STATEMENT; {}; SET binlog_format=ROW"
FORMS = {
    "CREATE TABLE": "CREATE TABLE {d}.{t}_new (a INT PRIMARY KEY)",
    "CREATE TABLE LIKE": "CREATE TABLE {d}.{t}_like LIKE {o}.{t}",
    "DROP TABLE": "DROP TABLE {d}.{t}",
    "DROP TABLE of two tables": "DROP TABLE {d}.{t}, {o}.{t}",
    "ALTER TABLE": "ALTER TABLE {d}.{t} ADD b INT",
    "TRUNCATE TABLE": "TRUNCATE TABLE {d}.{t}",
    "RENAME TABLE": "RENAME TABLE {d}.{t} TO {d}.{t}_moved",
    "RENAME TABLE to the other database": "RENAME TABLE {d}.{t} TO {o}.{t}_moved",
    "CREATE INDEX": "CREATE INDEX i ON {d}.{t} (n)",
    "CREATE VIEW": "CREATE VIEW {d}.{t}_view AS SELECT * FROM {o}.{t}",
    "CREATE TRIGGER": "CREATE TRIGGER {d}.{t}_trigger BEFORE INSERT ON {d}.{t} FOR EACH ROW SET @a=1",
    "CREATE PROCEDURE": "CREATE PROCEDURE {d}.{t}_routine() SELECT 1",
    "CREATE DATABASE": "CREATE DATABASE {d}_{t}",
    "ALTER DATABASE": "ALTER DATABASE {d}_{t} CHARACTER SET ascii",
    "DROP DATABASE": "DROP DATABASE {d}_{t}",
    "INSERT as row": "INSERT INTO {d}.{t} VALUES (7, 7)",
    "UPDATE as row": "UPDATE {d}.{t} SET n=9",
    "INSERT": STATEMENT.format("INSERT INTO {d}.{t} VALUES (7, 7)"),
    "UPDATE": STATEMENT.format("UPDATE {d}.{t} SET n=9"),
    "UPDATE of two tables": STATEMENT.format("UPDATE {d}.{t} a, {o}.{t} b SET a.n=9, b.n=9"),
    "DELETE": STATEMENT.format("DELETE FROM {d}.{t}"),
    "INSERT SELECT": STATEMENT.format("INSERT INTO {d}.{t} SELECT 8, n FROM {o}.{t}"),
    "transaction": "BEGIN; INSERT INTO {d}.{t} VALUES (7, 7); INSERT INTO {o}.{t} VALUES (7, 7); COMMIT",
}
UNQUALIFIED = {
    "CREATE TABLE without database": "CREATE TABLE {t}_plain (a INT PRIMARY KEY)",
    "INSERT without database": STATEMENT.format("INSERT INTO {t} VALUES (7, 7)"),
}
ALL_OF_SHOP = "@"  # in a rule: each table of the database shop
FILTERS = (
    "",
    "do_db=shop",
    "do_db=SHOP",
    "ignore_db=other",
    "do_db=shop ignore_db=shop",
    "do_table=shop.t001",
    "do_table=@ wild_ignore_table=%.%",
    "ignore_table=@",
    "ignore_table=SHOP.T001,SHOP.T003,shop.T015",
    "wild_do_table=shop.%",
    "wild_do_table=s%.%",
    "wild_do_table=sh_p.%",
    "wild_do_table=S%.T%",
    "wild_ignore_table=other.%",
    "wild_ignore_table=SHOP.%",
    "wild_ignore_table=lacking.%",
    "do_db=shop wild_do_table=shop.%",
    "do_db=shop wild_ignore_table=shop.%new",
    "ignore_db=other wild_do_table=other.%,shop.%",
    "rewrite_db=shop->store",
    "rewrite_db=shop->store do_db=store",
    "rewrite_db=shop->store wild_do_table=store.%",
    "rewrite_db=shop->store ignore_db=shop",
)
QUICK_FILTERS = ("do_db=shop", "wild_ignore_table=SHOP.%")
KINDS = ("do_db", "ignore_db", "do_table", "ignore_table", "wild_do_table", "wild_ignore_table", "rewrite_db")
State = dict[str, list[str]]


class Cell(NamedTuple):
    """One statement of the log, about its own table `t` in two databases."""

    table: str
    default: str
    form: str
    database: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.default}, {self.database}, {self.form}"


@dataclass
class FilterTable:
    """The statements of `forms` in a log of the source, and what each replica does with it."""

    beside: Beside
    forms: tuple[str, ...] = (*FORMS, *UNQUALIFIED)

    def __post_init__(self) -> None:
        self.cells = {cell.table: cell for cell in self._cells()}
        source = self.beside.source
        self._set_up(source)
        source.sql("SET sql_log_bin=0; CREATE DATABASE lacking")
        source.sql("FLUSH BINARY LOGS")
        for default in DEFAULTS:
            with closing(source.connect(None if default == "none" else default)) as session, session.cursor() as cursor:
                for cell in self.cells.values():
                    if cell.default == default:
                        cursor.execute(cell.text)
                        while cursor.nextset():
                            pass
        self.beside.log = source.master_status()[0]

    def _cells(self) -> Iterator[Cell]:
        number = 0
        for default in DEFAULTS:
            for database, other in (("shop", "other"), ("other", "shop")):
                for form, text in {**FORMS, **(UNQUALIFIED if default == database else {})}.items():
                    number += 1
                    if form in self.forms:
                        table = f"t{number:03}"
                        yield Cell(table, default, form, database, text.format(t=table, d=database, o=other))

    def _set_up(self, server: MariadbServer) -> None:
        made = "".join(f"CREATE DATABASE {database};" for database in DATABASES)
        for table in self.cells:
            made += "".join(f"CREATE TABLE {of}.{table} (a INT PRIMARY KEY, n INT);" for of in DATABASES)
            made += "".join(f"INSERT INTO {of}.{table} VALUES (1, 1);" for of in DATABASES)
        altered = [cell for cell in self.cells.values() if cell.form in ("ALTER DATABASE", "DROP DATABASE")]
        made += "".join(f"CREATE DATABASE {cell.database}_{cell.table};" for cell in altered)
        server.sql(f"SET sql_log_bin=0; {made}")

    def compare(self, comparison: Comparison, text: str) -> None:
        """Apply the log with the filter on both; each cell is a row of the comparison."""
        shop = ",".join(f"shop.{table}" for table in self.cells)
        rules = dict.fromkeys(KINDS, "")
        rules |= dict(rule.replace(ALL_OF_SHOP, shop).split("=", 1) for rule in text.split())
        theirs, (ours, stops) = self._native(rules), self._ours(rules)
        found: dict[str, Differences] = {table: {} for table in self.cells}
        for name in sorted(theirs.keys() | ours.keys()):
            if theirs.get(name) != ours.get(name):
                [table] = re.findall(r"t\d\d\d", name)
                found[table][f"table {name}"] = (theirs.get(name), ours.get(name))
        for table, errno in stops.items():
            found[table]["stop"] = (0, errno)
        for table, differences in found.items():
            comparison.add("filter", f"{text or 'no filter'}: {self.cells[table].name}", differences)

    def _native(self, rules: dict[str, str]) -> State:
        native = self.beside.native
        self.beside.clean(native)
        self._set_up(native)
        if native.kind == "mysql":
            native.sql("STOP REPLICA; RESET REPLICA ALL; RESET BINARY LOGS AND GTIDS")
            native.sql("CHANGE REPLICATION FILTER " + ", ".join(_mysql_rule(*rule) for rule in rules.items()))
        else:
            native.sql("STOP SLAVE; RESET SLAVE ALL")
            native.sql("SET " + ", ".join(f"GLOBAL replicate_{kind}='{rule}'" for kind, rule in rules.items()))
        self.beside.replicate()
        return state(native)

    def _ours(self, rules: dict[str, str]) -> tuple[State, dict[str, int]]:
        server = self.beside.server
        assert server is not None
        options: dict[str, Any] = {f"replicate_{kind}": rule for kind, rule in rules.items()}
        with self.beside.ours("server", **options) as (instance, _):
            self._set_up(server)
            stops = self._apply(instance)
            return state(server), stops

    def _apply(self, instance: Instance) -> dict[str, int]:
        """Apply the whole log. A statement that stops it is skipped; returns its table and the error's number."""
        groups = groups_of(self.beside.source.data / self.beside.log)
        has_rollbacks = instance.applier.executes_statements
        stops: dict[str, int] = {}

        def apply(first: int, stop: int) -> None:
            for batch in plan_batches(groups, stop, has_rollbacks=has_rollbacks):
                if batch.last > first:
                    instance.applier.apply(replace(batch, first=max(batch.first, first)))

        first = 0
        while first < len(groups.scan):
            try:
                apply(first, len(groups.scan))
                break
            except RplError as error:
                failed = int(np.searchsorted(groups.scan.end, int(str(error.position).rpartition(":")[2])))
                [table, *_] = re.findall(r"t\d\d\d", error.message)
                stops[table] = error.errno
                done = open_repositories(instance.config, "").relay().exec_position.log_pos
                apply(int(np.searchsorted(groups.scan.end, done, side="right")), failed)
                first = failed + 1
        return stops


def _mysql_rule(kind: str, rule: str) -> str:
    parts = rule.split(",") if rule else []
    if kind == "rewrite_db":
        parts = [f"({part.replace('->', ',')})" for part in parts]
    elif kind.startswith("wild"):
        parts = [f"'{part}'" for part in parts]
    return f"REPLICATE_{kind.upper()}=({', '.join(parts)})"


def state(server: MariadbServer) -> State:
    """Return every table's columns and rows, and the names of other objects, in few queries."""
    rows = server.sql(
        "SELECT table_schema, table_name, GROUP_CONCAT(column_name ORDER BY ordinal_position)"
        f" FROM information_schema.columns WHERE table_schema NOT IN {SYSTEM} GROUP BY 1, 2"
    )
    found: State = {f"{database}.{table}": [str(columns)] for database, table, columns in rows}
    read = " UNION ALL ".join(
        f"SELECT '{database}.{table}', CONCAT_WS(',', {columns}) FROM {database}.{table}"
        for database, table, columns in rows
        if not table.endswith("_view")
    )
    for name, row in server.sql(read):
        found[name].append(row)
    for columns, table, where in (
        ("trigger_schema, trigger_name", "triggers", f"trigger_schema NOT IN {SYSTEM}"),
        ("routine_schema, routine_name", "routines", f"routine_schema NOT IN {SYSTEM}"),
        ("table_schema, CONCAT(table_name, ' ', index_name)", "statistics", "index_name='i'"),
        ("schema_name, default_character_set_name", "schemata", r"schema_name LIKE '%\_t%'"),
    ):
        for database, name in server.sql(f"SELECT {columns} FROM information_schema.{table} WHERE {where}"):
            found[f"{database}.{name}"] = [table]
    return found
