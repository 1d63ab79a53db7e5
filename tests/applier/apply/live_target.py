"""A target that executes statements, as far as the applier's tables ask it: what it has, and what it was told."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from rplctl.decode.row_stream import EventRun, run_of
from rplctl.event.format_description import CHECKSUM_CRC32, build_format_description, parse_format_description
from rplctl.event.types import EventType
from rplctl.schema.context import DdlContext
from rplctl.schema.model import TableModel
from rplctl.schema.plan import Catalog, plan_ddl
from rplctl.schema.statement import TableName
from rplctl.target.base import SourceStatement
from tests.event.logs import event

MYSQL = parse_format_description(build_format_description(1, 0, CHECKSUM_CRC32, "8.0.40"))
CONTEXT = DdlContext(server_version="8.0.40")


def catalog_of(*statements: str) -> Catalog:
    """What CREATE TABLE statements of database d make."""
    catalog = Catalog()
    for sql in statements:
        catalog = catalog.after(plan_ddl(sql, "d", CONTEXT, catalog))
    return catalog


def table_map(table: str, types: bytes, metadata: bytes, table_id: int = 9) -> bytes:
    """Of d.`table`, every column nullable."""
    head = table_id.to_bytes(6, "little") + b"\1\0\1d\0" + bytes([len(table)]) + table.encode() + b"\0"
    nullable = b"\xff" * ((len(types) + 7) // 8)
    body = head + bytes([len(types)]) + types + bytes([len(metadata)]) + metadata + nullable
    return event(EventType.TABLE_MAP, body)


def run_with(*events: bytes) -> EventRun:
    """As they lie in a log with checksums."""
    plain = run_of(events, MYSQL)
    return EventRun(data=plain.data, starts=plain.starts, lengths=plain.lengths, types=plain.types, description=MYSQL)


class LiveTarget:
    """`tables`: by name; `said`: its calls."""

    kind = "mysql"

    def __init__(self, *statements: str) -> None:
        self.tables: dict[TableName, TableModel] = dict(catalog_of(*statements).tables)
        self.asked: list[TableName] = []
        self.said: list[Any] = []
        self.statements: list[SourceStatement] = []
        self.without_transactions: set[str] = set()
        self.replayed: set[str] = set()  # only the server can apply their rows
        self.preferred: set[str] = set()
        self.parents: frozenset[TableName] = frozenset()
        self.connection = SimpleNamespace(exec_driver_sql=self.said.append)

    def table_model(self, database: str, table: str) -> TableModel | None:
        self.asked.append((database, table))
        return self.tables.get((database, table))

    def run_statement(self, statement: SourceStatement) -> Sequence[str]:
        self.statements.append(statement)
        return ()

    def roll_back_to(self, savepoint: str) -> None:
        self.said.append(f"ROLLBACK TO {savepoint}")

    def check_foreign_keys(self, wanted: bool) -> None:
        self.said.append(wanted)

    def introduce(self, description: object) -> None:
        self.said.append("introduced")

    def can_replay(self, description: object) -> bool:
        return True

    def replay_rows(self, table_map: bytes, rows: bytes, description: object) -> None:
        self.said.append(rows)

    def wants_replay(self, model: TableModel) -> bool:
        return model.name in self.replayed

    def prefers_replay(self, model: TableModel) -> bool:
        return model.name in self.preferred

    def is_transactional(self, model: TableModel) -> bool:
        return model.name not in self.without_transactions

    def cascading_parents(self) -> frozenset[TableName]:
        return self.parents


def names(said: Sequence[Any]) -> list[str]:
    return [word for word in said if isinstance(word, str)]
