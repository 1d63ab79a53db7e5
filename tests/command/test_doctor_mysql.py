"""doctor on MySQL and MariaDB targets: what makes applying slower, and who could answer in the target's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.command.doctor import FAIL, OK, WARN, doctor
from rplctl.config import Config
from rplctl.handshake import Protection
from rplctl.target.mysql.dialect import MysqlDialect
from tests.handshake.test_rogue_server import PASSWORD, Thief
from tests.kit.servers import MariadbServer


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


@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("protection", "result"),
    [
        (Protection(is_remote=True, encrypted=False, verified=False), WARN),
        (Protection(is_remote=True, encrypted=True, verified=False), WARN),
        (Protection(is_remote=True, encrypted=True, verified=True), OK),
        (Protection(is_remote=False, encrypted=False, verified=False), OK),
    ],
)
def test_a_remote_target_that_anyone_could_be_is_warned_of(
    tmp_path: Path, mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch, protection: Protection, result: str
) -> None:
    found = {finding.Check: finding for finding in doctor(Config(tmp_path, target=mariadb.url()), [])}
    assert found["target connection"].Detail.startswith("on this machine")
    monkeypatch.setattr(MysqlDialect, "protection", staticmethod(lambda _: protection))
    found = {finding.Check: finding for finding in doctor(Config(tmp_path, target=mariadb.url()), [])}
    assert found["target connection"].Result == result
    assert ("ssl_ca=FILE" in found["target connection"].Hint) == (result == WARN)


@pytest.mark.parametrize("plugin", ["mysql_clear_password", "dialog", "caching_sha2_password", "sha256_password"])
def test_one_doctor_is_not_enough_for_a_thief(tmp_path: Path, plugin: str) -> None:
    with Thief(None, switches=True) as thief:
        thief.begin(plugin)
        url = f"mysql://rpl:{PASSWORD}@127.0.0.1:{thief.port}/"
        found = {finding.Check: finding for finding in doctor(Config(tmp_path, target=url), [])}
    assert thief.received and not thief.knows
    assert found["target"].Result == FAIL and "ssl_ca=FILE" in found["target"].Hint
    assert PASSWORD not in str(found)
