"""`init`: create an instance folder, with its options in rplctl.toml, the target's password and the tables.

The password is stored encrypted. Tables are created only for TABLE repositories. If the instance exists, `init` changes
only the given options.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rplctl.command.channel.context import Note, engine_of, files_may_change
from rplctl.command.instance.takes_effect import notes_of_running
from rplctl.commit.resolve import verbs_for, wants_two_phases
from rplctl.config import Config, Value, load_config, read_file
from rplctl.durable import private_folder
from rplctl.errors import COPY_ALL, LOSES_CHANNEL, RplError, UsageError
from rplctl.event.kernel_cache import cache_folder, choose_folder, is_compiled
from rplctl.history import note_event
from rplctl.instance_id import made_instance_id
from rplctl.option_file import store_options
from rplctl.own_process import start_beside
from rplctl.repository import create_tables, list_channels, refuse_held_table
from rplctl.repository.layout import statements_for_readers
from rplctl.secret import protect
from rplctl.target import dialect_of, open_engine, target_kind
from rplctl.target_url import has_password, is_same_target

_MOVED = (
    "to use a target with the same rows at another address, run: rplctl change-target URL\n"
    f"To copy all tables into an empty target {LOSES_CHANNEL}, run: {COPY_ALL}"
)
_REPOSITORIES = ("master_info_repository", "relay_log_info_repository")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitResult:
    datadir: Path
    option_file: Path
    target: str
    created_tables: bool
    notes: tuple[Note, ...]
    units: tuple[str, ...] = ()  # the systemd units that were written
    next_commands: tuple[str, ...] = ()


def init(
    datadir: Path, options: Mapping[str, Value], target_password: str | None = None, *, config_file: Path | None = None
) -> InitResult:
    """Create or change the instance in `datadir`. `options` are the values that the operator gives.

    Raises UsageError if channels would lose their records, ConfigError if an option is not valid, and TargetError if
    the target reports an error. After an error, no file is changed.
    """
    given = from_root(options)
    planned = load_config(datadir, "", given, config_file=config_file)
    if wants_two_phases(planned):
        verbs_for(planned, target_kind(planned.target_place))  # only `start` asks the server itself
    if "TABLE" in (planned.master_info_repository, planned.relay_log_info_repository):
        refuse_held_table(planned)
    if "?" in planned.target or _is_lake(planned) or dialect_of(target_kind(planned.target_place)).is_held:
        open_engine(planned.target_url).dispose()  # this checks the URL without connecting
    if datadir.is_dir():
        _refuse_stranding(load_config(datadir, config_file=config_file), planned)
    private_folder(datadir)
    if not os.access(datadir, os.W_OK | os.X_OK):
        raise RplError(
            f"{datadir} is not writable",
            hint=f"to see its owner, run: ls -ld {shlex.quote(str(datadir))}\n"
            "To use another folder, run: rplctl --datadir FOLDER init",
        )
    choose_folder(datadir)
    if cache_folder() is not None and not is_compiled():
        # Compile once per machine in another process, so that the first start need not wait some seconds.
        start_beside(["-m", "rplctl.result_set.warm_up"])
    with files_may_change(datadir) if (datadir / "run").is_dir() else nullcontext():  # a new folder has no locks yet
        return _store(datadir, given, planned, target_password, config_file)


def from_root(options: Mapping[str, Value]) -> dict[str, Value]:
    """Return the options with absolute paths, because the threads do not run in the current folder of this command.

    Raises UsageError if the target's URL contains a password.
    """
    given = dict(options)
    if has_password(str(given.get("target", ""))):
        raise UsageError(
            "a password in the target's URL would be visible in the process list",
            hint="remove the password from the URL and add --target-password-file FILE",
        )
    scheme, separator, rest = str(given.get("target", "")).partition(":///")
    path, mark, query = rest.partition("?")
    if path and dialect_of(target_kind(scheme)).is_one_file:
        given["target"] = f"{scheme}{separator}{os.path.abspath(path)}{mark}{query}"
    if given.get("java_home"):
        given["java_home"] = os.path.abspath(os.path.expanduser(str(given["java_home"])))
    return given


def _store(
    datadir: Path, given: dict[str, Value], planned: Config, target_password: str | None, config_file: Path | None
) -> InitResult:
    if target_password is not None:
        given["target_password"] = protect(target_password, datadir)
    made_instance_id(datadir)
    before = load_config(datadir, config_file=config_file)
    path = store_options(datadir, "", given)
    if given:
        shown = (f"{name}={value}" for name, value in given.items() if name != "target_password")
        note_event(datadir, None, "init", ", ".join(shown))
    own = read_file(path).get("channel", {}).get("", {})  # options that switch-repo set only for the default channel
    if moved := {name: value for name, value in given.items() if name in own}:
        store_options(datadir, "", moved, only_this_channel=True)
    config = load_config(datadir, config_file=config_file)
    uses_table = "TABLE" in (config.master_info_repository, config.relay_log_info_repository)
    notes = list(_notes(planned))
    if uses_table:
        create_tables(engine := engine_of(config)(), config.rep_engine)
        with engine.connect() as connection:
            if statements := statements_for_readers(connection):
                text = "to let any user read the repository tables except the password, an administrator can run"
                notes.append(Note(f"{text}: {'; '.join(statements)}"))
    changed = [name for name in given if getattr(config, name) != getattr(before, name)]
    notes += notes_of_running(datadir, changed)
    return InitResult(
        datadir=datadir,
        option_file=path,
        target=config.target or f"sqlite:///{datadir / 'target.db'}",
        created_tables=uses_table,
        notes=tuple(notes),
    )


def _is_lake(config: Config) -> bool:
    return dialect_of(target_kind(config.target_place)).commits_per_table


def _notes(planned: Config) -> Iterator[Note]:
    if _is_lake(planned):
        yield Note(
            "each table of a lake commits separately, and the position after all tables (commit mode 'per-table')"
        )
    elif planned.relay_log_info_repository == "FILE" and planned.commit_mode == "auto":
        text = "RelayLogInfo is a FILE; a marker row in the target keeps it crash-safe (commit mode 'marker')"
        yield Note(text)


def _refuse_stranding(config: Config, planned: Config) -> None:
    """Raise UsageError if channels exist and the change names a new kind of repository or a new target (REQ-6).

    The records of the channels would stay in the old repository, where rplctl no longer looks for them.
    """
    moves = [name for name in _REPOSITORIES if getattr(config, name) != getattr(planned, name)]
    moves += [] if is_same_target(config.target, planned.target) else ["target"]
    if moves and list_channels(config, engine_of):
        raise UsageError(
            f"{', '.join(moves)} cannot be changed while channels exist",
            hint=_MOVED
            if moves == ["target"]
            else "to move the records of all channels, run: rplctl switch-repo --to table|file",
        )
