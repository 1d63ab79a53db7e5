"""Design D16: FILE loads neither SQLAlchemy nor alembic nor Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
from rplctl.channel import Channel
from rplctl.config import Config
from rplctl.info import MasterInfo
from rplctl.repository import list_channels, next_master_id, open_master_info, open_relay_log_info
from rplctl.repository.switch import resolve_repositories
config, channel = Config(Path(sys.argv[1])), Channel("", Path(sys.argv[1]))
def engine(): raise AssertionError("opened")
repository = open_master_info(config, channel, engine)
repository.flush(MasterInfo(host="db1"), force=True)
assert repository.read().host == "db1" and list_channels(config, lambda _: engine) == [""]
assert not open_relay_log_info(config, channel, engine).exists() and next_master_id(config, lambda _: engine) == 1
resolve_repositories(config, channel, engine)
loaded = {name.partition(".")[0] for name in sys.modules}
assert not loaded & {"sqlalchemy", "alembic", "pyspark", "pymysql", "numpy"}, loaded
"""


def test_file_repositories_load_no_database_library(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True, timeout=280)
