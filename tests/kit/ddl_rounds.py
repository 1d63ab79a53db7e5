"""Rounds of random pairs of rows and DDL: made on a real source, applied to a target, and compared table by table."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pymysql

from rplctl.applier.feed.plan import plan_batches
from rplctl.errors import RplError
from rplctl.schema.generated import columns_by_time_zone
from rplctl.schema.model import TableModel
from rplctl.system_zone import SystemZone, read_zone
from rplctl.target.duckdb.connection import driver_of
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.ddl_pairs import Pairs
from tests.kit.duckdb_state import differences as duckdb_differences
from tests.kit.neutral_state import differences as sqlite_differences, parse_state, state_of
from tests.kit.postgresql_state import connect, differences as postgresql_differences
from tests.kit.servers import MariadbServer

DATABASE = "pairs"


@dataclass
class Recorded:
    """A round on the source: its log, what was carried out for each table, and the tables at the end."""

    log: Path
    statements: dict[str, list[str]]
    ends: dict[str, int]  # each table's last position in the log
    states: dict[str, str]
    zone: SystemZone | None = None  # the zone SYSTEM of the source, which the receiver of a live channel asks for


@dataclass
class Outcomes:
    """What became of the pairs of a round on one target."""

    equal: int = 0
    stops: dict[str, RplError] = field(default_factory=dict)
    different: dict[str, str] = field(default_factory=dict)


class Session:
    """One connection of a server that `state_of` asks."""

    def __init__(self, server: MariadbServer) -> None:
        self.connection = server.connect()

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(text)
            return list(cursor.fetchall())


def record(source: MariadbServer, pairs: Pairs, count: int) -> Recorded:
    """Carry out new pairs on the source, each on a table of its own, in a log of their own."""
    source.sql(f"DROP DATABASE IF EXISTS {DATABASE}; FLUSH BINARY LOGS; CREATE DATABASE {DATABASE} CHARSET utf8mb4")
    log, found, ends = source.binlog_files[-1], {}, {}
    status = "SHOW MASTER STATUS" if source.kind == "mariadb" else "SHOW BINARY LOG STATUS"
    for number in range(count):
        with closing(source.connect(DATABASE)) as connection, connection.cursor() as cursor:

            def execute(sql: str, cursor: Any = cursor) -> bool:
                try:
                    cursor.execute(sql)
                    cursor.fetchall()
                except pymysql.Error:
                    return False
                return True

            found[f"t{number}"] = pairs.run(f"t{number}", execute)
            connection.query("SET NAMES utf8mb4")
            cursor.execute(status)
            ends[f"t{number}"] = int(cursor.fetchall()[0][1])
    session: Any = Session(source)
    text = "".join(state_of(session, [DATABASE]))
    states = {state.table: block for block in _blocks(text) for state in parse_state(block)}
    return Recorded(log, found, ends, states, read_zone(session.sql))


def _blocks(text: str) -> Iterator[str]:
    for block in text.split("#TABLE\t")[1:]:
        yield f"#TABLE\t{block}"


def carried_out(recorded: Recorded, folder: Path, options: dict[str, Any]) -> Outcomes:
    """Apply a round to a new target; a pair that stops is left, and the next one begins."""
    groups = groups_of(recorded.log)
    if groups.format_description is not None:
        groups = replace(groups, format_description=replace(groups.format_description, system_zone=recorded.zone))
    instance = Instance(folder, groups, **options)
    batches, found, first = list(plan_batches(groups, len(groups.scan))), Outcomes(), 0
    with closing(instance.target), comparison(instance) as compare:
        for table, end in recorded.ends.items():
            last = int(np.searchsorted(groups.scan.end, end, side="right"))
            own = [b for b in batches if b.last > first and b.first < last]
            try:
                for batch in own:
                    instance.applier.apply(replace(batch, first=max(batch.first, first), last=min(batch.last, last)))
            except RplError as error:
                found.stops[table] = error
                instance.applier = instance.reopen()
            first = last
        for table, state in recorded.states.items():
            if table in found.stops:
                continue
            try:
                differences = compare(_stable(state, instance.applier.catalog.tables.get((DATABASE, table))))
            except Exception as error:  # noqa: BLE001 - a table that cannot be read as the source has it
                differences = [repr(error)]
            if differences:
                found.different[table] = "\n".join(differences)
            else:
                found.equal += 1
    return found


def _stable(state: str, model: TableModel | None) -> str:
    """Return the state of a table without the columns that have another value in each session of the source."""
    unstable = columns_by_time_zone(model) if model is not None else ()
    head, *lines = state.split("\n")
    kept = ["\t".join(c for n, c in enumerate(line.split("\t")) if n not in unstable) for line in lines]
    return "\n".join([head, *kept])


@contextmanager
def comparison(instance: Instance) -> Iterator[Callable[[str], list[str]]]:
    """Yield a function that tells how the target's table differs from one of the source."""
    url = str(instance.config.target or "")
    if url.startswith("postgresql"):
        with closing(connect(url)) as there:
            yield lambda state: list(postgresql_differences(there, state))
    elif url.startswith("duckdb"):
        driver = driver_of(instance.target.connection)
        yield lambda state: list(duckdb_differences(driver, instance.applier.catalog.tables, state))
    else:
        with closing(sqlite3.connect(instance.config.datadir / "target.db")) as file:
            yield lambda state: sqlite_differences(file, state)
