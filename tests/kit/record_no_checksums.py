"""Records logs without checksums: `python -m tests.kit.record_no_checksums` writes tests/data/no_checksums.

From a private server of each vendor that begins with binlog_checksum=NONE. The setting changes with each log.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.kit.servers import MariadbServer, MysqlServer

FOLDER = Path(__file__).parents[1] / "data/no_checksums"
SETTINGS = ("NONE", "CRC32", "NONE")
PER_LOG = 3
SERVERS: dict[str, tuple[type[MariadbServer], tuple[str, ...]]] = {
    "mariadb": (MariadbServer, ()),
    "mysql": (MysqlServer, ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")),
}
BEGINS = "--binlog-checksum=NONE", "--server-id=1"


def write(server: MariadbServer) -> None:
    """PER_LOG rows in a log of each setting."""
    server.sql("CREATE DATABASE plain; CREATE TABLE plain.t (id INT PRIMARY KEY, word VARCHAR(20))")
    for number, setting in enumerate(SETTINGS):
        if number:
            server.sql(f"SET GLOBAL binlog_checksum={setting}")  # begins the next log
        for row in range(PER_LOG):
            server.sql(f"INSERT INTO plain.t VALUES ({10 * number + row}, '{setting} {row}')")


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, (kind, more) in SERVERS.items():
        with kind([*BEGINS, *more]) as server:
            write(server)
            server.sql("FLUSH BINARY LOGS")
            (FOLDER / name).mkdir(parents=True)
            for path in server.binlog_files[: len(SETTINGS)]:
                shutil.copyfile(path, FOLDER / name / path.name)


if __name__ == "__main__":
    main()
