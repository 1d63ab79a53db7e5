"""doctor on PostgreSQL: each right that is missing is named with the statement that gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.command.doctor import doctor
from rplctl.config import Config
from rplctl.target.dialect import FAIL, OK, WARN, DoctorLine
from tests.kit.postgresql_state import new_database
from tests.kit.servers import PostgresqlServer

pytestmark = pytest.mark.postgresql


def about_target(folder: Path, url: str) -> dict[str, DoctorLine]:
    found = {finding.Check: finding for finding in doctor(Config(folder, target=url), [])}
    return {check: finding for check, finding in found.items() if check.startswith("target")}


def test_an_account_with_all_rights_has_nothing_to_mend(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    found = about_target(tmp_path, new_database(postgresql))
    assert {finding.Result for finding in found.values()} == {OK}
    assert set(found) == {
        "target", "target connection", "target encoding", "target schemas", "target temporary tables",
        "target foreign keys",
    }  # fmt: skip


def test_what_an_account_lacks_is_named_with_its_grant(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    url = new_database(postgresql)
    name = url.rpartition("/")[2]
    postgresql.sql("DROP ROLE IF EXISTS nobody; CREATE ROLE nobody LOGIN PASSWORD 'n'")
    postgresql.sql(f"REVOKE TEMP ON DATABASE {name} FROM PUBLIC")
    account = url.replace("rpl:rpl@", "nobody:n@")
    found = about_target(tmp_path, account)
    lacking = ["target schemas", "target temporary tables", "target foreign keys"]
    assert [found[check].Result for check in lacking] == [WARN] * 3
    assert all("GRANT" in found[check].Hint for check in lacking)
    grant = found["target foreign keys"].Hint
    assert grant == "GRANT SET ON PARAMETER session_replication_role TO nobody"
    postgresql.sql(f"GRANT CREATE, TEMPORARY ON DATABASE {name} TO nobody")
    postgresql.sql(grant)
    assert {finding.Result for finding in about_target(tmp_path, account).values()} == {OK}
    postgresql.sql("REVOKE SET ON PARAMETER session_replication_role FROM nobody")


def test_a_database_that_cannot_hold_every_text_fails(tmp_path: Path, postgresql: PostgresqlServer) -> None:
    postgresql.sql("DROP DATABASE IF EXISTS latin")
    postgresql.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    found = about_target(tmp_path, postgresql.url("latin"))["target encoding"]
    assert (found.Result, found.Detail) == (FAIL, "LATIN1")
    assert "createdb -E UTF8" in found.Hint


def test_a_target_that_is_away_says_so_without_the_password(tmp_path: Path) -> None:
    found = about_target(tmp_path, "postgresql://u:geheim@127.0.0.1:1/x")["target"]
    assert found.Result == FAIL
    assert "geheim" not in repr(found)
