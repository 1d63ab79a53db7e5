"""Reading a table for a copy: raw packets and kernels against PyMySQL's unbuffered cursor and mariadb-dump.

400,000 rows as sysbench makes them, on a private MariaDB. All three read the same rows; ours ends with row images in
memory. The ratio is theirs / ours, in the same run.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import numpy as np
import pymysql
import pymysql.cursors

from rplctl.info import MasterInfo
from rplctl.result_set.columns import SESSION, selected_columns
from rplctl.result_set.rows import read_images
from rplctl.schema.model import Column
from rplctl.source.connection import log_in
from rplctl.source.select import SelectedRows
from rplctl.sql_text import Sql
from tests.bench.measurement import Measurement
from tests.kit.private_server import ServerUnavailable
from tests.kit.servers import MariadbServer

ROWS = 400_000
COLUMNS = [
    Column(name="id", type="int"),
    Column(name="k", type="int"),
    Column(name="c", type="char", length=120),
    Column(name="pad", type="char", length=60),
]


def measure() -> Iterator[Measurement]:
    try:
        server = MariadbServer(("--innodb-buffer-pool-size=512M",))
    except ServerUnavailable as reason:
        print(f"skipped: {reason}")
        return
    with server:
        server.sql(
            "CREATE DATABASE b; USE b; CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120), pad CHAR(60));"
            f" INSERT INTO t SELECT seq, seq % 97, REPEAT(CHAR(65 + seq % 26), 119), REPEAT('-', 59)"
            f" FROM seq_1_to_{ROWS}"
        )
        _ours(server, "SELECT id, k, c, pad FROM b.t WHERE id < 100")  # compiled, and the rows in the server's memory
        read, walked = _ours(server, "SELECT id, k, c, pad FROM b.t")
        yield Measurement("rows of a SELECT read as packets", read, "s", f"{ROWS / read / 1e3:.0f} k rows/s")
        yield Measurement("and those packets walked to row images", walked, "s", f"{ROWS / walked / 1e3:.0f} k rows/s")
        cursor = _pymysql(server)
        ratios = f"ratio {cursor / read:.1f}, with the walk {cursor / (read + walked):.1f}"
        yield Measurement("rows of a SELECT by PyMySQL's cursor", cursor, "s", ratios)
        dump = _dump(server)
        yield Measurement("rows dumped by mariadb-dump", dump, "s", f"ratio {dump / read:.1f}")


def _ours(server: MariadbServer, sql: str) -> tuple[float, float]:
    """Seconds to read, and to walk."""
    columns = selected_columns(COLUMNS)
    mysql = log_in(MasterInfo(host=server.host, port=server.port, user_name="rpl"), "rpl", 60)
    began = time.perf_counter()
    mysql.query(SESSION)
    rows = SelectedRows(mysql, Sql(sql), "bench")
    packets, filled = np.zeros(128 << 20, np.uint8), 0
    for piece in rows.pieces():
        packets[filled : filled + len(piece)] = piece
        filled += len(piece)
    read = time.perf_counter()
    count = sum(len(images.cell_start) for images in read_images(packets[:filled], columns, rows.wire_types))
    walked = time.perf_counter()
    mysql._force_close()
    assert count == rows.rows
    return read - began, walked - read


def _pymysql(server: MariadbServer) -> float:
    connection = pymysql.connect(
        host=server.host, port=server.port, user="rpl", password="rpl", cursorclass=pymysql.cursors.SSCursor
    )
    began = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, k, c, pad FROM b.t")
        count = 0
        while rows := cursor.fetchmany(10_000):
            count += len(rows)
    taken = time.perf_counter() - began
    connection.close()
    assert count == ROWS
    return taken


def _dump(server: MariadbServer) -> float:
    command = ["mariadb-dump", f"--socket={server.socket}", "-urpl", "-prpl", "b", "t"]
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
