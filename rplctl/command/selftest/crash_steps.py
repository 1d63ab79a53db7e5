"""Define the steps of `crash-test` around the applier: repositories, purge, recovery, switch, and the scratch database.

Each step runs in a child process of crash_run.py. Invariant: on a server, only two things are changed: the database of
the recorded log, which must not exist before, and this channel's rows in rplctl's internal tables. If the internal
tables did not exist before, they are dropped.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rplctl.command.channel.context import engine_of, open_repositories
from rplctl.command.purge_relay_logs import purge_relay_logs
from rplctl.command.recover import recover as run
from rplctl.command.reset import reset
from rplctl.command.selftest.crash_run import CHANNEL, Say, channel_of, configure
from rplctl.command.switch_repo import switch_repo
from rplctl.commit.xid import instance_name, xid_prefix
from rplctl.config import INSTANCE_FILE, Config, read_file
from rplctl.demo.crash_log import DATABASE
from rplctl.errors import UsageError
from rplctl.info import RelayLogInfo
from rplctl.repository import create_tables, open_relay_log_info
from rplctl.repository.switch import resolve_repositories
from rplctl.sql_run import ask, clause
from rplctl.sql_text import word, written
from rplctl.target import dialect_of, open_engine, two_phase_verbs
from rplctl.target.dialect import OWN_SCHEMA as SCHEMA

if TYPE_CHECKING:
    from sqlalchemy import Engine

_REPOSITORIES: Final = ("master_info_repository", "relay_log_info_repository")


def to_table(config: Config, _say: Say) -> None:
    """Store the start position of the applier as a row in the target instead of a file."""
    engine = open_engine(config.target_url)
    create_tables(engine, "")
    repository = open_relay_log_info(config, channel_of(config), lambda: engine)
    repository.flush(RelayLogInfo(channel_name=CHANNEL), force=True)
    channel_of(config).relay_log_info_path.unlink(missing_ok=True)
    engine.dispose()


def forget_relay_logs(config: Config, _say: Say) -> None:
    """Run RESET SLAVE ALL and CHANGE MASTER, so that the receiver begins again."""
    reset(config, CHANNEL, everything=True)
    configure(config, _say)


def recover(config: Config, _say: Say) -> None:
    run(config, CHANNEL)


def purge(config: Config, _say: Say) -> None:
    purge_relay_logs(config, CHANNEL)


def switch(config: Config, to: str, _say: Say) -> None:
    switch_repo(stored(config), CHANNEL, to)


def resolve(config: Config, _say: Say) -> None:
    """Finish an interrupted switch, as every start does in its first step."""
    resolve_repositories(stored(config), channel_of(config), engine_of(config))


def records(config: Config, say: Say) -> None:
    """Report the kind of repository that MasterInfo is in, and the contents of both records."""
    chosen = stored(config)
    opened = open_repositories(chosen, CHANNEL)
    both = (opened.master_info.read(), opened.relay_log_info.read())
    shown = [repr(replace(record, master_id=0)) for record in both]
    name = both[1].relay_log_name
    say({"kind": chosen.master_info_repository, "records": shown, "relay_log": name})


def stored(config: Config) -> Config:
    """Return the options with the kinds of repositories that a switch has written into the option file of the instance.

    No other option file is read, so that options of the operator have no effect.
    """
    path = config.datadir / INSTANCE_FILE
    section = read_file(path).get("channel", {}).get(CHANNEL, {}) if path.exists() else {}
    kinds: dict[str, Any] = {name: section[name] for name in _REPOSITORIES if name in section}
    return replace(config, **kinds)


class Scratch:
    """The scratch database on a server, in which the crash test applies its log."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._has_own = True

    def claim(self, say: Say) -> None:
        """Report whether the scratch database exists, because it may belong to somebody, and whether rplctl's tables
        exist.
        """
        from sqlalchemy import inspect

        from rplctl.repository.table import mapped_errors

        engine = open_engine(self._config.target_url)
        with mapped_errors("crash-test", None), engine.connect() as connection:
            names = inspect(connection).get_schema_names()
        engine.dispose()
        say({"is_taken": DATABASE in names, "has_own": SCHEMA in names})

    def claimed(self, *, is_taken: object, has_own: object) -> None:
        """Evaluate the report of `claim`.

        Raises UsageError if the scratch database exists (`is_taken`). `has_own` says that rplctl's tables existed
        before the test, so that `clear` keeps them.
        """
        if is_taken:
            raise UsageError(
                f"the target already has a database '{DATABASE}'",
                hint="drop the database if an interrupted crash-test has left it, or name another server",
            )
        self._has_own = bool(has_own)

    def clear(self, _say: Say) -> None:
        """Restore the state of the server before the test."""
        from sqlalchemy import inspect

        engine = open_engine(self._config.target_url)
        self._roll_back_prepared(engine)
        dialect = dialect_of(engine.dialect.name)
        what, more = dialect.schema_word, dialect.cascade
        with engine.begin() as connection:
            ask(connection, written("DROP {} IF EXISTS {}{}", what, word(DATABASE), more))
            if not self._has_own:
                ask(connection, written("DROP {} IF EXISTS {}{}", what, word(SCHEMA), more))
                return
            inspector = inspect(connection)
            for table in inspector.get_table_names(SCHEMA):
                if any(column["name"] == "Channel_name" for column in inspector.get_columns(table, SCHEMA)):
                    statement = clause(
                        written(
                            "DELETE FROM {}.{} WHERE {} = :name",
                            word(SCHEMA),
                            word(table),
                            dialect.quoted("Channel_name"),
                        )
                    )
                    connection.execute(statement, {"name": CHANNEL})
        engine.dispose()

    def _roll_back_prepared(self, engine: Engine) -> None:
        """Roll back the prepared transactions of an interrupted case, because their locks would block the other
        steps.
        """
        verbs = two_phase_verbs(engine.dialect.name)
        for datadir in self._config.datadir.parent.iterdir():
            if verbs is not None and instance_name(datadir):
                prefix = xid_prefix(channel_of(replace(self._config, datadir=datadir)))
                verbs.terminate_sessions(engine, prefix)
                for xid in verbs.prepared_xids(engine, prefix):
                    verbs.end_prepared(engine, "ROLLBACK", xid)
