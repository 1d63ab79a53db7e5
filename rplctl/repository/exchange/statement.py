"""Write the settings of export-info as a CHANGE MASTER TO statement for a running server, in the syntax of the server.

Servers without FILE repositories (MySQL ≥ 8.4) need this statement. On other servers, it saves a restart. Empty
settings are omitted. The GTID set is only in a comment, because it may overwrite the GTID set of the server. So the
operator decides whether to execute the comment.
"""

from __future__ import annotations

from rplctl.info import MasterInfo, RelayLogInfo
from rplctl.repository.exchange.servers import Server

_NAMED = ("bind", "ssl_ca", "ssl_capath", "ssl_cert", "ssl_key", "ssl_cipher", "ssl_crl", "ssl_crlpath", "tls_version")
_TEXTS = {  # the field of MasterInfo for each option, in the order of MySQL's manual
    "MASTER_HOST": "host",
    "MASTER_USER": "user_name",
    "MASTER_PASSWORD": "user_password",
    "MASTER_LOG_FILE": "master_log_name",
    **{f"MASTER_{name.upper()}": name for name in (*_NAMED, "public_key_path")},
}
_SINCE = {"MASTER_TLS_VERSION": Server.MYSQL_5_7, "MASTER_PUBLIC_KEY_PATH": Server.MYSQL_8_0}
_NOT_MARIADB = {"MASTER_BIND", "MASTER_TLS_VERSION", "MASTER_PUBLIC_KEY_PATH", "GET_MASTER_PUBLIC_KEY"}
_USE_GTID = ("no", "current_pos", "slave_pos")


def change_master_statement(master: MasterInfo, relay: RelayLogInfo, server: Server) -> str:
    """Return the text of the statement, which ends in a newline and contains the password in clear text.

    The position in the statement is the executed position, so that the server continues after the last applied
    transaction.
    """
    default = MasterInfo()
    position = relay.exec_position if relay.master_log_name else master.read_position
    options = {name: _quoted(getattr(master, field)) for name, field in _TEXTS.items() if getattr(master, field)}
    options["MASTER_LOG_FILE"], options["MASTER_LOG_POS"] = _quoted(position.log_name), str(position.log_pos)
    options |= {"MASTER_PORT": str(master.port), "MASTER_CONNECT_RETRY": str(master.connect_retry)}
    options["MASTER_HEARTBEAT_PERIOD"] = f"{master.heartbeat:.3f}"
    options |= {"MASTER_SSL": str(int(master.enabled_ssl))}
    options["MASTER_SSL_VERIFY_SERVER_CERT"] = str(int(master.ssl_verify_server_cert))
    if master.ignored_server_ids:
        options["IGNORE_SERVER_IDS"] = f"({', '.join(map(str, master.ignored_server_ids))})"
    if relay.sql_delay:
        options["MASTER_DELAY"] = str(relay.sql_delay)
    if server is Server.MARIADB:
        options["MASTER_USE_GTID"] = _USE_GTID[master.using_gtid]
    else:
        options["MASTER_RETRY_COUNT"] = str(master.retry_count)
        options["MASTER_AUTO_POSITION"] = str(int(master.enabled_auto_position))
        if master.get_public_key != default.get_public_key and server is Server.MYSQL_8_0:
            options["GET_MASTER_PUBLIC_KEY"] = "1"
    if master.enabled_auto_position or master.using_gtid:  # with both, MySQL reports error 1776
        options = {name: value for name, value in options.items() if name not in ("MASTER_LOG_FILE", "MASTER_LOG_POS")}
    return "\n".join([*_gtid_comment(master, relay, server), _statement(options, master.channel_name, server), ""])


def _statement(options: dict[str, str], channel: str, server: Server) -> str:
    kept = {name: value for name, value in options.items() if _knows(server, name)}
    verb, end = "CHANGE MASTER TO", f"\n  FOR CHANNEL {_quoted(channel)}" if channel else ""
    if server is Server.MARIADB:
        verb, end = f"CHANGE MASTER {_quoted(channel)} TO" if channel else verb, ""
    elif server is Server.MYSQL_8_0:
        verb = "CHANGE REPLICATION SOURCE TO"
        kept = {name.replace("MASTER_", "SOURCE_"): value for name, value in kept.items()}
    return f"{verb}\n  " + ",\n  ".join(f"{name}={value}" for name, value in kept.items()) + f"{end};"


def _knows(server: Server, name: str) -> bool:
    if server is Server.MARIADB:
        return name not in _NOT_MARIADB
    order = list(Server)
    return name not in _SINCE or order.index(server) >= order.index(_SINCE[name])


def _gtid_comment(master: MasterInfo, relay: RelayLogInfo, server: Server) -> list[str]:
    if not relay.gtid_executed or not (master.enabled_auto_position or master.using_gtid):
        return []
    name = "gtid_slave_pos" if server is Server.MARIADB else "gtid_purged"
    return [f"-- GTIDs applied so far; if the server has no transactions of its own, first run:\n-- SET GLOBAL {name}="
            f"{_quoted(relay.gtid_executed)};"]  # fmt: skip


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
