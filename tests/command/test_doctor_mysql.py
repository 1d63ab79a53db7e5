"""doctor on MySQL and MariaDB targets: what makes applying slower than it could be is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.command.doctor import OK, WARN, doctor
from rplctl.config import Config
from tests.servers import MariadbServer


@pytest.mark.mariadb
def test_a_target_that_takes_no_load_data_is_named_with_the_setting(tmp_path: Path, mariadb: MariadbServer) -> None:
    def local_infile() -> tuple[str, str]:
        found = {finding.Check: finding for finding in doctor(Config(tmp_path, target=mariadb.url()), [])}
        return found["target local_infile"].Result, found["target local_infile"].Hint

    assert local_infile() == (OK, "")
    mariadb.sql("SET GLOBAL local_infile=0")
    try:
        result, hint = local_infile()
    finally:
        mariadb.sql("SET GLOBAL local_infile=1")
    assert result == WARN
    assert "local_infile=1" in hint
