"""Define the options of `skip`, and ask for confirmation, because a skipped transaction is never applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rplctl import mysql_errors as er
from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, DRY_RUN, YES, argument, option, the_channel
from rplctl.cli.output import confirm, many, say, write
from rplctl.cli.text import clean
from rplctl.config import Config
from rplctl.errors import NAME_CHANNEL, UsageError

if TYPE_CHECKING:
    from rplctl.command.skip import SkippedTransaction


def skip(
    options: Globals,
    number: int | None = argument("N", "Number of transactions to skip; default: 1; 0 = none."),
    count: int | None = option("--count", "N", "Same as N."),
    gtid: str | None = option("--gtid", "GTID,...", "Skip the transactions with these GTIDs."),
    channel: str | None = CHANNEL,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
) -> None:
    """Skip transactions.

    The next start skips N transactions. A transaction that is named by GTID is skipped when the applier reaches it.
    """
    from rplctl.command.skip import skip as run

    if (number is not None) + (count is not None) + (gtid is not None) > 1:
        raise UsageError("N, --count and --gtid are mutually exclusive")
    if gtid is not None and not gtid.strip():
        raise UsageError("--gtid requires a GTID", hint="to cancel all pending skips, run: rplctl skip 0")
    wanted = None if gtid else next((n for n in (number, count) if n is not None), 1)
    gtid = gtid or ""
    name, config = _channel_to_skip(options, channel, wanted)
    if wanted != 0 and not dry_run:
        asked = run(config, name, wanted, gtid, dry_run=True)  # refuses an invalid request before the question
        if not yes and options.format != "json":
            write("".join(f"{clean(_shown(one))}\n" for one in asked.transactions))
        what = f"The transaction {gtid}" if gtid else many(wanted or 0, "transaction")
        confirm(f"{what} of channel '{name}' will never be applied.", yes=yes)
    result = run(config, name, wanted, gtid, dry_run=dry_run)
    parts = [f"{many(result.count, 'transaction')} at its next start"] if wanted is not None or result.count else []
    parts += [f"GTID {', '.join(result.gtids)}"] if result.gtids else []
    text = f"channel '{name}' {'would skip' if dry_run else 'skips'} {' and '.join(parts) or 'nothing'}"
    say(options, text, result)
    if options.format != "json" and (yes or dry_run):
        write("".join(f"{clean(_shown(one))}\n" for one in result.transactions))


def _shown(one: SkippedTransaction) -> str:
    rows = "" if one.Rows is None else f": {many(one.Rows, 'row')}"
    tables = f" of {', '.join(one.Tables)}" if one.Tables else ""
    statement = f": {one.Statement}" if one.Statement else ""
    return f"{one.Gtid or 'no GTID'} at {one.Position}{rows}{tables}{statement}"


def _channel_to_skip(options: Globals, given: str | None, count: int | None) -> tuple[str, Config]:
    """Return the channel on which `skip` works, and its configuration.

    If there are several channels and no name is given, raises UsageError: 3086 for a number of transactions, as on a
    server, and 3079 for GTIDs.
    """
    try:
        return the_channel(options, given)
    except UsageError as error:
        if error.errno != er.SLAVE_MULTIPLE_CHANNELS_CMD or not count:
            raise
        raise UsageError(
            "When sql_slave_skip_counter > 0, it is not allowed to start more than one SQL thread by using "
            "'START SLAVE [SQL_THREAD]'. Value of sql_slave_skip_counter can only be used by one SQL thread at a "
            "time. Please use 'START SLAVE [SQL_THREAD] FOR CHANNEL' to start the SQL thread which will use the value "
            "of sql_slave_skip_counter.",
            errno=er.SLAVE_CHANNEL_SQL_SKIP_COUNTER,
            hint=NAME_CHANNEL,
        ) from None
