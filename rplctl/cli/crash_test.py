"""`crash-test`: the crash points are passed, not only claimed to be safe."""

from __future__ import annotations

from pathlib import Path

from rplctl.cli.globals import Globals
from rplctl.cli.options import CHANNEL, end, option, the_channel
from rplctl.cli.output import say, show_records
from rplctl.errors import UsageError
from rplctl.target_url import has_password


def crash_test(
    options: Globals,
    target: str = option("--target", "URL", "Server for a scratch database; default: a SQLite file.", ""),
    target_password_file: Path | None = option(
        "--target-password-file", "FILE", "Read the target's password from this file."
    ),
    points: str = option("--points", "NAME,...", "Test only these crash points.", ""),
    mode: str = option("--mode", "MODE,...", "Test only these commit modes.", ""),
    kinds: str = option("--kinds", "KIND,...", "Test only these kinds of commit groups.", ""),
    clone: str = option("--clone", "DB.TABLE,...", "Test a copy of these tables of --channel's source.", ""),
    arm: str | None = option("--arm", "NAME=kill[@N],...", "Kill a running thread of --channel at this point."),
    channel: str | None = CHANNEL,
) -> None:
    """Kill rplctl at each crash point and check the data.

    crash-test uses a scratch instance and a recorded log. The applier runs without Spark, because Spark writes nothing.
    Only the kind "task" starts Spark, and kills a task of it. The commit modes are transaction, marker, xa and
    xa-pages, each also with "+log" (log_bin), and xa-binlog. A lake (--target delta+file:// or parquet+file://) has
    per-table and per-table-file; DuckDB (--target duckdb:///) has marker and marker+log. The mode "-" is for the other
    kinds. The kinds of groups are transaction, batch, ddl, keyless, non-transactional and statement, and also receiver,
    recovery, purge, task, to table and to file. With --clone, a copy from the channel's source is killed. The exit code
    is 1 if a result is not the expected one.
    """
    if arm is not None:
        from rplctl.command.crash_test import arm as run_arm

        name, config = the_channel(options, channel)
        return say(options, f"channel '{name}': {arm or 'nothing'} armed", run_arm(config, name, arm))
    from rplctl.command.crash_test import CrashLine, clone_crash_test, crash_test as run

    if clone:
        if target or target_password_file or mode or kinds:
            raise UsageError("--clone copies into SQLite files of its own, and takes --points and --channel only")
        name, config = the_channel(options, channel)
        lines = clone_crash_test(config, name, clone, _words(points))
    else:
        if has_password(target):
            text = "a password in --target would be seen in the process list"
            raise UsageError(text, hint="--target-password-file FILE")
        password = f"file:{target_password_file.resolve()}" if target_password_file else ""
        lines = run(target, password, points=_words(points), modes=_words(mode), kinds=_words(kinds))
    show_records(options, lines, CrashLine)
    end(1 if any(line.Result == "FAIL" for line in lines) else 0)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
