"""Options that several commands set at the same time: none is lost, and the comments stay."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from rplctl import option_file
from rplctl.config import read_file
from rplctl.errors import LockBusy
from rplctl.locks import options_lock
from rplctl.option_file import forget_options, store_options


def test_options_of_several_channels_set_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    path = store_options(tmp_path, "", {"replicate_do_db": "shop"})
    path.write_text(f"# by hand\n{path.read_text()}")
    names = [f"c{number}" for number in range(8)]

    def change(name: str) -> None:
        for number in range(10):
            store_options(tmp_path, name, {"replicate_ignore_db": f"{name}_{number}"})
            if number == 5:
                forget_options(tmp_path, name, ["replicate_ignore_db"])

    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(change, names))
    stored = read_file(path)
    assert {name: section["replicate_ignore_db"] for name, section in stored["channel"].items()} == {
        name: f"{name}_9" for name in names
    }
    assert path.read_text().startswith("# by hand\n") and stored["replicate_do_db"] == "shop"


def test_a_command_does_not_wait_for_ever_for_one_that_is_frozen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(option_file, "PATIENCE_S", 0.05)
    before = store_options(tmp_path, "", {"replicate_do_db": "shop"}).read_bytes()
    with closing(options_lock(tmp_path)) as other:
        assert other.acquire()
        with pytest.raises(LockBusy, match="another command changes rplctl.toml") as caught:
            store_options(tmp_path, "", {"replicate_do_db": "other"})
    assert caught.value.errno == 1205 and (tmp_path / "rplctl.toml").read_bytes() == before
