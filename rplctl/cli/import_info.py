"""Define the options of `import-info`, run the command, and print its result."""

from __future__ import annotations

from pathlib import Path

from rplctl.channel import check_channel_name
from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, YES, argument, option, the_channel
from rplctl.cli.output import confirm, say
from rplctl.errors import UsageError


def import_info(
    options: Globals,
    folder: Path | None = argument("DIR", "Data folder of a server, or a copy of its two info files."),
    channel: str | None = CHANNEL,
    mysql_tables: Path | None = option(
        "--mysql-tables", "FILE", "Rows of MySQL's two info tables, printed by the mysql client with -E or -B."
    ),
    maxwell: Path | None = option("--maxwell", "FILE", "Output with a row of maxwell.positions."),
    debezium: Path | None = option("--debezium", "FILE", "Offset of the Debezium connector, as JSON."),
    canal: Path | None = option("--canal", "FILE", "File meta.dat of Canal."),
    tungsten: Path | None = option("--tungsten", "FILE", "Output with a row of trep_commit_seqno."),
    gtid: str = option("--gtid", "SET", "GTIDs that are applied: gtid_slave_pos or gtid_executed.", ""),
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> None:
    """Import the position of another replica or tool.

    From a server, rplctl also imports the connection settings.
    """
    from rplctl.command.import_info import FOLDER, ROWS, Origin, import_info as run, is_configured

    places = {FOLDER: folder, ROWS: mysql_tables}
    places |= {"maxwell": maxwell, "debezium": debezium, "canal": canal, "tungsten": tungsten}
    given = [(kind, path) for kind, path in places.items() if path is not None]
    if len(given) != 1:
        raise UsageError(
            "import-info requires DIR or exactly one FILE option",
            hint="to see the options and their values, run: rplctl import-info --help",
        )
    check_channel_name(channel or "")
    name, config = the_channel(options, channel)
    if not dry_run and is_configured(config, name):
        confirm(f"Channel '{name}' is configured: its position is replaced and its relay logs are removed.", yes=yes)
    kind, path = given[0]
    result = run(config, name, Origin(kind=kind, path=path.absolute(), gtids=gtid), dry_run=dry_run)
    info = result.master_info
    text = f"channel '{name}' reads from {info.host}:{info.port}, {info.read_position}"
    say(options, f"{'would change: ' if dry_run else ''}{text}", result)
