"""A lake's URL, and the names of the files in it.

    delta+file:///FOLDER            tables are FOLDER/DATABASE/TABLE; our own tables: FOLDER/_rplctl/state.db
    delta+s3://BUCKET/PREFIX?state=/FILE    the same below the prefix; our own tables in FILE, of this machine

After `?`: `layer=changes|mirror`, `zero_dates=null|error`, `state=FILE`, and what delta-rs calls storage options
(AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP, …). Keys and passwords are none of them: they come from the environment.

Invariant: a name is encoded as MySQL encodes file names: whatever is no ASCII letter, digit or `_` is @ and its code.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from rplctl import mysql_errors as er
from rplctl.durable import sync, sync_folder
from rplctl.errors import ConfigError, TargetError
from rplctl.schema.model import TableModel
from rplctl.target.lake import WrittenFile

OWN_FOLDER: Final = "_rplctl"
STATE_FILE: Final = "state.db"
CHANGES: Final = "changes"
MIRROR: Final = "mirror"
_SECRETS: Final = re.compile(r"secret|password|token|access_key|sas", re.IGNORECASE)
_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
# a dictionary of the rows' values costs half of the time, and files that are larger
_AS_PARQUET: Final[dict[str, Any]] = {"compression": "zstd", "use_dictionary": ["op", "log", "gtid", "end_log"]}
_MIRRORED: Final[dict[str, Any]] = {"compression": "snappy", "use_dictionary": False}
_USAGE: Final = "write delta+file:///FOLDER or delta+s3://BUCKET/PREFIX?state=/FILE"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lake is: pure values, they travel to Spark's tasks. `root` is a path, or a URL of an object store."""

    own_folder: ClassVar[str] = OWN_FOLDER  # in the root: it says whose folder that is

    root: str
    state: str
    options: dict[str, str] = field(default_factory=dict)
    zero_dates_null: bool = False
    layer: str = CHANGES

    @property
    def is_local(self) -> bool:
        return "://" not in self.root

    @property
    def _form(self) -> dict[str, Any]:
        return _MIRRORED if self.layer == MIRROR else _AS_PARQUET

    def written(self, folder: str, name: str) -> Path:
        """A local file that no table names yet."""
        return Path(self.root) / folder / name

    def uri(self, folder: str) -> str:
        return f"{self.root}/{folder}"

    def files(self, folder: str) -> Any:
        """Return the file system by which Arrow reads a table's files. Local files are read without Python: a thread of
        Arrow's that is in a file system written in Python when the interpreter ends (before 3.14) aborts the process.
        """
        from pyarrow.fs import LocalFileSystem, PyFileSystem, SubTreeFileSystem

        if self.is_local:
            return SubTreeFileSystem(self.uri(folder), LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return PyFileSystem(DeltaStorageHandler(self.uri(folder), self.options or None))

    def write(self, model: TableModel, folder: str, rows: Any, stats: str = "") -> WrittenFile:
        """Write the rows into a new file, as lake.FileWriter describes. Raises TargetError."""
        import pyarrow.parquet as parquet

        name = f"{uuid.uuid4().hex}.parquet"
        try:
            if self.is_local:
                size = self._write_local(folder, name, rows)
            else:
                files = self.files(folder)
                with files.open_output_stream(name) as stream:
                    parquet.write_table(rows, stream, **self._form)
                size = files.get_file_info(name).size
        except OSError as error:
            if self.is_local:
                self.written(folder, name).unlink(missing_ok=True)
            raise TargetError(
                f"cannot write to {self.uri(folder)}: {error.strerror or error}",
                errno=er.ERROR_ON_WRITE,
                hint="repair the cause, then run: rplctl doctor; rplctl start",
            ) from error
        stats = stats or json.dumps({"numRecords": rows.num_rows})
        return WrittenFile(model.database, model.name, folder, name, size, rows.num_rows, stats)

    def _write_local(self, folder: str, name: str, rows: Any) -> int:
        """Synced, with its entry in the folder: the table's log may name it then."""
        import pyarrow.parquet as parquet

        path = self.written(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, path, **self._form)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(descriptor, "lake file")
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
        sync_folder(path.parent)
        return size

    def sync_log(self, folder: str, behind: int) -> None:
        """Commits later than version `behind`: delta-rs writes them and syncs nothing. Raises OSError."""
        if not self.is_local:
            return
        log = Path(self.root) / folder / "_delta_log"
        for entry in log.iterdir():
            version = entry.name.partition(".")[0]
            if entry.name == "_last_checkpoint" or (version.isdecimal() and int(version) > behind):
                descriptor = os.open(entry, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    sync(descriptor, "lake commit")
                finally:
                    os.close(descriptor)
        for parent in (log, *list(log.parents)[:3]):
            sync_folder(parent)

    def refuse_missing(self, folder: str, files: Sequence[tuple[str, int, str]]) -> None:
        """Raises FileNotFoundError: a table must not name what is gone (VACUUM, a removed folder)."""
        if self.is_local:
            sizes = {path: (Path(self.root) / folder / path).stat().st_size for path, _, _ in files}
        else:
            store = self.files(folder)
            sizes = {path: store.get_file_info(path).size for path, _, _ in files}
        for path, size, _ in files:
            if sizes[path] != size:
                raise FileNotFoundError(2, "a file of the batch is gone or cut short", path)


def place_of(url: str) -> Place:
    """Return the place that the URL of a Delta Lake names. Raises ConfigError."""
    parts = urlsplit(url.removeprefix("delta+"))
    words = dict(parse_qsl(parts.query))
    zero_dates, state = words.pop("zero_dates", "error"), words.pop("state", "")
    if (layer := words.pop("layer", CHANGES)) not in (CHANGES, MIRROR):
        raise ConfigError(f"layer={layer}: it is {CHANGES} or {MIRROR}", hint=_USAGE)
    if zero_dates not in ("error", "null"):
        raise ConfigError(f"zero_dates={zero_dates}: it is error or null", hint=_USAGE)
    if secrets := [name for name in words if _SECRETS.search(name)]:
        raise ConfigError(
            f"{', '.join(secrets)}: no key may stand in a target's URL",
            hint="export it (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) for rplctl and for Spark's executors",
        )
    if parts.scheme == "file" and not parts.netloc and parts.path.strip("/"):
        root = unquote(parts.path).rstrip("/")
        state = state or f"{root}/{OWN_FOLDER}/{STATE_FILE}"
    elif parts.scheme in _STORES and parts.netloc:
        root = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    else:
        raise ConfigError(f"target '{url}' names no folder and no bucket", hint=_USAGE)
    if not state.startswith("/"):
        raise ConfigError("a lake in a bucket needs a file on this machine for positions and models", hint=_USAGE)
    return Place(root, state, words, zero_dates == "null", layer)


def file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"@{ord(found[0]):04x}", name)
