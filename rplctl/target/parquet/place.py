"""Reads the URL of a lake of plain Parquet files.

    parquet+file:///FOLDER      the changes of a table: FOLDER/DATABASE/TABLE/BATCH/*.parquet

Options after `?` are `zero_dates=null|error` and `state=FILE`. New files are first written to the lake's folder
`_rplctl_parquet`. This folder is on the same file system as the tables, so that a rename can move a complete batch into
a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from rplctl.errors import ConfigError
from rplctl.target.delta.place import STATE_FILE, LakePlace

_USAGE: Final = "write parquet+file:///FOLDER"


@dataclass(frozen=True, slots=True)
class ParquetPlace(LakePlace):
    own_folder: ClassVar[str] = "_rplctl_parquet"  # another name than in a Delta Lake, to distinguish the lakes

    def written(self, folder: str, name: str) -> Path:
        return Path(self.root) / self.own_folder / "written" / name


def place_of(url: str) -> ParquetPlace:
    """Return the location in the URL of a lake of plain Parquet files. Raises ConfigError if the URL is not valid."""
    parts = urlsplit(url.removeprefix("parquet+"))
    words = dict(parse_qsl(parts.query))
    zero_dates, state, layer = words.pop("zero_dates", "error"), words.pop("state", ""), words.pop("layer", "changes")
    if parts.scheme != "file":
        raise ConfigError(
            f"target '{url}': plain Parquet files need a file system that can rename files",
            hint="write parquet+file:///FOLDER, or for Delta tables delta+s3://BUCKET/PREFIX?state=/FILE",
        )
    if parts.netloc or not parts.path.strip("/"):
        raise ConfigError(f"target '{url}' does not name a folder", hint=_USAGE)
    if layer != "changes":
        raise ConfigError(
            f"layer={layer}: plain Parquet files support only the layer changes",
            hint="for a mirror, write delta+file:///FOLDER?layer=mirror",
        )
    if zero_dates not in ("error", "null"):
        raise ConfigError(f"zero_dates={zero_dates} is neither error nor null", hint=_USAGE)
    if words:
        raise ConfigError(
            f"unknown option of plain Parquet files: {', '.join(words)}", hint=f"{_USAGE}?zero_dates=null"
        )
    root = unquote(parts.path).rstrip("/")
    state = state or f"{root}/{ParquetPlace.own_folder}/{STATE_FILE}"
    if not state.startswith("/"):
        raise ConfigError(f"state={state} is not an absolute path", hint=f"{_USAGE}?state=/FILE")
    return ParquetPlace(root=root, state=state, zero_dates_null=zero_dates == "null")
