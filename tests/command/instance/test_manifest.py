"""Hostile and damaged backups: `restore` refuses them with an error and writes nothing where nobody said so."""

from __future__ import annotations

import contextlib
import copy as copying
import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rplctl.command.backup import backup
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.instance.manifest import MANIFEST, read_manifest
from rplctl.command.restore import restore
from rplctl.config import load_config
from rplctl.errors import RplError
from rplctl.option_file import store_options

pytestmark = pytest.mark.slow

JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**400, "", "x", "\0", "\ud800", "../x", "/etc/x", "a\nb", [], [1], {}, {"a": 1}),
    *({"": ""}, {"../x": "/tmp"}, ["a", {"b": None}], "x" * 5000),
)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A backup with a binary log that was outside of its instance."""
    datadir, place = tmp_path / "instance", tmp_path / "logs"
    datadir.mkdir()
    place.mkdir()
    store_options(datadir, "", {"log_bin": str(place / "applied")})
    change_master(load_config(datadir), "west", MasterChanges(master_host="db1", master_user="u"))
    (place / "applied-west.000001").write_bytes(b"\xfebin")
    (place / "applied-west.index").write_text("./applied-west.000001\n")
    backup(lambda name: load_config(datadir, name), tmp_path / "backup")
    shutil.rmtree(datadir)
    shutil.rmtree(place)
    return tmp_path / "backup"


def state_of(folder: Path, without: Path) -> set[tuple[str, bytes]]:
    paths = [path for path in folder.rglob("*") if not path.is_relative_to(without)]
    return {(str(path), path.read_bytes() if path.is_file() else b"") for path in paths}


def tried(whole: Path, number: object) -> RplError | None:
    """One restore: only an RplError is one, and nothing beside the new instance has changed."""
    again = whole.parent / f"again-{number}"
    before = state_of(whole.parent, again)
    error = None
    try:
        restore(whole, again)
    except RplError as refused:
        error = refused
        assert "this is a bug" not in refused.message
    assert state_of(whole.parent, again) == before, "written outside"
    shutil.rmtree(again, ignore_errors=True)
    return error


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*at, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*at, number))


def put(manifest: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    changed = copying.deepcopy(manifest)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return changed


def test_every_kind_of_value_in_every_place(whole: Path) -> None:
    manifest = json.loads((whole / MANIFEST).read_bytes())
    checked = [at for at in places(manifest) if at[:1] != ("log_status",) or len(at) == 1]
    refused = 0
    for at in checked:
        for number, junk in enumerate(JUNK):
            (whole / MANIFEST).write_text(json.dumps(put(manifest, at, junk)))
            refused += tried(whole, f"{checked.index(at)}-{number}") is not None
    assert refused > len(checked) * len(JUNK) * 0.8


def test_truncated_anywhere_and_garbled(whole: Path) -> None:
    data = (whole / MANIFEST).read_bytes()
    assert isinstance(tried(whole, "whole"), RplError), "names a folder that nobody named"
    for cut in range(0, len(data) - 2, 3):
        (whole / MANIFEST).write_bytes(data[:cut])
        with pytest.raises(RplError):
            read_manifest(whole)
    rng = random.Random(16)
    for _ in range(400):
        garbled = bytearray(data)
        for _ in range(rng.choice((1, 1, 3, 30))):
            garbled[rng.randrange(len(garbled))] = rng.randrange(256)
        (whole / MANIFEST).write_bytes(garbled)
        with contextlib.suppress(RplError):
            read_manifest(whole)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 4096,
        b"\xff\xfe{}",
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b"9" * 100_000,
        b'{"version": 1}',
        '{"version": 1}'.encode("utf-16"),
        b" " * (65 << 20),
    ],
    ids=["empty", "zeros", "not UTF-8", "nested lists", "nested objects", "a long number", "bare", "utf-16", "huge"],
)
def test_junk_in_its_place(whole: Path, data: bytes) -> None:
    (whole / MANIFEST).write_bytes(data)
    assert tried(whole, "junk") is not None


@pytest.mark.parametrize("name", [MANIFEST, "rplctl.toml", "binary-log/applied-west/applied-west.000001"])
@pytest.mark.parametrize("kind", ["folder", "fifo", "link", "device", "missing", "link to a folder"])
def test_what_is_no_file_is_refused_and_nobody_waits(whole: Path, name: str, kind: str) -> None:
    manifest = json.loads((whole / MANIFEST).read_bytes())
    manifest["binary_logs_outside"] = {}
    (whole / MANIFEST).write_text(json.dumps(manifest))
    secret = whole.parent / "secret"
    secret.mkdir()
    path = whole / name
    data = path.read_bytes()
    path.unlink()
    if kind == "link to a folder" and path.parent == whole:
        return
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind.startswith("link"):
        (secret / path.name).write_bytes(data)
        if kind == "link":
            path.symlink_to(secret / path.name)
        else:
            path.parent.rename(secret / "moved")
            path.parent.symlink_to(secret)
    assert tried(whole, "kind") is not None


def test_a_hostile_manifest_does_not_choose_where_to_write(whole: Path) -> None:
    manifest = json.loads((whole / MANIFEST).read_bytes())
    home = whole.parent / "home"
    home.mkdir()
    (whole / "x").mkdir()
    (whole / "x" / "authorized_keys").write_bytes(b"ssh-rsa evil")
    digest = hashlib.sha256(b"ssh-rsa evil").hexdigest()
    manifest["files"]["x/authorized_keys"] = {"size": 12, "sha256": digest}
    manifest["binary_logs_outside"]["x"] = str(home / ".ssh")
    (whole / MANIFEST).write_text(json.dumps(manifest))
    error = tried(whole, "hostile")
    assert error is not None and str(home / ".ssh") in error.message
    assert list(home.iterdir()) == []
