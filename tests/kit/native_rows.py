"""Rows of the comparison with a native replica: options, scripts of verbs and status, and the explained differences.

A script is a list of steps. A step is a statement for both replicas, or begins with a word that says for whom it is:
`source:` and `replicas:` execute SQL, and `mark:` names the end of the source's log. `{d}` is a database of the
script's own. After each step, the native replica's columns become as the step says; then all columns are compared.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.kit.native_pair import Explained

OPTIONS = {  # of both vendors
    "MASTER_HOST": "'127.0.0.2'",
    "MASTER_PORT": "3311",
    "MASTER_USER": "'other'",
    "MASTER_PASSWORD": "'x'",
    "MASTER_LOG_FILE": "'binlog.000003'",
    "MASTER_LOG_POS": "400",
    "MASTER_CONNECT_RETRY": "7",
    "MASTER_HEARTBEAT_PERIOD": "2.5",
    "IGNORE_SERVER_IDS": "(3, 1)",
    "MASTER_SSL": "1",
    "MASTER_SSL_CA": "'/ca.pem'",
    "MASTER_SSL_CAPATH": "'/ca'",
    "MASTER_SSL_CERT": "'/cert.pem'",
    "MASTER_SSL_KEY": "'/key.pem'",
    "MASTER_SSL_CIPHER": "'AES128-SHA'",
    "MASTER_SSL_CRL": "'/crl.pem'",
    "MASTER_SSL_CRLPATH": "'/crl'",
    "MASTER_SSL_VERIFY_SERVER_CERT": "1",
    "RELAY_LOG_FILE": "'relay-bin.000001'",
    "RELAY_LOG_POS": "4",
    "MASTER_DELAY": "5",
    "MASTER_USE_GTID": "slave_pos",
}
OPTIONS_OF_VENDOR = {
    "mariadb": {"DO_DOMAIN_IDS": "(1)", "IGNORE_DOMAIN_IDS": "(2)"},
    "mysql": {
        "MASTER_RETRY_COUNT": "9",
        "MASTER_BIND": "'127.0.0.1'",
        "MASTER_TLS_VERSION": "'TLSv1.2'",
        "MASTER_TLS_CIPHERSUITES": "'TLS_AES_128_GCM_SHA256'",
        "MASTER_PUBLIC_KEY_PATH": "'/key.pem'",
        "GET_MASTER_PUBLIC_KEY": "1",
        "MASTER_COMPRESSION_ALGORITHMS": "'uncompressed'",
        "MASTER_ZSTD_COMPRESSION_LEVEL": "3",
        "NETWORK_NAMESPACE": "''",
        "PRIVILEGE_CHECKS_USER": "NULL",
        "REQUIRE_ROW_FORMAT": "1",
        "REQUIRE_TABLE_PRIMARY_KEY_CHECK": "ON",
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS": "LOCAL",
        "SOURCE_CONNECTION_AUTO_FAILOVER": "0",
        "GTID_ONLY": "0",
    },
}
Expected = Mapping[str, object]
Step = tuple[str, Expected]
Script = list[Step]
RUN: Expected = {"Slave_IO_Running": "Yes", "Slave_SQL_Running": "Yes"}
RECEIVES: Expected = {"Slave_IO_Running": "Yes", "Slave_SQL_Running": "No"}
APPLIES: Expected = {"Slave_IO_Running": "No", "Slave_SQL_Running": "Yes"}
STOPPED: Expected = {"Slave_IO_Running": "No", "Slave_SQL_Running": "No"}
READ: Expected = {"read": "end"}
DONE: Expected = {"read": "end", "executed": "end"}
FAILED: Expected = {"Slave_SQL_Running": "No"}
ANY: Expected = {}
STATES: dict[str, tuple[str, Expected]] = {
    "stopped": ("", ANY),
    "receiver runs": ("START SLAVE IO_THREAD", RECEIVES),
    "applier runs": ("START SLAVE SQL_THREAD", APPLIES),
    "both run": ("START SLAVE", RUN),
}
MADE: Step = (
    "source: CREATE DATABASE {d}; CREATE TABLE {d}.t (a INT PRIMARY KEY); INSERT INTO {d}.t VALUES (1)",
    DONE,
)


def _failing(before: str, event: str, ends: Expected = FAILED) -> Script:
    """The event meets what `before` did on the replicas, twice."""
    steps: Script = [("START SLAVE", RUN), MADE, (f"replicas: {before}", ANY), (f"source: {event}", ends)]
    return [*steps, ("STOP SLAVE", STOPPED), ("START SLAVE", ends)]


SCRIPTS: dict[str, Script] = {
    "verb: new channel": [
        ("RESET SLAVE ALL", ANY),
        ("CHANGE MASTER TO MASTER_HOST='h'", ANY),
    ],
    "verb: start and stop": [
        ("START SLAVE", RUN),
        MADE,
        ("STOP SLAVE", STOPPED),
        ("START SLAVE", RUN),
        ("STOP SLAVE IO_THREAD", APPLIES),
        ("STOP SLAVE SQL_THREAD", STOPPED),
        ("START SLAVE SQL_THREAD", APPLIES),
        ("START SLAVE IO_THREAD", RUN),
        ("START SLAVE", RUN),
        ("STOP SLAVE SQL_THREAD", RECEIVES),
        ("source: INSERT INTO {d}.t VALUES (2)", READ),
        ("START SLAVE", DONE),
        ("STOP SLAVE", STOPPED),
        ("STOP SLAVE", STOPPED),
    ],
    "verb: reset": [
        ("START SLAVE", RUN),
        MADE,
        ("RESET SLAVE", RUN),
        ("RESET SLAVE ALL", RUN),
        ("STOP SLAVE", STOPPED),
        ("RESET SLAVE", STOPPED),
        ("RESET SLAVE", STOPPED),
        ("RESET SLAVE ALL", ANY),
        ("RESET SLAVE ALL", ANY),
        ("START SLAVE", ANY),
        ("STOP SLAVE", ANY),
    ],
    "verb: until": [
        ("source: CREATE DATABASE {d}; CREATE TABLE {d}.t (a INT PRIMARY KEY)", ANY),
        ("mark: one", ANY),
        ("source: INSERT INTO {d}.t VALUES (2)", ANY),
        ("mark: two", ANY),
        ("source: INSERT INTO {d}.t VALUES (3)", ANY),
        ("START SLAVE UNTIL MASTER_LOG_FILE='{log}', MASTER_LOG_POS={one}", {**RECEIVES, **READ}),
        ("STOP SLAVE", STOPPED),
        ("START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE='{log}', MASTER_LOG_POS={two}", STOPPED),
        ("START SLAVE UNTIL MASTER_LOG_POS=4", STOPPED),
        ("START SLAVE", DONE),
    ],
    "verb: skip": [
        *_failing("INSERT INTO {d}.t VALUES (2)", "INSERT INTO {d}.t VALUES (2)"),
        ("SET GLOBAL sql_slave_skip_counter = 1", ANY),
        ("START SLAVE SQL_THREAD", ANY),
        ("source: INSERT INTO {d}.t VALUES (3)", ANY),
    ],
    "verb: continue by GTID": [
        ("START SLAVE", RUN),
        MADE,
        ("STOP SLAVE", STOPPED),
        ("CHANGE MASTER TO MASTER_USE_GTID=slave_pos", STOPPED),
        ("START SLAVE", RUN),
        ("source: INSERT INTO {d}.t VALUES (2)", DONE),
        ("STOP SLAVE", STOPPED),
    ],
    "verb: change to GTID": [
        ("START SLAVE", RUN),
        MADE,
        ("STOP SLAVE", STOPPED),
        ("CHANGE MASTER TO MASTER_USE_GTID=slave_pos", STOPPED),
    ],
    "status: delay": [
        ("CHANGE MASTER TO MASTER_DELAY=3000", ANY),
        ("START SLAVE", RUN),
        (MADE[0], READ),
        ("STOP SLAVE", STOPPED),
    ],
    "status: port without a server": [
        ("CHANGE MASTER TO MASTER_PORT=1", ANY),
        ("START SLAVE", {"Slave_IO_Running": "Connecting", "Last_IO_Errno": 2003}),
        ("STOP SLAVE", STOPPED),
    ],
    "status: wrong password": [
        ("CHANGE MASTER TO MASTER_PASSWORD='no'", ANY),
        ("START SLAVE", {"Slave_IO_Running": "Connecting", "Last_IO_Errno": 1045}),
        ("STOP SLAVE", STOPPED),
    ],
    "status: log that was purged": [
        ("CHANGE MASTER TO MASTER_LOG_FILE='binlog.000999', MASTER_LOG_POS=4", ANY),
        ("START SLAVE", APPLIES),
    ],
    "status: position past the end": [
        ("CHANGE MASTER TO MASTER_LOG_FILE='{log}', MASTER_LOG_POS=99999999", ANY),
        ("START SLAVE", APPLIES),
    ],
    "status: source killed": [
        ("START SLAVE", RUN),
        MADE,
        ("source killed", {"Slave_IO_Running": "Connecting", "Last_IO_Errno": 2003}),
        ("source again", RUN),
        ("source: INSERT INTO {d}.t VALUES (2)", DONE),
        ("STOP SLAVE", STOPPED),
    ],
    "status: idle source": [
        ("CHANGE MASTER TO MASTER_HEARTBEAT_PERIOD=1", ANY),
        ("START SLAVE", RUN),
        MADE,
        ("quiet: 3", DONE),
        ("STOP SLAVE IO_THREAD", APPLIES),
        ("quiet: 3", APPLIES),
        ("STOP SLAVE", STOPPED),
    ],
    "status: purge": [
        ("START SLAVE", RUN),
        MADE,
        ("source: FLUSH LOGS; INSERT INTO {d}.t VALUES (2); FLUSH LOGS", DONE),
        ("source: PURGE BINARY LOGS BEFORE NOW()", DONE),
        ("source: INSERT INTO {d}.t VALUES (3)", DONE),
        ("STOP SLAVE", STOPPED),
        ("START SLAVE", RUN),
    ],
    "status: large transaction": [
        ("START SLAVE", RUN),
        MADE,
        (
            "source: INSERT INTO {d}.t WITH RECURSIVE n AS (SELECT 2 a UNION ALL SELECT a+1 FROM n WHERE a < 900)"
            " SELECT x.a * 1000 + y.a FROM n x, n y WHERE x.a < 200",
            DONE,
        ),
        ("STOP SLAVE", STOPPED),
    ],
    "status: a lock on the replica": [
        ("START SLAVE", RUN),
        MADE,
        ("locked: UPDATE {d}.t SET a=a WHERE a=1", ANY),
        ("source: DELETE FROM {d}.t", READ),
        ("unlocked", DONE),
        ("STOP SLAVE", STOPPED),
    ],
    "error: duplicate row": _failing("INSERT INTO {d}.t VALUES (2)", "INSERT INTO {d}.t VALUES (2)"),
    "error: row missing, DELETE": _failing("DELETE FROM {d}.t", "DELETE FROM {d}.t"),
    "error: row missing, UPDATE": _failing("DELETE FROM {d}.t", "UPDATE {d}.t SET a=9"),
    "error: table missing, INSERT": _failing("DROP TABLE {d}.t", "INSERT INTO {d}.t VALUES (2)"),
    "error: table missing, ALTER": _failing("DROP TABLE {d}.t", "ALTER TABLE {d}.t ADD b INT"),
    "error: table missing, DROP": _failing("DROP TABLE {d}.t", "DROP TABLE {d}.t", ANY),
    "error: table exists": _failing("CREATE TABLE {d}.u (a INT)", "CREATE TABLE {d}.u (a INT)", ANY),
    "error: column exists": _failing("ALTER TABLE {d}.t ADD b INT", "ALTER TABLE {d}.t ADD b INT"),
    "error: database exists": _failing("CREATE DATABASE {d}_e", "CREATE DATABASE {d}_e", ANY),
    "error: database missing": _failing("DROP DATABASE {d}", "DROP DATABASE {d}", ANY),
    "error: type of a column": _failing("ALTER TABLE {d}.t MODIFY a VARCHAR(3)", "INSERT INTO {d}.t VALUES (2)"),
}
OF_MARIADB = ("verb: continue by GTID",)  # MySQL then reads the transactions from before the channel's first position
QUICK_SCRIPTS = ("verb: until", "error: duplicate row")
QUICK_OPTIONS = ("MASTER_HOST", "MASTER_LOG_FILE", "MASTER_CONNECT_RETRY", "IGNORE_SERVER_IDS", "MASTER_SSL_CA")

_STOP = (
    "Last_(SQL_)?Err(no|or)|Last_SQL_Error_Timestamp|Slave_SQL_Running(_State)?|Exec_Master_Log_Pos"
    "|Executed_Gtid_Set|Seconds_Behind_Master"
)
_EXISTING = "^mariadb error: (table exists|database exists|database missing), [4-6]"
EXPLAINED = (
    Explained("Statements without a default database", "table .*", "do_db=shop.*: none, shop"),
    Explained("Statements that join tables", "table .*|stop", "UPDATE of two tables"),
    Explained("Letter case of table rules", "table .*", "^mariadb filter: .*(SHOP|S%)"),
    Explained("Relay logs", "Relay_Log_.*"),
    Explained("Relay logs", "answer", "option: .*RELAY_LOG_"),
    Explained("Attempts to connect", "Master_Retry_Count", "^mysql"),
    Explained("Counters of MariaDB", "Slave_(DDL|Transactional)_Groups|Parallel_Mode", "^mariadb"),
    Explained("Existing tables and databases", _STOP, _EXISTING),
    Explained("Types of the target's columns", _STOP, "error: type of a column, [4-6]"),
    Explained("What reset keeps", "Using_Gtid", "^mariadb verb: (reset|new)"),
    Explained("What reset keeps", "Master_Server_Id", "^mariadb"),
    Explained("What reset keeps", "Master_SSL_.*|Connect_Retry", "^mariadb verb: new"),
    Explained("Options of a running thread", ".*", "^mariadb option: .* runs?,"),
    Explained("Options of a running thread", "answer", "^mysql option: .* runs?, .*REQUIRE_ROW_FORMAT"),
    Explained("Options and GTIDs", "answer|Replicate_Ignore_Server_Ids", "^mysql option: .*IGNORE_SERVER_IDS"),
    Explained("Options and GTIDs", "answer|Replicate_.*_Domain_Ids", "^mariadb option: .*DOMAIN_IDS"),
    Explained("Positions before the first connection", "Exec_Master_Log_Pos", "new channel|port without|_(HOST|PORT)"),
    Explained("Positions before the first connection", "(Read_)?Master_Log_(File|Pos)|Gtid_IO_Pos", "GTID"),
    Explained("Positions before the first connection", "Master_(UUID|Server_Id)", "purged|past the end"),
    Explained("State of the applier", "Slave_SQL_Running_State", "^(mariadb|mysql) status: a lock"),
    Explained("Numbers of errors", "Last_IO_Errno", "^mysql status: (log that|position past)"),
    Explained("What reset keeps", "Master_UUID", "^mysql verb: reset"),
    Explained("GTIDs after reset", "Executed_Gtid_Set", "^mysql verb: reset"),
    Explained("Retrieved GTIDs", "Retrieved_Gtid_Set", "^mysql"),
    Explained("Change to GTIDs", "answer|Auto_Position|Using_Gtid", "option: .*MASTER_USE_GTID"),
    Explained("Change to GTIDs", "answer|Auto_Position", "^mysql verb: .*MASTER_USE_GTID"),
    Explained("Lag without a connection", "Seconds_Behind_Master", "port without a server|^mysql option: applier runs"),
    Explained("Number of skipped transactions", ".*", "^mysql verb: skip, [7-9]"),
    Explained("Encryption by default", "Master_SSL_Allowed", "^mysql verb: new"),
)
