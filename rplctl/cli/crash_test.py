"""Define the options of `crash-test`, run the command, and print its result."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, end, option, the_channel
from rplctl.cli.output import say, show_records
from rplctl.errors import UsageError
from rplctl.target_url import has_password


def crash_test(
    options: Globals,
    target: str = option(
        "--target", "URL", "Server on which a scratch database is created; default: a SQLite file.", ""
    ),
    target_password_file: Path | None = option(
        "--target-password-file", "FILE", "Read the target's password from this file."
    ),
    points: str = option("--points", "NAME,...", "Test only these crash points.", ""),
    mode: str = option("--mode", "MODE,...", "Test only these commit modes.", ""),
    kinds: str = option("--kinds", "KIND,...", "Test only these kinds of commit groups.", ""),
    clone: str = option(
        "--clone", "DB.TABLE,...", "Test a copy of these tables, which are read from --channel's source.", ""
    ),
    arm: str | None = option(
        "--arm", "NAME=kill[@N],...", "Kill a running thread of --channel when it reaches this point."
    ),
    channel: str | None = CHANNEL,
) -> None:
    """Kill rplctl at each crash point and check the data.

    crash-test uses a scratch instance and a recorded log. It kills the process that reaches a crash point, starts the
    process again, and compares the rows. The exit code is 1 if a result is not the expected one.

    Modes: transaction, marker, xa and xa-pages; the same with "+log" (log_bin); xa-binlog. A lake has the modes
    per-table and per-table-file. DuckDB has the modes marker and marker+log. Kinds without a commit group have the
    mode "-".

    Kinds with a commit group: transaction, batch, ddl, keyless, non-transactional, statement. Other kinds: receiver,
    recovery, purge, task, "to table", "to file". The applier runs without Spark, except for the kind "task", which
    kills a task of Spark.

    With --clone, crash-test kills a copy of tables from the channel's source instead.
    """
    if arm is not None:
        from rplctl.command.crash_test import arm as run_arm

        name, config = the_channel(options, channel)
        return say(options, f"channel '{name}': {arm or 'nothing'} armed", run_arm(config, name, arm))
    from rplctl.command.crash_test import CrashLine, clone_crash_test, crash_test as run

    if clone:
        if target or target_password_file or mode or kinds:
            raise UsageError("--clone can be used only with --points and --channel: it copies into new SQLite files")
        name, config = the_channel(options, channel)
        lines = clone_crash_test(config, name, clone, _words(points))
    else:
        if has_password(target):
            text = "a password in --target would be visible in the process list"
            raise UsageError(text, hint="remove the password from the URL and add --target-password-file FILE")
        password = f"file:{target_password_file.resolve()}" if target_password_file else ""
        lines = run(target, password, points=_words(points), modes=_words(mode), kinds=_words(kinds))
    show_records(options, lines, CrashLine)
    end(1 if any(line.Result == "FAIL" for line in lines) else 0)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
