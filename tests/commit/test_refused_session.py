"""An account that may not set the source's session: the statement was not executed, and the next start executes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rplctl import mysql_errors as er
from rplctl.errors import TargetError
from tests.applier.demo_log import groups_of
from tests.applier.instance import Instance
from tests.kit.servers import MariadbServer

pytestmark = pytest.mark.slow

SILENT = "SET SESSION sql_log_bin=0;"
GIVEN = """
DROP USER IF EXISTS refused_low; CREATE USER refused_low IDENTIFIED BY 'low';
DROP DATABASE IF EXISTS rplctl; CREATE DATABASE rplctl;
GRANT ALL ON rplctl.* TO refused_low; GRANT ALL ON refused.* TO refused_low;
GRANT CREATE USER, PROCESS ON *.* TO refused_low
"""


@pytest.mark.parametrize(
    ("statement", "undo", "shown"),
    [
        (
            "CREATE USER refused_new",
            "DROP USER refused_new",
            "SELECT COUNT(*) FROM mysql.user WHERE User='refused_new'",
        ),
        ("INSERT INTO refused.t VALUES (7)", "TRUNCATE refused.t", "SELECT COUNT(*) FROM refused.t"),
    ],
)
def test_a_statement_that_the_account_may_not_send_is_executed_after_the_grant(
    tmp_path: Path, mariadb: MariadbServer, statement: str, undo: str, shown: str
) -> None:
    """The note of CREATE USER said that the outcome is unknown: rplctl could not even roll back, and after the GRANT
    came 1593. The account may not read the tables of accounts, so they do not show the outcome.
    """
    mariadb.sql(f"{SILENT} DROP USER IF EXISTS refused_new; CREATE DATABASE refused; CREATE TABLE refused.t (a INT)")
    mariadb.sql("FLUSH BINARY LOGS")
    log = mariadb.binlog_files[-1]
    mariadb.sql(f"SET SESSION binlog_format=STATEMENT; {statement}")
    mariadb.sql(f"{SILENT} {undo}; {GIVEN}")
    url = mariadb.url().replace("rpl:rpl@", "refused_low:low@")
    instance = Instance(tmp_path / "i", groups_of(log), target=url)
    try:
        with pytest.raises(TargetError, match=re.escape(f"Query: '{statement}'")) as refused:
            instance.apply(groups_of(log))
        assert refused.value.errno == er.SPECIFIC_ACCESS_DENIED_ERROR
        mariadb.sql(f"{SILENT} GRANT BINLOG REPLAY ON *.* TO refused_low")
        instance.target.close()
        instance.applier = instance.reopen()
        instance.apply(groups_of(log))
        assert mariadb.sql(shown) == [(1,)]
    finally:
        instance.target.close()
        mariadb.sql(f"{SILENT} DROP USER IF EXISTS refused_new, refused_low; DROP DATABASE IF EXISTS rplctl")
        mariadb.sql(f"{SILENT} DROP DATABASE refused")
