"""Statements of dba_statements.py that the front answers otherwise than a replica, and the reason of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Difference:
    """Statements that the front answers otherwise, for one reason. `flavors`: with which replicas beside it."""

    reason: str
    flavors: str
    statements: str

    def of(self, flavor: str) -> set[str]:
        return set(self.statements.strip().splitlines()) if flavor in self.flavors else set()


DIFFERENCES: Final = (
    Difference(
        "The front has the variables that tools ask of a replica; one of a storage engine or a log file is 1193.",
        "mysql mariadb",
        """
SELECT @@global.port, @@hostname, @@datadir, @@log_error
SELECT @@GLOBAL.innodb_buffer_pool_size
""",
    ),
    Difference(
        "Settings of a session have no effect, so rplctl accepts each name, also one that a server of another release"
        " has.",
        "mysql mariadb",
        """
SET nope = 1
SET SESSION nope = 1
""",
    ),
    Difference(
        "MySQL notes what is deprecated, what it does not store encrypted, and what other settings suit better.",
        "mysql",
        """
SET SESSION sql_mode = 'STRICT_ALL_TABLES'
START TRANSACTION WITH CONSISTENT SNAPSHOT
FLUSH PRIVILEGES
SET GLOBAL sql_replica_skip_counter = 1
CHANGE REPLICATION SOURCE TO SOURCE_USER = 'repl', SOURCE_PASSWORD = 'pw'
""",
    ),
    Difference(
        "The number and the state of the error name the function; MySQL says only that no database is selected.",
        "mysql",
        "SELECT nope()",
    ),
    Difference("MySQL writes a pattern for information_schema in upper case.", "mysql", "SHOW TABLES LIKE 'processl%'"),
    Difference(
        "The process list has MySQL's columns in either flavor.",
        "mariadb",
        "SELECT * FROM information_schema.processlist",
    ),
    Difference(
        "Parameters become literals of the text, which names the column.", "mysql mariadb", "EXECUTE p USING @x"
    ),
    Difference("The number of a connection is a number, not an expression.", "mysql mariadb", "KILL 'x'"),
    Difference("rplctl has no log that these would rotate but relay logs.", "mysql mariadb", "FLUSH LOGS"),
    Difference("See FLUSH LOGS.", "mysql mariadb", "FLUSH BINARY LOGS"),
    Difference(
        "The account is another one.",
        "mysql mariadb",
        """
SHOW GRANTS
SHOW GRANTS FOR CURRENT_USER()
""",
    ),
    Difference(
        "Without a binary log there is nothing to purge, and rplctl says so.",
        "mysql mariadb",
        """
PURGE BINARY LOGS TO 'nope.000001'
PURGE BINARY LOGS BEFORE '2020-01-01'
""",
    ),
    Difference("The manual of rplctl is rplctl(1).", "mysql mariadb", "HELP 'select'"),
    Difference(
        "An administrator of MariaDB may write to a read_only server; here nobody may.",
        "mariadb",
        "INSERT INTO nope.t VALUES (1)",
    ),
    Difference(
        "The version is 8.0.36, which has both spellings. MySQL 9 has only the newer ones.",
        "mysql",
        """
SHOW SLAVE STATUS
SHOW SLAVE HOSTS
SHOW MASTER STATUS
SHOW MASTER LOGS
STOP SLAVE
RESET SLAVE
CHANGE MASTER TO MASTER_PORT = 3310
RESET MASTER
""",
    ),
    Difference("The database sys does not exist.", "mysql", "SELECT * FROM sys.processlist"),
    Difference(
        "1210 names the option and the value, and 1064 only the text.",
        "mysql mariadb",
        """
CHANGE REPLICATION SOURCE TO SOURCE_PORT = 'abc'
CHANGE MASTER TO MASTER_PORT = 'abc'
CHANGE MASTER TO MASTER_USE_GTID = nope
""",
    ),
    Difference(
        "rplctl filters by server id with GTIDs, too, and notes when the filter acts.",
        "mysql mariadb",
        """
CHANGE REPLICATION SOURCE TO IGNORE_SERVER_IDS = (1, 2)
CHANGE MASTER TO IGNORE_SERVER_IDS = (1, 2)
""",
    ),
    Difference(
        "There is no group replication: the name is that of a new channel, which needs a host.",
        "mysql",
        "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0 FOR CHANNEL 'group_replication_applier'",
    ),
    Difference("No option of an instance is set by SQL.", "mysql", "SET GLOBAL gtid_purged = 'nonsense'"),
    Difference(
        "rplctl notes that there is no channel to reset.",
        "mysql",
        "RESET REPLICA",
    ),
    Difference("See RESET REPLICA.", "mariadb", "RESET SLAVE"),
    Difference(
        "What the flavor of MySQL has for the same thing works in the flavor of MariaDB, too.",
        "mariadb",
        """
SHOW REPLICAS
SHOW BINARY LOG STATUS
CHANGE REPLICATION SOURCE TO SOURCE_PORT = 3310
LOCK INSTANCE FOR BACKUP
UNLOCK INSTANCE
""",
    ),
    Difference(
        "A statement names its connection; a default that other statements would follow is refused.",
        "mariadb",
        "SET SESSION default_master_connection = ''",
    ),
    Difference("rplctl notes each channel that does not run.", "mariadb", "STOP ALL SLAVES"),
    Difference(
        "Two conditions are 1277 in any order and flavor.",
        "mariadb",
        "START SLAVE UNTIL master_gtid_pos = '0-1-1', MASTER_LOG_FILE = 'x'",
    ),
    Difference(
        "rplctl is never a source that becomes a replica.", "mariadb", "CHANGE MASTER TO MASTER_DEMOTE_TO_SLAVE = 1"
    ),
    Difference(
        "rplctl has the instance lock of MySQL; the stages of MariaDB's backup are for its data files.",
        "mariadb",
        """
BACKUP LOCK nope.t
BACKUP STAGE START
""",
    ),
)
