"""What an operator mistypes: exit code, MySQL's number, the word that was wrong; no traceback, nothing changed."""

from __future__ import annotations

import pytest

from tests.cli.program import Program

CM = "change-master"

# (command line, exit code, words of the message)
BAD: list[tuple[str, int, str]] = [
    # verbs and options that do not exist
    ("sho-status", 2, "No such command"),
    ("SHOW SLAVE STATUS", 2, "No such command"),
    ("start --untill-synced", 2, "No such option"),
    ("start extra", 2, "extra argument"),
    ("show-status --chanel x", 2, "No such option"),
    (f"{CM} --master_host db1", 2, "No such option"),
    (f"{CM} --host db1", 2, "No such option"),
    (f"{CM} --master-host", 2, "requires an argument"),
    ("switch-repo", 2, "Missing option"),
    ("switch-repo table", 2, ""),
    ("show-status --format", 2, "requires an argument"),
    ("show-status --format xml", 2, "table, vertical, tsv, json"),
    ("show-status --color blue", 2, "auto, always, never"),
    ("show-status --terminology new", 2, "master or source"),
    ("show-status --field Secondz_Behind_Master", 2, "did you mean Seconds_Behind_Master"),
    ("show-status --watch soon", 2, "--watch soon"),
    # channel names
    (f"{CM} --master-host h --channel {'x' * 65}", 2, "ERROR 3076"),
    ("show-status --channel tab\tbed", 2, "ERROR 3076"),
    ("start --channel nope", 4, "ERROR 3074: Slave channel 'nope' does not exist."),
    ("stop --channel nope", 4, "ERROR 3074"),
    ("show-status --for-channel nope", 4, "ERROR 3074"),
    ("reset --channel nope --yes", 4, "ERROR 3074"),
    ("wait --state running --channel nope", 4, "ERROR 3074"),
    ("show-relaylog-events --channel nope", 4, "ERROR 3074"),
    ("purge-relay-logs --channel nope", 4, "ERROR 3074"),
    ("flush-relay-logs --channel nope", 4, "ERROR 3074"),
    ("recover --channel nope", 4, "ERROR 3074"),
    ("skip 1 --channel nope --yes", 4, "ERROR 3074"),
    ("load-schema --from-source --channel nope", 4, "ERROR 3074"),
    ("clone --channel nope", 4, "ERROR 3074"),
    ("show-clone --channel nope", 4, "ERROR 3074"),
    ("verify --channel nope", 4, "ERROR 3074"),
    ("verify --threads 0", 2, "--threads 0"),
    ("repair --channel nope", 4, "ERROR 3074"),
    ("repair", 2, "to write a report, run: rplctl verify"),
    # CHANGE MASTER: nothing, or values out of range (MySQL manual)
    (CM, 2, "requires an option to change"),
    (f"{CM} --master-host=", 2, "ERROR 1210: Incorrect arguments to MASTER_HOST"),
    (f"{CM} --master-host {'h' * 256}", 2, "ERROR 1210"),
    (f"{CM} --master-host dätä", 2, "ERROR 1210"),
    (f"{CM} --master-host a\nb", 2, "ERROR 1210"),
    (f"{CM} --master-port 65536", 2, "ERROR 1210: Incorrect arguments to MASTER_PORT: 65536 is not in 0..65535"),
    (f"{CM} --master-port -1", 2, "ERROR 1210"),
    (f"{CM} --master-port mysql", 2, "'mysql' is not a number"),
    (f"{CM} --master-port 3306.0", 2, "ERROR 1210"),
    (f"{CM} --master-port 0x1F", 2, "ERROR 1210"),
    (f"{CM} --master-user {'u' * 33}", 2, "ERROR 1470"),
    (f"{CM} --master-log-file ../../etc/passwd.000001", 2, "ERROR 1210: Incorrect arguments to MASTER_LOG_FILE"),
    (f"{CM} --master-log-file binlog", 2, "ERROR 1210"),
    (f"{CM} --master-log-file 1170", 2, "ERROR 1210"),
    (f"{CM} --master-log-pos x", 2, "ERROR 1210: Incorrect arguments to MASTER_LOG_POS"),
    (f"{CM} --master-log-pos -4", 2, "ERROR 1210"),
    (f"{CM} --master-log-pos 9223372036854775808", 2, "ERROR 1210"),
    (f"{CM} --master-log-pos {'9' * 30}", 2, "ERROR 1210"),
    (f"{CM} --relay-log-pos 3", 2, "ERROR 1210"),
    (f"{CM} --relay-log-file relay-bin.000099", 2, "ERROR 1380"),
    (f"{CM} --relay-log-file ../master.info", 2, "ERROR 1210"),
    (f"{CM} --relay-log-file relay-bin-other.000001", 2, "ERROR 1380"),
    (f"{CM} --master-connect-retry -1", 2, "ERROR 1210"),
    (f"{CM} --master-connect-retry 4294967296", 2, "ERROR 1210"),
    (f"{CM} --master-retry-count lots", 2, "ERROR 1210"),
    (f"{CM} --master-heartbeat-period -1", 2, "ERROR 1624"),
    (f"{CM} --master-heartbeat-period 4294968", 2, "ERROR 1624: The requested value for the heartbeat period"),
    (f"{CM} --master-heartbeat-period nan", 2, "ERROR 1210"),
    (f"{CM} --master-heartbeat-period inf", 2, "ERROR 1624"),
    (f"{CM} --master-heartbeat-period 30s", 2, "ERROR 1210"),
    (f"{CM} --master-delay 3000000000", 2, "ERROR 1729: The requested value 3000000000 for the master delay exceeds"),
    (f"{CM} --master-delay -1", 2, "ERROR 1210"),
    (f"{CM} --ignore-server-ids 1,two", 2, "ERROR 1210"),
    (f"{CM} --ignore-server-ids 4294967296", 2, "ERROR 1210"),
    (f"{CM} --ignore-server-ids 1;2", 2, "ERROR 1210"),
    (f"{CM} --do-domain-ids x", 2, "ERROR 1210"),
    (f"{CM} --master-ssl yes", 2, "'yes' is not 0 or 1"),
    (f"{CM} --master-ssl 2", 2, "ERROR 1210"),
    (f"{CM} --master-ssl-verify-server-cert true", 2, "ERROR 1210"),
    (f"{CM} --master-ssl-ca ca.pem", 2, "not an absolute path"),
    (f"{CM} --master-public-key-path key.pem", 2, "not an absolute path"),
    (f"{CM} --get-master-public-key maybe", 2, "ERROR 1210"),
    (f"{CM} --master-auto-position on", 2, "ERROR 1210"),
    (f"{CM} --master-auto-position 1 --master-log-file b.000001", 2, "ERROR 1776"),
    (f"{CM} --master-auto-position 1 --master-log-pos 4", 2, "ERROR 1776"),
    (f"{CM} --master-auto-position 1 --relay-log-file relay-bin.000001", 2, "ERROR 1776"),
    (f"{CM} --master-auto-position 1 --relay-log-pos 4", 2, "ERROR 1776"),
    (f"{CM} --master-auto-position 1 --master-use-gtid slave_pos", 2, "ERROR 1210"),
    (f"{CM} --master-use-gtid yes", 2, "no, current_pos, slave_pos"),
    (f"{CM} --master-compression-algorithms gzip", 2, "ERROR 3920"),
    (f"{CM} --master-compression-algorithms zlib,zlib,zlib,zlib", 2, "ERROR 3924"),
    (f"{CM} --master-zstd-compression-level 0", 2, "ERROR 3921"),
    (f"{CM} --master-zstd-compression-level 23", 2, "ERROR 3921"),
    (f"{CM} --require-table-primary-key-check MAYBE", 2, "STREAM, ON, OFF, GENERATE"),
    (f"{CM} --assign-gtids-to-anonymous-transactions nope", 2, "the value is LOCAL, OFF or a UUID"),
    (f"{CM} --master-binlog-dir archive", 2, "not an absolute path"),
    (f"{CM} --master-binlog-dir /no/such/folder", 2, "is not a folder"),
    (f"{CM} --master-binlog-dir /tmp --master-host db1", 2, "mutually exclusive"),
    (f"{CM} --channel new --master-user u", 2, "ERROR 1210: Incorrect arguments to MASTER_HOST"),
    # passwords
    (f"{CM} --master-password C4nary", 2, "is visible to everybody"),
    (f"{CM} --master-password=C4nary", 2, "is visible to everybody"),
    (f"{CM} --source-password C4nary", 2, "is visible to everybody"),
    (f"{CM} --password C4nary", 2, "is visible to everybody"),
    (f"{CM} --master-user u --ask-password", 2, "requires a terminal"),
    (f"{CM} --ask-password --password-stdin", 2, "are mutually exclusive"),
    (f"{CM} --password-file /no/such/file", 78, "No such file"),
    (f"{CM} --password-file /etc/passwd", 78, "others can read"),
    (f"{CM} --password-reference C4nary", 2, "env:NAME or file:"),
    ("init --target mysql://u:C4nary@h/d", 2, "process list"),
    ("init --target-password C4nary", 2, "is visible to everybody"),
    # init
    ("init --master-info-repository disk", 78, "FILE|TABLE"),
    ("init --sync-relay-log many", 78, "0..4294967295"),
    ("init --max-relay-log-size 1", 78, "4096.."),
    ("init --relay-log-info-repository TABLE", 2, "while channels exist"),
    ("init --target sqlite:////elsewhere.db", 2, "while channels exist"),
    # START … UNTIL
    ("start --until-master-log-file b.000001", 2, "ERROR 1277"),
    ("start --until-master-log-pos 4", 2, "ERROR 1277"),
    ("start --until-relay-log-file relay-bin.000001", 2, "ERROR 1277"),
    ("start --until-relay-log-pos 4", 2, "ERROR 1277"),
    ("start --until-master-log-file b.000001 --until-master-log-pos 3", 2, "ERROR 1277"),
    ("start --until-master-log-file b --until-master-log-pos 4", 2, "ERROR 1277"),
    ("start --until-master-log-file b.000001 --until-master-log-pos 4 --until-sql-after-gtids 0-1-1", 2, "ERROR 1277"),
    ("start --until-sql-before-gtids 0-1-1 --until-sql-after-gtids 0-1-2", 2, "ERROR 1277"),
    ("start --until-sql-before-gtids=", 2, "ERROR 1277"),
    ("start --until-sql-after-gtids ,", 2, "ERROR 1941"),
    ("start --until-sql-after-gtids 0-1", 2, "ERROR 1941"),
    ("start --until-sql-after-gtids 0-1-1,0-2-2", 2, "ERROR 1943"),
    ("start --until-sql-after-gtids abc:1", 2, "ERROR 1772"),
    ("start --until-sql-before-gtids 00010203-0405-0607-0809-0a0b0c0d0e0f:5-3", 2, "ERROR 1277"),
    ("start --until-synced --until-sql-after-gtids 0-1-1", 2, "ERROR 1277"),
    ("start --until-synced --receiver", 2, "ERROR 1277"),
    ("start --max-time 5", 2, "--foreground or --until-synced"),
    ("start --until-synced --max-time never", 2, "number of seconds"),
    ("start --until-master-log-pos four", 2, "valid integer"),
    ("stop --timeout x", 2, "number of seconds"),
    # waiting, looking, resetting
    ("wait", 2, "--pos FILE:POS or --state"),
    ("wait --state asleep", 2, "running|synced|stopped"),
    ("wait --state running --pos b.000001:4", 2, "--pos FILE:POS or --state"),
    ("wait --pos 1170", 2, "is not a position"),
    ("wait --pos binlog.000003:x", 2, "is not a position"),
    ("wait --pos binlog.000003:4", 0, ""),
    ("wait --pos binlog.000003:1171", 3, "ERROR 1199"),
    ("wait --state synced", 3, "ERROR 1199"),
    ("wait --state running --timeout -1", 2, "number of seconds"),
    ("wait --state running --timeout 0.1", 9, "not running after 0.1 s"),
    ("reset", 2, "--yes"),
    ("reset --all", 2, "--yes"),
    ("skip", 2, "--yes"),
    ("skip two --yes", 2, "valid integer"),
    ("skip --yes -- -1", 2, "the number of transactions"),
    ("show-relaylog-events --in relay-bin.000009", 2, "ERROR 1220"),
    ("show-relaylog-events --in ../master.info", 2, "ERROR 1220"),
    ("show-relaylog-events --limit -1", 2, "--limit"),
    ("switch-repo --to disk", 2, "table or file"),
    ("switch-repo --to table --repository all", 2, "master-info, relay-log-info, both"),
    ("load-schema", 2, "FILE or --from-source"),
    ("load-schema /no/such.sql", 2, "No such file"),
    ("change-filter", 2, "needs a rule list"),
    ("change-filter --replicate-wild-do-table shop", 78, "ERROR 3067"),
    ("change-filter --replicate-rewrite-db shop", 78, "expected from->to"),
    ("change-filter --replicate-do-table shop", 78, "expected db.table"),
    ("change-filter --channel west --replicate-do-db a", 4, "does not exist"),
    ("init --replicate-wild-ignore-table nodot", 78, "ERROR 3067"),
    ("check --lag-warning much", 2, "number of seconds"),
    ("show-status --config /no/such.toml", 78, "No such file"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "words"), BAD, ids=[line[:60] for line, _, _ in BAD])
def test_a_wrong_command_line_is_answered_clearly_and_changes_nothing(
    configured: Program, line: str, code: int, words: str
) -> None:
    before = {p.name: p.read_bytes() for p in configured.datadir.iterdir() if p.is_file()}
    done = configured(*line.split(" "))
    assert done.code == code, done.err
    assert words in done.err.replace("\n", " ") or words in done.err
    assert "Traceback" not in done.err + done.out
    assert "C4nary" not in done.err + done.out
    assert {p.name: p.read_bytes() for p in configured.datadir.iterdir() if p.is_file()} == before
    if code and done.out:
        assert not done.out.strip()


def test_there_are_more_than_a_hundred_of_them() -> None:
    assert len(BAD) > 100


@pytest.mark.parametrize(
    "line",
    [
        "show-status",
        "start",
        "wait --state running",
        "recover",
        "purge-relay-logs",
        "skip --yes",
    ],
)
def test_without_a_channel_the_hint_is_change_master(program: Program, line: str) -> None:
    assert program("init").code == 0
    done = program(*line.split())
    assert done.code == 4
    assert done.err.startswith("ERROR 1200: The server is not configured as slave")
    assert "hint: to set the source, run: rplctl change-master" in done.err


@pytest.mark.parametrize(
    "line", ["show-status", "start", "stop", "wait --state running", "reset --yes", "skip --yes", "stop --channel c"]
)
def test_a_folder_that_is_not_there_is_named(program: Program, line: str) -> None:
    program.datadir /= "mistyped"
    done = program(*line.split())
    assert done.code == 4
    assert (
        f"run: rplctl --datadir {program.datadir} init" in done.err
        and "add to the command: --datadir FOLDER" in done.err
    )
    assert not program.datadir.exists()
