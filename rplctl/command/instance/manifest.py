"""Read and check backup.json, the manifest of a backup, before `restore` uses it.

Invariant: `restore` writes only into the instance folder and into folders that the operator has named. It reads only
regular files of the backup and follows no links. A manifest may be hostile: if a value has a wrong type or exceeds its
bounds, the backup is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from rplctl.channel import MAX_CHANNEL_NAME
from rplctl.errors import UsageError
from rplctl.plain_file import UnfitFile, parsed_json, read_plain

MANIFEST = "backup.json"
MANIFEST_VERSION = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_FILES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    created: str
    log_status: dict[str, Any]
    has_target: bool
    has_key: bool
    needs_dump: bool
    key_left_out: bool
    outside: Mapping[str, str]  # folder of the backup → the original folder outside of the instance
    digests: Mapping[str, str]  # relative name → SHA-256
    targets: Mapping[str, tuple[str, ...]]  # SQLite file of the backup → its channels

    def folder_of(self, name: str) -> str | None:
        """Return the original folder of a binary log from outside of the instance. Return None for all other files.

        `name` is the path of the file in the backup.
        """
        return self.outside.get(str(PurePosixPath(name).parent))


def read_manifest(folder: Path) -> Manifest:
    """Return the checked manifest of a backup folder. Raises UsageError if the folder is not a complete backup."""
    path = folder / MANIFEST
    try:
        stored = parsed_json(read_plain(path, follow=False))
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is not a complete backup: there is no {MANIFEST}") from None
    except UnfitFile as error:
        raise UsageError(error.message, hint=error.hint) from None
    except ValueError:
        raise _damaged(path, "not JSON") from None
    if not isinstance(stored, dict) or _typed(path, stored, "version", int) != MANIFEST_VERSION:
        raise _damaged(path, "version")
    digests = _digests(path, _typed(path, stored, "files", dict))
    return Manifest(
        created=_typed(path, stored, "created", str),
        log_status=_typed(path, stored, "log_status", dict),
        has_target=_typed(path, stored, "has_target", bool),
        has_key=_typed(path, stored, "has_key", bool),
        needs_dump=_typed(path, stored, "needs_dump", bool, not stored.get("has_target")),
        key_left_out=_typed(path, stored, "key_left_out", bool, not stored.get("has_key")),
        outside=_outside(path, _typed(path, stored, "binary_logs_outside", dict, {})),
        digests=digests,
        targets=_targets(path, _typed(path, stored, "targets", dict, {}), digests),
    )


def _typed(path: Path, stored: dict[str, Any], name: str, kind: type[Any], default: Any = None) -> Any:
    value = stored.get(name, default)
    if type(value) is not kind:
        raise _damaged(path, name)
    return value


def _digests(path: Path, files: dict[str, Any]) -> dict[str, str]:
    if len(files) > _MOST_FILES:
        raise _damaged(path, "files")
    for name, entry in files.items():
        _refuse_outside(path, name)
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
            raise _damaged(path, f"files: {name}")
        if type(entry.get("size")) is not int or not _DIGEST.fullmatch(entry["sha256"]):
            raise _damaged(path, f"files: {name}")
    folders = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    if both := folders & files.keys():
        raise _damaged(path, f"files: {min(both)} is a file and a folder")
    return {name: entry["sha256"] for name, entry in files.items()}


def _refuse_outside(path: Path, name: str) -> None:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise UsageError(f"{path} names files outside of the backup: {name}")
    if not name or str(pure) != name or name == MANIFEST or not name.isprintable() or _is_too_long(pure):
        raise _damaged(path, f"files: {name[:80]}")


def _is_too_long(pure: PurePosixPath) -> bool:
    try:
        return any(len(part.encode()) > 255 for part in pure.parts) or len(str(pure)) > 1024
    except UnicodeEncodeError:
        return True


def _outside(path: Path, stored: dict[str, Any]) -> dict[str, str]:
    for part, folder in stored.items():
        if not isinstance(folder, str) or not folder.startswith("/") or not folder.isprintable() or not part:
            raise _damaged(path, "binary_logs_outside")
    return stored


def _targets(path: Path, stored: dict[str, Any], digests: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    for file, channels in stored.items():
        if file not in digests or not isinstance(channels, list):
            raise _damaged(path, "targets")
        for name in channels:
            if not isinstance(name, str) or not (name.isprintable() and len(name) <= MAX_CHANNEL_NAME):
                raise _damaged(path, "targets")
    return {file: tuple(channels) for file, channels in stored.items()}


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(f"{path} is damaged or from another version of rplctl ({what})", hint="use another backup")
