"""A restore that is cut off leaves nothing that could start, whatever file it was at (WL#9452)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rplctl.command import restore as restoring
from rplctl.command.backup import backup
from rplctl.command.change_master import change_master
from rplctl.command.channel.change_options import MasterChanges
from rplctl.command.channel.context import engine_of
from rplctl.command.instance.manifest import read_manifest
from rplctl.command.restore import restore
from rplctl.config import load_config
from rplctl.errors import UsageError
from rplctl.option_file import store_options
from rplctl.repository import list_channels


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Two channels, options and a filter: a restore without the options would replicate too much."""
    datadir = tmp_path / "instance"
    datadir.mkdir()
    store_options(datadir, "", {"replicate_do_db": "shop"})
    for name in ("", "west"):
        change_master(load_config(datadir, name), name, MasterChanges(master_host="db1", master_user="u"))
    backup(lambda name: load_config(datadir, name), tmp_path / "backup")
    return tmp_path / "backup"


def test_a_channel_is_there_only_when_all_that_it_needs_is(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(read_manifest(copy).digests)
    whole = restoring.copy_file
    states = []
    for stop_after in range(count + 1):
        done = iter(range(stop_after))

        def cut_off(*arguments: object, **options: object) -> None:
            if next(done, None) is None:  # noqa: B023 - used up within the round
                raise KeyboardInterrupt
            whole(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(restoring, "copy_file", cut_off)
        datadir = tmp_path / f"again{stop_after}"
        if stop_after == count:
            restore(copy, datadir)
        else:
            with pytest.raises(KeyboardInterrupt):
                restore(copy, datadir)
            if stop_after:
                with pytest.raises(UsageError, match="not an empty folder"):
                    restore(copy, datadir)
        channels = list_channels(load_config(datadir), engine_of) if datadir.exists() else []
        states.append(len(channels))
        assert not channels or load_config(datadir).replicate_do_db == "shop"
    assert states[0] == 0 and states[-1] == 2 and states == sorted(states)


def test_a_binary_log_outside_of_the_instance_is_copied_and_put_back_unless_another_is_there(tmp_path: Path) -> None:
    datadir, place = tmp_path / "instance", tmp_path / "logs"
    datadir.mkdir()
    place.mkdir()
    store_options(datadir, "", {"log_bin": str(place / "applied")})
    change_master(load_config(datadir), "west", MasterChanges(master_host="db1", master_user="u"))
    (place / "applied-west.000001").write_bytes(b"\xfebin and what else a log holds")
    (place / "applied-west.index").write_text("./applied-west.000001\n")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    backup(lambda name: load_config(datadir, name), tmp_path / "backup")
    with pytest.raises(UsageError, match="applied-west.000001 exists"):
        restore(tmp_path / "backup", tmp_path / "again", [place])
    assert not (tmp_path / "again").exists()
    place.rename(tmp_path / "gone")
    for named in ([], [tmp_path]):
        with pytest.raises(UsageError, match="was outside of the instance folder") as refused:
            restore(tmp_path / "backup", tmp_path / "again", named)
        assert refused.value.hint.endswith(f"--binary-log-dir {place}")
    assert not place.exists() and not (tmp_path / "again").exists()
    restore(tmp_path / "backup", tmp_path / "again", [place])
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert not (tmp_path / "again/binary-log").exists()
    assert load_config(tmp_path / "again").log_bin == str(place / "applied")


def test_what_is_no_backup_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a complete backup"):
        restore(tmp_path, tmp_path / "again")
    assert not (tmp_path / "again").exists()
