"""`restore DIR`: an instance from what `backup` copied; the next `start` goes on where the backup was taken.

Invariant: nothing can start before everything is there. The order is relay logs and data, options, and the info files,
without which a channel does not exist, last; a restore that is killed leaves a folder that the next one refuses.
Server id and uuid are derived from the instance folder, so the copy and the original may run at the same time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rplctl.channel import Channel
from rplctl.command.backup import MANIFEST, MANIFEST_VERSION, TARGET_FILE, refuse_filled
from rplctl.command.instance import Note
from rplctl.command.journal import append_journal
from rplctl.config import INSTANCE_FILE, Config, read_file, to_toml
from rplctl.durable import PRIVATE_FILE, private_folder, replace_file, sync, sync_folder
from rplctl.errors import RplError, UsageError

SQLITE = "sqlite:"  # a target's URL begins with it


@dataclass(frozen=True, slots=True)
class RestoreResult:
    datadir: Path
    files: int
    log_status: dict[str, Any]
    notes: tuple[Note, ...]


def restore(folder: Path, datadir: Path) -> RestoreResult:
    """Fill an empty or new instance folder. Raises UsageError, RplError when the backup is not whole."""
    refuse_filled(datadir, "restore into a new instance: rplctl --datadir FOLDER restore …")
    manifest = read_manifest(folder)
    names = sorted(manifest["files"], key=_order)
    places = {name: _place(name, datadir, manifest.get("binary_logs_outside", {})) for name in names}
    _refuse_taken([place for place in places.values() if not place.is_relative_to(datadir)])
    private_folder(datadir)
    for name in names:
        _copy(folder / name, places[name], manifest["files"][name], replaced=_options(folder, name, manifest, datadir))
    sync_folder(datadir)
    for parent in {place.parent for place in places.values() if not place.is_relative_to(datadir)}:
        sync_folder(parent)
    append_journal(Config(datadir), f"'RESTORE' of {folder}, taken {manifest['created']}")
    return RestoreResult(datadir, len(names), manifest["log_status"], tuple(_notes(manifest)))


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the folder says it holds. Raises UsageError when it is no finished backup."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        is_known = manifest["version"] == MANIFEST_VERSION and isinstance(manifest["files"], dict)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is no backup, or one that was not finished: no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError):
        is_known = False
    if not is_known:
        raise UsageError(f"{folder / MANIFEST} is not of this version of rplctl, or damaged")
    if any(Path(name).is_absolute() or ".." in Path(name).parts for name in manifest["files"]):
        raise UsageError(f"{folder / MANIFEST} names files outside of the backup")
    return dict(manifest)


def _place(name: str, datadir: Path, outside: dict[str, str]) -> Path:
    """Where the file belongs: in the instance folder, or where its binary log was."""
    part = str(Path(name).parent)
    return Path(outside[part], Path(name).name) if part in outside else datadir / name


def _refuse_taken(places: list[Path]) -> None:
    """Two instances must not write one binary log. Raises UsageError."""
    for place in places:
        base = place.name.rpartition(".")[0]
        taken = sorted(place.parent.glob(f"{base}.*"))
        if taken:
            raise UsageError(
                f"{taken[0]} exists: a binary log from outside of the instance folder cannot be put back there",
                hint="move what is there away, or restore on another machine",
            )


def _order(name: str) -> tuple[int, str]:
    """Data, options, info files."""
    if name == INSTANCE_FILE:
        return 1, name
    return (2 if name.endswith(".info") else 0), name


def _copy(source: Path, destination: Path, entry: dict[str, Any], *, replaced: bytes | None) -> None:
    """One file, checked against its digest on the way. Raises RplError."""
    private_folder(destination.parent)
    try:
        with open(source, "rb") as reader:
            digest = hashlib.file_digest(reader, "sha256").hexdigest()
            if digest != entry["sha256"]:
                raise RplError(f"{source} is not what was backed up: its SHA-256 differs", hint="use another backup")
            if replaced is not None:
                replace_file(destination, replaced)
                return
            reader.seek(0)
            with open(destination, "xb") as writer:
                destination.chmod(PRIVATE_FILE)
                shutil.copyfileobj(reader, writer, 4 << 20)
                writer.flush()
                sync(writer.fileno(), destination.name)
    except FileNotFoundError:
        raise RplError(f"{source} is missing from the backup", hint="use another backup") from None


def _options(folder: Path, name: str, manifest: dict[str, Any], datadir: Path) -> bytes | None:
    """The options with SQLite files in our instance folder in place of the original's, None when nothing changes.

    A server stays the target that it was: of the whole instance, or of a channel.
    """
    if name != INSTANCE_FILE:
        return None
    stored = read_file(folder / name)
    before = to_toml(stored)
    has_file_at_top = str(stored.get("target", SQLITE)).startswith(SQLITE)
    if has_file_at_top:
        stored.pop("target", None)
    sections = stored.setdefault("channel", {})
    file_of = {
        channel: f"target{Channel(channel, datadir).suffix}.db" for channel, s in sections.items() if _has_file(s)
    }
    for file, channels in manifest.get("targets", {}).items():
        file_of |= {_spelled(sections, channel): file for channel in channels}
    for channel, file in file_of.items():
        if file != TARGET_FILE or not has_file_at_top:
            sections.setdefault(channel, {})["target"] = f"{SQLITE}///{datadir / file}"
        elif channel in sections:
            sections[channel].pop("target", None)
    after = to_toml(stored)
    return after.encode() if after != before else None


def _has_file(section: dict[str, Any]) -> bool:
    return str(section.get("target", "")).startswith(SQLITE)


def _spelled(sections: dict[str, Any], channel: str) -> str:
    """The section that is the channel's, in whatever case."""
    return next((name for name in sections if name.lower() == channel.lower()), channel)


def _notes(manifest: dict[str, Any]) -> list[Note]:
    notes = []
    if manifest.get("needs_dump", not manifest["has_target"]):
        notes.append(
            Note(0, "load the target's own dump before rplctl start; another server is named by target in rplctl.toml")
        )
    if manifest.get("key_left_out", not manifest["has_key"]):
        notes.append(Note(0, "the backup holds no rplctl.key: put the original's here, or set the passwords again"))
    return notes
