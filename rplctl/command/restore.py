"""`restore DIR`: create an instance from a backup. The next `start` continues at the position of the backup.

Invariant: no channel can start before the restore is complete. Relay logs and data are restored first, then the
options. The info files are last, because a channel does not exist without them. A killed restore leaves a folder that
is not empty, and the next restore refuses such a folder.

Whatever paths the backup contains, files are written only in the instance folder and in folders that the operator has
named (instance/manifest.py). The server id and the UUID depend on the instance folder. So the restored instance and the
original may run at the same time.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from rplctl.channel import Channel
from rplctl.command.backup import TARGET_FILE, refuse_filled
from rplctl.command.channel.context import Note
from rplctl.command.instance.manifest import Manifest, read_manifest
from rplctl.config import INSTANCE_FILE
from rplctl.durable import PRIVATE_FILE, private_folder, replace_file, sync, sync_folder
from rplctl.errors import ConfigError, RplError, UsageError
from rplctl.history import note_event
from rplctl.option_file import read_document, to_bytes
from rplctl.plain_file import open_plain

SQLITE = "sqlite:"  # begin of the URL of a SQLite target


@dataclass(frozen=True, slots=True)
class RestoreResult:
    datadir: Path
    files: int
    log_status: dict[str, Any]
    notes: tuple[Note, ...]


def restore(folder: Path, datadir: Path, binary_log_folders: Sequence[Path] = ()) -> RestoreResult:
    """Fill an empty or new instance folder `datadir` with the files of the backup `folder`.

    Binary logs from outside of the instance are restored only into `binary_log_folders`. Raises UsageError if such a
    folder is not named, if `datadir` is not empty, or if `folder` is not a backup. Raises RplError if a file of the
    backup is missing or changed.
    """
    refuse_filled(datadir, "restore into a new instance: rplctl --datadir FOLDER restore …")
    manifest = read_manifest(folder)
    wanted = {place for name in manifest.digests if (place := manifest.folder_of(name))}
    # The operator must name these folders, because the backup must not decide where files are written.
    if missing := sorted(wanted - {str(place) for place in binary_log_folders}):
        raise UsageError(
            f"the backup holds a binary log that was outside of the instance folder, in {', '.join(missing)}",
            hint="to restore it there, add: " + " ".join(f"--binary-log-dir {shlex.quote(place)}" for place in missing),
        )
    names = sorted(manifest.digests, key=_order)
    places = {name: _place(name, datadir, manifest) for name in names}
    outside = [places[name] for name in names if manifest.folder_of(name)]
    _refuse_taken(outside)
    options = _options(folder, manifest, datadir)
    private_folder(datadir)
    for name in names:
        replaced = options if name == INSTANCE_FILE else None
        copy_file(folder, name, places[name], manifest.digests[name], replaced=replaced)
    sync_folder(datadir)
    for parent in {place.parent for place in outside}:
        sync_folder(parent)
    note_event(datadir, None, "restore", f"{folder}, taken {manifest.created}")
    return RestoreResult(datadir, len(names), manifest.log_status, tuple(_notes(manifest)))


def _place(name: str, datadir: Path, manifest: Manifest) -> Path:
    """Return the path to which a file is restored: in the instance folder, or in the original folder of an outside
    binary log.
    """
    outside = manifest.folder_of(name)
    return Path(outside, Path(name).name) if outside else datadir / name


def _refuse_taken(places: list[Path]) -> None:
    """Raise UsageError if a binary log of the same name exists in one of the folders.

    Otherwise two instances could write the same binary log.
    """
    for place in places:
        base = place.name.rpartition(".")[0]
        taken = sorted(place.parent.glob(f"{glob.escape(base)}.*"))
        if taken:
            raise UsageError(
                f"{taken[0]} exists: a binary log from outside of the instance folder cannot be put back there",
                hint="move the existing files away, or restore on another machine",
            )


def _order(name: str) -> tuple[int, str]:
    """Return the sort key by which the files are restored: data first, then options, then info files."""
    if name == INSTANCE_FILE:
        return 1, name
    return (2 if name.endswith(".info") else 0), name


def copy_file(folder: Path, name: str, destination: Path, wanted: str, *, replaced: bytes | None) -> None:
    """Copy one file of the backup, durably, after a check that its SHA-256 is `wanted`.

    If `replaced` is not None, these bytes are written instead of the file's content. Raises RplError if the file is
    missing or its digest is not `wanted`.
    """
    source = folder / name
    private_folder(destination.parent)
    with _opened(folder, source) as reader:
        if hashlib.file_digest(reader, "sha256").hexdigest() != wanted:
            raise RplError(f"{source} has changed since the backup: its SHA-256 differs", hint="use another backup")
        if replaced is not None:
            replace_file(destination, replaced)
            return
        reader.seek(0)
        with open(destination, "xb") as writer:
            destination.chmod(PRIVATE_FILE)
            shutil.copyfileobj(reader, writer, 4 << 20)
            writer.flush()
            sync(writer.fileno(), destination.name)


def _opened(folder: Path, source: Path) -> BufferedReader:
    """Open a file of the backup, and return the reader.

    Raises RplError if the file is missing, or if its path contains a symbolic link, which may lead out of the backup.
    """
    if source.is_symlink() or source.parent.resolve() != folder.resolve() / source.parent.relative_to(folder):
        raise RplError(f"{source} is a symbolic link, or its path contains one", hint="use another backup")
    try:
        return os.fdopen(open_plain(source, follow=False), "rb")
    except (FileNotFoundError, NotADirectoryError):
        raise RplError(f"{source} is missing from the backup", hint="use another backup") from None


def _options(folder: Path, manifest: Manifest, datadir: Path) -> bytes | None:
    """Return the option file of the backup with the new paths of SQLite targets. Return None if no path changes.

    The SQLite files of the restored instance are in its own folder. A target that is a server is unchanged.
    """
    path = folder / INSTANCE_FILE
    if INSTANCE_FILE not in manifest.digests:
        return None
    _opened(folder, path).close()
    stored = read_document(path)
    before = to_bytes(stored)
    has_file_at_top = str(stored.get("target", SQLITE)).startswith(SQLITE)
    if has_file_at_top:
        stored.pop("target", None)
    sections = stored.setdefault("channel", {})
    if not isinstance(sections, dict) or not all(isinstance(section, dict) for section in sections.values()):
        raise ConfigError(f"{path}: channel: tables were expected", hint="use another backup")
    with_file = [name for name, section in sections.items() if str(section.get("target", "")).startswith(SQLITE)]
    file_of = {name: f"target{Channel(name, datadir).suffix}.db" for name in with_file}
    spelled = {name.lower(): name for name in reversed([*sections])}
    for file, channels in manifest.targets.items():
        file_of |= {spelled.get(channel.lower(), channel): file for channel in channels}
    for channel, file in file_of.items():
        if file != TARGET_FILE or not has_file_at_top:
            sections.setdefault(channel, {})["target"] = f"{SQLITE}///{datadir / file}"
        elif channel in sections:
            sections[channel].pop("target", None)
    after = to_bytes(stored)
    return after if after != before else None


def _notes(manifest: Manifest) -> Iterator[Note]:
    if manifest.needs_dump:
        yield Note("load the dump of the target before rplctl start; to use another server, set target in rplctl.toml")
    if manifest.key_left_out:
        yield Note("the backup holds no rplctl.key: copy the original key into the folder, or set the passwords again")
