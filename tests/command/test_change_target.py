"""`change-target`: the channels go on in the new place, and only where it holds what belongs to them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rplctl.channel import hold_lock
from rplctl.command.change_target import change_target
from rplctl.config import load_config
from rplctl.errors import TargetError, UsageError
from rplctl.instance_id import made_instance_id
from tests.kit.channel_life import TRANSACTIONS, Archive, Life
from tests.test_renaming import KINDS, archive, worked

__all__ = ["archive"]


def copied(life: Life, name: str) -> str:
    """A copy of the target; its URL."""
    with closing(sqlite3.connect(life.folder / "target.db")) as connection:
        connection.execute("VACUUM INTO ?", [str(life.folder / name)])  # with what is in the write-ahead log
    return f"sqlite:///{life.folder / name}"


def lived(folder: Path, archive: Archive, kinds: tuple[str, str] = ("FILE", "FILE")) -> Life:
    life = worked(folder, archive, kinds)
    made_instance_id(folder)
    life.apply(1)
    return life


@pytest.mark.long("One repository of each kind stays.", keeps=r"^(FILE-FILE|TABLE-TABLE)$")
@pytest.mark.parametrize("kinds", KINDS)
def test_the_channel_goes_on_in_the_new_place(tmp_path: Path, archive: Archive, kinds: tuple[str, str]) -> None:
    life = lived(tmp_path / "life", archive, kinds)
    url = copied(life, "moved.db")
    before = (life.folder / "rplctl.toml").read_bytes()
    result = change_target(life.config, url, dry_run=True)
    assert (life.folder / "rplctl.toml").read_bytes() == before and [*result.channels] == [""]
    result = change_target(life.config, url)
    assert result.channels[""] == str(archive.end_of(4)) and load_config(life.folder).target == url
    (life.folder / "target.db").unlink()
    life.go_on()
    assert life.numbers() == [*range(1, TRANSACTIONS + 1)]


@pytest.mark.long("One repository of each kind stays.", keeps=r"^(FILE-FILE|TABLE-TABLE)$")
@pytest.mark.parametrize("kinds", KINDS)
def test_a_target_that_lacks_the_channels_state_changes_nothing(
    tmp_path: Path, archive: Archive, kinds: tuple[str, str]
) -> None:
    life = lived(tmp_path / "life", archive, kinds)
    old, others = copied(life, "old.db"), copied(life, "others.db")
    with closing(sqlite3.connect(life.folder / "others.db")) as connection, connection:
        connection.execute("UPDATE rplctl_channel_owner SET Instance_id = '0123456789abcdef'")
    life.apply(1)
    status = life.channel.status_path("applier")
    at = archive.end_of(5)
    status.write_text(f'{{"exec_log_name": "{at.log_name}", "exec_log_pos": {at.log_pos}}}')
    empty = f"sqlite:///{life.folder / 'empty.db'}"
    sqlite3.connect(life.folder / "empty.db").close()
    before = (life.folder / "rplctl.toml").read_bytes()
    for url, why in (
        (old, "is an older copy"),
        (others, "belong to instance"),
        (empty, "does not hold the rows of channel ''"),
        (f"sqlite:///{life.folder / 'none.db'}", "does not hold the rows of channel ''"),
    ):
        with pytest.raises(TargetError, match=why) as refused:
            change_target(life.config, url)
        assert "change-target URL" in refused.value.hint
    assert (life.folder / "rplctl.toml").read_bytes() == before and not (life.folder / "none.db").exists()


def test_what_cannot_be_moved_is_refused(tmp_path: Path, archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    life = lived(tmp_path / "life", archive)
    url = copied(life, "moved.db")
    for role in ("receiver", "applier"):
        with hold_lock(life.channel, role), pytest.raises(UsageError, match="running replication threads"):
            change_target(life.config, url)
    for wrong, why in (
        (life.config.target, "is already the target"),
        ("mysql://u@h/", "cannot change the kind of the target"),
        ("mysql://u:secret@h/", "process list"),
        (f"parquet:///{tmp_path}/lake", "a lake"),
    ):
        with pytest.raises(UsageError, match=why):
            change_target(life.config, wrong)
    monkeypatch.setenv("RPLCTL_TARGET", life.config.target)
    with pytest.raises(UsageError, match="another option file names the target"):
        change_target(life.config, url)
