"""The dialect of Delta Lake. It is based on SQLite's dialect, because rplctl's own tables are in a SQLite file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from sqlalchemy import Engine

from rplctl import mysql_errors as er
from rplctl.durable import private_folder
from rplctl.errors import LOSES_CHANNEL, NEW_TARGET, ConfigError, TargetError
from rplctl.target.delta.place import MIRROR, LakePlace, place_of
from rplctl.target.delta.tables import DeltaTables
from rplctl.target.delta.target import PLACE, DeltaTarget
from rplctl.target.lake import LakeTables
from rplctl.target.sqlite.dialect import SqliteDialect
from rplctl.target.sqlite.target import open_engine as open_state


class DeltaDialect(SqliteDialect):
    name = "delta"
    title = "Delta Lake"
    is_one_file = False
    commits_per_table = True
    follows_foreign_keys = False
    packages: ClassVar[tuple[str, ...]] = ("deltalake", "pyarrow")

    def place(self, url: str) -> LakePlace:
        """Return the location of the lake that the URL names. Raises ConfigError if the URL is not valid."""
        return place_of(url)

    def is_missing_at(self, url: str) -> bool:
        return not Path(self.place(url).state).exists()

    def open_engine(self, url: str) -> Engine:
        place = self.place(url)
        _require(self.packages)
        _refuse_another(place)
        state = open_state(f"sqlite:///{place.state}", make_folders=partial(_make_folders, place))
        return state.execution_options(**{PLACE: place})

    def open_target(self, engine: Engine) -> DeltaTarget:
        if engine.get_execution_options()[PLACE].layer != MIRROR:
            return DeltaTarget(engine)
        from rplctl.target.delta.mirror import MirrorTarget  # imported late because it loads Arrow

        return MirrorTarget(engine)

    def has_rows(self, url: str) -> bool:
        return self.place(url).layer == MIRROR

    def lake_tables(self, engine: Engine) -> LakeTables:
        return DeltaTables(engine.get_execution_options()[PLACE])


def _require(packages: Sequence[str]) -> None:
    for name in packages:
        if find_spec(name) is None:
            raise ConfigError(
                f"a lake requires the package {name}", hint="to install it, run: pip install 'rplctl[lake]'"
            )


def _refuse_another(place: LakePlace) -> None:
    """Raise ConfigError if the folder has files but is not a lake of rplctl, or if the lake has another layer than the
    URL. Raises TargetError if the folder cannot be read.
    """
    folder, mark = Path(place.root), _mark(place)
    with _named(place):
        if place.is_local and folder.is_dir() and not (folder / place.own_folder).exists() and any(folder.iterdir()):
            raise ConfigError(
                f"the folder {folder} is not empty and is not a lake of rplctl: it has no {place.own_folder}",
                hint="use an empty folder",
            )
        is_begun = mark.exists() or Path(place.state).exists()
        if is_begun and mark.exists() is not (place.layer == MIRROR):
            raise ConfigError(
                f"the lake {place.root} has another layer than '{place.layer}'",
                hint="use another folder, because each layer needs a separate folder",
            )


def _mark(place: LakePlace) -> Path:
    """Return the path of an empty file next to the SQLite file, which records that the lake has the layer `mirror`.
    For the layer `changes`, this file does not exist.
    """
    return Path(f"{place.state}.{MIRROR}")


def _make_folders(place: LakePlace) -> None:
    """Create the missing folders of the lake and of the SQLite file. Raises ConfigError if the folder cannot be used
    for this lake, and TargetError if it is not writable.
    """
    _refuse_another(place)
    folder = Path(place.root)
    with _named(place):
        if place.is_local:
            private_folder(folder)
            private_folder(folder / place.own_folder)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied", str(folder))
        private_folder(Path(place.state).parent)
        if not Path(place.state).exists() and place.layer == MIRROR:
            _mark(place).touch(mode=0o600)


@contextmanager
def _named(place: LakePlace) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f" of {error.filename}" if error.filename else ""
        raise TargetError(
            f"cannot open the lake {place.root} because of an error{where}: {error.strerror}",
            errno=er.FILE_NOT_FOUND,
            hint="to give the folder to the account that runs rplctl, run as root: "
            f"chown -R {os.geteuid()} {shlex.quote(place.root)}\n"
            f"To write a new lake in another folder, from the source's first log {LOSES_CHANNEL}, run: {NEW_TARGET}; "
            "rplctl start",
        ) from error


DIALECT = DeltaDialect()
