"""The answer of a server to one statement in a form that can be compared: its error, or the names of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.protocol import MysqlPacket


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """`columns` is None where the answer has no result set. A success has errno 0 and no state."""

    errno: int = 0
    state: str = ""
    columns: tuple[str, ...] | None = None
    notes: tuple[int, ...] = ()  # numbers of SHOW WARNINGS, where there is no result set
    text: str = ""  # the error's

    @property
    def compared(self) -> tuple[int, str, tuple[str, ...] | None, tuple[int, ...]]:
        return self.errno, self.state, self.columns, self.notes


class _PacketWithState(MysqlPacket):
    """Raises errors whose third argument is their SQLSTATE, which PyMySQL drops."""

    def raise_for_error(self) -> None:
        packet: Any = self
        data: bytes = packet.get_all_data()
        try:
            super().raise_for_error()
        except pymysql.MySQLError as error:
            error.args = (*error.args, data[4:9].decode() if data[3:4] == b"#" else "")
            raise


class AnsweringConnection(Connection):
    """A connection that answers any statement, also one that fails."""

    def _read_packet(self, packet_type: type = MysqlPacket) -> Any:
        connection: Any = super()
        return connection._read_packet(_PacketWithState if packet_type is MysqlPacket else packet_type)

    def answer(self, statement: str) -> ServerAnswer:
        connection: Any = self
        with connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except pymysql.MySQLError as error:
                return ServerAnswer(error.args[0], (*error.args, "")[2], text=str(error.args[1]))
            if cursor.description is not None:
                return ServerAnswer(columns=tuple(column[0] for column in cursor.description))
            notes = connection.show_warnings() if cursor.warning_count else ()
        return ServerAnswer(notes=tuple(int(row[1]) for row in notes))
