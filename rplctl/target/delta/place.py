"""Reads the URL of a lake, writes its data files, and names its folders.

    delta+file:///FOLDER            tables are FOLDER/DATABASE/TABLE; rplctl's tables: FOLDER/_rplctl/state.db
    delta+s3://BUCKET/PREFIX?state=/FILE    the same below the prefix; rplctl's tables are in the local FILE

Options after `?` are `layer=changes|mirror`, `zero_dates=null|error`, `state=FILE`, and the storage options of delta-rs
(AWS_REGION, AWS_ENDPOINT_URL, AWS_ALLOW_HTTP, …). Keys and passwords are not allowed in the URL; they come from the
environment. Invariant: names of folders are encoded as in MySQL's file names. Each character other than an ASCII
letter, a digit or `_` becomes @ and its code.
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
from rplctl.errors import LOSES_CHANNEL, NEW_TARGET, ConfigError, TargetError
from rplctl.schema.model import TableModel
from rplctl.target.lake import WrittenFile

OWN_FOLDER: Final = "_rplctl"
STATE_FILE: Final = "state.db"
CHANGES: Final = "changes"
MIRROR: Final = "mirror"
_SECRETS: Final = re.compile(r"secret|password|token|access_key|sas", re.IGNORECASE)
_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"})
# Only these columns have a dictionary. Dictionaries of all columns would double the time and make the files larger.
_AS_PARQUET: Final[dict[str, Any]] = {"compression": "zstd", "use_dictionary": ["op", "log", "gtid", "end_log"]}
_MIRRORED: Final[dict[str, Any]] = {"compression": "snappy", "use_dictionary": False}
# The hint offers no repair of the mirror: a mirror accepts no copy of a table, and the event remains in the log.
INSTEAD_OF_MIRROR: Final = (
    "to store every event in a new lake of layer=changes in another folder, from the source's first log "
    f"{LOSES_CHANNEL}, run: {NEW_TARGET}; rplctl start"
)
_USAGE: Final = "write delta+file:///FOLDER or delta+s3://BUCKET/PREFIX?state=/FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class LakePlace:
    """The location of a lake, with the settings for its files. It implements `lake.FileWriter` for Spark tasks.

    `root`: a path, or the URL of an object store. `state`: the path of the SQLite file with rplctl's own tables.
    `options`: the storage options of delta-rs. `zero_dates_null`: True to store invalid dates as NULL.
    """

    own_folder: ClassVar[str] = OWN_FOLDER  # the folder in the root that marks a lake of rplctl

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
        """Return the path of a local data file before its commit, when no table lists the file yet."""
        return Path(self.root) / folder / name

    def uri(self, folder: str) -> str:
        return f"{self.root}/{folder}"

    def files(self, folder: str) -> Any:
        """Return the file system with which Arrow reads a table's files. For local files, this is Arrow's own file
        system. With a file system in Python before 3.14, a thread of Arrow can abort the process when it ends.
        """
        from pyarrow.fs import LocalFileSystem, PyFileSystem, SubTreeFileSystem

        if self.is_local:
            return SubTreeFileSystem(self.uri(folder), LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        return PyFileSystem(DeltaStorageHandler(self.uri(folder), self.options or None))

    def write(self, model: TableModel, folder: str, rows: Any, stats: str = "") -> WrittenFile:
        """Write the rows (an Arrow table) to a new file, as `lake.FileWriter.write` requires. Raises TargetError if the
        file cannot be written.
        """
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
                hint="to check the access to the lake and to continue after you have repaired the cause that the error "
                "names, run: rplctl doctor; rplctl start",
            ) from error
        stats = stats or json.dumps({"numRecords": rows.num_rows})
        return WrittenFile(
            database=model.database,
            table=model.name,
            folder=folder,
            path=name,
            size=size,
            rows=rows.num_rows,
            stats=stats,
        )

    def _write_local(self, folder: str, name: str, rows: Any) -> int:
        """Write a local file, sync the file and its folder to disk, and return its size in bytes. Only then may the
        table's log list the file.
        """
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
        """Sync the files of the table's log for all versions after `behind` to disk, because delta-rs does not sync its
        commits. Raises OSError if a sync fails.
        """
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
        """Raise FileNotFoundError if a data file of the batch is missing or truncated. VACUUM may have deleted the
        file, or a user may have deleted the folder. `files`: (path, size in bytes, statistics) of each file.
        """
        if self.is_local:
            sizes = {path: (Path(self.root) / folder / path).stat().st_size for path, _, _ in files}
        else:
            store = self.files(folder)
            sizes = {path: store.get_file_info(path).size for path, _, _ in files}
        for path, size, _ in files:
            if sizes[path] != size:
                raise FileNotFoundError(2, "a file of the batch is missing or truncated", path)


def place_of(url: str) -> LakePlace:
    """Return the location that the URL of a Delta Lake names. Raises ConfigError if the URL is not valid."""
    parts = urlsplit(url.removeprefix("delta+"))
    words = dict(parse_qsl(parts.query))
    zero_dates, state = words.pop("zero_dates", "error"), words.pop("state", "")
    if (layer := words.pop("layer", CHANGES)) not in (CHANGES, MIRROR):
        raise ConfigError(f"layer={layer} is neither {CHANGES} nor {MIRROR}", hint=_USAGE)
    if zero_dates not in ("error", "null"):
        raise ConfigError(f"zero_dates={zero_dates} is neither error nor null", hint=_USAGE)
    if secrets := [name for name in words if _SECRETS.search(name)]:
        raise ConfigError(
            f"a target's URL must not contain credentials: {', '.join(secrets)}",
            hint="export them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for rplctl and for Spark's executors",
        )
    if parts.scheme == "file" and not parts.netloc and parts.path.strip("/"):
        root = unquote(parts.path).rstrip("/")
        state = state or f"{root}/{OWN_FOLDER}/{STATE_FILE}"
    elif parts.scheme in _STORES and parts.netloc:
        root = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    else:
        raise ConfigError(f"target '{url}' does not name a folder or a bucket", hint=_USAGE)
    if not state.startswith("/"):
        raise ConfigError("a lake in a bucket requires a local file for positions and models", hint=_USAGE)
    return LakePlace(root=root, state=state, options=words, zero_dates_null=zero_dates == "null", layer=layer)


def file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"@{ord(found[0]):04x}", name)
