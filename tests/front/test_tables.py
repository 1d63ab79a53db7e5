"""What monitoring tools SELECT from the front, beside a real server where the answer has to be its answer."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any

import pymysql
import pytest

from rplctl.config import load_config
from rplctl.front.table_columns import COLUMNS
from rplctl.front.tables import columns_of, table_names
from tests.cli.program import Program
from tests.front.test_front import PASSWORD, ask, connect, datadir, errno_of, served
from tests.kit.replica import wait_until
from tests.kit.servers import MysqlServer as RealMysql

__all__ = ["datadir"]
REPLICATION = [name for name in COLUMNS if ".replication_" in name]

# statements of Orchestrator, MaxScale, PMM, Zabbix, Datadog, mysqld_exporter and MySQL's JDBC driver (public sources)
OF_TOOLS = """
select count(*) > 0 and MAX(User_name) != '' from mysql.slave_master_info
select @@global.hostname, ifnull(@@global.report_host, ''), @@global.server_id, @@global.version
select substring_index(host, ':', 1) as slave_hostname from information_schema.processlist
 where command IN ('Binlog Dump', 'Binlog Dump GTID')
SELECT SERVICE_STATE FROM performance_schema.replication_connection_status
SELECT COUNT(*) FROM information_schema.tables
SELECT SUM(DATA_LENGTH + INDEX_LENGTH) FROM information_schema.tables WHERE table_schema = 'x'
SELECT page_size, compress_ops FROM information_schema.innodb_cmp
SELECT page_size, pages_used FROM information_schema.innodb_cmpmem
SELECT VARIABLE_VALUE FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'GTID_MODE'
SELECT THREAD_ID, NAME FROM performance_schema.threads
 WHERE NAME LIKE '%worker' OR processlist_command LIKE 'Binlog dump%'
SELECT SCHEMA_NAME FROM information_schema.schemata WHERE SCHEMA_NAME NOT IN ('mysql', 'sys')
SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'group_replication'
SELECT /* probe */ SQL_NO_CACHE 1
/* mysql-connector-j */SELECT  @@session.auto_increment_increment AS auto_increment_increment,
 @@character_set_client AS character_set_client, @@init_connect AS init_connect, @@license AS license,
 @@interactive_timeout AS interactive_timeout, @@max_allowed_packet AS max_allowed_packet,
 @@performance_schema AS performance_schema, @@system_time_zone AS system_time_zone,
 @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout
SELECT @@session.transaction_read_only
SELECT conf.CHANNEL_NAME, conf.HOST, app.SERVICE_STATE FROM performance_schema.replication_connection_configuration conf
 JOIN performance_schema.replication_applier_status app ON app.channel_name = conf.channel_name
""".strip().replace("\n ", " ").splitlines()  # fmt: skip


@pytest.mark.parametrize("table", REPLICATION)
def test_the_columns_are_those_of_a_server(mysql: RealMysql, table: str) -> None:
    assert [row[0] for row in mysql.sql(f"SHOW COLUMNS FROM {table}")] == COLUMNS[table]


def test_statements_of_tools_are_answered(datadir: Path, mysql: RealMysql) -> None:
    """With the names that a real server gives the columns."""
    with served(datadir) as server, mysql.connect() as connection, connection.cursor() as cursor:
        for sql in OF_TOOLS:
            names, _ = ask(server, "monitor", sql)
            cursor.execute(sql)
            assert [name.lower() for name in names] == [column[0].lower() for column in cursor.description], sql


def test_every_table_is_read_and_listed_and_none_holds_a_password(datadir: Path) -> None:
    with served(datadir) as server:
        for table in table_names():
            names, rows = ask(server, "dba", f"SELECT * FROM {table}")
            assert names == columns_of(table)
            assert not any("source-pw" in str(value) or "encrypted:" in str(value) for row in rows for value in row)
        listed = {f"{row[0]}.{row[1]}" for row in ask(server, "monitor", LISTED)[1]}
        assert listed == set(table_names())
        assert ("slave_master_info",) in ask(server, "monitor", "SHOW TABLES FROM mysql")[1]
        assert errno_of(server, "monitor", "SHOW TABLES") == 1046


LISTED = "SELECT table_schema, table_name FROM information_schema.tables"


def test_rows_say_what_show_replica_status_says(datadir: Path) -> None:
    with served(datadir) as server:
        status = dict(zip(*_first(ask(server, "monitor", "SHOW REPLICA STATUS")), strict=True))
        found = ask(server, "monitor", f"SELECT host, port, user FROM {CONFIGURATION} WHERE channel_name = ''")[1]
        assert found == [(status["Source_Host"], status["Source_Port"], status["Source_User"])]
        states = ask(server, "monitor", "SELECT service_state FROM performance_schema.replication_connection_status")[1]
        assert states == [("OFF",)]
        stored = ask(server, "monitor", "SELECT Host, User_password, Channel_name FROM mysql.slave_master_info")[1]
        assert stored == [("127.0.0.1", "", "")]


CONFIGURATION = "performance_schema.replication_connection_configuration"


def _first(answer: tuple[list[str], list[tuple[Any, ...]]]) -> tuple[list[str], tuple[Any, ...]]:
    return answer[0], answer[1][0]


def test_log_status_is_the_administrators(datadir: Path) -> None:
    with served(datadir) as server:
        assert errno_of(server, "monitor", "SELECT * FROM performance_schema.log_status") == 1227
        names, rows = ask(server, "dba", "SELECT * FROM performance_schema.log_status")
        assert names == COLUMNS["performance_schema.log_status"]
        assert json.loads(rows[0][2])["channels"][0]["channel_name"] == ""


def test_functions_of_gtids_are_a_servers(datadir: Path, mysql: RealMysql) -> None:
    one, two = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5", "3E11FA47-71CA-11E1-9E33-C80AA9429562:2-7"
    with served(datadir) as server:
        for call in (f"GTID_SUBSET('{one}', '{two}')", f"GTID_SUBTRACT('{one}', '{two}')", "GTID_SUBSET('', '')",
                     f"GTID_SUBTRACT('{one}', '')", f"GTID_SUBSET(NULL, '{two}')"):  # fmt: skip
            assert ask(server, "monitor", f"SELECT {call}")[1] == [tuple(mysql.sql(f"SELECT {call}")[0])], call
        assert errno_of(server, "monitor", "SELECT GTID_SUBSET('nonsense', '')") == 1772


def test_waiting_ends_by_time_by_a_stopped_applier_and_by_a_client_that_goes(datadir: Path) -> None:
    with served(datadir) as server:
        assert ask(server, "monitor", "SELECT SOURCE_POS_WAIT('binlog.000009', 4, 0.2)")[1] == [(None,)]
        gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:9"
        assert ask(server, "monitor", f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtid}', 0.2)")[1] == [(1,)]
        assert ask(server, "monitor", "SELECT WAIT_FOR_EXECUTED_GTID_SET('')")[1] == [(0,)]
        leaving = connect(server, "monitor")
        leaving._execute_command(3, f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtid}')")
        before = threading.active_count()
        leaving._force_close()
        wait_until(lambda: not server.front.sessions, 30)
        assert threading.active_count() <= before


def test_filters_are_changed_as_on_a_server(datadir: Path) -> None:
    with served(datadir) as server:
        sql = "CHANGE REPLICATION FILTER REPLICATE_DO_DB = (shop, `web`), REPLICATE_WILD_IGNORE_TABLE = ('shop.tmp%')"
        assert errno_of(server, "monitor", sql) == 1227
        assert errno_of(server, "dba", sql) == 0
        assert errno_of(server, "dba", "CHANGE REPLICATION FILTER REPLICATE_REWRITE_DB = ((a, b))") == 0
        assert errno_of(server, "dba", "CHANGE REPLICATION FILTER REPLICATE_DO_TABLE = (shop.t, shop.u)") == 0
        assert errno_of(server, "dba", "CHANGE REPLICATION FILTER REPLICATE_DO_DB = (`a,b`)") == 1210  # not two names
        config = load_config(datadir, "")
        assert (config.replicate_do_db, config.replicate_rewrite_db) == ("shop,web", "a->b")
        row = ask(server, "monitor", "SELECT filter_rule FROM performance_schema.replication_applier_filters")[1]
        assert len(row) == 4


def test_a_transaction_is_skipped_as_a_dba_of_mysql_does_it(datadir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562:9"
    with served(datadir) as server, connect(server, "dba") as connection, connection.cursor() as cursor:
        with pytest.raises(pymysql.err.MySQLError):
            cursor.execute("SET GTID_NEXT = 'nonsense'")
        for sql in (f"SET GTID_NEXT = '{gtid}'", "BEGIN", "COMMIT", "SET GTID_NEXT = 'AUTOMATIC'", "BEGIN", "COMMIT"):
            cursor.execute(sql)
    shown = Program(datadir, capsys)("show-status", "--json")
    assert json.loads(shown.out)[0]["Skip_Gtids"] == gtid


def test_logs_and_grants_are_shown(datadir: Path) -> None:
    with served(datadir) as server:
        assert errno_of(server, "monitor", "SHOW BINARY LOGS") == 1381
        assert errno_of(server, "dba", "PURGE BINARY LOGS TO 'binlog.000002'") == 1381
        names, _ = ask(server, "monitor", "SHOW RELAYLOG EVENTS LIMIT 2")
        assert ask(server, "monitor", "SHOW RELAYLOG EVENTS LIMIT 18446744073709551615, 2")[1] == []
        assert names == ["Log_name", "Pos", "Event_type", "Server_id", "End_log_pos", "Info"]
        assert "REPLICATION CLIENT" in ask(server, "monitor", "SHOW GRANTS FOR CURRENT_USER()")[1][0][0]
        assert "PROCESS" in ask(server, "monitor", "SHOW GRANTS")[1][0][0]  # Percona's tools look for it
        assert PASSWORD not in str(ask(server, "monitor", "SHOW PROCESSLIST"))
        assert re.fullmatch(r"127\.0\.0\.1:\d+", ask(server, "monitor", "SHOW PROCESSLIST")[1][0][2])
        query = "SELECT PROCESSLIST_HOST FROM performance_schema.threads WHERE PROCESSLIST_USER = 'monitor'"
        assert ask(server, "monitor", query)[1] == [("127.0.0.1",)]


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("SELECT CONCAT({0}, a.column_name) FROM {1} a, {1} b", 1301),
        ("SELECT 1 FROM {1} a, {1} b, {1} c ORDER BY {0}", 1317),
        ("SELECT CONCAT({0}, a.column_name, b.column_name) x FROM {1} a, {1} b ORDER BY x", 1317),
        ("SELECT COUNT(DISTINCT CONCAT({0}, a.column_name, b.column_name)) FROM {1} a, {1} b", 1317),
    ],
)
def test_a_statement_uses_neither_a_core_for_long_nor_much_memory(datadir: Path, sql: str, number: int) -> None:
    large = f"hex(hex(hex(hex(hex(hex('{'x' * 8000}'))))))"
    with served(datadir) as server:
        assert errno_of(server, "monitor", sql.format(large, "information_schema.columns")) == number
        assert errno_of(server, "monitor", "SELECT * FROM information_schema.columns ORDER BY column_name") == 0


def test_a_channel_whose_target_is_away_hides_no_other_channel(
    datadir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    away = ["[channel.away]", 'target = "mysql://u@127.0.0.1:1/"', 'master_info_repository = "TABLE"']
    (datadir / "rplctl.toml").write_text("\n".join([*away, 'relay_log_info_repository = "TABLE"', ""]))
    with served(datadir) as server, connect(server, "dba") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW REPLICA STATUS")
        at = [column[0] for column in cursor.description].index("Channel_Name")
        assert [row[at] for row in cursor.fetchall()] == [""]
        cursor.execute("SHOW WARNINGS")
        assert ["'away'" in row[2] for row in cursor.fetchall()] == [True]
        for sql in ("SHOW PROCESSLIST", "SHOW GLOBAL STATUS", "SHOW VARIABLES"):
            cursor.execute(sql)
            assert cursor.fetchall()
        with pytest.raises(pymysql.MySQLError) as error:
            cursor.execute("SHOW REPLICA STATUS FOR CHANNEL 'away'")
        assert error.value.args[0] == 1105 and "127.0.0.1" in error.value.args[1]
