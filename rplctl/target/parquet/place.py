"""The URL of a lake of plain Parquet files.

    parquet+file:///FOLDER      the changes of a table: FOLDER/DATABASE/TABLE/BATCH/*.parquet

After `?`: `zero_dates=null|error`, `state=FILE`. Files that belong to no batch yet wait in the lake's own folder, on
the same file system: a rename publishes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from rplctl.errors import ConfigError
from rplctl.target.delta.place import STATE_FILE, Place

_USAGE: Final = "write parquet+file:///FOLDER"


@dataclass(frozen=True, slots=True)
class ParquetPlace(Place):
    own_folder: ClassVar[str] = "_rplctl_parquet"  # no lake of Delta tables

    def written(self, folder: str, name: str) -> Path:
        return Path(self.root) / self.own_folder / "written" / name


def place_of(url: str) -> ParquetPlace:
    """Return the place that the URL of a lake of plain Parquet files names. Raises ConfigError."""
    parts = urlsplit(url.removeprefix("parquet+"))
    words = dict(parse_qsl(parts.query))
    zero_dates, state, layer = words.pop("zero_dates", "error"), words.pop("state", ""), words.pop("layer", "changes")
    if parts.scheme != "file":
        raise ConfigError(
            f"target '{url}': plain Parquet files are published by a rename, which no object store has",
            hint="parquet+file:///FOLDER, or Delta tables: delta+s3://BUCKET/PREFIX?state=/FILE",
        )
    if parts.netloc or not parts.path.strip("/"):
        raise ConfigError(f"target '{url}' names no folder", hint=_USAGE)
    if layer != "changes":
        raise ConfigError(
            f"layer={layer}: plain Parquet files keep changes; files that are replaced need a table's log",
            hint="a mirror is delta+file:///FOLDER?layer=mirror",
        )
    if zero_dates not in ("error", "null"):
        raise ConfigError(f"zero_dates={zero_dates}: it is error or null", hint=_USAGE)
    if words:
        raise ConfigError(f"{', '.join(words)}: no option of plain Parquet files", hint=f"{_USAGE}?zero_dates=null")
    root = unquote(parts.path).rstrip("/")
    state = state or f"{root}/{ParquetPlace.own_folder}/{STATE_FILE}"
    if not state.startswith("/"):
        raise ConfigError(f"state={state}: it is an absolute path", hint=f"{_USAGE}?state=/FILE")
    return ParquetPlace(root, state, {}, zero_dates == "null")
